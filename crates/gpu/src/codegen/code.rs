//! Writes the instructions of a map kernel as WGSL, one `let` each.

use super::Uniform;
use super::expression as expr;
use super::fast_math::is_rough;
use super::shader::ASSERTION_FAILED;
use super::slots::Slots;
use crate::codegen::storage_type::suffix;
use crate::dispatch::ComputeType;
use std::fmt::Write;
use volta_ir::dtype::{DType, Scalar};
use volta_ir::op::{Assertion, RandomKind};
use volta_ir::plan::kernel::{Access, Instruction, MapKernel, Step, Value};
use volta_ir::plan::view::{Affine, Check};

/// A value in a shader: its name, and whether it is four lanes.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub text: String,
    pub wide: bool,
}

/// Arguments of the plan that a shader uses, each with the type it is seen as, and numbers of its assertions.
#[derive(Default)]
pub(crate) struct Arguments(pub(super) Vec<Uniform>);

impl Arguments {
    fn place(&mut self, uniform: Uniform) -> usize {
        self.0.iter().position(|&known| known == uniform).unwrap_or_else(|| {
            self.0.push(uniform);
            self.0.len() - 1
        })
    }

    /// Both words of an argument.
    fn words(&mut self, argument: usize, dtype: DType) -> String {
        self.words_of(Uniform::Argument(argument, dtype))
    }

    fn words_of(&mut self, uniform: Uniform) -> String {
        let k = self.place(uniform);
        format!("arguments[{}].{}", k / 2, if k.is_multiple_of(2) { "xy" } else { "zw" })
    }
}

/// Writes code at one place of the loops: `indices` are the loops' indices as WGSL, and if `wide`, that of loop `along`
/// stands for four neighbours.
pub(super) struct Writer<'a> {
    pub kernel: &'a MapKernel,
    pub slots: &'a mut Slots,
    pub arguments: &'a mut Arguments,
    pub text: String,
    pub indices: Vec<String>,
    pub wide: bool,
    pub along: usize,
    /// Names of the values known here.
    pub names: Vec<Option<Name>>,
    /// Put behind the names of values, so that copies of the code stand beside each other.
    pub mark: String,
    /// The programs of the shader where there are several, of which `kernel` is the first.
    pub alike: &'a [&'a MapKernel],
}

/// The innermost loop of a kernel, along which four neighbours stand where nothing else is said.
pub(super) fn innermost(kernel: &MapKernel) -> usize {
    kernel.extents.len().saturating_sub(1)
}

/// One of several positions in the loops whose instructions are interleaved.
pub(super) struct LoopPosition {
    pub indices: Vec<String>,
    pub names: Vec<Option<Name>>,
    pub mark: String,
}

impl LoopPosition {
    /// Writes something at this place.
    pub fn visit(&mut self, w: &mut Writer, write: impl FnOnce(&mut Writer)) {
        let swap = |place: &mut LoopPosition, w: &mut Writer| {
            std::mem::swap(&mut place.indices, &mut w.indices);
            std::mem::swap(&mut place.names, &mut w.names);
            std::mem::swap(&mut place.mark, &mut w.mark);
        };
        swap(self, w);
        write(w);
        swap(self, w);
    }
}

/// A constant as u32 arithmetic sees it: it wraps, so negative numbers are large ones.
fn word(x: isize) -> u32 {
    x as i64 as u32
}

impl Writer<'_> {
    pub fn line(&mut self, line: impl AsRef<str>) {
        self.text += line.as_ref();
        self.text.push('\n');
    }

    /// A position at the first lane.
    pub fn position(&self, form: &Affine) -> String {
        let mut terms: Vec<String> = Vec::new();
        // Only a loop that is never entered has no index where it is named.
        for (index, &c) in self.indices.iter().zip(&form.coefficients) {
            match c {
                0 => {}
                1 => terms.push(index.clone()),
                c => terms.push(format!("{index} * {}u", word(c))),
            }
        }
        if form.offset != 0 || terms.is_empty() {
            terms.push(format!("{}u", word(form.offset)));
        }
        if terms.len() == 1 { terms.swap_remove(0) } else { format!("({})", terms.join(" + ")) }
    }

    /// How far apart the lanes of a wide value stand.
    pub fn step(&self, form: &Affine) -> isize {
        if self.wide { form.coefficients.get(self.along).copied().unwrap_or(0) } else { 0 }
    }

    /// A position in lane `k`.
    fn lane_position(&self, form: &Affine, k: usize) -> String {
        match self.step(form) * k as isize {
            0 => self.position(form),
            shift => format!("({} + {}u)", self.position(form), word(shift)),
        }
    }

    fn check(&self, checks: &[Check], lane: usize) -> String {
        let one = |c: &Check| format!("{} < {}u", self.lane_position(&c.form, lane), c.bound);
        let all: Vec<String> = checks.iter().map(one).collect();
        if all.is_empty() { "true".into() } else { all.join(" && ") }
    }

    /// Whether lanes may differ in a check: fours that begin at a multiple of four pass a bound that is one together.
    fn parts_lanes(&self, check: &Check) -> bool {
        let step = self.step(&check.form);
        let mut others = check.form.coefficients.iter().enumerate().filter(|(k, _)| *k != self.along);
        let together = step == 1
            && check.form.offset % 4 == 0
            && check.bound.is_multiple_of(4)
            && others.all(|(_, c)| c % 4 == 0);
        step != 0 && !together
    }

    /// Whether four neighbours of a slot are read or written at once here.
    fn is_straight(&self, access: &Access) -> bool {
        self.wide && access.is_straight_along(self.along, 4)
    }

    /// The value `v` as a wide or narrow operand.
    pub fn operand(&self, v: Value, wide: bool) -> String {
        let name = self.names[v].as_ref().unwrap_or_else(|| panic!("value {v} is not computed yet"));
        if wide && !name.wide {
            let lane = ComputeType::of(self.kernel.code[v].dtype);
            return format!("{}({})", lane.name(true), name.text);
        }
        name.text.clone()
    }

    fn is_wide(&self, v: Value) -> bool {
        self.names[v].as_ref().is_some_and(|n| n.wide)
    }

    fn bind(&mut self, v: Value, expression: &str, wide: bool) {
        let text = format!("v{v}{}", self.mark);
        let _ = writeln!(self.text, "let {text} = {expression};");
        self.names[v] = Some(Name { text, wide });
    }

    /// Declares `v` with a value it has where nothing else is assigned.
    fn declare(&mut self, v: Value, initial: &str, wide: bool) -> String {
        let text = format!("v{v}{}", self.mark);
        let lane = ComputeType::of(self.kernel.code[v].dtype).name(wide);
        let _ = writeln!(self.text, "var {text}: {lane} = {lane}({initial});");
        self.names[v] = Some(Name { text: text.clone(), wide });
        text
    }

    /// Writes the instruction of `v`.
    pub fn compute(&mut self, v: Value) {
        let kernel = self.kernel;
        let Instruction { step, dtype, .. } = &kernel.code[v];
        let dtype = *dtype;
        match step {
            Step::Load { access, checks, fill } => self.load(v, access, checks, *fill, dtype),
            Step::Gather { access, index, stride, extent } => {
                self.gather(v, access, *index, *stride, *extent, dtype);
            }
            Step::Argument(n) => {
                let value = self.argument(*n, dtype);
                self.bind(v, &value, false);
            }
            Step::Literal(x) => self.bind(v, &expr::literal(*x, dtype), false),
            Step::Iota(form) => {
                let wide = self.step(form) != 0;
                let position = self.lanes_of(form, wide);
                let signed = format!("{}({position})", ComputeType::I32.name(wide));
                let value = expr::cast(&signed, DType::I32, dtype, wide);
                self.bind(v, &expr::rounded(value, dtype, wide), wide);
            }
            Step::Random { kind, argument, counter } => {
                let wide = self.step(counter) != 0;
                let key = self.arguments.words(*argument, DType::I32);
                let is_single = counter.coefficients.iter().all(|&c| c == 0);
                let mut counter = self.lanes_of(counter, wide);
                if is_single {
                    // Mesa's llvmpipe takes forever to compile branches that depend on nothing but arguments: it follows every
                    // path there is back to them.
                    counter += " + unknown_zero()";
                }
                let s = suffix(wide);
                let value = match kind {
                    RandomKind::Uniform => format!("random_uniform{s}(random_first{s}({key}, {counter}))"),
                    RandomKind::UniformSecond => {
                        format!("random_uniform{s}(random_second{s}({key}, {counter}))")
                    }
                    RandomKind::Bits => {
                        let (i, u) = (ComputeType::I32.name(wide), ComputeType::U32.name(wide));
                        format!("{i}(random_first{s}({key}, {counter}) >> {u}(1u))")
                    }
                };
                self.bind(v, &value, wide);
            }
            Step::Valid(checks) => {
                let wide = checks.iter().any(|c| self.parts_lanes(c));
                let lanes = if wide { 4 } else { 1 };
                let each: Vec<String> =
                    (0..lanes).map(|k| format!("select(0u, 1u, {})", self.check(checks, k))).collect();
                let value = if wide { format!("vec4<u32>({})", each.join(", ")) } else { each[0].clone() };
                self.bind(v, &value, wide);
            }
            Step::Unary(op, a) => {
                let wide = self.is_wide(*a);
                let operand = self.operand(*a, wide);
                let rough = expr::rough(*op, &operand, wide).filter(|_| is_rough(kernel, v, *op));
                let value = rough.unwrap_or_else(|| expr::unary(*op, &operand, dtype, wide));
                self.bind(v, &expr::rounded(value, dtype, wide), wide);
            }
            Step::Binary(op, a, b) => {
                let wide = self.is_wide(*a) || self.is_wide(*b);
                let of = kernel.code[*a].dtype;
                let value = expr::binary(*op, &self.operand(*a, wide), &self.operand(*b, wide), of, wide);
                let value = if op.compares() { value } else { expr::rounded(value, dtype, wide) };
                self.bind(v, &value, wide);
            }
            Step::MulAdd(..) => unreachable!("a CPU's step"),
            Step::Where(c, a, b) => {
                let wide = [*c, *a, *b].iter().any(|&o| self.is_wide(o));
                // One truth value chooses for all lanes.
                let zero = format!("{}(0u)", ComputeType::U32.name(self.is_wide(*c)));
                let chosen = format!("{} != {zero}", self.operand(*c, false));
                let (a, b) = (self.operand(*a, wide), self.operand(*b, wide));
                self.bind(v, &format!("select({b}, {a}, {chosen})"), wide);
            }
            Step::Cast(a) => {
                let wide = self.is_wide(*a);
                let value = expr::cast(&self.operand(*a, wide), kernel.code[*a].dtype, dtype, wide);
                self.bind(v, &expr::rounded(value, dtype, wide), wide);
            }
            Step::Broadcast(a) => self.names[v] = self.names[*a].clone(),
            Step::Assert { of, assertion, site } => self.assert(v, *of, *assertion, *site),
            Step::Reduce(..) | Step::ArgReduce { .. } | Step::GlobalReduce(..) => {
                unreachable!("folds are written by the loops around them")
            }
        }
    }

    /// The value of `of`, which is reported where the assertion does not hold of it.
    fn assert(&mut self, v: Value, of: Value, assertion: Assertion, site: usize) {
        let (wide, lane) = (self.is_wide(of), ComputeType::of(self.kernel.code[of].dtype));
        let value = self.operand(of, wide);
        let site = self.arguments.words_of(Uniform::Site(site));
        for k in 0..if wide { 4 } else { 1 } {
            let x = if wide { format!("{value}[{k}]") } else { value.clone() };
            let holds = match assertion {
                Assertion::InBounds { extent } => bounded(&x, lane, extent.min(u32::MAX as usize)).0,
                Assertion::NonZero => format!("{x} != {}(0)", lane.scalar()),
            };
            let high = match lane {
                ComputeType::I64 => format!("u32({x} >> 32u)"),
                ComputeType::I32 => format!("u32({x} >> 31u)"),
                _ => "0u".to_string(),
            };
            self.line(format!("if (!({holds})) {{ {ASSERTION_FAILED}({site}.x, u32({x}), {high}); }}"));
        }
        self.bind(v, &value, wide);
    }

    /// A position in every lane, as u32.
    fn lanes_of(&self, form: &Affine, wide: bool) -> String {
        let first = self.position(form);
        if wide {
            let step = word(self.step(form));
            format!(
                "(vec4<u32>({first}) + vec4<u32>(0u, {step}u, {}u, {}u))",
                step.wrapping_mul(2),
                step.wrapping_mul(3)
            )
        } else {
            first
        }
    }

    /// An argument of the plan, seen as `dtype`.
    pub fn argument(&mut self, n: usize, dtype: DType) -> String {
        let words = self.arguments.words(n, dtype);
        match ComputeType::of(dtype) {
            ComputeType::F32 | ComputeType::F16 => format!("bitcast<f32>({words}.x)"),
            ComputeType::I32 => format!("bitcast<i32>({words}.x)"),
            ComputeType::U32 => format!("{words}.x"),
            ComputeType::I64 => format!("m_join_words({words}.x, {words}.y)"),
        }
    }

    /// What a slot holds here, in four lanes if `wide`.
    pub fn loaded(&mut self, access: &Access, dtype: DType, wide: bool) -> String {
        let slot = self.slots.read(access.slot, dtype);
        let lane = |k| format!("load_{slot}({})", self.lane_position(&access.position, k));
        if wide && self.is_straight(access) {
            self.slots.widen(access.slot);
            format!("load4_{slot}({})", self.position(&access.position))
        } else if wide {
            let all: Vec<String> = (0..4).map(lane).collect();
            format!("{}({})", ComputeType::of(dtype).name(true), all.join(", "))
        } else {
            lane(0)
        }
    }

    fn load(&mut self, v: Value, access: &Access, checks: &[Check], fill: Scalar, dtype: DType) {
        // Loops that are never entered may still be named outside of them.
        let never = |form: &Affine| {
            form.coefficients.iter().zip(&self.kernel.extents).any(|(&c, &e)| c != 0 && e == 0)
        };
        if checks.iter().any(|c| never(&c.form)) {
            return self.bind(v, &expr::literal(0.0, dtype), false);
        }
        let slot = self.slots.read(access.slot, dtype);
        let wide = self.step(&access.position) != 0 || checks.iter().any(|c| self.step(&c.form) != 0);
        let straight = self.is_straight(access);
        let checked_apart = checks.iter().any(|c| self.parts_lanes(c));
        let lane = |w: &Self, k: usize| format!("load_{slot}({})", w.lane_position(&access.position, k));
        if checks.is_empty() {
            let value = self.loaded(access, dtype, wide);
            return self.bind(v, &value, wide);
        }
        let fill = expr::literal(fill, dtype);
        // Copies of the code stand together so that their loads wait together: a branch would part them.
        if !self.mark.is_empty() && !checked_apart {
            let inside = format!("inside{v}{}", self.mark);
            let line = format!("let {inside} = {};", self.check(checks, 0));
            self.line(line);
            let at = |place: String| format!("select(0u, {place}, {inside})");
            let value = if wide && straight {
                self.slots.widen(access.slot);
                format!("load4_{slot}({})", at(self.position(&access.position)))
            } else if wide {
                let lane = |k| format!("load_{slot}({})", at(self.lane_position(&access.position, k)));
                let all: Vec<String> = (0..4).map(lane).collect();
                format!("{}({})", ComputeType::of(dtype).name(true), all.join(", "))
            } else {
                format!("load_{slot}({})", at(self.position(&access.position)))
            };
            let fill = if wide { format!("{}({fill})", ComputeType::of(dtype).name(true)) } else { fill };
            return self.bind(v, &format!("select({fill}, {value}, {inside})"), wide);
        }
        let name = self.declare(v, &fill, wide);
        if checked_apart {
            for k in 0..4 {
                let line = format!("if ({}) {{ {name}[{k}] = {}; }}", self.check(checks, k), lane(self, k));
                self.line(line);
            }
        } else {
            let value = self.loaded(access, dtype, wide);
            let line = format!("if ({}) {{ {name} = {value}; }}", self.check(checks, 0));
            self.line(line);
        }
    }

    fn gather(
        &mut self,
        v: Value,
        access: &Access,
        index: Value,
        stride: isize,
        extent: usize,
        dtype: DType,
    ) {
        let slot = self.slots.read(access.slot, dtype);
        let index_lane = ComputeType::of(self.kernel.code[index].dtype);
        let wide_index = self.is_wide(index);
        let wide = wide_index || self.step(&access.position) != 0;
        let outside = if dtype.is_float() { "m_nan()".to_string() } else { expr::literal(0.0, dtype) };
        // One index for four neighbours that stand in a row.
        if wide && !wide_index && self.is_straight(access) && stride % 4 == 0 {
            self.slots.widen(access.slot);
            let name = self.declare(v, &outside, true);
            let index = self.operand(index, false);
            let (inside, at) = bounded(&index, index_lane, extent);
            let place = format!("{} + {at} * {}u", self.position(&access.position), word(stride));
            return self.line(format!("if ({inside}) {{ {name} = load4_{slot}({place}); }}"));
        }
        let name = self.declare(v, &outside, wide);
        for k in 0..if wide { 4 } else { 1 } {
            let mut index = self.operand(index, false);
            if wide_index {
                index = format!("{index}[{k}]");
            }
            let target = if wide { format!("{name}[{k}]") } else { name.clone() };
            let (inside, at) = bounded(&index, index_lane, extent);
            let place = format!("{} + {at} * {}u", self.lane_position(&access.position, k), word(stride));
            self.line(format!("if ({inside}) {{ {target} = load_{slot}({place}); }}"));
        }
    }

    /// Stores `v` in a slot.
    pub fn store(&mut self, v: Value, access: &Access) {
        let dtype = self.kernel.code[v].dtype;
        let slot = self.slots.write(access.slot, dtype);
        if !self.wide {
            let line =
                format!("store_{slot}({}, {});", self.position(&access.position), self.operand(v, false));
            return self.line(line);
        }
        let value = self.operand(v, true);
        if self.is_straight(access) {
            self.slots.widen(access.slot);
            return self.line(format!("store4_{slot}({}, {value});", self.position(&access.position)));
        }
        for k in 0..4 {
            self.line(format!("store_{slot}({}, {value}[{k}]);", self.lane_position(&access.position, k)));
        }
    }
}

/// Stores value `v` of two places of which the second one has the next four: as eight at once, if they lie so.
pub(super) fn store_two(w: &mut Writer, places: &mut [LoopPosition; 2], v: Value, access: &Access) {
    if w.kernel.code[v].dtype != DType::F16 || !access.is_straight_along(w.along, 8) {
        places.iter_mut().for_each(|place| place.visit(w, |w| w.store(v, access)));
        return;
    }
    let slot = w.slots.write(access.slot, DType::F16);
    w.slots.widen_to_eights(access.slot);
    let mut at = String::new();
    let [low, high] = places.each_mut().map(|place| {
        let mut value = String::new();
        place.visit(w, |w| {
            value = w.operand(v, true);
            if at.is_empty() {
                at = w.position(&access.position);
            }
        });
        value
    });
    w.line(format!("store8_{slot}({at}, {low}, {high});"));
}

/// Whether an index is inside of 0..extent, and the index as u32.
pub(super) fn bounded(index: &str, lane: ComputeType, extent: usize) -> (String, String) {
    match lane {
        // As unsigned numbers, negative indices are too large.
        ComputeType::I32 => (format!("u32({index}) < {extent}u"), format!("u32({index})")),
        // By words: llvmpipe takes comparisons with the least and the most together, and gets them wrong.
        ComputeType::I64 => {
            (format!("u32({index} >> 32u) == 0u && u32({index}) < {extent}u"), format!("u32({index})"))
        }
        _ => (format!("{index} < {extent}u"), index.to_string()),
    }
}

/// Names for the loops' indices, from the flat index `flat` over `extents`, the last loop innermost.
pub(super) fn split_index(text: &mut String, flat: &str, extents: &[usize], prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    // An empty loop is never entered, but must be written.
    let mut inside: usize = extents.iter().map(|&e| e.max(1)).product();
    for (k, &extent) in extents.iter().enumerate() {
        inside /= extent.max(1);
        let quotient = if inside == 1 { flat.to_string() } else { format!("({flat} / {inside}u)") };
        let index = if k == 0 { quotient } else { format!("({quotient} % {}u)", extent.max(1)) };
        let name = format!("{prefix}{k}");
        let _ = writeln!(text, "let {name} = {index};");
        names.push(name);
    }
    names
}
