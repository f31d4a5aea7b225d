//! Programs that write a matrix and compute the largest magnitudes (absmax) of its rows and columns as well, for products that
//! need them: they would have to read all of it once more. A workgroup computes a tile; invocations keep the largest
//! of their columns, and subgroups find those of rows.

use super::code::{Arguments, LoopPosition, Name, Writer};
use super::elementwise::{is_wide, uniforms};
use super::row_blocking::varies;
use super::slots::Slots;
use super::{BUILTINS, GROUP, MapDispatch};
use crate::dispatch::{AbsMax, ComputeType, Dispatch};
use std::fmt::Write;
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::{MapKernel, Slot, Step, Value};

/// Columns of a tile, and rows of one where there are not many.
const COLUMNS: usize = 1024;
const ROWS: usize = 32;
/// Tiles side by side, and one under the other, at most: whoever asks for the largest reads a list for each.
const MAX_ACROSS: usize = 64;
const MAX_DOWN: usize = 32;
/// Rows of a tile at most, for the sake of workgroup memory, and tiles that keep most of a large GPU busy.
const MAX_TILE_ROWS: usize = 512;
const BUSY_TILES: usize = 96;
/// Rows that are computed together, and the most values.
const ROWS_PER_INVOCATION: usize = 4;
const MAX_VALUES: usize = 512;
/// Elements of a matrix that are worth it.
const MIN_ELEMENTS: usize = 1 << 20;
/// Invocations of a subgroup: no other adapters multiply in a way that asks.
const SUBGROUP: usize = 32;
const TEAMS: usize = GROUP as usize / SUBGROUP;

/// A program that writes a matrix.
pub(crate) struct AbsMaxProducer {
    kernel: MapKernel,
    /// The store of the matrix.
    store: usize,
}

impl AbsMaxProducer {
    /// The program `map` over the matrix in `slot`, of that shape, if it is worth it.
    pub fn of(map: &MapKernel, slot: Slot, [rows, columns]: [usize; 2]) -> Option<AbsMaxProducer> {
        let mut kernel = map.simplified();
        if kernel.extents == [rows * columns] {
            cut(&mut kernel, [rows, columns]);
        }
        let folds = kernel.outer < kernel.extents.len() || super::folds(&kernel);
        let fits = kernel.extents == [rows, columns]
            && rows * columns >= MIN_ELEMENTS
            && rows >= ROWS
            && columns >= COLUMNS
            && columns.div_ceil(COLUMNS) <= MAX_ACROSS;
        if folds || !fits {
            return None;
        }
        let store = kernel.stores.iter().position(|s| {
            let position = &s.access.position;
            s.access.slot == slot
                && position.offset == 0
                && position.coefficients[..] == [columns as isize, 1]
                && kernel.code[s.value].dtype == DType::F32
        })?;
        let noted = AbsMaxProducer { kernel, store };
        let values = varies(&noted.kernel, 1).iter().filter(|v| **v).count() * ROWS_PER_INVOCATION * 4;
        let ([tall, _], [down, across]) = (noted.tile(), noted.tiles());
        (values <= MAX_VALUES && tall <= MAX_TILE_ROWS && down * across >= BUSY_TILES).then_some(noted)
    }

    pub fn shape(&self) -> [usize; 2] {
        [self.kernel.extents[0], self.kernel.extents[1]]
    }

    /// Rows and columns of a tile.
    fn tile(&self) -> [usize; 2] {
        let [rows, _] = self.shape();
        [rows.div_ceil(MAX_DOWN).next_multiple_of(ROWS_PER_INVOCATION).max(ROWS), COLUMNS]
    }

    /// Tiles one under the other, and side by side.
    fn tiles(&self) -> [usize; 2] {
        let ([rows, columns], [tall, broad]) = (self.shape(), self.tile());
        [rows.div_ceil(tall), columns.div_ceil(broad)]
    }

    /// Lists of the rows' largest, one for every tile across, and of the columns', one for every tile down.
    pub fn lists(&self) -> [usize; 2] {
        let [down, across] = self.tiles();
        [across, down]
    }

    /// Bytes of both.
    pub fn bytes(&self) -> [usize; 2] {
        let ([rows, columns], [of_rows, of_columns]) = (self.shape(), self.lists());
        [4 * of_rows * AbsMax::list(rows), 4 * of_columns * AbsMax::list(columns)]
    }

    /// The slots it sees, besides those of the lists.
    pub fn slots(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.kernel.slots().collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Whether it asserts something.
    pub fn asserts(&self) -> bool {
        self.kernel.asserts()
    }

    /// Its dispatch; what is not asked for of the rows' and the columns' largest is not noted.
    pub fn lower(&self, lists: [Option<Slot>; 2]) -> MapDispatch {
        let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
        let ([tall, _], [down, across]) = (self.tile(), self.tiles());
        let [head, turn] = self.walk(&mut slots, &mut arguments, lists[0].is_some());
        let (found, tail) = self.note(&mut slots, lists);
        let groups = down * across;
        let body = format!(
            "{found}@compute @workgroup_size({GROUP})
fn main({BUILTINS}, @builtin(subgroup_id) sg: u32, @builtin(subgroup_invocation_id) sl: u32) {{
let lane = sg * {SUBGROUP}u + sl;
let group = wg.x + wg.y * nwg.x;
if (group >= {groups}u) {{ return; }}
let first = group / {across}u * {tall}u;
{head}for (var turn = 0u; turn < {tall}u; turn += {ROWS_PER_INVOCATION}u) {{
{turn}}}
{tail}}}
"
        );
        let dispatch = Dispatch { body, bindings: slots.bindings, groups: groups as u64 };
        MapDispatch { dispatch, uniforms: uniforms(&arguments) }
    }

    /// Whether an invocation computes four neighbours of a row, and at how many places of it.
    fn share(&self) -> (bool, usize) {
        let wide = is_wide(&self.kernel);
        (wide, COLUMNS / GROUP as usize / if wide { 4 } else { 1 })
    }

    /// What an invocation does before the loop over the rows of a tile, and in it: what the next rows are computed from is
    /// on its way meanwhile.
    fn walk(&self, slots: &mut Slots, arguments: &mut Arguments, of_rows: bool) -> [String; 2] {
        let (kernel, (wide, places)) = (&self.kernel, self.share());
        let ([rows, _], [tall, _]) = (self.shape(), self.tile());
        let mut head = self.head();
        let mut w = Writer {
            kernel,
            slots,
            arguments,
            text: String::new(),
            indices: Vec::new(),
            wide: false,
            along: 1,
            names: vec![None; kernel.code.len()],
            mark: String::new(),
            alike: &[],
        };
        let (differ, same): (Vec<Value>, Vec<Value>) = {
            let varies = varies(kernel, 1);
            (0..varies.len()).partition(|&v| varies[v])
        };
        let mut all: Vec<(usize, usize, LoopPosition)> = Vec::new();
        for j in 0..ROWS_PER_INVOCATION {
            let (after, last) = (ROWS_PER_INVOCATION + j, tall - 1);
            let _ = writeln!(head, "let next_{j} = min(first + {j}u, {}u);", rows - 1);
            w.line(format!("let r_{j} = first + turn + {j}u;\nlet x_{j} = min(r_{j}, {}u);", rows - 1));
            w.line(format!("let next_{j} = min(first + min(turn + {after}u, {last}u), {}u);", rows - 1));
            let (indices, names) = (vec![format!("x_{j}")], vec![None; kernel.code.len()]);
            let mut row = LoopPosition { indices, names, mark: format!("_{j}") };
            row.visit(&mut w, |w| same.iter().for_each(|&v| w.compute(v)));
            for c in 0..places {
                let indices = vec![format!("x_{j}"), format!("y_{c}")];
                all.push((
                    j,
                    c,
                    LoopPosition { indices, names: row.names.clone(), mark: format!("_{j}_{c}") },
                ));
            }
        }
        w.wide = wide;
        for v in differ {
            let access = match &kernel.code[v].step {
                Step::Load { access, checks, .. } if checks.is_empty() => Some(access),
                _ => None,
            };
            for (j, c, place) in &mut all {
                let Some(access) = access else {
                    place.visit(&mut w, |w| w.compute(v));
                    continue;
                };
                let here = std::mem::replace(&mut place.indices[0], format!("next_{j}"));
                place.visit(&mut w, |w| {
                    let (text, ahead) = (format!("v{v}_{j}_{c}"), format!("ahead{v}_{j}_{c}"));
                    let next = w.loaded(access, kernel.code[v].dtype, wide);
                    let _ = writeln!(head, "var {ahead} = {next};");
                    w.line(format!("let {text} = {ahead};\n{ahead} = {next};"));
                    w.names[v] = Some(Name { text, wide });
                });
                place.indices[0] = here;
            }
        }
        self.measure(&mut w, &mut all, of_rows);
        [head, w.text]
    }

    /// Stores what was computed at the places, of a row and a column each, and finds how large it is.
    fn measure(&self, w: &mut Writer, all: &mut [(usize, usize, LoopPosition)], of_rows: bool) {
        let (kernel, (wide, places), [rows, columns]) = (&self.kernel, self.share(), self.shape());
        let (matrix, ty) = (kernel.stores[self.store].value, ComputeType::I32.name(wide));
        // What others compute is none of its business: where results replace what is read, it may be gone.
        for (j, c, place) in all {
            let inside = format!("r_{j} < {rows}u && e_{c} < {columns}u");
            w.line(format!("var size_{j}_{c}: {ty};\nif ({inside}) {{"));
            place.visit(w, |w| {
                kernel.stores.iter().for_each(|s| w.store(s.value, &s.access));
                let value = w.operand(matrix, wide);
                w.line(format!("size_{j}_{c} = bitcast<{ty}>({value}) & {ty}(0x7fffffff);"));
            });
            w.line(format!("}}\nmost_{c} = max(most_{c}, size_{j}_{c});"));
        }
        for j in (0..ROWS_PER_INVOCATION).filter(|_| of_rows) {
            let sizes = (0..places).map(|c| format!("size_{j}_{c}"));
            let most = sizes.reduce(|a, b| format!("max({a}, {b})")).expect("there are places");
            w.line(format!("let row_{j} = {most};"));
            let most = if wide {
                format!("max(max(row_{j}.x, row_{j}.y), max(row_{j}.z, row_{j}.w))")
            } else {
                format!("row_{j}")
            };
            w.line(format!(
                "let all_{j} = subgroupMax({most});
if (lane % {SUBGROUP}u == 0u) {{ found[(turn + {j}u) * {TEAMS}u + lane / {SUBGROUP}u] = all_{j}; }}"
            ));
        }
    }

    /// Declares `e_{c}`, where the places of an invocation are, `y_{c}`, the same inside of the matrix, and `most_{c}`.
    fn head(&self) -> String {
        let ([_, columns], [_, across], (wide, places)) = (self.shape(), self.tiles(), self.share());
        let lanes = if wide { 4 } else { 1 };
        let mut text = String::new();
        for c in 0..places {
            let (behind, ty) = (c * GROUP as usize, ComputeType::I32.name(wide));
            let _ = write!(
                text,
                "let e_{c} = group % {across}u * {COLUMNS}u + (lane + {behind}u) * {lanes}u;
let y_{c} = min(e_{c}, {}u);
var most_{c}: {ty};
",
                columns - lanes
            );
        }
        text
    }

    /// What invocations leave to each other, and how they note what they found after the loop.
    fn note(&self, slots: &mut Slots, [of_rows, of_columns]: [Option<Slot>; 2]) -> (String, String) {
        let ([rows, columns], [tall, _], [_, across]) = (self.shape(), self.tile(), self.tiles());
        let (mut found, mut tail) = (String::new(), String::new());
        if let Some(slot) = of_rows {
            let lists = slots.write(slot, DType::I32);
            found = format!("var<workgroup> found: array<i32, {}>;\n\n", tall * TEAMS);
            let _ = write!(
                tail,
                "workgroupBarrier();
for (var r = lane; r < {tall}u; r += {GROUP}u) {{
    var all = 0;
    for (var team = 0u; team < {TEAMS}u; team++) {{ all = max(all, found[r * {TEAMS}u + team]); }}
    if (first + r < {rows}u) {{ store_{lists}(group % {across}u * {}u + first + r, all); }}
}}
",
                AbsMax::list(rows)
            );
        }
        if let Some(slot) = of_columns {
            let (lists, (wide, places)) = (slots.write(slot, DType::I32), self.share());
            if wide {
                slots.widen(slot);
            }
            let quad = if wide { "4" } else { "" };
            for c in 0..places {
                let at = format!("group / {across}u * {}u + e_{c}", AbsMax::list(columns));
                let _ = writeln!(tail, "if (e_{c} < {columns}u) {{ store{quad}_{lists}({at}, most_{c}); }}");
            }
        }
        (found, tail)
    }
}

/// Makes two loops of one.
fn cut(kernel: &mut MapKernel, [rows, columns]: [usize; 2]) {
    for form in kernel.forms_mut() {
        let step = form.coefficients[0];
        form.coefficients = [step * columns as isize, step].into_iter().collect();
    }
    kernel.extents = vec![rows, columns];
    kernel.outer *= 2;
}
