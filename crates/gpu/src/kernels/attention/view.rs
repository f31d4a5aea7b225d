//! Where the elements of operands and results stand, as WGSL computes it. Positions are sums modulo 2³², so
//! that a negative stride is a large number like any other.

use crate::dispatch::{Binding, ComputeType, Memory};
use volta_ir::dtype::DType;
use volta_ir::plan::kernel::Operand;

/// A number as a WGSL literal.
fn literal(x: isize) -> String {
    format!("{}u", x as u32)
}

/// A matrix for every (batch, head), read through strides.
#[derive(Clone)]
pub(crate) struct View {
    /// What its binding is called.
    pub name: &'static str,
    /// What this view of it is called.
    label: &'static str,
    operand: usize,
    pub dtype: DType,
    offset: isize,
    /// Of batch, head, row and column.
    strides: [isize; 4],
    pub rows: usize,
    pub cols: usize,
    /// Whether four neighbours of a row can be read at once.
    pub aligned: bool,
    /// Fours are f16 as they are in memory, on their way to where f16 is wanted.
    pub half: bool,
    /// And eight neighbours can be read at once, as four words.
    eights: bool,
}

impl View {
    /// The whole of a four-axis operand.
    pub fn of(name: &'static str, number: usize, operand: &Operand) -> View {
        let s = &operand.shape;
        let strides = std::array::from_fn(|k| operand.strides[k]);
        View::new(name, name, number, operand.dtype, operand.offset, strides, [s[0], s[1], s[2], s[3]])
    }

    /// `extents` elements of a flat operand, one behind the other from element `first` on.
    pub fn packed(
        (name, label): (&'static str, &'static str),
        number: usize,
        operand: &Operand,
        extents: [usize; 4],
        first: usize,
    ) -> View {
        let step = operand.strides[0];
        let [_, heads, rows, cols] = extents.map(|e| e as isize);
        let strides = [heads * rows * cols * step, rows * cols * step, cols * step, step];
        let offset = operand.offset + first as isize * step;
        View::new(name, label, number, operand.dtype, offset, strides, extents)
    }

    /// The rows of a packed result: those of all heads side by side.
    pub fn of_result(
        name: (&'static str, &'static str),
        number: usize,
        operand: &Operand,
        extents: [usize; 4],
    ) -> View {
        let step = operand.strides[0];
        let [_, heads, rows, cols] = extents.map(|e| e as isize);
        let strides = [rows * heads * cols * step, cols * step, heads * cols * step, step];
        View::new(name.0, name.1, number, operand.dtype, operand.offset, strides, extents)
    }

    fn new(
        name: &'static str,
        label: &'static str,
        operand: usize,
        dtype: DType,
        offset: isize,
        strides: [isize; 4],
        extents: [usize; 4],
    ) -> View {
        let fours = |x: isize| x % 4 == 0;
        let aligned = strides[3] == 1
            && fours(offset)
            && fours(extents[3] as isize)
            && (0..3).all(|k| extents[k] == 1 || fours(strides[k]));
        View {
            name,
            label,
            operand,
            dtype,
            offset,
            strides,
            rows: extents[2],
            cols: extents[3],
            aligned,
            half: false,
            eights: false,
        }
    }

    /// The same that reads fours as f16, or eights, if that is what they are. Nothing else may be read then.
    pub fn of_halves(&self) -> View {
        let half = self.aligned && self.dtype == DType::F16;
        let eights =
            self.strides[..3].iter().chain([&self.offset, &(self.cols as isize)]).all(|x| x % 8 == 0);
        View { half, eights: half && eights, ..self.clone() }
    }

    /// Fours that are read at once.
    pub fn fours(&self) -> usize {
        if self.eights { 2 } else { 1 }
    }

    /// The type of what is read at once.
    pub fn read_type(&self) -> &'static str {
        match (self.half, self.eights) {
            (false, _) => "vec4<f32>",
            (true, false) => "vec4<f16>",
            (true, true) => "vec4<u32>",
        }
    }

    /// What is read at once of a row that exists, from column 4 · `quad` on.
    pub fn read(&self, row: &str, quad: &str) -> String {
        if self.eights {
            return format!("load8_{}({})", self.name, self.at(row, &format!("({quad}) * 4u")));
        }
        self.quad(row, quad)
    }

    /// Four number `k` of what was read.
    pub fn four(&self, read: &str, k: usize) -> String {
        if self.eights { format!("halves_of_words({read}.{})", ["xy", "zw"][k]) } else { read.into() }
    }

    /// Declares the position of the matrix of `batch` and `head`.
    pub fn start(&self) -> String {
        let [b, h, ..] = self.strides.map(literal);
        format!("let {}_start = {} + batch * {b} + head * {h};\n", self.label, literal(self.offset))
    }

    /// The position of an element.
    pub fn at(&self, row: &str, col: &str) -> String {
        let [.., r, c] = self.strides.map(literal);
        format!("{}_start + ({row}) * {r} + ({col}) * {c}", self.label)
    }

    /// One element.
    pub fn element(&self, row: &str, col: &str) -> String {
        format!("load_{}({})", self.name, self.at(row, col))
    }

    /// Four neighbours of a row that exists, from column 4 · `quad` on; 0 where there is no column.
    pub fn quad(&self, row: &str, quad: &str) -> String {
        if self.aligned {
            return format!("load4_{}({})", self.name, self.at(row, &format!("({quad}) * 4u")));
        }
        let one = |c: usize| {
            let col = format!("({quad}) * 4u + {c}u");
            if self.cols.is_multiple_of(4) {
                return self.element(row, &col);
            }
            let last = format!("min({col}, {}u)", self.cols - 1);
            format!("select(0.0, {}, {col} < {}u)", self.element(row, &last), self.cols)
        };
        format!("vec4<f32>({}, {}, {}, {})", one(0), one(1), one(2), one(3))
    }

    pub fn binding(&self) -> Binding {
        Binding {
            name: self.name,
            memory: Memory::Operand(self.operand),
            dtype: self.dtype,
            lane: if self.half { ComputeType::F16 } else { ComputeType::F32 },
            width: match (self.aligned, self.eights) {
                (false, _) => 1,
                (true, false) => 4,
                (true, true) => 8,
            },
            reads: true,
            writes: false,
        }
    }
}

/// Several views of one operand need one binding, wide if any of them is.
pub(super) fn bindings<'a>(views: impl IntoIterator<Item = &'a View>) -> Vec<Binding> {
    let mut all: Vec<Binding> = Vec::new();
    for view in views {
        let binding = view.binding();
        match all.iter_mut().find(|b| b.name == binding.name) {
            Some(known) => known.width = known.width.max(binding.width),
            None => all.push(binding),
        }
    }
    all
}

/// A matrix for every (batch, head) in memory that is written: all one behind the other, or with the rows of all heads
/// side by side.
#[derive(Clone)]
pub(super) struct OperandTile {
    pub name: &'static str,
    first: usize,
    pub rows: usize,
    pub cols: usize,
    pub aligned: bool,
    /// How many heads are side by side, of this and of what it shares rows with.
    heads: Option<usize>,
}

impl OperandTile {
    pub fn new(name: &'static str, first: usize, rows: usize, cols: usize) -> OperandTile {
        let aligned = first.is_multiple_of(4) && cols.is_multiple_of(4);
        OperandTile { name, first, rows, cols, aligned, heads: None }
    }

    /// The same with the rows of `heads` heads side by side.
    pub fn side_by_side(self, heads: usize) -> OperandTile {
        OperandTile { heads: Some(heads), ..self }
    }

    /// The position of an element of the matrix of `item`.
    pub fn at(&self, row: &str, col: &str) -> String {
        let OperandTile { first, rows, cols, .. } = self;
        match self.heads {
            None => format!("{first}u + (item * {rows}u + {row}) * {cols}u + {col}"),
            Some(heads) => {
                format!("{first}u + ((batch * {rows}u + {row}) * {heads}u + head) * {cols}u + {col}")
            }
        }
    }

    /// Stores four neighbours of a row that exists; none where there is no column.
    pub fn store_quad(&self, row: &str, quad: &str, value: &str) -> String {
        let name = self.name;
        if self.aligned {
            let at = self.at(row, &format!("({quad}) * 4u"));
            return format!("if (({quad}) * 4u < {}u) {{ store4_{name}({at}, {value}); }}\n", self.cols);
        }
        (0..4)
            .map(|c| {
                let col = format!("({quad}) * 4u + {c}u");
                let at = self.at(row, &col);
                format!("if ({col} < {}u) {{ store_{name}({at}, ({value})[{c}]); }}\n", self.cols)
            })
            .collect()
    }
}

/// The binding of a kernel's result, wide if one of its pieces is.
pub(super) fn result(dtype: DType, pieces: &[&OperandTile]) -> Binding {
    Binding {
        name: "result",
        memory: Memory::Output,
        dtype,
        lane: ComputeType::F32,
        width: if pieces.iter().any(|p| p.aligned) { 4 } else { 1 },
        reads: false,
        writes: true,
    }
}
