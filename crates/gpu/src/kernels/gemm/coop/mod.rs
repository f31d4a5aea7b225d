//! The tiled kernel on cooperative matrices: f16 operands, f32 sums. Subgroups multiply 16 × 16 blocks that
//! they load from the workgroup's tiles, whichever way round those lie; results pass through workgroup memory
//! to be finished by position.

mod epilogue;
mod k_loop;
mod shared_tile;

use super::load::{LoadTile, Loader, REGISTER_BOUND_THREADS};
use super::product::{GemmOperand, OperandLayout, Product, output};
use super::scales::Scales;
use super::split_k;
use super::split_on_load;
use super::tile::{Form, best};
use super::tile_raster::TileGrid;
use super::wgsl::main;
use super::write::Writer;
use crate::caps::Caps;
use crate::dispatch::{ComputeType, Dispatch, Lowered};
use epilogue::Stage;
use shared_tile::SharedTile;
use std::fmt::Write;
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::MapKernel;

/// Threads of a subgroup.
const SUBGROUP: usize = 32;

/// Rows and columns of a cooperative matrix.
const BLOCK: usize = 16;

/// Elements between rows of workgroup memory, so that the rows of a block start in different banks.
const PADDING: usize = 8;

/// Results of an item under which even the smallest tile would be mostly empty.
const MIN_RESULTS_PER_ITEM: usize = 64 * 64;

/// Terms of split operands that are summed in cooperative matrices alone. These round towards zero, which
/// adds up over thousands of terms: so such runs are added to the sums as plain numbers are, to nearest.
const RUN: usize = 64;

/// Registers that a thread has for blocks, of the 255 there are.
const ROOM: usize = 200;

/// What a workgroup computes, and how many subgroups share its rows and its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoopTile {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub subgroups: [usize; 2],
    /// Two, so that a step takes one barrier, or one, for less memory.
    pub buffers: usize,
    pub band: usize,
    /// Workgroups that share a compute unit's memory: one goes on while another one waits.
    pub together: usize,
    /// Whether the loop over steps has no branches, at the price of reading the last step twice.
    pub straight: bool,
}

impl CoopTile {
    pub const fn new(m: usize, n: usize, k: usize, subgroups: [usize; 2], buffers: usize) -> CoopTile {
        CoopTile { m, n, k, subgroups, buffers, band: 8, together: 1, straight: false }
    }

    const fn two_workgroups_per_compute_unit(self) -> CoopTile {
        CoopTile { together: 2, ..self }
    }

    /// Reading the last step twice is little where there are many.
    pub(super) fn for_steps(self, depth: usize) -> CoopTile {
        CoopTile { straight: depth >= 16 * self.k, ..self }
    }

    /// Whether to take two steps an iteration. Drivers unroll a loop of known length by themselves, which that of a part has not;
    /// but not where threads have few registers each.
    fn unrolled(&self, parts: usize) -> bool {
        self.straight && (parts > 1 || self.threads() >= REGISTER_BOUND_THREADS)
    }

    /// Whether threads have registers for so many halves of a step: a block takes 8 for its sums, and 4 for its halves.
    fn has_room(&self, halves: usize) -> bool {
        let [tall, broad] = self.blocks();
        let registers = 8 * tall * broad + 4 * halves * (tall + broad);
        self.k == 2 * BLOCK
            && self.buffers == 1
            && self.threads() < REGISTER_BOUND_THREADS
            && registers <= ROOM
    }

    /// Whether both halves of a step are in registers, and the next step is on its way.
    fn is_ahead(&self) -> bool {
        self.has_room(3)
    }

    /// Whether a step is stored in two, a half of its ks after the other, if operands lie so that it can be. Where another
    /// workgroup goes on at every barrier, that is not worth it.
    fn stores_in_two(&self) -> bool {
        self.has_room(2) && self.together == 1
    }

    fn threads(&self) -> usize {
        self.subgroups[0] * self.subgroups[1] * SUBGROUP
    }

    /// Blocks of a subgroup.
    fn blocks(&self) -> [usize; 2] {
        [self.m / self.subgroups[0] / BLOCK, self.n / self.subgroups[1] / BLOCK]
    }

    /// Where the blocks in a subgroup's column `j` begin. Subgroups that share rows have columns of blocks by turns: so
    /// what they finish at once is side by side.
    fn column(&self, j: usize) -> usize {
        j * self.subgroups[1] * BLOCK
    }

    /// Rows and columns of blocks of a subgroup.
    fn each_block(&self) -> impl Iterator<Item = (usize, usize)> {
        let [tall, broad] = self.blocks();
        (0..tall).flat_map(move |i| (0..broad).map(move |j| (i, j)))
    }

    /// Bytes of the operands' tiles, in the layout that takes more.
    fn tile_bytes(&self) -> usize {
        self.buffers * (self.m + self.n) * (self.k + PADDING) * 2
    }

    /// Where results are finished, if there is memory for that beside tiles of so many bytes.
    fn stage(&self, tiles: usize, caps: &Caps) -> Option<Stage> {
        Stage::new(self, (caps.workgroup_bytes as usize / self.together).saturating_sub(tiles))
    }

    pub(super) fn fits(&self, caps: &Caps) -> bool {
        self.stage(self.tile_bytes(), caps).is_some() && self.threads() <= caps.invocations as usize
    }

    pub(super) fn form(&self, speed: f64) -> Form {
        let CoopTile { m, n, k, together, .. } = *self;
        Form { m, n, k, threads: self.threads(), together, speed, wait: 0.0 }
    }
}

/// What the operands hold.
pub(super) enum OperandType {
    /// Halves.
    Halves,
    /// In every step halves and then as many rests, of f32 numbers without their scales.
    Split(Split),
}

/// Split operands.
pub(super) struct Split {
    pub scales: Scales,
    /// Whether an operand is split only when a tile of it is stored, and the terms that it then has.
    pub later: [bool; 2],
    pub terms: usize,
}

impl OperandType {
    fn later(&self, operand: usize) -> bool {
        matches!(self, OperandType::Split(split) if split.later[operand])
    }
}

/// Shapes and their speed, relative to that of sixteen subgroups, in products of which operands come from memory and
/// results are finished.
const TILES: [(CoopTile, f64); 13] = [
    (CoopTile::new(128, 256, 32, [2, 4], 1), 1.041),
    (CoopTile::new(256, 128, 32, [4, 2], 1), 1.04),
    (CoopTile::new(192, 192, 32, [4, 2], 1), 1.04),
    (CoopTile::new(128, 192, 32, [2, 4], 1), 1.01),
    (CoopTile::new(128, 128, 32, [2, 2], 1).two_workgroups_per_compute_unit(), 1.005),
    (CoopTile::new(256, 128, 32, [4, 4], 1), 1.0),
    (CoopTile::new(128, 256, 32, [2, 8], 1), 0.99),
    (CoopTile::new(192, 128, 32, [4, 2], 1), 0.95),
    (CoopTile::new(128, 128, 64, [2, 4], 1), 0.76),
    (CoopTile::new(128, 64, 64, [4, 2], 1), 0.58),
    (CoopTile::new(64, 128, 64, [2, 4], 1), 0.58),
    (CoopTile::new(64, 64, 64, [2, 2], 2), 0.38),
    (CoopTile::new(32, 128, 32, [1, 4], 2), 0.3),
];

/// Instructions of an epilogue that are much to do for every result.
const LONG_EPILOGUE_INSTRUCTIONS: usize = 12;

/// The speed of a product whose results few threads finish, with much to do for each.
const LONG_EPILOGUE_SPEED: f64 = 0.85;

/// How much faster than plain arithmetic: so much dearer are memory and dispatches.
const PACE: f64 = 5.0;

/// Whether the adapter has these matrices.
pub(super) fn is_supported(caps: &Caps) -> bool {
    Caps::KNOWS_COOPERATIVE && caps.cooperative && caps.f16 && caps.subgroup == Some(SUBGROUP as u32)
}

/// The tiles that the adapter has room for, and their speed; none if it or the operands do not allow it.
pub(super) fn tiles(product: &Product, caps: &Caps) -> Vec<(CoopTile, f64)> {
    let halves = product.a.dtype == DType::F16 && product.b.dtype == DType::F16;
    let tiny = product.m.min(product.n) <= BLOCK || product.m * product.n < MIN_RESULTS_PER_ITEM;
    if !halves || !is_supported(caps) || tiny {
        return Vec::new();
    }
    TILES.into_iter().filter(|(tile, _)| tile.fits(caps)).collect()
}

/// The tile and the parts of the sums, if there are tiles. With much to do for every result, many threads are better
/// than many registers each.
pub(super) fn choose(
    product: &Product,
    caps: &Caps,
    epilogue: Option<&MapKernel>,
) -> Option<(CoopTile, usize)> {
    let tiles = tiles(product, caps);
    let much = epilogue.is_some_and(|epilogue| epilogue.code.len() >= LONG_EPILOGUE_INSTRUCTIONS);
    let pace = |tile: &CoopTile| {
        if much && tile.threads() < REGISTER_BOUND_THREADS { LONG_EPILOGUE_SPEED } else { 1.0 }
    };
    let forms: Vec<Form> = tiles.iter().map(|(tile, speed)| tile.form(speed * pace(tile))).collect();
    let (_, (number, parts)) = best(&[product], &forms, PACE)?;
    Some((tiles[number].0.for_steps(product.steps.depth() / parts), parts))
}

/// The tile and the parts for products that share a dispatch, if that takes less time than one after the other.
pub(super) fn choose_together(products: &[&Product], caps: &Caps) -> Option<(CoopTile, usize)> {
    let (first, others) = products.split_first()?;
    let depth = first.steps.depth();
    if others.iter().any(|p| p.steps.depth() != depth || tiles(p, caps).is_empty()) {
        return None;
    }
    let tiles = tiles(first, caps);
    let forms: Vec<Form> = tiles.iter().map(|(tile, speed)| tile.form(*speed)).collect();
    let (together, (number, parts)) = best(products, &forms, PACE)?;
    let alone = |p: &&Product| best(&[*p], &forms, PACE).map_or(0.0, |(cost, _)| cost);
    (together < products.iter().map(alone).sum()).then_some((tiles[number].0, parts))
}

/// The dispatches of a product with this tile, its sums cut into `parts`.
pub(super) fn lower(
    product: &Product,
    tile: CoopTile,
    parts: usize,
    dtype: DType,
    caps: &Caps,
    before: Lowered,
    terms: &OperandType,
) -> Lowered {
    if !Caps::KNOWS_COOPERATIVE {
        unreachable!("asked for where there are cooperative matrices");
    }
    // A step that splits what it reads is long enough by itself.
    let later = terms.later(0) || terms.later(1);
    let even = tile.unrolled(parts) && !later && product.steps.are_even(tile.k);
    let cut = TileGrid { m: tile.m, n: tile.n, k: tile.k, parts, band: tile.band, even };
    let threads = tile.threads();
    let part = |name, lanes, extent, origin, in_two| LoadTile {
        name,
        lane: ComputeType::F16,
        lanes,
        tile: [extent, tile.k],
        threads,
        origin,
        gather: true,
        in_two,
    };
    let load = |in_two| {
        [
            loader(&product.a, part("a", product.m, tile.m, "m0", in_two), terms, 0),
            loader(&product.b, part("b", product.n, tile.n, "n0", in_two), terms, 1),
        ]
    };
    let in_two = tile.stores_in_two() && matches!(terms, OperandType::Halves) && cut.is_plain(product);
    let mut loaders = load(in_two);
    if in_two && loaders.iter().any(|loader| loader.in_two.is_none()) {
        loaders = load(false);
    }
    let [a, b] = loaders;
    let mut lowered = before;
    let (writer, result) = if parts == 1 {
        let writer = Writer::finish(product);
        let writer = if matches!(terms, OperandType::Halves) { writer.in_eights(dtype) } else { writer };
        let width = writer.width();
        (writer, output(dtype, ComputeType::F32, width))
    } else {
        (Writer::partial(product), split_k::binding(&mut lowered, &product.results(), parts))
    };
    let groups = cut.groups(product);
    let places = [SharedTile::new(&a, terms.later(0)), SharedTile::new(&b, terms.later(1))];
    let quads = places.each_ref().map(|place| tile.buffers * place.quads);
    let stage = tile.stage(8 * (quads[0] + quads[1]), caps).expect("the tile fits");
    let memory = format!(
        "var<workgroup> tile_a: array<vec4<f16>, {}>;
var<workgroup> tile_b: array<vec4<f16>, {}>;
var<workgroup> results: array<vec4<f32>, {}>;

",
        quads[0],
        quads[1],
        stage.quads(&tile)
    );
    let body = memory + &main(threads, groups, &body(product, &tile, &cut, &places, &writer, &stage, terms));
    let mut bindings = vec![a.binding(&product.a), b.binding(&product.b), result];
    if let OperandType::Split(split) = terms {
        bindings.push(split.scales.binding.clone());
    }
    lowered.dispatches.push(Dispatch { body, bindings, groups });
    if parts > 1 {
        let scratch = lowered.scratch.len() - 1;
        lowered.dispatches.push(split_k::sum(&product.results(), parts, dtype, scratch));
    }
    lowered
}

/// Reads operand `number`.
fn loader(source: &GemmOperand, part: LoadTile, terms: &OperandType, number: usize) -> Loader {
    match (terms, &source.layout) {
        (OperandType::Split(split), OperandLayout::Strided(strided)) if split.later[number] => {
            let part = LoadTile { lane: ComputeType::F32, tile: [part.tile[0], part.tile[1] / 2], ..part };
            let first = if number == 0 { &split.scales.rows } else { &split.scales.columns };
            split_on_load::loader(strided, part, split.terms, first)
        }
        _ => Loader::new(source, part),
    }
}

fn body(
    product: &Product,
    tile: &CoopTile,
    cut: &TileGrid,
    places: &[SharedTile; 2],
    writer: &Writer,
    stage: &Stage,
    terms: &OperandType,
) -> String {
    let [tall, _] = tile.blocks();
    let mut text = cut.begin(product);
    let _ = writeln!(text, "let subgroup = tid / {SUBGROUP}u;");
    let _ = writeln!(text, "let own_m = subgroup / {}u * {}u;", tile.subgroups[1], tall * BLOCK);
    let _ = writeln!(text, "let own_n = subgroup % {}u * {BLOCK}u;", tile.subgroups[1]);
    for (place, own) in places.iter().zip(["own_m", "own_n"]) {
        text += &place.loader.setup;
        text += &place.loader.declarations;
        text += &place.slot();
        let by = if place.lanes_are_rows { format!("{own} * {}u", place.row) } else { format!("{own} / 4u") };
        let _ = writeln!(text, "let first_{} = {by};", place.name());
    }
    let split = matches!(terms, OperandType::Split(_));
    for (i, j) in tile.each_block() {
        let _ = writeln!(text, "var c{i}_{j}: coop_mat16x16<f32, C>;");
        if split {
            let _ = writeln!(text, "var run{i}_{j}: coop_mat16x16<f32, C>;");
        }
    }
    text += &k_loop::steps(product, tile, cut, places, terms);
    if split {
        text += &k_loop::add_runs(tile, false);
    }
    text + &epilogue::finish(product, tile, writer, stage, terms)
}
