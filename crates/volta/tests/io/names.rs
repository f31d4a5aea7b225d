//! Models from elsewhere: other names, transposed weights, several files.

use crate::scratch::Scratch;
use volta::io::Metadata;
use volta::{
    Device, ErrorKind, Linear, Module, NameMap, Sequential, StateDict, Tensor, Weights, load,
    save_safetensors,
};
use volta_testing::test;

/// A file whose matrix lies the other way round, under other names.
fn foreign(scratch: &Scratch) -> std::path::PathBuf {
    let path = scratch.file("foreign.safetensors");
    let mut state = StateDict::new();
    state.insert("transformer.h.0.c_fc.weight", Tensor::vector(&[1., 2., 3., 4., 5., 6.]).reshape([3, 2]));
    state.insert("transformer.h.0.c_fc.bias", Tensor::vector(&[7., 8.]));
    state.insert("transformer.h.0.attn.bias", Tensor::zeros([4, 4]));
    save_safetensors(&path, &state, &Metadata::new()).unwrap();
    path
}

fn map() -> NameMap {
    NameMap::new()
        .strip("transformer")
        .drop("h.{}.attn.bias")
        .rename_transposed("h.{}.c_fc.weight", "{}.weight")
        .rename("h.{}.c_fc.{}", "{}.{}")
}

#[test]
fn a_file_and_a_dictionary_are_renamed_and_transposed_alike() {
    let scratch = Scratch::new("rename");
    let weights = Weights::open(foreign(&scratch)).unwrap();
    let net = Sequential::new(vec![]).with(Linear::new(3, 2, true));
    assert!(weights.renamed(&map()).unwrap().load_into(&net, true).unwrap().is_complete());
    assert_eq!(net.parameters()[0].to_vec::<f32>(), [1., 3., 5., 2., 4., 6.]);
    assert_eq!(net.parameters()[1].to_vec::<f32>(), [7., 8.]);
    let again = Sequential::new(vec![]).with(Linear::new(3, 2, true));
    again.load_state_dict(&map().apply(&weights.load().unwrap()).unwrap(), true).unwrap();
    assert_eq!(again.parameters()[0].to_vec::<f32>(), net.parameters()[0].to_vec::<f32>());
}

#[test]
fn what_cannot_be_renamed_is_an_error_that_names_it() {
    let scratch = Scratch::new("rename-wrong");
    let weights = Weights::open(foreign(&scratch)).unwrap();
    let state = weights.load().unwrap();
    let vector = NameMap::new().rename_transposed("{..}.c_fc.bias", "{..}.b");
    for error in [weights.renamed(&vector).err().unwrap(), vector.apply(&state).err().unwrap()] {
        assert!(error.message().contains("c_fc.bias") && error.message().contains("[2]"), "{error}");
    }
    let clash = NameMap::new()
        .rename("transformer.h.0.c_fc.weight", "same")
        .rename("transformer.h.0.c_fc.bias", "same");
    for error in [weights.renamed(&clash).err().unwrap(), clash.apply(&state).err().unwrap()] {
        assert!(error.message().contains("\"same\""), "{error}");
    }
}

fn sharded(scratch: &Scratch, index: &str) -> std::path::PathBuf {
    for (file, name, value) in [("a.safetensors", "0.weight", 1.0), ("b.safetensors", "0.bias", 2.0)] {
        let mut state = StateDict::new();
        let shape: &[usize] = if name == "0.weight" { &[2, 3] } else { &[2] };
        state.insert(name, Tensor::full(shape, value));
        save_safetensors(scratch.file(file), &state, &Metadata::new()).unwrap();
    }
    let path = scratch.file("model.safetensors.index.json");
    std::fs::write(&path, index).unwrap();
    path
}

const INDEX: &str = r#"{"metadata": {"total_size": 32},
    "weight_map": {"0.weight": "a.safetensors", "0.bias": "b.safetensors"}}"#;

#[test]
fn a_model_in_several_files_is_one_model_by_its_index_or_its_folder() {
    let scratch = Scratch::new("sharded");
    let index = sharded(&scratch, INDEX);
    for path in [index.as_path(), scratch.path()] {
        let net = Sequential::new(vec![]).with(Linear::new(3, 2, true));
        assert!(load(&net, path, true).unwrap().is_complete());
        assert_eq!(net.parameters()[0].to_vec::<f32>(), [1.0; 6]);
        assert_eq!(net.parameters()[1].to_vec::<f32>(), [2.0; 2]);
    }
    assert_eq!(Weights::open(index).unwrap().metadata()["total_size"], "32");
}

#[test]
fn an_index_that_lies_is_an_error_that_names_the_tensor() {
    let scratch = Scratch::new("sharded-wrong");
    for (from, to, said) in [
        (r#""b.safetensors""#, r#""a.safetensors""#, "is not"),
        (r#""b.safetensors""#, r#""../b.safetensors""#, "no file beside it"),
        (r#""b.safetensors""#, r#""/etc/passwd""#, "no file beside it"),
        (r#""b.safetensors""#, "3", "no file beside it"),
        (r#""0.weight":"#, r#""0.bias":"#, "stands there twice"),
    ] {
        let index = sharded(&scratch, &INDEX.replace(from, to));
        let error = Weights::open(index).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.message().contains("0.bias") && error.message().contains(said), "{error}");
    }
    let index = sharded(&scratch, &INDEX.replace("b.safetensors", "c.safetensors"));
    let error = Weights::open(index).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("c.safetensors"), "{error}");
    let index = sharded(&scratch, "{}");
    assert!(Weights::open(index).unwrap_err().message().contains("weight_map"));
}

#[test]
fn a_prefix_that_fits_nothing_is_an_error() {
    let scratch = Scratch::new("under");
    let weights = Weights::open(foreign(&scratch)).unwrap();
    assert_eq!(weights.under("transformer.h").unwrap().names().next(), Some("0.c_fc.weight"));
    assert!(weights.under("transformer.h").unwrap().tensor("0.c_fc.bias", Device::Cpu).is_ok());
    assert!(weights.under("trans").unwrap_err().message().contains("\"trans.\""));
}
