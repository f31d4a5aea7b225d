//! Convolutions as matrix products whose operands are windows of images.

use super::im2col::{Role, Taps, Window};
use super::output_view::{Columns, OutputView};
use super::product::{GemmOperand, OperandLayout, Phase, Product, Steps, Strided};
use super::variant::{self, Variant};
use super::wgsl::Digits;
use super::{coop, direct_conv, naive, pack, tile, tiled};
use crate::caps::Caps;
use crate::dispatch::{Lowered, Memory};
use volta_ir::op::{ConvAttrs, ConvKind};
use volta_ir::plan::kernel::NativeKernel;

/// The sizes of a convolution; channels are those of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub batch: usize,
    pub groups: usize,
    pub inputs: usize,
    pub outputs: usize,
    pub input: [usize; 2],
    pub kernel: [usize; 2],
    pub output: [usize; 2],
    pub stride: [usize; 2],
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
}

impl Geometry {
    pub fn new(kernel: &NativeKernel, kind: ConvKind, attrs: &ConvAttrs) -> Geometry {
        let (first, second) = (&kernel.operands[0].shape, &kernel.operands[1].shape);
        let result = &kernel.output.shape;
        let (input, weight, output) = kind.roles(first, second, result);
        Geometry {
            batch: input[0],
            groups: attrs.groups,
            inputs: input[1] / attrs.groups,
            outputs: weight[0] / attrs.groups,
            input: [input[2], input[3]],
            kernel: [weight[2], weight[3]],
            output: [output[2], output[3]],
            stride: attrs.stride,
            padding: attrs.padding,
            dilation: attrs.dilation,
        }
    }

    pub fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    pub fn in_pixels(&self) -> usize {
        self.input[0] * self.input[1]
    }

    pub fn out_pixels(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// From one image of the input, and of the output, to the next.
    pub fn in_image(&self) -> usize {
        self.groups * self.inputs * self.in_pixels()
    }

    pub fn out_image(&self) -> usize {
        self.groups * self.outputs * self.out_pixels()
    }

    fn window_taps(&self) -> Taps {
        Taps {
            kernel: self.kernel,
            first: self.padding.map(|p| -(p as i64)),
            advance: self.dilation.map(|d| d as i64),
        }
    }

    /// The windows of the input.
    fn input_window(&self, offset: i64, items: Digits, role: Role) -> Window {
        Window {
            offset,
            items,
            image: self.in_image() as i64,
            plane: self.in_pixels() as i64,
            extent: self.input,
            grid: self.output,
            step: self.stride,
            role,
        }
    }
}

/// Channels under which a tap of its own for each step would leave most of the step empty.
const MIN_CHANNELS_PER_TAP: usize = 8;

pub(super) fn lower(
    kernel: &NativeKernel,
    kind: ConvKind,
    attrs: &ConvAttrs,
    caps: &Caps,
    wanted: Option<Variant>,
) -> Lowered {
    let g = Geometry::new(kernel, kind, attrs);
    let dtype = kernel.output.dtype;
    if kernel.operands.iter().any(|o| o.shape.numel() == 0) {
        let zeros = naive::zeros(kernel.output.shape.numel(), dtype);
        return Lowered { dispatches: vec![zeros], scratch: vec![] };
    }
    if wanted.is_none() && direct_conv::suits(kind, &g) {
        return direct_conv::lower(kernel, kind, &g);
    }
    let mut before = Lowered::default();
    let product = product(kernel, kind, &g, caps, &mut before);
    if let Some(variant) = wanted {
        return variant.lower(&product, dtype, caps, before);
    }
    if let Some((tile, parts)) = coop::choose(&product, caps, kernel.epilogue.as_ref()) {
        return coop::lower(&product, tile, parts, dtype, caps, before, &coop::OperandType::Halves);
    }
    let (tile, parts) = tile::choose(&[&product], caps);
    tiled::lower(&product, tile, parts, dtype, before)
}

/// The product that a convolution is, after what is done `before` it.
fn product(
    kernel: &NativeKernel,
    kind: ConvKind,
    g: &Geometry,
    caps: &Caps,
    before: &mut Lowered,
) -> Product {
    match kind {
        ConvKind::Forward => forward(kernel, g, caps, before),
        ConvKind::InputGrad => input_grad(kernel, g, caps, before),
        ConvKind::WeightGrad => weight_grad(kernel, g),
    }
}

/// The variants of a convolution as a product.
pub(super) fn variants(
    kernel: &NativeKernel,
    kind: ConvKind,
    attrs: &ConvAttrs,
    caps: &Caps,
) -> Vec<Variant> {
    let g = Geometry::new(kernel, kind, attrs);
    let product = product(kernel, kind, &g, caps, &mut Lowered::default());
    variant::all(&product, kernel.output.dtype, caps)
}

fn source(kernel: &NativeKernel, number: usize, layout: OperandLayout) -> GemmOperand {
    GemmOperand {
        memory: Memory::Operand(number),
        dtype: kernel.operands[number].dtype,
        layout,
        largest: None,
    }
}

/// Rows are output channels, columns the pixels of all images.
fn forward(kernel: &NativeKernel, g: &Geometry, caps: &Caps, before: &mut Lowered) -> Product {
    let offset = |k: usize| kernel.operands[k].offset as i64;
    let (m, taps, pixels) = (g.outputs, g.taps(), g.out_pixels());
    let depth = g.inputs * taps;
    let by_tap = taps == 1 || g.inputs >= MIN_CHANNELS_PER_TAP;
    let items = Digits::line(g.groups, (g.inputs * g.in_pixels()) as i64);
    let a = if by_tap && taps > 1 {
        pack::weights(kernel, ConvKind::Forward, g, caps, before)
    } else {
        source(
            kernel,
            1,
            OperandLayout::Strided(Strided {
                offset: offset(1),
                items: Digits::line(g.groups, (m * depth) as i64),
                lane: depth as i64,
                k: Digits::line(depth, 1),
            }),
        )
    };
    let (steps, role) = if by_tap {
        let Taps { kernel: taps, first, advance } = g.window_taps();
        let phase = Phase { taps, tap_first: [0; 2], tap_step: [1; 2], first, advance, start: [0; 2] };
        let steps = Steps::Taps { channels: g.inputs, kernel_width: g.kernel[1], phases: vec![phase] };
        (steps, Role::PixelsByTap)
    } else {
        (Steps::Flat(depth), Role::Pixels(g.window_taps()))
    };
    Product {
        items: g.groups,
        m,
        n: g.batch * pixels,
        steps,
        a,
        b: source(kernel, 0, OperandLayout::Window(g.input_window(offset(0), items, role))),
        target: OutputView {
            items: Digits::line(g.groups, (m * pixels) as i64),
            row: pixels as i64,
            columns: Columns::Strided(Digits::new([(g.batch, g.out_image() as i64), (pixels, 1)])),
        },
    }
}

/// Rows are input channels, columns the pixels of the input: each sums the outputs that read it. With a
/// stride, pixels of equal remainder meet the same taps; they make a phase.
fn input_grad(kernel: &NativeKernel, g: &Geometry, caps: &Caps, before: &mut Lowered) -> Product {
    let offset = |k: usize| kernel.operands[k].offset as i64;
    let (m, taps, pixels) = (g.inputs, g.taps(), g.in_pixels());
    let phases = phases(g);
    let per_group = |stride: usize| Digits::new([(phases.len(), 0), (g.groups, stride as i64)]);
    let a = if taps > 1 {
        let mut packed = pack::weights(kernel, ConvKind::InputGrad, g, caps, before);
        if let OperandLayout::Strided(strided) = &mut packed.layout {
            strided.items = per_group(taps * g.outputs * pack::row(m));
        }
        packed
    } else {
        let strided = Strided {
            offset: offset(1),
            items: per_group(g.outputs * m),
            lane: 1,
            k: Digits::line(g.outputs, m as i64),
        };
        source(kernel, 1, OperandLayout::Strided(strided))
    };
    let grid = [0, 1].map(|axis| g.input[axis].div_ceil(g.stride[axis]));
    let window = Window {
        offset: offset(0),
        items: per_group(g.outputs * g.out_pixels()),
        image: g.out_image() as i64,
        plane: g.out_pixels() as i64,
        extent: g.output,
        grid,
        step: [1; 2],
        role: Role::PixelsByTap,
    };
    let image = g.in_image() as i64;
    let columns = if g.stride == [1; 2] {
        Columns::Strided(Digits::new([(g.batch, image), (pixels, 1)]))
    } else {
        Columns::Phased { grid, image, stride: g.stride, extent: g.input }
    };
    Product {
        items: phases.len() * g.groups,
        m,
        n: g.batch * grid[0] * grid[1],
        target: OutputView { items: per_group(m * pixels), row: pixels as i64, columns },
        steps: Steps::Taps { channels: g.outputs, kernel_width: g.kernel[1], phases },
        a,
        b: source(kernel, 0, OperandLayout::Window(window)),
    }
}

/// The phases of an input gradient, those with the most taps first.
pub(super) fn phases(g: &Geometry) -> Vec<Phase> {
    // For one axis: taps, first tap, tap step, first pixel of the output met, advance, start.
    let axis = |axis: usize| -> Vec<(usize, usize, usize, i64, i64, usize)> {
        let (stride, padding, dilation) = (g.stride[axis], g.padding[axis], g.dilation[axis]);
        let one = |rest: usize| {
            let start = (rest as i64 - padding as i64).rem_euclid(stride as i64) as usize;
            let taps: Vec<usize> = (0..g.kernel[axis]).filter(|t| t * dilation % stride == rest).collect();
            let first = taps.first().copied().unwrap_or(0);
            let step = if taps.len() > 1 { taps[1] - taps[0] } else { 1 };
            let met = (start + padding) as i64 - (first * dilation) as i64;
            (taps.len(), first, step, met / stride as i64, -((step * dilation / stride) as i64), start)
        };
        (0..stride).map(one).filter(|phase| phase.5 < g.input[axis]).collect()
    };
    let columns = axis(1);
    let mut phases: Vec<Phase> = axis(0)
        .into_iter()
        .flat_map(|y| columns.iter().map(move |&x| (y, x)))
        .map(|(y, x)| Phase {
            taps: [y.0, x.0],
            tap_first: [y.1, x.1],
            tap_step: [y.2, x.2],
            first: [y.3, x.3],
            advance: [y.4, x.4],
            start: [y.5, x.5],
        })
        .collect();
    phases.sort_by_key(|phase| std::cmp::Reverse(phase.taps[0] * phase.taps[1]));
    phases
}

/// Rows are output channels, columns input channels, sums run over the pixels of all images; a product for
/// every tap, or with few channels one for all taps.
fn weight_grad(kernel: &NativeKernel, g: &Geometry) -> Product {
    let offset = |k: usize| kernel.operands[k].offset as i64;
    let (m, taps, pixels) = (g.outputs, g.taps(), g.out_pixels());
    let by_tap = g.inputs.is_multiple_of(64) || g.inputs >= 256;
    let copies = if by_tap { taps } else { 1 };
    let per_group = |stride: usize| Digits::new([(g.groups, stride as i64), (copies, 0)]);
    let a = Strided {
        offset: offset(1),
        items: per_group(m * pixels),
        lane: pixels as i64,
        k: Digits::new([(g.batch, g.out_image() as i64), (pixels, 1)]),
    };
    let role = if by_tap { Role::ChannelsByTap(g.window_taps()) } else { Role::Channels(g.window_taps()) };
    let window = g.input_window(offset(0), per_group(g.inputs * g.in_pixels()), role);
    let weights = (g.inputs * taps) as i64;
    let (items, n, column) = if by_tap {
        (Digits::new([(g.groups, m as i64 * weights), (taps, 1)]), g.inputs, taps as i64)
    } else {
        (Digits::line(g.groups, m as i64 * weights), g.inputs * taps, 1)
    };
    Product {
        items: g.groups * copies,
        m,
        n,
        steps: Steps::Flat(g.batch * pixels),
        a: source(kernel, 1, OperandLayout::Strided(a)),
        b: source(kernel, 0, OperandLayout::Window(window)),
        target: OutputView { items, row: weights, columns: Columns::Strided(Digits::line(n, column)) },
    }
}
