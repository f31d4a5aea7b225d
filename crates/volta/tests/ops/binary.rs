//! Elementwise ops of two operands, with broadcasting and promotion; `where`.

use crate::reference::{Array, common_shape};
use crate::table::*;
use volta::{DType, Tensor};
use volta_testing::test;

/// Equal shapes first, then broadcasting of every kind, empty ones, none, and large ones.
const SHAPES: &[&[&[usize]]] = &[
    &[&[3, 5], &[3, 5]],
    &[&[3, 5], &[5]],
    &[&[3, 1], &[1, 4]],
    &[&[2, 1, 3], &[4, 1]],
    &[&[], &[2, 3]],
    &[&[2, 3], &[]],
    &[&[], &[]],
    &[&[0, 3], &[3]],
    &[&[1], &[0]],
    &[&[131], &[131]],
    &[&[40, 300], &[300]],
    &[&[40, 1], &[40, 300]],
];

fn truth(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

fn floor_mod(a: f64, b: f64) -> f64 {
    a - b * (a / b).floor()
}

fn rows() -> Vec<Row> {
    const R: Values = Between(-2.0, 2.0);
    const AWAY: Values = AwayFromZero(0.4, 2.5);
    type Entry =
        (&'static str, fn(&Tensor, &Tensor) -> Tensor, fn(f64, f64) -> f64, [Values; 2], &'static [DType]);
    let table: &[Entry] = &[
        ("add", |a, b| a.add(b), |a, b| a + b, [R, R], NUMBERS),
        ("sub", |a, b| a.sub(b), |a, b| a - b, [R, R], NUMBERS),
        ("mul", |a, b| a.mul(b), |a, b| a * b, [R, R], NUMBERS),
        ("div", |a, b| a.div(b), |a, b| a / b, [R, AWAY], FLOATS),
        ("maximum", |a, b| a.maximum(b), f64::max, [R, AWAY], ALL),
        ("minimum", |a, b| a.minimum(b), f64::min, [R, AWAY], ALL),
        ("pow", |a, b| a.pow(b), f64::powf, [Between(0.3, 3.0), R], FLOATS),
        ("remainder", |a, b| a.remainder(b), floor_mod, [OffIntegers, Between(4.0, 5.0)], FLOATS),
    ];
    let mut rows: Vec<Row> = table
        .iter()
        .map(|&(name, call, reference, values, dtypes)| {
            row(name, move |x| call(&x[0], &x[1]), move |x| x[0].zip(&x[1], reference))
                .cases(SHAPES)
                .values(&values)
                .dtypes(dtypes)
                .exact()
        })
        .collect();
    let flat: &[(Entry, Gives)] = &[
        (("lt", |a, b| a.lt(b), |a, b| truth(a < b), [Ties, Ties], ALL), Gives::Always(DType::Bool)),
        (("le", |a, b| a.le(b), |a, b| truth(a <= b), [Ties, Ties], ALL), Gives::Always(DType::Bool)),
        (("gt", |a, b| a.gt(b), |a, b| truth(a > b), [Ties, Ties], ALL), Gives::Always(DType::Bool)),
        (("ge", |a, b| a.ge(b), |a, b| truth(a >= b), [Ties, Ties], ALL), Gives::Always(DType::Bool)),
        (("eq", |a, b| a.eq(b), |a, b| truth(a == b), [Ties, Ties], ALL), Gives::Always(DType::Bool)),
        (("ne", |a, b| a.ne(b), |a, b| truth(a != b), [Ties, Ties], ALL), Gives::Always(DType::Bool)),
        (
            ("logical_and", |a, b| a.logical_and(b), |a, b| truth(a != 0.0 && b != 0.0), [Ties, Ties], ALL),
            Gives::Always(DType::Bool),
        ),
        (
            ("logical_or", |a, b| a.logical_or(b), |a, b| truth(a != 0.0 || b != 0.0), [Ties, Ties], ALL),
            Gives::Always(DType::Bool),
        ),
        (
            (
                "logical_xor",
                |a, b| a.logical_xor(b),
                |a, b| truth((a != 0.0) != (b != 0.0)),
                [Ties, Ties],
                ALL,
            ),
            Gives::Always(DType::Bool),
        ),
        (
            (
                "floor_divide",
                |a, b| a.floor_divide(b),
                |a, b| (a / b).floor(),
                [OffIntegers, Between(4.0, 5.0)],
                FLOATS,
            ),
            Gives::Same,
        ),
        (
            (
                "floor_divide of integers",
                |a, b| a.floor_divide(b),
                |a, b| (a / b).floor(),
                [Between(-20.0, 20.0), AwayFromZero(1.0, 6.0)],
                INTS,
            ),
            Gives::Same,
        ),
        (
            (
                "remainder of integers",
                |a, b| a.remainder(b),
                floor_mod,
                [Between(-20.0, 20.0), AwayFromZero(1.0, 6.0)],
                INTS,
            ),
            Gives::Same,
        ),
        (
            ("pow of integers", |a, b| a.pow(b), f64::powf, [Between(0.0, 3.0), Between(0.0, 4.0)], INTS),
            Gives::Same,
        ),
        (
            ("div of integers", |a, b| a.div(b), |a, b| a / b, [Between(0.0, 9.0), Between(1.0, 6.0)], INTS),
            Gives::Float,
        ),
    ];
    rows.extend(flat.iter().map(|&((name, call, reference, values, dtypes), gives)| {
        row(name, move |x| call(&x[0], &x[1]), move |x| x[0].zip(&x[1], reference))
            .cases(SHAPES)
            .values(&values)
            .dtypes(dtypes)
            .gives(gives)
            .flat()
            .exact()
    }));
    rows.extend(scalar_rows());
    rows.extend(where_rows());
    rows
}

/// A number on either side, by operator and by method.
fn scalar_rows() -> Vec<Row> {
    type Entry = (&'static str, fn(&Tensor) -> Tensor, fn(f64) -> f64, Values);
    const R: Values = Between(-2.0, 2.0);
    const AWAY: Values = AwayFromZero(0.4, 2.5);
    const POSITIVE: Values = Between(0.3, 3.0);
    let table: &[Entry] = &[
        ("x + 1.5", |x| x + 1.5, |x| x + 1.5, R),
        ("1.5 + x", |x| 1.5 + x, |x| 1.5 + x, R),
        ("x - 3", |x| x - 3, |x| x - 3.0, R),
        ("3 - x", |x| 3 - x, |x| 3.0 - x, R),
        ("x * 0.7", |x| x * 0.7, |x| x * 0.7, R),
        ("2 * x", |x| 2 * x, |x| 2.0 * x, R),
        ("x * 1", |x| x * 1, |x| x, R),
        ("x / 3.0", |x| x / 3.0, |x| x / 3.0, R),
        ("3.0 / x", |x| 3.0 / x, |x| 3.0 / x, AWAY),
        ("-x", |x| -x, |x| -x, R),
        ("x.maximum(0.1)", |x| x.maximum(0.1), |x| x.max(0.1), AWAY),
        ("x.minimum(-0.1)", |x| x.minimum(-0.1), |x| x.min(-0.1), AWAY),
        ("x.pow(2.0)", |x| x.pow(2.0), |x| x * x, AWAY),
        ("x.pow(3)", |x| x.pow(3), |x| x * x * x, AWAY),
        ("x.pow(0.5)", |x| x.pow(0.5), f64::sqrt, POSITIVE),
        ("x.pow(-1.0)", |x| x.pow(-1.0), |x| 1.0 / x, AWAY),
        ("x.remainder(5.0)", |x| x.remainder(5.0), |x| floor_mod(x, 5.0), OffIntegers),
    ];
    table
        .iter()
        .map(|&(name, call, reference, values)| {
            let r = row(name, move |x| call(&x[0]), move |x| x[0].map(reference))
                .cases(&[&[&[3, 5]], &[&[]], &[&[0, 2]], &[&[129]]])
                .values(&[values]);
            // A power whose exponent is known may be computed by other means than one that is read.
            if name.contains("pow") { r } else { r.exact() }
        })
        .collect()
}

fn where_rows() -> Vec<Row> {
    let pick = |x: &[Array]| {
        let shape = common_shape(&common_shape(&x[0].shape, &x[1].shape), &x[2].shape);
        let [c, a, b] = [0, 1, 2].map(|k: usize| x[k].broadcast_to(&shape));
        Array::from_fn(&shape, |at| if c.at(at) != 0.0 { a.at(at) } else { b.at(at) })
    };
    let shapes: &[&[&[usize]]] = &[
        &[&[3, 5], &[3, 5], &[3, 5]],
        &[&[5], &[3, 1], &[3, 5]],
        &[&[3, 1], &[], &[4]],
        &[&[], &[2], &[2, 1]],
        &[&[0, 3], &[3], &[1, 3]],
        &[&[30, 300], &[300], &[30, 1]],
    ];
    let scalar = |name: &str, call: fn(&Tensor, &Tensor) -> Tensor, reference: fn(bool, f64) -> f64| {
        row(name, move |x| call(&x[0], &x[1]), move |x| x[0].zip(&x[1], |c, a| reference(c != 0.0, a)))
            .cases(&[&[&[3, 5], &[3, 5]], &[&[3, 1], &[4]], &[&[], &[]], &[&[0], &[0]]])
            .values(&[Truth, Between(-2.0, 2.0)])
            .exact()
    };
    vec![
        row("where", |x| x[0].where_(&x[1], &x[2]), pick)
            .cases(shapes)
            .values(&[Truth, Between(-2.0, 2.0)])
            .dtypes(ALL)
            .exact(),
        scalar("where with a number if true", |c, x| c.where_(-7.0, x), |c, x| if c { -7.0 } else { x }),
        scalar("where with a number if false", |c, x| c.where_(x, 0.5), |c, x| if c { x } else { 0.5 }),
        row(
            "where of a comparison",
            |x| x[0].gt(&x[1]).where_(x[0].mul(3.0), &x[1]),
            |x| x[0].zip(&x[1], |a, b| if a > b { 3.0 * a } else { b }),
        )
        .cases(SHAPES)
        .values(&[Between(-2.0, 2.0), AwayFromZero(2.5, 3.0)])
        .exact(),
    ]
}

checks!(rows());

/// A tensor without axes is like a number: it takes the type of one with axes, unless it is of a higher kind.
#[test]
fn single_numbers_take_the_type_of_what_they_meet() {
    use DType::*;
    let table = [
        (F16, F32, F16),
        (BF16, F16, BF16),
        (F32, F16, F32),
        (U8, I32, U8),
        (I32, U8, I32),
        (Bool, I32, I32),
        (I32, F32, F32),
        (I32, F16, F16),
        (F16, I32, F16),
    ];
    for (many, single, expected) in table {
        let (x, y) = (Tensor::ones([3]).to_dtype(many), Tensor::scalar(2.0).to_dtype(single));
        for (name, result) in [("mul", x.mul(&y)), ("back", y.mul(&x)), ("where", x.gt(0).where_(&x, &y))] {
            assert_eq!(result.dtype(), expected, "{name} of {many} with one {single}");
        }
        assert_eq!(y.mul(&y).dtype(), single);
        let product = x.mul(&y).to_dtype(F32).to_vec::<f32>();
        assert_eq!(product, [2.0; 3], "{many} with one {single}");
    }
    // It is not rounded to halves before.
    let x = Tensor::full([2], 0.01).to_dtype(F16);
    let product = x.mul(Tensor::scalar(1e5));
    assert_eq!(product.dtype(), F16);
    assert!((product.to_vec::<f32>()[0] - 1000.0).abs() < 1.0, "{product:?}");
    assert_eq!(Tensor::scalar(1e6).div(product.div(product.clone())).to_vec::<f32>(), [f32::INFINITY; 2]);
    assert_eq!(x.div(Tensor::scalar(1e5)).dtype(), F16);
}

/// Every pair of types meets in the promoted one, in values as in type.
#[test(needs(f64))]
fn two_types_meet_in_the_promoted_one() {
    for &a in ALL {
        for &b in ALL {
            let (x, y) = (Array::new(&[3], vec![1.0, 0.0, 1.0]), Array::new(&[3], vec![1.0, 1.0, 0.0]));
            let sum = tensor(&x, a).maximum(tensor(&y, b));
            assert_eq!(sum.dtype(), a.promote(b), "{a} with {b}");
            assert_eq!(array(&sum).data, [1.0, 1.0, 1.0], "{a} with {b}");
        }
    }
}
