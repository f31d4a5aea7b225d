//! Which tile a workgroup computes, and which steps of the sums it takes: the beginning of every tiled
//! kernel.

use super::product::{Phase, Product, Steps};
use super::tile::count;
use super::wgsl::indented;
use std::fmt::Write;

/// A product cut into tiles of `m × n`, and steps of `k` terms into `parts`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileGrid {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub parts: usize,
    pub band: usize,
    /// Whether to cut so that every part has an even number of steps, as all together have.
    pub even: bool,
}

impl TileGrid {
    pub fn groups(&self, product: &Product) -> u64 {
        count(product, [self.m, self.n]) as u64 * self.parts as u64
    }

    /// Declares `part`, `item`, `m0` and `n0`, then `first` and `last`, the range of the steps.
    pub fn begin(&self, product: &Product) -> String {
        let (rows, columns) = (product.m.div_ceil(self.m), product.n.div_ceil(self.n));
        let (tiles, items) = (rows * columns, product.items);
        let band = self.band.min(rows);
        let mut text = format!(
            "let part = group / {}u;
let item = (group / {tiles}u) % {items}u;
let tile = group % {tiles}u;
let band = tile / {}u;
let inside = tile % {}u;
",
            tiles * items,
            band * columns,
            band * columns
        );
        if rows % band == 0 {
            let _ = writeln!(text, "let height = {band}u;");
        } else {
            let _ = writeln!(text, "let height = min({band}u, {rows}u - band * {band}u);");
        }
        let _ = writeln!(text, "let m0 = (band * {band}u + inside % height) * {}u;", self.m);
        let _ = writeln!(text, "let n0 = inside / height * {}u;", self.n);
        text += &self.phase(product);
        let parts = self.parts;
        if parts == 1 {
            text += "let first = 0u;\nlet last = steps;\n";
        } else {
            let _ = match self.even {
                true => writeln!(text, "let per_part = (steps + {}u) / {}u * 2u;", 2 * parts - 1, 2 * parts),
                false => writeln!(text, "let per_part = (steps + {}u) / {parts}u;", parts - 1),
            };
            text += "let first = min(part * per_part, steps);\nlet last = min(first + per_part, steps);\n";
        }
        text
    }

    /// Declares `steps`, and what else is the same for a whole phase.
    fn phase(&self, product: &Product) -> String {
        let (channels, phases) = match &product.steps {
            Steps::Flat(k) => return format!("let steps = {}u;\n", k.div_ceil(self.k)),
            Steps::Taps { channels, phases, .. } => (channels, phases),
        };
        let values = |p: &Phase| {
            let steps = p.taps[0] * p.taps[1] * channels.div_ceil(self.k);
            [
                ("steps", "u32", format!("{steps}u")),
                ("taps_x", "u32", format!("{}u", p.taps[1].max(1))),
                ("tap_first_y", "u32", format!("{}u", p.tap_first[0])),
                ("tap_first_x", "u32", format!("{}u", p.tap_first[1])),
                ("tap_step_y", "u32", format!("{}u", p.tap_step[0])),
                ("tap_step_x", "u32", format!("{}u", p.tap_step[1])),
                ("first_y", "i32", format!("({}i)", p.first[0])),
                ("first_x", "i32", format!("({}i)", p.first[1])),
                ("advance_y", "i32", format!("({}i)", p.advance[0])),
                ("advance_x", "i32", format!("({}i)", p.advance[1])),
                ("start_y", "u32", format!("{}u", p.start[0])),
                ("start_x", "u32", format!("{}u", p.start[1])),
            ]
        };
        let first = values(&phases[0]);
        if phases.len() == 1 {
            return first.iter().map(|(name, _, value)| format!("let {name} = {value};\n")).collect();
        }
        let mut text: String =
            first.iter().map(|(name, ty, value)| format!("var {name}: {ty} = {value};\n")).collect();
        let _ = writeln!(text, "switch (item / {}u) {{", product.items / phases.len());
        for (number, phase) in phases.iter().enumerate().skip(1) {
            let set: String =
                values(phase).iter().map(|(name, _, value)| format!("{name} = {value}; ")).collect();
            let _ = writeln!(text, "    case {number}u: {{ {set}}}");
        }
        text += "    default: {}\n}\n";
        text
    }

    /// Declares `k0` and `k_left` of `step`, and for windows `tap_y`, `tap_x` and `c0`.
    pub fn step(&self, product: &Product) -> String {
        let depth = self.k;
        match &product.steps {
            Steps::Flat(k) => format!("let k0 = step * {depth}u;\nlet k_left = {k}u - k0;\n"),
            Steps::Taps { channels, kernel_width, .. } => {
                let chunks = channels.div_ceil(depth);
                format!(
                    "let tap = step / {chunks}u;
let c0 = step % {chunks}u * {depth}u;
let k_left = {channels}u - c0;
let down = tap / taps_x;
let right = tap % taps_x;
let tap_y = first_y + i32(down) * advance_y;
let tap_x = first_x + i32(right) * advance_x;
let weight = (tap_first_y + down * tap_step_y) * {kernel_width}u + tap_first_x + right * tap_step_x;
let k0 = weight * {channels}u + c0;
"
                )
            }
        }
    }

    /// Whether sums run over k alone, all steps have all of their ks, and all parts have several.
    pub fn is_plain(&self, product: &Product) -> bool {
        let Steps::Flat(k) = product.steps else { return false };
        let steps = k / self.k;
        let pairs = if self.even { 2 } else { 1 };
        let per_part = steps.div_ceil(pairs * self.parts) * pairs;
        k.is_multiple_of(self.k) && per_part >= 4 && per_part * (self.parts - 1) < steps
    }

    /// Whether there are steps with less than all of their ks.
    pub fn has_rests(&self, product: &Product) -> bool {
        !product.steps.run().is_multiple_of(self.k)
    }
}

/// How the loop over steps goes.
#[derive(Clone, Copy)]
pub(super) struct AccumulationPasses {
    /// Without branches: the last step is read once more rather than asked for.
    pub straight: bool,
    /// Two steps an iteration, of which there is an even number.
    pub twice: bool,
    /// Buffers in workgroup memory.
    pub buffers: usize,
}

/// The loop over steps: `fetch` reads a step's elements into registers, `deposit` stores them in workgroup
/// memory, from `into_a` and `into_b` on, and `multiply` adds their products, from `read_a` and `read_b` on.
/// Buffers have these `sizes`, of which a thread reads from `own` on. While a step is multiplied, the next
/// one is on its way.
pub(super) fn pipeline(
    iterations: AccumulationPasses,
    sizes: [usize; 2],
    own: [&str; 2],
    fetch: &str,
    multiply: &str,
    deposit: &str,
) -> String {
    let AccumulationPasses { straight, twice, buffers } = iterations;
    let places = |verb: &str, buffer: &str, own: [&str; 2]| {
        let one = |name: &str, size: usize, own: &str| {
            if buffers == 1 {
                format!("let {verb}_{name} = {own};\n")
            } else {
                format!("let {verb}_{name} = {buffer} * {size}u + {own};\n")
            }
        };
        one("a", sizes[0], own[0]) + &one("b", sizes[1], own[1])
    };
    let into = |buffer: &str| places("into", buffer, ["0u"; 2]) + deposit;
    let when = |text: &str| {
        if straight {
            format!("{{\n{}}}\n", indented(text, 1))
        } else {
            format!("if (step < last) {{\n{}}}\n", indented(text, 1))
        }
    };
    // Registers are variables of the function, so blocks only keep names apart.
    let next = if straight { "min(now + 1u, last - 1u)" } else { "now + 1u" };
    let begin = [fetch, &into("0u")].concat();
    // With one buffer, nobody may still be reading what is overwritten.
    let between = if buffers == 1 { "workgroupBarrier();\n" } else { "" };
    let step = [
        format!("let step = {next};\n"),
        when(fetch),
        places("read", "buffer", own),
        multiply.to_string(),
        between.to_string(),
        when(&into("(1u - buffer)")),
        "workgroupBarrier();\nbuffer = 1u - buffer;\n".to_string(),
    ]
    .concat();
    let (head, turn) = if twice {
        let one = |added| format!("{{\n    let now = two + {added}u;\n{}}}\n", indented(&step, 1));
        ("var two = first; two < last; two += 2u", one(0) + &one(1))
    } else {
        ("var now = first; now < last; now++", step)
    };
    format!(
        "if (first < last) {{
    let step = first;
{}}}
workgroupBarrier();
var buffer = 0u;
for ({head}) {{
{}}}
",
        indented(&begin, 1),
        indented(&turn, 1)
    )
}
