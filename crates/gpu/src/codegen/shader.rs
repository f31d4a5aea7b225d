//! The whole text of a shader: declarations of memory, the functions that read and write it, the functions it
//! uses, and the body.

use super::wgsl::{linker, math};
use crate::caps::Caps;
use crate::codegen::storage_type::{StorageType, conversions, of_width, suffix};
use crate::dispatch::ComputeType;
use std::fmt::Write;
use volta_ir::dtype::DType;

/// A shader to be compiled.
#[derive(Clone)]
pub(crate) struct Shader {
    pub source: String,
    /// A flag for each binding.
    pub writable: Vec<bool>,
    /// Whether a uniform buffer follows.
    pub arguments: bool,
    /// The ops it computes, and those of its kernel with their shape, for errors.
    pub what: String,
    pub kernel: String,
}

/// The function that a body calls with the number of an assertion that does not hold, and the low and the high word of the
/// number that it does not hold of. What calls it sees the memory for that besides its own.
pub(crate) const ASSERTION_FAILED: &str = "assertion_failed";

/// Notes what failed first: a flag, then what the function was called with.
const NOTE_FAILURE: &str = "\
fn assertion_failed(site: u32, low: u32, high: u32) {
    if (atomicOr(&failed_assertion[0], 1u) == 0u) {
        atomicStore(&failed_assertion[1], site);
        atomicStore(&failed_assertion[2], low);
        atomicStore(&failed_assertion[3], high);
    }
}
";

/// Whether a body may report that an assertion failed.
pub(crate) fn asserts(body: &str) -> bool {
    body.contains("assertion_failed(")
}

/// A piece of memory as the shader declares it: one binding, or several where it is larger than a binding may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub stored: StorageType,
    pub width: u32,
    pub writable: bool,
    /// The numbers of the pieces that the shader sees, in order.
    pub pieces: Vec<usize>,
}

/// A name under which a body reads or writes declared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accessor {
    pub name: String,
    pub declared: usize,
    pub dtype: DType,
    pub lane: ComputeType,
    pub reads: bool,
    pub writes: bool,
}

/// Everything but the body.
pub(crate) struct Frame<'a> {
    pub declared: &'a [Declared],
    pub accessors: &'a [Accessor],
    /// Words of arguments, two for each.
    pub arguments: usize,
    /// Bytes of a piece of memory.
    pub block: usize,
    pub caps: &'a Caps,
}

impl Declared {
    /// The WGSL type of what is read or written at once: eight halves are four words.
    fn element(&self) -> String {
        if self.width == 8 { "vec4<u32>".into() } else { of_width(self.stored.scalar(), self.width == 4) }
    }
}

impl Frame<'_> {
    /// The number of bindings before the arguments.
    pub fn bindings(&self) -> usize {
        self.declared.iter().map(|d| d.pieces.len()).sum()
    }

    /// The shader around `body`.
    pub fn source(&self, body: &str) -> String {
        if self.caps.component_stores {
            return self.text(body);
        }
        let declared: Vec<Declared> =
            (0..self.declared.len()).map(|k| self.without_parts_of_vectors(k, body)).collect();
        Frame { declared: &declared, ..*self }.text(body)
    }

    /// Memory that `body` writes in ones, also where it writes fours: vectors would be written by several invocations.
    fn without_parts_of_vectors(&self, k: usize, body: &str) -> Declared {
        let in_ones = |a: &Accessor| a.declared == k && body.contains(&format!("store_{}(", a.name));
        let d = self.declared[k].clone();
        let width = if d.width == 4 && self.accessors.iter().any(in_ones) { 1 } else { d.width };
        Declared { width, ..d }
    }

    fn text(&self, body: &str) -> String {
        let mut text = String::new();
        let mut binding = 0;
        for (k, d) in self.declared.iter().enumerate() {
            let access = if d.writable { "read_write" } else { "read" };
            let element = d.element();
            for piece in &d.pieces {
                let _ = writeln!(
                    text,
                    "@group(0) @binding({binding}) var<storage, {access}> memory{k}_{piece}: array<{element}>;"
                );
                binding += 1;
            }
        }
        if asserts(body) {
            let words = "array<atomic<u32>, 4>";
            let _ = writeln!(
                text,
                "@group(0) @binding({binding}) var<storage, read_write> failed_assertion: {words};"
            );
            binding += 1;
        }
        if self.arguments > 0 {
            let words = self.arguments.div_ceil(2);
            let _ = writeln!(
                text,
                "@group(0) @binding({binding}) var<uniform> arguments: array<vec4<u32>, {words}>;"
            );
        }
        let mut functions = String::new();
        for a in self.accessors {
            self.write_accessor(&mut functions, a);
        }
        let rest = linker::needed(&[&functions], body) + body;
        text += &linker::needed(
            &[&self.unknown_zero(), &conversions(self.caps), math::definitions(), NOTE_FAILURE],
            &rest,
        );
        text += &rest;
        let mut extensions = String::new();
        for (word, extension) in [("f16", "f16"), ("coop_mat", "wgpu_cooperative_matrix")] {
            if text.contains(word) {
                extensions += &format!("enable {extension};\n");
            }
        }
        extensions + &text
    }

    /// A zero that no driver can know, for what it would leave out otherwise: memory is never empty.
    fn unknown_zero(&self) -> String {
        let Some(first) = self.declared.first() else { return String::new() };
        format!(
            "fn unknown_zero() -> u32 {{ return min(arrayLength(&memory0_{}), 1u) ^ 1u; }}\n",
            first.pieces[0]
        )
    }

    fn write_accessor(&self, text: &mut String, a: &Accessor) {
        let d = &self.declared[a.declared];
        for wide in [false, true] {
            let (name, lane, s) = (&a.name, a.lane.name(wide), suffix(wide));
            if wide && d.width == 1 {
                write_by_one(text, a, &lane);
                continue;
            }
            let width = if wide { 4 } else { 1 };
            if a.reads {
                let _ = writeln!(text, "fn load{s}_{name}(i: u32) -> {lane} {{");
                self.each_piece(text, a.declared, width, |place| {
                    format!("return {};", d.stored.as_lane(a.lane, place, wide))
                });
                *text += "}\n";
            }
            // What is written in eights is in eights only: parts of words have neighbours.
            if a.writes && d.width < 8 {
                let _ = writeln!(text, "fn store{s}_{name}(i: u32, value: {lane}) {{");
                let value = d.stored.as_stored(a.lane, a.dtype, "value", wide);
                self.each_piece(text, a.declared, width, |place| format!("{place} = {value};"));
                *text += "}\n";
            }
        }
        if a.reads && d.width == 8 {
            let _ = writeln!(text, "fn load8_{}(i: u32) -> vec4<u32> {{", a.name);
            self.each_piece(text, a.declared, 8, |place| format!("return {place};"));
            *text += "}\n";
        }
        if a.writes && d.stored == StorageType::F16 {
            let (name, lane) = (&a.name, a.lane.name(true));
            let _ = writeln!(text, "fn store8_{name}(i: u32, low: {lane}, high: {lane}) {{");
            if d.width == 8 {
                let words =
                    |four| format!("words_of_halves({})", d.stored.as_stored(a.lane, a.dtype, four, true));
                let eight = format!("vec4<u32>({}, {})", words("low"), words("high"));
                self.each_piece(text, a.declared, 8, |place| format!("{place} = {eight};"));
            } else {
                let _ = writeln!(text, "    store4_{name}(i, low);\n    store4_{name}(i + 4u, high);");
            }
            *text += "}\n";
        }
    }

    /// Writes `statement` for the piece that holds the `width` elements from `i` on.
    fn each_piece(&self, text: &mut String, k: usize, width: u32, statement: impl Fn(&str) -> String) {
        let d = &self.declared[k];
        let elements = self.block / d.stored.size();
        let place = |piece: usize| {
            let start = piece * elements;
            let index = match piece {
                0 => "i".to_string(),
                // What is read in vain, in the place of padding, lies at 0.
                _ if d.pieces[0] == piece => format!("(max(i, {start}u) - {start}u)"),
                _ => format!("(i - {start}u)"),
            };
            let memory = format!("memory{k}_{piece}");
            match (d.width, width) {
                (8, 8) => format!("{memory}[{index} >> 3u]"),
                (8, 4) => format!("four_of_eight({memory}[{index} >> 3u], {index})"),
                (8, _) => format!("one_of_eight({memory}[{index} >> 3u], {index})"),
                (4, 4) => format!("{memory}[{index} >> 2u]"),
                (4, _) => format!("{memory}[{index} >> 2u][{index} & 3u]"),
                _ => format!("{memory}[{index}]"),
            }
        };
        for (n, &piece) in d.pieces.iter().enumerate() {
            let statement = statement(&place(piece));
            if n + 1 < d.pieces.len() {
                let end = (piece + 1) * elements;
                let exit = if statement.starts_with("return") { "" } else { " return;" };
                let _ = writeln!(text, "    if (i < {end}u) {{ {statement}{exit} }}");
            } else {
                let _ = writeln!(text, "    {statement}");
            }
        }
    }
}

/// Four neighbours, one after the other: of memory that others write one by one, which must not touch what is beside it.
fn write_by_one(text: &mut String, a: &Accessor, lane: &str) {
    let name = &a.name;
    let four = |one: &dyn Fn(usize) -> String, between: &str| [0, 1, 2, 3].map(one).join(between);
    if a.reads {
        let values = four(&|k| format!("load_{name}(i + {k}u)"), ", ");
        let _ = writeln!(text, "fn load4_{name}(i: u32) -> {lane} {{ return {lane}({values}); }}");
    }
    if a.writes {
        let stores = four(&|k| format!("store_{name}(i + {k}u, value[{k}]);"), " ");
        let _ = writeln!(text, "fn store4_{name}(i: u32, value: {lane}) {{ {stores} }}");
    }
}
