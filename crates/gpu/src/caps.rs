//! What an adapter is, and what it can do.

use volta_ir::plan::size_class::SizeClasses;

/// What kind of device an adapter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdapterKind {
    /// A graphics card with memory of its own.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A GPU lent to a virtual machine.
    Virtual,
    /// A driver that computes on the processor, such as llvmpipe. Taken only when asked for.
    Software,
    /// Unknown.
    Other,
}

/// Sizes of pieces of memory.
pub(crate) const SIZE_CLASSES: SizeClasses = SizeClasses { smallest: 256, largest_step: usize::MAX };

/// Processors that a large GPU has; a smaller one has more work for each.
pub(crate) const COMPUTE_UNITS: usize = 128;

/// What the adapter can do, as far as kernels care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caps {
    /// f16 in shaders and in storage.
    pub f16: bool,
    pub i64: bool,
    /// Subgroup operations, with subgroups of always this size.
    pub subgroup: Option<u32>,
    /// 16×16 cooperative matrices: f16 operands, f32 sums.
    pub cooperative: bool,
    /// Whether the driver takes a number that goes to f16 and back for the number itself.
    pub elides_f16_roundtrip: bool,
    /// Whether invocations may write different parts of one vector in memory; elsewhere each may write all of it.
    pub component_stores: bool,
    /// Whether the invocations of a workgroup run one after the other, on a processor: those that wait for each other are slow.
    pub serial_workgroups: bool,
    /// Invocations a workgroup: at least 256.
    pub invocations: u32,
    /// Bytes of workgroup memory: at least 16 KiB.
    pub workgroup_bytes: u32,
}

impl Caps {
    /// Whether there are kernels for cooperative matrices: no browser has such matrices, and what is never called is left out.
    pub const KNOWS_COOPERATIVE: bool = cfg!(not(target_arch = "wasm32"));
}

/// Adapters of the tests.
#[cfg(test)]
impl Caps {
    /// What WebGPU promises and no more.
    pub const MINIMAL: Caps = Caps {
        f16: false,
        i64: false,
        subgroup: None,
        cooperative: false,
        elides_f16_roundtrip: false,
        component_stores: false,
        serial_workgroups: false,
        invocations: 256,
        workgroup_bytes: 16384,
    };

    /// A browser's software adapter.
    pub const SOFTWARE: Caps = Caps { serial_workgroups: true, ..Caps::MINIMAL };

    /// All that is made use of.
    pub const FULL: Caps = Caps {
        f16: true,
        i64: true,
        subgroup: Some(32),
        cooperative: true,
        elides_f16_roundtrip: true,
        component_stores: true,
        serial_workgroups: false,
        invocations: 1024,
        workgroup_bytes: 49152,
    };
}
