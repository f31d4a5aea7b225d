//! Reading an f32 operand that becomes f16 pairs on its way into workgroup memory: for one that a product reads
//! only once, so that storing the halves first would cost more than splitting them here.
//!
//! Threads take fours along k, with one load where memory allows it, and else with four: these then are of
//! neighbouring lanes for neighbouring threads, if lanes are neighbours in memory.

use super::load::{LoadTile, Loader};
use super::product::Strided;
use super::scales;
use super::thread_mapping::{Order, Unit};
use super::wgsl::{sum, times, unsigned};
use std::fmt::Write;

/// Its loader, for `terms` along k. `first_scale` is where the scales of the lanes begin. What it declares
/// when it settles is `high_NAME<unit>` and `low_NAME<unit>`.
pub(super) fn loader(strided: &Strided, part: LoadTile, terms: usize, first_scale: &str) -> Loader {
    let wide = strided.quads_along_k(part.lanes);
    let order = if strided.k_is_inner() { Order::Staggered } else { Order::LanesFirst };
    let spread = part.spread(Unit::QuadK, order);
    let name = part.name;
    let (mut setup, lanes, ks) = part.places(&spread);
    let base = sum(&[unsigned(strided.offset), strided.items.position("item")]);
    let _ = writeln!(setup, "let {name}_base = {base};");
    for added in lanes.distinct() {
        let lane = format!("{name}_lane_at{added}");
        let row = sum(&[format!("{name}_base"), times(&lane, strided.lane)]);
        let _ = writeln!(setup, "let {name}_row{added} = {row};");
        let _ = writeln!(setup, "let {name}_exponent{added} = load_scales({first_scale} + {lane});");
        let scale = scales::inverse(&format!("{name}_exponent{added}"), false);
        let _ = writeln!(setup, "let {name}_scale{added} = {scale};");
    }
    // Steps count halves, two for an element. What is beyond the end reads the last, and becomes zero.
    let rests = !terms.is_multiple_of(part.tile[1]);
    let mut fetch = format!("let {name}_first = k0 / 2u + {name}_k;\n");
    if rests {
        let _ = writeln!(fetch, "{name}_left = {terms}u - min({name}_first, {terms}u);");
    }
    let last = if wide { terms - 4 } else { terms - 1 };
    for added in ks.distinct() {
        for s in 0..if wide { 1 } else { 4 } {
            let k = sum(&[format!("{name}_first"), unsigned((added + s) as i64)]);
            let k = if rests { format!("min({k}, {last}u)") } else { k };
            let _ = writeln!(fetch, "let {name}_near{added}_{s} = {k};");
            let at = strided.k.position(&format!("{name}_near{added}_{s}"));
            let _ = writeln!(fetch, "let {name}_at{added}_{s} = {at};");
        }
    }
    let (mut declarations, mut unpack) = (String::new(), String::new());
    if rests {
        let _ = writeln!(declarations, "var {name}_left: u32;");
        for added in ks.distinct() {
            let place = |s: usize| format!("{}u", added + s);
            let places = [0, 1, 2, 3].map(place).join(", ");
            let _ =
                writeln!(unpack, "let {name}_inside{added} = vec4<u32>({places}) < vec4<u32>({name}_left);");
        }
    }
    for j in 0..spread.count() {
        let (lane, k) = (lanes.added[j], ks.added[j]);
        let at = |s: usize| format!("{name}_row{lane} + {name}_at{k}_{s}");
        let value = if wide {
            format!("load4_{name}({})", at(0))
        } else {
            let one = |s: usize| format!("load_{name}({})", at(s));
            format!("vec4<f32>({})", [0, 1, 2, 3].map(one).join(", "))
        };
        let _ = writeln!(declarations, "var {name}{j}: vec4<f32>;");
        let _ = writeln!(fetch, "{name}{j} = {value};");
        let value = if rests {
            format!("select(vec4<f32>(), {name}{j}, {name}_inside{k})")
        } else {
            format!("{name}{j}")
        };
        unpack += &scales::halves(&format!("{value} * {name}_scale{lane}"), &format!("_{name}{j}"));
    }
    let width = if wide { 4 } else { 1 };
    let guarded = fetch.clone();
    Loader { part, spread, width, setup, fetch, guarded, in_two: None, declarations, unpack }
}
