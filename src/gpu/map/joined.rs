//! Sums of many tensors in two dispatches: workgroups fold parts of all of them, and then one workgroup a tensor
//! folds these. Sizes are uniforms, so that the text depends on the programs alone.

use super::code::Name;
use super::elementwise::uniforms;
use super::expression as expr;
use super::layout::Layout;
use super::reduce::{Reduce, Shader, lane_bytes, lane_dtype};
use super::team::Shared;
use super::{MapDispatch, MapLowered, Uniform};
use crate::gpu::dispatch::{Caps, Lane, Memory};
use crate::plan::kernel::{MapKernel, Rank, Value};

/// Programs that one shader holds at most: more make it slow to compile.
const MOST_TOGETHER: usize = 16;
/// Elements that a workgroup folds.
const LENGTH: usize = 1 << 14;

/// Dispatches of `kernels`, each of which folds everything into one number.
pub(super) fn lower(kernels: &[MapKernel], caps: &Caps, most_slots: usize) -> MapLowered {
    let mut lowered = MapLowered::default();
    let mut rest = kernels;
    while !rest.is_empty() {
        let some;
        (some, rest) = rest.split_at(fitting(rest, most_slots));
        let joined = Joined::new(some, caps, lowered.scratch.len());
        lowered.scratch.push(joined.scratch_bytes());
        lowered.dispatches.extend([joined.parts(), joined.wholes()]);
    }
    lowered
}

/// How many of `kernels` one dispatch can see the memory of.
fn fitting(kernels: &[MapKernel], most_slots: usize) -> usize {
    let slots = |kernel: &MapKernel| kernel.reads().count() + kernel.stores.len();
    let mut used = 1;
    let fits = |kernel: &&MapKernel| {
        used += slots(kernel);
        used <= most_slots
    };
    kernels.iter().take(MOST_TOGETHER).take_while(fits).count().max(1)
}

struct Joined<'a> {
    programs: Vec<Reduce<'a>>,
    /// The first workgroup of every program, and how many there are.
    starts: Vec<usize>,
    /// The number of the scratch memory.
    scratch: usize,
}

impl<'a> Joined<'a> {
    fn new(kernels: &'a [MapKernel], caps: &Caps, scratch: usize) -> Joined<'a> {
        let program = |kernel| Reduce::with(kernel, Layout::whole(kernel, caps));
        let programs: Vec<Reduce> = kernels.iter().map(program).collect();
        let mut starts = vec![0];
        for kernel in kernels {
            starts.push(starts[starts.len() - 1] + kernel.iterations().div_ceil(LENGTH));
        }
        Joined { programs, starts, scratch }
    }

    fn scratch_bytes(&self) -> u64 {
        let bytes = self.programs.iter().map(|p| lane_bytes(p.fold_dtype(fold_of(p)))).max();
        (self.starts[self.programs.len()] * bytes.unwrap_or(4)).max(4) as u64
    }

    /// The dispatch that leaves the sums of parts in scratch memory.
    fn parts(&self) -> MapDispatch {
        let (mut shader, mut shared) = (Shader::default(), Shared::default());
        let mut functions = String::new();
        for (k, reduce) in self.programs.iter().enumerate() {
            let mut w = reduce.writer(&mut shader, String::new());
            reduce.by_rank(Rank::Uniform).into_iter().for_each(|v| w.compute(v));
            reduce.place(&mut w, "0u");
            reduce.row_values(&mut w, 0);
            reduce.stage(&mut w, &mut shared, 0, Some(("begin", "end")));
            let v = fold_of(reduce);
            let name = w.slots.write_memory(Memory::Scratch(self.scratch), lane_dtype(reduce.fold_dtype(v)));
            w.line(format!("if (lane == 0u) {{ store_{name}(group, whole{v}); }}"));
            let text = w.text;
            functions += &format!("fn part{k}(group: u32, lane: u32, begin: u32, end: u32) {{\n{text}}}\n");
        }
        let (words, counts) = self.words(&shader);
        let mut main = String::new();
        for k in 0..self.programs.len() {
            let [first, last, count] = [words(2 * k), words(2 * k + 2), words(2 * k + 1)];
            main += &format!(
                "if (group >= {first} && group < {last}) {{\n\
                 let begin = (group - {first}) * {LENGTH}u;\n\
                 part{k}(group, lane, begin, min(begin + {LENGTH}u, {count}));\n}}\n"
            );
        }
        shader.shared = shared;
        let limit = words(2 * self.programs.len());
        self.finish(shader, (&functions, &main, &limit), self.starts[self.programs.len()], counts)
    }

    /// The dispatch in which a workgroup folds the parts of a tensor, and stores what comes of it.
    fn wholes(&self) -> MapDispatch {
        let (mut shader, mut shared) = (Shader::default(), Shared::default());
        let mut functions = String::new();
        for (k, reduce) in self.programs.iter().enumerate() {
            let v = fold_of(reduce);
            let (op, dtype, team) = (reduce.fold_op(v), reduce.fold_dtype(v), reduce.layout.team);
            let mut w = reduce.writer(&mut shader, String::new());
            reduce.by_rank(Rank::Uniform).into_iter().for_each(|v| w.compute(v));
            reduce.place(&mut w, "0u");
            reduce.row_values(&mut w, 0);
            let name = w.slots.read_memory(Memory::Scratch(self.scratch), lane_dtype(dtype));
            let t = Lane::of(dtype).scalar();
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
            functions += &format!("fn whole{k}(lane: u32, begin: u32, end: u32) {{\n{text}}}\n");
        }
        let (words, counts) = self.words(&shader);
        let mut main = String::new();
        for k in 0..self.programs.len() {
            let [first, last] = [words(2 * k), words(2 * k + 2)];
            main += &format!("if (group == {k}u) {{ whole{k}(lane, {first}, {last}); }}\n");
        }
        shader.shared = shared;
        let limit = format!("{}u", self.programs.len());
        self.finish(shader, (&functions, &main, &limit), self.programs.len(), counts)
    }

    /// Uniforms behind the arguments of `shader`, by turns the first workgroup and the size of a tensor, with the number
    /// of workgroups last; and what they are called.
    fn words(&self, shader: &Shader) -> (impl Fn(usize) -> String + use<>, Vec<Uniform>) {
        let before = shader.arguments.0.len();
        let word = move |n: usize| {
            let place = before + n;
            format!("arguments[{}].{}", place / 2, if place.is_multiple_of(2) { "x" } else { "z" })
        };
        let sizes = self.programs.iter().map(|p| p.kernel.iterations()).chain([0]);
        let pairs = self.starts.iter().zip(sizes).flat_map(|(&start, size)| [start, size]);
        (word, pairs.map(|n| Uniform::Count(n as u32)).collect())
    }

    fn finish(
        &self,
        shader: Shader,
        (functions, main, limit): (&str, &str, &str),
        groups: usize,
        counts: Vec<Uniform>,
    ) -> MapDispatch {
        let layout = &self.programs[0].layout;
        let arguments = uniforms(&shader.arguments);
        let mut dispatch = shader.finish_with(functions, main, layout, limit, groups);
        dispatch.uniforms = arguments.into_iter().chain(counts).collect();
        dispatch
    }
}

/// The one fold of a program.
fn fold_of(reduce: &Reduce) -> Value {
    reduce.folds_of_stage(0)[0]
}
