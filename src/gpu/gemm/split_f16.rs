//! f32 products on cooperative matrices: with every operand a sum of two halves, `high + low`, a product is
//! `high · high + high · low + low · high`, and what is left out is under the precision of f32.

use super::coop::{self, CoopTile, Terms};
use super::halves;
use super::product::{Product, Steps};
use super::tile::cost;
use crate::dtype::DType;
use crate::gpu::dispatch::{Caps, Lowered};

/// Lanes and terms under which operands are not worth the splitting, and multiplications likewise.
const FEWEST_LANES: usize = 256;
const SHORTEST: usize = 128;
const FEWEST: usize = 1_000_000_000;

/// Positions of halves must be u32.
const MOST: usize = 1 << 31;

/// Shapes and their speed, relative to the fastest one when the machine is full of them. Their `k` counts
/// halves: two for an element.
const TILES: [(CoopTile, f64); 3] = [
    (CoopTile::new(128, 128, 64, [2, 4], 1), 1.0),
    (CoopTile::new(64, 128, 64, [2, 4], 1), 0.87),
    (CoopTile::new(128, 64, 64, [4, 2], 1), 0.83),
];

/// Parts that sums may be cut into, so that the tiles go round; each should have several steps.
const PARTS: [usize; 4] = [1, 2, 3, 4];
const LEAST_STEPS: usize = 16;

/// How much faster than plain arithmetic, for two terms an element: so much dearer are memory and dispatches.
const PACE: f64 = 4.0;

/// The tile and the parts of the sums, if the adapter and the operands allow it and it pays.
pub(super) fn choose(product: &Product, dtype: DType, caps: &Caps) -> Option<(CoopTile, usize)> {
    let floats = [product.a.dtype, product.b.dtype, dtype].iter().all(|&d| d == DType::F32);
    let depth = product.steps.depth();
    let large = product.m.min(product.n) >= FEWEST_LANES
        && depth >= SHORTEST
        && product.items * product.m * product.n >= FEWEST.div_ceil(depth);
    if !floats || !large || !coop::able(caps) {
        return None;
    }
    let twice = Product { steps: Steps::Flat(2 * depth), ..product.clone() };
    let tiles = TILES.into_iter().filter(|(tile, _)| tile.fits(caps));
    let choices = tiles.flat_map(|(tile, speed)| {
        let most = 2 * depth / (tile.k * LEAST_STEPS);
        let parts = PARTS.into_iter().filter(move |&parts| parts == 1 || parts <= most);
        parts.map(move |parts| (tile, speed, parts))
    });
    let (_, tile, parts) = choices
        .map(|(tile, speed, parts)| (cost(&twice, &tile.form(speed), parts, PACE), tile, parts))
        .min_by(|x, y| x.0.total_cmp(&y.0))?;
    let numbers = halves::numbers(product, tile.k / 2)?;
    numbers.iter().all(|&n| n < MOST).then(|| (tile.for_steps(2 * depth / parts), parts))
}

/// The dispatches of a product with this tile, its sums cut into `parts`.
pub(super) fn lower(product: &Product, tile: CoopTile, parts: usize, dtype: DType, caps: &Caps) -> Lowered {
    let mut lowered = Lowered::default();
    let depth = tile.k / 2;
    let ([a, b], scales) = halves::split(product, depth, &mut lowered);
    let steps = Steps::Flat(2 * product.steps.depth().next_multiple_of(depth));
    let twice = Product { steps, a, b, ..product.clone() };
    coop::lower(&twice, tile, parts, dtype, caps, lowered, &Terms::Split(scales))
}
