//! Casts between all types.

use crate::table::*;
use volta::DType;
use volta_testing::test;

/// Floats truncate, integers wrap, anything but zero is true.
fn cast(x: f64, to: DType) -> f64 {
    stored(if to.is_float() || to == DType::Bool { x } else { x.trunc() }, to)
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for &to in ALL {
        // Every type is tried as the source; what all targets can hold.
        let r =
            row(format!("to_dtype({to})"), move |x| x[0].to_dtype(to), move |x| x[0].map(|v| cast(v, to)))
                .cases(&[&[&[3, 5]], &[&[]], &[&[0]], &[&[77]], &[&[60, 301]]])
                .values(&[Between(0.0, 100.0)])
                .dtypes(ALL)
                .gives(Gives::Always(to))
                .exact();
        // Rounded to fewer bits a difference quotient is a staircase.
        rows.push(if to == DType::F64 { r } else { r.flat() });
    }
    let negative = [DType::I32, DType::I64];
    for to in negative {
        rows.push(
            row(format!("negative to {to}"), move |x| x[0].to_dtype(to), move |x| x[0].map(|v| cast(v, to)))
                .cases(&[&[&[41]]])
                .values(&[Between(-100.0, 100.0)])
                .dtypes(FLOATS)
                .gives(Gives::Always(to))
                .flat()
                .exact(),
        );
    }
    rows.push(
        row(
            "there and back through f32",
            |x| x[0].to_dtype(DType::F32).to_dtype(x[0].dtype()).mul(&x[0]),
            |x| x[0].map(|v| f64::from(v as f32) * v),
        )
        .cases(&[&[&[41]]])
        .dtypes(FLOATS)
        .flat()
        .exact(),
    );
    rows
}

checks!(rows());

/// The gradient passes a cast in its own type and comes out in the source's.
#[test(needs(f64))]
fn the_gradient_of_a_cast_is_cast_back() {
    for &from in FLOATS {
        for &to in FLOATS {
            let x = volta::Tensor::full_of([3], 1.5, from).requires_grad(true);
            let y = x.to_dtype(to).mul(3.0);
            assert_eq!(y.dtype(), to);
            y.sum().backward();
            let g = x.grad().expect("a cast between floats lets the gradient through");
            assert_eq!(g.dtype(), from, "{from} to {to}");
            assert_eq!(array(&g).data, [3.0; 3], "{from} to {to}");
        }
    }
}
