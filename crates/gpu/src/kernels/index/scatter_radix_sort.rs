//! Lists of positions, sorted by the places they go to: the first step of scattering by sorted lists.

use super::element_type::{OUTSIDE, place_at};
use super::scatter::Scatter;
use super::scatter_one_bin;
use super::workgroup::{POSITIONS, SIZE, dispatch, operand, scan, scratch_out};
use crate::dispatch::{Binding, Dispatch};

/// Numbers of the scratch memories: every list's positions, and where in them each place begins, and the end.
pub(super) const SORTED: usize = 0;
pub(super) const BEGINS: usize = 1;
/// Positions that a workgroup looks at together.
const CHUNK: usize = 1024;
/// Places that a workgroup owns, at most.
pub(super) const MAX_PLACES_PER_WORKGROUP: usize = 2048;
/// Workgroups that keep an adapter busy.
pub(super) const BUSY_WORKGROUPS: usize = 256;

/// What the lists are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// One for all.
    One,
    /// One for all lines with the same coordinates before the axis.
    PerSlab,
    /// Every line has its own.
    PerLine,
}

impl Lists {
    pub fn number(self, s: &Scatter) -> usize {
        match self {
            Lists::One => 1,
            Lists::PerSlab => s.values.before,
            Lists::PerLine => s.values.number(),
        }
    }

    /// The list of the line (`before`, `behind`), in WGSL.
    pub fn of_line(self, s: &Scatter) -> String {
        match self {
            Lists::One => "0u".to_string(),
            Lists::PerSlab => "before".to_string(),
            Lists::PerLine => format!("before * {}u + behind", s.values.behind),
        }
    }

    /// What comes before and behind the axis for the first line of `list`, in WGSL.
    pub fn line(self, s: &Scatter) -> (String, String) {
        match self {
            Lists::PerLine => {
                (format!("list / {}u", s.values.behind), format!("list % {}u", s.values.behind))
            }
            _ => ("list".to_string(), "0u".to_string()),
        }
    }

    /// What sorting reads and writes.
    pub fn bindings(s: &Scatter) -> Vec<Binding> {
        vec![
            operand(s.kernel, 0, "index"),
            scratch_out(SORTED, "sorted", POSITIONS),
            scratch_out(BEGINS, "begins", POSITIONS),
        ]
    }

    /// Bytes of the scratch memories.
    pub fn scratch(self, s: &Scatter) -> Vec<u64> {
        let lists = self.number(s) as u64;
        vec![lists * s.values.count as u64 * 4, lists * (s.extent as u64 + 1) * 4]
    }

    /// Each workgroup counts what comes before its places, how often each of them comes, and then puts the
    /// positions where they belong. An invocation owns a few places and so keeps their positions in order.
    pub fn sort(self, s: &Scatter) -> Dispatch {
        let lists = self.number(s);
        let (count, extent) = (s.values.count, s.extent);
        let places = (lists * extent)
            .div_ceil(BUSY_WORKGROUPS)
            .min(extent)
            .next_power_of_two()
            .min(MAX_PLACES_PER_WORKGROUP);
        if places == 1 {
            return scatter_one_bin::sort(s, self);
        }
        let own = places.div_ceil(SIZE);
        let (before, behind) = self.line(s);
        let (mut find, mut count_up, mut mark) = (String::new(), String::new(), String::new());
        // All places are read before the first is looked at; those beyond the last are left out.
        for h in 0..CHUNK / SIZE {
            let skip = h * SIZE;
            find += &format!(
                "        let c{h} = lane + {skip}u;
        let read{h} = place_at(first + min(chunk + c{h}, COUNT - 1u) * {step});
        let place{h} = select({OUTSIDE}, read{h}, chunk + c{h} < COUNT);
",
                step = s.index.step()
            );
            count_up += &format!(
                "        if (place{h} < low) {{
            less++;
        }} else if (place{h} < high) {{
            atomicAdd(&places[place{h} - low], 1u);
        }}
"
            );
            mark += &format!(
                "        if (place{h} >= low && place{h} < high) {{
            found[c{h}] = place{h} - low;
            atomicOr(&marks[c{h} / 32u], 1u << (c{h} % 32u));
        }}
"
            );
        }
        let declarations = format!(
            "\
const COUNT = {count}u;
const EXTENT = {extent}u;
// How often a place comes; then where its next position goes.
var<workgroup> places: array<atomic<u32>, {places}>;
var<workgroup> earlier: atomic<u32>;
var<workgroup> scanned: array<u32, {SIZE}>;
var<workgroup> found: array<u32, {CHUNK}>;
var<workgroup> marks: array<atomic<u32>, {words}>;

{place_at}",
            words = CHUNK / 32,
            place_at = place_at(s.kernel.operands[0].dtype, extent),
        );
        let statements = format!(
            "    let list = group / {groups}u;
    let low = group % {groups}u * {places}u;
    let high = min(low + {places}u, EXTENT);
    let before = {before};
    let behind = {behind};
    let first = {first};
    for (var p = lane; p < {places}u; p += {SIZE}u) {{ atomicStore(&places[p], 0u); }}
    if (lane == 0u) {{ atomicStore(&earlier, 0u); }}
    workgroupBarrier();
    var less = 0u;
    for (var chunk = 0u; chunk < COUNT; chunk += {CHUNK}u) {{
{find}{count_up}    }}
    atomicAdd(&earlier, less);
    workgroupBarrier();

    let own = lane * {own}u;
    var total = 0u;
    for (var p = own; p < min(own + {own}u, {places}u); p++) {{ total += atomicLoad(&places[p]); }}
    scanned[lane] = total;
{scan}    var begin = atomicLoad(&earlier) + scanned[lane] - total;
    for (var p = own; p < min(own + {own}u, {places}u); p++) {{
        let times = atomicLoad(&places[p]);
        atomicStore(&places[p], begin);
        if (low + p < high) {{ store_begins(list * (EXTENT + 1u) + low + p, i32(begin)); }}
        begin += times;
    }}
    if (high == EXTENT && lane == {SIZE}u - 1u) {{
        store_begins(list * (EXTENT + 1u) + EXTENT, i32(begin));
    }}

    for (var chunk = 0u; chunk < COUNT; chunk += {CHUNK}u) {{
        if (lane < {words}u) {{ atomicStore(&marks[lane], 0u); }}
        workgroupBarrier();
{find}{mark}        workgroupBarrier();
        for (var word = 0u; word < {words}u; word++) {{
            var marked = atomicLoad(&marks[word]);
            while (marked != 0u) {{
                let c = word * 32u + countTrailingZeros(marked);
                marked &= marked - 1u;
                let place = found[c];
                if (place / {own}u == lane) {{
                    store_sorted(list * COUNT + atomicAdd(&places[place], 1u), i32(chunk + c));
                }}
            }}
        }}
        workgroupBarrier();
    }}
",
            groups = extent.div_ceil(places),
            first = s.index.first("before", "behind"),
            scan = scan(),
            words = CHUNK / 32,
        );
        dispatch(lists * extent.div_ceil(places), Lists::bindings(s), &declarations, &statements)
    }
}
