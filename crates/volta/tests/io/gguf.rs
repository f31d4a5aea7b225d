//! GGUF files: what Python's own library wrote is read here to the bit, and it reads what is written here.

use crate::scratch::{Scratch, stored};
use std::process::Command;
use volta::io::{Gguf, GgufTokenKind, GgufType, GgufValue, GgufWriter, gguf_byte};
use volta::{DType, Device, ErrorKind, Tensor, Weights, with_device};
use volta_testing::test;

fn python() -> Gguf {
    Gguf::open(stored("python.gguf")).unwrap()
}

fn numbers(file: &Gguf, name: &str) -> Vec<f32> {
    file.tensor(name, Device::Cpu).unwrap().to_vec::<f32>()
}

/// Blocks whose numbers the file has beside them.
const BLOCKS: [GgufType; 10] = [
    GgufType::Q4_0,
    GgufType::Q4_1,
    GgufType::Q5_0,
    GgufType::Q5_1,
    GgufType::Q8_0,
    GgufType::Q2_K,
    GgufType::Q3_K,
    GgufType::Q4_K,
    GgufType::Q5_K,
    GgufType::Q6_K,
];

#[test]
fn every_type_of_metadata_is_read() {
    let file = python();
    assert_eq!(file.version(), 3);
    assert_eq!(file.require::<&str>("general.name").unwrap(), "made by Python, ünïcödé");
    let whole = [
        ("of.u8", 200),
        ("of.i8", -100),
        ("of.u16", 60_000),
        ("of.i16", -30_000),
        ("of.u32", 4_000_000_000),
        ("of.i32", -2_000_000_000),
        ("of.i64", -(1 << 62)),
        ("llama.block_count", 2),
    ];
    for (key, value) in whole {
        assert_eq!(file.require::<i64>(key).unwrap(), value, "{key}");
    }
    assert_eq!(file.require::<u64>("of.u64").unwrap(), 1 << 63);
    assert_eq!(file.require::<f32>("of.f32").unwrap(), 0.5);
    assert_eq!(file.require::<f64>("of.f64").unwrap(), 0.1);
    assert!(file.require::<bool>("of.bool").unwrap());
    assert_eq!(file.require::<Vec<i32>>("of.list").unwrap(), [1, -2, 3]);
    assert_eq!(file.require::<&[f32]>("of.floats").unwrap(), [0.5, -1.5]);
    assert_eq!(file.get::<usize>("of.nothing").unwrap(), None);
}

#[test]
fn a_value_of_another_type_is_an_error_that_names_its_key() {
    let file = python();
    let table: [(&str, Result<(), volta::Error>, &str); 8] = [
        ("general.name", file.require::<usize>("general.name").map(drop), "a whole number"),
        ("of.i8", file.require::<usize>("of.i8").map(drop), "-100"),
        ("of.u64", file.require::<i64>("of.u64").map(drop), "9223372036854775808"),
        ("of.f32", file.require::<u32>("of.f32").map(drop), "f32"),
        ("of.u8", file.require::<f32>("of.u8").map(drop), "a floating-point number"),
        ("of.list", file.require::<&[String]>("of.list").map(drop), "a list of texts"),
        ("of.list", file.require::<Vec<u32>>("of.list").map(drop), "a list of i32"),
        ("of.nothing", file.require::<u32>("of.nothing").map(drop), "has no"),
    ];
    for (key, result, part) in table {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.message().contains(key) && error.message().contains(part), "{error} lacks {part:?}");
    }
}

#[test]
fn blocks_become_the_numbers_that_python_makes_of_them() {
    let file = python();
    for kind in BLOCKS {
        let t = file.find(kind.name()).unwrap();
        assert_eq!((t.kind(), kind.dtype()), (kind, Some(DType::F32)));
        let (ours, theirs) = (numbers(&file, kind.name()), numbers(&file, &format!("{}.f32", kind.name())));
        assert_eq!(ours.len(), theirs.len());
        // A sum of two products may be rounded once or twice.
        let off = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let largest = theirs.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        assert!(off <= largest * 1e-6 && largest > 0.0, "{}: {off} of {largest}", kind.name());
    }
}

#[test]
fn plain_numbers_keep_their_types_and_shapes() {
    let file = python();
    let t = file.tensor("three_axes", Device::Cpu).unwrap();
    assert_eq!(t.shape()[..], [2, 3, 4]);
    assert_eq!(t.to_vec::<f32>(), (0..24).map(|k| k as f32).collect::<Vec<_>>());
    let t = file.tensor("int32", Device::Cpu).unwrap();
    assert_eq!((t.dtype(), t.to_vec::<i32>()), (DType::I32, vec![-3, -2, -1, 0, 1, 2]));
    for (name, dtype, off) in [("F16", DType::F16, 1e-3), ("BF16", DType::BF16, 4e-3)] {
        let t = file.tensor(name, Device::Cpu).unwrap();
        assert_eq!(t.dtype(), dtype);
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= off * b.abs() + 1e-7;
        assert!(t.to_dtype(DType::F32).to_vec::<f32>().iter().zip(&numbers(&file, "values")).all(close));
    }
    let error = file.tensor("int8", Device::Cpu).unwrap_err();
    assert!(error.message().contains("I8"), "{error}");
}

#[test]
fn other_readers_of_weights_take_them_too() {
    let weights = Weights::open(stored("python.gguf")).unwrap();
    assert_eq!(weights.metadata()["general.architecture"], "llama");
    assert_eq!(weights.metadata()["of.list"], "[1, -2, 3]");
    let entry = weights.entry("Q4_K").unwrap();
    assert_eq!((entry.dtype_name(), entry.dtype(), entry.shape()), ("Q4_K", Some(DType::F32), &[2, 512][..]));
    assert_eq!(entry.bytes(), 4 * 144);
    let turned = weights.renamed(&volta::NameMap::new().rename_transposed("Q8_0", "w"));
    let turned = turned.unwrap().tensor("w", Device::Cpu).unwrap();
    let straight = weights.tensor("Q8_0", Device::Cpu).unwrap();
    assert_eq!(turned.to_vec::<f32>(), straight.transpose(0, 1).to_vec::<f32>());
    let printed = volta::inspect(stored("python.gguf")).unwrap();
    for line in
        ["GGUF version 3", "of.u8 = 200", "tokenizer.ggml.tokens = [\"<|endoftext|>\", \"a\", ", "Q6_K"]
    {
        assert!(printed.contains(line), "{printed}");
    }
}

#[test]
fn a_vocabulary_is_read_and_compared() {
    let file = python();
    let v = file.vocabulary().unwrap();
    assert_eq!((v.model, v.pre), ("gpt2", Some("smollm")));
    assert_eq!(v.tokens, ["<|endoftext|>", "a", "b", "ab", "Ġü"]);
    assert_eq!((v.kinds[0], v.kinds[4]), (GgufTokenKind::Control, GgufTokenKind::Normal));
    assert_eq!((v.merges, v.bos, v.eos, v.padding), (&["a b".to_string()][..], Some(0), Some(0), None));
    assert_eq!((v.add_bos, v.add_eos), (Some(false), None));
    assert_eq!(v.chat_template, Some("{{ messages[0]['content'] }}"));
    assert!(v.scores.is_none());
    for (token, byte) in [
        ("<0x00>", Some(0)),
        ("<0xfF>", Some(255)),
        ("<0x-1>", None),
        ("<0x+1>", None),
        ("<0x1>", None),
        ("<0x100>", None),
        ("<0xGG>", None),
        ("<0xé>", None),
        ("0x00", None),
        ("", None),
    ] {
        assert_eq!(gguf_byte(token), byte, "{token}");
    }
}

#[test]
fn blocks_are_written_as_python_writes_them() {
    let file = python();
    let values = file.tensor("values", Device::Cpu).unwrap();
    let mut writer = GgufWriter::new();
    for kind in [GgufType::Q4_0, GgufType::Q4_1, GgufType::Q8_0, GgufType::F16, GgufType::BF16] {
        writer.tensor(kind.name(), &values, kind).unwrap();
    }
    let ours = Gguf::from_bytes(writer.to_bytes().unwrap()).unwrap();
    for t in ours.tensors() {
        assert_eq!(ours.blocks(t.name()).unwrap(), file.blocks(t.name()).unwrap(), "{}", t.name());
    }
}

#[test]
fn what_is_written_comes_back() {
    let theirs = python();
    let mut writer = GgufWriter::new();
    writer.set_all(theirs.metadata());
    writer.set("general.alignment", 64u32);
    writer.set("of.texts", vec!["a".to_string(), String::new(), "ü".to_string()]);
    writer.set("of.nothing", Vec::<u32>::new());
    writer.set("of.truths", vec![true, false]);
    for t in theirs.tensors() {
        writer.copy(&theirs, t.name(), format!("again.{}", t.name())).unwrap();
    }
    let half = with_device(Device::Cpu, || Tensor::arange(0, 64).to_dtype(DType::F16).reshape([2, 32]));
    writer.tensor("half", &half, GgufType::Q8_0).unwrap();
    writer.tensor("as.f32", &half, GgufType::F32).unwrap();
    let scratch = Scratch::new("gguf");
    let path = scratch.file("again.gguf");
    writer.write(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), writer.to_bytes().unwrap());
    let ours = Gguf::open(&path).unwrap();
    for (key, value) in theirs.metadata().iter() {
        assert_eq!(ours.metadata().value(key), Some(value), "{key}");
    }
    assert_eq!(ours.require::<&[String]>("of.texts").unwrap(), ["a", "", "ü"]);
    assert_eq!(ours.metadata().value("of.nothing"), Some(&GgufValue::from(Vec::<u32>::new())));
    assert_eq!(ours.require::<&[bool]>("of.truths").unwrap(), [true, false]);
    for t in theirs.tensors() {
        let again = format!("again.{}", t.name());
        assert_eq!(ours.find(&again).unwrap().shape(), t.shape());
        assert_eq!(ours.blocks(&again).unwrap(), theirs.blocks(t.name()).unwrap());
    }
    assert_eq!(numbers(&ours, "as.f32"), (0..64).map(|k| k as f32).collect::<Vec<_>>());
    let close = |(k, x): (usize, f32)| (x - k as f32).abs() <= 0.25;
    assert!(numbers(&ours, "half").into_iter().enumerate().all(close));
}

#[test]
fn a_file_of_123_tensors_is_not_taken_for_json() {
    let mut writer = GgufWriter::new();
    for k in 0..123 {
        writer.blocks(format!("t{k}"), GgufType::F32, &[1], vec![0; 4]).unwrap();
    }
    let bytes = writer.to_bytes().unwrap();
    assert_eq!(bytes[8], b'{');
    assert_eq!(Weights::from_bytes(bytes).unwrap().entries().len(), 123);
}

#[test]
fn what_cannot_be_written_is_refused() {
    let t = |shape: [usize; 2]| with_device(Device::Cpu, || Tensor::ones(shape));
    let mut writer = GgufWriter::new();
    writer.tensor("w", &t([2, 32]), GgufType::Q8_0).unwrap();
    let large = t([1, 32]) * 1e5;
    let table = [
        (writer.tensor("w", &t([2, 32]), GgufType::F16), "two tensors are called \"w\""),
        (writer.tensor("v", &t([2, 33]), GgufType::Q4_0), "rows of 33 elements"),
        (writer.tensor("v", &t([2, 256]), GgufType::Q4_K), "Q4_K is not written"),
        (writer.tensor("v", &t([0, 32]), GgufType::F32), "not shape [0, 32]"),
        (writer.tensor("", &t([1, 32]), GgufType::F32), "is empty"),
        (writer.tensor("v", &t([1, 32]).to_dtype(DType::I32), GgufType::F32), "i32"),
        (writer.blocks("v", GgufType::Q4_0, &[32], vec![0; 17]), "takes 18 bytes, not 17"),
        (writer.tensor("large", &large, GgufType::Q4_0).and_then(|()| writer.to_bytes().map(drop)), "65504"),
    ];
    for (result, part) in table {
        let error = result.unwrap_err();
        assert!(error.message().contains(part), "{error} lacks {part:?}");
    }
    let mut writer = GgufWriter::new();
    writer.set("general.alignment", 24u32);
    assert!(writer.to_bytes().unwrap_err().message().contains("power of two"));
}

/// The library's own reader, and what it makes of our blocks.
const READER: &str = r#"
import sys
import numpy as np
from gguf import GGUFReader, GGMLQuantizationType as Type, quants
file = GGUFReader(sys.argv[1])
assert file.get_field("general.architecture").contents() == "llama"
assert file.get_field("of.texts").contents() == ["a", "", "ü"]
assert file.get_field("of.count").contents() == 7
ramp = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
off = dict(F32=1e-7, F16=1e-3, BF16=4e-3, Q8_0=5e-3, Q4_0=8e-2, Q4_1=8e-2)
assert len(file.tensors) == len(off)
for t in file.tensors:
    assert list(t.shape) == [32, 2], t.shape
    values = quants.dequantize(t.data, t.tensor_type)
    assert abs(values - ramp).max() < off[t.name], (t.name, values)
print("read by Python")
"#;

#[test]
fn files_written_here_are_read_by_python() {
    let named = std::env::var("VOLTA_PYTHON");
    let python = named.clone().unwrap_or_else(|_| "python3".to_string());
    let has_it = Command::new(&python).args(["-c", "import gguf, numpy"]).output();
    if !has_it.is_ok_and(|out| out.status.success()) {
        assert!(named.is_err(), "{python}, which VOLTA_PYTHON names, has no gguf and numpy");
        println!(
            "LEFT OUT: reading our GGUF files with Python: {python} with gguf and numpy is missing (VOLTA_PYTHON names \
             another)"
        );
        return;
    }
    let scratch = Scratch::new("gguf-python");
    let path = scratch.file("volta.gguf");
    let ramp = with_device(Device::Cpu, || Tensor::linspace(-1.0, 1.0, 64).reshape([2, 32]));
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama");
    writer.set("of.texts", vec!["a".to_string(), String::new(), "ü".to_string()]);
    writer.set("of.count", 7u32);
    for &kind in GgufType::ALL.iter().filter(|kind| kind.is_written()) {
        writer.tensor(kind.name(), &ramp, kind).unwrap();
    }
    writer.write(&path).unwrap();
    let out = Command::new(&python).arg("-c").arg(READER).arg(&path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "read by Python");
}
