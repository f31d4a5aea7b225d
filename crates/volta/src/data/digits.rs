//! Digits that the program draws itself, for where there are no files: strokes turned, slanted, scaled, shifted, drawn
//! thick or thin, and covered with noise.

use super::array::Array;
use super::dataset::{Dataset, Pass, Sample};
use super::sample_rng::{SampleRng, Stream};
use crate::error::Result;
use std::f32::consts::TAU;

const SIDE: usize = 28;

type Point = [f32; 2];

/// The strokes of a digit in a square from 0 to 1, y downwards.
enum Stroke {
    Line(&'static [Point]),
    /// Centre and radii.
    Ellipse(Point, Point),
    /// The points of a line, turned by half a circle.
    Turned(&'static [Point]),
}

const SIX: &[Point] = &[
    [0.68, 0.08],
    [0.45, 0.22],
    [0.29, 0.48],
    [0.25, 0.72],
    [0.37, 0.90],
    [0.58, 0.92],
    [0.74, 0.78],
    [0.71, 0.58],
    [0.53, 0.49],
    [0.35, 0.57],
    [0.26, 0.71],
];

const STROKES: [&[Stroke]; 10] = [
    &[Stroke::Ellipse([0.5, 0.5], [0.29, 0.42])],
    &[Stroke::Line(&[[0.34, 0.26], [0.53, 0.08], [0.53, 0.92]])],
    &[Stroke::Line(&[
        [0.24, 0.30],
        [0.31, 0.14],
        [0.50, 0.08],
        [0.69, 0.14],
        [0.75, 0.32],
        [0.65, 0.50],
        [0.24, 0.91],
        [0.79, 0.91],
    ])],
    &[Stroke::Line(&[
        [0.25, 0.15],
        [0.46, 0.08],
        [0.67, 0.14],
        [0.71, 0.31],
        [0.60, 0.44],
        [0.44, 0.47],
        [0.64, 0.53],
        [0.76, 0.69],
        [0.68, 0.86],
        [0.45, 0.93],
        [0.22, 0.84],
    ])],
    &[Stroke::Line(&[[0.62, 0.92], [0.62, 0.08], [0.20, 0.65], [0.82, 0.65]])],
    &[Stroke::Line(&[
        [0.74, 0.09],
        [0.32, 0.09],
        [0.28, 0.46],
        [0.50, 0.39],
        [0.72, 0.49],
        [0.77, 0.69],
        [0.66, 0.87],
        [0.43, 0.93],
        [0.22, 0.83],
    ])],
    &[Stroke::Line(SIX)],
    &[Stroke::Line(&[[0.21, 0.09], [0.79, 0.09], [0.44, 0.92]])],
    &[Stroke::Ellipse([0.5, 0.29], [0.20, 0.20]), Stroke::Ellipse([0.5, 0.71], [0.25, 0.21])],
    &[Stroke::Turned(SIX)],
];

impl Stroke {
    fn points(&self) -> Vec<Point> {
        /// Straight pieces of an ellipse.
        const PIECES: usize = 16;
        match self {
            Stroke::Line(points) => points.to_vec(),
            Stroke::Turned(points) => points.iter().map(|&[x, y]| [1.0 - x, 1.0 - y]).collect(),
            Stroke::Ellipse(centre, radius) => (0..=PIECES)
                .map(|k| {
                    let (sin, cos) = (k as f32 * TAU / PIECES as f32).sin_cos();
                    [centre[0] + radius[0] * cos, centre[1] + radius[1] * sin]
                })
                .collect(),
        }
    }
}

/// How one image differs from the next; lengths in pixels, angles in radians.
struct Hand {
    size: Point,
    slant: f32,
    angle: f32,
    centre: Point,
    thickness: f32,
    ink: f32,
    noise: f32,
}

impl Hand {
    fn new(draw: &mut SampleRng) -> Hand {
        let mut around = |middle: f32, spread: f32| draw.between(middle - spread, middle + spread);
        let size = around(20.0, 3.0);
        let middle = SIDE as f32 / 2.0;
        Hand {
            size: [size * around(0.9, 0.1), size],
            slant: around(0.0, 0.2),
            angle: around(0.0, 0.2),
            centre: [around(middle, 2.0), around(middle, 2.0)],
            thickness: around(2.3, 0.9),
            ink: around(0.9, 0.1),
            noise: around(0.04, 0.04),
        }
    }

    fn place(&self, [x, y]: Point) -> Point {
        let (y, sideways) = ((y - 0.5) * self.size[1], (x - 0.5) * self.size[0]);
        let x = sideways - self.slant * y;
        let (sin, cos) = self.angle.sin_cos();
        [self.centre[0] + cos * x - sin * y, self.centre[1] + sin * x + cos * y]
    }
}

/// How far a point is from the line between two others.
fn distance(p: Point, a: Point, b: Point) -> f32 {
    let (along, to) = ([b[0] - a[0], b[1] - a[1]], [p[0] - a[0], p[1] - a[1]]);
    let length = (along[0] * along[0] + along[1] * along[1]).max(1e-6);
    let t = ((to[0] * along[0] + to[1] * along[1]) / length).clamp(0.0, 1.0);
    (to[0] - t * along[0]).hypot(to[1] - t * along[1])
}

/// Adds a stroke to the ink, from 0 to 1 a pixel.
fn trace(ink: &mut [f32], a: Point, b: Point, thickness: f32) {
    let reach = thickness / 2.0 + 1.0;
    let span = |k: usize| {
        let (low, high) = (a[k].min(b[k]) - reach, a[k].max(b[k]) + reach);
        low.max(0.0) as usize..(high.max(0.0) as usize + 1).min(SIDE)
    };
    for y in span(1) {
        for x in span(0) {
            let away = distance([x as f32 + 0.5, y as f32 + 0.5], a, b);
            let covered = (thickness / 2.0 + 0.5 - away).clamp(0.0, 1.0);
            let pixel = &mut ink[y * SIDE + x];
            *pixel = pixel.max(covered);
        }
    }
}

/// Digits from 0 to 9 drawn by rule: 28 × 28 bytes, one channel, in MNIST's way. Seed and index say all about an image;
/// take another seed for the images to test on.
///
/// ```
/// use volta::data::{Dataset, SyntheticDigits};
/// let digits = SyntheticDigits::new(1000, 7);
/// assert_eq!(digits.get(3)?.input.shape()[..], [1, 28, 28]);
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SyntheticDigits {
    count: usize,
    seed: u64,
}

impl SyntheticDigits {
    /// `count` images.
    pub fn new(count: usize, seed: u64) -> SyntheticDigits {
        SyntheticDigits { count, seed }
    }
}

impl Dataset for SyntheticDigits {
    fn len(&self) -> usize {
        self.count
    }

    fn get(&self, index: usize) -> Result<Sample<'_>> {
        let mut draw = SampleRng::new(Pass { seed: self.seed, epoch: 0 }, Stream::Digit, index);
        let class = draw.below(STROKES.len());
        let hand = Hand::new(&mut draw);
        let mut ink = [0f32; SIDE * SIDE];
        for stroke in STROKES[class] {
            let points: Vec<Point> = stroke.points().into_iter().map(|p| hand.place(p)).collect();
            for pair in points.windows(2) {
                trace(&mut ink, pair[0], pair[1], hand.thickness);
            }
        }
        let pixels: Vec<u8> = ink
            .iter()
            .map(|&covered| {
                let noise = draw.between(-hand.noise, hand.noise);
                ((covered * hand.ink + noise).clamp(0.0, 1.0) * 255.0).round() as u8
            })
            .collect();
        Ok(Sample { input: Array::try_new(pixels, &[1, SIDE, SIDE])?, target: Array::scalar(class as i32) })
    }
}
