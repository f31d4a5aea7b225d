//! Reading an operand's part of a tile into a thread's registers: `NAME0`, `NAME1`, …
//!
//! A step of the sum is known by `k0`, its first k, and `k_left`, how many are left from there on. Lanes
//! beyond the last read the last one again, since nobody looks at what becomes of them; ks beyond the last
//! are zero.

use super::product::{GemmOperand, OperandLayout, Strided};
use super::thread_mapping::{ACROSS, Order, Places, ThreadMapping, Unit};
use super::wgsl::{scalar, sum, times, unsigned};
use crate::dispatch::{Binding, ComputeType};

/// Threads of a workgroup that leave few registers to each.
pub(super) const REGISTER_BOUND_THREADS: usize = 512;

/// A tile of an operand as a workgroup reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadTile {
    pub name: &'static str,
    pub lane: ComputeType,
    /// Lanes there are, and lanes and depth of the tile.
    pub lanes: usize,
    pub tile: [usize; 2],
    pub threads: usize,
    /// The variable that holds the tile's first lane.
    pub origin: &'static str,
    /// Whether what cannot be read four at a time should be gathered into fours along k.
    pub gather: bool,
    /// Whether a step should be stored in two, a half of its ks after the other.
    pub in_two: bool,
}

/// WGSL of the reads, and how they are spread.
#[derive(Clone, Debug)]
pub(super) struct Loader {
    pub part: LoadTile,
    pub spread: ThreadMapping,
    pub width: u32,
    /// Before the loop.
    pub setup: String,
    /// In a step that has all of its ks, and in one that may not.
    pub fetch: String,
    pub guarded: String,
    /// `fetch` for steps that are stored in two: what is read once the first half of one is stored, and the second one.
    pub in_two: Option<[String; 2]>,
    /// Declares the registers.
    pub declarations: String,
    /// Declares the units as they are stored, `NAME_value0` and on (and `NAME_next0`, the second four of an eight): what
    /// waits for memory stands here.
    pub unpack: String,
}

impl Loader {
    pub fn new(source: &GemmOperand, part: LoadTile) -> Loader {
        match &source.layout {
            OperandLayout::Strided(strided) => strided_loader(strided, part),
            OperandLayout::Window(window) => window.loader(part),
        }
    }

    pub fn binding(&self, source: &GemmOperand) -> Binding {
        source.binding(self.part.name, self.part.lane, self.width)
    }
}

impl LoadTile {
    /// The type of a unit in registers: eights are still as they lie in memory.
    pub fn register(&self, unit: Unit) -> String {
        let scalar = scalar(self.lane);
        match unit.len() {
            1 => scalar.into(),
            4 => format!("vec4<{scalar}>"),
            _ => "vec4<u32>".into(),
        }
    }

    pub fn spread(&self, unit: Unit, order: Order) -> ThreadMapping {
        ThreadMapping { unit, order, lanes: self.tile[0], depth: self.tile[1], threads: self.threads }
    }

    /// Declares where a thread's units begin, and the lanes there: `NAME_lane`, `NAME_k` and
    /// `NAME_lane_at<added>`.
    pub fn places(&self, spread: &ThreadMapping) -> (String, Places, Places) {
        let (lanes, ks) = spread.places();
        let name = self.name;
        let mut text = format!("let {name}_lane = {};\nlet {name}_k = {};\n", lanes.first, ks.first);
        let last = self.lanes - spread.unit.lanes();
        let over = !self.lanes.is_multiple_of(self.tile[0]);
        for added in lanes.distinct() {
            let lane = sum(&[self.origin.into(), format!("{name}_lane"), unsigned(added as i64)]);
            let lane = if over { format!("min({lane}, {last}u)") } else { lane };
            text += &format!("let {name}_lane_at{added} = {lane};\n");
        }
        (text, lanes, ks)
    }
}

fn strided_loader(strided: &Strided, part: LoadTile) -> Loader {
    let (unit, order) = if let Some(eights) = eights(strided, &part) {
        eights
    } else if strided.quads_along_k(part.lanes) {
        (Unit::QuadK, if part.gather { Order::Staggered } else { Order::Pairs })
    } else if strided.quads_along_lanes(part.lanes) {
        (Unit::QuadLane, Order::LanesFirst)
    } else if strided.k_is_inner() {
        (Unit::One, Order::KFirst)
    } else {
        (Unit::One, Order::LanesFirst)
    };
    let spread = part.spread(unit, order);
    let name = part.name;
    let (mut setup, lanes, ks) = part.places(&spread);
    let line = strided.k.stride();
    // With one digit, all that does not change from step to step is one sum.
    let fixed = line.map_or("0u".into(), |stride| times(&format!("{name}_k"), stride));
    let base = [unsigned(strided.offset), strided.items.position("item"), fixed];
    setup += &format!("let {name}_base = {};\n", sum(&base));
    let crossed = order == Order::Crossed;
    if crossed {
        // From one half of a step to the other, which may be back.
        let depth = part.tile[1];
        setup += &format!("let {name}_over = {}u - {name}_k / {}u * {depth}u;\n", depth / 2, depth / 2);
    }
    for added in lanes.distinct() {
        let lane = times(&format!("{name}_lane_at{added}"), strided.lane);
        let is_over = crossed && !added.is_multiple_of(2 * ACROSS);
        let over = if is_over { format!("{name}_over") } else { "0u".into() };
        setup += &format!("let {name}_row{added} = {};\n", sum(&[format!("{name}_base"), lane, over]));
    }
    let mut at = String::new();
    match line {
        Some(stride) => at += &format!("let {name}_at = {};\n", times("k0", stride)),
        None => {
            for added in ks.distinct() {
                let k = sum(&["k0".into(), format!("{name}_k"), unsigned(added as i64)]);
                at += &format!("let {name}_k_at{added} = {k};\n");
                let position = strided.k.position(&format!("{name}_k_at{added}"));
                at += &format!("let {name}_at{added} = {position};\n");
            }
        }
    }
    let width = unit.len() as u32;
    let load = |j: usize| {
        let row = format!("{name}_row{}", lanes.added[j]);
        let position = match line {
            Some(stride) => sum(&[row, format!("{name}_at"), unsigned(stride * ks.added[j] as i64)]),
            None => sum(&[row, format!("{name}_at{}", ks.added[j])]),
        };
        let wide = if width > 1 { width.to_string() } else { String::new() };
        format!("load{wide}_{name}({position})")
    };
    let (fetch, guarded) = per_unit(&part, &spread, &ks, load);
    let ty = part.register(unit);
    let each = |f: &dyn Fn(usize) -> String| (0..spread.count()).map(f).collect::<String>();
    let declarations = each(&|j| format!("var {name}{j}: {ty};\n"));
    let unpack = each(&|j| match unit {
        Unit::EightK | Unit::EightLane => format!(
            "let {name}_value{j} = halves_of_words({name}{j}.xy);
let {name}_next{j} = halves_of_words({name}{j}.zw);
"
        ),
        _ => format!("let {name}_value{j} = {name}{j};\n"),
    });
    let asked = part.in_two && width == 8 && line.is_some();
    let in_two = spread.in_two().filter(|_| asked).map(|halves| {
        let read = |j: &usize| format!("{name}{j} = {};\n", load(*j));
        halves.map(|units| at.clone() + &units.iter().map(read).collect::<String>())
    });
    let (fetch, guarded) = (at.clone() + &fetch, at + &guarded);
    Loader { part, spread, width, setup, fetch, guarded, in_two, declarations, unpack }
}

/// Halves that are to be gathered for cooperative matrices come eight at a time, which takes half of the loads, if they
/// lie so and all threads have as many to read.
fn eights(strided: &Strided, part: &LoadTile) -> Option<(Unit, Order)> {
    if !part.gather || part.lane != ComputeType::F16 || part.threads >= REGISTER_BOUND_THREADS {
        return None;
    }
    let found = if strided.runs_along_k(part.lanes, 8) {
        let units = part.tile[0] * part.tile[1] / 8;
        let crossed = part.in_two && units.is_multiple_of(2 * part.threads);
        (Unit::EightK, if crossed { Order::Crossed } else { Order::Staggered })
    } else if strided.runs_along_lanes(part.lanes, 8) {
        (Unit::EightLane, Order::LanesFirst)
    } else {
        return None;
    };
    part.spread(found.0, found.1).is_even().then_some(found)
}

/// One assignment a unit, in two forms: for steps with all ks, and for others.
fn per_unit(
    part: &LoadTile,
    spread: &ThreadMapping,
    ks: &Places,
    load: impl Fn(usize) -> String,
) -> (String, String) {
    let name = part.name;
    let zero = format!("{}()", part.register(spread.unit));
    let (mut fetch, mut guarded) = (String::new(), String::new());
    for j in 0..spread.count() {
        let load = load(j);
        let k = sum(&[format!("{name}_k"), unsigned(ks.added[j] as i64)]);
        fetch += &format!("{name}{j} = {load};\n");
        guarded += &format!("if ({k} < k_left) {{ {name}{j} = {load}; }} else {{ {name}{j} = {zero}; }}\n");
    }
    (only_active(spread, fetch), only_active(spread, guarded))
}

/// Where there is less to read than there are threads, some have nothing to do.
pub(super) fn only_active(spread: &ThreadMapping, text: String) -> String {
    match spread.active() {
        Some(active) => format!("if ({active}) {{\n{text}}}\n"),
        None => text,
    }
}
