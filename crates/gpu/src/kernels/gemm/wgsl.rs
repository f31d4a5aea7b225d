//! Writing WGSL: literals, and positions as expressions of indices.

use crate::dispatch::ComputeType;

/// A literal of positions, which are counted modulo 2³²: so negative strides need no signs.
pub(super) fn unsigned(value: i64) -> String {
    format!("{}u", value as u32)
}

/// `index · stride` as WGSL, where `index` needs no brackets.
pub(super) fn times(index: &str, stride: i64) -> String {
    match stride {
        0 => "0u".into(),
        1 => index.into(),
        _ => format!("{index} * {}", unsigned(stride)),
    }
}

/// The sum of terms, without those that are nothing.
pub(super) fn sum<S: AsRef<str>>(terms: &[S]) -> String {
    let some: Vec<&str> = terms.iter().map(AsRef::as_ref).filter(|t| *t != "0u").collect();
    if some.is_empty() { "0u".into() } else { some.join(" + ") }
}

/// WGSL's name of a lane.
pub(super) fn scalar(lane: ComputeType) -> &'static str {
    match lane {
        ComputeType::F32 => "f32",
        ComputeType::F16 => "f16",
        ComputeType::I32 => "i32",
        ComputeType::U32 => "u32",
        ComputeType::I64 => "i64",
    }
}

/// The start of every kernel: `group` is the workgroup's number, `tid` the thread's in it.
pub(super) fn main(threads: usize, groups: u64, body: &str) -> String {
    format!(
        "@compute @workgroup_size({threads})
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) nwg: vec3<u32>,
    @builtin(local_invocation_index) tid: u32,
) {{
    let group = wg.x + wg.y * nwg.x;
    if (group >= {groups}u) {{ return; }}
{}}}
",
        indented(body, 1)
    )
}

/// The lines of `text` under `depth` more levels.
pub(super) fn indented(text: &str, depth: usize) -> String {
    let margin = "    ".repeat(depth);
    let mut out = String::with_capacity(text.len() * 2);
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        out.push_str(&margin);
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// An index taken apart into digits of mixed radix, each with a stride, outermost first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Digits(Vec<(usize, i64)>);

impl Digits {
    /// Digits that count on where the next inner one ends are joined.
    pub fn new(axes: impl IntoIterator<Item = (usize, i64)>) -> Digits {
        let mut digits: Vec<(usize, i64)> = Vec::new();
        for (extent, stride) in axes.into_iter().filter(|&(extent, _)| extent != 1) {
            match digits.last_mut() {
                Some(last) if last.1 == stride * extent as i64 => *last = (last.0 * extent, stride),
                _ => digits.push((extent, stride)),
            }
        }
        Digits(digits)
    }

    /// One digit.
    pub fn line(extent: usize, stride: i64) -> Digits {
        Digits::new([(extent, stride)])
    }

    /// The stride, where there is but one.
    pub fn stride(&self) -> Option<i64> {
        match self.0[..] {
            [] => Some(0),
            [(_, stride)] => Some(stride),
            _ => None,
        }
    }

    /// The innermost digit.
    pub fn inner(&self) -> (usize, i64) {
        self.0.last().copied().unwrap_or((1, 0))
    }

    /// Whether all positions are multiples of `number`.
    pub fn are_multiples(&self, number: usize) -> bool {
        self.0.iter().all(|&(_, stride)| stride % number as i64 == 0)
    }

    /// Whether runs of `length` from every multiple of it on are neighbours at multiples of it.
    pub fn has_runs(&self, length: usize) -> bool {
        let Some((&(extent, stride), outer)) = self.0.split_last() else { return false };
        stride == 1 && extent.is_multiple_of(length) && outer.iter().all(|&(_, s)| s % length as i64 == 0)
    }

    /// Whether runs of four from every multiple of 4 on are neighbours at multiples of 4.
    pub fn quads(&self) -> bool {
        self.has_runs(4)
    }

    /// The position of `index`, which needs no brackets.
    pub fn position(&self, index: &str) -> String {
        let mut inner = 1;
        let mut terms: Vec<String> = Vec::new();
        for (place, &(extent, stride)) in self.0.iter().enumerate().rev() {
            let mut digit = if inner == 1 { index.to_string() } else { format!("{index} / {inner}u") };
            if place > 0 {
                digit = if inner == 1 {
                    format!("{digit} % {extent}u")
                } else {
                    format!("({digit}) % {extent}u")
                };
            }
            if digit != index && stride != 1 && stride != 0 {
                digit = format!("({digit})");
            }
            terms.push(times(&digit, stride));
            inner *= extent;
        }
        terms.reverse();
        sum(&terms)
    }
}
