//! Values of f32 that nobody looks at before they were rounded to halves. What a driver's own functions lack in precision is
//! lost there anyway, and they take a few instructions instead of dozens.

use crate::dtype::DType;
use crate::op::{BinaryOp, UnaryOp};
use crate::plan::kernel::{MapKernel, Step, Value};

/// Whether all that becomes of `v` is rounded to halves, and errors of a few units of an f32 are no larger until then.
pub(super) fn is_rough(kernel: &MapKernel, v: Value) -> bool {
    // From the last one back: users come after what they use.
    let mut rough = vec![true; kernel.code.len()];
    let mut used = vec![false; kernel.code.len()];
    for store in &kernel.stores {
        rough[store.value] = false;
    }
    for user in (v + 1..kernel.code.len()).rev() {
        let is_half = kernel.code[user].dtype == DType::F16;
        let passes = passes_on(&kernel.code[user].step) && (is_half || used[user] && rough[user]);
        for operand in kernel.code[user].step.operands() {
            used[operand] = true;
            rough[operand] &= passes;
        }
    }
    kernel.code[v].dtype == DType::F16 || kernel.code[v].dtype == DType::F32 && used[v] && rough[v]
}

/// Whether errors of operands become no more than errors of that size: they decide about nothing.
fn passes_on(step: &Step) -> bool {
    match step {
        Step::Unary(op, _) => *op == UnaryOp::Neg,
        Step::Binary(op, ..) => matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul),
        Step::Cast(_) | Step::Broadcast(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::dispatch::Caps;
    use crate::gpu::snapshots::{numbers, shaders};
    use crate::tensor::Tensor;

    /// Whether a program of halves has a driver's function in it.
    fn trusts_the_driver(f: fn(Tensor) -> Tensor) -> bool {
        let all = shaders(&Caps::MOST, || {
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
        assert!(trusts_the_driver(|x| (-(x.to_dtype(DType::F32).exp() * 3.0) - 1.0).to_dtype(DType::F16)));
    }

    #[test]
    fn what_is_stored_folded_or_decides_is_not() {
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).sigmoid()));
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).exp().sum()));
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).exp().sum().to_dtype(DType::F16)));
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).exp().gt(1.5)));
        assert!(!trusts_the_driver(|x| x.to_dtype(DType::F32).exp().log().to_dtype(DType::F16)));
        assert!(!trusts_the_driver(|x| x.tanh()));
    }
}
