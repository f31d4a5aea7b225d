//! `volta quantize`, and what `volta inspect` says of what it writes.

use super::{Folder, Value, ok, volta};
use volta::io::{Gguf, GgufType, GgufWriter};
use volta::{BlockFormat, Device, QuantizedMatrix, Tensor, Weights, with_device};
use volta_testing::test;

/// A GGUF file of a matrix, a vector and a matrix whose rows are no blocks, under a name that a terminal would obey.
fn model(folder: &Folder) -> Tensor {
    let matrix = with_device(Device::Cpu, || Tensor::linspace(-1.0, 1.0, 256).reshape([4, 64]));
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama");
    writer.set("general.name", "\u{1b}[31mred");
    writer.tensor("matrix", &matrix, GgufType::F32).unwrap();
    writer.tensor("vector", &with_device(Device::Cpu, || Tensor::ones([64])), GgufType::F32).unwrap();
    writer.tensor("narrow\n", &with_device(Device::Cpu, || Tensor::ones([4, 5])), GgufType::F16).unwrap();
    writer.write(folder.0.join("model.gguf")).unwrap();
    matrix
}

#[test]
fn gguf_files_get_small_and_keep_what_they_say() {
    let folder = Folder::new("quantize");
    let matrix = model(&folder);
    ok(&volta(&folder).args(["quantize", "model.gguf", "small.gguf", "--type", "q4_1"]).output().unwrap());
    let small = Gguf::open(folder.0.join("small.gguf")).unwrap();
    assert_eq!(small.require::<&str>("general.architecture").unwrap(), "llama");
    assert_eq!(small.require::<u32>("general.file_type").unwrap(), 3);
    let kinds: Vec<GgufType> = small.tensors().iter().map(|t| t.kind()).collect();
    assert_eq!(kinds, [GgufType::Q4_1, GgufType::F32, GgufType::F16]);
    let expected = QuantizedMatrix::quantize(&matrix, BlockFormat::Int4Min).unwrap();
    assert_eq!(small.blocks("matrix").unwrap(), expected.to_blocks().unwrap());

    let printed = ok(&volta(&folder).args(["inspect", "small.gguf"]).output().unwrap());
    for part in ["general.name = \\u{1b}[31mred", "Q4_1", "narrow\\n"] {
        assert!(printed.contains(part) && !printed.contains('\u{1b}'), "{printed}");
    }
    let lines = ok(&volta(&folder).args(["inspect", "--json", "small.gguf"]).output().unwrap());
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["key"] == "general.file_type" && line["value"] == 3));
    assert!(lines.iter().any(|line| line["name"] == "matrix" && line["bytes"] == 160));
}

#[test]
fn safetensors_files_hold_what_quantised_layers_have() {
    let folder = Folder::new("quantize-safetensors");
    let matrix = model(&folder);
    ok(&volta(&folder)
        .args(["quantize", "model.gguf", "small.safetensors", "--type", "q8_0"])
        .output()
        .unwrap());
    let weights = Weights::open(folder.0.join("small.safetensors")).unwrap();
    let part = |name: &str| weights.tensor(name, Device::Cpu).unwrap();
    let (words, scales) = (part("matrix.words"), part("matrix.scales"));
    let again = QuantizedMatrix::from_parts(&words, &scales, BlockFormat::Int8, 64).unwrap();
    let expected = QuantizedMatrix::quantize(&matrix, BlockFormat::Int8).unwrap();
    assert_eq!(again.to_blocks().unwrap(), expected.to_blocks().unwrap());
    assert_eq!(part("vector").shape()[..], [64]);
    for (to, kind) in [("small.bin", "q4_0"), ("small.safetensors", "f16")] {
        let out = volta(&folder).args(["quantize", "model.gguf", to, "--type", kind]).output().unwrap();
        assert_eq!(out.status.code(), Some(2));
    }
}
