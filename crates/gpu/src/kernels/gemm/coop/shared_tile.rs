//! An operand's tile in workgroup memory: where its units are stored, and its blocks are read.

use super::PADDING;
use crate::kernels::gemm::load::{Loader, only_active};
use crate::kernels::gemm::thread_mapping::{ACROSS, Order, Unit};
use std::fmt::Write;

/// An operand's tile in workgroup memory.
pub(super) struct SharedTile<'l> {
    pub loader: &'l Loader,
    /// Whether rows are lanes (and not ks).
    pub lanes_are_rows: bool,
    /// Whether elements are split when they are stored: into halves, and as many rests after all of them.
    later: bool,
    /// Quads of a row, and of a buffer.
    pub row: usize,
    pub quads: usize,
}

impl<'l> SharedTile<'l> {
    pub fn new(loader: &'l Loader, later: bool) -> SharedTile<'l> {
        let spread = &loader.spread;
        let lanes_are_rows =
            spread.unit.along_k() || spread.unit == Unit::One && spread.order == Order::KFirst;
        let depth = if later { 2 * spread.depth } else { spread.depth };
        let (rows, columns) = if lanes_are_rows { (spread.lanes, depth) } else { (depth, spread.lanes) };
        let row = (columns + PADDING) / 4;
        SharedTile { loader, lanes_are_rows, later, row, quads: rows * row }
    }

    pub fn name(&self) -> &'static str {
        self.loader.part.name
    }

    /// Where lane `lane` and k `k`, multiples of 4 along rows, are in a buffer, in quads.
    fn at(&self, lane: usize, k: usize) -> usize {
        if self.lanes_are_rows { lane * self.row + k / 4 } else { k * self.row + lane / 4 }
    }

    /// Declares where a thread's first unit goes.
    pub fn slot(&self) -> String {
        let (name, row) = (self.name(), self.row);
        let (across, along) = if self.lanes_are_rows { ("lane", "k") } else { ("k", "lane") };
        if self.is_crossed() {
            return self.crossed_slots();
        }
        // Drivers write eights at once if they see that these begin at an even four.
        let fours = if self.eights() { "/ 8u * 2u" } else { "/ 4u" };
        format!(
            "let {name}_slot = {name}_{across} * {row}u + {name}_{along} {fours};
let {name}_part = {name}_{along} % 4u;
"
        )
    }

    pub fn eights(&self) -> bool {
        self.loader.spread.unit.len() == 8
    }

    pub fn deposit(&self) -> String {
        let (name, spread) = (self.name(), &self.loader.spread);
        let (lanes, ks) = spread.places();
        let mut text = self.loader.unpack.clone();
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

    fn is_crossed(&self) -> bool {
        self.loader.spread.order == Order::Crossed
    }

    /// Declares `NAME_half`, in which a thread's even units lie, and where its first unit of either half goes.
    fn crossed_slots(&self) -> String {
        let (name, row, half) = (self.name(), self.row, self.loader.spread.depth / 2);
        let slot = |number: usize, lanes: &str| {
            format!(
                "let {name}_slot{number} = ({name}_lane + {lanes} * {ACROSS}u) * {row}u \
                 + {name}_k % {half}u / 8u * 2u + {}u;\n",
                number * half / 4
            )
        };
        format!("let {name}_half = {name}_k / {half}u;\n")
            + &slot(0, &format!("{name}_half"))
            + &slot(1, &format!("(1u - {name}_half)"))
    }

    /// Stores one half of a step.
    pub fn deposit_half(&self, half: usize) -> String {
        let (name, spread) = (self.name(), &self.loader.spread);
        let (lanes, ks) = spread.places();
        let store = |eight: String, at: String| {
            format!(
                "{{
    let eight = {eight};
    tile_{name}[{at}] = halves_of_words(eight.xy);
    tile_{name}[{at} + 1u] = halves_of_words(eight.zw);
}}
"
            )
        };
        if self.is_crossed() {
            // Of two units the one of this half.
            let one = |j: usize| {
                let (even, odd) = (j + half, j + 1 - half);
                store(
                    format!("select({name}{even}, {name}{odd}, {name}_half == 1u)"),
                    format!("{name}_slot{half} + {}u", lanes.added[j] * self.row),
                )
            };
            return (0..spread.count()).step_by(2).map(one).collect();
        }
        let here = |&j: &usize| ks.added[j] / (spread.depth / 2) == half;
        let one = |j: usize| {
            store(format!("{name}{j}"), format!("{name}_slot + {}u", self.at(lanes.added[j], ks.added[j])))
        };
        (0..spread.count()).filter(here).map(one).collect()
    }

    /// A block as a matrix of role `role`: of A, lanes are rows; of B, ks are.
    pub fn block(&self, role: &str, lane: usize, k: usize) -> String {
        let tile = self.name();
        let by_rows = self.lanes_are_rows == (role == "A");
        let load = if by_rows { "coopLoadT" } else { "coopLoad" };
        format!(
            "{load}<coop_mat16x16<f16, {role}>>(&tile_{tile}[read_{tile} + {}u], {}u)",
            self.at(lane, k),
            self.row
        )
    }
}
