//! Recurrent layers, step by step.

use super::Rows;
use super::activation::{hard_sigmoid, softplus};
use crate::call::{Call, Outputs, size};
use volta::{Result, Tensor};
use volta_ir::bail;

pub(super) const ROWS: Rows = &[
    ("RNN", |c| layer(c, 1, &["Tanh"])),
    ("GRU", |c| layer(c, 3, &["Sigmoid", "Tanh"])),
    ("LSTM", |c| layer(c, 4, &["Sigmoid", "Tanh", "Tanh"])),
];

/// One direction of a layer.
struct Direction {
    /// Inputs × gates, states × gates, and the two biases.
    w: Tensor,
    r: Tensor,
    bias: Option<(Tensor, Tensor)>,
    peepholes: Option<Tensor>,
    functions: Vec<(String, Option<f64>, Option<f64>)>,
    clip: Option<f64>,
    linear_before_reset: bool,
    input_forget: bool,
    hidden: usize,
}

impl Direction {
    fn apply(&self, k: usize, x: &Tensor) -> Result<Tensor> {
        let x = match self.clip {
            Some(limit) => x.try_clamp(Some(-limit), Some(limit))?,
            None => x.clone(),
        };
        let (name, alpha, beta) = &self.functions[k];
        match name.as_str() {
            "Sigmoid" => x.try_sigmoid(),
            "Tanh" => x.try_tanh(),
            "Relu" => x.try_relu(),
            "Affine" => x.try_mul(alpha.unwrap_or(1.0))?.try_add(beta.unwrap_or(0.0)),
            "LeakyRelu" => x.try_leaky_relu(alpha.unwrap_or(0.01)),
            "ScaledTanh" => x.try_mul(beta.unwrap_or(1.0))?.try_tanh()?.try_mul(alpha.unwrap_or(1.0)),
            "HardSigmoid" => hard_sigmoid(&x, alpha.unwrap_or(0.2), beta.unwrap_or(0.5)),
            "Elu" => x.try_elu(alpha.unwrap_or(1.0)),
            "Softsign" => x.try_softsign(),
            "Softplus" => softplus(&x),
            other => bail!(Data, "the activation {other:?} is not known"),
        }
    }

    fn gate(&self, all: &Tensor, k: usize) -> Result<Tensor> {
        all.try_narrow(-1, k * self.hidden, self.hidden)
    }

    fn peep(&self, gate: Tensor, cell: &Tensor, k: usize) -> Result<Tensor> {
        match &self.peepholes {
            Some(p) => gate.try_add(&cell.try_mul(&self.gate(p, k)?)?),
            None => Ok(gate),
        }
    }

    /// The next state (and cell) from what the input gives to every gate.
    fn step(&self, given: &Tensor, h: &Tensor, cell: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)> {
        let seen = h.try_matmul(&self.r)?;
        let with = |x: Tensor, bias: Option<&Tensor>| match bias {
            Some(bias) => x.try_add(bias),
            None => Ok(x),
        };
        let recurrent = self.bias.as_ref().map(|b| &b.1);
        if let Some(cell) = cell {
            let all = with(given.try_add(&seen)?, recurrent)?;
            let input = self.apply(0, &self.peep(self.gate(&all, 0)?, cell, 0)?)?;
            let forget = if self.input_forget {
                input.try_neg()?.try_add(1)?
            } else {
                self.apply(0, &self.peep(self.gate(&all, 2)?, cell, 2)?)?
            };
            let new = self.apply(1, &self.gate(&all, 3)?)?;
            let cell = forget.try_mul(cell)?.try_add(&input.try_mul(&new)?)?;
            let output = self.apply(0, &self.peep(self.gate(&all, 1)?, &cell, 1)?)?;
            // The last function has no clip of its own.
            let free = Direction { clip: None, ..self.shallow() };
            return Ok((output.try_mul(&free.apply(2, &cell)?)?, Some(cell)));
        }
        if self.w.size(-1) == self.hidden {
            return Ok((self.apply(0, &with(given.try_add(&seen)?, recurrent)?)?, None));
        }
        let (bias_z, bias_h) = match recurrent {
            Some(b) => (Some(b.try_narrow(-1, 0, 2 * self.hidden)?), Some(self.gate(b, 2)?)),
            None => (None, None),
        };
        let both =
            given.try_narrow(-1, 0, 2 * self.hidden)?.try_add(&seen.try_narrow(-1, 0, 2 * self.hidden)?)?;
        let both = self.apply(0, &with(both, bias_z.as_ref())?)?;
        let (update, reset) = (self.gate(&both, 0)?, self.gate(&both, 1)?);
        let past = if self.linear_before_reset {
            with(self.gate(&seen, 2)?, bias_h.as_ref())?.try_mul(&reset)?
        } else {
            with(reset.try_mul(h)?.try_matmul(&self.gate(&self.r, 2)?)?, bias_h.as_ref())?
        };
        let new = self.apply(1, &self.gate(given, 2)?.try_add(&past)?)?;
        Ok((update.try_mul(h)?.try_add(&update.try_neg()?.try_add(1)?.try_mul(&new)?)?, None))
    }

    fn shallow(&self) -> Direction {
        Direction {
            w: self.w.clone(),
            r: self.r.clone(),
            bias: self.bias.clone(),
            peepholes: self.peepholes.clone(),
            functions: self.functions.clone(),
            ..*self
        }
    }
}

fn layer(c: &Call, gates: usize, usual: &[&str]) -> Result<Outputs> {
    let (x, w, r) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let batch_first = c.flag("layout", false)?;
    let x = if batch_first { x.try_transpose(0, 1)? } else { x };
    if x.rank() != 3 || w.rank() != 3 || r.rank() != 3 {
        bail!(
            Shape,
            "an input of shape {} and weights of shapes {} and {} do not fit",
            x.shape(),
            w.shape(),
            r.shape()
        );
    }
    let hidden = size(c.int("hidden_size", r.size(2) as i64)?)?;
    let (steps, batch, directions) = (x.size(0), x.size(1), w.size(0));
    if w.size(1) != gates * hidden || r.size(1) != gates * hidden {
        bail!(Shape, "weights of shapes {} and {} do not fit {hidden} states", w.shape(), r.shape());
    }
    let (bias, lengths, peepholes) = (c.maybe(3)?, c.maybe_ints(4)?, c.maybe(7)?);
    let (first, first_cell) = (c.maybe(5)?, c.maybe(6)?);
    let names = c.texts("activations")?;
    let (alphas, betas) = (c.float_list("activation_alpha")?, c.float_list("activation_beta")?);
    let direction = c.text("direction", "forward")?;
    let is_lstm = gates == 4;
    let (mut all, mut last, mut last_cell) = (Vec::new(), Vec::new(), Vec::new());
    for d in 0..directions {
        let part = |t: &Tensor| t.try_select(0, d as isize);
        let bias = match &bias {
            Some(b) => {
                let b = part(b)?;
                Some((b.try_narrow(0, 0, gates * hidden)?, b.try_narrow(0, gates * hidden, gates * hidden)?))
            }
            None => None,
        };
        let function = |k: usize| {
            let k = d * usual.len() + k;
            let setting =
                |list: &Option<Vec<f32>>| list.as_ref().and_then(|l| l.get(k)).map(|&x| f64::from(x));
            (
                names.get(k).cloned().unwrap_or_else(|| usual[k % usual.len()].to_string()),
                setting(&alphas),
                setting(&betas),
            )
        };
        let unit = Direction {
            w: part(&w)?.try_t()?,
            r: part(&r)?.try_t()?,
            bias,
            peepholes: peepholes.as_ref().map(part).transpose()?,
            functions: (0..usual.len()).map(function).collect(),
            clip: c.maybe_float("clip")?,
            linear_before_reset: c.flag("linear_before_reset", false)?,
            input_forget: c.flag("input_forget", false)?,
            hidden,
        };
        let begin = |t: &Option<Tensor>| match t {
            Some(t) => {
                (if batch_first { t.try_transpose(0, 1)? } else { t.clone() }).try_select(0, d as isize)
            }
            None => c.make(|| Tensor::try_zeros([batch, hidden]))?.try_to_dtype(x.dtype()),
        };
        let (mut h, mut cell) = (begin(&first)?, is_lstm.then(|| begin(&first_cell)).transpose()?);
        let mut given = x.try_matmul(&unit.w)?;
        if let Some((bias, _)) = &unit.bias {
            given = given.try_add(bias)?;
        }
        let backward = direction == "reverse" || d == 1;
        let mut outputs = vec![None; steps];
        for k in 0..steps {
            let t = if backward { steps - 1 - k } else { k };
            let (next, next_cell) = unit.step(&given.try_select(0, t as isize)?, &h, cell.as_ref())?;
            let (mut next, mut next_cell, mut output) = (next.clone(), next_cell, next);
            if let Some(lengths) = &lengths {
                // Beyond its end a sequence keeps its state and gives zeros.
                let runs =
                    c.vector(lengths.iter().map(|&length| i64::from((t as i64) < length)).collect())?;
                let runs = runs.try_ne(0)?.try_unsqueeze(-1)?;
                output = runs.try_where_(&next, next.zeros_like())?;
                next = runs.try_where_(&next, &h)?;
                if let (Some(new), Some(old)) = (&next_cell, &cell) {
                    next_cell = Some(runs.try_where_(new, old)?);
                }
            }
            (h, cell) = (next, next_cell);
            outputs[t] = Some(output);
        }
        let outputs: Vec<Tensor> = outputs.into_iter().flatten().collect();
        if outputs.is_empty() {
            bail!(Shape, "the input has no steps");
        }
        all.push(Tensor::try_stack(&outputs, 0)?);
        last.push(h);
        last_cell.extend(cell);
    }
    let y = Tensor::try_stack(&all, 1)?;
    let y = if batch_first { y.try_permute([2, 0, 1, 3])? } else { y };
    let side = |t: &[Tensor]| Tensor::try_stack(t, isize::from(batch_first));
    let mut found = vec![y.into(), side(&last)?.into()];
    if is_lstm {
        found.push(side(&last_cell)?.into());
    }
    Ok(found)
}
