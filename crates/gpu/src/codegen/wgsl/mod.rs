//! Functions in WGSL that generated and hand-written shaders use, and their linker, which gives a shader those that it calls.

pub(super) mod linker;
pub(super) mod math;
