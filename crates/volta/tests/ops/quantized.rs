//! Products with quantised matrices. Their weights are numbers that quantising keeps exactly, so the reference is a product with
//! these.

use crate::reference::Array;
use crate::table::*;
use volta::{BlockFormat, DType, Device, QuantizedMatrix, Tensor, default_device, with_device};
use volta_testing::test;

/// A weight that its format holds exactly: every block has the extremes that its scale follows from.
fn weight(format: BlockFormat, row: usize, column: usize) -> f64 {
    let (k, mixed) = (column % 32, row * 37 + column * 11);
    match format {
        BlockFormat::Int8 => (if k == 3 { 127 } else { (mixed % 255) as i64 - 127 }) as f64 / 64.0,
        BlockFormat::Int4 => (if k == 5 { 0 } else { mixed % 16 } as f64 - 8.0) / 8.0,
        BlockFormat::Int4Min => {
            let q = if k < 2 { 15 * k } else { mixed % 16 };
            q as f64 / 8.0 - 0.5
        }
    }
}

fn dense(format: BlockFormat, rows: usize, columns: usize) -> Array {
    Array::from_fn(&[rows, columns], |at| weight(format, at[0], at[1]))
}

fn matrix(format: BlockFormat, rows: usize, columns: usize) -> QuantizedMatrix {
    let numbers: Vec<f32> = dense(format, rows, columns).data.iter().map(|&x| x as f32).collect();
    let exact = with_device(Device::Cpu, || Tensor::from_vec(numbers, [rows, columns]));
    QuantizedMatrix::quantize(&exact, format).unwrap().to_device(default_device())
}

/// How many rows matrices have: no multiple of anything.
const ROWS: usize = 37;

fn linear(name: &str, format: BlockFormat) -> Row {
    let columns = |shape: &[usize]| shape[shape.len() - 1];
    row(
        name,
        move |x| x[0].quantized_linear(&matrix(format, ROWS, columns(&x[0].shape())), None),
        move |x| x[0].matmul(&dense(format, ROWS, columns(&x[0].shape)).t()),
    )
    // Few rows and many, an odd number of blocks.
    .cases(&[&[&[2, 64]], &[&[64]], &[&[2, 5, 96]], &[&[0, 32]], &[&[1, 352]]])
    .slack(60.0)
}

fn by_rows(name: &str, format: BlockFormat, columns: usize) -> Row {
    row(
        name,
        move |x| x[0].quantized_matmul(&matrix(format, ROWS, columns)),
        move |x| x[0].matmul(&dense(format, ROWS, columns)),
    )
    .cases(&[&[&[3, ROWS]], &[&[12, ROWS]]])
    .slack(60.0)
}

fn rows() -> Vec<Row> {
    vec![
        linear("quantized_linear of int8", BlockFormat::Int8),
        linear("quantized_linear of int4", BlockFormat::Int4),
        linear("quantized_linear of int4 with minima", BlockFormat::Int4Min),
        by_rows("quantized_matmul of int8", BlockFormat::Int8, 64),
        by_rows("quantized_matmul of int4", BlockFormat::Int4, 96),
        by_rows("quantized_matmul of int4 with minima", BlockFormat::Int4Min, 32),
        row(
            "quantized_linear with a bias and relu",
            |x| x[0].quantized_linear(&matrix(BlockFormat::Int4, ROWS, 64), Some(&x[1])).relu(),
            |x| x[0].matmul(&dense(BlockFormat::Int4, ROWS, 64).t()).add(&x[1]).map(|v| v.max(0.0)),
        )
        .cases(&[&[&[3, 64], &[ROWS]], &[&[20, 64], &[ROWS]]])
        .slack(60.0),
    ]
}

checks!(rows());

/// Sizes on both sides of what a kernel blocks by, compared with the CPU's product of the same numbers in f32.
#[test]
fn large_products_agree_with_those_of_decoded_weights() {
    for (format, m, rows, columns) in
        [(BlockFormat::Int4, 1, 70, 544), (BlockFormat::Int8, 7, 67, 96), (BlockFormat::Int4Min, 65, 70, 160)]
    {
        let w = matrix(format, rows, columns);
        let expected = dense(format, rows, columns);
        let numbers = with_device(Device::Cpu, || {
            Tensor::from_vec(expected.data.iter().map(|&x| x as f32).collect(), [rows, columns])
        });
        let random =
            |columns: usize| with_device(Device::Cpu, || Tensor::randn([m, columns])).realize().clone();
        let near = |a: Tensor, b: Tensor| {
            let off = (a.to_device(Device::Cpu) - b).abs().max().item::<f64>();
            assert!(off < 2e-3, "{format:?}: {off}");
        };
        let x = random(columns);
        near(x.to_device(default_device()).quantized_linear(&w, None), x.matmul(&numbers.t()));
        let x = random(rows);
        near(x.to_device(default_device()).quantized_matmul(&w), x.matmul(&numbers));
    }
}

#[test]
fn rows_of_a_table_are_picked_and_decoded() {
    for format in BlockFormat::ALL {
        let w = matrix(format, 9, 96);
        assert_eq!(w.dequantize().to_vec::<f64>(), dense(format, 9, 96).data);
        let picked = w.embedding(&Tensor::from_vec(vec![8i32, 0, 3, 3], [2, 2]));
        assert_eq!(picked.shape()[..], [2, 2, 96]);
        let expected: Vec<f64> =
            [8, 0, 3, 3].into_iter().flat_map(|r| (0..96).map(move |c| weight(format, r, c))).collect();
        assert_eq!(picked.to_vec::<f64>(), expected);
    }
}

#[test]
fn blocks_come_back_as_they_were() {
    for (format, kind) in [(BlockFormat::Int8, 34), (BlockFormat::Int4, 18), (BlockFormat::Int4Min, 20)] {
        // An odd number of blocks in a row.
        let blocks: Vec<u8> = (0..2 * 3 * kind).map(|k| (k * 73 + 19) as u8).collect();
        let w = QuantizedMatrix::from_blocks(format, 2, 96, &blocks, default_device()).unwrap();
        assert_eq!(w.to_blocks().unwrap(), blocks);
        let again = QuantizedMatrix::from_parts(w.words(), w.scales(), format, 96).unwrap();
        assert_eq!(again.to_blocks().unwrap(), blocks);
    }
}

#[test]
fn misuse_is_named() {
    let w = matrix(BlockFormat::Int4, 4, 64);
    let x = Tensor::ones([2, 63]);
    let table = [
        (x.try_quantized_linear(&w, None).map(drop), "[4, 64], transposed"),
        (x.try_quantized_matmul(&w).map(drop), "[4, 64]: the inner"),
        (Tensor::ones([2, 64]).try_quantized_linear(&w, Some(&Tensor::ones([3]))).map(drop), "bias"),
        (Tensor::arange(0, 64).try_quantized_linear(&w, None).map(drop), "i32 is not multiplied"),
        (QuantizedMatrix::quantize(&Tensor::ones([2, 33]), BlockFormat::Int8).map(drop), "33 weights"),
        (QuantizedMatrix::quantize(&Tensor::ones([64]), BlockFormat::Int8).map(drop), "a matrix of floats"),
        (
            QuantizedMatrix::quantize(&(Tensor::ones([1, 32]) * f64::INFINITY), BlockFormat::Int4).map(drop),
            "inf",
        ),
        (QuantizedMatrix::from_blocks(BlockFormat::Int4, 1, 32, &[0; 17], Device::Cpu).map(drop), "18 bytes"),
        (QuantizedMatrix::from_parts(w.words(), w.scales(), BlockFormat::Int8, 64).map(drop), "int8 needs"),
        (
            QuantizedMatrix::from_parts(w.words(), &w.scales().to_dtype(DType::I32), BlockFormat::Int4, 64)
                .map(drop),
            "int4 needs",
        ),
    ];
    for (result, part) in table {
        let error = result.unwrap_err();
        assert!(error.message().contains(part), "{error} lacks {part:?}");
    }
}
