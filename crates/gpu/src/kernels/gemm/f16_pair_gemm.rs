//! f32 products on cooperative matrices: with every operand a sum of two halves, `high + low`, a product is
//! `high · high + high · low + low · high`, and what is left out is under the precision of f32.

use super::coop::{self, CoopTile, OperandType, Split};
use super::f16_pairs;
use super::product::{Product, Steps};
use super::tile::{cost, count};
use crate::caps::{COMPUTE_UNITS, Caps};
use crate::dispatch::Lowered;
use volta_ir::dtype::DType;

/// Lanes and terms under which operands are not worth the splitting, and multiplications likewise.
const MIN_LANES: usize = 128;
const MIN_TERMS: usize = 128;
const MIN_MULTIPLICATIONS: usize = 1_000_000_000;

/// The shortest side of a tile, which few lanes should fill by three quarters at least.
const SIDE: usize = 64;

/// Positions of halves must be u32.
const MAX_F16_ELEMENTS: usize = 1 << 31;

/// Shapes and their speed, relative to the fastest one when the machine is full of them. Their `k` counts
/// halves: two for an element.
const TILES: [(CoopTile, f64); 3] = [
    (CoopTile::new(128, 128, 64, [2, 4], 1), 1.0),
    (CoopTile::new(64, 128, 64, [2, 4], 1), 0.83),
    (CoopTile::new(128, 64, 64, [4, 2], 1), 0.8),
];

/// Parts that sums may be cut into, so that the tiles go round; each should have several steps.
const PARTS: [usize; 4] = [1, 2, 3, 4];
const LEAST_STEPS: usize = 16;

/// How much faster than plain arithmetic, for two terms an element: so much dearer are memory and dispatches.
const PACE: f64 = 4.0;

/// How a product is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    tile: CoopTile,
    /// Parts of the sums.
    parts: usize,
    /// Operands that the product reads once, and splits as it does.
    later: [bool; 2],
}

impl Choice {
    pub fn new(product: &Product, tile: CoopTile, parts: usize) -> Choice {
        let later = later(product, &tile);
        Choice { tile: tile.for_steps(2 * product.steps.depth() / parts), parts, later }
    }

    /// Of which operands the largest magnitudes of lanes are asked for.
    pub fn needs_absmax(&self, product: &Product) -> [bool; 2] {
        f16_pairs::needs_absmax(product, self.tile.k / 2, self.later)
    }
}

/// Operands of which no tile reads what another one does.
fn later(product: &Product, tile: &CoopTile) -> [bool; 2] {
    [product.n <= tile.n, product.m <= tile.m]
}

/// The tiles that the adapter has room for, and their speed; none if it or the operands do not allow it.
pub(super) fn tiles(product: &Product, dtype: DType, caps: &Caps) -> Vec<(CoopTile, f64)> {
    let floats = [product.a.dtype, product.b.dtype, dtype].iter().all(|&d| d == DType::F32);
    let lanes = product.m.min(product.n);
    let large = lanes >= MIN_LANES
        && 4 * lanes >= 3 * lanes.next_multiple_of(SIDE)
        && product.steps.depth() >= MIN_TERMS;
    if !floats || !large || !coop::is_supported(caps) {
        return Vec::new();
    }
    let counted = |tile: &CoopTile| {
        let numbers = f16_pairs::numbers(product, tile.k / 2, later(product, tile));
        numbers.is_some_and(|numbers| numbers.iter().all(|&n| n < MAX_F16_ELEMENTS))
    };
    TILES.into_iter().filter(|(tile, _)| tile.fits(caps) && counted(tile)).collect()
}

/// The tile and the parts of the sums, if there are tiles and it pays.
pub(super) fn choose(product: &Product, dtype: DType, caps: &Caps) -> Option<Choice> {
    let depth = product.steps.depth();
    if product.items * product.m * product.n < MIN_MULTIPLICATIONS.div_ceil(depth.max(1)) {
        return None;
    }
    let twice = Product { steps: Steps::Flat(2 * depth), ..product.clone() };
    let selections = tiles(product, dtype, caps).into_iter().flat_map(|(tile, speed)| {
        let most = 2 * depth / (tile.k * LEAST_STEPS);
        let busy = COMPUTE_UNITS / count(product, [tile.m, tile.n]);
        let parts = PARTS.into_iter().chain([busy]).filter(move |&p| p == 1 || p <= most && p > 1);
        parts.map(move |parts| (tile, speed, parts))
    });
    let (_, tile, parts) = selections
        .map(|(tile, speed, parts)| (cost(&[&twice], &tile.form(speed), parts, PACE), tile, parts))
        .min_by(|x, y| x.0.total_cmp(&y.0))?;
    Some(Choice::new(product, tile, parts))
}

/// The dispatches of a product.
pub(super) fn lower(product: &Product, choice: Choice, dtype: DType, caps: &Caps) -> Lowered {
    if !Caps::KNOWS_COOPERATIVE {
        unreachable!("asked for where there are cooperative matrices");
    }
    let Choice { tile, parts, later } = choice;
    let mut lowered = Lowered::default();
    let (depth, terms) = (tile.k / 2, product.steps.depth());
    let ([a, b], scales) = f16_pairs::split(product, depth, later, &mut lowered);
    let steps = Steps::Flat(2 * terms.next_multiple_of(depth));
    let twice = Product { steps, a, b, ..product.clone() };
    coop::lower(
        &twice,
        tile,
        parts,
        dtype,
        caps,
        lowered,
        &OperandType::Split(Split { scales, later, terms }),
    )
}
