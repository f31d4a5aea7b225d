//! Plain loops in `f64`, and the test cases that are run through them.

use super::super::AttentionShape;

/// All inputs, contiguous in the logical order.
#[derive(Clone)]
pub struct Inputs {
    pub shape: AttentionShape,
    pub q: Vec<f64>,
    pub k: Vec<f64>,
    pub v: Vec<f64>,
    /// Of the full shape, even where it is passed on with strides of 0.
    pub mask: Option<Vec<f64>>,
    pub grad: Vec<f64>,
    pub grad_lse: Option<Vec<f64>>,
}

/// All results.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    pub out: Vec<f64>,
    pub lse: Vec<f64>,
    pub dq: Vec<f64>,
    pub dk: Vec<f64>,
    pub dv: Vec<f64>,
    pub dmask: Vec<f64>,
}

/// Numbers in -1..1 that `f32` holds exactly.
pub fn noise(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 44) as f64 / (1u64 << 19) as f64 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

pub fn inputs(shape: AttentionShape, mask: Option<Vec<f64>>, grad_lse: bool) -> Inputs {
    let s = shape;
    let heads = s.batch * s.heads;
    Inputs {
        shape,
        q: noise(heads * s.queries * s.width, 1),
        k: noise(heads * s.keys * s.width, 2),
        v: noise(heads * s.keys * s.value_width, 3),
        mask,
        grad: noise(heads * s.queries * s.value_width, 4),
        grad_lse: grad_lse.then(|| noise(heads * s.queries, 5)),
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn add(to: &mut [f64], by: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(t, x)| *t += by * x);
}

/// The definition, one query at a time.
pub fn reference(x: &Inputs) -> Outputs {
    let s = x.shape;
    let heads = s.batch * s.heads;
    let mut y = Outputs {
        out: vec![0.0; x.grad.len()],
        lse: vec![0.0; heads * s.queries],
        dq: vec![0.0; x.q.len()],
        dk: vec![0.0; x.k.len()],
        dv: vec![0.0; x.v.len()],
        dmask: vec![0.0; heads * s.queries * s.keys],
    };
    for head in 0..heads {
        for i in 0..s.queries {
            let row = head * s.queries + i;
            let seen = if s.causal { s.keys.min(i + 1) } else { s.keys };
            let at = |j: usize, width: usize| {
                let start = (head * s.keys + j) * width;
                start..start + width
            };
            let (wide, values) = (s.width, s.value_width);
            let q = &x.q[row * wide..(row + 1) * wide];
            let grad = &x.grad[row * values..(row + 1) * values];
            let scores: Vec<f64> = (0..seen)
                .map(|j| {
                    let mask = x.mask.as_ref().map_or(0.0, |m| m[row * s.keys + j]);
                    s.scale * dot(q, &x.k[at(j, wide)]) + mask
                })
                .collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if max == f64::NEG_INFINITY {
                y.lse[row] = max;
                continue;
            }
            let sum: f64 = scores.iter().map(|x| (x - max).exp()).sum();
            y.lse[row] = max + sum.ln();
            let p: Vec<f64> = scores.iter().map(|x| (x - y.lse[row]).exp()).collect();
            let dp: Vec<f64> = (0..seen).map(|j| dot(grad, &x.v[at(j, values)])).collect();
            let delta = dot(&p, &dp) - x.grad_lse.as_ref().map_or(0.0, |g| g[row]);
            for j in 0..seen {
                let ds = p[j] * (dp[j] - delta);
                y.dmask[row * s.keys + j] = ds;
                add(&mut y.out[row * values..(row + 1) * values], p[j], &x.v[at(j, values)]);
                add(&mut y.dv[at(j, values)], p[j], grad);
                add(&mut y.dk[at(j, wide)], s.scale * ds, q);
                add(&mut y.dq[row * wide..(row + 1) * wide], s.scale * ds, &x.k[at(j, wide)]);
            }
        }
    }
    y
}
