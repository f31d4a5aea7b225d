//! The variants of a product: which kernel, with which tile, its sums cut into how many parts. One of them is chosen
//! at once from the sizes; the tuner tries them all.

use super::coop::{self, CoopTile, OperandType};
use super::product::Product;
use super::tile::{self, Tile};
use super::{blocked, f16_pair_gemm, gemv, naive, tiled};
use crate::caps::Caps;
use crate::dispatch::Lowered;
use std::fmt;
use volta_ir::dtype::DType;

/// Multiplications up to which a thread for every result is worth a try.
const MAX_NAIVE_MULTIPLICATIONS: usize = 1 << 28;

/// Parts that sums are cut into besides what the sizes suggest, and the steps that each has at least.
const PARTS: [usize; 4] = [2, 3, 4, 8];
const LEAST_STEPS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// A thread for every result.
    Plain,
    /// A thread for every block of results.
    Blocked,
    /// For sides of few lanes.
    Skinny,
    /// Tiles, and parts of the sums.
    Tiled(Tile, usize),
    /// On cooperative matrices.
    Coop(CoopTile, usize),
    /// f32 as f16 pairs, on cooperative matrices.
    Split(CoopTile, usize),
}

/// Its name, which is the same in every run.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut coop = |name: &str, t: &CoopTile, parts: &usize| {
            let ([tall, broad], b) = (t.subgroups, t.buffers);
            write!(f, "{name} {}x{}x{} by {tall}x{broad} with {b} in {parts}", t.m, t.n, t.k)
        };
        match self {
            Variant::Plain => f.write_str("plain"),
            Variant::Blocked => f.write_str("blocked"),
            Variant::Skinny => f.write_str("skinny"),
            Variant::Coop(tile, parts) => coop("cooperative", tile, parts),
            Variant::Split(tile, parts) => coop("split", tile, parts),
            Variant::Tiled(t, parts) => {
                let ([tall, broad], slices) = (t.per_thread, t.slices);
                write!(f, "tiled {}x{}x{} by {tall}x{broad} of {slices} in {parts}", t.m, t.n, t.k)
            }
        }
    }
}

/// All that the product and the adapter allow.
pub(super) fn all(product: &Product, dtype: DType, caps: &Caps) -> Vec<Variant> {
    if !dtype.is_float() {
        return Vec::new();
    }
    let mut all = Vec::new();
    let depth = product.steps.depth();
    let strided = product.is_strided();
    if strided && product.items * product.m * product.n <= MAX_NAIVE_MULTIPLICATIONS / depth.max(1) {
        all.push(Variant::Plain);
    }
    if strided && product.m.min(product.n) <= gemv::LANES {
        all.push(Variant::Skinny);
    }
    for (tile, speed) in tile::tiles(&[product], caps) {
        let parts = parts(product, depth.div_ceil(tile.k), tile::parts(&[product], &tile.form(speed)));
        all.extend(parts.into_iter().map(|parts| Variant::Tiled(tile, parts)));
    }
    for (tile, speed) in coop::tiles(product, caps) {
        let parts = parts(product, depth.div_ceil(tile.k), tile::parts(&[product], &tile.form(speed)));
        all.extend(parts.into_iter().map(|parts| Variant::Coop(tile, parts)));
    }
    for (tile, _) in f16_pair_gemm::tiles(product, dtype, caps) {
        let parts = parts(product, (2 * depth).div_ceil(tile.k), vec![1]);
        all.extend(parts.into_iter().map(|parts| Variant::Split(tile, parts)));
    }
    all
}

/// Numbers of parts to try: those `suggested`, and some more.
fn parts(product: &Product, steps: usize, suggested: Vec<usize>) -> Vec<usize> {
    let mut all = suggested;
    if product.can_be_cut() {
        all.extend(PARTS.into_iter().filter(|parts| parts * LEAST_STEPS <= steps));
    }
    all.sort_unstable();
    all.dedup();
    all
}

impl Variant {
    /// The dispatches of a product as this variant, after those `before`.
    pub(super) fn lower(self, product: &Product, dtype: DType, caps: &Caps, before: Lowered) -> Lowered {
        let depth = product.steps.depth();
        match self {
            Variant::Plain => Lowered { dispatches: vec![naive::lower(product, dtype)], scratch: vec![] },
            Variant::Blocked => Lowered { dispatches: vec![blocked::lower(product, dtype)], scratch: vec![] },
            Variant::Skinny => gemv::lower(product, dtype),
            Variant::Tiled(tile, parts) => {
                tiled::lower(product, tile.for_steps(depth / parts), parts, dtype, before)
            }
            Variant::Coop(tile, parts) => {
                let tile = tile.for_steps(depth / parts);
                coop::lower(product, tile, parts, dtype, caps, before, &OperandType::Halves)
            }
            Variant::Split(tile, parts) => {
                f16_pair_gemm::lower(product, f16_pair_gemm::Choice::new(product, tile, parts), dtype, caps)
            }
        }
    }
}
