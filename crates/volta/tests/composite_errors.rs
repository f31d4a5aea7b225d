//! What composed ops say when they are misused: the op that was called, the shapes, and the caller's line.

use volta::*;
use volta_testing::test;

/// Checks that an error belongs to `op`, was made in this file, and says all of `words`.
#[track_caller]
fn says<T>(result: Result<T>, op: &str, kind: ErrorKind, words: &[&str]) {
    let Err(error) = result else { panic!("{op} took what it must refuse") };
    let text = error.to_string();
    assert_eq!(error.op(), op, "{text}");
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.starts_with(&format!("{op}: ")), "{text}");
    assert!(text.contains("composite_errors.rs"), "{text}");
    for word in words {
        assert!(text.contains(word), "{text:?} does not say {word:?}");
    }
}

fn ones(shape: &[usize]) -> Tensor {
    Tensor::ones(shape)
}

#[test]
fn activations_refuse_integers_and_axes_that_are_not_there() {
    let x = Tensor::arange(0, 3);
    says(x.try_softmax(0), "softmax", ErrorKind::DType, &["i32", "[3]", "to_dtype"]);
    says(x.try_gelu(), "gelu", ErrorKind::DType, &["i32"]);
    says(ones(&[2, 3]).try_log_softmax(2), "log_softmax", ErrorKind::Shape, &["axis 2", "[2, 3]", "-2..=1"]);
    says(ones(&[2]).try_logsumexp([0, 0], false), "logsumexp", ErrorKind::Shape, &["twice"]);
    says(ones(&[2]).try_clamp(None, None), "clamp", ErrorKind::Argument, &["bounds"]);
    says(ones(&[2]).try_hardtanh(1.0, 0.0), "hardtanh", ErrorKind::Argument, &["1", "0"]);
    says(ones(&[2, 3]).try_prelu(&ones(&[2])), "prelu", ErrorKind::Shape, &["[2]", "[2, 3]", "3 channels"]);
}

#[test]
fn a_panicking_op_panics_with_the_same_words_at_the_caller() {
    let panic = std::panic::catch_unwind(|| Tensor::arange(0, 3).softmax(0)).expect_err("a panic");
    let text = panic.downcast_ref::<String>().expect("a message");
    assert!(text.starts_with("softmax: ") && text.contains("composite_errors.rs"), "{text}");
}

#[test]
fn statistics_refuse_integers_and_strange_orders() {
    let x = Tensor::arange(0, 3);
    says(x.try_mean(), "mean", ErrorKind::DType, &["i32", "to_dtype"]);
    says(x.gt(1).try_mean_dim(0, false), "mean_dim", ErrorKind::DType, &["bool"]);
    says(x.try_var(1), "var", ErrorKind::DType, &["i32"]);
    says(x.try_norm(2.0), "norm", ErrorKind::DType, &["i32"]);
    says(ones(&[2]).try_norm(f64::NAN), "norm", ErrorKind::Argument, &["NaN"]);
    says(ones(&[0, 2]).try_norm_dim(f64::INFINITY, 0, false), "norm_dim", ErrorKind::Shape, &["[0, 2]"]);
    says(ones(&[2]).try_allclose(&ones(&[2]), -1.0, 0.0), "allclose", ErrorKind::Argument, &["-1"]);
}

#[test]
fn normalizations_name_the_parameter_that_does_not_fit() {
    let x = ones(&[2, 3, 4]);
    says(x.try_layer_norm(3, None, None, 1e-5), "layer_norm", ErrorKind::Shape, &["[2, 3, 4]", "[3]"]);
    let bad = ones(&[3]);
    says(
        x.try_layer_norm(4, Some(&bad), None, 1e-5),
        "layer_norm",
        ErrorKind::Shape,
        &["weight", "[3]", "[4]"],
    );
    says(x.try_layer_norm(4, None, Some(&bad), 1e-5), "layer_norm", ErrorKind::Shape, &["bias", "[3]"]);
    let double = ones(&[4]).to_dtype(DType::F64);
    says(x.try_rms_norm(4, Some(&double), 1e-5), "rms_norm", ErrorKind::DType, &["f64", "f32"]);
    says(x.try_group_norm(2, None, None, 1e-5), "group_norm", ErrorKind::Shape, &["3 channels", "2 groups"]);
    says(
        ones(&[1, 3]).try_batch_norm_train(None, None, 1e-5),
        "batch_norm_train",
        ErrorKind::Shape,
        &["[1, 3]", "more than one"],
    );
    says(
        x.try_batch_norm_eval(&bad, &ones(&[2]), None, None, 1e-5),
        "batch_norm_eval",
        ErrorKind::Shape,
        &["variance", "[2]", "[3]"],
    );
    says(
        x.try_cosine_similarity(&ones(&[5]), 0, 1e-8),
        "cosine_similarity",
        ErrorKind::Shape,
        &["[2, 3, 4]", "[5]"],
    );
}

#[test]
fn pooling_names_the_kernel_that_does_not_fit() {
    let (x, plain) = (ones(&[1, 1, 4, 4]), PoolOptions::default());
    says(x.try_max_pool2d([5, 2], plain), "max_pool2d", ErrorKind::Shape, &["[5, 2]", "[1, 1, 4, 4]"]);
    says(x.try_max_pool2d([0, 2], plain), "max_pool2d", ErrorKind::Argument, &["[0, 2]"]);
    says(ones(&[4, 4]).try_max_pool2d([2, 2], plain), "max_pool2d", ErrorKind::Shape, &["[4, 4]", "batch"]);
    let padded = PoolOptions { padding: [2, 0], ..plain };
    says(x.try_avg_pool2d([2, 2], padded), "avg_pool2d", ErrorKind::Argument, &["[2, 0]", "half", "[2, 2]"]);
    let apart = PoolOptions { dilation: [2, 2], ..plain };
    says(x.try_avg_pool2d([2, 2], apart), "avg_pool2d", ErrorKind::Argument, &["dilation", "[2, 2]"]);
    says(ones(&[4]).try_max_pool1d(2, plain), "max_pool1d", ErrorKind::Shape, &["[4]", "length"]);
    says(
        ones(&[1, 1, 0, 2]).try_adaptive_avg_pool2d([1, 1]),
        "adaptive_avg_pool2d",
        ErrorKind::Shape,
        &["[1, 1, 0, 2]"],
    );
}

#[test]
fn resizing_refuses_what_is_no_image_and_sizes_of_zero() {
    let nearest = Interpolation::Nearest;
    says(
        ones(&[2, 2]).try_interpolate([2, 2], nearest),
        "interpolate",
        ErrorKind::Shape,
        &["[2, 2]", "height"],
    );
    says(
        ones(&[1, 1, 2, 2]).try_interpolate([0, 2], nearest),
        "interpolate",
        ErrorKind::Shape,
        &["[1, 1, 2, 2]", "[0, 2]"],
    );
    says(
        ones(&[1, 1, 2, 2]).try_interpolate_scale([0.0, 1.0], nearest),
        "interpolate_scale",
        ErrorKind::Argument,
        &["positive"],
    );
    says(ones(&[3, 2, 2]).try_pixel_shuffle(2), "pixel_shuffle", ErrorKind::Shape, &["[3, 2, 2]", "2"]);
    says(ones(&[3, 3, 2]).try_pixel_unshuffle(2), "pixel_unshuffle", ErrorKind::Shape, &["[3, 3, 2]"]);
}

#[test]
fn joining_and_cutting_name_the_shapes() {
    let (a, b) = (ones(&[2, 3]), ones(&[2, 4]));
    says(Tensor::try_cat(&[&a, &b], 0), "cat", ErrorKind::Shape, &["[2, 3]", "[2, 4]", "axis 0"]);
    says(Tensor::try_cat(&[&a, &ones(&[2])], 0), "cat", ErrorKind::Shape, &["[2, 3]", "[2]"]);
    says(Tensor::try_cat(&[&a], 2), "cat", ErrorKind::Shape, &["axis 2"]);
    says(Tensor::try_cat(&[Tensor::scalar(1.0)], 0), "cat", ErrorKind::Shape, &["stack"]);
    says(Tensor::try_cat(&[] as &[Tensor], 0), "cat", ErrorKind::Argument, &["no tensor"]);
    says(Tensor::try_stack(&[&a, &b], 0), "stack", ErrorKind::Shape, &["[2, 3]", "[2, 4]"]);
    says(a.try_split(0, 1), "split", ErrorKind::Argument, &["[2, 3]"]);
    says(a.try_split_sizes(&[1, 1], 1), "split_sizes", ErrorKind::Shape, &["[1, 1]", "[2, 3]", "3"]);
    says(a.try_chunk(0, 0), "chunk", ErrorKind::Argument, &["0 parts"]);
    says(Tensor::scalar(1.0).try_unbind(0), "unbind", ErrorKind::Shape, &["without axes"]);
    says(a.try_repeat([2]), "repeat", ErrorKind::Shape, &["[2]", "[2, 3]"]);
    says(a.try_roll([1, 2], 0), "roll", ErrorKind::Argument, &["2 shifts", "1 axes"]);
}

#[test]
fn order_and_masks_refuse_what_is_out_of_range() {
    let x = ones(&[2, 3]);
    says(x.try_topk(4, 1, true), "topk", ErrorKind::Shape, &["[2, 3]", "4"]);
    says(x.try_sort(2, false), "sort", ErrorKind::Shape, &["axis 2", "[2, 3]"]);
    says(ones(&[0]).try_max_with_index(0, false), "max_with_index", ErrorKind::Shape, &["[0]"]);
    says(ones(&[0]).try_median(), "median", ErrorKind::Shape, &["[0]"]);
    says(ones(&[3]).try_tril(0), "tril", ErrorKind::Shape, &["[3]"]);
    says(x.try_masked_fill(&x, 0.0), "masked_fill", ErrorKind::DType, &["f32", "bool"]);
    says(x.try_one_hot(3), "one_hot", ErrorKind::DType, &["f32", "integer"]);
    says(Tensor::scalar(1.0).try_diff(1, 0), "diff", ErrorKind::Shape, &["without axes"]);
}

#[test]
fn einsum_explains_the_equation() {
    let (a, b) = (ones(&[2, 3]), ones(&[4, 5]));
    let einsum = |equation: &str| Tensor::try_einsum(equation, &[&a, &b]);
    says(einsum("ij,jk->ik"), "einsum", ErrorKind::Shape, &["axis 'j'", "3 and 4", "[2, 3]", "[4, 5]"]);
    says(einsum("ij->ij"), "einsum", ErrorKind::Argument, &["1 operands", "2 are given"]);
    says(einsum("ijk,kl->"), "einsum", ErrorKind::Shape, &["3 axes", "[2, 3]"]);
    says(einsum("i1,kl->"), "einsum", ErrorKind::Argument, &["'1'"]);
    says(einsum("ij,kl->im"), "einsum", ErrorKind::Argument, &["axis 'm'"]);
    says(einsum("ij,kl->ii"), "einsum", ErrorKind::Argument, &["twice"]);
    says(Tensor::try_einsum("ii", &[&a]), "einsum", ErrorKind::Shape, &["[2, 3]", "2 and 3"]);
    let whole = Tensor::arange(0, 3);
    says(Tensor::try_einsum("i,i", &[&whole, &ones(&[3])]), "einsum", ErrorKind::DType, &["i32", "f32"]);
}

#[test]
fn losses_name_both_shapes_or_types() {
    let (x, t) = (ones(&[2, 3]), ones(&[4, 3]));
    says(try_mse_loss(&x, &t), "mse_loss", ErrorKind::Shape, &["[2, 3]", "[4, 3]"]);
    says(try_l1_loss(&Tensor::arange(0, 2), &Tensor::arange(0, 2)), "l1_loss", ErrorKind::DType, &["i32"]);
    says(try_huber_loss(&x, &x, 0.0), "huber_loss", ErrorKind::Argument, &["delta is 0"]);
    says(try_smooth_l1_loss(&x, &x, -1.0), "smooth_l1_loss", ErrorKind::Argument, &["beta is -1"]);
    says(try_bce_loss(&x, &ones(&[3])), "bce_loss", ErrorKind::Shape, &["[2, 3]", "[3]"]);
    says(try_bce_with_logits(&x, &ones(&[3])), "bce_with_logits", ErrorKind::Shape, &["[2, 3]", "[3]"]);
    says(try_kl_div(&x, &t), "kl_div", ErrorKind::Shape, &["[2, 3]", "[4, 3]"]);
}

#[test]
fn cross_entropy_says_which_target_it_needs() {
    let x = ones(&[2, 3]);
    let index = |shape: &[usize]| Tensor::zeros(shape).to_dtype(DType::I64);
    says(try_cross_entropy(&x, &index(&[3])), "cross_entropy", ErrorKind::Shape, &["[3]", "[2, 3]", "[2]"]);
    says(try_cross_entropy(&x, &ones(&[2])), "cross_entropy", ErrorKind::Shape, &["[2]", "probabilities"]);
    says(try_cross_entropy(&x, &index(&[2]).gt(0)), "cross_entropy", ErrorKind::DType, &["bool"]);
    says(try_nll_loss(&x, &ones(&[2])), "nll_loss", ErrorKind::DType, &["f32", "class indices"]);
    let smooth = CrossEntropyOptions { label_smoothing: 1.5, ..Default::default() };
    says(
        try_cross_entropy_with(&x, &index(&[2]), smooth),
        "cross_entropy_with",
        ErrorKind::Argument,
        &["1.5"],
    );
    let weight = ones(&[2]);
    let weighted = CrossEntropyOptions { weight: Some(&weight), ..Default::default() };
    says(
        try_cross_entropy_with(&x, &index(&[2]), weighted),
        "cross_entropy_with",
        ErrorKind::Shape,
        &["weight", "[2]", "3 classes"],
    );
}

#[test]
fn dropout_takes_probabilities_of_floats() {
    says(ones(&[2]).try_dropout(1.5, true), "dropout", ErrorKind::Argument, &["1.5"]);
    says(ones(&[2]).try_dropout(f64::NAN, true), "dropout", ErrorKind::Argument, &["NaN"]);
    says(Tensor::arange(0, 2).try_dropout(0.5, true), "dropout", ErrorKind::DType, &["i32"]);
    says(ones(&[2]).try_dropout2d(0.5, true), "dropout2d", ErrorKind::Shape, &["[2]", "channels"]);
}

volta_testing::main!();
