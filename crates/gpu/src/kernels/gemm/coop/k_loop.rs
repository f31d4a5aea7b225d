//! The loop over the steps of a sum.

use super::shared_tile::SharedTile;
use super::{BLOCK, CoopTile, OperandType, RUN};
use crate::kernels::gemm::load::Loader;
use crate::kernels::gemm::product::Product;
use crate::kernels::gemm::tile_raster::{AccumulationPasses, TileGrid, pipeline};
use crate::kernels::gemm::wgsl::indented;
use std::fmt::Write;
use std::iter::once;

/// The loop over steps.
pub(super) fn steps(
    product: &Product,
    tile: &CoopTile,
    cut: &TileGrid,
    places: &[SharedTile; 2],
    terms: &OperandType,
) -> String {
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
    if let (Some(of_a), Some(of_b)) = (&a.loader.in_two, &b.loader.in_two) {
        let fetch = [0, 1].map(|half| cut.step(product) + &of_a[half] + &of_b[half]);
        let deposit = [0, 1].map(|half| a.deposit_half(half) + &b.deposit_half(half));
        return in_two(tile, places, fetch, deposit);
    }
    if tile.is_ahead()
        && matches!(terms, OperandType::Halves)
        && cut.is_plain(product)
        && a.eights()
        && b.eights()
    {
        return ahead(tile, places, &fetch, &deposit);
    }
    let own = ["first_a", "first_b"];
    let multiply = match terms {
        OperandType::Halves => multiply(tile, places),
        OperandType::Split(_) => multiply_split(tile, places),
    };
    let iterations = AccumulationPasses { straight: tile.straight, twice: cut.even, buffers: tile.buffers };
    pipeline(iterations, [a.quads, b.quads], own, &fetch, &multiply, &deposit)
}

/// One step out of workgroup memory.
fn multiply(tile: &CoopTile, [a, b]: &[SharedTile; 2]) -> String {
    let [tall, broad] = tile.blocks();
    let mut text = String::new();
    for k in (0..tile.k).step_by(BLOCK) {
        // The side with fewer blocks stays, the other one passes.
        let across = |i: usize| format!("let a{k}_{i} = {};\n", a.block("A", i * BLOCK, k));
        let along = |j: usize| format!("let b{k}_{j} = {};\n", b.block("B", tile.column(j), k));
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
fn multiply_split(tile: &CoopTile, [a, b]: &[SharedTile; 2]) -> String {
    let ([tall, broad], depth) = (tile.blocks(), tile.k / 2);
    let mut text = String::new();
    for k in (0..depth).step_by(BLOCK) {
        for j in 0..broad {
            let _ = writeln!(text, "let b_high{k}_{j} = {};", b.block("B", tile.column(j), k));
            let _ = writeln!(text, "let b_low{k}_{j} = {};", b.block("B", tile.column(j), depth + k));
        }
        for i in 0..tall {
            let _ = writeln!(text, "let a_high{k}_{i} = {};", a.block("A", i * BLOCK, k));
            let _ = writeln!(text, "let a_low{k}_{i} = {};", a.block("A", i * BLOCK, depth + k));
            for (x, y) in [("low", "high"), ("high", "low"), ("high", "high")] {
                for j in 0..broad {
                    let (a, b) = (format!("a_{x}{k}_{i}"), format!("b_{y}{k}_{j}"));
                    let _ = writeln!(text, "run{i}_{j} = coopMultiplyAdd({a}, {b}, run{i}_{j});");
                }
            }
        }
    }
    let (iterations, add) = ((RUN / depth).max(1), indented(&add_runs(tile, true), 1));
    let _ = write!(text, "if ((now - first) % {iterations}u == {}u) {{\n{add}}}\n", iterations - 1);
    text
}

/// Adds what has run up to the sums, and starts `anew`.
pub(super) fn add_runs(tile: &CoopTile, anew: bool) -> String {
    let mut text = String::new();
    for (i, j) in tile.each_block() {
        let _ = writeln!(text, "c{i}_{j} = c{i}_{j} + run{i}_{j};");
        if anew {
            let _ = writeln!(text, "run{i}_{j} = coop_mat16x16<f32, C>();");
        }
    }
    text
}

/// Blocks of both halves of a step in registers: their declarations, and how a half is read, and multiplied.
struct Blocks<'p> {
    tile: &'p CoopTile,
    places: &'p [SharedTile<'p>; 2],
}

impl Blocks<'_> {
    fn declare(&self) -> String {
        let mut text = "let read_a = first_a;\nlet read_b = first_b;\n".to_string();
        for half in 0..2 {
            for (name, role, count) in self.sides() {
                for i in 0..count {
                    let _ = writeln!(text, "var {name}{half}_{i}: coop_mat16x16<f16, {role}>;");
                }
            }
        }
        text
    }

    fn sides(&self) -> [(&'static str, &'static str, usize); 2] {
        let [tall, broad] = self.tile.blocks();
        [("a", "A", tall), ("b", "B", broad)]
    }

    /// Where a block begins: rows are a subgroup's own, columns go round.
    fn lane(&self, role: &str, i: usize) -> usize {
        if role == "A" { i * BLOCK } else { self.tile.column(i) }
    }

    fn read(&self, half: usize) -> String {
        let mut text = String::new();
        for ((name, role, count), place) in self.sides().into_iter().zip(self.places) {
            for i in 0..count {
                let _ = writeln!(
                    text,
                    "{name}{half}_{i} = {};",
                    place.block(role, self.lane(role, i), half * BLOCK)
                );
            }
        }
        text
    }

    fn multiply(&self, half: usize) -> String {
        let one = |(i, j)| format!("c{i}_{j} = coopMultiplyAdd(a{half}_{i}, b{half}_{j}, c{i}_{j});\n");
        self.tile.each_block().map(one).collect()
    }
}

/// Reads a step; what is beyond the last one is the last one again.
fn fetch_step(fetch: &str, step: &str) -> String {
    format!("{{\n    let step = min({step}, last - 1u);\n{}}}\n", indented(fetch, 1))
}

const BARRIER: &str = "workgroupBarrier();\n";

/// The loop with every half of a step in registers before it is multiplied: while one half is, the next one comes from
/// workgroup memory, and after the last one has, the next step goes there.
fn ahead(tile: &CoopTile, places: &[SharedTile; 2], fetch: &str, deposit: &str) -> String {
    let blocks = Blocks { tile, places };
    let (read, multiply) = (|half| blocks.read(half), |half| blocks.multiply(half));
    let barrier = || BARRIER.to_string();
    let store = |step: &str| format!("{{\n{}}}\n", indented(deposit, 1)) + &fetch_step(fetch, step);
    let begin = [
        "let into_a = 0u;\nlet into_b = 0u;\n".into(),
        blocks.declare(),
        fetch_step(fetch, "first"),
        store("first + 1u"),
        barrier(),
        read(0),
        read(1),
        barrier(),
        store("first + 2u"),
        multiply(0),
        barrier(),
    ];
    let turn = [read(0), multiply(1), read(1), barrier(), store("now + 2u"), multiply(0), barrier()];
    format!(
        "{}for (var now = first + 1u; now < last; now++) {{\n{}}}\n{}",
        begin.concat(),
        indented(&turn.concat(), 1),
        multiply(1)
    )
}

/// The same with steps that are stored in two, a half while the other one is multiplied: one barrier for each.
fn in_two(tile: &CoopTile, places: &[SharedTile; 2], fetch: [String; 2], deposit: [String; 2]) -> String {
    let blocks = Blocks { tile, places };
    let fetch = |half: usize, step: &str| fetch_step(&fetch[half], step);
    let both = |step: &str| fetch(0, step) + &fetch(1, step);
    let begin = [
        blocks.declare(),
        both("first"),
        deposit.concat(),
        both("first + 1u"),
        BARRIER.into(),
        blocks.read(0),
        BARRIER.into(),
    ];
    let turn = [0, 1].map(|half| {
        let (read, multiply) = (blocks.read(1 - half), blocks.multiply(half));
        [&*deposit[half], &read, &multiply, &fetch(half, "now + 2u"), BARRIER].concat()
    });
    format!(
        "{}for (var now = first; now < last; now++) {{\n{}}}\n",
        begin.concat(),
        indented(&turn.concat(), 1)
    )
}
