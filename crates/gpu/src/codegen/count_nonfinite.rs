//! The shader of the guards: it counts NaN and infinity in a piece of memory.

use super::storage_type::StorageType;
use volta_ir::dtype::DType;

/// Counts the elements that are not finite in one piece of memory. The first argument is the number of elements,
/// the second the word to add to; then a mask of the exponent of a word's element, and of its second one, if any.
pub(crate) const COUNT_NONFINITE: &str = "\
@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> found: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> arguments: array<vec4<u32>, 2>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, \
@builtin(local_invocation_index) lane: u32) {
    let count = arguments[0].x;
    let low = arguments[1].x;
    let high = arguments[1].z;
    let words = select(count, count - count / 2u, high != 0u);
    var here = 0u;
    for (var i = wg.x * 256u + lane; i < words; i += nwg.x * 256u) {
        let word = values[i];
        if ((word & low) == low) { here++; }
        if (high != 0u && (word & high) == high && 2u * i + 1u < count) { here++; }
    }
    if (here > 0u) { atomicAdd(&found[arguments[0].z], here); }
}
";

/// Workgroups that count together.
const MAX_GROUPS: usize = 1024;

/// The exponents of a word's elements: none are looked at where the type has none.
pub(crate) fn masks(dtype: DType, f16: bool) -> [u32; 2] {
    match StorageType::of(dtype, f16) {
        StorageType::F32 => [0x7f80_0000, 0],
        StorageType::F16 => [0x7c00, 0x7c00_0000],
        StorageType::F16Word => [0x7c00, 0],
        StorageType::Bf16Word => [0x7f80, 0],
        StorageType::I32 | StorageType::I64 | StorageType::U32 | StorageType::Word => {
            unreachable!("integers are finite")
        }
    }
}

/// Workgroups for so many elements.
pub(crate) fn groups(count: usize) -> u32 {
    count.div_ceil(1024).clamp(1, MAX_GROUPS) as u32
}
