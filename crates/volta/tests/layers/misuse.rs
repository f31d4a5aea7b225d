//! Misuse names the op, the shapes and the user's line; names are PyTorch's; summaries tell sizes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use volta::nn::summary;
use volta::*;
use volta_testing::test;

fn names(module: &dyn Module) -> Vec<String> {
    module.state_dict().names().map(String::from).collect()
}

#[test]
fn names_are_pytorchs() {
    let norm = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"];
    assert_eq!(names(&BatchNorm2d::new(3)), norm);
    assert_eq!(
        names(&MultiHeadAttention::new(8, 2)),
        ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    );
    let options = RecurrentOptions { layers: 2, bidirectional: true, ..Default::default() };
    let lstm = names(&LSTM::with_options(2, 3, options));
    let mut expected = Vec::new();
    for end in ["l0", "l0_reverse", "l1", "l1_reverse"] {
        expected.extend(["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map(|n| format!("{n}_{end}")));
    }
    assert_eq!(lstm, expected);
    assert_eq!(names(&GRUCell::new(2, 3, true)), ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]);
    let mut decoder = names(&TransformerDecoderLayer::new(8, 2));
    decoder.retain(|n| n.ends_with("weight"));
    let parts =
        ["self_attn.in_proj", "self_attn.out_proj.", "multihead_attn.in_proj", "multihead_attn.out_proj."];
    let mut expected: Vec<String> =
        parts.map(|p| if p.ends_with('.') { format!("{p}weight") } else { format!("{p}_weight") }).into();
    expected.extend(["linear1", "linear2", "norm1", "norm2", "norm3"].map(|n| format!("{n}.weight")));
    assert_eq!(decoder, expected);
}

#[test]
fn first_values_are_pytorchs() {
    manual_seed(1);
    let bound = |t: &Tensor| t.to_vec::<f32>().into_iter().fold(0f32, |m, x| m.max(x.abs()));
    let within = |t: &Tensor, limit: f64| {
        let found = f64::from(bound(t));
        assert!(found <= limit && found > 0.9 * limit, "{found} is not within {limit}");
    };
    within(&Conv2d::new(4, 32, 3, 1, 1, true).weight, 1.0 / 6.0);
    within(&ConvTranspose2d::new(4, 9, 2, 1, 0, true).weight, 1.0 / 6.0);
    let attention = MultiHeadAttention::new(16, 2);
    within(&attention.in_proj_weight, (6.0f64 / 64.0).sqrt());
    within(&attention.out_proj.weight, 0.25);
    assert_eq!(bound(attention.in_proj_bias.as_ref().unwrap()), 0.0);
    assert_eq!(bound(attention.out_proj.bias.as_ref().unwrap()), 0.0);
    within(&LSTM::new(8, 16).weights[0].weight_ih, 0.25);
    let rows = Embedding::new(100, 100).weight;
    assert!((rows.std(1).item::<f32>() - 1.0).abs() < 0.05);
}

#[test]
fn what_does_not_fit_is_refused_with_op_shapes_and_line() {
    let x = |shape: &[usize]| Tensor::zeros(shape);
    let cases: Vec<(Box<dyn Module>, Tensor, &str, &str)> = vec![
        (Box::new(Conv2d::new(3, 4, 3, 1, 1, true)), x(&[2, 4, 5, 5]), "conv2d", "[2, 4, 5, 5]"),
        (Box::new(Conv1d::new(3, 4, 3, 1, 0, true)), x(&[2, 3, 2]), "conv1d", "does not fit"),
        (
            Box::new(ConvTranspose2d::new(3, 4, 3, 1, 1, true)),
            x(&[2, 4, 5, 5]),
            "conv_transpose2d",
            "4 channels",
        ),
        (Box::new(MaxPool2d::new(3, 1, 0)), x(&[2, 2]), "max_pool2d", "[2, 2]"),
        (Box::new(BatchNorm2d::new(3)), x(&[2, 3, 4]), "BatchNorm2d", "(batch, 3, height, width)"),
        (Box::new(BatchNorm1d::new(3)), x(&[2, 4]), "BatchNorm1d", "[2, 4]"),
        (Box::new(LayerNorm::new(4)), x(&[2, 3]), "layer_norm", "[2, 3]"),
        (Box::new(GroupNorm::new(2, 4)), x(&[2, 6, 3]), "group_norm", "4 channels"),
        (Box::new(Embedding::new(3, 2)), x(&[2]), "embedding", "integer"),
        (Box::new(PixelShuffle::new(2)), x(&[3, 2, 2]), "pixel_shuffle", "[3, 2, 2]"),
        (Box::new(MultiHeadAttention::new(8, 2)), x(&[2, 3, 6]), "MultiHeadAttention", "[2, 3, 6]"),
        (Box::new(TransformerEncoderLayer::new(8, 2)), x(&[2, 3, 6]), "MultiHeadAttention", "[2, 3, 6]"),
        (Box::new(TransformerDecoderLayer::new(8, 2)), x(&[2, 3, 8]), "TransformerDecoderLayer", "memory"),
        (Box::new(LSTM::new(3, 4)), x(&[5, 2, 2]), "LSTM", "(length, batch, 3)"),
        (Box::new(GRUCell::new(3, 4, true)), x(&[5, 2]), "GRUCell", "(batch, 3)"),
        (Box::new(Dropout::new(1.5)), x(&[5]), "dropout", "1.5"),
    ];
    for (layer, x, op, part) in cases {
        let (line, error) = (line!(), layer.try_forward(&x).unwrap_err());
        assert_eq!(error.op(), op, "{error}");
        assert!(error.message().contains(part), "{error}");
        assert_eq!((error.location().file(), error.location().line()), (file!(), line), "{error}");
        let panic = catch_unwind(AssertUnwindSafe(|| layer.forward(&x))).expect_err("a panic");
        assert!(panic.downcast_ref::<String>().expect("a message").contains(part));
    }
}

#[test]
fn layers_that_cannot_be_are_refused_when_they_are_made() {
    let plain = MultiHeadOptions::default();
    let shared = MultiHeadOptions { kv_heads: Some(3), ..plain };
    let turned = MultiHeadOptions { rotary: Some(Rotary::new()), ..plain };
    let none = RecurrentOptions { layers: 0, ..Default::default() };
    let conv = Conv2d::new(4, 6, 3, 1, 1, true);
    let cases: Vec<(u32, Error, &str)> = vec![
        (line!(), MultiHeadAttention::try_with_options(10, 3, plain).err().unwrap(), "10"),
        (line!(), MultiHeadAttention::try_with_options(8, 4, shared).err().unwrap(), "3"),
        (line!(), MultiHeadAttention::try_with_options(6, 2, turned).err().unwrap(), "3"),
        (line!(), GroupNorm::try_new(3, 4).err().unwrap(), "3 groups"),
        (line!(), conv.try_with_groups(4).err().unwrap(), "4 groups"),
        (line!(), Embedding::new(3, 2).try_with_padding(3).err().unwrap(), "row 3"),
        (line!(), LSTM::try_with_options(3, 4, none).err().unwrap(), "0 layers"),
        (line!(), TransformerEncoderLayer::try_with_options(9, 2, Default::default()).err().unwrap(), "9"),
    ];
    for (line, error, part) in cases {
        assert!(error.message().contains(part), "{error}");
        assert_eq!((error.location().file(), error.location().line()), (file!(), line), "{error}");
    }
}

#[test]
fn states_and_masks_of_other_shapes_are_refused() {
    let (lstm, attention) = (LSTM::new(3, 4), MultiHeadAttention::new(8, 2));
    let (x, state) = (Tensor::zeros([5, 2, 3]), Tensor::zeros([1, 3, 4]));
    let error = lstm.try_run(&x, Some((&state, &state))).unwrap_err();
    assert!(error.message().contains("[1, 3, 4]") && error.message().contains("[1, 2, 4]"), "{error}");
    let x = Tensor::zeros([2, 5, 8]);
    let keys = Tensor::full([2, 4], true);
    assert!(attention.try_attend(&x, &x, &x, AttentionMask::default().with_keys(&keys)).is_err());
    let mask = Tensor::zeros([5, 4]);
    assert!(attention.try_attend(&x, &x, &x, AttentionMask::of(&mask)).is_err());
}

#[test]
fn losses_refuse_what_does_not_fit() {
    let (a, b, c) = (Tensor::zeros([3, 4]), Tensor::zeros([3, 5]), Tensor::zeros([3, 4]));
    let target = Tensor::from_slice(&[1i32, -1, 1], [3]);
    assert_eq!(try_cosine_embedding_loss(&a, &b, &target).unwrap_err().op(), "cosine_embedding_loss");
    assert!(try_cosine_embedding_loss(&a, &c, &target.reshape([3, 1])).is_err());
    assert_eq!(try_triplet_margin_loss(&a, &b, &c).unwrap_err().op(), "triplet_margin_loss");
    let error = try_linear_cross_entropy(&a, &b, &target).unwrap_err();
    assert!(error.op() == "linear_cross_entropy" && error.message().contains("[3, 5]"), "{error}");
    assert!(try_linear_cross_entropy(&a, &c, &target.narrow(0, 0, 2)).is_err());
}

#[test]
fn summaries_tell_what_layers_are() {
    let model = Sequential::new(vec![
        Box::new(Conv2d::new(3, 8, 3, 2, 1, false)),
        Box::new(BatchNorm2d::new(8)),
        Box::new(MaxPool2d::new(2, 2, 0)),
        Box::new(Flatten::new()),
        Box::new(Linear::new(32, 10, true)),
        Box::new(Dropout::new(0.5)),
    ]);
    let text = summary(&model, Some(&Tensor::zeros([2, 3, 8, 8]))).unwrap().to_string();
    for part in [
        "Conv2d(3 → 8, kernel 3×3, stride 2, padding 1, no bias)",
        "BatchNorm2d(8)",
        "MaxPool2d(kernel 2×2, stride 2×2)",
        "Flatten(axes 1 to -1)",
        "Dropout(p = 0.5)",
        "[2, 8, 4, 4]",
        "17 numbers in buffers",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn layers_are_made_where_they_are_wanted_and_are_shared_among_threads() {
    fn check(layer: impl Module + 'static) {
        let elsewhere = std::thread::spawn(move || layer.state_dict());
        let state = elsewhere.join().expect("no panic");
        assert!(!state.is_empty() && state.iter().all(|(_, t)| t.device() == Device::Cpu));
    }
    let cpu = Device::Cpu;
    check(Conv2d::new_on_device(3, 64, 3, 1, 1, true, cpu));
    check(Conv2d::new_on_device(4, 4, 3, 1, 1, true, cpu).with_groups(2));
    check(Conv1d::new_on_device(3, 4, 3, 1, 1, true, cpu));
    check(ConvTranspose2d::new_on_device(3, 4, 3, 1, 1, true, cpu));
    check(BatchNorm2d::new_on_device(3, cpu));
    check(LayerNorm::new_on_device(3, cpu));
    check(GroupNorm::new_on_device(1, 3, cpu));
    check(RMSNorm::new_on_device(3, cpu));
    check(Embedding::new_on_device(3, 4, cpu).with_padding(0));
    check(MultiHeadAttention::new_on_device(8, 2, cpu));
    check(TransformerEncoderLayer::new_on_device(8, 2, cpu));
    check(TransformerDecoderLayer::new_on_device(8, 2, cpu));
    check(LSTM::new_on_device(3, 4, cpu));
    check(GRU::new_on_device(3, 4, cpu));
    check(RNN::new_on_device(3, 4, cpu));
    check(LSTMCell::new_on_device(3, 4, true, cpu));
    assert_eq!(MultiHeadAttention::new_on_device(8, 2, cpu).cache(1, 4).keys.device(), cpu);
}
