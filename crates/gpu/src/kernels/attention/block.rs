//! What the passes share: a workgroup that owns rows of scores and goes through their columns block by block,
//! the tiles it reads through workgroup memory, and who of its threads computes what.
//!
//! In the shaders `lane` is the thread, `down` its place among the own rows and `across` its place among
//! those threads that share a row; `first` is the first own row, `other` the first column of the block at
//! hand.

use super::problem::Problem;
use super::tile::Tile;
use super::tiling::{Parts, Tiling};
use super::view::View;
use crate::caps::Caps;
use crate::dispatch::{Binding, Dispatch};
use std::fmt::Write;

pub(super) struct Block<'a> {
    pub problem: &'a Problem,
    pub tiling: Tiling,
    /// Of the rows of q and k, and of those of v.
    pub width: Parts,
    pub value: Parts,
    shuffles: bool,
}

/// How the work of a dispatch is cut: for every matrix of scores, `tiles` of own rows, each as often as there
/// are `slices` of the result's width. The heaviest come first, which causality makes the last or the first.
pub(super) struct BlockMapping {
    pub tiles: usize,
    pub slices: usize,
    pub heavy_last: bool,
}

/// What some workgroups do, how many they are, and the memory that they see.
pub(super) struct Program {
    text: String,
    bindings: Vec<Binding>,
    pub groups: usize,
}

/// Rows on their way into a tile: those of `view` from row `first` on, in variables called `name`.
pub(super) struct Incoming<'a> {
    pub name: &'static str,
    pub tile: Tile,
    pub view: &'a View,
    pub first: &'static str,
}

impl<'a> Block<'a> {
    pub fn new(problem: &'a Problem, tiling: Tiling, caps: &Caps) -> Block<'a> {
        Block {
            problem,
            tiling,
            width: Parts::of(problem.width, tiling.depth),
            value: Parts::of(problem.value_width, tiling.depth),
            shuffles: tiling.shuffles(caps),
        }
    }

    pub fn own_tile(&self, parts: Parts) -> Tile {
        Tile {
            name: "own_rows",
            first: 0,
            rows: self.tiling.own,
            quads: parts.quads,
            group: self.tiling.thread_rows,
            half: false,
        }
    }

    pub fn other_tile(&self, parts: Parts) -> Tile {
        Tile {
            name: "other_rows",
            first: 0,
            rows: self.tiling.other,
            quads: parts.quads,
            group: 4,
            half: false,
        }
    }

    /// The block of scores, once they are weights.
    pub fn weights(&self) -> Tile {
        Tile {
            name: "weights",
            first: 0,
            rows: self.tiling.own,
            quads: self.tiling.other / 4,
            group: self.tiling.thread_rows,
            half: false,
        }
    }

    /// The quad of columns number `n` of a thread.
    pub fn column_quad(&self, n: usize) -> String {
        format!("across + {}u", n * self.tiling.across())
    }

    /// The thread's rows and quads of columns.
    pub fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let quads = self.tiling.thread_quads;
        (0..self.tiling.thread_rows).flat_map(move |i| (0..quads).map(move |n| (i, n)))
    }

    /// The workgroup memory of products without cooperative matrices.
    pub fn memory(&self) -> String {
        let size =
            |tile: fn(&Self, Parts) -> Tile| tile(self, self.width).size().max(tile(self, self.value).size());
        let mut text = String::new();
        for (name, size) in [
            ("own_rows", size(Self::own_tile)),
            ("other_rows", size(Self::other_tile)),
            ("weights", self.weights().size()),
        ] {
            _ = writeln!(text, "var<workgroup> {name}: array<vec4<f32>, {}>;", size.max(1));
        }
        if !self.shuffles {
            let count = self.tiling.own * self.tiling.across();
            _ = writeln!(text, "var<workgroup> partial: array<f32, {count}>;");
        }
        text
    }

    /// The shader around `main`'s statements, given the workgroup memory they use.
    pub fn dispatch(
        &self,
        spread: BlockMapping,
        memory: String,
        statements: &str,
        bindings: Vec<Binding>,
    ) -> Dispatch {
        self.shader(memory, &[self.program(spread, statements, bindings)])
    }

    /// What the workgroups of a dispatch do, or some of them: `group` is their number.
    pub fn program(&self, spread: BlockMapping, statements: &str, bindings: Vec<Binding>) -> Program {
        let (p, t) = (self.problem, &self.tiling);
        let BlockMapping { tiles, slices, heavy_last } = spread;
        let (items, heads) = (p.only.len(), p.heads);
        let from = if p.only.start == 0 { String::new() } else { format!("{}u + ", p.only.start) };
        let count = tiles * slices * items;
        let place = match (p.causal, heavy_last) {
            (false, _) => format!("let item = {from}rest / {tiles}u;\nlet tile = rest % {tiles}u;"),
            (true, false) => format!("let item = {from}rest % {items}u;\nlet tile = rest / {items}u;"),
            (true, true) => {
                format!("let item = {from}rest % {items}u;\nlet tile = {}u - rest / {items}u;", tiles - 1)
            }
        };
        let text = format!(
            r"let slice = group % {slices}u;
let rest = group / {slices}u;
{place}
let batch = item / {heads}u;
let head = item % {heads}u;
let first = tile * {own}u;
let down = lane / {across}u;
let across = lane % {across}u;
{statements}",
            own = t.own,
            across = t.across(),
        );
        Program { text, bindings, groups: count }
    }

    /// The shader of programs that do not wait for each other, each of which has workgroups of its own.
    pub fn shader(&self, memory: String, programs: &[Program]) -> Dispatch {
        let (mut cases, mut bindings, mut groups) = (String::new(), Vec::<Binding>::new(), 0);
        for (n, program) in programs.iter().enumerate() {
            let (first, text) = (groups, &program.text);
            groups += program.groups;
            if n + 1 < programs.len() {
                cases += &format!("if (wanted < {groups}u) ");
            }
            cases += &format!("{{\nlet group = wanted - {first}u;\n{text}}}");
            cases += if n + 1 < programs.len() { " else " } else { "\n" };
            for binding in &program.bindings {
                match bindings.iter_mut().find(|known| known.name == binding.name) {
                    Some(known) => {
                        known.width = known.width.max(binding.width);
                        known.reads |= binding.reads;
                        known.writes |= binding.writes;
                    }
                    None => bindings.push(binding.clone()),
                }
            }
        }
        let body = format!(
            r"{memory}
@compute @workgroup_size({threads})
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) nwg: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {{
let wanted = wg.x + wg.y * nwg.x;
if (wanted >= {groups}u) {{ return; }}
{cases}}}
",
            threads = self.tiling.threads(),
        );
        Dispatch { body, bindings, groups: groups as u64 }
    }

    /// Declares the thread's share `name` of a tile that is on its way to workgroup memory.
    pub fn declare(&self, name: &str, tile: &Tile, view: &View) -> String {
        let declare = |n| format!("var {name}_{n} = {}();\n", view.read_type());
        (0..self.shares(tile, view)).map(declare).collect()
    }

    fn shares(&self, tile: &Tile, view: &View) -> usize {
        (tile.rows * tile.quads / view.fours()).div_ceil(self.tiling.threads())
    }

    /// The thread's share number `n` as (row, quad) of the tile, and, unless all threads have one, those that do.
    fn share(&self, tile: &Tile, view: &View, n: usize) -> (String, String, Option<String>) {
        let (threads, fours) = (self.tiling.threads(), view.fours());
        let element = format!("(lane + {}u)", n * threads);
        let (each, all) = (tile.quads / fours, tile.rows * tile.quads / fours);
        let times = if fours == 1 { String::new() } else { format!(" * {fours}u") };
        let some = ((n + 1) * threads > all).then(|| format!("lane < {}u", all - n * threads));
        (format!("{element} / {each}u"), format!("{element} % {each}u{times}"), some)
    }

    /// Reads the thread's share of the rows of `view` from row `first` on and from quad `from` on; what does
    /// not exist is 0.
    pub fn fetch(&self, name: &str, tile: &Tile, view: &View, first: &str, from: &str) -> String {
        let mut text = String::new();
        for n in 0..self.shares(tile, view) {
            let (row, quad, some) = self.share(tile, view, n);
            let (row, quad) = (format!("{first} + {row}"), format!("{from} + {quad}"));
            let mut conditions: Vec<String> = some.into_iter().collect();
            if !view.rows.is_multiple_of(tile.rows) {
                conditions.push(format!("{row} < {}u", view.rows));
            }
            if view.cols != 4 * tile.quads {
                conditions.push(format!("({quad}) * 4u < {}u", view.cols));
            }
            let value = view.read(&row, &quad);
            _ = if conditions.is_empty() {
                writeln!(text, "{name}_{n} = {value};")
            } else {
                let (condition, zero) = (conditions.join(" && "), view.read_type());
                writeln!(text, "{name}_{n} = {zero}();\nif ({condition}) {{ {name}_{n} = {value}; }}")
            };
        }
        text
    }

    /// Writes the thread's share into workgroup memory.
    pub fn place(&self, name: &str, tile: &Tile, view: &View) -> String {
        let mut text = String::new();
        for n in 0..self.shares(tile, view) {
            let (row, quad, some) = self.share(tile, view, n);
            let mut write = String::new();
            for k in 0..view.fours() {
                let value = view.four(&format!("{name}_{n}"), k);
                let value = if tile.half && !view.half { format!("vec4<f16>({value})") } else { value };
                let quad = if k == 0 { quad.clone() } else { format!("{quad} + {k}u") };
                write += &format!("{} = {value};\n", tile.at_row(&row, &quad));
            }
            text += &some.map_or(write.clone(), |some| format!("if ({some}) {{\n{write}}}\n"));
        }
        text
    }

    /// Brings rows into their tiles, from quad `from` of their width on.
    pub fn bring(&self, rows: &[Incoming], from: &str) -> String {
        let mut fetches = String::new();
        let mut places = String::new();
        for Incoming { name, tile, view, first } in rows {
            fetches += &self.declare(name, tile, view);
            fetches += &self.fetch(name, tile, view, first, from);
            places += &self.place(name, tile, view);
        }
        format!("{fetches}workgroupBarrier();\n{places}workgroupBarrier();\n")
    }

    /// Folds what the thread has of its rows over the threads that share them, by `op`: `max` or `sum`.
    pub fn fold(&self, op: &str, names: &[String]) -> String {
        let across = self.tiling.across();
        let join =
            |a: &str, b: &str| if op == "max" { format!("max({a}, {b})") } else { format!("{a} + {b}") };
        let mut text = String::new();
        if self.shuffles {
            for name in names {
                let mut step = across / 2;
                while step > 0 {
                    let other = format!("subgroupShuffleXor({name}, {step}u)");
                    _ = writeln!(text, "{name} = {};", join(name, &other));
                    step /= 2;
                }
            }
            return text;
        }
        let place = |i: usize| format!("partial[(down * {}u + {i}u) * {across}u", self.tiling.thread_rows);
        for (i, name) in names.iter().enumerate() {
            _ = writeln!(text, "{} + across] = {name};", place(i));
        }
        text += "workgroupBarrier();\n";
        for (i, name) in names.iter().enumerate() {
            _ = writeln!(text, "{name} = {}];", place(i));
            let next = join(name, &format!("{} + other_lane]", place(i)));
            _ = writeln!(
                text,
                "for (var other_lane = 1u; other_lane < {across}u; other_lane++) {{ {name} = {next}; }}"
            );
        }
        text + "workgroupBarrier();\n"
    }
}
