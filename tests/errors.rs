//! Misuse: the message names the op, what was wrong with which shapes or types, and the caller's line; the same
//! from the method that panics and the one that returns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use volta::{AttentionOptions, ConvOptions, DType, Error, ErrorKind, Range, Tensor};

struct Misuse {
    op: &'static str,
    kind: ErrorKind,
    text: &'static str,
    line: u32,
    column: u32,
    panicking: Box<dyn Fn()>,
    fallible: Box<dyn Fn() -> Option<Error>>,
}

/// A row of the table: kind, message, then the call twice. The place is that of the row itself, however its
/// lines are broken.
macro_rules! misuse {
    ($kind:ident, $text:expr, $target:expr, $op:ident | $try_op:ident ($($arg:expr),* $(,)?)) => {
        Misuse {
            op: stringify!($op),
            kind: ErrorKind::$kind,
            text: $text,
            line: line!(),
            column: column!(),
            panicking: Box::new(|| drop($target.$op($($arg),*))),
            fallible: Box::new(|| $target.$try_op($($arg),*).err()),
        }
    };
    ($kind:ident, $text:expr, Tensor::$op:ident | $try_op:ident ($($arg:expr),* $(,)?)) => {
        Misuse {
            op: stringify!($op),
            kind: ErrorKind::$kind,
            text: $text,
            line: line!(),
            column: column!(),
            panicking: Box::new(|| drop(Tensor::$op($($arg),*))),
            fallible: Box::new(|| Tensor::$try_op($($arg),*).err()),
        }
    };
}

fn f(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape)
}

fn of(shape: &[usize], dtype: DType) -> Tensor {
    Tensor::full_of(shape, 1, dtype)
}

fn bools() -> Tensor {
    of(&[2], DType::Bool)
}

fn panic_text(f: &dyn Fn()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("it must panic");
    panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
}

fn check(table: &[Misuse]) {
    let mut wrong = vec![];
    for row in table {
        let place = format!("{}:{}:{}", file!(), row.line, row.column);
        let expected = format!("{}: {} (at {place})", row.op, row.text);
        let mut expect = |what: &str, found: String| {
            if found != expected {
                wrong.push(format!("{what}:  {found}\nexpected: {expected}"));
            }
        };
        match catch_unwind(AssertUnwindSafe(|| (row.fallible)())) {
            Ok(Some(error)) => {
                expect("returned", error.to_string());
                assert_eq!(error.kind(), row.kind, "{}", row.op);
                assert_eq!(error.op(), row.op);
                assert_eq!((error.location().file(), error.location().line()), (file!(), row.line), "{}", row.op);
            }
            Ok(None) => expect("returned", "nothing".into()),
            Err(_) => expect("returned", "a panic instead of an error".into()),
        }
        expect("panicked", panic_text(&*row.panicking));
    }
    assert!(wrong.is_empty(), "{} messages differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn elementwise_ops_name_shapes_and_types() {
    check(&[
        misuse!(Shape, "shapes [2, 3] and [4] do not broadcast: extents 3 and 4 differ and neither is 1", f(&[2, 3]), add | try_add(f(&[4]))),
        misuse!(Shape, "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1", f(&[2]), mul | try_mul(f(&[3]))),
        misuse!(Shape, "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1", f(&[2]), maximum | try_maximum(f(&[3]))),
        misuse!(Shape, "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1", f(&[2]), lt | try_lt(f(&[3]))),
        misuse!(Shape, "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1", bools(), where_ | try_where_(f(&[3]), 0.0)),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), sub | try_sub(bools())),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), neg | try_neg()),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), abs | try_abs()),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), pow | try_pow(bools())),
        misuse!(DType, "bool is not a number: convert it with to_dtype", bools(), remainder | try_remainder(bools())),
        misuse!(Autograd, "floor_div has no gradient, and an operand requires one: detach it, or compute this under no_grad", f(&[2]).requires_grad(true), floor_divide | try_floor_divide(2.0)),
    ]);
}

#[test]
fn creators_name_what_cannot_be_made() {
    check(&[
        misuse!(Shape, "3 elements do not fill shape [2, 2], which has 4", Tensor::from_vec | try_from_vec(vec![1.0f32; 3], [2, 2])),
        misuse!(Shape, "0 elements do not fill shape [], which has 1", Tensor::from_slice | try_from_slice(&[0i32; 0], [0usize; 0])),
        misuse!(Shape, "extent -1 of [2, -1] is negative", Tensor::zeros | try_zeros([2, -1])),
        misuse!(Shape, "shape [1, 1, 1, 1, 1, 1, 1, 1, 1] has 9 axes; at most 8 are possible", Tensor::ones | try_ones([1; 9])),
        misuse!(Shape, "shape [9223372036854775807, 4] has too many elements", Tensor::full | try_full([isize::MAX, 4], 0)),
        misuse!(Argument, "no numbers from 0 to 1 by 0", Tensor::arange_step | try_arange_step(0.0, 1.0, 0.0)),
        misuse!(Argument, "no i32 numbers from 3 up to 3", Tensor::randint | try_randint(3, 3, [2])),
        misuse!(Argument, "1.5 is not a probability", Tensor::bernoulli | try_bernoulli(1.5, [2])),
    ]);
}

#[test]
fn reductions_name_axes_and_empty_shapes() {
    check(&[
        misuse!(Shape, "axis 2 is out of range for shape [2, 3]: it must lie in -2..=1", f(&[2, 3]), sum_dim | try_sum_dim(2, false)),
        misuse!(Shape, "axis -3 is out of range for shape [2, 3]: it must lie in -2..=1", f(&[2, 3]), max_dim | try_max_dim(-3, true)),
        misuse!(Shape, "axis 1 is out of range for shape []: it must lie in -1..=0", f(&[]), min_dim | try_min_dim(1, true)),
        misuse!(Shape, "axis -1 appears twice in [1, -1]", f(&[2, 3]), prod_dim | try_prod_dim([1, -1], false)),
        misuse!(Shape, "the extremum of no elements: shape [0] is empty along the reduced axes", f(&[0]), max | try_max()),
        misuse!(Shape, "the extremum of no elements: shape [2, 0] is empty along the reduced axes", f(&[2, 0]), min_dim | try_min_dim(1, false)),
        misuse!(Shape, "the extremum of no elements: shape [0] is empty along the reduced axes", f(&[0]), argmax | try_argmax()),
        misuse!(Shape, "axis 2 is out of range for shape [2, 3]: it must lie in -2..=1", f(&[2, 3]), argmin_dim | try_argmin_dim(2, false)),
    ]);
}

#[test]
fn movement_names_what_does_not_fit() {
    check(&[
        misuse!(Shape, "6 elements of shape [2, 3] do not fit into shape [4, 2]", f(&[2, 3]), reshape | try_reshape([4, 2])),
        misuse!(Shape, "6 elements of shape [2, 3] do not fit into shape [-1, 4]", f(&[2, 3]), reshape | try_reshape([-1, 4])),
        misuse!(Shape, "6 elements of shape [2, 3] do not fit into shape [-1, -1]", f(&[2, 3]), reshape | try_reshape([-1, -1])),
        misuse!(Shape, "0 elements of shape [0] do not fit into shape [0, -1]", f(&[0]), reshape | try_reshape([0, -1])),
        misuse!(Shape, "order [0, 0] does not name every axis of shape [2, 3] once", f(&[2, 3]), permute | try_permute([0, 0])),
        misuse!(Shape, "order [0] does not name every axis of shape [2, 3] once", f(&[2, 3]), permute | try_permute([0])),
        misuse!(Shape, "axis 2 is out of range for shape [2, 3]: it must lie in -2..=1", f(&[2, 3]), transpose | try_transpose(0, 2)),
        misuse!(Shape, "shape [2, 3] cannot be expanded to [4, 3]", f(&[2, 3]), expand | try_expand([4, 3])),
        misuse!(Shape, "shape [2, 3] cannot be expanded to [3]", f(&[2, 3]), expand | try_expand([3])),
        misuse!(Shape, "shape [3] cannot be expanded to [-1, 3]", f(&[3]), expand | try_expand([-1, 3])),
        misuse!(Shape, "1 pairs of padding for shape [2, 3]: one pair an axis is needed", f(&[2, 3]), pad | try_pad(&[(0, 1)], 0.0)),
        misuse!(Shape, "2 ranges for shape [3]", f(&[3]), slice | try_slice([Range::from(..), Range::from(..)])),
        misuse!(Argument, "the step of a range must not be 0", f(&[3]), slice | try_slice([Range::by(.., 0)])),
        misuse!(Shape, "elements 2..4 of axis 0 are outside shape [3]", f(&[3]), narrow | try_narrow(0, 2, 2)),
        misuse!(Shape, "index 3 is out of range for axis 0 of shape [3]", f(&[3]), select | try_select(0, 3)),
        misuse!(Shape, "index -4 is out of range for axis -1 of shape [3]", f(&[3]), select | try_select(-1, -4)),
        misuse!(Shape, "axis 1 is out of range for shape [3]: it must lie in -1..=0", f(&[3]), flip | try_flip(1)),
        misuse!(Shape, "windows of 4 by step 1 and dilation 1 do not fit axis 0 of shape [3]", f(&[3]), unfold | try_unfold(0, 4, 1)),
        misuse!(Shape, "windows of 2 by step 0 and dilation 1 do not fit axis 0 of shape [3]", f(&[3]), unfold | try_unfold(0, 2, 0)),
        misuse!(Shape, "windows of 2 by step 1 and dilation 3 do not fit axis 0 of shape [3]", f(&[3]), windows | try_windows(0, 2, 1, 3)),
        misuse!(Shape, "a new axis 3 is out of range for shape [3]: it must lie in -2..=1", f(&[3]), unsqueeze | try_unsqueeze(3)),
        misuse!(Shape, "shape [1, 1, 1, 1, 1, 1, 1, 1, 1] has 9 axes; at most 8 are possible", f(&[1; 8]), unsqueeze | try_unsqueeze(0)),
        misuse!(Shape, "axis 1 comes after axis 0 in shape [2, 3]", f(&[2, 3]), flatten | try_flatten(1, 0)),
        misuse!(Shape, "axis 1 of shape [2, 3] does not unflatten into [2, 2]", f(&[2, 3]), unflatten | try_unflatten(1, [2, 2])),
        misuse!(Shape, "axis 0 of shape [] does not unflatten into [2]", f(&[]), unflatten | try_unflatten(0, [2])),
    ]);
}

#[test]
fn products_name_both_operands() {
    check(&[
        misuse!(Shape, "shapes [2, 3] and [4, 5] do not fit: the inner extents 3 and 4 differ", f(&[2, 3]), matmul | try_matmul(&f(&[4, 5]))),
        misuse!(Shape, "shapes [3] and [4] do not fit: the inner extents 3 and 4 differ", f(&[3]), matmul | try_matmul(&f(&[4]))),
        misuse!(Shape, "shapes [] and [2, 2]: both operands need at least one axis", f(&[]), matmul | try_matmul(&f(&[2, 2]))),
        misuse!(Shape, "shapes [2] and [3] do not broadcast: extents 2 and 3 differ and neither is 1", f(&[2, 1, 1]), matmul | try_matmul(&f(&[3, 1, 1]))),
        misuse!(DType, "operands are f32 and i32: convert one with to_dtype", f(&[2, 2]), matmul | try_matmul(&of(&[2, 2], DType::I32))),
        misuse!(DType, "bool is not a number: convert it with to_dtype", of(&[2, 2], DType::Bool), matmul | try_matmul(&of(&[2, 2], DType::Bool))),
        misuse!(Shape, "shapes [2, 2] and [2]: both operands must be vectors", f(&[2, 2]), dot | try_dot(&f(&[2]))),
        misuse!(Shape, "shapes [2] and []: both operands must be vectors", f(&[2]), outer | try_outer(&f(&[]))),
    ]);
}

fn conv(stride: usize, groups: usize) -> ConvOptions {
    ConvOptions { stride: [stride; 2], groups, ..Default::default() }
}

#[test]
fn convolutions_name_input_weight_and_options() {
    check(&[
        misuse!(Shape, "input [2, 3] and weight [4, 3, 1, 1] must both have 4 axes", f(&[2, 3]), conv2d | try_conv2d(&f(&[4, 3, 1, 1]), None, conv(1, 1))),
        misuse!(DType, "input is i32 and weight f32: both must be the same float type", of(&[1, 1, 2, 2], DType::I32), conv2d | try_conv2d(&f(&[1, 1, 1, 1]), None, conv(1, 1))),
        misuse!(Shape, "input [1, 3, 4, 4] has 3 channels, weight [2, 2, 3, 3] with 1 groups takes 2 and gives 2", f(&[1, 3, 4, 4]), conv2d | try_conv2d(&f(&[2, 2, 3, 3]), None, conv(1, 1))),
        misuse!(Argument, "stride [0, 0], dilation [1, 1] and groups 1 must be at least 1", f(&[1, 1, 4, 4]), conv2d | try_conv2d(&f(&[1, 1, 3, 3]), None, conv(0, 1))),
        misuse!(Shape, "a kernel of [1, 1, 5, 5] does not fit into input [1, 1, 4, 4] with padding [0, 0] and dilation [1, 1]", f(&[1, 1, 4, 4]), conv2d | try_conv2d(&f(&[1, 1, 5, 5]), None, conv(1, 1))),
        misuse!(Shape, "the bias has shape [3], and there are 2 output channels", f(&[1, 1, 4, 4]), conv2d | try_conv2d(&f(&[2, 1, 3, 3]), Some(&f(&[3])), conv(1, 1))),
        misuse!(Shape, "input [1, 1, 4, 4] and weight [1, 1, 2] must both have 3 axes", f(&[1, 1, 4, 4]), conv1d | try_conv1d(&f(&[1, 1, 2]), None, conv(1, 1))),
        misuse!(Shape, "input [1, 3, 4, 4] has 3 channels, weight [2, 2, 3, 3] with 1 groups takes 2", f(&[1, 3, 4, 4]), conv_transpose2d | try_conv_transpose2d(&f(&[2, 2, 3, 3]), None, conv(1, 1))),
        misuse!(Argument, "output padding [1, 1] must be smaller than stride [1, 1] or dilation [1, 1]", f(&[1, 1, 4, 4]), conv_transpose2d | try_conv_transpose2d(&f(&[1, 1, 3, 3]), None, ConvOptions { output_padding: [1, 1], ..Default::default() })),
    ]);
}

fn with(dropout: f64) -> AttentionOptions<'static> {
    AttentionOptions { dropout, ..Default::default() }
}

#[test]
fn attention_names_all_three_operands() {
    check(&[
        misuse!(Shape, "q [3], k [3] and v [3] must have as many axes, at least 2", f(&[3]), scaled_dot_product_attention | try_scaled_dot_product_attention(&f(&[3]), &f(&[3]), with(0.0))),
        misuse!(Shape, "q [2, 3], k [4, 5] and v [4, 3] do not fit: (…, queries, width), (…, keys, width), (…, keys, value width) are needed", f(&[2, 3]), scaled_dot_product_attention | try_scaled_dot_product_attention(&f(&[4, 5]), &f(&[4, 3]), with(0.0))),
        misuse!(DType, "q, k and v are f32, f64 and f32: all must be the same float type", f(&[2, 3]), scaled_dot_product_attention | try_scaled_dot_product_attention(&of(&[2, 3], DType::F64), &f(&[2, 3]), with(0.0))),
        misuse!(Argument, "a dropout of 1 is not a probability below 1", f(&[2, 3]), scaled_dot_product_attention | try_scaled_dot_product_attention(&f(&[2, 3]), &f(&[2, 3]), with(1.0))),
    ]);
}

#[test]
fn indexing_names_index_and_tensor() {
    check(&[
        misuse!(DType, "the index is f32: it must be an integer type", f(&[3]), gather | try_gather(0, &f(&[2]))),
        misuse!(Shape, "the index has shape [2], the tensor [3, 2]: they need as many axes", f(&[3, 2]), gather | try_gather(0, &of(&[2], DType::I32))),
        misuse!(Shape, "index shape [2, 5] is larger than the tensor's [3, 2] on axis 1", f(&[3, 2]), gather | try_gather(0, &of(&[2, 5], DType::I32))),
        misuse!(DType, "cannot add f64 to f32: convert one with to_dtype", f(&[3]), scatter_add | try_scatter_add(0, &of(&[2], DType::I32), &of(&[2], DType::F64))),
        misuse!(Shape, "index shape [4] is larger than the values' [2] or the tensor's [3] on axis 0", f(&[3]), scatter_add | try_scatter_add(0, &of(&[4], DType::I32), &f(&[2]))),
        misuse!(Shape, "the index has shape [2, 1]: it must be a vector", f(&[3]), index_select | try_index_select(0, &of(&[2, 1], DType::I32))),
        misuse!(Shape, "the table has shape [3]: it must be a matrix", f(&[3]), embedding | try_embedding(&of(&[2], DType::I32))),
        misuse!(Shape, "axis 1 is out of range for shape [3]: it must lie in -1..=0", f(&[3]), argsort | try_argsort(1, false)),
        misuse!(Shape, "axis 1 is out of range for shape [3]: it must lie in -1..=0", f(&[3]), cumsum | try_cumsum(1)),
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
        misuse!(DType, "only floats can collect gradients, and this is i32", of(&[2], DType::I32), requires_grad | try_requires_grad(true)),
        misuse!(Argument, "this tensor is the result of an op; only tensors that were created, or made with variable() or requires_grad(), can be assigned to", f(&[2]).exp(), assign | try_assign(&f(&[2]))),
        misuse!(Shape, "cannot put f32 [3] on cpu into f32 [2] on cpu", f(&[2]), assign | try_assign(&f(&[3]))),
        misuse!(Shape, "cannot put f64 [2] on cpu into f32 [2] on cpu", f(&[2]), assign | try_assign(&of(&[2], DType::F64))),
        misuse!(Autograd, "the output does not depend on anything that requires a gradient", f(&[]), backward | try_backward()),
        misuse!(Autograd, "the output has shape [2]: without a gradient to start from it must be one number", f(&[2]).requires_grad(true).exp(), backward | try_backward()),
        misuse!(Autograd, "the graph was already used by a backward pass and let go: pass retain_graph to the first one to differentiate it twice", used(), backward | try_backward()),
    ]);
}

#[test]
fn operators_name_the_op_and_the_line_of_the_operator() {
    let text = panic_text(&|| drop(f(&[2]) + f(&[3])));
    let line = line!() - 1;
    assert!(text.starts_with("add: shapes [2] and [3] do not broadcast"), "{text}");
    assert!(text.contains(&format!("(at {}:{line}:", file!())), "{text}");
    let text = panic_text(&|| drop(&f(&[2]) / &f(&[3])));
    assert!(text.starts_with("div: ") && text.contains(&format!("(at {}:{}:", file!(), line!() - 1)), "{text}");
    let text = panic_text(&|| drop(-bools()));
    assert!(text.starts_with("neg: ") && text.contains(&format!("(at {}:{}:", file!(), line!() - 1)), "{text}");
}

#[test]
fn a_composed_op_names_itself_not_its_parts() {
    let error = f(&[2, 3]).try_embedding(&of(&[1], DType::Bool)).expect_err("not an integer");
    assert_eq!(error.op(), "embedding");
    let error = f(&[2]).try_layer_norm([3], None, None, 1e-5).expect_err("not the last extents");
    assert_eq!((error.op(), error.location().line()), ("layer_norm", line!() - 1));
    let error = Tensor::try_cat(&[f(&[2, 2]), f(&[2, 3])], 0).expect_err("they differ");
    assert_eq!((error.op(), error.location().line()), ("cat", line!() - 1));
}

#[test]
fn reading_names_the_shape_that_is_no_number() {
    let error = f(&[2]).try_item::<f32>().expect_err("two elements");
    let place = format!("{}:{}:", file!(), line!() - 1);
    let text = format!("item: only a tensor of one element is one number, and this has shape [2] (at {place}");
    assert!(error.to_string().starts_with(&text), "{error}");
    assert!(panic_text(&|| drop(f(&[0]).item::<f32>())).starts_with("item: only a tensor of one element"));
}

#[test]
fn an_error_in_one_call_does_not_name_the_next() {
    assert!(f(&[2]).try_add(f(&[3])).is_err());
    let error = f(&[2]).try_reshape([5]).expect_err("too few elements");
    assert_eq!(error.op(), "reshape");
    drop(panic_text(&|| drop(f(&[2]).matmul(&f(&[3])))));
    let error = f(&[2]).try_narrow(0, 1, 5).expect_err("too far");
    assert_eq!(error.op(), "narrow");
}

#[test]
fn the_error_is_an_error_of_the_standard_library_and_shows_its_message() {
    let error: Box<dyn std::error::Error> = Box::new(f(&[2]).try_narrow(0, 1, 5).expect_err("too far"));
    assert_eq!(format!("{error}"), format!("{error:?}"), "unwrap prints what a reader needs");
    assert!(error.to_string().starts_with("narrow: elements 1..6 of axis 0 are outside shape [2] (at "));
}
