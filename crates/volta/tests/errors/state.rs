//! Misuse of indices, variables and gradients.

use crate::{Misuse, check, f, of};
use volta::{DType, ErrorKind, Tensor};
use volta_testing::test;

#[test]
fn indexing_names_index_and_tensor() {
    check(&[
        misuse!(
            DType,
            "the index is f32: it must be an integer type",
            f(&[3]),
            gather | try_gather(0, &f(&[2]))
        ),
        misuse!(
            Shape,
            "the index has shape [2], the tensor [3, 2]: they need as many axes",
            f(&[3, 2]),
            gather | try_gather(0, &of(&[2], DType::I32))
        ),
        misuse!(
            Shape,
            "index shape [2, 5] is larger than the tensor's [3, 2] on axis 1",
            f(&[3, 2]),
            gather | try_gather(0, &of(&[2, 5], DType::I32))
        ),
        misuse!(
            DType,
            "cannot add f64 to f32: convert one with to_dtype",
            f(&[3]),
            scatter_add | try_scatter_add(0, &of(&[2], DType::I32), &of(&[2], DType::F64))
        ),
        misuse!(
            Shape,
            "index shape [4] is larger than the values' [2] or the tensor's [3] on axis 0",
            f(&[3]),
            scatter_add | try_scatter_add(0, &of(&[4], DType::I32), &f(&[2]))
        ),
        misuse!(
            Shape,
            "the index has shape [2, 1]: it must be a vector",
            f(&[3]),
            index_select | try_index_select(0, &of(&[2, 1], DType::I32))
        ),
        misuse!(
            Shape,
            "the table has shape [3]: it must be a matrix",
            f(&[3]),
            embedding | try_embedding(&of(&[2], DType::I32))
        ),
        misuse!(
            Shape,
            "axis 1 is out of range for shape [3]: it must lie in -1..=0",
            f(&[3]),
            argsort | try_argsort(1, false)
        ),
        misuse!(
            Shape,
            "axis 1 is out of range for shape [3]: it must lie in -1..=0",
            f(&[3]),
            cumsum | try_cumsum(1)
        ),
    ]);
}

/// A loss whose graph was let go.
fn used() -> Tensor {
    let y = f(&[2]).requires_grad(true).exp().sum();
    y.backward();
    y
}

#[test]
fn tensors_and_gradients_name_what_is_missing() {
    check(&[
        misuse!(
            DType,
            "only floats can collect gradients, and this is i32",
            of(&[2], DType::I32),
            requires_grad | try_requires_grad(true)
        ),
        misuse!(
            Argument,
            "this tensor is the result of an op; only tensors that were created, or made with variable() or requires_grad(), can be assigned to",
            f(&[2]).exp(),
            assign | try_assign(&f(&[2]))
        ),
        misuse!(
            Shape,
            "cannot put f32 [3] on cpu into f32 [2] on cpu",
            f(&[2]),
            assign | try_assign(&f(&[3]))
        ),
        misuse!(
            Shape,
            "cannot put f64 [2] on cpu into f32 [2] on cpu",
            f(&[2]),
            assign | try_assign(&of(&[2], DType::F64))
        ),
        misuse!(
            Autograd,
            "the output does not depend on anything that requires a gradient",
            f(&[]),
            backward | try_backward()
        ),
        misuse!(
            Autograd,
            "the output has shape [2]: without a gradient to start from it must be one number",
            f(&[2]).requires_grad(true).exp(),
            backward | try_backward()
        ),
        misuse!(
            Autograd,
            "the graph was already used by a backward pass and let go: pass retain_graph to the first one to differentiate it twice",
            used(),
            backward | try_backward()
        ),
    ]);
}
