//! Invocations that fold one row together, and how they put their parts together.

use super::expression as expr;
use crate::codegen::storage_type::suffix;
use crate::dispatch::ComputeType;
use std::collections::BTreeSet;
use std::fmt::Write;
use volta_ir::dtype::DType;
use volta_ir::op::ReduceOp;

/// A workgroup of `group` invocations as teams of `parts`, whose members stand `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct ThreadGroup {
    pub parts: u32,
    pub stride: u32,
    pub group: u32,
    /// The size of subgroups, where members may exchange values directly.
    pub subgroup: Option<u32>,
    /// A member folds four neighbouring rows, a lane each.
    pub four_rows: bool,
}

/// Workgroup memory that a shader needs: names and the types of their elements.
#[derive(Default)]
pub(super) struct Shared(BTreeSet<(String, String)>);

impl Shared {
    pub fn name(&mut self, lane: ComputeType, wide: bool) -> String {
        let name = format!("shared_{}{}", lane.scalar(), suffix(wide));
        self.0.insert((name.clone(), lane.name(wide)));
        name
    }

    pub fn declarations(&self, group: u32) -> String {
        let declare = |(name, element): &(String, String)| {
            format!("var<workgroup> {name}: array<{element}, {group}>;\n")
        };
        self.0.iter().map(declare).collect()
    }
}

impl ThreadGroup {
    /// The same workgroup as one team.
    pub fn whole(self) -> ThreadGroup {
        ThreadGroup { parts: self.group, stride: 1, four_rows: false, ..self }
    }

    /// Folds `value` of every member; all of them get the result as `name`. A member is `lane` in its workgroup
    /// and `part` in its team.
    pub fn fold(
        &self,
        text: &mut String,
        shared: &mut Shared,
        (op, dtype): (ReduceOp, DType),
        value: &str,
        name: &str,
        part: &str,
    ) {
        let combine = |a: &str, b: &str| expr::combine(op, a, b, dtype, self.four_rows);
        if self.parts == 1 {
            let _ = writeln!(text, "let {name} = {value};");
            return;
        }
        let lane = ComputeType::of(dtype);
        let direct = self.subgroup.filter(|_| self.stride == 1 && lane != ComputeType::I64);
        let Some(size) = direct else {
            let memory = shared.name(lane, self.four_rows);
            let _ = writeln!(text, "{memory}[lane] = {value};\nworkgroupBarrier();");
            let mut half = self.parts / 2;
            while half >= 1 {
                let other = format!("{memory}[lane + {}u]", half * self.stride);
                let sum = combine(&format!("{memory}[lane]"), &other);
                let _ = writeln!(
                    text,
                    "if ({part} < {half}u) {{ {memory}[lane] = {sum}; }}\nworkgroupBarrier();"
                );
                half /= 2;
            }
            let first = format!("{memory}[lane - {part} * {}u]", self.stride);
            let _ = writeln!(text, "let {name} = {first};\nworkgroupBarrier();");
            return;
        };
        let _ = writeln!(text, "var fold_{name} = {value};");
        let mut distance = self.parts.min(size) / 2;
        while distance >= 1 {
            let other = format!("subgroupShuffleXor(fold_{name}, {distance}u)");
            let sum = combine(&format!("fold_{name}"), &other);
            let _ = writeln!(text, "fold_{name} = {sum};");
            distance /= 2;
        }
        if self.parts > size {
            let memory = shared.name(lane, self.four_rows);
            let count = self.parts / size;
            let _ = writeln!(text, "if (lane % {size}u == 0u) {{ {memory}[lane / {size}u] = fold_{name}; }}");
            let _ = writeln!(text, "workgroupBarrier();");
            let first = format!("(lane / {}u) * {count}u", self.parts);
            let _ = writeln!(text, "fold_{name} = {memory}[{first}];");
            for k in 1..count {
                let sum = combine(&format!("fold_{name}"), &format!("{memory}[{first} + {k}u]"));
                let _ = writeln!(text, "fold_{name} = {sum};");
            }
            let _ = writeln!(text, "workgroupBarrier();");
        }
        let _ = writeln!(text, "let {name} = fold_{name};");
    }

    /// The best of `best_{name}` at `at_{name}` of all members, in these variables.
    pub fn best(
        &self,
        text: &mut String,
        shared: &mut Shared,
        max: bool,
        dtype: DType,
        name: &str,
        part: &str,
    ) {
        if self.parts == 1 {
            return;
        }
        let values = shared.name(ComputeType::of(dtype), false);
        let places = "shared_places";
        shared.0.insert((places.to_string(), "u32".to_string()));
        let _ =
            writeln!(text, "{values}[lane] = best_{name};\n{places}[lane] = at_{name};\nworkgroupBarrier();");
        let mut half = self.parts / 2;
        while half >= 1 {
            let other = format!("lane + {}u", half * self.stride);
            let better = better_or_earlier(
                max,
                dtype,
                (&format!("{values}[lane]"), &format!("{places}[lane]")),
                (&format!("{values}[{other}]"), &format!("{places}[{other}]")),
            );
            let _ = writeln!(
                text,
                "if ({part} < {half}u) {{ if ({better}) {{ {values}[lane] = {values}[{other}]; \
                 {places}[lane] = {places}[{other}]; }} }}\nworkgroupBarrier();"
            );
            half /= 2;
        }
        let first = format!("lane - {part} * {}u", self.stride);
        let _ = writeln!(
            text,
            "best_{name} = {values}[{first}];\nat_{name} = {places}[{first}];\nworkgroupBarrier();"
        );
    }
}

/// No place yet.
pub(super) const NOWHERE: &str = "4294967295u";

/// Whether `x` beats `best`, which may stand nowhere: a NaN beats every number.
pub(super) fn better(max: bool, dtype: DType, x: &str, best: (&str, &str)) -> String {
    let (value, at) = best;
    let order = if max { ">" } else { "<" };
    let nan =
        if dtype.is_float() { format!(" || (m_is_nan({x}) && !m_is_nan({value}))") } else { String::new() };
    format!("{at} == {NOWHERE} || {x} {order} {value}{nan}")
}

/// Whether `b` beats `a`, or equals it at an earlier place.
fn better_or_earlier(max: bool, dtype: DType, a: (&str, &str), b: (&str, &str)) -> String {
    let tie = if dtype.is_float() {
        format!("({} == {} || (m_is_nan({}) && m_is_nan({})))", a.0, b.0, a.0, b.0)
    } else {
        format!("{} == {}", a.0, b.0)
    };
    format!("{} != {NOWHERE} && ({} || ({tie} && {} < {}))", b.1, better(max, dtype, b.0, a), b.1, a.1)
}
