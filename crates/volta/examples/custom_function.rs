//! An op with a gradient of one's own: rounding that lets gradients pass straight through.
//!
//! `cargo run --release --example custom_function`

use volta::{Adam, Function, Tensor, apply, manual_seed, mse_loss};

/// Rounds to multiples of a step. Its true gradient is zero almost everywhere; this one pretends it was not there.
struct Quantize {
    step: f64,
}

impl Function for Quantize {
    fn forward(&self, inputs: &[Tensor]) -> Tensor {
        (&inputs[0] / self.step).round() * self.step
    }

    fn backward(&self, _inputs: &[Tensor], _output: &Tensor, gradient: &Tensor) -> Vec<Option<Tensor>> {
        vec![Some(gradient.clone())]
    }
}

fn main() {
    manual_seed(0);
    let target = Tensor::vector(&[0.31, -0.74, 1.18, 0.02]);
    let weights = Tensor::zeros([4]).requires_grad(true);
    let mut adam = Adam::new(vec![weights.clone()], 0.02, (0.9, 0.999), 1e-8, 0.0);
    for _ in 0..400 {
        adam.zero_grad();
        mse_loss(&apply(Quantize { step: 0.25 }, &[&weights]), &target).backward();
        adam.step();
    }
    let learnt = apply(Quantize { step: 0.25 }, &[&weights]).to_vec::<f32>();
    println!("wanted  {:?}\nlearnt  {learnt:?}, in steps of 0.25", target.to_vec::<f32>());
    for (w, t) in learnt.iter().zip(target.to_vec::<f32>()) {
        assert!((w - t).abs() <= 0.25, "{w} is not near {t}");
    }
}
