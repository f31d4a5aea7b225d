//! How the rows of a reduction are shared out among invocations and workgroups.

use super::code::innermost;
use super::thread_group::ThreadGroup;
use super::{GROUP, can_be_wide};
use crate::caps::Caps;
use crate::dispatch::ComputeType;
use std::collections::HashSet;
use std::slice::from_ref;
use volta_ir::plan::kernel::{LoopLevel, MapKernel, Step, Value, runs_along_rows};

/// The most values of a row that an invocation keeps between stages.
const MAX_KEPT: usize = 96;
/// The most copies of the code that an unrolled row may have, in instructions.
const MAX_UNROLLED: usize = 480;
/// The most values that an iteration of the loop along a row computes.
const MAX_TOGETHER: usize = 240;
/// Invocations that keep a large GPU busy, those of large teams for few rows, which wait for memory longer, and those that
/// share rows with other workgroups, which have less to do each.
const BUSY_INVOCATIONS: usize = 1 << 16;
const BUSY_INVOCATIONS_OF_LARGE_GROUPS: usize = 1 << 17;
const BUSY_INVOCATIONS_OF_SPLIT_ROWS: usize = 1 << 18;
/// Parts of a row, and elements in all, that are too few to be shared out.
const MIN_PARTS_TO_SPLIT: usize = 4;
const MIN_ELEMENTS_TO_SPLIT: usize = 1 << 16;
/// Loads for every element for which a single row is shared out rather than folded by one large team.
const MIN_LOADS_TO_SHARE: usize = 8;

/// Invocations of a workgroup that runs them one after the other: few, so that there are workgroups for all cores. And steps of
/// a row up to which such an invocation does without a loop: compilers take as long as the text is.
const SERIAL_GROUP: usize = 16;
const SHORT_ROW: usize = 4;

/// Neighbouring rows that are worth standing side by side.
const LEAST_ROWS: usize = 8;

/// How the rows are shared out.
pub(super) struct ReduceSchedule {
    /// Rows, and what is folded of each.
    pub rows: usize,
    pub width: usize,
    pub team: ThreadGroup,
    /// Rows that a workgroup folds.
    pub rows_at_once: usize,
    /// Neighbouring rows lie side by side in memory: so do the members that fold them.
    pub columns: bool,
    /// Four neighbours of a row at once, or four neighbouring rows.
    pub wide: bool,
    /// How often the members of a team go on to the next part of their row; none if in a loop.
    pub unrolled: Option<usize>,
    /// Places of a row that an iteration of the loop takes, so that their loads wait for memory together.
    pub together: usize,
    /// Workgroups that share a row.
    pub splits: usize,
}

impl ReduceSchedule {
    /// For a kernel of `stages` stages, with the stage of every value. A row is held in registers wherever what later stages
    /// read of it fits.
    pub fn choose(kernel: &MapKernel, caps: &Caps, stage: &[usize], stages: usize) -> ReduceSchedule {
        let rows = kernel.rows();
        let width: usize = kernel.extents[kernel.outer..].iter().product();
        let full: Vec<Value> =
            (0..kernel.code.len()).filter(|&v| kernel.code[v].rank == LoopLevel::Full).collect();
        let columns =
            runs_along_rows(&kernel.code, kernel.outer) && kernel.extents[kernel.outer - 1] >= LEAST_ROWS;
        let single = stages <= 2 && !full.iter().any(|&v| stage[v] > 0);
        let four_rows = columns && single && can_be_wide(kernel) && is_wide_across(kernel);
        let wide = four_rows || (!columns && can_be_wide(kernel) && is_wide_along(kernel));
        let lanes = if wide { 4 } else { 1 };
        let steps = if four_rows { width } else { width.div_ceil(lanes) }.max(1);
        let units = if four_rows { rows / 4 } else { rows };
        let loads = full.iter().filter(|&&v| matches!(kernel.code[v].step, Step::Load { .. })).count();
        let large = most_members(from_ref(kernel), caps);
        // Members that need not wait for each other have a row each.
        let alone = caps.serial_workgroups && units >= SERIAL_GROUP;
        let whole =
            at_once(large, units, steps, rows * width, full.len()).filter(|_| columns && single && !alone);
        let (parts, rows_at_once) = if alone {
            (1, SERIAL_GROUP)
        } else if columns {
            let side = if units >= 32 { 32 } else { units.next_power_of_two() as u32 };
            let parts = (GROUP / side).min(steps.next_power_of_two() as u32);
            // A workgroup that does it all is as large as others are: it can share their dispatch.
            let side = if units <= 32 { GROUP / parts } else { side };
            whole.unwrap_or((parts, side as usize))
        } else {
            let large = 1 << caps.invocations.min(1024).ilog2();
            let before_last = full.iter().filter(|&&v| stage[v] + 1 < stages).count();
            // Large teams for few rows, and where all of a row is kept in registers only so.
            let holds = steps.div_ceil(large as usize) * before_last * lanes <= MAX_KEPT;
            let min_rows_unsplit = rows * (GROUP as usize) < BUSY_INVOCATIONS_OF_LARGE_GROUPS;
            let shared_out = single && rows == 1 && loads >= MIN_LOADS_TO_SHARE;
            let most = if steps > 8 * GROUP as usize && (holds || min_rows_unsplit) && !shared_out {
                large
            } else {
                GROUP
            };
            // Short ways for the members, but not more of them than the row has elements.
            let mut parts = steps.div_ceil(4).next_power_of_two();
            while parts * 2 <= steps.next_power_of_two() && rows * parts < BUSY_INVOCATIONS {
                parts *= 2;
            }
            let parts = parts.min(most as usize).max(1) as u32;
            (parts, (GROUP / parts).max(1) as usize)
        };
        let group = parts * rows_at_once as u32;
        let team = ThreadGroup {
            parts,
            stride: if columns { rows_at_once as u32 } else { 1 },
            group,
            subgroup: caps.subgroup.filter(|size| group.is_multiple_of(*size)),
            four_rows,
        };
        let rows_at_once = if four_rows { 4 * rows_at_once } else { rows_at_once };
        let groups = rows.div_ceil(rows_at_once);
        // A part of a row should still be worth a workgroup.
        let splits = if single && whole.is_none() && !alone {
            // What reads much for every element waits long enough.
            let iterations = match (columns, four_rows) {
                (true, false) => 16,
                (true, true) => 8,
                (false, _) => 4 / loads.clamp(1, 4),
            };
            let worth = steps / (iterations * parts as usize);
            let splits =
                (BUSY_INVOCATIONS_OF_SPLIT_ROWS / (groups * group as usize).max(1)).min(worth).clamp(1, 256);
            // A second dispatch takes longer than a few more iterations of the first.
            if splits < MIN_PARTS_TO_SPLIT && rows * width <= MIN_ELEMENTS_TO_SPLIT { 1 } else { splits }
        } else {
            1
        };
        let chunks = steps.div_ceil(parts as usize);
        let kept = read_later(kernel, stage);
        // What folds a row and forgets it needs a loop rather than registers.
        let most = if kept == 0 && stages > 1 { MAX_KEPT / lanes } else { MAX_UNROLLED };
        let unroll = width > 0 && chunks * kept * lanes <= MAX_KEPT && chunks * full.len() <= most;
        let unrolled = (unroll && splits == 1 && !(alone && chunks > SHORT_ROW)).then_some(chunks);
        let iterations = chunks / splits;
        let fits = |&n: &usize| n <= iterations && n * full.len() * lanes <= MAX_TOGETHER;
        let together = [8, 4, 2].into_iter().find(fits).unwrap_or(1);
        ReduceSchedule { rows, width, team, rows_at_once, columns, wide, unrolled, together, splits }
    }

    /// For one row that workgroups fold parts of.
    pub fn whole(kernel: &MapKernel, caps: &Caps) -> ReduceSchedule {
        let wide = can_be_wide(kernel) && is_wide_along(kernel);
        let subgroup = caps.subgroup.filter(|size| GROUP.is_multiple_of(*size));
        let team = ThreadGroup { parts: GROUP, stride: 1, group: GROUP, subgroup, four_rows: false };
        let full = kernel.code.iter().filter(|i| i.rank == LoopLevel::Full).count();
        let together = [4, 2].into_iter().find(|n| n * full * 4 <= MAX_TOGETHER).unwrap_or(1);
        ReduceSchedule {
            rows: 1,
            width: kernel.iterations(),
            team,
            rows_at_once: 1,
            columns: false,
            wide,
            unrolled: None,
            together,
            splits: 1,
        }
    }

    /// For columns of which `splits` parts are there already, by a workgroup with as many members as that, or fewer.
    pub fn of_parts(kernel: &MapKernel, caps: &Caps, members: u32, splits: usize) -> ReduceSchedule {
        /// Fours of columns side by side.
        const SIDE: u32 = 8;
        let rows = kernel.rows();
        let side = SIDE.min((rows / 4).next_power_of_two() as u32);
        let parts = (members / side).min(splits.next_power_of_two() as u32);
        let group = parts * side;
        let subgroup = caps.subgroup.filter(|size| group.is_multiple_of(*size));
        ReduceSchedule {
            rows,
            width: kernel.iterations() / rows,
            team: ThreadGroup { parts, stride: side, group, subgroup, four_rows: true },
            rows_at_once: 4 * side as usize,
            columns: true,
            wide: true,
            unrolled: None,
            together: 1,
            splits,
        }
    }

    /// The loop along which four neighbours stand.
    pub fn along(&self, kernel: &MapKernel) -> usize {
        if self.team.four_rows { kernel.outer - 1 } else { innermost(kernel) }
    }
}

/// The members of a large workgroup that folds columns of these kernels, a power of two: fours of every type that is folded need
/// memory at once, and so does a number of each that is folded over all rows.
pub(super) fn most_members(kernels: &[MapKernel], caps: &Caps) -> u32 {
    let types = |is_wanted: fn(&Step) -> bool| {
        let folds = kernels.iter().flat_map(|kernel| &kernel.code).filter(|i| is_wanted(&i.step));
        folds.map(|i| ComputeType::of(i.dtype)).collect::<HashSet<ComputeType>>().len() as u32
    };
    let of_columns = types(|step| matches!(step, Step::Reduce(..))).max(2);
    let of_rows = types(|step| matches!(step, Step::GlobalReduce(..)));
    let room = caps.workgroup_bytes / (16 * of_columns + 4 * of_rows);
    1 << caps.invocations.min(1024).min(room).max(1).ilog2()
}

/// Members that fold a column, and columns or fours of them side by side, for columns that a large workgroup folds in a few
/// iterations: a second dispatch for parts of them would take longer than these.
fn at_once(group: u32, units: usize, steps: usize, elements: usize, values: usize) -> Option<(u32, usize)> {
    /// Elements of all columns, values that a member computes, and elements and steps that need no more than a small workgroup.
    const MAX_ELEMENTS: usize = 1 << 20;
    const MAX_VALUES: usize = 96;
    const SMALL_ELEMENTS: usize = 1 << 12;
    const SHORT_STEPS: usize = 64;
    let fits = |side: &u32| {
        *side as usize <= units && steps.div_ceil((group / side) as usize) * values <= MAX_VALUES
    };
    let side = [8, 4, 2].into_iter().find(fits)?;
    let parts = (group / side).min(steps.next_power_of_two() as u32);
    (elements > SMALL_ELEMENTS && elements <= MAX_ELEMENTS && steps > SHORT_STEPS)
        .then_some((parts, side as usize))
}

/// How many values of every iteration a later stage reads.
fn read_later(kernel: &MapKernel, stage: &[usize]) -> usize {
    let code = &kernel.code;
    let mut later = vec![false; code.len()];
    for v in (0..code.len()).filter(|&v| code[v].rank == LoopLevel::Full) {
        code[v].step.operands().iter().for_each(|&o| later[o] |= stage[o] < stage[v]);
    }
    (0..code.len()).filter(|&v| later[v] && code[v].rank == LoopLevel::Full).count()
}

/// Whether four neighbouring rows can be loaded at once, for at least one load, and everything else done for each of
/// them.
pub(super) fn is_wide_across(kernel: &MapKernel) -> bool {
    let Some(along) = kernel.outer.checked_sub(1) else { return false };
    let load = |step: &Step| matches!(step, Step::Load { access, .. } if access.is_straight_along(along, 4));
    let single = |step: &Step| matches!(step, Step::ArgReduce { .. });
    kernel.extents[along].is_multiple_of(4)
        && kernel.code.iter().any(|i| i.rank == LoopLevel::Full && load(&i.step))
        && !kernel.code.iter().any(|i| single(&i.step))
}

/// Whether four neighbours of the innermost loop can be loaded at once, for at least one load or store.
fn is_wide_along(kernel: &MapKernel) -> bool {
    let Some(&last) = kernel.extents.last() else { return false };
    let load = |step: &Step| matches!(step, Step::Load { access, .. } if access.is_straight(4));
    kernel.outer < kernel.extents.len() && last.is_multiple_of(4) && kernel.code.iter().any(|i| load(&i.step))
}
