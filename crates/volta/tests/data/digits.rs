//! Digits drawn by rule: the same for a seed, different from each other, and learnable.

use crate::{bytes, class};
use volta::data::{DataLoader, Dataset, SyntheticDigits, ToFloat};
use volta::{Adam, ConvOptions, DType, PoolOptions, Tensor, cross_entropy, manual_seed, no_grad};
use volta_testing::test;

#[test]
fn seed_and_index_say_all_about_a_digit() {
    let (a, b) = (SyntheticDigits::new(200, 1), SyntheticDigits::new(300, 2));
    let (mut seen, mut differ) = ([0; 10], 0);
    for k in 0..200 {
        let sample = a.get(k).expect("a digit");
        assert_eq!(sample.input.shape()[..], [1, 28, 28]);
        let pixels = bytes(&sample.input);
        assert_eq!(pixels, bytes(&SyntheticDigits::new(1000, 1).get(k).expect("a digit").input));
        differ += usize::from(pixels != bytes(&b.get(k).expect("a digit").input));
        seen[class(&sample.target) as usize] += 1;
        let ink = pixels.iter().filter(|p| **p > 128).count();
        assert!((20..400).contains(&ink), "digit {k} has {ink} dark pixels");
        // Nothing is cut off at the border, beyond noise.
        let border = (0..28).flat_map(|i| [i, 27 * 28 + i, 28 * i, 28 * i + 27]);
        let cut = border.filter(|&p| pixels[p] > 128).count();
        assert!(cut < 12, "digit {k} has {cut} dark pixels at the border");
    }
    assert_eq!(differ, 200);
    assert!(seen.iter().all(|n| *n >= 8), "{seen:?}");
}

/// Two convolutions and a linear layer.
struct Net(Vec<Tensor>);

impl Net {
    fn new() -> Net {
        let weight =
            |shape: &[usize], inputs: f64| (Tensor::randn(shape) * (2.0 / inputs).sqrt()).requires_grad(true);
        Net(vec![weight(&[8, 1, 3, 3], 9.0), weight(&[16, 8, 3, 3], 72.0), weight(&[16 * 49, 10], 784.0)])
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let options = ConvOptions { padding: [1, 1], ..Default::default() };
        let layer = |x: &Tensor, w: &Tensor| {
            x.conv2d(w, None, options).relu().max_pool2d([2, 2], PoolOptions::default())
        };
        let x = layer(&layer(x, &self.0[0]), &self.0[1]);
        x.reshape([x.size(0), 16 * 49]).matmul(&self.0[2])
    }
}

#[test]
fn a_small_network_learns_them() {
    manual_seed(0);
    let net = Net::new();
    let mut adam = Adam::new(net.0.clone(), 0.004, (0.9, 0.999), 1e-8, 0.0);
    let train = DataLoader::over(SyntheticDigits::new(2048, 0).map(ToFloat), 64)
        .with_shuffle(true)
        .with_seed(0)
        .with_workers(1);
    for _ in 0..3 {
        for (x, y) in &train {
            adam.zero_grad();
            cross_entropy(&net.forward(&x), &y).backward();
            adam.step();
        }
    }
    let test = DataLoader::over(SyntheticDigits::new(512, 1).map(ToFloat), 128);
    let right: f32 = test
        .iter()
        .map(|(x, y)| {
            no_grad(|| net.forward(&x).argmax_dim(1, false).eq(&y).to_dtype(DType::F32).sum().item::<f32>())
        })
        .sum();
    assert!(right / 512.0 > 0.95, "{right} of 512");
}
