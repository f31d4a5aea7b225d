//! The shaders of [`GpuTensor`](super::GpuTensor)'s operations, in WGSL, for f32. The entry point is `main`.
//!
//! Elementwise shaders have 256 invocations a workgroup and bind their inputs, then the output, from binding
//! 0 on. Workgroups may be spread over x and y.

macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident($($input:ident at $binding:literal),*; output at $last:literal) = $value:literal;)*) => {$(
        $(#[$doc])*
        pub const $name: &str = concat!(
            $("@group(0) @binding(", $binding, ")\nvar<storage, read> ", stringify!($input), ": array<f32>;\n\n",)*
            "@group(0) @binding(", $last, ")\nvar<storage, read_write> output: array<f32>;\n",
            r"
@compute @workgroup_size(256)
fn main(
    @builtin(global_invocation_id) global_id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let idx = global_id.x + global_id.y * groups.x * 256u;
    if (idx < arrayLength(&output)) {
        output[idx] = ", $value, r";
    }
}
",
        );
    )*};
}
elementwise! {
    /// `a + b`.
    ELEMENTWISE_ADD(input_a at 0, input_b at 1; output at 2) = "input_a[idx] + input_b[idx]";
    /// `a - b`.
    ELEMENTWISE_SUB(input_a at 0, input_b at 1; output at 2) = "input_a[idx] - input_b[idx]";
    /// `a · b`, element by element.
    ELEMENTWISE_MUL(input_a at 0, input_b at 1; output at 2) = "input_a[idx] * input_b[idx]";
    /// `a / b`.
    ELEMENTWISE_DIV(input_a at 0, input_b at 1; output at 2) = "input_a[idx] / input_b[idx]";
    /// `max(x, 0)`; NaN stays, which is known by its bits: some drivers make a maximum of a comparison, and lose it.
    RELU(input at 0; output at 1) =
        "select(max(input[idx], 0.0), input[idx], (bitcast<u32>(input[idx]) & 0x7fffffffu) > 0x7f800000u)";
    /// `1 / (1 + exp(-x))`, of an exponential that does not overflow.
    SIGMOID(input at 0; output at 1) =
        "select(1.0, exp(-abs(input[idx])), input[idx] < 0.0) / (1.0 + exp(-abs(input[idx])))";
}

/// A product of two matrices by tiles of 64 × 64 in workgroup memory, 16 of the inner extent at a time; every
/// invocation sums 4 × 4. Bindings: the two matrices, the output, and a uniform with the rows, the inner
/// extent, the columns, and the number of tiles, which is that of the workgroups.
pub const MATMUL_SIMPLE: &str = r"
struct Sizes {
    rows: u32,
    inner: u32,
    columns: u32,
    tiles: u32,
}

@group(0) @binding(0)
var<storage, read> input_a: array<f32>;

@group(0) @binding(1)
var<storage, read> input_b: array<f32>;

@group(0) @binding(2)
var<storage, read_write> output: array<f32>;

@group(0) @binding(3)
var<uniform> sizes: Sizes;

const TILE = 64u;
const DEPTH = 16u;
// One more than a tile, so that writing a column meets different banks.
const PITCH = 65u;

var<workgroup> tile_a: array<f32, 1040>;
var<workgroup> tile_b: array<vec4<f32>, 256>;

fn at_a(row: u32, depth: u32) -> f32 {
    if (row < sizes.rows && depth < sizes.inner) { return input_a[row * sizes.inner + depth]; }
    return 0.0;
}

fn at_b(depth: u32, column: u32) -> f32 {
    if (depth < sizes.inner && column < sizes.columns) { return input_b[depth * sizes.columns + column]; }
    return 0.0;
}

fn put(row: u32, column: u32, sums: vec4<f32>) {
    if (row >= sizes.rows) { return; }
    for (var k = 0u; k < 4u; k++) {
        if (column + k < sizes.columns) { output[row * sizes.columns + column + k] = sums[k]; }
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = wg.x + wg.y * groups.x;
    if (tile >= sizes.tiles) { return; }
    let across = (sizes.columns + TILE - 1u) / TILE;
    let first_row = tile / across * TILE;
    let first_column = tile % across * TILE;
    // This invocation's part: of the sums, and of what is read.
    let row = lane / 16u * 4u;
    let column = lane % 16u * 4u;
    let read = lane / 16u;
    var sums0 = vec4<f32>();
    var sums1 = vec4<f32>();
    var sums2 = vec4<f32>();
    var sums3 = vec4<f32>();
    for (var depth = 0u; depth < sizes.inner; depth += DEPTH) {
        for (var r = read; r < TILE; r += 16u) {
            tile_a[lane % 16u * PITCH + r] = at_a(first_row + r, depth + lane % 16u);
        }
        let c = first_column + column;
        let d = depth + read;
        tile_b[lane] = vec4<f32>(at_b(d, c), at_b(d, c + 1u), at_b(d, c + 2u), at_b(d, c + 3u));
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) {
            let b = tile_b[k * 16u + lane % 16u];
            let a = k * PITCH + row;
            sums0 += tile_a[a] * b;
            sums1 += tile_a[a + 1u] * b;
            sums2 += tile_a[a + 2u] * b;
            sums3 += tile_a[a + 3u] * b;
        }
        workgroupBarrier();
    }
    put(first_row + row, first_column + column, sums0);
    put(first_row + row + 1u, first_column + column, sums1);
    put(first_row + row + 2u, first_column + column, sums2);
    put(first_row + row + 3u, first_column + column, sums3);
}
";
