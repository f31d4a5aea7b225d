//! Shapes of tiles, and which of them suits a product.

use super::product::Product;
use crate::caps::{COMPUTE_UNITS, Caps};

/// What a workgroup computes: a tile of `m × n` results, `k` terms at a time, `per_thread` of them by each
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub per_thread: [usize; 2],
    /// Elements between rows of workgroup memory, so that threads write to different banks.
    pub padding: usize,
    /// Rows of tiles that are computed together, so that they share what is in cache.
    pub band: usize,
    /// Terms written out one after the other; more are a loop.
    pub unroll: usize,
    /// Whether the loop over steps has no branches, at the price of reading the last step twice.
    pub straight: bool,
    /// Groups of threads that share the terms of a step, and add their sums in the end: more threads, and fewer
    /// steps to wait for, where there are few tiles.
    pub slices: usize,
    /// Whether threads may write parts of one vector in workgroup memory.
    pub component_stores: bool,
}

impl Tile {
    pub const fn new(m: usize, n: usize, k: usize, per_thread: [usize; 2]) -> Tile {
        let (padding, band, unroll, slices) = (4, 8, 8, 1);
        Tile { m, n, k, per_thread, padding, band, unroll, straight: false, slices, component_stores: false }
    }

    /// Threads of a slice along rows and columns.
    pub fn grid(&self) -> [usize; 2] {
        [self.m / self.per_thread[0], self.n / self.per_thread[1]]
    }

    pub fn threads(&self) -> usize {
        self.slices * self.grid().iter().product::<usize>()
    }

    /// Bytes of workgroup memory: two buffers.
    pub fn bytes(&self) -> usize {
        2 * self.k * (self.m + self.n + 2 * self.padding) * 4
    }

    /// Reading the last step twice is little where there are many.
    pub(super) fn for_steps(self, depth: usize) -> Tile {
        Tile { straight: depth >= 16 * self.k, ..self }
    }

    pub(super) fn form(&self, speed: f64) -> Form {
        let threads = self.threads();
        Form { m: self.m, n: self.n, k: self.k, threads, together: 1, speed, wait: 0.0 }
    }

    fn fits(&self, caps: &Caps) -> bool {
        // The slices' sums take the place of A's tiles.
        let sums = self.slices == 1 || self.slices * self.m * self.n <= 2 * self.k * (self.m + self.padding);
        sums && self.threads() <= caps.invocations as usize && self.bytes() <= caps.workgroup_bytes as usize
    }

    /// The deepest form of this tile for which there is memory.
    fn fitted(self, caps: &Caps) -> Option<Tile> {
        let half = self.k / 2;
        let forms = if self.slices == 1 {
            [self, Tile { k: half, ..self }, Tile { k: half, padding: 0, ..self }]
        } else {
            [self, Tile { padding: 0, ..self }, Tile { k: half, padding: 0, ..self }]
        };
        let form = forms.into_iter().find(|tile| tile.fits(caps))?;
        Some(Tile { component_stores: caps.component_stores, ..form })
    }
}

/// Shapes and their speed, relative to the fastest one when the machine is full of them.
const TILES: [(Tile, f64); 9] = [
    (Tile { padding: 0, unroll: 4, ..Tile::new(256, 128, 16, [16, 8]) }, 1.05),
    (Tile::new(128, 128, 16, [8, 8]), 1.0),
    (Tile::new(128, 64, 16, [8, 8]), 0.91),
    (Tile::new(64, 128, 16, [8, 8]), 0.92),
    (Tile::new(64, 64, 16, [8, 4]), 0.9),
    (Tile::new(128, 32, 16, [8, 4]), 0.79),
    (Tile::new(32, 128, 16, [4, 8]), 0.79),
    (Tile::new(32, 32, 16, [4, 4]), 0.72),
    (Tile { slices: 4, ..Tile::new(32, 32, 64, [4, 4]) }, 0.6),
];

/// Threads that keep a compute unit busy.
const BUSY_THREADS_PER_COMPUTE_UNIT: f64 = 128.0;

/// What a further dispatch costs, in multiplications of one compute unit.
const DISPATCH_COST: f64 = 500_000.0;

/// What a step waits, and threads of a compute unit that wait at the same time. It counts where sliced tiles fit:
/// other adapters are slower, and further dispatches are what they should be spared.
const STEP_WAIT_COST: f64 = 140_000.0;
const THREADS_WAITING_AT_ONCE: usize = 1024;

/// A tile as far as its cost goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub threads: usize,
    /// Tiles that a compute unit computes at once.
    pub together: usize,
    pub speed: f64,
    /// What a step waits for memory and for its barrier, in multiplications of one compute unit, where that counts.
    pub wait: f64,
}

/// The tiles that the adapter has room for, and their speed.
fn fitting(caps: &Caps) -> impl Iterator<Item = (Tile, f64)> {
    TILES.into_iter().filter_map(|(tile, speed)| Some((tile.fitted(caps)?, speed)))
}

/// Those of them that suit the operands.
pub(super) fn tiles(products: &[&Product], caps: &Caps) -> Vec<(Tile, f64)> {
    let strided = products.iter().all(|product| product.is_strided());
    fitting(caps).filter(|(tile, _)| tile.slices == 1 || strided).collect()
}

/// The tile for a product, or for several that run side by side, with sums of one length; and into how many parts these are
/// cut.
pub(super) fn choose(products: &[&Product], caps: &Caps) -> (Tile, usize) {
    let wait = if fitting(caps).any(|(tile, _)| tile.slices > 1) { STEP_WAIT_COST } else { 0.0 };
    let tiles = tiles(products, caps);
    let form = |(tile, speed): &(Tile, f64)| Form { wait, ..tile.form(*speed) };
    let forms: Vec<Form> = tiles.iter().map(form).collect();
    let (_, (number, parts)) = best(products, &forms, 1.0).expect("there are tiles");
    (tiles[number].0.for_steps(products[0].steps.depth() / parts), parts)
}

/// What products that run side by side, with sums of one length, cost at least; with the number of the form for that, and
/// the parts. `pace` says how much faster arithmetic is than in plain f32.
pub(super) fn best(products: &[&Product], forms: &[Form], pace: f64) -> Option<(f64, (usize, usize))> {
    let selections = forms.iter().enumerate().flat_map(|(number, form)| {
        let costs = move |parts| (cost(products, form, parts, pace), (number, parts));
        parts(products, form).into_iter().map(costs)
    });
    selections.min_by(|x, y| x.0.total_cmp(&y.0))
}

/// Tiles of a product.
pub(super) fn count(product: &Product, [m, n]: [usize; 2]) -> usize {
    product.items * product.m.div_ceil(m) * product.n.div_ceil(n)
}

/// Parts that many tiles go round in better than whole.
const ROUNDS: [usize; 3] = [2, 3, 4];

/// Numbers of parts worth trying: one, or as many as make the machine busy, half or a quarter, or a few where the tiles
/// do so by themselves; a part should have several steps.
pub(super) fn parts(products: &[&Product], form: &Form) -> Vec<usize> {
    let steps = products[0].steps.depth().div_ceil(form.k);
    let tiles: usize = products.iter().map(|product| count(product, [form.m, form.n])).sum();
    let slots = 2 * COMPUTE_UNITS;
    let mut all = vec![1];
    if products.iter().all(|product| product.can_be_cut()) {
        let most = steps / 8;
        all.extend([1, 2, 4].map(|share| (slots / share / tiles).min(most)).iter().filter(|&&p| p > 1));
        if 4 * tiles >= slots {
            all.extend(ROUNDS.iter().filter(|&&parts| parts <= most));
        }
    }
    all
}

/// Estimated time, in multiplications of one compute unit.
pub(super) fn cost(products: &[&Product], form: &Form, parts: usize, pace: f64) -> f64 {
    let groups = products.iter().map(|product| count(product, [form.m, form.n]) * parts).sum::<usize>();
    let rounds = groups as f64 / (COMPUTE_UNITS * form.together) as f64;
    // How full the last one of a batch's rounds is depends on how many compute units there really are.
    let rounds = if products.len() > 2 { rounds.max(1.0) + 0.5 } else { rounds.ceil() };
    let each = rounds * form.together as f64;
    let busy = (each * form.threads as f64 / BUSY_THREADS_PER_COMPUTE_UNIT).min(1.0);
    let depth = products[0].steps.depth().div_ceil(form.k * parts) * form.k;
    // Starting and ending a tile costs about as much as some steps.
    let work = (form.m * form.n) as f64 * (depth as f64 + 48.0);
    let sums = if parts > 1 {
        // Partial sums are written and read: memory moves a number in the time of about 30 multiplications.
        let numbers = products.iter().map(|p| p.items * p.m * p.n * parts).sum::<usize>() as f64;
        numbers * 2.0 * 30.0 / COMPUTE_UNITS as f64 + DISPATCH_COST
    } else {
        0.0
    };
    let arithmetic = each * work / (form.speed * busy.sqrt());
    let waves = (groups * form.threads).div_ceil(COMPUTE_UNITS * THREADS_WAITING_AT_ONCE) as f64;
    let waiting = waves * (depth / form.k) as f64 * form.wait;
    arithmetic.max(waiting) + sums * pace
}
