//! Python's own safetensors library: its files are read here, ours are read there.

use crate::scratch::{Scratch, stored};
use std::process::Command;
use volta::io::Metadata;
use volta::{DType, Device, StateDict, Tensor, Weights, bf16, save_safetensors, with_device};
use volta_testing::test;

#[test]
fn files_written_by_python_are_read() {
    let weights = Weights::open(stored("python.safetensors")).unwrap();
    assert_eq!(weights.metadata()["made by"], "Python");
    assert_eq!(weights.metadata()["é"], "ü");
    let ramp: Vec<f64> = (0..12).map(|k| f64::from(k) - 5.0).collect();
    for (name, dtype) in [
        ("of.F32", DType::F32),
        ("of.F64", DType::F64),
        ("of.F16", DType::F16),
        ("of.I32", DType::I32),
        ("of.I64", DType::I64),
    ] {
        let t = weights.tensor(name, Device::Cpu).unwrap();
        assert_eq!((t.dtype(), &t.shape()[..]), (dtype, &[3, 4][..]));
        assert_eq!(t.to_vec::<f64>(), ramp, "{name}");
    }
    let bytes: Vec<u8> = (0..12).map(|k| 20 * k).collect();
    assert_eq!(weights.tensor("of.U8", Device::Cpu).unwrap().to_vec::<u8>(), bytes);
    let large: Vec<u32> = (0..12).map(|k| 300_000_000 * k).collect();
    assert_eq!(weights.tensor("of.U32", Device::Cpu).unwrap().to_vec::<u32>(), large);
    let even: Vec<bool> = (0..12).map(|k| k % 2 == 0).collect();
    assert_eq!(weights.tensor("of.BOOL", Device::Cpu).unwrap().to_vec::<bool>(), even);
    assert_eq!(weights.tensor("scalar", Device::Cpu).unwrap().item::<f32>(), 2.5);
    assert_eq!(weights.tensor("empty", Device::Cpu).unwrap().shape()[..], [0, 3]);
    let bf = Weights::open(stored("python_bf16.safetensors")).unwrap().tensor("w", Device::Cpu).unwrap();
    assert_eq!(bf.to_vec::<bf16>(), [1.0, -2.5, 0.0, f32::INFINITY].map(bf16::from_f32));
}

/// The library's own reader: checks the whole file, gives metadata, types, shapes and elements.
const READER: &str = r#"
import sys
import numpy as np
from safetensors import safe_open
with safe_open(sys.argv[1], framework="np") as f:
    assert f.metadata() == {"made by": "Volta", "é": "\"\n"}, f.metadata()
    assert set(f.keys()) == {"F32", "F64", "F16", "I32", "I64", "U8", "U32", "BOOL", "empty", "scalar"}, f.keys()
    types = dict(F32="float32", F64="float64", F16="float16", I32="int32", I64="int64", U8="uint8", U32="uint32")
    for name, dtype in types.items():
        t = f.get_tensor(name)
        assert t.dtype == dtype and t.shape == (2, 3), (name, t.dtype, t.shape)
        assert (t == np.arange(6).reshape(2, 3) * 2).all(), (name, t)
    assert (f.get_tensor("BOOL") == [True, False, True]).all()
    assert f.get_tensor("empty").shape == (0, 3)
    assert f.get_tensor("scalar") == np.float32(2.5)
print("read by Python")
"#;

#[test]
fn files_written_here_are_read_by_python() {
    let named = std::env::var("VOLTA_PYTHON");
    let python = named.clone().unwrap_or_else(|_| "python3".to_string());
    let has_it = Command::new(&python).args(["-c", "import safetensors, numpy"]).output();
    if !has_it.is_ok_and(|out| out.status.success()) {
        assert!(named.is_err(), "{python}, which VOLTA_PYTHON names, has no safetensors and numpy");
        println!(
            "LEFT OUT: reading our files with Python: {python} with safetensors and numpy is missing (VOLTA_PYTHON \
             names another)"
        );
        return;
    }
    let scratch = Scratch::new("python");
    let path = scratch.file("volta.safetensors");
    let mut state = StateDict::new();
    with_device(Device::Cpu, || {
        state.insert("BOOL", Tensor::from_vec(vec![true, false, true], [3]));
        let names = [
            ("U8", DType::U8),
            ("U32", DType::U32),
            ("F64", DType::F64),
            ("F16", DType::F16),
            ("F32", DType::F32),
            ("I64", DType::I64),
            ("I32", DType::I32),
        ];
        for (name, dtype) in names {
            state.insert(name, (Tensor::arange(0, 6).reshape([2, 3]) * 2).to_dtype(dtype));
        }
        state.insert("empty", Tensor::zeros([0, 3]));
        state.insert("scalar", Tensor::scalar(2.5));
    });
    let said: Metadata =
        [("made by", "Volta"), ("é", "\"\n")].map(|(k, v)| (k.to_string(), v.to_string())).into();
    save_safetensors(&path, &state, &said).unwrap();
    let out = Command::new(&python).arg("-c").arg(READER).arg(&path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "read by Python");
}
