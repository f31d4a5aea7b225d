//! Gradients of scores that are kept in memory. The keys' dispatch computes all of them; with them at hand the gradients
//! of queries are plain products, and nothing is computed again: five products instead of seven.
//!
//! A block is what a workgroup of the keys' dispatch has at a time, own keys by other queries, with the cells where its
//! threads hold them: quads 2n and 2n + 1 of thread `lane` are pair n · threads + lane. Causality leaves out blocks before
//! the diagonal.

use super::backward::Gradient;
use super::block::{Block, BlockMapping};
use super::coop::{Carried, Coop, OWN_ROWS};
use super::problem::Problem;
use super::tile::Tile;
use super::tiling::Tiling;
use super::view::{View, bindings, result};
use crate::caps::Caps;
use crate::dispatch::{Binding, ComputeType, Dispatch, Memory};
use std::fmt::Write;
use volta_ir::dtype::DType;

/// The most that is kept at once: little enough for any device, and much of it is still in the cache when it is read.
const MAX_BYTES: u64 = 64 << 20;
/// The most for a single matrix of scores: what every device can bind.
const MAX_BYTES_OF_ONE: u64 = 128 << 20;
/// The most parts, one after the other, that the matrices of scores are cut into: each has shaders of its own.
const MAX_PARTS: usize = 8;

/// Blocks on their way while another one is multiplied, for a product takes less time than they do: more of them where
/// there are so many keys that to read as many once more, at the end, is no loss.
const PREFETCHED_BLOCKS: [usize; 2] = [2, 4];
const MIN_KEYS_FOR_MORE_BLOCKS: usize = 512;

/// Two rows of queries a subgroup, for what is known of every query.
const ROWS: Tiling =
    Tiling { own: 16, other: 64, thread_rows: 1, thread_quads: 1, depth: 16, unroll: 1, ahead: false };

/// Of how many matrices of scores gradients can be kept at once, if of any. A mask's gradient is written by queries that
/// compute them.
pub(super) fn items_at_once(g: &Gradient, tiling: Tiling) -> Option<usize> {
    let one = StoredScoreGradients::new(&Problem { only: 0..1, ..g.problem.clone() }, tiling).bytes();
    let all = g.problem.only.len();
    let parts = all.div_ceil(((MAX_BYTES / one) as usize).max(1));
    let fits = one <= MAX_BYTES_OF_ONE && parts <= MAX_PARTS;
    (g.dmask.is_none() && fits).then(|| all.div_ceil(parts))
}

/// Leaves what the keys' dispatch needs of every query.
pub(super) fn statistics(g: &Gradient, caps: &Caps) -> Dispatch {
    let p = g.problem;
    let b = Block::new(p, ROWS, caps);
    let views = [&g.out, &g.grad, &g.lse];
    let text = views.map(View::start).concat() + &g.statistics_of_rows(&b);
    let mut all = bindings(views);
    all.push(g.statistics_binding(true));
    let spread = BlockMapping { tiles: p.queries.div_ceil(ROWS.own), slices: 1, heavy_last: false };
    b.dispatch(spread, String::new(), &text, all)
}

pub(super) struct StoredScoreGradients<'a> {
    problem: &'a Problem,
    tiling: Tiling,
}

impl<'a> StoredScoreGradients<'a> {
    pub fn new(problem: &'a Problem, tiling: Tiling) -> StoredScoreGradients<'a> {
        StoredScoreGradients { problem, tiling }
    }

    /// Blocks side by side in as many rows as a workgroup owns.
    fn across(&self) -> usize {
        OWN_ROWS / self.tiling.other
    }

    /// Blocks of a tile of keys.
    fn blocks(&self) -> usize {
        self.problem.queries.div_ceil(OWN_ROWS) * self.across()
    }

    /// Whether blocks before the diagonal have no place.
    fn triangular(&self) -> bool {
        self.problem.causal && self.problem.queries >= self.problem.keys
    }

    /// Blocks of a matrix of scores.
    fn of_item(&self) -> usize {
        let tiles = self.problem.keys.div_ceil(OWN_ROWS);
        let left_out = if self.triangular() { self.across() * tiles * (tiles - 1) / 2 } else { 0 };
        tiles * self.blocks() - left_out
    }

    /// Of a block.
    fn quads(&self) -> usize {
        OWN_ROWS * self.tiling.other / 4
    }

    pub fn bytes(&self) -> u64 {
        (self.problem.only.len() * self.of_item() * self.quads() * 8) as u64
    }

    pub fn binding(&self, writes: bool) -> Binding {
        Binding {
            name: "kept",
            memory: Memory::Scratch(1),
            dtype: DType::F16,
            lane: ComputeType::F16,
            width: if writes { 4 } else { 8 },
            reads: !writes,
            writes,
        }
    }

    /// The first element of the block of tile `tile` of keys and of the queries from `query` on.
    fn block(&self, tile: &str, query: &str) -> String {
        let (all, row, other) = (self.of_item(), self.blocks(), self.tiling.other);
        let item = format!("(item - {}u) * {all}u", self.problem.only.start);
        // In a triangle, what tile t has begins 0 + 1 + … + t times `across` blocks further back.
        let back = if self.triangular() {
            format!(" - {tile} * ({tile} + 1u) / 2u * {}u", self.across())
        } else {
            String::new()
        };
        format!("({item} + {tile} * {row}u + ({query}) / {other}u{back}) * {}u", 4 * self.quads())
    }

    /// Keeps the cells `name` of a thread of the keys' dispatch.
    pub fn keep(&self, b: &Block, name: &str) -> String {
        let (keys, threads) = (self.problem.keys, self.tiling.threads());
        let mut text = format!("let kept_block = {};\n", self.block("tile", "other"));
        for (i, n) in b.cells() {
            let cells = format!("{name}_{i}_{n}");
            // Keys that do not exist have weights, too, which nobody may see: they need not be numbers.
            let cells = if keys.is_multiple_of(OWN_ROWS) {
                cells
            } else {
                format!("select(vec4<f32>(), {cells}, first + down < {keys}u)")
            };
            let at = format!("kept_block + ({}u + lane) * 8u + {}u", n / 2 * threads, n % 2 * 4);
            _ = writeln!(text, "store4_kept({at}, vec4<f16>({cells}));");
        }
        text
    }

    /// The gradients of queries.
    pub fn queries(&self, g: &Gradient, caps: &Caps) -> Dispatch {
        let p = self.problem;
        let coop = Coop::of_sums(p, self.tiling, caps);
        let b = &coop.block;
        let keys = coop.near(b.width);
        let turned = Tile { first: keys.size(), quads: OWN_ROWS / 4, ..keys };
        let mut text = p.k.start() + &coop.names();
        text += &b.seen();
        text += &coop.declare(b.width, "dq");
        let body = coop.turned_by_rows(b.width, &turned, &keys, "dq");
        let carried = |k| coop.rows(&format!("near_next_{k}"), &keys, &p.k) + self.bring(&turned, k);
        let ahead = PREFETCHED_BLOCKS[usize::from(p.keys >= MIN_KEYS_FOR_MORE_BLOCKS)];
        let carried: Vec<Carried> = (0..ahead).map(carried).collect();
        text += &coop.sweep(["0u", "seen"], &carried, &body);
        text += "workgroupBarrier();\n";
        text += &coop.finish(b.width, "dq", &g.dq, &p.scale);
        let memory = format!(
            "var<workgroup> rows: array<vec4<f16>, {}>;\nvar<workgroup> scores: array<vec4<f32>, {}>;\n",
            turned.first + turned.size(),
            OWN_ROWS * coop.pitch()
        );
        let mut all = bindings([&p.k]);
        all.extend([result(g.output.dtype, &[&g.dq]), self.binding(false)]);
        let spread = BlockMapping { tiles: p.queries.div_ceil(OWN_ROWS), slices: 1, heavy_last: true };
        b.dispatch(spread, memory, &text, all)
    }

    /// Brings the gradients of the own queries' scores for the keys from `next` on to `turned`, a row a key. On their way
    /// they are called by a `number`.
    fn bring(&self, turned: &Tile, number: usize) -> Carried {
        let (t, threads) = (&self.tiling, self.tiling.threads());
        // Threads of the keys' dispatch that had a row of these keys, and the pairs of quads that each had of a block.
        let (holders, pairs) = (t.other * t.across(), t.thread_quads / 2);
        let fetch = format!(
            "let holder = next % {OWN_ROWS}u * {}u + lane % {holders}u;\nlet key_tile = next / {OWN_ROWS}u;\n",
            t.across()
        );
        let mut carried = Carried { fetch, ..Carried::default() };
        for k in 0..self.across() {
            let block = self.block("key_tile", &format!("first + {}u", k * t.other));
            _ = writeln!(carried.fetch, "let kept_{k} = {block};");
        }
        let row = format!("lane % {holders}u / {}u", t.across());
        for s in 0..t.other * turned.quads / 2 / threads {
            // The pair's number among all that the holders had: those of the first block, then of the second.
            let place = |lane: usize| (s * threads + lane) / holders;
            let (k, n) = (place(0) / pairs, place(0) % pairs);
            debug_assert_eq!(k, place(threads - 1) / pairs, "a share of one block");
            let step = if holders < threads { format!(" + lane / {holders}u") } else { String::new() };
            let (name, pair) = (format!("kept_next_{number}_{s}"), format!("({n}u{step})"));
            _ = writeln!(carried.declare, "var {name} = vec4<u32>();");
            _ = writeln!(
                carried.fetch,
                "{name} = load8_kept(kept_{k} + ({pair} * {threads}u + holder) * 8u);"
            );
            for (half, words) in ["xy", "zw"].iter().enumerate() {
                let (first, across) = (k * t.other / 4, t.across());
                let column = format!("{first}u + ({pair} * 2u + {half}u) * {across}u + lane % {across}u");
                let to = turned.at_row(&row, &column);
                _ = writeln!(carried.place, "{to} = halves_of_words({name}.{words});");
            }
        }
        carried
    }
}
