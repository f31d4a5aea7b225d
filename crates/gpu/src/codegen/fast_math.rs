//! f32 values that are only read after rounding to f16 may use fast math. What a driver's own functions lack in precision is
//! lost there anyway, and they take a few instructions instead of dozens.

use volta_ir::dtype::DType;
use volta_ir::op::{BinaryOp, UnaryOp};
use volta_ir::plan::kernel::{MapKernel, Step, Value};

/// Whether all that becomes of `v`, a value of `op`, is rounded to halves, and errors of a few units of an f32 are about as
/// small until then.
pub(super) fn is_rough(kernel: &MapKernel, v: Value, op: UnaryOp) -> bool {
    let small = stays_small(kernel, v, op);
    // From the last one back: users come after what they use.
    let mut rough = vec![true; kernel.code.len()];
    let mut used = vec![false; kernel.code.len()];
    for store in &kernel.stores {
        rough[store.value] = false;
    }
    for user in (v + 1..kernel.code.len()).rev() {
        let is_half = kernel.code[user].dtype == DType::F16;
        let passes = kernel.code[user].dtype.is_float()
            && passes_on(&kernel.code[user].step, small)
            && (is_half || used[user] && rough[user]);
        for operand in kernel.code[user].step.operands() {
            used[operand] = true;
            rough[operand] &= passes;
        }
    }
    kernel.code[v].dtype == DType::F16 || kernel.code[v].dtype == DType::F32 && used[v] && rough[v]
}

/// Whether errors of `v` are small beside what it is added to as well. Logistic functions are of at most one, and nothing
/// large cancels out. An exponential of a difference is as far off already: the difference has an error of its own.
fn stays_small(kernel: &MapKernel, v: Value, op: UnaryOp) -> bool {
    let is_difference = |a: Value| matches!(kernel.code[a].step, Step::Binary(BinaryOp::Sub, ..));
    match kernel.code[v].step {
        Step::Unary(UnaryOp::Exp, a) => is_difference(a),
        _ => op == UnaryOp::Sigmoid,
    }
}

/// Whether errors of an operand become no more than errors of that size: they decide about nothing, and where they are
/// added to something, they are small beside it.
fn passes_on(step: &Step, small: bool) -> bool {
    match step {
        Step::Unary(op, _) => *op == UnaryOp::Neg,
        Step::Binary(BinaryOp::Add | BinaryOp::Sub, ..) => small,
        Step::Binary(op, ..) => *op == BinaryOp::Mul,
        Step::Cast(_) | Step::Broadcast(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::Caps;
    use crate::snapshots::{numbers, shaders};
    use volta::Tensor;
    use volta::{Device, default_device, with_device};

    /// Whether a program of halves has a driver's function in it.
    fn trusts_the_driver(f: fn(Tensor) -> Tensor) -> bool {
        let all = shaders(&Caps::FULL, || {
            let half = numbers([8, 128]).to_dtype(DType::F16).realize().clone();
            f(half).realize();
        });
        all.iter().any(|shader| shader.source.contains("m_rough"))
    }

    #[test]
    fn what_is_rounded_to_halves_is_computed_by_the_driver() {
        assert!(trusts_the_driver(|x| x.sigmoid()));
        assert!(trusts_the_driver(|x| x.exp() + 1.0));
        assert!(trusts_the_driver(|x| x.gelu_tanh()));
        assert!(trusts_the_driver(|x| (-(x.to_dtype(DType::F32).exp() * 3.0)).to_dtype(DType::F16)));
        assert!(trusts_the_driver(|x| (1.0 - x.to_dtype(DType::F32).sigmoid()).to_dtype(DType::F16)));
        assert!(trusts_the_driver(|x| {
            let (x, top) = (x.to_dtype(DType::F32), numbers([8, 1]));
            ((x - top).exp() - 1.0).to_dtype(DType::F16)
        }));
    }

    #[test]
    fn what_is_stored_folded_or_decides_is_not() {
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).sigmoid()));
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).exp().sum()));
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).exp().sum().to_dtype(DType::F16)));
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).exp().gt(1.5)));
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).exp().log().to_dtype(DType::F16)));
        assert!(!trusts_the_driver(|x| (x.to_dtype(DType::F32).exp() - 1.0).to_dtype(DType::F16)));
        let whole = |x: Tensor| x.to_dtype(DType::F32).exp().to_dtype(DType::I32).to_dtype(DType::F16);
        assert!(!trusts_the_driver(whole));
        assert!(!trusts_the_driver(|x| x.tanh()));
    }

    /// On the GPU that `VOLTA_DEVICE=gpu` picks: what is far out, infinite or not a number is what it is on the CPU.
    #[test]
    fn far_out_it_is_right_as_well() {
        let all = [f32::NAN, f32::INFINITY, -65504.0, -200.0, -100.0, -20.0, -8.0, 0.0, 8.0, 20.0, 65504.0];
        let all: Vec<f32> = all.iter().flat_map(|x| [*x, -x]).collect();
        let below_one = |x: &Tensor| ((x.to_dtype(DType::F32) - 20.0).exp() - 1.0).to_dtype(DType::F16);
        let functions: [fn(&Tensor) -> Tensor; 4] =
            [Tensor::exp, Tensor::sigmoid, Tensor::gelu_tanh, below_one];
        for (n, f) in functions.iter().enumerate() {
            let on = |device| -> Vec<f32> {
                with_device(device, || {
                    let x = Tensor::from_slice(&all, [all.len()]).to_dtype(DType::F16).realize().clone();
                    f(&x).to_dtype(DType::F32).to_vec()
                })
            };
            for ((x, here), there) in all.iter().zip(on(default_device())).zip(on(Device::Cpu)) {
                let close = (here - there).abs() <= 1e-3 * there.abs() + 1e-7;
                assert!(
                    close || here == there || here.is_nan() && there.is_nan(),
                    "{n} of {x}: {here}, {there}"
                );
            }
        }
    }
}
