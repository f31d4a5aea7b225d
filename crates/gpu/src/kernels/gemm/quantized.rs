//! Products with quantised matrices: those of any product, whose second operand is decoded where it is read. The functions that
//! would read it from memory take its words and scales apart instead.

use super::wgsl::{main, unsigned};
use super::{Variant, matmul, naive};
use crate::caps::Caps;
use crate::dispatch::{Binding, ComputeType, Dispatch, Lowered, Memory};
use volta_ir::dtype::DType;
use volta_ir::op::NativeOp;
use volta_ir::op::quantized::{BLOCK, BlockFormat};
use volta_ir::plan::kernel::{NativeKernel, Operand};
use volta_ir::shape::Shape;

const THREADS: usize = 256;

/// A quantised matrix among a kernel's operands: words, and scales behind them.
struct Matrix<'a> {
    format: BlockFormat,
    columns: usize,
    /// The number of the operand of words.
    number: usize,
    words: &'a Operand,
    scales: &'a Operand,
}

/// The dispatches of a product with a quantised matrix.
pub(super) fn lower(
    kernel: &NativeKernel,
    format: BlockFormat,
    by_rows: bool,
    caps: &Caps,
    wanted: Option<Variant>,
) -> Lowered {
    let (x, words) = (&kernel.operands[0], &kernel.operands[1]);
    let rows = words.shape[0];
    let columns = if by_rows { kernel.output.shape[1] } else { x.shape[1] };
    if rows == 0 || columns == 0 {
        let count = kernel.output.shape.numel();
        return Lowered { dispatches: vec![naive::zeros(count, kernel.output.dtype)], scratch: vec![] };
    }
    // What stands for the matrix, as (k, n).
    let (shape, strides) = if by_rows {
        ([rows, columns], vec![columns as isize, 1])
    } else {
        ([columns, rows], vec![1, columns as isize])
    };
    let decoded =
        Operand { slot: words.slot, dtype: DType::F32, shape: Shape::of(&shape), strides, offset: 0 };
    let operands = vec![x.clone(), decoded];
    let dense = NativeKernel { op: NativeOp::Matmul, operands, ..kernel.clone() };
    let mut lowered = matmul::lower(&dense, caps, wanted, [None; 2]);
    let matrix = Matrix { format, columns, number: 1, words, scales: &kernel.operands[2] };
    lowered.dispatches.iter_mut().for_each(|dispatch| matrix.decode_in(dispatch));
    lowered
}

/// The dispatch that writes a matrix's numbers.
pub(super) fn dequantize(kernel: &NativeKernel, format: BlockFormat) -> Lowered {
    let (words, scales) = (&kernel.operands[0], &kernel.operands[1]);
    let matrix = Matrix { format, columns: kernel.output.shape[1], number: 0, words, scales };
    let count = kernel.output.shape.numel();
    let groups = (count / 4).div_ceil(THREADS) as u64;
    // A row is whole blocks, so there are whole fours.
    let text = format!(
        "let place = 4u * (group * {THREADS}u + tid);
if (place >= {count}u) {{ return; }}
let x = load4_b(place);
finish(place, x.x);
finish(place + 1u, x.y);
finish(place + 2u, x.z);
finish(place + 3u, x.w);
"
    );
    let b = Binding {
        name: "b",
        memory: Memory::Operand(0),
        dtype: DType::F32,
        lane: ComputeType::F32,
        width: 4,
        reads: true,
        writes: false,
    };
    let output = super::product::output(kernel.output.dtype, ComputeType::F32, 1);
    let mut dispatch = Dispatch { body: main(THREADS, groups, &text), bindings: vec![b, output], groups };
    matrix.decode_in(&mut dispatch);
    Lowered { dispatches: vec![dispatch], scratch: vec![] }
}

impl Matrix<'_> {
    /// Lets a dispatch that would read the matrix as f32 read words and scales.
    fn decode_in(&self, dispatch: &mut Dispatch) {
        let is_it = |b: &Binding| b.memory == Memory::Operand(self.number);
        let asked: Vec<Binding> = dispatch.bindings.iter().filter(|b| is_it(b)).cloned().collect();
        if asked.is_empty() {
            return;
        }
        dispatch.bindings.retain(|b| !is_it(b));
        let words = |name, number| Binding {
            name,
            memory: Memory::Operand(number),
            dtype: DType::U32,
            lane: ComputeType::U32,
            width: 1,
            reads: true,
            writes: false,
        };
        dispatch.bindings.push(words("packed", self.number));
        dispatch.bindings.push(words("block_scales", self.number + 1));
        let functions: String = asked.iter().map(|b| self.functions(b)).collect();
        dispatch.body = functions + &dispatch.body;
    }

    /// `load_NAME`, and what a binding's width asks for besides.
    fn functions(&self, binding: &Binding) -> String {
        let (name, lane) = (binding.name, binding.lane);
        let mut text = self.load(name, lane, false);
        if binding.width > 1 {
            text += &self.load(name, lane, true);
        }
        if binding.width == 8 {
            text += &format!(
                "fn load8_{name}(i: u32) -> vec4<u32> {{
return vec4<u32>(words_of_halves(load4_{name}(i)), words_of_halves(load4_{name}(i + 4u)));
}}
"
            );
        }
        text
    }

    /// An element, or four neighbours.
    fn load(&self, name: &str, lane: ComputeType, wide: bool) -> String {
        let (words, scales) = (self.format.block_words(), self.format.blocks_per_scale_word());
        let dense = |o: &Operand| o.shape[0] == 1 || o.strides[0] == o.shape[1] as isize;
        // Blocks of all rows can be counted where rows follow each other, and each begins with a word of scales.
        let whole_rows = self.scales.shape[1] * scales * BLOCK == self.columns;
        let (block, row_words, row_scales) = if dense(self.words) && dense(self.scales) && whole_rows {
            (format!("let block = i / {BLOCK}u;\n"), String::new(), String::new())
        } else {
            let split = format!("let row = i / {0}u;\nlet block = i % {0}u / {BLOCK}u;\n", self.columns);
            let of = |o: &Operand| format!(" + row * {}", unsigned(o.strides[0] as i64));
            (split, of(self.words), of(self.scales))
        };
        let (first_word, first_scale) = (self.words.offset, self.scales.offset);
        let (quad, number) = match self.format {
            BlockFormat::Int8 => ("k / 4u", BYTE[usize::from(wide)]),
            BlockFormat::Int4 | BlockFormat::Int4Min => ("k % 16u / 4u", NIBBLE[usize::from(wide)]),
        };
        let value = match self.format {
            BlockFormat::Int8 => "q * pair[block & 1u]",
            BlockFormat::Int4 => "(q - 8.0) * pair[block & 1u]",
            BlockFormat::Int4Min => "q * pair.x + pair.y",
        };
        let (s, ty) = (if wide { "4" } else { "" }, lane.name(wide));
        format!(
            "fn load{s}_{name}(i: u32) -> {ty} {{
{block}let k = i % {BLOCK}u;
let word = load_packed({first_word}u + block * {words}u + {quad}{row_words});
var pair = unpack2x16float(load_block_scales({first_scale}u + block / {scales}u{row_scales}));
{number}
return {ty}({value});
}}
"
        )
    }
}

/// The number of a signed byte of a word, or those of all four.
const BYTE: [&str; 2] = [
    "let q = f32(bitcast<i32>(word << (24u - k % 4u * 8u)) >> 24u);",
    "let q = vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word << 24u, word << 16u, word << 8u, word)) >> vec4<u32>(24u));",
];

/// The number of a nibble of a word, or those of four in a row.
const NIBBLE: [&str; 2] = [
    "let q = f32((word >> (k / 16u * 4u + k % 4u * 8u)) & 15u);",
    "let nibbles = word >> (k / 16u * 4u);
let q = vec4<f32>(vec4<u32>(nibbles, nibbles >> 8u, nibbles >> 16u, nibbles >> 24u) & vec4<u32>(15u));",
];
