//! Folds that need no pass of their own along a row in a loop, where a pass would read it once more.
//!
//! The sum of exponentials of a softmax rides with the maximum that is taken away from them: whenever the largest so far
//! grows, the sum so far shrinks accordingly. The sum in which one class at most counts, as cross entropy picks it, looks
//! at that class alone.

use super::code::{LoopPosition, Name, Writer, bounded};
use super::expression as expr;
use super::reduce::Reduce;
use super::thread_group::Shared;
use crate::dispatch::ComputeType;
use volta_ir::dtype::DType;
use volta_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use volta_ir::plan::kernel::{Instruction, LoopLevel, MapKernel, Step, Value, stages_of};

/// How a fold is computed without its own pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shortcut {
    /// Σ e^(x − shift), for a shift that is made of the maximum of x.
    OnlineSoftmaxSum { max: Value, shift: Value },
    /// Σ (of where the place is `at`, `otherwise` elsewhere).
    OneHotPick { at: Value, of: Value, otherwise: Value },
}

/// The shortcuts of a kernel's folds, by value.
pub(super) fn find(kernel: &MapKernel) -> Vec<Option<Shortcut>> {
    let stage = stages_of(&kernel.code);
    let mut found: Vec<Option<Shortcut>> = vec![None; kernel.code.len()];
    for v in 0..kernel.code.len() {
        let shortcut = pick(kernel, v).or_else(|| ride(&kernel.code, &stage, v));
        let is_taken = |max: Value| {
            found
                .iter()
                .flatten()
                .any(|s| matches!(s, Shortcut::OnlineSoftmaxSum { max: other, .. } if *other == max))
        };
        match shortcut {
            Some(Shortcut::OnlineSoftmaxSum { max, .. }) if is_taken(max) => {}
            _ => found[v] = shortcut,
        }
    }
    found
}

/// The number of passes before each value, if folds with shortcuts need none.
pub(super) fn stages(code: &[Instruction], shortcuts: &[Option<Shortcut>]) -> Vec<usize> {
    let mut stage = vec![0; code.len()];
    for v in 0..code.len() {
        for o in code[v].step.operands() {
            let pass = code[o].step.is_fold() && shortcuts[o].is_none();
            stage[v] = stage[v].max(stage[o] + usize::from(pass));
        }
    }
    stage
}

/// The value behind broadcasts.
fn source(code: &[Instruction], v: Value) -> Value {
    match code[v].step {
        Step::Broadcast(of) => source(code, of),
        _ => v,
    }
}

/// The operand of a sum of f32.
fn summed(code: &[Instruction], v: Value) -> Option<Value> {
    match code[v].step {
        Step::Reduce(ReduceOp::Sum, of) if code[v].dtype == DType::F32 => Some(of),
        _ => None,
    }
}

fn ride(code: &[Instruction], stage: &[usize], v: Value) -> Option<Shortcut> {
    let Step::Unary(UnaryOp::Exp, difference) = code[summed(code, v)?].step else { return None };
    let Step::Binary(BinaryOp::Sub, x, shift) = code[difference].step else { return None };
    let shift = source(code, shift);
    let is_max = |m: &Value| matches!(code[*m].step, Step::Reduce(ReduceOp::Max, of) if of == x);
    let max = (0..v).find(is_max)?;
    let known_with_max =
        code[shift].rank == LoopLevel::Row && stage[shift] <= 1 && is_made_of(code, shift, max);
    (known_with_max && stage[max] == 0 && code[max].dtype == DType::F32)
        .then_some(Shortcut::OnlineSoftmaxSum { max, shift })
}

/// Whether `part` is among what `v` is computed from.
fn is_made_of(code: &[Instruction], v: Value, part: Value) -> bool {
    v == part || v > part && code[v].step.operands().iter().any(|&o| is_made_of(code, o, part))
}

fn pick(kernel: &MapKernel, v: Value) -> Option<Shortcut> {
    let code = &kernel.code;
    let Step::Where(hit, of, otherwise) = code[summed(code, v)?].step else { return None };
    let Step::Binary(BinaryOp::Eq, a, b) = code[hit].step else { return None };
    let counts = |i: Value| match &code[i].step {
        Step::Iota(form) => {
            let mut steps = form.coefficients.iter().enumerate();
            form.offset == 0
                && code[i].dtype.is_int()
                && steps.all(|(l, &c)| c == isize::from(l == kernel.outer))
        }
        _ => false,
    };
    let (index, at) = if counts(a) { (a, source(code, b)) } else { (b, source(code, a)) };
    let one_loop = kernel.extents.len() == kernel.outer + 1 && kernel.extents[kernel.outer] > 1;
    let otherwise = source(code, otherwise);
    let fits = one_loop
        && counts(index)
        && matches!(code[at].rank, LoopLevel::Row | LoopLevel::Uniform)
        && code[otherwise].rank == LoopLevel::Uniform;
    fits.then_some(Shortcut::OneHotPick { at, of, otherwise })
}

/// `peak`, or 0 where there is nothing finite to take away.
fn base(peak: &str) -> String {
    format!("select(0.0, {peak}, abs({peak}) <= 3.4028234e38)")
}

/// How a sum of exponentials shrinks when the base grows. A base that was 0 for want of anything finite shrinks nothing.
fn shrink(from: &str, to: &str) -> String {
    format!("select(exp(min({from} - {to}, 0.0)), 1.0, {from} == {to})")
}

impl Reduce<'_> {
    /// The sum that rides with a maximum.
    pub fn rider(&self, max: Value) -> Option<Value> {
        let rides =
            |s: &Option<Shortcut>| matches!(s, Some(Shortcut::OnlineSoftmaxSum { max: m, .. }) if *m == max);
        self.shortcuts.iter().position(rides)
    }

    /// The largest so far, what is taken away from every exponent, and the sum of the exponentials so far.
    pub fn declare_riding(&self, w: &mut Writer, max: Value) {
        let t = ComputeType::F32.name(self.layout.wide);
        w.line(format!(
            "var peak{max}: f32 = -m_inf();\nvar base{max}: f32 = 0.0;\nvar mass{max} = {t}(0.0);"
        ));
    }

    /// Takes `terms` of a row into the maximum and the sum that rides with it. A NaN may be missing in the maximum, but
    /// not in the sum.
    pub fn fold_riding(&self, w: &mut Writer, max: Value, terms: &[String]) {
        let largest = terms.iter().cloned().reduce(|a, b| format!("max({a}, {b})")).expect("a term");
        w.line(format!("{{\nlet largest = {largest};"));
        let own = if self.layout.wide {
            "max(max(largest.x, largest.y), max(largest.z, largest.w))"
        } else {
            "largest"
        };
        w.line(format!("peak{max} = max(peak{max}, {own});\nlet next = {};", base(&format!("peak{max}"))));
        w.line(format!("mass{max} *= {};\nbase{max} = next;", shrink(&format!("base{max}"), "next")));
        for term in terms {
            w.line(format!("mass{max} += exp({term} - next);"));
        }
        w.line("}");
    }

    /// Puts the parts of the team together: the maximum, and the sum less what belongs to the base.
    pub fn close_riding(&self, w: &mut Writer, shared: &mut Shared, max: Value) {
        let (team, dtype) = (self.layout.team, DType::F32);
        let mass = format!("mass{max}");
        let own =
            if self.layout.wide { format!("(({mass}.x + {mass}.y) + ({mass}.z + {mass}.w))") } else { mass };
        w.line(format!("let own{max} = {own};"));
        let peak = format!("select(peak{max}, m_nan(), m_is_nan(own{max}))");
        team.fold(&mut w.text, shared, (ReduceOp::Max, dtype), &peak, &format!("whole{max}"), "part");
        w.line(format!("let v{max} = whole{max};\nlet top{max} = {};", base(&format!("v{max}"))));
        w.names[max] = Some(Name { text: format!("v{max}"), wide: false });
        let share = format!("own{max} * {}", shrink(&format!("base{max}"), &format!("top{max}")));
        team.fold(&mut w.text, shared, (ReduceOp::Sum, dtype), &share, &format!("all{max}"), "part");
    }

    /// Writes a fold that has a shortcut, where everything that it is made of is known.
    pub fn take_shortcut(&self, w: &mut Writer, v: Value, shortcut: Shortcut) {
        let value = match shortcut {
            Shortcut::OnlineSoftmaxSum { max, shift } => {
                let shift = w.operand(shift, false);
                // e⁰ = 1 wherever the shift is the maximum; the rest is what becomes of infinities.
                format!("all{max} * m_exp(top{max} - {shift})")
            }
            Shortcut::OneHotPick { at, of, otherwise } => {
                let (extent, lane) = (self.layout.width, ComputeType::of(self.kernel.code[at].dtype));
                let (inside, place) = bounded(&w.operand(at, false), lane, extent);
                w.line(format!("let hits{v} = {inside};\nlet place{v} = select(0u, {place}, hits{v});"));
                let picked = self.value_at(w, of, &format!("place{v}"), &format!("_at{v}"));
                let rest = w.operand(otherwise, false);
                let many = |n: usize| expr::literal(n as f64, DType::F32);
                format!(
                    "select({rest} * {}, {picked} + {rest} * {}, hits{v})",
                    many(extent),
                    many(extent - 1)
                )
            }
        };
        w.line(format!("let v{v} = {value};"));
        w.names[v] = Some(Name { text: format!("v{v}"), wide: false });
    }

    /// The value `of` at one place of the row.
    fn value_at(&self, w: &mut Writer, of: Value, place: &str, mark: &str) -> String {
        let mut indices = w.indices.clone();
        indices.push(place.to_string());
        let mut there = LoopPosition { indices, names: w.names.clone(), mark: mark.to_string() };
        let wanted = self.full_values_behind(&[of]);
        there.visit(w, |w| wanted.into_iter().for_each(|v| w.compute(v)));
        there.names[of].as_ref().map(|name| name.text.clone()).unwrap_or_else(|| w.operand(of, false))
    }
}
