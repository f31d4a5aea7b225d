//! What a kernel multiplies: `C[item, m, n] = Σk A[item, m, k] · B[item, k, n]`, with where each of the three
//! lies.

use super::im2col::Window;
use super::output_view::{Columns, OutputView};
use super::wgsl::Digits;
use crate::dispatch::{AbsMax, Binding, ComputeType, Memory};
use volta_ir::dtype::DType;

#[derive(Clone, Debug)]
pub(super) struct Product {
    pub items: usize,
    pub m: usize,
    pub n: usize,
    pub steps: Steps,
    pub a: GemmOperand,
    pub b: GemmOperand,
    pub target: OutputView,
}

/// The results of a product.
#[derive(Clone, Debug)]
pub(super) struct Results {
    pub items: usize,
    pub m: usize,
    pub n: usize,
    pub target: OutputView,
}

impl Product {
    /// Whether both operands are matrices, and not windows of images.
    pub fn is_strided(&self) -> bool {
        [&self.a, &self.b].iter().all(|source| matches!(source.layout, OperandLayout::Strided(_)))
    }

    /// Whether its sums may be cut into parts. Those of several phases differ, and where results of a phase go is not known
    /// when parts are added.
    pub fn can_be_cut(&self) -> bool {
        self.steps.phases() == 1 && matches!(self.target.columns, Columns::Strided(_))
    }

    pub fn results(&self) -> Results {
        Results { items: self.items, m: self.m, n: self.n, target: self.target.clone() }
    }
}

/// How the sums run.
#[derive(Clone, Debug)]
pub(super) enum Steps {
    /// Over k.
    Flat(usize),
    /// Over the taps of a window and, inside, its channels. Items are cut into phases, outermost, each of
    /// which has taps of its own.
    Taps { channels: usize, kernel_width: usize, phases: Vec<Phase> },
}

/// The taps that meet a class of pixels: those of equal position modulo the stride.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    /// How many taps.
    pub taps: [usize; 2],
    /// The first tap, and from one to the next.
    pub tap_first: [usize; 2],
    pub tap_step: [usize; 2],
    /// The pixel that the first tap meets from pixel 0, and from one tap to the next.
    pub first: [i64; 2],
    pub advance: [i64; 2],
    /// The first pixel of the class in the result.
    pub start: [usize; 2],
}

impl Steps {
    /// Terms of the longest sum.
    pub fn depth(&self) -> usize {
        match self {
            Steps::Flat(k) => *k,
            Steps::Taps { channels, phases, .. } => {
                phases.iter().map(|p| p.taps[0] * p.taps[1]).max().unwrap_or(0) * channels
            }
        }
    }

    /// What one step can take at most.
    pub fn run(&self) -> usize {
        match self {
            Steps::Flat(k) => *k,
            Steps::Taps { channels, .. } => *channels,
        }
    }

    /// Whether there is an even number of steps of `k` terms; of windows, nobody asks.
    pub fn are_even(&self, k: usize) -> bool {
        matches!(self, Steps::Flat(terms) if terms.div_ceil(k).is_multiple_of(2))
    }

    pub fn phases(&self) -> usize {
        match self {
            Steps::Flat(_) => 1,
            Steps::Taps { phases, .. } => phases.len(),
        }
    }
}

/// An operand: lanes (rows of A, columns of B) times k.
#[derive(Clone, Debug)]
pub(super) struct GemmOperand {
    pub memory: Memory,
    pub dtype: DType,
    pub layout: OperandLayout,
    /// Of its lanes, if they are known.
    pub largest: Option<AbsMax>,
}

#[derive(Clone, Debug)]
pub(super) enum OperandLayout {
    Strided(Strided),
    Window(Window),
}

/// Elements at `offset + items + lane · stride + k`.
#[derive(Clone, Debug)]
pub(super) struct Strided {
    pub offset: i64,
    pub items: Digits,
    pub lane: i64,
    pub k: Digits,
}

impl Strided {
    /// Whether four neighbours along k can be read at once.
    pub fn quads_along_k(&self, lanes: usize) -> bool {
        self.runs_along_k(lanes, 4)
    }

    /// Whether four neighbouring lanes can be read at once.
    pub fn quads_along_lanes(&self, lanes: usize) -> bool {
        self.runs_along_lanes(lanes, 4)
    }

    /// The same of `length` neighbours.
    pub fn runs_along_k(&self, lanes: usize, length: usize) -> bool {
        self.k.has_runs(length) && (self.lane % length as i64 == 0 || lanes == 1) && self.starts_at(length)
    }

    /// The same of `length` neighbours.
    pub fn runs_along_lanes(&self, lanes: usize, length: usize) -> bool {
        self.lane == 1
            && lanes.is_multiple_of(length)
            && self.k.are_multiples(length)
            && self.starts_at(length)
    }

    /// Whether every item starts at a multiple of `number`.
    fn starts_at(&self, number: usize) -> bool {
        self.offset % number as i64 == 0 && self.items.are_multiples(number)
    }

    /// Whether k is nearer in memory than lanes.
    pub fn k_is_inner(&self) -> bool {
        self.k.inner().1.abs() < self.lane.abs()
    }
}

impl GemmOperand {
    pub fn binding(&self, name: &'static str, lane: ComputeType, width: u32) -> Binding {
        Binding { name, memory: self.memory, dtype: self.dtype, lane, width, reads: true, writes: false }
    }
}

/// The binding of results.
pub(super) fn output(dtype: DType, lane: ComputeType, width: u32) -> Binding {
    Binding { name: "c", memory: Memory::Output, dtype, lane, width, reads: false, writes: true }
}
