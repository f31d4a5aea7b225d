//! What Volta writes, it reads, and computes the same. `scripts/test-peers` lets onnxruntime do so.

use super::networks;
use volta::{Dropout, Module, Tensor, no_grad};
use volta_onnx::{Export, Onnx, export};
use volta_testing::test;

#[test]
fn networks_come_back_as_they_were() {
    for network in networks::all() {
        let name = network.name;
        let export = Export::new(&*network.module).input("x", &network.example);
        let bytes = export
            .to_bytes(|x| Ok(vec![("y", network.forward(&x[0])?)]))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = Onnx::from_bytes(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let parameters: Vec<_> = again.state_dict().iter().map(|(name, _)| name.to_string()).collect();
        let own = network.module.named_parameters();
        assert!(own.iter().any(|(name, _)| parameters.contains(name)), "{name}: {parameters:?}");
        // Another batch than that of the example.
        let x = network.input(3);
        let (found, expected) =
            no_grad(|| (again.run(std::slice::from_ref(&x)).remove(0), network.forward(&x).unwrap()));
        assert_eq!(found.shape(), expected.shape(), "{name}");
        assert!(found.allclose(&expected, 1e-4, 1e-5), "{name}");
    }
}

#[test]
fn a_module_is_written_to_a_file() {
    let path = std::env::temp_dir().join(format!("volta-export-{}.onnx", std::process::id()));
    let model = volta::Linear::new(4, 2, true);
    export(&model, &Tensor::zeros([1, 4]), &path).unwrap();
    let again = Onnx::load(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(again.inputs()[0].to_string(), "input float (batch, 4)");
    let x = Tensor::randn([5, 4]);
    assert!(again.forward(&x).allclose(&model.forward(&x), 1e-5, 1e-6));
}

#[test]
fn what_cannot_be_exported_says_why() {
    let x = Tensor::zeros([2, 4]);
    let noise = Dropout::new(0.5);
    let error = Export::new(&noise)
        .input("x", &x)
        .to_bytes(|x| Ok(vec![("y", noise.try_forward(&x[0])?)]))
        .err()
        .unwrap();
    assert!(error.message().contains("put the module in evaluation"), "{error}");
    // The mean over the batch is divided by its size.
    let module = volta::Identity;
    let mean = |x: &[Tensor]| Ok(vec![("y", x[0].try_slice([volta::Range::from(0..1)])?)]);
    let export = Export::new(&module).input("x", &x);
    let bytes = export.to_bytes(mean).unwrap();
    assert_eq!(Onnx::from_bytes(bytes).unwrap().run(&[Tensor::ones([5, 4])])[0].shape(), [1, 4]);
    let rows = |x: &[Tensor]| Ok(vec![("y", x[0].try_cumsum(0)?.try_slice([volta::Range::by(1.., 1)])?)]);
    let error = Export::new(&module).input("x", &x).to_bytes(rows).err().unwrap();
    assert!(error.message().contains("fixed_batch"), "{error}");
    Export::new(&module).input("x", &x).fixed_batch().to_bytes(rows).unwrap();
}
