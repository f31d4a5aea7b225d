//! Tests of both passes as a whole, against plain loops.

mod reference;
mod run;

use super::isa::Level;
use super::{AttentionShape, Rows, backward, forward};
use reference::{Inputs, Outputs, inputs, noise, reference};
use run::{Broadcast, Layout, run};

const FULL: Broadcast = [false; 4];

fn shape(
    [batch, heads, queries, keys]: [usize; 4],
    width: usize,
    value_width: usize,
    causal: bool,
) -> AttentionShape {
    AttentionShape {
        batch,
        heads,
        queries,
        keys,
        width,
        value_width,
        scale: 1.0 / (width.max(1) as f64).sqrt(),
        causal,
    }
}

/// A mask of the full shape that is the same along the broadcast dimensions.
fn mask(s: &AttentionShape, broadcast: Broadcast, value: impl Fn(usize) -> f64) -> Vec<f64> {
    let sizes = run::sizes(s)[4];
    (0..sizes.iter().product())
        .map(|i| {
            let (mut rest, mut at, mut step) = (i, 0, 1);
            for d in (0..4).rev() {
                if !broadcast[d] {
                    at += rest % sizes[d] * step;
                    step *= sizes[d];
                }
                rest /= sizes[d];
            }
            value(at)
        })
        .collect()
}

fn parts(x: &Outputs) -> [(&'static str, &[f64]); 6] {
    [("out", &x.out), ("lse", &x.lse), ("dq", &x.dq), ("dk", &x.dk), ("dv", &x.dv), ("dmask", &x.dmask)]
}

fn assert_close(got: &Outputs, want: &Outputs, tolerance: f64, what: &str) {
    for ((name, got), (_, want)) in parts(got).into_iter().zip(parts(want)) {
        assert_eq!(got.len(), want.len());
        for (i, (g, w)) in got.iter().zip(want).enumerate() {
            let near = g == w || (g - w).abs() <= tolerance * (1.0 + w.abs());
            assert!(near, "{what}: {name}[{i}] is {g}, not {w}");
        }
    }
}

/// Compares with the reference: each level, both types, one and two threads (which
/// have to agree to the bit).
fn check(x: &Inputs, layout: Layout, broadcast: Broadcast) {
    let want = reference(x);
    for level in Level::available() {
        let what = format!("{level:?} {layout:?} {:?}", x.shape);
        let one = run::<f32>(x, level, 1, layout, broadcast);
        assert_close(&one, &want, 2e-5, &what);
        assert_eq!(one, run::<f32>(x, level, 2, layout, broadcast), "{what}");
        assert_eq!(one, run::<f32>(x, level, 7, layout, broadcast), "{what}");
        let one = run::<f64>(x, level, 1, layout, broadcast);
        assert_close(&one, &want, 1e-13, &what);
        assert_eq!(one, run::<f64>(x, level, 2, layout, broadcast), "{what}");
    }
}

#[test]
fn sizes_and_widths() {
    for causal in [false, true] {
        for (sizes, width, value_width) in [
            ([1, 1, 1, 1], 1, 1),
            ([2, 3, 5, 5], 4, 4),
            ([1, 2, 33, 33], 16, 16),
            ([1, 1, 70, 131], 7, 19),
            ([1, 1, 131, 70], 33, 5),
            ([1, 1, 3, 300], 24, 40),
            ([1, 1, 300, 3], 8, 48),
            ([1, 1, 140, 261], 16, 8),
            ([1, 3, 65, 65], 64, 64),
        ] {
            let x = inputs(shape(sizes, width, value_width, causal), None, false);
            check(&x, Layout::Contiguous, FULL);
        }
    }
}

#[test]
fn layouts() {
    for causal in [false, true] {
        for layout in [Layout::HeadsInside, Layout::ColumnMajor, Layout::Reversed] {
            for (sizes, width, value_width) in [([2, 3, 37, 41], 16, 32), ([1, 2, 66, 135], 9, 6)] {
                let s = shape(sizes, width, value_width, causal);
                let m = mask(&s, FULL, |i| noise(1, i as u64)[0]);
                check(&inputs(s, Some(m), true), layout, FULL);
            }
        }
    }
}

#[test]
fn broadcast_masks() {
    for causal in [false, true] {
        for bits in 0..16 {
            let broadcast = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let s = shape([2, 2, 19, 35], 8, 8, causal);
            let m = mask(&s, broadcast, |i| noise(1, i as u64)[0]);
            check(&inputs(s, Some(m), false), Layout::Contiguous, broadcast);
        }
    }
}

#[test]
fn masks_that_hide() {
    for causal in [false, true] {
        // More than one block of keys, of which whole blocks are hidden from some
        // queries, and everything from others.
        let s = shape([1, 2, 20, 300], 8, 8, causal);
        let hidden = |i: usize| {
            let (query, key) = (i / 300 % 20, i % 300);
            query % 5 == 1
                || (query % 5 == 2 && key < 140)
                || (query % 5 == 3 && key > 50)
                || (i * 7919).is_multiple_of(5)
        };
        let value = |i| if hidden(i) { f64::NEG_INFINITY } else { 0.0 };
        let x = inputs(s, Some(mask(&s, FULL, value)), true);
        check(&x, Layout::Contiguous, FULL);
        let y = run::<f32>(&x, Level::best(), 2, Layout::Contiguous, FULL);
        assert_eq!(y.lse[1], f64::NEG_INFINITY);
        assert!(y.out[8..16].iter().chain(&y.dq[8..16]).all(|&x| x == 0.0));
    }
}

#[test]
fn large_scores_stay_stable() {
    for causal in [false, true] {
        let mut s = shape([1, 1, 40, 300], 16, 8, causal);
        s.scale = 300.0;
        let x = inputs(s, None, false);
        let y = run::<f32>(&x, Level::best(), 1, Layout::Contiguous, FULL);
        assert!(parts(&y).iter().all(|(_, p)| p.iter().all(|x| x.is_finite())));
        let y = run::<f64>(&x, Level::best(), 1, Layout::Contiguous, FULL);
        assert_close(&y, &reference(&x), 1e-9, "large");
    }
}

#[test]
fn negative_and_zero_scale() {
    for scale in [-0.7, 0.0] {
        let mut s = shape([1, 2, 30, 30], 8, 8, true);
        s.scale = scale;
        check(&inputs(s, None, true), Layout::Contiguous, FULL);
    }
}

#[test]
fn empty_sizes() {
    for causal in [false, true] {
        for (sizes, width, value_width) in [
            ([0, 2, 3, 4], 8, 8),
            ([2, 0, 3, 4], 8, 8),
            ([2, 2, 0, 4], 8, 8),
            ([2, 2, 3, 0], 8, 8),
            ([2, 2, 3, 4], 0, 8),
            ([2, 2, 3, 4], 8, 0),
            ([0, 0, 0, 0], 0, 0),
        ] {
            let x = inputs(shape(sizes, width, value_width, causal), None, true);
            check(&x, Layout::Contiguous, FULL);
        }
    }
}

#[test]
fn nan_reaches_the_output() {
    for causal in [false, true] {
        let mut x = inputs(shape([1, 1, 4, 4], 8, 8, causal), None, false);
        x.q[8 * 2] = f64::NAN;
        for level in Level::available() {
            let y = run::<f32>(&x, level, 1, Layout::Contiguous, FULL);
            assert!(y.out[16..24].iter().all(|x| x.is_nan()), "{level:?}");
            assert!(y.out[..16].iter().all(|x| x.is_finite()), "{level:?}");
        }
    }
}

/// The sum of all results weighted by the gradients that flow into them.
fn loss(x: &Inputs) -> f64 {
    let y = run::<f64>(x, Level::best(), 1, Layout::Contiguous, FULL);
    let weigh = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    weigh(&y.out, &x.grad) + weigh(&y.lse, x.grad_lse.as_ref().expect("given"))
}

#[test]
fn finite_differences() {
    for causal in [false, true] {
        let s = shape([1, 2, 6, 7], 5, 3, causal);
        let m = mask(&s, FULL, |i| noise(1, i as u64)[0]);
        let x = inputs(s, Some(m), true);
        let y = run::<f64>(&x, Level::best(), 1, Layout::Contiguous, FULL);
        let pick: [fn(&mut Inputs) -> &mut Vec<f64>; 4] =
            [|x| &mut x.q, |x| &mut x.k, |x| &mut x.v, |x| x.mask.as_mut().expect("given")];
        for (pick, grad) in pick.iter().zip([&y.dq, &y.dk, &y.dv, &y.dmask]) {
            for (i, want) in grad.iter().enumerate() {
                let step = 1e-5;
                let moved = |by: f64| {
                    let mut x = x.clone();
                    pick(&mut x)[i] += by;
                    loss(&x)
                };
                let slope = (moved(step) - moved(-step)) / (2.0 * step);
                assert!((slope - want).abs() < 1e-8, "{i}: {slope} {want}");
            }
        }
    }
}

#[test]
fn public_functions() {
    let s = shape([2, 2, 70, 70], 16, 16, true);
    let x = inputs(s, None, false);
    let want = reference(&x);
    let rows =
        |data: &[f64]| Rows { data: data.as_ptr(), batch: 2 * 70 * 16, head: 70 * 16, row: 16, col: 1 };
    let mut got = want.clone();
    for part in [&mut got.out, &mut got.lse, &mut got.dq, &mut got.dk, &mut got.dv] {
        part.fill(f64::NAN);
    }
    let (q, k, v) = (rows(&x.q), rows(&x.k), rows(&x.v));
    // SAFETY: all arrays have the sizes of the shape.
    unsafe {
        let out = Rows { data: got.out.as_mut_ptr().cast_const(), ..rows(&x.grad) };
        forward(&s, q, k, v, None, out, got.lse.as_mut_ptr());
        let grad = rows(&x.grad);
        let [dq, dk, dv] = [&mut got.dq, &mut got.dk, &mut got.dv]
            .map(|x| Rows { data: x.as_mut_ptr().cast_const(), ..rows(&x[..]) });
        let lse = got.lse.as_ptr();
        backward(&s, q, k, v, None, out, lse, grad, None, dq, dk, dv, None);
    }
    assert_close(&got, &want, 1e-13, "public");
}
