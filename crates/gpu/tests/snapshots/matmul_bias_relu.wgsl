// matmul of matmul + add + relu [256, 256]
@group(0) @binding(0) var<storage, read> memory0_0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> memory1_0: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> memory2_0: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> memory3_0: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> memory4_0: array<vec4<f32>>;
fn m_is_nan4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
fn m_relu4(x: vec4<f32>) -> vec4<f32> {
    return select(max(x, vec4<f32>(0.0)), x, m_is_nan4(x));
}
fn load4_a(i: u32) -> vec4<f32> {
    return memory0_0[i >> 2u];
}
fn load4_b(i: u32) -> vec4<f32> {
    return memory1_0[i >> 2u];
}
fn load4_s0(i: u32) -> vec4<f32> {
    return memory2_0[i >> 2u];
}
fn store4_s1(i: u32, value: vec4<f32>) {
    memory3_0[i >> 2u] = value;
}
fn store4_s2(i: u32, value: vec4<f32>) {
    memory4_0[i >> 2u] = value;
}
fn finish4(i: u32, result: vec4<f32>) {
let x0 = (i / 256u);
let x1 = (i % 256u);
let v1 = load4_s0(x1);
let v2 = (result + v1);
let v3 = m_relu4(v2);
store4_s1((x0 * 256u + x1), v2);
store4_s2((x0 * 256u + x1), v3);
}
var<workgroup> tile_a: array<f32, 1152>;
var<workgroup> tile_b: array<vec4<f32>, 288>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) nwg: vec3<u32>,
    @builtin(local_invocation_index) tid: u32,
) {
    let group = wg.x + wg.y * nwg.x;
    if (group >= 64u) { return; }
    let part = group / 64u;
    let item = (group / 64u) % 1u;
    let tile = group % 64u;
    let band = tile / 64u;
    let inside = tile % 64u;
    let height = 8u;
    let m0 = (band * 8u + inside % height) * 32u;
    let n0 = inside / height * 32u;
    let steps = 16u;
    let first = 0u;
    let last = steps;
    let tx = (tid / 32u) % 1u * 8u + (tid / 2u) % 8u;
    let ty = tid / 32u * 4u + (tid / 16u) % 2u * 2u + tid % 2u;
    let a_lane = (tid / 2u) % 16u + tid / 64u * 16u;
    let a_k = (tid % 2u + (tid / 32u) % 2u * 2u) * 4u;
    let a_lane_at0 = m0 + a_lane;
    let a_lane_at16 = m0 + a_lane + 16u;
    let a_base = a_k;
    let a_row0 = a_base + a_lane_at0 * 256u;
    let a_row16 = a_base + a_lane_at16 * 256u;
    var a0: vec4<f32>;
    var a1: vec4<f32>;
    let a_slot = a_k * 9u + (a_lane / 4u);
    let a_part = a_lane % 4u;
    let b_lane = (tid % 8u) * 4u;
    let b_k = tid / 8u;
    let b_lane_at0 = n0 + b_lane;
    let b_base = b_k * 256u;
    let b_row0 = b_base + b_lane_at0;
    var b0: vec4<f32>;
    var b1: vec4<f32>;
    let b_slot = b_k * 9u + (b_lane / 4u);
    let b_part = b_lane % 4u;
    var c0_0: vec4<f32>;
    var c1_0: vec4<f32>;
    var c2_0: vec4<f32>;
    var c3_0: vec4<f32>;
    if (first < last) {
        let step = first;
        let k0 = step * 16u;
        let k_left = 256u - k0;
        let a_at = k0;
        a0 = load4_a(a_row0 + a_at);
        a1 = load4_a(a_row16 + a_at);
        let b_at = k0 * 256u;
        b0 = load4_b(b_row0 + b_at);
        b1 = load4_b(b_row0 + b_at + 2048u);
        let into_a = 0u * 144u + 0u;
        let into_b = 0u * 144u + 0u;
        let a_value0 = a0;
        let a_value1 = a1;
        tile_a[4u * (into_a + a_slot + 0u) + a_part] = a_value0.x;
        tile_a[4u * (into_a + a_slot + 9u) + a_part] = a_value0.y;
        tile_a[4u * (into_a + a_slot + 18u) + a_part] = a_value0.z;
        tile_a[4u * (into_a + a_slot + 27u) + a_part] = a_value0.w;
        tile_a[4u * (into_a + a_slot + 4u) + a_part] = a_value1.x;
        tile_a[4u * (into_a + a_slot + 13u) + a_part] = a_value1.y;
        tile_a[4u * (into_a + a_slot + 22u) + a_part] = a_value1.z;
        tile_a[4u * (into_a + a_slot + 31u) + a_part] = a_value1.w;
        let b_value0 = b0;
        let b_value1 = b1;
        tile_b[into_b + b_slot + 0u] = b_value0;
        tile_b[into_b + b_slot + 72u] = b_value1;
    }
    workgroupBarrier();
    var buffer = 0u;
    for (var now = first; now < last; now++) {
        let step = min(now + 1u, last - 1u);
        {
            let k0 = step * 16u;
            let k_left = 256u - k0;
            let a_at = k0;
            a0 = load4_a(a_row0 + a_at);
            a1 = load4_a(a_row16 + a_at);
            let b_at = k0 * 256u;
            b0 = load4_b(b_row0 + b_at);
            b1 = load4_b(b_row0 + b_at + 2048u);
        }
        let read_a = buffer * 144u + 0u;
        let read_b = buffer * 144u + 0u;
        for (var turn = 0u; turn < 2u; turn++) {
            let at_a = read_a + turn * 72u + ty;
            let at_b = read_b + turn * 72u + tx;
            let a0_0 = vec4<f32>(tile_a[4u * (at_a + 0u) + 0u], tile_a[4u * (at_a + 0u) + 1u], tile_a[4u * (at_a + 0u) + 2u], tile_a[4u * (at_a + 0u) + 3u]);
            let b0_0 = tile_b[at_b + 0u];
            c0_0 = fma(vec4<f32>(a0_0.x), b0_0, c0_0);
            c1_0 = fma(vec4<f32>(a0_0.y), b0_0, c1_0);
            c2_0 = fma(vec4<f32>(a0_0.z), b0_0, c2_0);
            c3_0 = fma(vec4<f32>(a0_0.w), b0_0, c3_0);
            let a1_0 = vec4<f32>(tile_a[4u * (at_a + 9u) + 0u], tile_a[4u * (at_a + 9u) + 1u], tile_a[4u * (at_a + 9u) + 2u], tile_a[4u * (at_a + 9u) + 3u]);
            let b1_0 = tile_b[at_b + 9u];
            c0_0 = fma(vec4<f32>(a1_0.x), b1_0, c0_0);
            c1_0 = fma(vec4<f32>(a1_0.y), b1_0, c1_0);
            c2_0 = fma(vec4<f32>(a1_0.z), b1_0, c2_0);
            c3_0 = fma(vec4<f32>(a1_0.w), b1_0, c3_0);
            let a2_0 = vec4<f32>(tile_a[4u * (at_a + 18u) + 0u], tile_a[4u * (at_a + 18u) + 1u], tile_a[4u * (at_a + 18u) + 2u], tile_a[4u * (at_a + 18u) + 3u]);
            let b2_0 = tile_b[at_b + 18u];
            c0_0 = fma(vec4<f32>(a2_0.x), b2_0, c0_0);
            c1_0 = fma(vec4<f32>(a2_0.y), b2_0, c1_0);
            c2_0 = fma(vec4<f32>(a2_0.z), b2_0, c2_0);
            c3_0 = fma(vec4<f32>(a2_0.w), b2_0, c3_0);
            let a3_0 = vec4<f32>(tile_a[4u * (at_a + 27u) + 0u], tile_a[4u * (at_a + 27u) + 1u], tile_a[4u * (at_a + 27u) + 2u], tile_a[4u * (at_a + 27u) + 3u]);
            let b3_0 = tile_b[at_b + 27u];
            c0_0 = fma(vec4<f32>(a3_0.x), b3_0, c0_0);
            c1_0 = fma(vec4<f32>(a3_0.y), b3_0, c1_0);
            c2_0 = fma(vec4<f32>(a3_0.z), b3_0, c2_0);
            c3_0 = fma(vec4<f32>(a3_0.w), b3_0, c3_0);
            let a4_0 = vec4<f32>(tile_a[4u * (at_a + 36u) + 0u], tile_a[4u * (at_a + 36u) + 1u], tile_a[4u * (at_a + 36u) + 2u], tile_a[4u * (at_a + 36u) + 3u]);
            let b4_0 = tile_b[at_b + 36u];
            c0_0 = fma(vec4<f32>(a4_0.x), b4_0, c0_0);
            c1_0 = fma(vec4<f32>(a4_0.y), b4_0, c1_0);
            c2_0 = fma(vec4<f32>(a4_0.z), b4_0, c2_0);
            c3_0 = fma(vec4<f32>(a4_0.w), b4_0, c3_0);
            let a5_0 = vec4<f32>(tile_a[4u * (at_a + 45u) + 0u], tile_a[4u * (at_a + 45u) + 1u], tile_a[4u * (at_a + 45u) + 2u], tile_a[4u * (at_a + 45u) + 3u]);
            let b5_0 = tile_b[at_b + 45u];
            c0_0 = fma(vec4<f32>(a5_0.x), b5_0, c0_0);
            c1_0 = fma(vec4<f32>(a5_0.y), b5_0, c1_0);
            c2_0 = fma(vec4<f32>(a5_0.z), b5_0, c2_0);
            c3_0 = fma(vec4<f32>(a5_0.w), b5_0, c3_0);
            let a6_0 = vec4<f32>(tile_a[4u * (at_a + 54u) + 0u], tile_a[4u * (at_a + 54u) + 1u], tile_a[4u * (at_a + 54u) + 2u], tile_a[4u * (at_a + 54u) + 3u]);
            let b6_0 = tile_b[at_b + 54u];
            c0_0 = fma(vec4<f32>(a6_0.x), b6_0, c0_0);
            c1_0 = fma(vec4<f32>(a6_0.y), b6_0, c1_0);
            c2_0 = fma(vec4<f32>(a6_0.z), b6_0, c2_0);
            c3_0 = fma(vec4<f32>(a6_0.w), b6_0, c3_0);
            let a7_0 = vec4<f32>(tile_a[4u * (at_a + 63u) + 0u], tile_a[4u * (at_a + 63u) + 1u], tile_a[4u * (at_a + 63u) + 2u], tile_a[4u * (at_a + 63u) + 3u]);
            let b7_0 = tile_b[at_b + 63u];
            c0_0 = fma(vec4<f32>(a7_0.x), b7_0, c0_0);
            c1_0 = fma(vec4<f32>(a7_0.y), b7_0, c1_0);
            c2_0 = fma(vec4<f32>(a7_0.z), b7_0, c2_0);
            c3_0 = fma(vec4<f32>(a7_0.w), b7_0, c3_0);
        }
        {
            let into_a = (1u - buffer) * 144u + 0u;
            let into_b = (1u - buffer) * 144u + 0u;
            let a_value0 = a0;
            let a_value1 = a1;
            tile_a[4u * (into_a + a_slot + 0u) + a_part] = a_value0.x;
            tile_a[4u * (into_a + a_slot + 9u) + a_part] = a_value0.y;
            tile_a[4u * (into_a + a_slot + 18u) + a_part] = a_value0.z;
            tile_a[4u * (into_a + a_slot + 27u) + a_part] = a_value0.w;
            tile_a[4u * (into_a + a_slot + 4u) + a_part] = a_value1.x;
            tile_a[4u * (into_a + a_slot + 13u) + a_part] = a_value1.y;
            tile_a[4u * (into_a + a_slot + 22u) + a_part] = a_value1.z;
            tile_a[4u * (into_a + a_slot + 31u) + a_part] = a_value1.w;
            let b_value0 = b0;
            let b_value1 = b1;
            tile_b[into_b + b_slot + 0u] = b_value0;
            tile_b[into_b + b_slot + 72u] = b_value1;
        }
        workgroupBarrier();
        buffer = 1u - buffer;
    }
    let out_item = 0u;
    let row0 = m0 + ty * 4u + 0u;
    let out_row0 = out_item + row0 * 256u;
    let n0_0 = n0 + tx * 4u + 0u;
    let n0_0_at = n0_0;
    finish4(out_row0 + n0_0_at, c0_0);
    let row1 = m0 + ty * 4u + 1u;
    let out_row1 = out_item + row1 * 256u;
    let n1_0 = n0 + tx * 4u + 0u;
    let n1_0_at = n1_0;
    finish4(out_row1 + n1_0_at, c1_0);
    let row2 = m0 + ty * 4u + 2u;
    let out_row2 = out_item + row2 * 256u;
    let n2_0 = n0 + tx * 4u + 0u;
    let n2_0_at = n2_0;
    finish4(out_row2 + n2_0_at, c2_0);
    let row3 = m0 + ty * 4u + 3u;
    let out_row3 = out_item + row3 * 256u;
    let n3_0 = n0 + tx * 4u + 0u;
    let n3_0_at = n3_0;
    finish4(out_row3 + n3_0_at, c3_0);
}

