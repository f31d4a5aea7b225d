//! The tiled kernel on cooperative matrices: f16 operands, f32 sums. Subgroups multiply 16 × 16 blocks that
//! they load from the workgroup's tiles, whichever way round those lie; results pass through workgroup memory
//! to be finished by position.

use super::later;
use super::load::{Loader, Part, only_active};
use super::order::{Cut, Turns, pipeline};
use super::product::{Layout, Product, Source, output};
use super::scales::Scales;
use super::split;
use super::spread::{Order, Unit};
use super::tile::{Form, best};
use super::wgsl::{indented, main};
use super::write::Writer;
use crate::dtype::DType;
use crate::gpu::dispatch::{Caps, Dispatch, Lane, Lowered};
use std::fmt::Write;
use std::iter::once;

/// Threads of a subgroup.
const SUBGROUP: usize = 32;

/// Rows and columns of a cooperative matrix.
const BLOCK: usize = 16;

/// Elements between rows of workgroup memory, so that the rows of a block start in different banks.
const PADDING: usize = 8;

/// Results of an item under which even the smallest tile would be mostly empty.
const SMALLEST: usize = 64 * 64;

/// Terms of split operands that are summed in cooperative matrices alone. These round towards zero, which
/// adds up over thousands of terms: so such runs are added to the sums as plain numbers are, to nearest.
const RUN: usize = 64;

/// Threads of a workgroup that leave few registers to each.
const MANY: usize = 512;

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
    /// Whether the loop over steps has no branches, at the price of reading the last step twice.
    pub straight: bool,
}

impl CoopTile {
    pub const fn new(m: usize, n: usize, k: usize, subgroups: [usize; 2], buffers: usize) -> CoopTile {
        CoopTile { m, n, k, subgroups, buffers, band: 8, straight: false }
    }

    /// Reading the last step twice is little where there are many.
    pub(super) fn for_steps(self, depth: usize) -> CoopTile {
        CoopTile { straight: depth >= 16 * self.k, ..self }
    }

    /// Whether to take two steps a turn. Drivers unroll a loop of known length by themselves, which that of a part has not;
    /// but not where threads have few registers each.
    fn unrolled(&self, parts: usize) -> bool {
        self.straight && (parts > 1 || self.threads() >= MANY)
    }

    fn threads(&self) -> usize {
        self.subgroups[0] * self.subgroups[1] * SUBGROUP
    }

    /// Blocks of a subgroup.
    fn blocks(&self) -> [usize; 2] {
        [self.m / self.subgroups[0] / BLOCK, self.n / self.subgroups[1] / BLOCK]
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

    /// Bytes for `wide` blocks of results side by side, for every subgroup.
    fn result_bytes(&self, wide: usize) -> usize {
        self.subgroups[0] * self.subgroups[1] * BLOCK * BLOCK * wide * 4
    }

    /// Blocks of results side by side that there is memory for.
    fn wide(&self, bytes: usize) -> Option<usize> {
        let fits = |wide: &usize| {
            self.blocks()[1].is_multiple_of(*wide) && self.tile_bytes() + self.result_bytes(*wide) <= bytes
        };
        [4, 2, 1].into_iter().find(fits)
    }

    pub(super) fn fits(&self, caps: &Caps) -> bool {
        self.wide(caps.workgroup_bytes as usize).is_some() && self.threads() <= caps.invocations as usize
    }

    pub(super) fn form(&self, speed: f64) -> Form {
        Form { m: self.m, n: self.n, k: self.k, threads: self.threads(), speed, wait: 0.0 }
    }
}

/// What the operands hold.
pub(super) enum Terms {
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

impl Terms {
    fn later(&self, operand: usize) -> bool {
        matches!(self, Terms::Split(split) if split.later[operand])
    }
}

/// Shapes and their speed, relative to the fastest one when the machine is full of them.
const TILES: [(CoopTile, f64); 11] = [
    (CoopTile::new(256, 192, 32, [4, 2], 1), 0.88),
    (CoopTile::new(192, 192, 32, [4, 2], 1), 0.95),
    (CoopTile::new(256, 128, 32, [4, 4], 1), 1.0),
    (CoopTile::new(128, 256, 32, [2, 8], 1), 0.98),
    (CoopTile::new(128, 192, 32, [2, 4], 1), 0.84),
    (CoopTile::new(192, 128, 32, [4, 2], 1), 0.84),
    (CoopTile::new(128, 128, 64, [2, 4], 1), 0.76),
    (CoopTile::new(128, 64, 64, [4, 2], 1), 0.58),
    (CoopTile::new(64, 128, 64, [2, 4], 1), 0.58),
    (CoopTile::new(64, 64, 64, [2, 2], 2), 0.38),
    (CoopTile::new(32, 128, 32, [1, 4], 2), 0.3),
];

/// How much faster than plain arithmetic: so much dearer are memory and dispatches.
const PACE: f64 = 5.0;

/// Whether the adapter has these matrices.
pub(super) fn able(caps: &Caps) -> bool {
    caps.cooperative && caps.f16 && caps.subgroup == Some(SUBGROUP as u32)
}

/// The tiles that the adapter has room for, and their speed; none if it or the operands do not allow it.
pub(super) fn tiles(product: &Product, caps: &Caps) -> Vec<(CoopTile, f64)> {
    let halves = product.a.dtype == DType::F16 && product.b.dtype == DType::F16;
    let tiny = product.m.min(product.n) <= BLOCK || product.m * product.n < SMALLEST;
    if !halves || !able(caps) || tiny {
        return Vec::new();
    }
    TILES.into_iter().filter(|(tile, _)| tile.fits(caps)).collect()
}

/// The tile and the parts of the sums, if there are tiles.
pub(super) fn choose(product: &Product, caps: &Caps) -> Option<(CoopTile, usize)> {
    let tiles = tiles(product, caps);
    let forms: Vec<Form> = tiles.iter().map(|(tile, speed)| tile.form(*speed)).collect();
    let (number, parts) = best(product, &forms, PACE)?;
    Some((tiles[number].0.for_steps(product.steps.depth() / parts), parts))
}

/// An operand's tile in workgroup memory.
struct Place<'l> {
    loader: &'l Loader,
    /// Whether rows are lanes (and not ks).
    lanes_are_rows: bool,
    /// Whether elements are split when they are stored: into halves, and as many rests after all of them.
    later: bool,
    /// Quads of a row, and of a buffer.
    row: usize,
    quads: usize,
}

impl<'l> Place<'l> {
    fn new(loader: &'l Loader, later: bool) -> Place<'l> {
        let spread = &loader.spread;
        let lanes_are_rows =
            spread.unit.along_k() || spread.unit == Unit::One && spread.order == Order::KFirst;
        let depth = if later { 2 * spread.depth } else { spread.depth };
        let (rows, columns) = if lanes_are_rows { (spread.lanes, depth) } else { (depth, spread.lanes) };
        let row = (columns + PADDING) / 4;
        Place { loader, lanes_are_rows, later, row, quads: rows * row }
    }

    fn name(&self) -> &'static str {
        self.loader.part.name
    }

    /// Where lane `lane` and k `k`, multiples of 4 along rows, are in a buffer, in quads.
    fn at(&self, lane: usize, k: usize) -> usize {
        if self.lanes_are_rows { lane * self.row + k / 4 } else { k * self.row + lane / 4 }
    }

    /// Declares where a thread's first unit goes.
    fn slot(&self) -> String {
        let (name, row) = (self.name(), self.row);
        let (across, along) = if self.lanes_are_rows { ("lane", "k") } else { ("k", "lane") };
        // Drivers write eights at once if they see that these begin at an even four.
        let fours = if self.eights() { "/ 8u * 2u" } else { "/ 4u" };
        format!(
            "let {name}_slot = {name}_{across} * {row}u + {name}_{along} {fours};
let {name}_part = {name}_{along} % 4u;
"
        )
    }

    fn eights(&self) -> bool {
        self.loader.spread.unit.len() == 8
    }

    fn deposit(&self) -> String {
        let (name, spread) = (self.name(), &self.loader.spread);
        let (lanes, ks) = spread.places();
        let mut text = self.loader.settle.clone();
        for j in 0..spread.count() {
            let at = self.at(lanes.added[j], ks.added[j]);
            if self.later {
                let rest = self.at(lanes.added[j], ks.added[j] + spread.depth);
                for (value, at) in [("high", at), ("low", rest)] {
                    let to = format!("tile_{name}[into_{name} + {name}_slot + {at}u]");
                    let _ = writeln!(text, "{to} = {value}_{name}{j};");
                }
                continue;
            }
            let part = if spread.unit == Unit::One { format!("[{name}_part]") } else { String::new() };
            let _ = writeln!(text, "tile_{name}[into_{name} + {name}_slot + {at}u]{part} = {name}_value{j};");
            if self.eights() {
                let _ =
                    writeln!(text, "tile_{name}[into_{name} + {name}_slot + {}u] = {name}_next{j};", at + 1);
            }
        }
        only_active(spread, text)
    }

    /// Loads a block as a matrix of role `role`: of A, lanes are rows; of B, ks are.
    fn block(&self, name: &str, role: &str, lane: usize, k: usize) -> String {
        let tile = self.name();
        let by_rows = self.lanes_are_rows == (role == "A");
        let load = if by_rows { "coopLoadT" } else { "coopLoad" };
        format!(
            "let {name} = {load}<coop_mat16x16<f16, {role}>>(&tile_{tile}[read_{tile} + {}u], {}u);\n",
            self.at(lane, k),
            self.row
        )
    }
}

/// The dispatches of a product with this tile, its sums cut into `parts`.
pub(super) fn lower(
    product: &Product,
    tile: CoopTile,
    parts: usize,
    dtype: DType,
    caps: &Caps,
    before: Lowered,
    terms: &Terms,
) -> Lowered {
    let even = tile.unrolled(parts) && product.steps.are_even(tile.k);
    let cut = Cut { m: tile.m, n: tile.n, k: tile.k, parts, band: tile.band, even };
    let threads = tile.threads();
    let part = |name, lanes, extent, origin| Part {
        name,
        lane: Lane::F16,
        lanes,
        tile: [extent, tile.k],
        threads,
        origin,
        gather: true,
    };
    let a = loader(&product.a, part("a", product.m, tile.m, "m0"), terms, 0);
    let b = loader(&product.b, part("b", product.n, tile.n, "n0"), terms, 1);
    let mut lowered = before;
    let (writer, result) = if parts == 1 {
        let writer = Writer::finish(product);
        let width = writer.width();
        (writer, output(dtype, Lane::F32, width))
    } else {
        (Writer::partial(product), split::binding(&mut lowered, &product.results(), parts))
    };
    let wide = tile.wide(caps.workgroup_bytes as usize).expect("the tile was found to fit");
    let groups = cut.groups(product);
    let places = [Place::new(&a, terms.later(0)), Place::new(&b, terms.later(1))];
    let memory = format!(
        "var<workgroup> tile_a: array<vec4<f16>, {}>;
var<workgroup> tile_b: array<vec4<f16>, {}>;
var<workgroup> results: array<vec4<f32>, {}>;

",
        tile.buffers * places[0].quads,
        tile.buffers * places[1].quads,
        tile.result_bytes(wide) / 16
    );
    let body = memory + &main(threads, groups, &body(product, &tile, &cut, &places, &writer, wide, terms));
    let mut bindings = vec![a.binding(&product.a), b.binding(&product.b), result];
    if let Terms::Split(split) = terms {
        bindings.push(split.scales.binding.clone());
    }
    lowered.dispatches.push(Dispatch { body, bindings, groups });
    if parts > 1 {
        let scratch = lowered.scratch.len() - 1;
        lowered.dispatches.push(split::sum(&product.results(), parts, dtype, scratch));
    }
    lowered
}

/// Reads operand `number`.
fn loader(source: &Source, part: Part, terms: &Terms, number: usize) -> Loader {
    match (terms, &source.layout) {
        (Terms::Split(split), Layout::Strided(strided)) if split.later[number] => {
            let part = Part { lane: Lane::F32, tile: [part.tile[0], part.tile[1] / 2], ..part };
            let first = if number == 0 { &split.scales.rows } else { &split.scales.columns };
            later::loader(strided, part, split.terms, first)
        }
        _ => Loader::new(source, part),
    }
}

fn body(
    product: &Product,
    tile: &CoopTile,
    cut: &Cut,
    places: &[Place; 2],
    writer: &Writer,
    wide: usize,
    terms: &Terms,
) -> String {
    let [tall, broad] = tile.blocks();
    let mut text = cut.begin(product);
    let _ = writeln!(text, "let subgroup = tid / {SUBGROUP}u;");
    let _ = writeln!(text, "let own_m = subgroup / {}u * {}u;", tile.subgroups[1], tall * BLOCK);
    let _ = writeln!(text, "let own_n = subgroup % {}u * {}u;", tile.subgroups[1], broad * BLOCK);
    for (place, own) in places.iter().zip(["own_m", "own_n"]) {
        text += &place.loader.setup;
        text += &place.loader.declarations;
        text += &place.slot();
        let by = if place.lanes_are_rows { format!("{own} * {}u", place.row) } else { format!("{own} / 4u") };
        let _ = writeln!(text, "let first_{} = {by};", place.name());
    }
    let split = matches!(terms, Terms::Split(_));
    for (i, j) in tile.each_block() {
        let _ = writeln!(text, "var c{i}_{j}: coop_mat16x16<f32, C>;");
        if split {
            let _ = writeln!(text, "var run{i}_{j}: coop_mat16x16<f32, C>;");
        }
    }
    text += &steps(product, tile, cut, places, terms);
    if split {
        text += &add_runs(tile, false);
    }
    text + &finish(product, tile, writer, wide, terms)
}

/// The loop over steps.
fn steps(product: &Product, tile: &CoopTile, cut: &Cut, places: &[Place; 2], terms: &Terms) -> String {
    let [a, b] = places;
    let joined = |f: &dyn Fn(&Loader) -> String| [f(a.loader), f(b.loader)].concat();
    let fetch = if cut.has_rests(product) {
        format!(
            "if (k_left >= {}u) {{\n{}}} else {{\n{}}}\n",
            tile.k,
            indented(&joined(&|l| l.fetch.clone()), 1),
            indented(&joined(&|l| l.guarded.clone()), 1)
        )
    } else {
        joined(&|l| l.fetch.clone())
    };
    let fetch = cut.step(product) + &fetch;
    let deposit = [a.deposit(), b.deposit()].concat();
    let own = ["first_a", "first_b"];
    let multiply = match terms {
        Terms::Halves => multiply(tile, places),
        Terms::Split(_) => multiply_split(tile, places),
    };
    let turns = Turns { straight: tile.straight, twice: cut.even, buffers: tile.buffers };
    pipeline(turns, [a.quads, b.quads], own, &fetch, &multiply, &deposit)
}

/// One step out of workgroup memory.
fn multiply(tile: &CoopTile, [a, b]: &[Place; 2]) -> String {
    let [tall, broad] = tile.blocks();
    let mut text = String::new();
    for k in (0..tile.k).step_by(BLOCK) {
        // The side with fewer blocks stays, the other one passes.
        let across = |i: usize| a.block(&format!("a{k}_{i}"), "A", i * BLOCK, k);
        let along = |j: usize| b.block(&format!("b{k}_{j}"), "B", j * BLOCK, k);
        let add = |i: usize, j: usize| format!("c{i}_{j} = coopMultiplyAdd(a{k}_{i}, b{k}_{j}, c{i}_{j});\n");
        if broad <= tall {
            text.extend((0..broad).map(along));
            text.extend((0..tall).flat_map(|i| once(across(i)).chain((0..broad).map(move |j| add(i, j)))));
        } else {
            text.extend((0..tall).map(across));
            text.extend((0..broad).flat_map(|j| once(along(j)).chain((0..tall).map(move |i| add(i, j)))));
        }
    }
    text
}

/// One step of split operands, in which rests follow halves.
fn multiply_split(tile: &CoopTile, [a, b]: &[Place; 2]) -> String {
    let ([tall, broad], depth) = (tile.blocks(), tile.k / 2);
    let mut text = String::new();
    for k in (0..depth).step_by(BLOCK) {
        for j in 0..broad {
            text += &b.block(&format!("b_high{k}_{j}"), "B", j * BLOCK, k);
            text += &b.block(&format!("b_low{k}_{j}"), "B", j * BLOCK, depth + k);
        }
        for i in 0..tall {
            text += &a.block(&format!("a_high{k}_{i}"), "A", i * BLOCK, k);
            text += &a.block(&format!("a_low{k}_{i}"), "A", i * BLOCK, depth + k);
            for (x, y) in [("low", "high"), ("high", "low"), ("high", "high")] {
                for j in 0..broad {
                    let (a, b) = (format!("a_{x}{k}_{i}"), format!("b_{y}{k}_{j}"));
                    let _ = writeln!(text, "run{i}_{j} = coopMultiplyAdd({a}, {b}, run{i}_{j});");
                }
            }
        }
    }
    let (turns, add) = ((RUN / depth).max(1), indented(&add_runs(tile, true), 1));
    let _ = write!(text, "if ((now - first) % {turns}u == {}u) {{\n{add}}}\n", turns - 1);
    text
}

/// Adds what has run up to the sums, and starts `anew`.
fn add_runs(tile: &CoopTile, anew: bool) -> String {
    let mut text = String::new();
    for (i, j) in tile.each_block() {
        let _ = writeln!(text, "c{i}_{j} = c{i}_{j} + run{i}_{j};");
        if anew {
            let _ = writeln!(text, "run{i}_{j} = coop_mat16x16<f32, C>();");
        }
    }
    text
}

/// Every subgroup lays some blocks of results out in its part of workgroup memory, and its threads finish
/// them.
fn finish(product: &Product, tile: &CoopTile, writer: &Writer, wide: usize, terms: &Terms) -> String {
    let [tall, broad] = tile.blocks();
    let row = BLOCK / 4 * wide;
    let quads = BLOCK * row;
    let mut text = writer.begin(product);
    let _ = writeln!(text, "let stage = subgroup * {quads}u;");
    let _ = writeln!(text, "let stride = {row}u;");
    for j in 0..wide {
        let _ = writeln!(text, "let stage{j} = stage + {}u;", j * BLOCK / 4);
    }
    for i in 0..tall {
        for first in (0..broad).step_by(wide) {
            for j in 0..wide {
                let _ = writeln!(text, "coopStoreT(c{i}_{}, &results[stage{j}], stride);", first + j);
            }
            text += &if writer.width() == 4 {
                write_quads(product, tile, writer, wide, terms, [i, first])
            } else {
                write_singly(product, tile, writer, wide, terms, [i, first])
            };
        }
    }
    text
}

/// Writes blocks of results, from row `i` of blocks and column `first` on, four neighbours at a time.
fn write_quads(
    product: &Product,
    tile: &CoopTile,
    writer: &Writer,
    wide: usize,
    terms: &Terms,
    [i, first]: [usize; 2],
) -> String {
    let row = BLOCK / 4 * wide;
    let (row_edge, column_edge) = edges(product, tile);
    let value = match terms {
        Terms::Halves => "let value = results[stage + place];\n".to_string(),
        Terms::Split(split) => split.scales.apply("results[stage + place]"),
    };
    let mut one = format!("let n = n0 + own_n + {}u + place % {row}u * 4u;\n", first * BLOCK);
    let _ = writeln!(one, "let out_row = {};", writer.row("m"));
    one += &value;
    one += &writer.quad("out_row", "n", "value", column_edge);
    if row_edge {
        one = format!("if (m < {}u) {{\n{}}}\n", product.m, indented(&one, 1));
    }
    format!(
        "workgroupBarrier();
for (var place = tid % {SUBGROUP}u; place < {}u; place += {SUBGROUP}u) {{
    let m = m0 + own_m + {}u + place / {row}u;
{}}}
workgroupBarrier();
",
        BLOCK * row,
        i * BLOCK,
        indented(&one, 1)
    )
}

/// The same one by one, where rows do not begin at fours: neighbours of a subgroup write neighbours. A thread
/// stays in its column, and reads the results of some rows before it writes any.
fn write_singly(
    product: &Product,
    tile: &CoopTile,
    writer: &Writer,
    wide: usize,
    terms: &Terms,
    [i, first]: [usize; 2],
) -> String {
    /// Rows that are read at once.
    const AT_ONCE: usize = 4;
    let (row_edge, column_edge) = edges(product, tile);
    let across = (BLOCK * wide).min(SUBGROUP);
    let down = SUBGROUP / across;
    let mut text = "workgroupBarrier();\n".to_string();
    for side in (0..BLOCK * wide).step_by(across) {
        let mut one = format!("let column_at = {side}u + tid % {across}u;\n");
        let _ = writeln!(one, "let n = n0 + own_n + {}u + column_at;", first * BLOCK);
        let mut rows = String::new();
        if let Terms::Split(split) = terms {
            one += &split.scales.column();
        }
        let mut writes = String::new();
        for r in 0..AT_ONCE {
            let _ = writeln!(rows, "let down{r} = turn + {}u + tid % {SUBGROUP}u / {across}u;", r * down);
            let _ = writeln!(rows, "let row_at{r} = m0 + own_m + {}u + down{r};", i * BLOCK);
            let sum = format!("results[stage + down{r} * stride + column_at / 4u][column_at % 4u]");
            rows += &match terms {
                Terms::Halves => format!("let value{r} = {sum};\n"),
                Terms::Split(split) => {
                    let last = product.m - 1;
                    let m = if row_edge { format!("min(row_at{r}, {last}u)") } else { format!("row_at{r}") };
                    split.scales.apply_one(&sum, &m, r)
                }
            };
            let write = writer.one(&format!("row_at{r}"), "n", &format!("value{r}"));
            let _ = if row_edge {
                write!(writes, "if (row_at{r} < {}u) {{\n{}}}\n", product.m, indented(&write, 1))
            } else {
                write!(writes, "{{\n{}}}\n", indented(&write, 1))
            };
        }
        rows += &writes;
        let turns = format!(
            "for (var turn = 0u; turn < {BLOCK}u; turn += {}u) {{\n{}}}\n",
            AT_ONCE * down,
            indented(&rows, 1)
        );
        one += &if column_edge {
            format!("if (n < {}u) {{\n{}}}\n", product.n, indented(&turns, 1))
        } else {
            turns
        };
        let _ = write!(text, "{{\n{}}}\n", indented(&one, 1));
    }
    text + "workgroupBarrier();\n"
}

/// Whether tiles reach beyond the last row, and the last column.
fn edges(product: &Product, tile: &CoopTile) -> (bool, bool) {
    (!product.m.is_multiple_of(tile.m), !product.n.is_multiple_of(tile.n))
}
