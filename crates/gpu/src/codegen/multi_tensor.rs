//! Programs that differ only in their slots, arguments and sizes, in one shader: what differs is picked by the number of
//! the workgroup's program, and the code that computes stands there once, however many programs there are.

use super::Uniform;
use super::code::{Arguments, LoopPosition, Name, Writer};
use crate::dispatch::ComputeType;
use std::collections::BTreeSet;
use volta_ir::plan::kernel::{Access, MapKernel, Slot, Step, Value};

/// Programs of one dispatch at most.
const MAX_TOGETHER: usize = 256;

/// `kernels` in classes whose text is the same but for what is picked: `key` says what else of a kernel is in the text.
/// Every class sees at most `most_slots` slots.
pub(super) fn classes<K: PartialEq>(
    kernels: &[MapKernel],
    most_slots: usize,
    key: impl Fn(&MapKernel) -> K,
) -> Vec<Vec<&MapKernel>> {
    struct Class<'a, K> {
        key: (K, bool, usize, Vec<usize>),
        kernels: Vec<&'a MapKernel>,
        slots: BTreeSet<Slot>,
    }
    impl<K> Class<'_, K> {
        /// How many slots it would see with `kernel`.
        fn with(&self, kernel: &MapKernel) -> usize {
            let new: BTreeSet<Slot> = kernel.slots().filter(|slot| !self.slots.contains(slot)).collect();
            self.slots.len() + new.len()
        }
    }
    let mut classes: Vec<Class<K>> = Vec::new();
    for kernel in kernels {
        // Only the extent of the outermost loop is in no index; what asks for a loop that is never entered loads nothing.
        let inner = kernel.extents.iter().skip(1).copied().collect();
        let key = (key(kernel), kernel.extents.first() == Some(&0), kernel.extents.len(), inner);
        // The last class of its key has room, if any has.
        let last = classes.iter_mut().rev().find(|class| class.key == key);
        match last {
            Some(class) if class.kernels.len() < MAX_TOGETHER && class.with(kernel) <= most_slots => {
                class.slots.extend(kernel.slots());
                class.kernels.push(kernel);
            }
            _ => classes.push(Class { key, kernels: vec![kernel], slots: kernel.slots().collect() }),
        }
    }
    classes.into_iter().map(|class| class.kernels).collect()
}

/// Where the programs of a dispatch begin, and how large they are: uniforms behind the arguments. Programs begin with a
/// workgroup, so that all of its invocations take the same way.
pub(super) struct Table {
    /// The first workgroup of every program, and how many there are.
    starts: Vec<u64>,
    sizes: Vec<u64>,
}

impl Table {
    /// Of programs that have so many workgroups and that size each.
    pub fn of(programs: impl Iterator<Item = (u64, u64)>) -> Table {
        let (mut starts, mut sizes) = (vec![0], Vec::new());
        for (groups, size) in programs {
            starts.push(starts[starts.len() - 1] + groups);
            sizes.push(size);
        }
        Table { starts, sizes }
    }

    /// Workgroups in all.
    pub fn groups(&self) -> u64 {
        self.starts[self.sizes.len()]
    }

    /// Puts the table behind what is there.
    pub fn write(&self, uniforms: &mut Vec<Uniform>) {
        if uniforms.len() % 2 == 1 {
            uniforms.push(Uniform::Count(0));
        }
        let pairs = self.starts.iter().zip(self.sizes.iter().chain([&0]));
        uniforms.extend(pairs.flat_map(|(&start, &size)| [start, size]).map(|n| Uniform::Count(n as u32)));
    }

    /// The first workgroup of a program, or of the one behind the last: all of them.
    pub fn start(arguments: &Arguments, program: &str) -> String {
        format!("arguments[{}u + {program}].x", arguments.0.len().div_ceil(2))
    }

    pub fn size(arguments: &Arguments, program: &str) -> String {
        format!("arguments[{}u + {program}].z", arguments.0.len().div_ceil(2))
    }

    /// How many workgroups there are.
    pub fn limit(&self, arguments: &Arguments) -> String {
        Table::start(arguments, &format!("{}u", self.sizes.len()))
    }

    /// Finds the `program` of workgroup `group`.
    pub fn find(&self, arguments: &Arguments) -> String {
        format!(
            "var program = 0u;\nvar behind = {}u;\n\
             while (behind - program > 1u) {{\n\
             let middle = (program + behind) / 2u;\n\
             if ({} <= group) {{ program = middle; }} else {{ behind = middle; }}\n}}\n",
            self.sizes.len(),
            Table::start(arguments, "middle")
        )
    }
}

impl Writer<'_> {
    /// Whether the programs of the shader differ in the value `v`.
    pub fn differs(&self, v: Value) -> bool {
        let input = |kernel: &MapKernel| match &kernel.code[v].step {
            Step::Load { access, .. } => Some(access.slot),
            Step::Argument(n) => Some(*n),
            _ => None,
        };
        self.alike.iter().any(|kernel| input(kernel) != input(self.kernel))
    }

    /// Loads what the programs differ in, among `values`, at the place where the writer is.
    pub fn pick_here(&mut self, values: &[Value]) {
        let (indices, names) = (self.indices.clone(), self.names.clone());
        let mut here = [LoopPosition { indices, names, mark: self.mark.clone() }];
        self.pick(values, &mut here);
        let [here] = here;
        self.names = here.names;
    }

    /// The same at several places: all loads of a program stand together, so that none waits for another.
    pub fn pick(&mut self, values: &[Value], places: &mut [LoopPosition]) {
        let values: Vec<Value> = values.iter().copied().filter(|&v| self.differs(v)).collect();
        if values.is_empty() {
            return;
        }
        for &v in &values {
            let wide = matches!(&self.kernel.code[v].step, Step::Load { access, .. } if self.moves(access));
            let lane = ComputeType::of(self.kernel.code[v].dtype).name(wide);
            for place in &mut *places {
                let text = format!("v{v}{}", place.mark);
                self.line(format!("var {text}: {lane};"));
                place.names[v] = Some(Name { text, wide });
            }
        }
        self.by_program(|w, kernel| {
            for &v in &values {
                for place in &mut *places {
                    place.visit(w, |w| {
                        let dtype = kernel.code[v].dtype;
                        let value = match &kernel.code[v].step {
                            Step::Load { access, .. } => w.loaded(access, dtype, w.moves(access)),
                            Step::Argument(n) => w.argument(*n, dtype),
                            step => unreachable!("programs that are alike differ in {step:?}"),
                        };
                        let name = w.operand(v, false);
                        w.line(format!("{name} = {value};"));
                    });
                }
            }
        });
    }

    /// Stores the results of these numbers.
    pub fn stores(&mut self, numbers: &[usize]) {
        if self.alike.is_empty() {
            return numbers
                .iter()
                .map(|&n| &self.kernel.stores[n])
                .for_each(|s| self.store(s.value, &s.access));
        }
        self.by_program(|w, kernel| {
            numbers.iter().map(|&n| &kernel.stores[n]).for_each(|s| w.store(s.value, &s.access));
        });
    }

    /// Writes what every program does by itself.
    fn by_program(&mut self, mut write: impl FnMut(&mut Self, &MapKernel)) {
        self.choose(self.alike, 0, &mut write);
    }

    /// The same for `programs`, the first of which has that number: by halves, since there are drivers that ask for one
    /// case of a `switch` after the other.
    fn choose(
        &mut self,
        programs: &[&MapKernel],
        first: usize,
        write: &mut impl FnMut(&mut Self, &MapKernel),
    ) {
        if let [program] = programs {
            return write(self, program);
        }
        let (some, others) = programs.split_at(programs.len() / 2);
        let next = first + some.len();
        self.line(format!("if (program < {next}u) {{"));
        self.choose(some, first, write);
        self.line("} else {");
        self.choose(others, next, write);
        self.line("}");
    }

    /// Whether the lanes of a wide value are different elements of a slot.
    fn moves(&self, access: &Access) -> bool {
        self.step(&access.position) != 0
    }
}
