//! Embeddings and dropout.

use crate::array::{Array, array, real, tensor};
use crate::driver::{assert_close, check, fill, value_tolerance};
use volta::{Dropout, Embedding, Linear, Module, Sequential, Tensor, manual_seed};
use volta_testing::test;

#[test]
fn an_embedding_looks_up_rows() {
    let layer = Embedding::new(5, 3);
    let index = [3i32, 0, 3, 4, 1, 3];
    let tokens = Tensor::from_slice(&index, [2, 3]);
    check(
        "rows",
        &layer,
        &[],
        |_| layer.forward(&tokens),
        |p, _| Array::from_fn(&[2, 3, 3], |i| p["weight"].at(&[index[i[0] * 3 + i[1]] as usize, i[2]])),
    );
}

#[test]
fn a_row_for_padding_is_zero_and_is_not_trained() {
    let layer = Embedding::new(5, 3).with_padding(2);
    assert_eq!(layer.weight.to_vec::<f32>()[6..9], [0.0; 3]);
    assert!(layer.weight.is_leaf() && layer.weight.is_tracked());
    let tokens = Tensor::from_slice(&[2i32, 1, 2], [3]);
    let y = layer.forward(&tokens);
    (y * 3.0).sum().backward();
    let gradient = layer.weight.grad().unwrap().to_vec::<f32>();
    let expected: Vec<f32> = (0..15).map(|k| if k / 3 == 1 { 3.0 } else { 0.0 }).collect();
    assert_eq!(gradient, expected);
}

#[test]
fn tokens_go_into_a_sequence_of_layers() {
    let model = Sequential::new(vec![Box::new(Embedding::new(7, 4)), Box::new(Linear::new(4, 2, true))]);
    let p = fill(&model);
    let tokens = Tensor::from_slice(&[6i32, 2], [2]);
    let rows = Array::from_fn(&[2, 4], |i| p["0.weight"].at(&[[6, 2][i[0]], i[1]]));
    let expected = rows.linear(&p["1.weight"], p.get("1.bias"));
    assert_close("model", &array(&model.forward(&tokens)), &expected, value_tolerance());
}

#[test]
fn dropout_keeps_the_mean_in_training_and_everything_in_evaluation() {
    manual_seed(5);
    let layer = Dropout::new(0.25);
    let x = tensor(&Array::from_fn(&[100, 100], |_| 1.0)).requires_grad(true);
    let y = layer.forward(&x);
    y.sum().backward();
    let (values, gradient) = (array(&y).data, array(&x.grad().unwrap()).data);
    let kept = values.iter().filter(|&&v| v != 0.0).count();
    assert!((7300..7700).contains(&kept), "{kept} of 10000 were kept");
    assert!(values.iter().all(|&v| v == 0.0 || (v - 4.0 / 3.0).abs() < 1e-6));
    assert_eq!(values, gradient, "the gradient goes where the values went");
    assert_ne!(array(&layer.forward(&x)).data, values);
    layer.eval();
    assert_eq!(array(&layer.forward(&x)).data, vec![1.0; 10000]);
    assert_eq!(layer.forward(&x).dtype(), real());
}
