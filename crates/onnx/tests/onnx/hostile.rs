//! Files that are damaged or made to harm: errors, and no memory beyond the file's.

use super::{cases_of, fixture};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use volta_onnx::{Onnx, OnnxSummary, read_tensor};
use volta_testing::test;

/// Numbers that are none of chance.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % most.max(1)
    }
}

fn mutated(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        match numbers.below(5) {
            0 => bytes[at] = numbers.below(256) as u8,
            1 => bytes[at] ^= 1 << numbers.below(8),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let part = bytes[at..(at + numbers.below(40)).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            _ => {
                let extreme = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
                let end = (at + 1 + numbers.below(9)).min(bytes.len());
                bytes[at..end].copy_from_slice(&extreme[..end - at]);
            }
        }
    }
    bytes
}

#[test]
fn damaged_files_are_errors() {
    let mut numbers = Numbers(7);
    let whole = std::fs::read(fixture("images.onnx")).unwrap();
    let cases = cases_of("nodes.bin");
    let models: Vec<&[u8]> =
        [&whole[..]].into_iter().chain(cases.values().map(|case| &case.model[..])).collect();
    let mut refused = 0;
    for k in 0..3000 {
        let bytes = mutated(models[k % models.len()], &mut numbers);
        let seen = catch_unwind(|| {
            (Onnx::from_bytes(bytes.clone()).is_err(), OnnxSummary::from_bytes(bytes.clone()).is_err())
        });
        refused += usize::from(seen.unwrap_or_else(|_| panic!("a panic at file {k}")).0);
        let _ = catch_unwind(|| read_tensor(bytes.clone()).is_err())
            .unwrap_or_else(|_| panic!("a panic at tensor {k}"));
    }
    assert!(refused > 1000, "{refused}");
}

#[test(needs(f64))]
fn damaged_graphs_are_errors_when_they_run() {
    let mut numbers = Numbers(3);
    let mut panics = BTreeSet::new();
    let mut ran = 0;
    for (name, case) in cases_of("nodes.bin") {
        // Another number of steps may be any.
        if name.contains("loop") {
            continue;
        }
        let inputs = case.inputs();
        for _ in 0..40 {
            let Ok(model) = Onnx::from_bytes(mutated(&case.model, &mut numbers)) else { continue };
            let count = model.inputs().len();
            let given: Vec<_> = inputs.iter().cycle().take(count).cloned().collect();
            ran += usize::from(given.len() == count);
            if catch_unwind(AssertUnwindSafe(|| drop(model.try_run(&given)))).is_err() {
                panics.insert(name.clone());
            }
        }
    }
    assert!(panics.is_empty(), "{panics:#?}");
    assert!(ran > 400, "{ran}");
}

/// A message of one field with bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 128);
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

fn tensor(dims: &[&[u8]], data_type: u8, raw: &[u8]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|dim| [&[0x08][..], dim].concat()).collect();
    [&dims[..], &[0x10, data_type], &field(9, raw)].concat()
}

#[test]
fn tensors_that_cannot_be_are_errors() {
    let huge: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let negative: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let table: [(&str, Vec<u8>); 7] = [
        ("an extent of 2^63 - 1", tensor(&[huge], 1, &[0; 8])),
        ("two of them", tensor(&[huge, huge], 1, &[0; 8])),
        (
            "a product that wraps",
            tensor(&[&[0x80, 0x80, 0x80, 0x80, 0x10], &[0x80, 0x80, 0x80, 0x80, 0x10]], 1, &[]),
        ),
        ("a negative extent", tensor(&[negative], 1, &[0; 8])),
        ("fewer bytes than elements", tensor(&[&[4]], 1, &[0; 8])),
        ("a type that is none", tensor(&[&[2]], 99, &[0; 8])),
        ("more axes than there are", tensor(&[&[1u8][..]; 30], 1, &[0; 4])),
    ];
    for (what, bytes) in table {
        assert!(read_tensor(bytes).is_err(), "{what}");
    }
    assert_eq!(read_tensor(tensor(&[&[2]], 1, &[0; 8])).unwrap().0.to_vec::<f32>(), [0.0, 0.0]);
}

#[test]
fn unknown_operators_are_one_error_with_all_their_names() {
    let node =
        |op: &str, domain: &str| field(1, &[field(4, op.as_bytes()), field(7, domain.as_bytes())].concat());
    let graph =
        [node("Relu", ""), node("Nothing", ""), node("Gelu", "com.microsoft"), node("Nothing", "")].concat();
    let model = [field(7, &graph), field(8, &[0x10, 17])].concat();
    let error = Onnx::from_bytes(model).err().unwrap();
    assert!(error.message().contains("these operators: Nothing, com.microsoft.Gelu"), "{error}");
}

#[test]
fn attributes_that_nobody_would_look_at_are_one_error() {
    // An integer of kind 2.
    let attribute =
        |name: &str, x: u8| field(5, &[field(1, name.as_bytes()), vec![0x18, x, 0xA0, 1, 2]].concat());
    let load = |op: &str, attributes: &[Vec<u8>]| {
        let node = [field(1, b"x"), field(2, b"y"), field(4, op.as_bytes()), attributes.concat()].concat();
        let graph = [field(1, &node), field(12, &field(1, b"y"))].concat();
        Onnx::from_bytes([field(7, &graph), field(8, &[0x10, 17])].concat()).map(drop)
    };
    load("Softmax", &[attribute("axis", 1)]).unwrap();
    load("BatchNormalization", &[attribute("spatial", 1)]).unwrap();
    let named = |op: &str, attributes: &[Vec<u8>]| load(op, attributes).unwrap_err().message().to_string();
    let both = named("Softmax", &[attribute("axis", 1), attribute("temperature", 2), attribute("alpha", 1)]);
    assert!(both.ends_with("Softmax.alpha, Softmax.temperature"), "{both}");
    // Where versions before 7 begin to broadcast, and statistics of every element.
    assert!(named("Add", &[attribute("broadcast", 1), attribute("axis", 1)]).ends_with("Add.axis"));
    assert!(named("BatchNormalization", &[attribute("spatial", 0)]).ends_with("BatchNormalization.spatial"));
}

#[test]
fn graphs_that_are_nested_too_deep_are_errors() {
    // Each is the attribute of a node of the one around it; lengths grow to two bytes, and three.
    let wrap = |number: u8, bytes: Vec<u8>| {
        let mut length = Vec::new();
        let mut rest = bytes.len();
        while rest >= 128 {
            length.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        length.push(rest as u8);
        [vec![number << 3 | 2], length, bytes].concat()
    };
    let mut graph = Vec::new();
    for _ in 0..200 {
        graph = wrap(1, wrap(5, wrap(6, graph)));
    }
    let error = Onnx::from_bytes(wrap(7, graph)).err().unwrap();
    assert!(error.message().contains("deep"), "{error}");
}
