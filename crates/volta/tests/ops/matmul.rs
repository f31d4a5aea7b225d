//! Matrix products of every rank pair, on both sides of the sizes a kernel blocks by.

use crate::reference::Array;
use crate::table::*;
use volta::Tensor;
use volta_testing::test;

/// Vectors, matrices, batches on either side, batches that broadcast.
const PAIRS: &[&[&[usize]]] = &[
    &[&[3, 5], &[5, 4]],
    &[&[5], &[5]],
    &[&[3, 5], &[5]],
    &[&[5], &[5, 4]],
    &[&[2, 3, 5], &[5]],
    &[&[5], &[2, 5, 4]],
    &[&[2, 3, 5], &[5, 4]],
    &[&[3, 5], &[2, 5, 4]],
    &[&[2, 3, 5], &[2, 5, 4]],
    &[&[1, 3, 5], &[2, 5, 4]],
    &[&[2, 1, 3, 5], &[3, 5, 4]],
    &[&[2, 1, 3, 5], &[1, 3, 5, 2]],
    &[&[2, 2, 3, 5], &[5, 4]],
    &[&[1, 1], &[1, 1]],
];

/// An extent of zero in every place.
const EMPTY: &[&[&[usize]]] = &[
    &[&[0, 5], &[5, 4]],
    &[&[3, 0], &[0, 4]],
    &[&[3, 5], &[5, 0]],
    &[&[0], &[0]],
    &[&[0, 3, 5], &[5, 4]],
    &[&[0, 2, 3], &[0, 3, 4]],
];

/// Tails and blocks.
const LARGE: &[&[&[usize]]] = &[
    &[&[67, 65], &[65, 33]],
    &[&[1, 300], &[300, 129]],
    &[&[130, 300], &[300, 1]],
    &[&[7, 257], &[257, 9]],
    &[&[3, 40, 70], &[3, 70, 50]],
    &[&[2, 33, 20], &[20, 31]],
    &[&[150, 2], &[2, 140]],
    // One row or few for every item, and many terms.
    &[&[3, 1, 300], &[3, 300, 64]],
    &[&[3, 2, 300], &[3, 300, 5]],
];

fn product(x: &[Array]) -> Array {
    x[0].matmul(&x[1])
}

fn rows() -> Vec<Row> {
    let plain = |name: &str, cases| {
        row(name, |x| x[0].matmul(&x[1]), product).cases(cases).values(&[Between(-1.0, 1.0)]).slack(8.0)
    };
    vec![
        plain("matmul", PAIRS),
        plain("matmul of nothing", EMPTY),
        plain("matmul of large ones", LARGE).slack(40.0),
        row("matmul of integers", |x| x[0].matmul(&x[1]), product)
            .cases(PAIRS)
            .case(&[&[40, 33], &[33, 40]])
            .values(&[Between(-3.0, 3.0)])
            .dtypes(INTS)
            .flat(),
        row("matmul by a transpose", |x| x[0].matmul(&x[1].t()), |x| x[0].matmul(&x[1].t()))
            .cases(&[&[&[3, 5], &[4, 5]], &[&[2, 3, 5], &[2, 4, 5]], &[&[66, 130], &[34, 130]]])
            .slack(40.0),
        row("matmul of a transpose", |x| x[0].t().matmul(&x[1]), |x| x[0].t().matmul(&x[1]))
            .cases(&[&[&[5, 3], &[5, 4]], &[&[2, 5, 3], &[5, 4]], &[&[130, 66], &[130, 34]]])
            .slack(40.0),
        row("x by its own transpose", |x| x[0].matmul(&x[0].t()), |x| x[0].matmul(&x[0].t()))
            .cases(&[&[&[3, 5]], &[&[2, 4, 3]]])
            .slack(16.0),
        row(
            "a linear layer with relu",
            |x| x[0].matmul(&x[1]).add(&x[2]).relu(),
            |x| product(x).add(&x[2]).map(|v| v.max(0.0)),
        )
        .cases(&[&[&[3, 5], &[5, 4], &[4]], &[&[2, 3, 5], &[5, 4], &[4]], &[&[33, 65], &[65, 40], &[40]]])
        .slack(40.0),
        row("dot", |x| x[0].dot(&x[1]), product)
            .cases(&[&[&[5], &[5]], &[&[0], &[0]], &[&[1000], &[1000]]])
            .slack(40.0),
        row(
            "outer",
            |x| x[0].outer(&x[1]),
            |x| Array::from_fn(&[x[0].numel(), x[1].numel()], |at| x[0].data[at[0]] * x[1].data[at[1]]),
        )
        .cases(&[&[&[5], &[3]], &[&[0], &[3]]]),
        row("a chain of products", |x| x[0].matmul(&x[1]).matmul(&x[2]), |x| product(x).matmul(&x[2]))
            .cases(&[&[&[3, 5], &[5, 4], &[4, 2]], &[&[2, 3, 5], &[5, 4], &[2, 4, 2]]])
            .slack(16.0),
        row(
            "rows picked out of a product",
            |x| x[0].matmul(&x[1]).narrow(0, 1, 2).t(),
            |x| product(x).slice(0, 1, 1, 2).t(),
        )
        .cases(&[&[&[4, 5], &[5, 3]]])
        .slack(16.0),
    ]
}

checks!(rows());

/// A product that is used twice, once as a whole and once summed.
#[test(needs(f64))]
fn a_shared_product_gets_the_sum_of_both_gradients() {
    let x = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], [2, 2]).requires_grad(true);
    let y = x.matmul(&x);
    (y.sum() + (&y * &y).sum()).backward();
    // d/dX tr(1ᵀXX) + |XX|² = (1 + 2Y)Xᵀ + Xᵀ(1 + 2Y), with Y = [[7, 10], [15, 22]].
    let g = [[15.0, 21.0], [31.0, 45.0]];
    let xs = [[1.0, 2.0], [3.0, 4.0]];
    let mut expected = [0.0; 4];
    for i in 0..2 {
        for j in 0..2 {
            for k in 0..2 {
                expected[2 * i + j] += g[i][k] * xs[j][k] + xs[k][i] * g[k][j];
            }
        }
    }
    assert_eq!(x.grad().expect("a gradient").to_vec::<f64>(), expected);
}
