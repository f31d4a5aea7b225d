//! A file as a module: names, training, other devices, saving.

use super::{cases_of, fixture};
use volta::{Adam, Module, Tensor, cross_entropy};
use volta_onnx::{Onnx, OnnxSummary};
use volta_testing::test;

#[test]
fn parameters_have_the_names_of_the_file() {
    let model = Onnx::load(fixture("images.onnx")).unwrap();
    let names: Vec<_> = model.named_parameters().into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"head.weight".to_string()), "{names:?}");
    assert_eq!(model.inputs()[0].to_string(), "x float (batch, 3, height, width)");
    assert_eq!(model.outputs()[0].name, "y");
}

#[test]
fn a_network_of_others_is_trained_and_saved() {
    let model = Onnx::load(fixture("images.onnx")).unwrap();
    let images = Tensor::from_vec(
        (0..4 * 3 * 256).map(|k| if k / 768 % 2 == 0 { 0.5f32 } else { -0.5 }).collect(),
        [4, 3, 16, 16],
    );
    let classes = Tensor::from_vec(vec![0i32, 1, 0, 1], [4]);
    let mut adam = Adam::new(model.parameters(), 0.03, (0.9, 0.999), 1e-8, 0.0);
    let mut losses = Vec::new();
    for _ in 0..12 {
        adam.zero_grad();
        let loss = cross_entropy(&model.forward(&images), &classes);
        loss.backward();
        adam.step();
        losses.push(loss.item::<f32>());
    }
    assert!(losses[11] < 0.3 * losses[0], "{losses:?}");
    for (name, p) in model.named_parameters() {
        assert!(p.grad().is_some(), "{name} has no gradient");
    }
    let again = Onnx::from_bytes(model.to_bytes().unwrap()).unwrap();
    assert!(again.forward(&images).allclose(&model.forward(&images), 1e-5, 1e-6));
}

#[test]
fn what_follows_from_shapes_is_computed_once_for_each() {
    let model = Onnx::load(fixture("images.onnx")).unwrap();
    for size in [16, 24, 16] {
        let x = Tensor::randn([1, 3, size, size]);
        let (first, second) = (model.forward(&x), model.forward(&x));
        assert!(first.allclose(&second, 0.0, 0.0));
        assert_eq!(first.shape(), [1, 5]);
    }
}

#[test]
fn tensors_in_other_files_are_read_from_the_folder() {
    let model = Onnx::load(fixture("external.onnx")).unwrap();
    let y = model.forward(&Tensor::from_vec(vec![1f32, 0.0, 0.0, 2.0], [2, 2]));
    assert_eq!(y.to_vec::<f32>(), [0.0, 0.25, 0.5, 1.5, 2.0, 2.5]);
    let bytes = std::fs::read(fixture("external.onnx")).unwrap();
    let error = Onnx::from_bytes(bytes.clone()).err().unwrap();
    assert!(error.message().contains("open the model by its path"), "{error}");
    // A name outside of the folder, of the same length.
    for name in ["/../ernal.data", "../ternal.data"] {
        let at = bytes.windows(13).position(|part| part == b"external.data").unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + 13].copy_from_slice(&name.as_bytes()[..13]);
        let error = Onnx::from_bytes(bytes).err().unwrap();
        assert!(error.message().contains("only files in the model's own folder"), "{error}");
    }
}

#[test]
fn inputs_that_do_not_fit_are_errors() {
    let model = Onnx::load(fixture("images.onnx")).unwrap();
    let error = model.try_run(&[Tensor::zeros([1, 4, 16, 16])]).err().unwrap();
    assert!(error.message().contains("x float (batch, 3, height, width)"), "{error}");
    let error = model.try_run(&[]).err().unwrap();
    assert!(error.message().contains("0 inputs are given"), "{error}");
}

#[test]
fn a_summary_tells_what_a_file_holds() {
    let summary = OnnxSummary::open(fixture("images.onnx")).unwrap();
    assert_eq!(summary.opsets, [(String::new(), 17)]);
    assert_eq!(summary.operators["Gemm"], 1);
    assert!(summary.unknown.is_empty());
    let text = summary.to_string();
    assert!(text.contains("x float (batch, 3, height, width)") && text.contains("Gemm"), "{text}");
    assert!(summary.parameters() > 400, "{text}");
}

#[test]
fn every_case_has_a_summary() {
    for (name, case) in cases_of("nodes.bin") {
        let summary = OnnxSummary::from_bytes(case.model).unwrap();
        assert!(!summary.outputs.is_empty(), "{name}");
    }
}
