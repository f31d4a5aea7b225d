//! The corners of composed ops where a formula alone would go wrong: infinities, bounds, ties, nothing at all.

use volta::*;
use volta_testing::test;

const INF: f32 = f32::INFINITY;

fn matrix(data: &[f32], rows: usize) -> Tensor {
    Tensor::from_slice(data, [rows, data.len() / rows])
}

/// The gradient of the sum of `f` at `data`.
fn slope(data: &[f32], f: impl Fn(&Tensor) -> Tensor) -> Vec<f32> {
    let x = Tensor::vector(data).requires_grad(true);
    f(&x).sum().backward();
    x.grad().expect("a gradient").to_vec()
}

fn near(got: &Tensor, want: &[f32]) {
    let got = got.to_vec::<f32>();
    assert_eq!(got.len(), want.len(), "{got:?} {want:?}");
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{got:?} is not near {want:?}");
    }
}

#[test]
fn logsumexp_of_infinities_and_of_nothing_is_infinite() {
    assert_eq!(Tensor::vector(&[-INF, -INF]).logsumexp(0, false).item::<f32>(), -INF);
    assert_eq!(Tensor::vector(&[INF, 0.0]).logsumexp(0, false).item::<f32>(), INF);
    assert_eq!(Tensor::zeros([2, 0]).logsumexp(1, false).to_vec::<f32>(), [-INF, -INF]);
    near(&Tensor::vector(&[1000.0, 1000.0]).logsumexp(0, true), &[1000.0 + 2f32.ln()]);
}

#[test]
fn softmax_does_not_overflow_and_takes_odd_shapes() {
    near(&Tensor::vector(&[1000.0, 1000.0, -INF]).softmax(0), &[0.5, 0.5, 0.0]);
    near(&Tensor::vector(&[-1000.0, 0.0]).log_softmax(0), &[-1000.0, 0.0]);
    assert!(Tensor::vector(&[-INF, -INF]).softmax(0).to_vec::<f32>()[0].is_nan());
    assert_eq!(Tensor::scalar(3.0).softmax(-1).item::<f32>(), 1.0);
    assert_eq!(Tensor::zeros([3, 0]).softmax(1).shape()[..], [3, 0]);
}

#[test]
fn activations_far_out_have_finite_gradients() {
    let far = [-1000.0, 1000.0];
    assert_eq!(slope(&far, |x| x.softplus(1.0, 20.0)), [0.0, 1.0]);
    assert_eq!(slope(&far, |x| x.elu(1.0)), [0.0, 1.0]);
    assert_eq!(slope(&far, Tensor::log_sigmoid), [1.0, 0.0]);
    assert_eq!(slope(&far, Tensor::silu), [0.0, 1.0]);
    assert_eq!(slope(&far, Tensor::mish), [0.0, 1.0]);
    assert_eq!(slope(&far, Tensor::gelu), [0.0, 1.0]);
    assert_eq!(slope(&[0.0], Tensor::log_sigmoid), [0.5]);
    assert_eq!(slope(&[0.0], |x| x.softplus(1.0, 20.0)), [0.5]);
}

#[test]
fn clamp_and_hardtanh_have_no_gradient_at_their_bounds() {
    let x = [-2.0, -1.0, 0.0, 1.0, 2.0];
    assert_eq!(slope(&x, |x| x.clamp(Some(-1.0), Some(1.0))), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(slope(&x, |x| x.hardtanh(-1.0, 1.0)), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(slope(&[0.0, 3.0, 6.0], Tensor::relu6), [0.0, 1.0, 0.0]);
    assert_eq!(slope(&x, |x| x.clamp(Some(1.0), Some(-1.0))), [0.0; 5]);
    let crossed = Tensor::vector(&x).clamp(Some(1.0), Some(-1.0));
    assert_eq!(crossed.to_vec::<f32>(), [-1.0; 5]);
    assert!(Tensor::vector(&[f32::NAN]).clamp(Some(0.0), None).item::<f32>().is_nan());
}

#[test]
fn a_filled_in_tensor_gets_the_gradient_of_where_it_stands() {
    let x = Tensor::vector(&[1.0, 2.0, 3.0]).requires_grad(true);
    let value = Tensor::scalar(7.0f64).requires_grad(true);
    let mask = Tensor::vector(&[1.0, 0.0, 1.0]).gt(0.0);
    let filled = x.masked_fill(&mask, &value);
    assert_eq!((filled.dtype(), filled.to_vec::<f32>()), (DType::F32, vec![7.0, 2.0, 7.0]));
    (filled * Tensor::vector(&[1.0, 10.0, 100.0])).sum().backward();
    assert_eq!(value.grad().unwrap().item::<f32>(), 101.0);
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 10.0, 0.0]);
    let error = x.try_masked_fill(&mask, Tensor::ones([1])).unwrap_err().to_string();
    assert!(error.contains("the value has shape [1]"), "{error}");
}

#[test]
fn a_number_that_does_not_fit_is_not_filled_in() {
    let bytes = Tensor::zeros([2]).to_dtype(DType::U8);
    let mask = Tensor::zeros([2]).eq(0.0);
    for error in [
        bytes.try_masked_fill(&mask, 300).unwrap_err(),
        bytes.try_full_like(300).unwrap_err(),
        Tensor::try_full_of([2], 300, DType::U8).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.to_string().contains("300 does not fit into u8, which goes from 0 to 255"), "{error}");
    }
    assert_eq!(Tensor::full_of([1], -1, DType::U8).to_vec::<u8>(), [255], "as in PyTorch");
}

#[test]
fn clamp_keeps_integers_where_the_bounds_are_integers() {
    let x = Tensor::arange(-2, 3);
    let y = x.clamp(Some(-1.0), Some(1.0));
    assert_eq!((y.dtype(), y.to_vec::<i32>()), (DType::I32, vec![-1, -1, 0, 1, 1]));
    assert_eq!(x.clamp(Some(0.5), None).dtype(), DType::F32);
}

#[test]
fn statistics_of_too_few_elements_are_nan() {
    assert!(Tensor::zeros([0]).mean().item::<f32>().is_nan());
    assert!(Tensor::zeros([2, 0]).mean_dim(1, false).to_vec::<f32>()[1].is_nan());
    assert!(Tensor::ones([1]).var(1).item::<f32>().is_nan());
    assert_eq!(Tensor::ones([1]).var(0).item::<f32>(), 0.0);
    near(&Tensor::vector(&[1.0, 2.0, 3.0, 4.0]).var(1), &[5.0 / 3.0]);
    near(&Tensor::vector(&[1.0, 2.0, 3.0, 4.0]).std(0), &[1.25f32.sqrt()]);
}

#[test]
fn norms_and_deviations_have_a_gradient_of_zero_at_zero() {
    assert_eq!(slope(&[0.0, 0.0], |x| x.norm(2.0)), [0.0, 0.0]);
    assert_eq!(slope(&[0.0, 0.0], |x| x.norm(3.0)), [0.0, 0.0]);
    assert_eq!(slope(&[0.0, 1.0], |x| x.norm(0.5)), [0.0, 1.0]);
    assert_eq!(slope(&[2.0, 2.0], |x| x.std(1)), [0.0, 0.0]);
    assert_eq!(slope(&[0.0, 0.0], |x| x.normalize(2.0, 0, 1.0)), [1.0, 1.0]);
}

#[test]
fn norms_of_every_order_agree_with_their_definitions() {
    let x = Tensor::vector(&[3.0, -4.0, 0.0]);
    for (p, want) in [(1.0, 7.0), (2.0, 5.0), (f64::INFINITY, 4.0), (f64::NEG_INFINITY, 0.0), (0.0, 2.0)] {
        assert_eq!(x.norm(p).item::<f32>(), want, "{p}");
    }
    near(&x.norm(3.0), &[91f32.cbrt()]);
    assert_eq!(slope(&[2.0, -2.0, 1.0], |x| x.norm(f64::INFINITY)), [0.5, -0.5, 0.0]);
}

#[test]
fn among_no_elements_none_is_true_and_none_is_false() {
    let none = Tensor::zeros([0]);
    assert!(!none.any().item::<bool>() && none.all().item::<bool>());
    let x = Tensor::from_slice(&[0.0f32, 1.0, f32::NAN, 0.0, 0.0, 0.0], [2, 3]);
    assert_eq!(x.any_dim(1, false).to_vec::<bool>(), [true, false]);
    assert_eq!(x.all_dim(0, true).to_vec::<bool>(), [false; 3]);
    assert_eq!(x.any_dim(1, true).dtype(), DType::Bool);
}

#[test]
fn closeness_knows_infinities_and_nan() {
    let x = Tensor::vector(&[1.0, INF]);
    assert!(x.allclose(&x, 0.0, 0.0));
    assert!(!x.allclose(&Tensor::vector(&[1.0, -INF]), 1.0, 1.0));
    assert!(!x.allclose(&Tensor::vector(&[1.0, 5.0]), 1.0, 1.0));
    let nan = Tensor::vector(&[f32::NAN]);
    assert!(!nan.allclose(&nan, 1.0, 1.0));
}

#[test]
fn joining_keeps_every_bit_of_its_parts() {
    let (a, b) = (Tensor::vector(&[-0.0, f32::NAN]), Tensor::vector(&[INF, -0.0]));
    let bits: Vec<u32> = Tensor::cat(&[&a, &b], 0).to_vec::<f32>().iter().map(|x| x.to_bits()).collect();
    assert_eq!([bits[0], bits[2], bits[3]], [(-0.0f32).to_bits(), INF.to_bits(), (-0.0f32).to_bits()]);
    assert!(f32::from_bits(bits[1]).is_nan());
}

#[test]
fn joining_promotes_types_and_skips_empty_parts() {
    let bools = Tensor::from_slice(&[true, false], [2]);
    let joined = Tensor::cat(&[&bools, &bools], 0);
    assert_eq!((joined.dtype(), joined.to_vec::<bool>()), (DType::Bool, vec![true, false, true, false]));
    let mixed = Tensor::cat(&[&bools, &Tensor::arange(5, 6)], 0);
    assert_eq!((mixed.dtype(), mixed.to_vec::<i32>()), (DType::I32, vec![1, 0, 5]));
    let rows = Tensor::ones([2, 3]);
    let all = Tensor::cat(&[&Tensor::zeros([0]), &rows, &Tensor::zeros([0, 3])], 0);
    assert_eq!(all.shape()[..], [2, 3]);
    assert_eq!(Tensor::cat(&[Tensor::zeros([0]), Tensor::zeros([0])], 0).shape()[..], [0]);
    assert_eq!(Tensor::stack(&[Tensor::scalar(1.0), Tensor::scalar(2.0)], 0).to_vec::<f32>(), [1.0, 2.0]);
}

#[test]
fn cutting_gives_the_parts_pytorch_gives() {
    let sizes = |parts: Vec<Tensor>| parts.iter().map(|p| p.size(0)).collect::<Vec<_>>();
    let x = Tensor::arange(0, 7);
    assert_eq!(sizes(x.split(3, 0)), [3, 3, 1]);
    assert_eq!(sizes(x.chunk(4, 0)), [2, 2, 2, 1]);
    assert_eq!(sizes(x.chunk(5, 0)), [2, 2, 2, 1]);
    assert_eq!(sizes(Tensor::zeros([0]).chunk(3, 0)), [0, 0, 0]);
    assert_eq!(sizes(Tensor::zeros([0]).split(0, 0)), [0]);
    assert_eq!(x.split_sizes(&[2, 0, 5], 0)[2].to_vec::<i32>(), [2, 3, 4, 5, 6]);
    assert_eq!(x.unbind(0)[3].item::<i32>(), 3);
}

#[test]
fn repeating_and_rolling_place_elements_as_pytorch_does() {
    let x = Tensor::arange(0, 3);
    assert_eq!(x.repeat([2, 2]).to_vec::<i32>(), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(x.repeat_interleave(2, None).to_vec::<i32>(), [0, 0, 1, 1, 2, 2]);
    assert_eq!(x.roll(1, 0).to_vec::<i32>(), [2, 0, 1]);
    assert_eq!(x.roll(-4, 0).to_vec::<i32>(), [1, 2, 0]);
    let m = Tensor::arange(0, 6).reshape([2, 3]);
    assert_eq!(m.roll(1, [0isize; 0]).to_vec::<i32>(), [5, 0, 1, 2, 3, 4]);
    assert_eq!(m.tile(2).shape()[..], [2, 6]);
    assert_eq!(m.repeat([0, 1]).shape()[..], [0, 3]);
}

#[test]
fn order_puts_nan_last_and_keeps_ties() {
    let x = Tensor::vector(&[2.0, f32::NAN, 1.0, 2.0]);
    let (values, places) = x.sort(0, false);
    assert_eq!(places.to_vec::<i32>(), [2, 0, 3, 1]);
    assert!(values.to_vec::<f32>()[3].is_nan());
    assert_eq!(x.topk(2, 0, false).1.to_vec::<i32>(), [2, 0]);
    assert_eq!(x.max_with_index(0, false).1.item::<i32>(), 1);
    assert!(x.median().item::<f32>().is_nan());
    assert_eq!(Tensor::vector(&[4.0, 1.0, 3.0, 2.0]).median().item::<f32>(), 2.0);
    assert_eq!(slope(&[1.0, 1.0], |x| x.max_with_index(0, false).0), [1.0, 0.0]);
}

#[test]
fn a_single_number_can_be_ordered() {
    let x = Tensor::scalar(5.0);
    for (value, place) in [x.sort(0, true), x.topk(1, -1, true), x.max_with_index(0, true)] {
        assert_eq!((value.item::<f32>(), place.item::<i32>()), (5.0, 0));
        assert_eq!((value.rank(), place.rank()), (0, 0));
    }
}

#[test]
fn masks_and_triangles_keep_the_type() {
    let x = Tensor::arange(1, 10).reshape([3, 3]);
    assert_eq!(x.tril(0).to_vec::<i32>(), [1, 0, 0, 4, 5, 0, 7, 8, 9]);
    assert_eq!(x.triu(1).dtype(), DType::I32);
    assert_eq!(x.triu(-1).to_vec::<i32>(), [1, 2, 3, 4, 5, 6, 0, 8, 9]);
    assert_eq!(x.gt(4).tril(0).dtype(), DType::Bool);
    let filled = x.masked_fill(&x.gt(2), -1);
    assert_eq!((filled.dtype(), filled.to_vec::<i32>()[2]), (DType::I32, -1));
    let hot = Tensor::from_slice(&[1u8, 0, 2], [3]).one_hot(3);
    assert_eq!(hot.to_vec::<i32>(), [0, 1, 0, 1, 0, 0, 0, 0, 1]);
}

#[test]
fn running_products_and_differences_follow_their_definitions() {
    let x = Tensor::vector(&[2.0, 0.0, 3.0]);
    assert_eq!(x.cumprod(0).to_vec::<f32>(), [2.0, 0.0, 0.0]);
    assert_eq!(slope(&[2.0, 0.0, 3.0], |x| x.cumprod(0)), [1.0, 8.0, 0.0]);
    assert_eq!(Tensor::from_slice(&[1i32, 4, 9, 16], [4]).diff(2, 0).to_vec::<i32>(), [2, 2]);
    assert_eq!(Tensor::from_slice(&[true, true, false], [3]).diff(1, 0).to_vec::<bool>(), [false, true]);
    assert_eq!(Tensor::ones([1]).diff(3, 0).shape()[..], [0]);
}

#[test]
fn the_largest_of_a_window_is_the_first_and_nan() {
    let image = |data: &[f32]| Tensor::from_slice(data, [1, 1, 2, data.len() / 2]);
    let x = image(&[1.0, 1.0, f32::NAN, 0.0, 1.0, 1.0, 0.0, 0.0]).requires_grad(true);
    let y = x.max_pool2d([2, 2], PoolOptions::default());
    assert!(y.to_vec::<f32>()[1].is_nan());
    y.sum().backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn windows_over_the_edge_count_what_pytorch_counts() {
    let x = Tensor::arange(1, 6).to_dtype(DType::F32).reshape([1, 5]);
    let stride = Some([2, 2]);
    let ceil = PoolOptions { stride, ceil_mode: true, ..Default::default() };
    near(&x.max_pool1d(2, ceil), &[2.0, 4.0, 5.0]);
    near(&x.avg_pool1d(2, ceil), &[1.5, 3.5, 5.0]);
    let padded = PoolOptions { stride, padding: [1, 1], ..Default::default() };
    near(&x.max_pool1d(3, padded), &[2.0, 4.0, 5.0]);
    near(&x.avg_pool1d(3, padded), &[1.0, 3.0, 3.0]);
    near(&x.avg_pool1d(3, PoolOptions { count_include_pad: false, ..padded }), &[1.5, 3.0, 4.5]);
}

#[test]
fn an_infinity_stays_where_it_is_averaged() {
    let image: Vec<f32> = (0..15).map(|k| if k == 7 { INF } else { k as f32 }).collect();
    let x = Tensor::from_vec(image, [1, 1, 3, 5]).requires_grad(true);
    let y = x.adaptive_avg_pool2d([2, 3]);
    assert_eq!(y.to_vec::<f32>(), [3.0, INF, 6.0, 8.0, INF, 11.0]);
    // The gradient of one place is infinite: it reaches what that place is made of.
    let seed = Tensor::from_vec(vec![INF, 0.0, 0.0, 0.0, 0.0, 4.0], [1, 1, 2, 3]);
    y.backward_with(Some(&seed), BackwardOptions::default());
    let slope = x.grad().expect("a gradient").to_vec::<f32>();
    let expected = [INF, INF, 0.0, 0.0, 0.0, INF, INF, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0];
    assert_eq!(slope, expected);
}

#[test]
fn an_infinity_stays_where_it_is_interpolated() {
    for (align_corners, expected) in
        [(false, vec![1.0, INF, INF, INF, INF, 3.0]), (true, vec![1.0, INF, INF, INF, INF, 3.0])]
    {
        let mode = Interpolation::Bilinear { align_corners };
        let x = Tensor::vector(&[1.0, INF, 3.0]).reshape([1, 1, 1, 3]);
        assert_eq!(x.interpolate([1, 6], mode).to_vec::<f32>(), expected, "{align_corners}");
        let image: Vec<f32> = (0..16).map(|k| if k == 5 { -INF } else { k as f32 }).collect();
        let finite = Tensor::from_vec((0..16).map(|k| k as f32).collect::<Vec<_>>(), [1, 1, 4, 4]);
        let x = Tensor::from_vec(image, [1, 1, 4, 4]);
        for size in [[4, 4], [8, 8], [3, 3], [7, 5], [2, 9]] {
            let (y, plain) = (x.interpolate(size, mode).to_vec::<f32>(), finite.interpolate(size, mode));
            let touched = y.iter().filter(|y| **y == -INF).count();
            for (y, plain) in y.iter().zip(plain.to_vec::<f32>()) {
                assert!(*y == -INF || *y == plain, "{y} {plain} {size:?}");
            }
            let least = usize::from(!align_corners);
            assert!((least..=size[0] * size[1] / 2).contains(&touched), "{touched} of {size:?}");
        }
        assert_eq!(x.interpolate([4, 4], mode).to_vec::<f32>(), x.to_vec::<f32>(), "of the same size");
    }
}

#[test]
fn adaptive_means_overlap_where_sizes_do_not_divide() {
    let x = Tensor::arange(1, 6).to_dtype(DType::F32).reshape([1, 1, 5]);
    near(&x.adaptive_avg_pool2d([1, 3]), &[1.5, 3.0, 4.5]);
    near(&x.adaptive_avg_pool2d([1, 1]), &[3.0]);
    near(&x.adaptive_avg_pool2d([1, 7]), &[1.0, 1.5, 2.5, 3.0, 3.5, 4.5, 5.0]);
    assert_eq!(x.adaptive_avg_pool2d([2, 5]).shape()[..], [1, 2, 5]);
}

#[test]
fn interpolation_places_pixels_as_pytorch_does() {
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [1, 1, 2, 2]);
    let bilinear = |align_corners| Interpolation::Bilinear { align_corners };
    let row = |mode| x.interpolate([4, 4], mode).select(2, 0);
    near(&row(bilinear(false)), &[1.0, 1.25, 1.75, 2.0]);
    near(&row(bilinear(true)), &[1.0, 4.0 / 3.0, 5.0 / 3.0, 2.0]);
    near(&row(Interpolation::Nearest), &[1.0, 1.0, 2.0, 2.0]);
    near(&x.interpolate_scale([1.0, 1.5], Interpolation::Nearest), &[1.0, 1.0, 2.0, 3.0, 3.0, 4.0]);
    near(&x.interpolate([1, 1], Interpolation::Nearest), &[1.0]);
    near(&x.interpolate([1, 1], bilinear(false)), &[2.5]);
}

#[test]
fn pixels_and_channels_are_exchanged_and_back() {
    let x = Tensor::arange(0, 8).reshape([8, 1, 1]);
    assert_eq!(x.pixel_shuffle(2).to_vec::<i32>(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(x.pixel_shuffle(2).shape()[..], [2, 2, 2]);
    assert_eq!(x.pixel_shuffle(2).pixel_unshuffle(2).shape()[..], [8, 1, 1]);
}

#[test]
fn dropout_scales_what_it_keeps_and_its_gradient_alike() {
    manual_seed(7);
    let x = Tensor::ones([1000]).requires_grad(true);
    let y = x.dropout(0.25, true);
    y.sum().backward();
    let (values, gradient) = (y.to_vec::<f32>(), x.grad().unwrap().to_vec::<f32>());
    assert_eq!(values, gradient);
    let kept = values.iter().filter(|&&v| v != 0.0).count();
    assert!((650..850).contains(&kept), "{kept}");
    assert!(values.iter().all(|&v| v == 0.0 || (v - 4.0 / 3.0).abs() < 1e-6));
    assert_eq!(x.dropout(1.0, true).to_vec::<f32>(), [0.0; 1000]);
    assert_eq!(x.dropout(0.9, false).to_vec::<f32>(), [1.0; 1000]);
    let channels = Tensor::ones([4, 8, 3, 3]).dropout2d(0.5, true).to_vec::<f32>();
    assert!(channels.chunks(9).all(|c| c.iter().all(|&v| v == c[0])));
}

#[test]
fn cross_entropy_ignores_and_survives_large_logits() {
    let logits = matrix(&[1000.0, 0.0, 0.0, 1000.0], 2).requires_grad(true);
    let target = Tensor::from_slice(&[0, -100], [2]);
    let loss = cross_entropy(&logits, &target);
    assert_eq!(loss.item::<f32>(), 0.0);
    loss.backward();
    assert_eq!(logits.grad().unwrap().to_vec::<f32>(), [0.0; 4]);
    let none = Tensor::from_slice(&[-100, -100], [2]);
    assert!(cross_entropy(&logits, &none).item::<f32>().is_nan());
    let wrong = Tensor::from_slice(&[1u8, 1], [2]);
    let each = CrossEntropyOptions { reduction: Reduction::None, ..Default::default() };
    assert_eq!(cross_entropy_with(&logits, &wrong, each).to_vec::<f32>(), [1000.0, 0.0]);
    let alone = cross_entropy(&Tensor::zeros([4]), &Tensor::scalar(2));
    near(&alone, &[4f32.ln()]);
}

#[test]
fn binary_cross_entropy_holds_at_certainty() {
    let p = Tensor::vector(&[0.0, 1.0, 0.0]).requires_grad(true);
    let target = Tensor::vector(&[0.0, 1.0, 1.0]);
    let loss = bce_loss_with(&p, &target, BceOptions { reduction: Reduction::Sum, ..Default::default() });
    assert_eq!(loss.item::<f32>(), 100.0);
    loss.backward();
    near(&p.grad().unwrap(), &[0.0, 0.0, -1e12]);
    let far = Tensor::vector(&[-1000.0, 1000.0]);
    near(&bce_with_logits(&far, &Tensor::vector(&[1.0, 1.0])), &[500.0]);
    assert_eq!(kl_div(&Tensor::vector(&[-1.0]), &Tensor::vector(&[0.0])).item::<f32>(), 0.0);
}

#[test]
fn half_floats_are_computed_wide_and_rounded_once() {
    for dtype in [DType::F16, DType::BF16] {
        let x = matrix(&[0.1, -1.7, 2.3, 0.9, 1.1, -0.4], 2).to_dtype(dtype);
        let wide = x.to_dtype(DType::F32);
        let same = |half: Tensor, full: Tensor| {
            assert_eq!(half.dtype(), dtype);
            assert_eq!(half.to_vec::<f32>(), full.to_dtype(dtype).to_vec::<f32>());
        };
        same(x.softmax(1), wide.softmax(1));
        same(x.gelu(), wide.gelu());
        same(x.layer_norm(3, None, None, 1e-5), wide.layer_norm(3, None, None, 1e-5));
        same(x.var(1), wide.var(1));
        same(mse_loss(&x, &x.zeros_like()), mse_loss(&wide, &wide.zeros_like()));
        let target = Tensor::from_slice(&[0, 2], [2]);
        same(cross_entropy(&x, &target), cross_entropy(&wide, &target));
    }
}

#[test]
fn einsum_takes_diagonals_broadcasts_and_orders_its_result() {
    let x = Tensor::arange(0, 9).reshape([3, 3]);
    assert_eq!(Tensor::einsum("ii", &[&x]).item::<i32>(), 12);
    assert_eq!(Tensor::einsum("ii->i", &[&x]).to_vec::<i32>(), [0, 4, 8]);
    assert_eq!(Tensor::einsum("ba", &[&x]).to_vec::<i32>(), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
    let (a, b) = (Tensor::ones([2, 3, 4]), Tensor::ones([5, 1, 4, 3]));
    assert_eq!(Tensor::einsum("...ij,...jk->...ik", &[&a, &b]).shape()[..], [5, 2, 3, 3]);
    assert_eq!(Tensor::einsum("i,i,i->", &[&x.select(0, 1); 3]).item::<i32>(), 27 + 64 + 125);
}

/// A kernel may see the halves that it multiplies in eights, in fours and one by one.
#[test]
fn a_product_of_halves_and_what_it_is_made_of_can_be_added() {
    let device = default_device();
    for (rows, size) in [(256, 512), (130, 72)] {
        let [a, b] = [[rows, size], [size, size]].map(|shape| Tensor::rand(shape) - 0.5);
        let sum = |device: Device| {
            let [a, b] = [&a, &b].map(|t| t.to_device(device).to_dtype(DType::F16));
            a.realize();
            b.realize();
            let turned = a.flip([1]);
            (a.matmul(&b) + &a + turned).to_dtype(DType::F32).to_vec::<f32>()
        };
        for (x, y) in sum(device).iter().zip(sum(Device::Cpu)) {
            assert!((x - y).abs() <= 0.02, "{x} is not near {y}");
        }
    }
}

volta_testing::main!();
