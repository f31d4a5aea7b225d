//! Matrix products: which kernel computes one.

use super::output_view::{Columns, OutputView};
use super::product::{GemmOperand, OperandLayout, Product, Steps, Strided};
use super::variant::Variant;
use super::wgsl::Digits;
use super::{coop, f16_pair_gemm, gemv, tile, tiled};
use crate::caps::{COMPUTE_UNITS, Caps};
use crate::dispatch::{AbsMax, Lowered, Memory};
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::{NativeKernel, Operand};

/// Results of an item under which it gets threads of its own rather than a tile.
const TINY: usize = 256;

/// Terms that a thread sums by itself even if there are few threads.
const SHORT_SUM_TERMS: usize = 128;

/// Whether every result should have a thread of its own.
fn is_tiny(product: &Product) -> bool {
    let (one, all) = (product.m * product.n, product.items * product.m * product.n);
    product.items > 1
        && one <= TINY
        && (product.steps.depth() <= SHORT_SUM_TERMS || all >= COMPUTE_UNITS * 256)
}

/// The variant for what is small along some axis, and for adapters without use for tiles.
fn small(product: &Product, dtype: DType, caps: &Caps) -> Option<Variant> {
    if dtype.is_float() && caps.serial_workgroups {
        return Some(Variant::Blocked);
    }
    if !dtype.is_float() || is_tiny(product) {
        return Some(Variant::Plain);
    }
    (product.m.min(product.n) <= gemv::LANES).then_some(Variant::Skinny)
}

pub(super) fn product(kernel: &NativeKernel) -> Product {
    let (a, b) = (&kernel.operands[0], &kernel.operands[1]);
    let rank = a.shape.rank();
    let (m, k, n) = (a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]);
    let items = a.shape[..rank - 2].iter().product();
    let source = |number: usize, operand: &Operand, lane: usize, k: usize| {
        let axis = |axis: usize| (operand.shape[axis], operand.strides[axis] as i64);
        GemmOperand {
            memory: Memory::Operand(number),
            dtype: operand.dtype,
            layout: OperandLayout::Strided(Strided {
                offset: operand.offset as i64,
                items: Digits::new((0..rank - 2).map(axis)),
                lane: if operand.shape[lane] == 1 { 0 } else { operand.strides[lane] as i64 },
                k: Digits::new([axis(k)]),
            }),
            largest: None,
        }
    };
    Product {
        items,
        m,
        n,
        steps: Steps::Flat(k),
        a: source(0, a, rank - 2, rank - 1),
        b: source(1, b, rank - 1, rank - 2),
        target: OutputView {
            items: Digits::line(items, (m * n) as i64),
            row: n as i64,
            columns: Columns::Strided(Digits::line(n, 1)),
        },
    }
}

/// Of which operands the largest magnitudes of lanes are asked for.
pub(super) fn needs_absmax(kernel: &NativeKernel, caps: &Caps, wanted: Option<Variant>) -> [bool; 2] {
    let (product, dtype) = (product(kernel), kernel.output.dtype);
    let choice = match wanted.or_else(|| small(&product, dtype, caps)) {
        Some(Variant::Split(tile, parts)) => Some(f16_pair_gemm::Choice::new(&product, tile, parts)),
        Some(_) => None,
        None => f16_pair_gemm::choose(&product, dtype, caps),
    };
    choice.map_or([false; 2], |choice| choice.needs_absmax(&product))
}

/// The product, if its variant would be tiles.
pub(super) fn tiled(kernel: &NativeKernel, caps: &Caps) -> Option<Product> {
    let (product, dtype) = (product(kernel), kernel.output.dtype);
    let otherwise = small(&product, dtype, caps).is_some()
        || coop::choose(&product, caps, kernel.epilogue.as_ref()).is_some()
        || f16_pair_gemm::choose(&product, dtype, caps).is_some();
    (!otherwise).then_some(product)
}

pub(super) fn lower(
    kernel: &NativeKernel,
    caps: &Caps,
    wanted: Option<Variant>,
    largest: [Option<AbsMax>; 2],
) -> Lowered {
    let dtype = kernel.output.dtype;
    let mut product = product(kernel);
    [product.a.largest, product.b.largest] = largest;
    if let Some(variant) = wanted.or_else(|| small(&product, dtype, caps)) {
        return variant.lower(&product, dtype, caps, Lowered::default());
    }
    if let Some((tile, parts)) = coop::choose(&product, caps, kernel.epilogue.as_ref()) {
        return coop::lower(
            &product,
            tile,
            parts,
            dtype,
            caps,
            Lowered::default(),
            &coop::OperandType::Halves,
        );
    }
    if let Some(choice) = f16_pair_gemm::choose(&product, dtype, caps) {
        return f16_pair_gemm::lower(&product, choice, dtype, caps);
    }
    let (tile, parts) = tile::choose(&[&product], caps);
    tiled::lower(&product, tile, parts, dtype, Lowered::default())
}
