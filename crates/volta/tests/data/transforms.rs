//! Transforms beside plain versions of themselves.

use crate::{bytes, floats};
use volta::data::{
    Array, CenterCrop, Dataset, Elements, Normalize, OneHot, Pad, Pass, RandomCrop, RandomHorizontalFlip,
    Resize, TensorDataset, ToFloat, Transform,
};
use volta_testing::test;

/// One image of 2 channels, 3 × 4, whose pixels count from 1.
const SHAPE: [usize; 3] = [2, 3, 4];

fn image() -> TensorDataset {
    repeated(1)
}

fn repeated(count: usize) -> TensorDataset {
    let pixels: Vec<u8> = (0..count).flat_map(|_| 1..=24).collect();
    TensorDataset::new(
        Array::new(pixels, &[&[count], &SHAPE[..]].concat()),
        Array::new(vec![2i32; count], &[count]),
    )
}

/// The pixel of a channel, row and column; 0 outside.
fn pixel(c: usize, y: i64, x: i64) -> u8 {
    let inside = (0..3).contains(&y) && (0..4).contains(&x);
    if inside { (c as i64 * 12 + y * 4 + x + 1) as u8 } else { 0 }
}

fn naive(height: i64, width: i64, at: impl Fn(i64, i64) -> (i64, i64)) -> Vec<u8> {
    let mut out = Vec::new();
    for c in 0..2 {
        for y in 0..height {
            for x in 0..width {
                let (y, x) = at(y, x);
                out.push(pixel(c, y, x));
            }
        }
    }
    out
}

fn apply(transform: impl Transform + 'static) -> Array<'static> {
    image().map(transform).get(0).expect("a transformed image").input.into_owned()
}

#[test]
fn places_move_as_a_plain_loop_moves_them() {
    /// A transform, the size it gives, and what it gives.
    type Case = (Box<dyn Transform>, [usize; 2], Vec<u8>);
    let rows: [Case; 6] = [
        (Box::new(RandomHorizontalFlip::new(1.0)), [3, 4], naive(3, 4, |y, x| (y, 3 - x))),
        (Box::new(RandomHorizontalFlip::new(0.0)), [3, 4], naive(3, 4, |y, x| (y, x))),
        (Box::new(CenterCrop::new(1, 2)), [1, 2], naive(1, 2, |y, x| (y + 1, x + 1))),
        (Box::new(CenterCrop::new(3, 4)), [3, 4], naive(3, 4, |y, x| (y, x))),
        (Box::new(Pad::new(2)), [7, 8], naive(7, 8, |y, x| (y - 2, x - 2))),
        (Box::new(Pad::sides(1, 0, 0, 3)), [4, 7], naive(4, 7, |y, x| (y - 1, x))),
    ];
    for (k, (transform, [height, width], expected)) in rows.into_iter().enumerate() {
        let found = apply(transform);
        assert_eq!(found.shape()[..], [2, height, width], "row {k}");
        assert_eq!(bytes(&found), expected, "row {k}");
    }
}

#[test]
fn random_crops_are_windows_of_the_padded_image_and_reach_every_place() {
    let data = repeated(400).map(RandomCrop::new(2, 3).with_padding(1));
    let windows: Vec<(i64, i64, Vec<u8>)> = (-1..3)
        .flat_map(|top| (-1..3).map(move |left| (top, left, naive(2, 3, |y, x| (y + top, x + left)))))
        .collect();
    let mut met = vec![0; windows.len()];
    for k in 0..data.len() {
        let found = bytes(&data.get(k).expect("a crop").input);
        let place = windows.iter().position(|(.., w)| *w == found).expect("a window of the padded image");
        met[place] += 1;
    }
    assert!(met.iter().all(|&n| n > 5), "{met:?}");
}

#[test]
fn a_crop_that_sees_nothing_but_padding_is_all_zeros() {
    let data = repeated(400).map(RandomCrop::new(2, 2).with_padding(5));
    let windows: Vec<Vec<u8>> =
        (-5..7).flat_map(|top| (-5..8).map(move |left| naive(2, 2, |y, x| (y + top, x + left)))).collect();
    let crops: Vec<Vec<u8>> = (0..400).map(|k| bytes(&data.get(k).expect("a crop").input)).collect();
    assert!(crops.iter().all(|crop| windows.contains(crop)));
    let blank = crops.iter().filter(|crop| crop.iter().all(|&pixel| pixel == 0)).count();
    assert!((100..400).contains(&blank), "{blank} of 400");
}

#[test]
fn flips_happen_as_often_as_they_should_and_change_with_epoch_and_seed() {
    let data = repeated(400).map(RandomHorizontalFlip::new(0.25));
    let flips = |pass: Pass| -> Vec<bool> {
        (0..400).map(|k| bytes(&data.get_in(k, pass).expect("an image").input)[0] == 4).collect()
    };
    let first = flips(Pass { seed: 1, epoch: 0 });
    let count = first.iter().filter(|f| **f).count();
    assert!((60..140).contains(&count), "{count} of 400");
    assert_eq!(first, flips(Pass { seed: 1, epoch: 0 }));
    assert_ne!(first, flips(Pass { seed: 1, epoch: 1 }));
    assert_ne!(first, flips(Pass { seed: 2, epoch: 0 }));
}

#[test]
fn values_are_scaled_and_normalised_channel_by_channel() {
    let scaled = apply(ToFloat);
    let expected: Vec<f32> = (1..=24).map(|k| k as f32 / 255.0).collect();
    assert_eq!(floats(&scaled), expected);
    let normal = floats(&apply((ToFloat, Normalize::new(&[0.5, 0.25], &[2.0, 4.0]))));
    for (k, (&found, &x)) in normal.iter().zip(&expected).enumerate() {
        let (mean, deviation) = if k < 12 { (0.5, 2.0) } else { (0.25, 4.0) };
        assert_eq!(found, (x - mean) / deviation, "element {k}");
    }
    let one = floats(&apply((ToFloat, Normalize::new(&[0.5], &[2.0]))));
    assert_eq!(one[23], (expected[23] - 0.5) / 2.0);
}

#[test]
fn a_class_becomes_a_row_with_a_one() {
    let sample = image().map_target(OneHot::new(4));
    let target = sample.get(0).expect("class 2 of 4").target.into_owned();
    assert_eq!((target.shape()[..].to_vec(), floats(&target)), (vec![4], vec![0.0, 0.0, 1.0, 0.0]));
    let error = image().map_target(OneHot::new(2)).get(0).unwrap_err();
    assert!(error.message().contains("no class 2 among 2"), "{error}");
}

#[test]
fn unsigned_numbers_are_classes_and_become_floats() {
    let large = 3_000_000_000u32;
    let data = TensorDataset::new(Array::new(vec![0, large], &[1, 2]), Array::new(vec![1u32], &[1]));
    let sample = data.map(ToFloat).map_target(OneHot::new(3));
    let sample = sample.get(0).expect("class 1 of 3");
    assert_eq!((floats(&sample.input), floats(&sample.target)), (vec![0.0, 3e9], vec![0.0, 1.0, 0.0]));
    let tensor = volta::Tensor::from_vec(vec![large, 1], [2]);
    let array = Array::from_tensor(&tensor).expect("two numbers");
    assert_eq!(*array.elements(), Elements::from(vec![large, 1]));
}

/// Resizing by the definition: every new pixel is the mean of the old ones under its triangle.
fn resized_slowly(pixels: &[f32], from: [usize; 2], to: [usize; 2]) -> Vec<f32> {
    let weight = |old: usize, new: usize, axis: usize| {
        let step = from[axis] as f64 / to[axis] as f64;
        let away = (old as f64 + 0.5) - (new as f64 + 0.5) * step;
        (1.0 - (away / step.max(1.0)).abs()).max(0.0)
    };
    let mut out = Vec::new();
    for plane in pixels.chunks(from[0] * from[1]) {
        for ty in 0..to[0] {
            for tx in 0..to[1] {
                let (mut sum, mut total) = (0.0, 0.0);
                for y in 0..from[0] {
                    for x in 0..from[1] {
                        let w = weight(y, ty, 0) * weight(x, tx, 1);
                        sum += w * f64::from(plane[y * from[1] + x]);
                        total += w;
                    }
                }
                out.push((sum / total) as f32);
            }
        }
    }
    out
}

#[test]
fn resizing_agrees_with_its_definition() {
    let pixels: Vec<f32> = (1..=24).map(|k| ((k * 37) % 101) as f32).collect();
    let data = TensorDataset::new(Array::new(pixels.clone(), &[1, 2, 3, 4]), Array::new(vec![0i32], &[1]));
    for to in [[3, 4], [6, 8], [2, 2], [1, 1], [5, 3], [7, 1], [1, 9]] {
        let data = data.clone().map(Resize::new(to[0], to[1]));
        let found = data.get(0).expect("a resized image").input.into_owned();
        assert_eq!(found.shape()[..], [2, to[0], to[1]]);
        for (a, b) in floats(&found).iter().zip(resized_slowly(&pixels, [3, 4], to)) {
            assert!((a - b).abs() < 1e-3, "{to:?}: {a} {b}");
        }
    }
    let bytes = bytes(&apply(Resize::new(1, 1)));
    assert_eq!(bytes.len(), 2);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let rows: [(Box<dyn Transform>, &str); 5] = [
        (Box::new(CenterCrop::new(4, 4)), "an image of [3, 4] has no crop of [4, 4]"),
        (Box::new(RandomCrop::new(6, 4).with_padding(1)), "padded by 1 has no crop of [6, 4]"),
        (Box::new(Normalize::new(&[0.5], &[1.0])), "only f32 can be normalised"),
        (Box::new((ToFloat, Normalize::new(&[0.; 3], &[1.; 3]))), "3 channels do not fit shape [2, 3, 4]"),
        (Box::new(Resize::new(0, 4)), "cannot become"),
    ];
    for (transform, text) in rows {
        let error = image().map(transform).get(0).unwrap_err();
        assert!(error.message().contains(text), "{error}");
    }
    assert!(Normalize::try_new(&[0.0], &[0.0]).is_err());
    assert!(Normalize::try_new(&[0.0], &[1.0, 2.0]).is_err());
}

#[test]
fn other_types_move_too() {
    let data = TensorDataset::new(Array::new(vec![1i64, 2, 3, 4], &[1, 2, 2]), Array::new(vec![0i32], &[1]));
    let flipped = data.map(RandomHorizontalFlip::new(1.0));
    let sample = flipped.get(0).expect("an image");
    assert_eq!(*sample.input.elements(), Elements::from(vec![2i64, 1, 4, 3]));
}
