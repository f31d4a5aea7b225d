//! One dispatch of a kernel: a shader's body, and the memory it names. The declarations of the bindings and the
//! functions that read and write them are put before the body by `shader`.

use volta_ir::dtype::DType;
use volta_ir::plan::kernel::Slot;

/// Memory that a dispatch names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// The kernel's operand of that number.
    Operand(usize),
    /// The kernel's result.
    Output,
    /// A slot of the plan.
    Slot(Slot),
    /// Memory of the kernel's own, between its dispatches: its number in [`Lowered::scratch`].
    Scratch(usize),
}

/// The type a body computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ComputeType {
    F32,
    F16,
    I32,
    U32,
    I64,
}

/// How a body sees one piece of memory: `load_NAME(i)` and, with a width of 4, `load4_NAME(i)` give elements as
/// `lane`; `store_NAME(i, v)` and `store4_NAME(i, v)` take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub name: &'static str,
    pub memory: Memory,
    /// What is in memory.
    pub dtype: DType,
    pub lane: ComputeType,
    /// 1, or 4 where the body also reads or writes four neighbours at once (from a multiple of 4), or 8 where it also
    /// reads eight halves as four words, `load8_NAME(i)`, or writes nothing but eights: `store8_NAME(i, low, high)`.
    pub width: u32,
    pub reads: bool,
    pub writes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dispatch {
    /// WGSL without bindings: constants, workgroup variables, functions and `main`.
    pub body: String,
    pub bindings: Vec<Binding>,
    /// Workgroups in all; the body counts them as `wg.x + wg.y * nwg.x` and ignores those beyond.
    pub groups: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lowered {
    pub dispatches: Vec<Dispatch>,
    /// Bytes of each piece of scratch memory.
    pub scratch: Vec<u64>,
}

/// The largest magnitudes of a matrix's lanes (rows, or columns), as the bits of numbers, from whoever wrote the matrix:
/// lists for parts of the lanes, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbsMax {
    /// Where they are: of type i32.
    pub memory: Memory,
    pub parts: usize,
}

impl AbsMax {
    /// From one list to the next.
    pub fn list(lanes: usize) -> usize {
        lanes.next_multiple_of(4)
    }
}
