//! Kernels that are not interpreted: products, convolutions, attention, indexing. Finds the operands' memory and
//! lets the epilogue run on what is finished.

use super::attention::{self, AttentionShape, Rows};
use super::buffer_pool::{HostBuffer, SIZE_CLASSES};
use super::conv::{self, ConvShape};
use super::gemm::{self, Mat, Product};
use super::index;
use super::interpreter::{Bindings, Map};
use super::quantized;
use half::{bf16, f16};
use std::ops::Range;
use volta_ir::dtype::DType;
use volta_ir::error::Result;
use volta_ir::op::attention::PackedGradient;
use volta_ir::op::quantized::BlockFormat;
use volta_ir::op::{ConvAttrs, ConvKind, NativeOp};
use volta_ir::plan::kernel::{NativeKernel, Operand};

/// Runs `$body` with `$t` as the operand's element type, for the listed types.
macro_rules! by_type {
    ($dtype:expr, $t:ident => $body:expr, [$($variant:ident: $ty:ty),*]) => {
        match $dtype {
            $(DType::$variant => {
                type $t = $ty;
                $body
            })*
            #[allow(unreachable_patterns, reason = "some lists name every type")]
            other => unreachable!("no kernel for {other}"),
        }
    };
}

/// The bytes that a kernel takes from the pool while it runs: for results and operands of 16-bit floats in f32.
pub(super) fn scratch_bytes(kernel: &NativeKernel) -> usize {
    let is_conv = matches!(kernel.op, NativeOp::Conv(..));
    let widened = kernel.operands.iter().filter(|_| is_conv).chain([&kernel.output]);
    let halves = widened.filter(|operand| operand.dtype.is_half());
    halves.map(|operand| SIZE_CLASSES.round(operand.shape.numel() * 4)).sum()
}

pub(super) fn run(kernel: &NativeKernel, epilogue: Option<&Map>, bind: Bindings) -> Result<()> {
    let output = &kernel.output;
    let count = output.shape.numel();
    if count == 0 {
        return Ok(());
    }
    // 16-bit floats are computed in f32 and rounded once.
    let halves = output.dtype.is_half();
    let wide = if halves { Some(HostBuffer::new(count * 4)?) } else { None };
    let target = wide.as_ref().map_or(bind.slots[output.slot].0, |w| w.as_ptr());
    let fused = if halves { None } else { epilogue };
    match kernel.op {
        NativeOp::Matmul => matmul(kernel, target, fused, bind),
        NativeOp::QuantizedMatmul { format, by_rows } => {
            quantized_matmul(kernel, format, by_rows, fused, bind);
        }
        NativeOp::Dequantize(format) => {
            let matrix = quantized_matrix(&kernel.operands, format, output.shape[1], bind);
            // SAFETY: the operands are a matrix of the output's shape, which is the kernel's own.
            unsafe { quantized::dequantize(&matrix, target.cast()) };
        }
        NativeOp::Conv(kind, ref attrs) => convolve(kernel, kind, **attrs, target, fused, bind)?,
        NativeOp::Attention { causal, scale } => attend(kernel, causal, scale, bind),
        NativeOp::AttentionGrad { causal, scale } => attend_back(kernel, causal, scale, bind),
        NativeOp::ScatterAdd { axis } => index::scatter_add(kernel, axis, target, bind),
        NativeOp::ArgSort { axis, descending, .. } => index::argsort(kernel, axis, descending, bind),
        NativeOp::Cumsum { axis } => index::cumsum(kernel, axis, target, bind),
        NativeOp::FirstPosition => index::first_position(kernel, bind),
        NativeOp::MaxPoolIndex(ref attrs) => index::max_pool_index(kernel, attrs, bind),
    }
    if let Some(wide) = &wide {
        narrow(wide.as_ptr().cast(), output, bind);
        if let Some(map) = epilogue {
            map.run(bind);
        }
    }
    Ok(())
}

fn narrow(wide: *const f32, output: &Operand, bind: Bindings) {
    let n = output.shape.numel();
    // SAFETY: `wide` holds the results, the slot as many 16-bit floats.
    let wide = unsafe { std::slice::from_raw_parts(wide, n) };
    let slot = bind.slots[output.slot].0;
    if output.dtype == DType::F16 {
        // SAFETY: as above.
        super::vector::store_f16(wide, unsafe { std::slice::from_raw_parts_mut(slot.cast(), n) });
    } else {
        // SAFETY: as above.
        super::vector::store_bf16(wide, unsafe { std::slice::from_raw_parts_mut(slot.cast(), n) });
    }
}

/// The position of item `item` of the leading axes of a view, in elements from its start.
fn item_offset(operand: &Operand, axes: usize, mut item: usize) -> isize {
    let mut offset = 0;
    for k in (0..axes).rev() {
        offset += (item % operand.shape[k]) as isize * operand.strides[k];
        item /= operand.shape[k];
    }
    offset
}

fn matmul(kernel: &NativeKernel, target: *mut u8, epilogue: Option<&Map>, bind: Bindings) {
    let (a, b) = (&kernel.operands[0], &kernel.operands[1]);
    let rank = a.shape.rank();
    let (m, k, n) = (a.shape[rank - 2], a.shape[rank - 1], b.shape[rank - 1]);
    let items: usize = a.shape[..rank - 2].iter().product();
    let done = |item: usize, rows: Range<usize>, cols: Range<usize>| {
        if let Some(map) = epilogue {
            map.run_region(bind, item * m * n, rows, cols, n);
        }
    };
    macro_rules! floats {
        ($t:ty, $acc:ty) => {{
            let target = super::interpreter::SlotPointer(target);
            let (first_a, first_b) = (
                super::interpreter::SlotPointer(bind.start::<$t>(a) as *mut u8),
                super::interpreter::SlotPointer(bind.start::<$t>(b) as *mut u8),
            );
            let product = move |item: usize| -> Product<$t> {
                // SAFETY: items of a view stay inside its slot; C has items · m · n elements.
                unsafe {
                    Product {
                        m,
                        n,
                        k,
                        a: Mat {
                            data: first_a.get().cast_const().cast::<$t>().offset(item_offset(
                                a,
                                rank - 2,
                                item,
                            )),
                            row_stride: a.strides[rank - 2],
                            col_stride: a.strides[rank - 1],
                        },
                        b: Mat {
                            data: first_b.get().cast_const().cast::<$t>().offset(item_offset(
                                b,
                                rank - 2,
                                item,
                            )),
                            row_stride: b.strides[rank - 2],
                            col_stride: b.strides[rank - 1],
                        },
                        c: target.get().cast::<$acc>().add(item * m * n),
                        ldc: n,
                        accumulate: false,
                    }
                }
            };
            // SAFETY: operands are readable, C is the kernel's own.
            unsafe {
                if items == 1 {
                    gemm::gemm(&product(0), &|rows, cols| done(0, rows, cols));
                } else {
                    gemm::gemm_batched(items, &product, &done);
                }
            }
        }};
    }
    match a.dtype {
        DType::F32 => floats!(f32, f32),
        DType::F64 => floats!(f64, f64),
        DType::F16 => floats!(f16, f32),
        DType::BF16 => floats!(bf16, f32),
        dtype => {
            by_type!(dtype, T => int_matmul::<T>(a, b, (items, m, n, k), target, bind), [I32: i32, I64: i64, U32: u32, U8: u8]);
            if let Some(map) = epilogue {
                map.run(bind);
            }
        }
    }
}

/// The matrix of words and scales.
fn quantized_matrix(
    parts: &[Operand],
    format: BlockFormat,
    columns: usize,
    bind: Bindings,
) -> quantized::Matrix {
    let [words, scales] = parts else { unreachable!("words and scales") };
    quantized::Matrix {
        format,
        rows: words.shape[0],
        columns,
        words: bind.start(words),
        scales: bind.start(scales),
        word_stride: words.strides[0],
        scale_stride: scales.strides[0],
    }
}

fn quantized_matmul(
    kernel: &NativeKernel,
    format: BlockFormat,
    by_rows: bool,
    epilogue: Option<&Map>,
    bind: Bindings,
) {
    let (x, output) = (&kernel.operands[0], &kernel.output);
    let n = output.shape[1];
    let columns = if by_rows { n } else { x.shape[1] };
    let matrix = quantized_matrix(&kernel.operands[1..], format, columns, bind);
    let (row_stride, col_stride) = (x.strides[0], x.strides[1]);
    if x.dtype == DType::F64 {
        let rows = Mat { data: bind.start::<f64>(x), row_stride, col_stride };
        let target = bind.slots[output.slot].0.cast::<f64>();
        // SAFETY: as below.
        unsafe { quantized::multiply_f64(&matrix, by_rows, x.shape[0], rows, target) };
        if let Some(map) = epilogue {
            map.run(bind);
        }
        return;
    }
    let rows = Mat { data: bind.start::<f32>(x), row_stride, col_stride };
    let target = bind.slots[output.slot].0.cast::<f32>();
    let done = |rows: Range<usize>, cols: Range<usize>| {
        if let Some(map) = epilogue {
            map.run_region(bind, 0, rows, cols, n);
        }
    };
    // SAFETY: operands are readable and of these shapes, the output is the kernel's own.
    unsafe { quantized::multiply(&matrix, by_rows, x.shape[0], rows, target, &done) };
}

trait Int: Copy {
    fn mul_add(self, a: Self, b: Self) -> Self;
    const ZERO: Self;
}
macro_rules! ints {
    ($($t:ty),*) => {$(
        impl Int for $t {
            fn mul_add(self, a: Self, b: Self) -> Self {
                self.wrapping_add(a.wrapping_mul(b))
            }
            const ZERO: Self = 0;
        }
    )*};
}
ints!(i32, i64, u32, u8);

/// Integers are multiplied plainly: exact, and rare.
fn int_matmul<T: Int>(
    a: &Operand,
    b: &Operand,
    (items, m, n, k): (usize, usize, usize, usize),
    target: *mut u8,
    bind: Bindings,
) {
    let rank = a.shape.rank();
    for item in 0..items {
        for i in 0..m {
            for j in 0..n {
                let mut sum = T::ZERO;
                for l in 0..k {
                    let at = item_offset(a, rank - 2, item)
                        + i as isize * a.strides[rank - 2]
                        + l as isize * a.strides[rank - 1];
                    let bt = item_offset(b, rank - 2, item)
                        + l as isize * b.strides[rank - 2]
                        + j as isize * b.strides[rank - 1];
                    // SAFETY: coordinates inside the views.
                    sum = unsafe {
                        sum.mul_add(*bind.start::<T>(a).offset(at), *bind.start::<T>(b).offset(bt))
                    };
                }
                // SAFETY: C has items · m · n elements.
                unsafe { *target.cast::<T>().add((item * m + i) * n + j) = sum };
            }
        }
    }
}

fn convolve(
    kernel: &NativeKernel,
    kind: ConvKind,
    attrs: ConvAttrs,
    target: *mut u8,
    epilogue: Option<&Map>,
    bind: Bindings,
) -> Result<()> {
    let (first, second, out) = (kernel.operands[0].shape, kernel.operands[1].shape, kernel.output.shape);
    let (input, weight, output) = kind.roles(first, second, out);
    let shape = ConvShape {
        batch: input[0],
        groups: attrs.groups,
        in_channels: input[1],
        out_channels: weight[0],
        input: [input[2], input[3]],
        kernel: [weight[2], weight[3]],
        output: [output[2], output[3]],
        stride: attrs.stride,
        padding: attrs.padding,
        dilation: attrs.dilation,
    };
    let widened: Vec<Option<HostBuffer>> =
        kernel.operands.iter().map(|o| widen(o, bind)).collect::<Result<_>>()?;
    let pointer = |k: usize| {
        widened[k].as_ref().map_or(bind.slots[kernel.operands[k].slot].0, |w| w.as_ptr()).cast_const()
    };
    let offset = |k: usize| if widened[k].is_some() { 0 } else { kernel.operands[k].offset };
    let dtype = if kernel.output.dtype.is_half() { DType::F32 } else { kernel.output.dtype };
    let done = |range: Range<usize>| {
        if let Some(map) = epilogue {
            map.run_lanes(bind, range);
        }
    };
    by_type!(dtype, T => {
        // SAFETY: operands are contiguous and of the shapes given, the output is the kernel's own.
        unsafe {
            let (a, b) = (pointer(0).cast::<T>().offset(offset(0)), pointer(1).cast::<T>().offset(offset(1)));
            let c = target.cast::<T>();
            match kind {
                ConvKind::Forward => conv::forward(&shape, a, b, c, &done),
                ConvKind::InputGrad => conv::input_grad(&shape, a, b, c),
                ConvKind::WeightGrad => conv::weight_grad(&shape, a, b, c),
            }
        }
    }, [F32: f32, F64: f64]);
    if kind != ConvKind::Forward
        && let Some(map) = epilogue
    {
        map.run(bind);
    }
    Ok(())
}

/// A contiguous operand of 16-bit floats as f32.
fn widen(operand: &Operand, bind: Bindings) -> Result<Option<HostBuffer>> {
    if !operand.dtype.is_half() {
        return Ok(None);
    }
    let n = operand.shape.numel();
    let wide = HostBuffer::new(n * 4)?;
    // SAFETY: the buffer is new and large enough; the operand is contiguous.
    unsafe {
        let out = std::slice::from_raw_parts_mut(wide.as_ptr().cast::<f32>(), n);
        match operand.dtype {
            DType::F16 => super::vector::load_f16(std::slice::from_raw_parts(bind.start(operand), n), out),
            _ => super::vector::load_bf16(std::slice::from_raw_parts(bind.start(operand), n), out),
        }
    }
    Ok(Some(wide))
}

fn attention_shape(kernel: &NativeKernel, causal: bool, scale: f64) -> AttentionShape {
    let (q, k, v) = (kernel.operands[0].shape, kernel.operands[1].shape, kernel.operands[2].shape);
    AttentionShape {
        batch: q[0],
        heads: q[1],
        queries: q[2],
        keys: k[2],
        width: q[3],
        value_width: v[3],
        scale,
        causal,
    }
}

fn rows<T>(operand: &Operand, bind: Bindings) -> Rows<T> {
    let s = &operand.strides;
    Rows { data: bind.start(operand), batch: s[0], head: s[1], row: s[2], col: s[3] }
}

fn attend(kernel: &NativeKernel, causal: bool, scale: f64, bind: Bindings) {
    let shape = attention_shape(kernel, causal, scale);
    let o = &kernel.operands;
    by_type!(kernel.output.dtype, T => {
        let out = bind.slots[kernel.output.slot].0.cast::<T>();
        let count = shape.batch * shape.heads * shape.queries * shape.value_width;
        // SAFETY: the output holds the result and, behind it, what is kept of each query.
        unsafe {
            attention::forward::<T>(&shape, rows(&o[0], bind), rows(&o[1], bind), rows(&o[2], bind),
                o.get(3).map(|m| rows(m, bind)), result_rows(out, &shape), out.add(count));
        }
    }, [F32: f32, F64: f64]);
}

/// The rows of a packed result: those of all heads side by side.
fn result_rows<T>(data: *const T, s: &AttentionShape) -> Rows<T> {
    let head = s.value_width as isize;
    let row = head * s.heads as isize;
    Rows { data, batch: row * s.queries as isize, head, row, col: 1 }
}

/// The rows of a gradient: those of all heads side by side, of all that share them.
fn gradient_rows<T>(data: *const T, place: &PackedGradient) -> Rows<T> {
    let head = place.width as isize;
    let row = head * place.across() as isize;
    Rows { data, batch: row * place.rows as isize, head, row, col: 1 }
}

fn attend_back(kernel: &NativeKernel, causal: bool, scale: f64, bind: Bindings) {
    let s = attention_shape(kernel, causal, scale);
    let o = &kernel.operands;
    let count = s.batch * s.heads * s.queries * s.value_width;
    let places = PackedGradient::of([0, 1, 2].map(|k| o[k].shape));
    let mask = places[2].end();
    by_type!(kernel.output.dtype, T => {
        let out = bind.slots[kernel.output.slot].0.cast::<T>();
        let forward = bind.start::<T>(&o[3]);
        // SAFETY: the packed result lies flat, as the op lays it out.
        unsafe {
            let [dq, dk, dv] = places.map(|place| gradient_rows(out.add(place.first()), &place));
            let dmask = (mask < kernel.output.shape.numel()).then(|| out.add(mask));
            attention::backward::<T>(&s, rows(&o[0], bind), rows(&o[1], bind), rows(&o[2], bind),
                o.get(5).map(|m| rows(m, bind)), result_rows(forward, &s), forward.add(count),
                rows(&o[4], bind), None, dq, dk, dv, dmask);
        }
    }, [F32: f32, F64: f64]);
}
