//! Files that PyTorch itself saved: all types, views, whole checkpoints, other protocols.

use crate::archive::{Archive, Pickle};
use crate::scratch::stored;
use volta::{DType, Device, Linear, Module, Sequential, Weights, default_device};
use volta_testing::test;

fn open(name: &str) -> Weights {
    Weights::open(stored(name)).unwrap()
}

fn numbers(weights: &Weights, name: &str) -> Vec<f32> {
    weights.tensor(name, Device::Cpu).unwrap().to_vec()
}

#[test]
fn every_type_is_read() {
    let weights = open("torch_types.pt");
    let types = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"];
    assert_eq!(weights.names().collect::<Vec<_>>(), types);
    for (name, dtype) in types.iter().zip(DType::ALL) {
        let expected: Vec<f32> = (0..12)
            .map(|k| match dtype {
                DType::Bool => ((k + 1) % 2) as f32,
                DType::U8 => k as f32,
                _ => (k % 5) as f32 - 1.0,
            })
            .collect();
        let t = weights.tensor(name, Device::Cpu).unwrap();
        assert_eq!((t.dtype(), &t.shape()[..]), (dtype, &[3, 4][..]));
        assert_eq!(t.to_vec::<f32>(), expected, "{name}");
    }
}

#[test]
fn a_type_without_a_storage_class_is_read() {
    let large = [7u32, 1 << 31, u32::MAX, 0, 4_000_000_000, 1];
    let elements: Vec<u8> = large.iter().flat_map(|x| x.to_le_bytes()).collect();
    let pickle = Pickle::holding(|p| p.typed_tensor("uint32", 24, &[2, 3], &[1, 2]));
    let weights = Weights::from_bytes(Archive::new(pickle, &[&elements]).bytes()).unwrap();
    assert_eq!(weights.entry("w").unwrap().dtype(), Some(DType::U32));
    let transposed: Vec<u32> = [0, 2, 4, 1, 3, 5].map(|k| large[k]).to_vec();
    assert_eq!(weights.tensor("w", default_device()).unwrap().to_vec::<u32>(), transposed);
}

#[test]
fn views_are_what_they_show() {
    let weights = open("torch_views.pt");
    let shown = |name: &str, shape: &[usize], expected: &[f32]| {
        let t = weights.tensor(name, default_device()).unwrap();
        assert_eq!(&t.shape()[..], shape, "{name}");
        assert_eq!(t.to_vec::<f32>(), expected, "{name}");
    };
    shown("transposed", &[4, 3], &[0., 4., 8., 1., 5., 9., 2., 6., 10., 3., 7., 11.]);
    shown("slice", &[2, 2], &[5., 6., 9., 10.]);
    shown("step", &[3, 2], &[0., 2., 4., 6., 8., 10.]);
    shown("row", &[4], &[4., 5., 6., 7.]);
    shown("expanded", &[3, 5], &[0., 0., 0., 0., 0., 4., 4., 4., 4., 4., 8., 8., 8., 8., 8.]);
    shown("scalar", &[], &[2.5]);
    shown("empty", &[0, 3], &[]);
    shown("parameter", &[3, 4], &(0..12).map(|k| 2.0 * k as f32).collect::<Vec<_>>());
    shown("channels_last", &[1, 2, 3, 4], &(0..24).map(|k| k as f32).collect::<Vec<_>>());
}

#[test]
fn nested_dictionaries_have_names_with_dots_and_can_be_entered() {
    let weights = open("torch_checkpoint.pt");
    for (name, value) in
        [("epoch", "3"), ("loss", "0.25"), ("name", "net"), ("optimizer.param_groups.0.lr", "0.125")]
    {
        assert_eq!(weights.metadata().get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(numbers(&weights, "optimizer.state.0.step"), [1.0]);
    assert_eq!(weights.entry("optimizer.state.1.exp_avg").unwrap().shape(), [4]);
    assert_eq!(weights.entry("model.1.num_batches_tracked").unwrap().dtype(), Some(DType::I64));
    let model = weights.under("model").unwrap();
    assert_eq!(model.names().next(), Some("0.weight"));
    let net = Sequential::new(vec![]).with(Linear::new(3, 4, true));
    let report = model.load_into(&net, false).unwrap();
    assert!(report.missing.is_empty() && report.unexpected.contains(&"1.running_mean".to_string()));
    assert_eq!(net.parameters()[0].to_vec::<f32>(), (0..12).map(|k| k as f32).collect::<Vec<_>>());
    assert_eq!(net.parameters()[1].to_vec::<f32>(), [10.0, 11.0, 12.0, 13.0]);
    let error = weights.under("state_dict").unwrap_err();
    assert!(error.message().contains("state_dict"), "{error}");
}

#[test]
fn later_protocols_of_pickle_are_read() {
    let weights = open("torch_protocol4.pt");
    assert_eq!(numbers(&weights, "0.bias"), [10.0, 11.0, 12.0, 13.0]);
}

#[test]
fn types_that_volta_does_not_have_matter_only_to_who_asks_for_them() {
    let weights = open("torch_odd.pt");
    assert_eq!(numbers(&weights, "kept").len(), 12);
    for (name, dtype) in [("int8", "I8"), ("uint16", "U16"), ("fp8", "F8_E4M3")] {
        let error = weights.tensor(name, Device::Cpu).unwrap_err();
        assert!(error.message().contains(name) && error.message().contains(dtype), "{error}");
    }
}

#[test]
fn archives_with_64_bit_sizes_and_comments_are_read() {
    let elements: Vec<u8> = [1.5f32, 2.5].iter().flat_map(|x| x.to_le_bytes()).collect();
    let pickle = Pickle::holding(|p| p.tensor("FloatStorage", 0, &[2], &[1]));
    let plain = Archive::new(pickle, &[&elements]);
    for (wide, comment) in [(false, ""), (true, ""), (false, "a comment"), (true, "another")] {
        let archive = Archive { wide, comment: comment.into(), ..plain.clone() };
        let weights =
            Weights::from_bytes(archive.bytes()).unwrap_or_else(|e| panic!("{wide} {comment}: {e}"));
        assert_eq!(numbers(&weights, "w"), [1.5, 2.5]);
    }
}
