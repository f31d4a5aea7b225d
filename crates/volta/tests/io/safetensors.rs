//! safetensors: what is written comes back, from anywhere, and only what is asked for is copied.

use crate::scratch::{Scratch, stored};
use volta::io::{Metadata, to_safetensors};
use volta::{
    DType, Device, ErrorKind, Linear, Module, Sequential, StateDict, Tensor, Weights, bf16, default_device,
    f16, inspect, load, load_safetensors, save, save_safetensors, with_device,
};
use volta_testing::test;

fn one_of_each_type() -> StateDict {
    let ramp: Vec<f64> = (0..6).map(|k| f64::from(k) * 0.5).collect();
    let make = |dtype: DType| Tensor::from_slice(&ramp, [2, 3]).to_dtype(dtype);
    with_device(Device::Cpu, || DType::ALL.iter().map(|&d| (format!("of.{d}"), make(d).variable())).collect())
}

fn metadata() -> Metadata {
    [("made by", "a test"), ("é\"\n", "\u{1F980}")].map(|(k, v)| (k.to_string(), v.to_string())).into()
}

fn same(a: &Tensor, b: &Tensor) {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    assert_eq!(a.to_vec::<f64>(), b.to_vec::<f64>());
}

#[test]
fn every_type_comes_back_in_the_same_order_with_its_metadata() {
    let scratch = Scratch::new("every-type");
    let path = scratch.file("all.safetensors");
    let state = one_of_each_type();
    save_safetensors(&path, &state, &metadata()).unwrap();
    let (back, said) = with_device(Device::Cpu, || load_safetensors(&path)).unwrap();
    assert_eq!(said, metadata());
    assert_eq!(back.names().collect::<Vec<_>>(), state.names().collect::<Vec<_>>());
    for (name, t) in state.iter() {
        same(t, back.get(name).unwrap());
    }
    assert_eq!(scratch.names(), ["all.safetensors"], "nothing else is left behind");
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes, to_safetensors(&state, &metadata()).unwrap());
    let held = Weights::from_bytes(bytes).unwrap();
    same(&held.tensor("of.bf16", Device::Cpu).unwrap(), state.get("of.bf16").unwrap());
}

#[test]
fn extreme_bits_come_back_as_they_were() {
    let floats = [f32::NAN, -0.0, f32::MIN_POSITIVE / 2.0, f32::INFINITY, f32::from_bits(0x7fa0_0001)];
    let mut state = StateDict::new();
    state.insert("f", Tensor::vector(&floats));
    state.insert("u", Tensor::from_vec(vec![0u32, 1 << 31, u32::MAX], [3]));
    state.insert("empty", Tensor::zeros([0, 3]));
    state.insert("scalar", Tensor::scalar(2.5));
    let back =
        Weights::from_bytes(to_safetensors(&state, &Metadata::new()).unwrap()).unwrap().load().unwrap();
    let bits = |t: &Tensor| t.to_vec::<f32>().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(back.get("f").unwrap()), floats.map(f32::to_bits));
    assert_eq!(back.get("u").unwrap().to_vec::<u32>(), [0, 1 << 31, u32::MAX]);
    assert_eq!(back.get("empty").unwrap().shape()[..], [0, 3]);
    assert_eq!(back.get("scalar").unwrap().item::<f32>(), 2.5);
    assert_eq!(back.get("scalar").unwrap().rank(), 0);
}

#[test]
fn pending_tensors_are_computed_in_one_plan_and_may_be_anywhere() {
    let x = Tensor::vector(&[1.0, 2.0, 3.0]);
    let mut state = StateDict::new();
    state.insert("half", (&x * 0.5).to_dtype(DType::F16));
    state.insert("mask", x.gt(1.5));
    state.insert("exp", x.exp().to_dtype(DType::BF16));
    state.insert("host", with_device(Device::Cpu, || Tensor::vector(&[4.0])));
    state.insert("constant", Tensor::zeros([2]));
    let bytes = to_safetensors(&state, &Metadata::new()).unwrap();
    for (name, t) in state.iter().filter(|(name, _)| *name != "constant") {
        assert!(t.is_realized(), "{name}");
    }
    let weights = Weights::from_bytes(bytes).unwrap();
    let read = |name: &str| weights.tensor(name, default_device()).unwrap();
    assert_eq!(read("half").to_vec::<f16>(), [0.5, 1.0, 1.5].map(f16::from_f32));
    assert_eq!(read("mask").to_vec::<bool>(), [false, true, true]);
    assert_eq!(read("exp").to_vec::<bf16>(), [1.0, 2.0, 3.0].map(|x: f32| bf16::from_f32(x.exp())));
    assert_eq!(read("constant").to_vec::<f32>(), [0.0; 2]);
    assert_eq!(read("host").device(), default_device());
}

#[test]
fn loaded_tensors_can_be_assigned_to_and_trained() {
    let weights = Weights::open(stored("python.safetensors")).unwrap();
    let t = weights.tensor("of.F32", default_device()).unwrap();
    t.assign(&Tensor::ones([3, 4]));
    let w = weights.tensor("of.F32", default_device()).unwrap().requires_grad(true);
    (&w * &t).sum().backward();
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [1.0; 12]);
}

#[test]
fn a_module_is_saved_and_loaded_strictly_or_not() {
    let scratch = Scratch::new("module");
    let path = scratch.file("net.safetensors");
    let net = || Sequential::new(vec![]).with(Linear::new(3, 4, true)).with(Linear::new(4, 2, false));
    let (a, b) = (net(), net());
    save(&a, &path).unwrap();
    assert!(load(&b, &path, true).unwrap().is_complete());
    for (p, q) in a.parameters().iter().zip(b.parameters()) {
        assert_eq!(p.to_vec::<f32>(), q.to_vec::<f32>());
    }
    let smaller = Sequential::new(vec![]).with(Linear::new(3, 4, true));
    let error = load(&smaller, &path, true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    for part in ["net.safetensors", "unexpected: 1.weight"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(error.location().file(), file!());
    let report = load(&smaller, &path, false).unwrap();
    assert_eq!(report.unexpected, ["1.weight"]);
    assert_eq!(smaller.parameters()[1].to_vec::<f32>(), a.parameters()[1].to_vec::<f32>());
    let wider = Sequential::new(vec![]).with(Linear::new(3, 5, true));
    let before = wider.parameters()[0].to_vec::<f32>();
    assert!(load(&wider, &path, false).unwrap_err().message().contains("(here [5, 3], given [4, 3])"));
    assert_eq!(wider.parameters()[0].to_vec::<f32>(), before);
}

#[test]
fn a_file_of_another_type_is_converted_for_the_module() {
    let scratch = Scratch::new("convert");
    let path = scratch.file("net.safetensors");
    let net = with_device(Device::Cpu, || Linear::new(2, 2, true));
    net.to_dtype(DType::F64);
    save(&net, &path).unwrap();
    let other = Linear::new(2, 2, true);
    load(&other, &path, true).unwrap();
    assert_eq!(other.parameters()[0].dtype(), DType::F32);
    assert_eq!(other.parameters()[0].to_vec::<f32>(), net.parameters()[0].to_vec::<f32>());
}

#[test]
fn a_tensor_with_two_names_is_written_once_and_found_again() {
    #[derive(Module)]
    struct Tied {
        first: std::sync::Arc<Linear>,
        second: std::sync::Arc<Linear>,
    }
    impl Tied {
        fn new() -> Tied {
            let first = std::sync::Arc::new(Linear::new(2, 2, false));
            Tied { second: first.clone(), first }
        }
        fn forward(&self, x: &Tensor) -> Tensor {
            self.second.forward(&self.first.forward(x))
        }
    }
    let scratch = Scratch::new("tied");
    let path = scratch.file("tied.safetensors");
    let (a, b) = (Tied::new(), Tied::new());
    save(&a, &path).unwrap();
    assert_eq!(Weights::open(&path).unwrap().names().collect::<Vec<_>>(), ["first.weight"]);
    load(&b, &path, true).unwrap();
    let x = Tensor::ones([1, 2]);
    assert_eq!(a.forward(&x).to_vec::<f32>(), b.forward(&x).to_vec::<f32>());
}

#[test]
fn what_a_file_holds_is_printed_as_a_table() {
    let table = inspect(stored("python.safetensors")).unwrap();
    let row = table.lines().find(|line| line.starts_with("of.F16 ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["of.F16", "F16", "[3,", "4]", "24", "B"]);
    assert!(table.ends_with("11 tensors, 109 numbers, 400 B"), "{table}");
    let table = inspect(stored("torch_views.pt")).unwrap();
    assert!(table.lines().any(|line| line.starts_with("transposed ") && line.contains("[4, 3]")), "{table}");
}

#[test]
fn what_is_not_there_is_an_error_that_names_it() {
    let error = Weights::open("no/such/file").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("no/such/file"), "{error}");
    let error = save(&Linear::new(1, 1, false), "no/such/folder/net.safetensors").unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("no/such/folder"), "{error}");
    let weights = Weights::open(stored("python.safetensors")).unwrap();
    let error = weights.tensor("of.F33", Device::Cpu).unwrap_err();
    assert!(
        error.message().contains("python.safetensors") && error.message().contains("\"of.F33\""),
        "{error}"
    );
    let folder = Scratch::new("nothing-there");
    assert!(Weights::open(folder.path()).unwrap_err().message().contains("model.safetensors"));
}

#[test]
fn a_name_that_the_format_keeps_for_itself_is_refused() {
    let mut state = StateDict::new();
    state.insert("__metadata__", Tensor::zeros([1]));
    let error = to_safetensors(&state, &Metadata::new()).unwrap_err();
    assert!(error.kind() == ErrorKind::Argument && error.message().contains("__metadata__"), "{error}");
}

#[test]
fn opening_looks_at_no_elements() {
    // The file is damaged where a tensor lies: opening does not see it, asking for that tensor does.
    let scratch = Scratch::new("lazily");
    let path = scratch.file("net.safetensors");
    let mut state = StateDict::new();
    state.insert("a", Tensor::vector(&[1.0]));
    state.insert("b", Tensor::vector(&[1.0]).gt(0.0));
    let mut bytes = to_safetensors(&state, &Metadata::new()).unwrap();
    *bytes.last_mut().unwrap() = 7;
    std::fs::write(&path, bytes).unwrap();
    let weights = Weights::open(&path).unwrap();
    assert_eq!(weights.tensor("a", Device::Cpu).unwrap().to_vec::<f32>(), [1.0]);
    let error = weights.tensor("b", Device::Cpu).unwrap_err();
    assert!(error.message().contains("\"b\"") && error.message().contains("neither 0 nor 1"), "{error}");
}
