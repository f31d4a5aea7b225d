//! The tiled kernel in f32: workgroups compute tiles, threads blocks of them in registers. While one step's
//! tiles are multiplied out of workgroup memory, the next step's come from memory; two buffers, so that a
//! step takes one barrier.

use super::load::{LoadTile, Loader, only_active};
use super::product::{Product, output};
use super::split_k;
use super::thread_mapping::Unit;
use super::tile::Tile;
use super::tile_raster::{AccumulationPasses, TileGrid, pipeline};
use super::wgsl::{indented, main};
use super::write::{Writer, write};
use crate::dispatch::{ComputeType, Dispatch, Lowered};
use std::fmt::Write;
use volta_ir::dtype::DType;

const PARTS: [&str; 4] = ["x", "y", "z", "w"];

/// The dispatches of a product with this tile, its sums cut into `parts`.
pub(super) fn lower(product: &Product, tile: Tile, parts: usize, dtype: DType, before: Lowered) -> Lowered {
    let cut = TileGrid { m: tile.m, n: tile.n, k: tile.k, parts, band: tile.band, even: false };
    let threads = tile.threads();
    let part = |name, lanes, extent, origin| LoadTile {
        name,
        lane: ComputeType::F32,
        lanes,
        tile: [extent, tile.k],
        threads,
        origin,
        gather: false,
        in_two: false,
    };
    let a = Loader::new(&product.a, part("a", product.m, tile.m, "m0"));
    let b = Loader::new(&product.b, part("b", product.n, tile.n, "n0"));
    let writer = if parts == 1 { Writer::finish(product) } else { Writer::partial(product) };
    let mut lowered = before;
    let result = if parts == 1 {
        output(dtype, ComputeType::F32, writer.width())
    } else {
        split_k::binding(&mut lowered, &product.results(), parts)
    };
    let groups = cut.groups(product);
    let shared = [Shared::of(&tile, &a, tile.m), Shared::of(&tile, &b, tile.n)];
    let memory: String = shared.iter().map(Shared::declaration).collect();
    let text = body(product, &tile, &cut, [&a, &b], &shared, &writer);
    let body = format!("{memory}\n{}", main(threads, groups, &text));
    let bindings = vec![a.binding(&product.a), b.binding(&product.b), result];
    lowered.dispatches.push(Dispatch { body, bindings, groups });
    if parts > 1 {
        lowered.dispatches.push(split_k::sum(&product.results(), parts, dtype, lowered.scratch.len() - 1));
    }
    lowered
}

fn row(tile: &Tile, extent: usize) -> usize {
    (extent + tile.padding) / 4
}

/// The workgroup memory of an operand's tiles, in fours.
struct Shared {
    name: &'static str,
    fours: usize,
    /// Whether it is declared as vectors; else they are put together where they are read.
    vectors: bool,
}

impl Shared {
    fn of(tile: &Tile, loader: &Loader, extent: usize) -> Shared {
        let vectors = tile.component_stores || loader.spread.unit == Unit::QuadLane;
        Shared { name: loader.part.name, fours: 2 * tile.k * row(tile, extent), vectors }
    }

    fn declaration(&self) -> String {
        let (name, fours) = (self.name, self.fours);
        if self.vectors {
            format!("var<workgroup> tile_{name}: array<vec4<f32>, {fours}>;\n")
        } else {
            format!("var<workgroup> tile_{name}: array<f32, {}>;\n", 4 * fours)
        }
    }

    /// The element `part` of the four at a place.
    fn one(&self, at: &str, part: &str) -> String {
        let name = self.name;
        if self.vectors {
            format!("tile_{name}[{at}][{part}]")
        } else {
            format!("tile_{name}[4u * ({at}) + {part}]")
        }
    }

    fn four(&self, at: &str) -> String {
        if self.vectors {
            return format!("tile_{}[{at}]", self.name);
        }
        format!("vec4<f32>({})", ["0u", "1u", "2u", "3u"].map(|part| self.one(at, part)).join(", "))
    }

    fn set_four(&self, at: &str, value: &str) -> String {
        if self.vectors {
            return format!("tile_{}[{at}] = {value};\n", self.name);
        }
        let one = |k: usize| format!("{} = {value}.{};\n", self.one(at, &format!("{k}u")), PARTS[k]);
        (0..4).map(one).collect()
    }
}

fn body(
    product: &Product,
    tile: &Tile,
    cut: &TileGrid,
    [a, b]: [&Loader; 2],
    shared: &[Shared; 2],
    writer: &Writer,
) -> String {
    let [rows, columns] = tile.grid();
    // A subgroup of 32 is a block of 4 × 8 threads. Neighbours share a column, and every other one a row: so
    // two quarters of the subgroup are served at once when all read quads of workgroup memory.
    let across = columns / 8;
    let mut text = cut.begin(product);
    let own = if tile.slices == 1 {
        "tid"
    } else {
        let threads = rows * columns;
        let _ = writeln!(text, "let slice = tid / {threads}u;\nlet own = tid % {threads}u;");
        "own"
    };
    let _ = writeln!(text, "let tx = ({own} / 32u) % {across}u * 8u + ({own} / 2u) % 8u;");
    let _ = writeln!(text, "let ty = {own} / {}u * 4u + ({own} / 16u) % 2u * 2u + {own} % 2u;", 32 * across);
    for (loader, extent) in [(a, tile.m), (b, tile.n)] {
        let name = loader.part.name;
        text += &loader.setup;
        text += &loader.declarations;
        let row = row(tile, extent);
        let swap =
            if swizzled(tile, loader) { format!(" ^ ({name}_k / 4u % 2u * 4u)") } else { String::new() };
        let _ = writeln!(text, "let {name}_slot = {name}_k * {row}u + ({name}_lane / 4u{swap});");
        let _ = writeln!(text, "let {name}_part = {name}_lane % 4u;");
    }
    let [tall, wide] = tile.per_thread.map(|extent| extent / 4);
    for (i, g) in each(4 * tall, wide) {
        let _ = writeln!(text, "var c{i}_{g}: vec4<f32>;");
    }
    let fetch = if cut.has_rests(product) {
        format!(
            "if (k_left >= {}u) {{\n{}}} else {{\n{}}}\n",
            tile.k,
            indented(&[&*a.fetch, &b.fetch].concat(), 1),
            indented(&[&*a.guarded, &b.guarded].concat(), 1)
        )
    } else {
        [&*a.fetch, &b.fetch].concat()
    };
    let (quads_a, quads_b) = (tile.k * row(tile, tile.m), tile.k * row(tile, tile.n));
    let deposit =
        [deposit(a, &shared[0], row(tile, tile.m)), deposit(b, &shared[1], row(tile, tile.n))].concat();
    let fetch = cut.step(product) + &fetch;
    let multiply = multiply(tile, shared, [rows, columns], [swizzled(tile, a), swizzled(tile, b)]);
    let iterations = AccumulationPasses { straight: tile.straight, twice: false, buffers: 2 };
    text += &pipeline(iterations, [quads_a, quads_b], ["0u"; 2], &fetch, &multiply, &deposit);
    if tile.slices > 1 {
        return text + &finish_slices(product, tile, &shared[0], writer);
    }
    let rows: Vec<(String, Vec<(String, String)>)> = (0..4 * tall)
        .map(|i| {
            let m = format!("m0 + ty * 4u + {}u", i / 4 * 4 * rows + i % 4);
            let columns = (0..wide)
                .map(|g| (format!("n0 + tx * 4u + {}u", g * 4 * columns), format!("c{i}_{g}")))
                .collect();
            (m, columns)
        })
        .collect();
    text + &write(product, writer, [tile.m, tile.n], &rows)
}

/// Adds what the slices have summed, through the memory of A's tiles, and writes it: each slice some rows.
fn finish_slices(product: &Product, tile: &Tile, memory: &Shared, writer: &Writer) -> String {
    let ([rows, columns], [tall, wide]) = (tile.grid(), tile.per_thread.map(|extent| extent / 4));
    assert_eq!(tall, 1, "a slice's rows are neighbours");
    let (threads, count) = (rows * columns, 4 * wide);
    let mut text = String::new();
    for (i, g) in each(4, wide) {
        let at = (i * wide + g) * threads;
        let at = format!("slice * {}u + {at}u + own", count * threads);
        text += &memory.set_four(&at, &format!("c{i}_{g}"));
    }
    text += "workgroupBarrier();\n";
    let own = 4 / tile.slices;
    let mut written = Vec::new();
    for i in 0..own {
        let mut sums = Vec::new();
        for g in 0..wide {
            let first = format!("(slice * {}u + {}u) * {threads}u + own", own * wide, i * wide + g);
            let own = memory.four(&format!("at{i}_{g}"));
            let _ = writeln!(text, "let at{i}_{g} = {first};\nvar sum{i}_{g} = {own};");
            for s in 1..tile.slices {
                let other = memory.four(&format!("at{i}_{g} + {}u", s * count * threads));
                let _ = writeln!(text, "sum{i}_{g} += {other};");
            }
            sums.push((format!("n0 + tx * 4u + {}u", g * 4 * columns), format!("sum{i}_{g}")));
        }
        written.push((format!("m0 + ty * 4u + slice * {own}u + {i}u"), sums));
    }
    text + &write(product, writer, [tile.m, tile.n], &written)
}

fn each(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |i| (0..columns).map(move |g| (i, g)))
}

/// Whether a tile without padding, whose quads along k are stored across, has every second four of its rows
/// shifted by half of the banks instead.
fn swizzled(tile: &Tile, loader: &Loader) -> bool {
    tile.padding == 0 && tile.unroll == 4 && tile.threads() >= 128 && loader.spread.unit == Unit::QuadK
}

/// Registers into workgroup memory, where rows are ks.
fn deposit(loader: &Loader, memory: &Shared, row: usize) -> String {
    let name = loader.part.name;
    let (lanes, ks) = loader.spread.places();
    let mut text = loader.unpack.clone();
    for j in 0..loader.spread.count() {
        let at = |k: usize| {
            let added = (ks.added[j] + k) * row + lanes.added[j] / 4;
            format!("into_{name} + {name}_slot + {added}u")
        };
        let one = |k: usize| memory.one(&at(k), &format!("{name}_part"));
        match loader.spread.unit {
            Unit::QuadLane => text += &memory.set_four(&at(0), &format!("{name}_value{j}")),
            Unit::One => {
                let _ = writeln!(text, "{} = {name}_value{j};", one(0));
            }
            Unit::QuadK => {
                for (k, part) in PARTS.iter().enumerate() {
                    let _ = writeln!(text, "{} = {name}_value{j}.{part};", one(k));
                }
            }
            Unit::EightK | Unit::EightLane => unreachable!("only halves come in eights"),
        }
    }
    only_active(&loader.spread, text)
}

/// One step out of workgroup memory: iterations of some terms each, so that their instructions stay in the first
/// cache.
fn multiply(tile: &Tile, [a, b]: &[Shared; 2], [rows, columns]: [usize; 2], swizzled: [bool; 2]) -> String {
    let [tall, wide] = tile.per_thread.map(|extent| extent / 4);
    let (row_a, row_b) = (row(tile, tile.m), row(tile, tile.n));
    let read = |k: usize| {
        let mut text = String::new();
        for h in 0..tall {
            let four = a.four(&format!("at_a + {}u", k * row_a + h * rows));
            let _ = writeln!(text, "let a{k}_{h} = {four};");
        }
        for g in 0..wide {
            let four = b.four(&format!("at_b + {}u", k * row_b + g * columns));
            let _ = writeln!(text, "let b{k}_{g} = {four};");
        }
        text
    };
    let add = |k: usize| {
        let mut text = String::new();
        for (i, g) in each(4 * tall, wide) {
            let (h, part) = (i / 4, PARTS[i % 4]);
            let _ = writeln!(text, "c{i}_{g} = fma(vec4<f32>(a{k}_{h}.{part}), b{k}_{g}, c{i}_{g});");
        }
        text
    };
    let count = tile.unroll.min(tile.k / tile.slices);
    let iterations = tile.k / tile.slices / count;
    let terms: String = (0..count).map(|k| read(k) + &add(k)).collect();
    let own = |name: &str, swizzled: bool| {
        if swizzled { format!("({name} ^ (turn % 2u * 4u))") } else { name.into() }
    };
    let (first, last) = if tile.slices == 1 {
        ("0u".into(), format!("{iterations}u"))
    } else {
        (format!("slice * {iterations}u"), format!("(slice + 1u) * {iterations}u"))
    };
    format!(
        "for (var turn = {first}; turn < {last}; turn++) {{
    let at_a = read_a + turn * {}u + {};
    let at_b = read_b + turn * {}u + {};
{}}}
",
        count * row_a,
        own("ty", swizzled[0]),
        count * row_b,
        own("tx", swizzled[1]),
        indented(&terms, 1)
    )
}
