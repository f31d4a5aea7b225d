//! Sums of many tensors in two dispatches: workgroups fold parts of all of them, and then one workgroup a tensor
//! folds these. Sizes are uniforms, so that the text depends on the programs alone.

use super::code::Name;
use super::elementwise::uniforms;
use super::expression as expr;
use super::multi_tensor::{self, Table};
use super::reduce::{Reduce, Shader, lane_bytes, lane_dtype};
use super::reduce_schedule::ReduceSchedule;
use super::thread_group::Shared;
use super::{MapDispatch, MapLowered};
use crate::caps::Caps;
use crate::dispatch::{ComputeType, Memory};
use volta_ir::plan::kernel::{MapKernel, Value};

/// Elements that a workgroup folds.
const LENGTH: u64 = 1 << 14;

/// Dispatches of `kernels`, each of which folds everything into one number.
pub(super) fn lower(kernels: &[MapKernel], caps: &Caps, most_slots: usize) -> MapLowered {
    let mut lowered = MapLowered::default();
    // One of the slots is scratch memory.
    let layout = |kernel: &MapKernel| {
        let layout = ReduceSchedule::whole(kernel, caps);
        (layout.wide, layout.together)
    };
    for class in multi_tensor::classes(kernels, most_slots - 1, layout) {
        let joined = MultiTensorReduce::new(&class, caps, lowered.scratch.len());
        lowered.scratch.push(joined.scratch_bytes());
        lowered.dispatches.extend([joined.parts(), joined.wholes()]);
    }
    lowered
}

struct MultiTensorReduce<'a> {
    reduce: Reduce<'a>,
    /// How many programs there are, and the workgroups that fold their parts.
    programs: usize,
    table: Table,
    /// The one fold.
    fold: Value,
    /// The number of the scratch memory.
    scratch: usize,
}

impl<'a> MultiTensorReduce<'a> {
    fn new(kernels: &'a [&'a MapKernel], caps: &Caps, scratch: usize) -> MultiTensorReduce<'a> {
        let reduce = Reduce::of_many(kernels, ReduceSchedule::whole(kernels[0], caps));
        let table = Table::of(kernels.iter().map(|kernel| {
            let count = kernel.iterations() as u64;
            (count.div_ceil(LENGTH), count)
        }));
        let fold = reduce.folds_of_stage(0)[0];
        MultiTensorReduce { reduce, programs: kernels.len(), table, fold, scratch }
    }

    fn scratch_bytes(&self) -> u64 {
        (self.table.groups() * lane_bytes(self.reduce.fold_dtype(self.fold)) as u64).max(4)
    }

    /// The dispatch that leaves the sums of parts in scratch memory.
    fn parts(&self) -> MapDispatch {
        let (mut shader, mut shared) = (Shader::default(), Shared::default());
        let (reduce, v) = (&self.reduce, self.fold);
        let mut w = reduce.writer(&mut shader, String::new());
        reduce.uniform_values(&mut w);
        reduce.place(&mut w, "0u");
        reduce.row_values(&mut w, 0);
        reduce.stage(&mut w, &mut shared, 0, Some(("begin", "end")));
        let name = w.slots.write_memory(Memory::Scratch(self.scratch), lane_dtype(reduce.fold_dtype(v)));
        w.line(format!("if (lane == 0u) {{ store_{name}(group, whole{v}); }}"));
        let text = w.text;
        shader.shared = shared;
        let arguments = &shader.arguments;
        let main = format!(
            "{find}let begin = (group - {start}) * {LENGTH}u;\n\
             let end = min(begin + {LENGTH}u, {count});\n{text}",
            find = self.table.find(arguments),
            start = Table::start(arguments, "program"),
            count = Table::size(arguments, "program"),
        );
        let limit = self.table.limit(arguments);
        self.finish(shader, &main, &limit, self.table.groups() as usize)
    }

    /// The dispatch in which a workgroup folds the parts of a tensor, and stores what comes of it.
    fn wholes(&self) -> MapDispatch {
        let (mut shader, mut shared) = (Shader::default(), Shared::default());
        let (reduce, v) = (&self.reduce, self.fold);
        let (op, dtype, team) = (reduce.fold_op(v), reduce.fold_dtype(v), reduce.layout.team);
        let mut w = reduce.writer(&mut shader, String::new());
        reduce.uniform_values(&mut w);
        reduce.place(&mut w, "0u");
        reduce.row_values(&mut w, 0);
        let name = w.slots.read_memory(Memory::Scratch(self.scratch), lane_dtype(dtype));
        let t = ComputeType::of(dtype).scalar();
        let sum = expr::combine(op, &format!("sum{v}"), &format!("load_{name}(e)"), dtype, false);
        w.line(format!(
            "var sum{v}: {t} = {};\nfor (var e = begin + lane; e < end; e += {}u) {{\nsum{v} = {sum};\n}}",
            expr::identity(op, dtype),
            team.group
        ));
        let (own, whole) = (format!("sum{v}"), format!("whole{v}"));
        team.fold(&mut w.text, &mut shared, (op, dtype), &own, &whole, "lane");
        let value = expr::rounded(whole, dtype, false);
        w.line(format!("let v{v} = {value};"));
        w.names[v] = Some(Name { text: format!("v{v}"), wide: false });
        reduce.row_values(&mut w, 1);
        reduce.row_stores(&mut w);
        let text = w.text;
        shader.shared = shared;
        let arguments = &shader.arguments;
        let main = format!(
            "let program = group;\nlet begin = {};\nlet end = {};\n{text}",
            Table::start(arguments, "program"),
            Table::start(arguments, "program + 1u"),
        );
        self.finish(shader, &main, &format!("{}u", self.programs), self.programs)
    }

    fn finish(&self, shader: Shader, main: &str, limit: &str, groups: usize) -> MapDispatch {
        let mut uniforms = uniforms(&shader.arguments);
        self.table.write(&mut uniforms);
        MapDispatch { uniforms, ..shader.finish_with("", main, &self.reduce.layout, limit, groups) }
    }
}
