// conv of conv2d [2, 32, 32, 32]
@group(0) @binding(0) var<storage, read> memory0_0: array<f32>;
@group(0) @binding(1) var<storage, read_write> memory1_0: array<f32>;
fn load_weights(i: u32) -> f32 {
    return memory0_0[i];
}
fn store_packed(i: u32, value: f32) {
    memory1_0[i] = value;
}
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) nwg: vec3<u32>,
    @builtin(local_invocation_index) tid: u32,
) {
    let group = wg.x + wg.y * nwg.x;
    if (group >= 2u) { return; }
    let place = group * 256u + tid;
    if (place >= 512u) { return; }
    let row = min(place % 32u, 31u);
    let channel = place / 32u % 16u;
    let item = place / 512u;
    let begin = item * 4608u + channel * 9u + row * 144u;
    let to = (item * 144u + channel) * 32u + place % 32u;
    for (var tap = 0u; tap < 9u; tap++) {
        store_packed(to + tap * 512u, load_weights(begin + tap));
    }
}

// conv of conv2d [2, 32, 32, 32]
@group(0) @binding(0) var<storage, read> memory0_0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> memory1_0: array<f32>;
@group(0) @binding(2) var<storage, read_write> memory2_0: array<vec4<f32>>;
fn load4_a(i: u32) -> vec4<f32> {
    return memory0_0[i >> 2u];
}
fn load_b(i: u32) -> f32 {
    return memory1_0[i];
}
fn store4_c(i: u32, value: vec4<f32>) {
    memory2_0[i >> 2u] = value;
}
fn finish4(i: u32, result: vec4<f32>) {
store4_c(i, result);
}
var<workgroup> tile_a: array<vec4<f32>, 288>;
var<workgroup> tile_b: array<f32, 1152>;

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
    let height = 1u;
    let m0 = (band * 1u + inside % height) * 32u;
    let n0 = inside / height * 32u;
    let steps = 9u;
    let taps_x = 3u;
    let tap_first_y = 0u;
    let tap_first_x = 0u;
    let tap_step_y = 1u;
    let tap_step_x = 1u;
    let first_y = (-1i);
    let first_x = (-1i);
    let advance_y = (1i);
    let advance_x = (1i);
    let start_y = 0u;
    let start_x = 0u;
    let first = 0u;
    let last = steps;
    let tx = (tid / 32u) % 1u * 8u + (tid / 2u) % 8u;
    let ty = tid / 32u * 4u + (tid / 16u) % 2u * 2u + tid % 2u;
    let a_lane = (tid % 8u) * 4u;
    let a_k = tid / 8u;
    let a_lane_at0 = m0 + a_lane;
    let a_base = a_k * 32u;
    let a_row0 = a_base + a_lane_at0;
    var a0: vec4<f32>;
    var a1: vec4<f32>;
    let a_slot = a_k * 9u + (a_lane / 4u);
    let a_part = a_lane % 4u;
    let b_lane = tid % 32u;
    let b_k = tid / 32u;
    let b_lane_at0 = n0 + b_lane;
    let b_base = 0u;
    let b_lane0_image = (b_lane_at0 / 1024u) * 16384u;
    let b_lane0_y = i32((b_lane_at0 % 1024u) / 32u * 1u);
    let b_lane0_x = i32(b_lane_at0 % 32u * 1u);
    let b_lane0_start = b_base + b_lane0_image + b_k * 1024u;
    var b_raw0_0: f32;
    var b_raw1_0: f32;
    var b_raw2_0: f32;
    var b_raw3_0: f32;
    var b_raw4_0: f32;
    var b_raw5_0: f32;
    var b_raw6_0: f32;
    var b_raw7_0: f32;
    var b_inside0: bool;
    let b_slot = b_k * 9u + (b_lane / 4u);
    let b_part = b_lane % 4u;
    var c0_0: vec4<f32>;
    var c1_0: vec4<f32>;
    var c2_0: vec4<f32>;
    var c3_0: vec4<f32>;
    if (first < last) {
        let step = first;
        let tap = step / 1u;
        let c0 = step % 1u * 16u;
        let k_left = 16u - c0;
        let down = tap / taps_x;
        let right = tap % taps_x;
        let tap_y = first_y + i32(down) * advance_y;
        let tap_x = first_x + i32(right) * advance_x;
        let weight = (tap_first_y + down * tap_step_y) * 3u + tap_first_x + right * tap_step_x;
        let k0 = weight * 16u + c0;
        let a_at = k0 * 32u;
        a0 = load4_a(a_row0 + a_at);
        a1 = load4_a(a_row0 + a_at + 256u);
        let b_hit0_row = b_lane0_y + tap_y;
        let b_hit0_column = b_lane0_x + tap_x;
        let b_hit0_ok = u32(b_hit0_row) < 32u && u32(b_hit0_column) < 32u;
        let b_hit0_at = u32(b_hit0_row * 32i + b_hit0_column);
        let b_hit0_start = b_lane0_start + c0 * 1024u + select(0u, b_hit0_at, b_hit0_ok);
        b_inside0 = b_hit0_ok;
        b_raw0_0 = load_b(b_hit0_start);
        b_raw1_0 = load_b(b_hit0_start + 2048u);
        b_raw2_0 = load_b(b_hit0_start + 4096u);
        b_raw3_0 = load_b(b_hit0_start + 6144u);
        b_raw4_0 = load_b(b_hit0_start + 8192u);
        b_raw5_0 = load_b(b_hit0_start + 10240u);
        b_raw6_0 = load_b(b_hit0_start + 12288u);
        b_raw7_0 = load_b(b_hit0_start + 14336u);
        let into_a = 0u * 144u + 0u;
        let into_b = 0u * 144u + 0u;
        let a_value0 = a0;
        let a_value1 = a1;
        tile_a[into_a + a_slot + 0u] = a_value0;
        tile_a[into_a + a_slot + 72u] = a_value1;
        let b_value0 = f32(select(f32(), b_raw0_0, b_inside0));
        let b_value1 = f32(select(f32(), b_raw1_0, b_inside0));
        let b_value2 = f32(select(f32(), b_raw2_0, b_inside0));
        let b_value3 = f32(select(f32(), b_raw3_0, b_inside0));
        let b_value4 = f32(select(f32(), b_raw4_0, b_inside0));
        let b_value5 = f32(select(f32(), b_raw5_0, b_inside0));
        let b_value6 = f32(select(f32(), b_raw6_0, b_inside0));
        let b_value7 = f32(select(f32(), b_raw7_0, b_inside0));
        tile_b[4u * (into_b + b_slot + 0u) + b_part] = b_value0;
        tile_b[4u * (into_b + b_slot + 18u) + b_part] = b_value1;
        tile_b[4u * (into_b + b_slot + 36u) + b_part] = b_value2;
        tile_b[4u * (into_b + b_slot + 54u) + b_part] = b_value3;
        tile_b[4u * (into_b + b_slot + 72u) + b_part] = b_value4;
        tile_b[4u * (into_b + b_slot + 90u) + b_part] = b_value5;
        tile_b[4u * (into_b + b_slot + 108u) + b_part] = b_value6;
        tile_b[4u * (into_b + b_slot + 126u) + b_part] = b_value7;
    }
    workgroupBarrier();
    var buffer = 0u;
    for (var now = first; now < last; now++) {
        let step = now + 1u;
        if (step < last) {
            let tap = step / 1u;
            let c0 = step % 1u * 16u;
            let k_left = 16u - c0;
            let down = tap / taps_x;
            let right = tap % taps_x;
            let tap_y = first_y + i32(down) * advance_y;
            let tap_x = first_x + i32(right) * advance_x;
            let weight = (tap_first_y + down * tap_step_y) * 3u + tap_first_x + right * tap_step_x;
            let k0 = weight * 16u + c0;
            let a_at = k0 * 32u;
            a0 = load4_a(a_row0 + a_at);
            a1 = load4_a(a_row0 + a_at + 256u);
            let b_hit0_row = b_lane0_y + tap_y;
            let b_hit0_column = b_lane0_x + tap_x;
            let b_hit0_ok = u32(b_hit0_row) < 32u && u32(b_hit0_column) < 32u;
            let b_hit0_at = u32(b_hit0_row * 32i + b_hit0_column);
            let b_hit0_start = b_lane0_start + c0 * 1024u + select(0u, b_hit0_at, b_hit0_ok);
            b_inside0 = b_hit0_ok;
            b_raw0_0 = load_b(b_hit0_start);
            b_raw1_0 = load_b(b_hit0_start + 2048u);
            b_raw2_0 = load_b(b_hit0_start + 4096u);
            b_raw3_0 = load_b(b_hit0_start + 6144u);
            b_raw4_0 = load_b(b_hit0_start + 8192u);
            b_raw5_0 = load_b(b_hit0_start + 10240u);
            b_raw6_0 = load_b(b_hit0_start + 12288u);
            b_raw7_0 = load_b(b_hit0_start + 14336u);
        }
        let read_a = buffer * 144u + 0u;
        let read_b = buffer * 144u + 0u;
        for (var turn = 0u; turn < 2u; turn++) {
            let at_a = read_a + turn * 72u + ty;
            let at_b = read_b + turn * 72u + tx;
            let a0_0 = tile_a[at_a + 0u];
            let b0_0 = vec4<f32>(tile_b[4u * (at_b + 0u) + 0u], tile_b[4u * (at_b + 0u) + 1u], tile_b[4u * (at_b + 0u) + 2u], tile_b[4u * (at_b + 0u) + 3u]);
            c0_0 = fma(vec4<f32>(a0_0.x), b0_0, c0_0);
            c1_0 = fma(vec4<f32>(a0_0.y), b0_0, c1_0);
            c2_0 = fma(vec4<f32>(a0_0.z), b0_0, c2_0);
            c3_0 = fma(vec4<f32>(a0_0.w), b0_0, c3_0);
            let a1_0 = tile_a[at_a + 9u];
            let b1_0 = vec4<f32>(tile_b[4u * (at_b + 9u) + 0u], tile_b[4u * (at_b + 9u) + 1u], tile_b[4u * (at_b + 9u) + 2u], tile_b[4u * (at_b + 9u) + 3u]);
            c0_0 = fma(vec4<f32>(a1_0.x), b1_0, c0_0);
            c1_0 = fma(vec4<f32>(a1_0.y), b1_0, c1_0);
            c2_0 = fma(vec4<f32>(a1_0.z), b1_0, c2_0);
            c3_0 = fma(vec4<f32>(a1_0.w), b1_0, c3_0);
            let a2_0 = tile_a[at_a + 18u];
            let b2_0 = vec4<f32>(tile_b[4u * (at_b + 18u) + 0u], tile_b[4u * (at_b + 18u) + 1u], tile_b[4u * (at_b + 18u) + 2u], tile_b[4u * (at_b + 18u) + 3u]);
            c0_0 = fma(vec4<f32>(a2_0.x), b2_0, c0_0);
            c1_0 = fma(vec4<f32>(a2_0.y), b2_0, c1_0);
            c2_0 = fma(vec4<f32>(a2_0.z), b2_0, c2_0);
            c3_0 = fma(vec4<f32>(a2_0.w), b2_0, c3_0);
            let a3_0 = tile_a[at_a + 27u];
            let b3_0 = vec4<f32>(tile_b[4u * (at_b + 27u) + 0u], tile_b[4u * (at_b + 27u) + 1u], tile_b[4u * (at_b + 27u) + 2u], tile_b[4u * (at_b + 27u) + 3u]);
            c0_0 = fma(vec4<f32>(a3_0.x), b3_0, c0_0);
            c1_0 = fma(vec4<f32>(a3_0.y), b3_0, c1_0);
            c2_0 = fma(vec4<f32>(a3_0.z), b3_0, c2_0);
            c3_0 = fma(vec4<f32>(a3_0.w), b3_0, c3_0);
            let a4_0 = tile_a[at_a + 36u];
            let b4_0 = vec4<f32>(tile_b[4u * (at_b + 36u) + 0u], tile_b[4u * (at_b + 36u) + 1u], tile_b[4u * (at_b + 36u) + 2u], tile_b[4u * (at_b + 36u) + 3u]);
            c0_0 = fma(vec4<f32>(a4_0.x), b4_0, c0_0);
            c1_0 = fma(vec4<f32>(a4_0.y), b4_0, c1_0);
            c2_0 = fma(vec4<f32>(a4_0.z), b4_0, c2_0);
            c3_0 = fma(vec4<f32>(a4_0.w), b4_0, c3_0);
            let a5_0 = tile_a[at_a + 45u];
            let b5_0 = vec4<f32>(tile_b[4u * (at_b + 45u) + 0u], tile_b[4u * (at_b + 45u) + 1u], tile_b[4u * (at_b + 45u) + 2u], tile_b[4u * (at_b + 45u) + 3u]);
            c0_0 = fma(vec4<f32>(a5_0.x), b5_0, c0_0);
            c1_0 = fma(vec4<f32>(a5_0.y), b5_0, c1_0);
            c2_0 = fma(vec4<f32>(a5_0.z), b5_0, c2_0);
            c3_0 = fma(vec4<f32>(a5_0.w), b5_0, c3_0);
            let a6_0 = tile_a[at_a + 54u];
            let b6_0 = vec4<f32>(tile_b[4u * (at_b + 54u) + 0u], tile_b[4u * (at_b + 54u) + 1u], tile_b[4u * (at_b + 54u) + 2u], tile_b[4u * (at_b + 54u) + 3u]);
            c0_0 = fma(vec4<f32>(a6_0.x), b6_0, c0_0);
            c1_0 = fma(vec4<f32>(a6_0.y), b6_0, c1_0);
            c2_0 = fma(vec4<f32>(a6_0.z), b6_0, c2_0);
            c3_0 = fma(vec4<f32>(a6_0.w), b6_0, c3_0);
            let a7_0 = tile_a[at_a + 63u];
            let b7_0 = vec4<f32>(tile_b[4u * (at_b + 63u) + 0u], tile_b[4u * (at_b + 63u) + 1u], tile_b[4u * (at_b + 63u) + 2u], tile_b[4u * (at_b + 63u) + 3u]);
            c0_0 = fma(vec4<f32>(a7_0.x), b7_0, c0_0);
            c1_0 = fma(vec4<f32>(a7_0.y), b7_0, c1_0);
            c2_0 = fma(vec4<f32>(a7_0.z), b7_0, c2_0);
            c3_0 = fma(vec4<f32>(a7_0.w), b7_0, c3_0);
        }
        if (step < last) {
            let into_a = (1u - buffer) * 144u + 0u;
            let into_b = (1u - buffer) * 144u + 0u;
            let a_value0 = a0;
            let a_value1 = a1;
            tile_a[into_a + a_slot + 0u] = a_value0;
            tile_a[into_a + a_slot + 72u] = a_value1;
            let b_value0 = f32(select(f32(), b_raw0_0, b_inside0));
            let b_value1 = f32(select(f32(), b_raw1_0, b_inside0));
            let b_value2 = f32(select(f32(), b_raw2_0, b_inside0));
            let b_value3 = f32(select(f32(), b_raw3_0, b_inside0));
            let b_value4 = f32(select(f32(), b_raw4_0, b_inside0));
            let b_value5 = f32(select(f32(), b_raw5_0, b_inside0));
            let b_value6 = f32(select(f32(), b_raw6_0, b_inside0));
            let b_value7 = f32(select(f32(), b_raw7_0, b_inside0));
            tile_b[4u * (into_b + b_slot + 0u) + b_part] = b_value0;
            tile_b[4u * (into_b + b_slot + 18u) + b_part] = b_value1;
            tile_b[4u * (into_b + b_slot + 36u) + b_part] = b_value2;
            tile_b[4u * (into_b + b_slot + 54u) + b_part] = b_value3;
            tile_b[4u * (into_b + b_slot + 72u) + b_part] = b_value4;
            tile_b[4u * (into_b + b_slot + 90u) + b_part] = b_value5;
            tile_b[4u * (into_b + b_slot + 108u) + b_part] = b_value6;
            tile_b[4u * (into_b + b_slot + 126u) + b_part] = b_value7;
        }
        workgroupBarrier();
        buffer = 1u - buffer;
    }
    let out_item = 0u;
    let row0 = m0 + ty * 4u + 0u;
    let out_row0 = out_item + row0 * 1024u;
    let n0_0 = n0 + tx * 4u + 0u;
    let n0_0_at = (n0_0 / 1024u) * 32768u + n0_0 % 1024u;
    finish4(out_row0 + n0_0_at, c0_0);
    let row1 = m0 + ty * 4u + 1u;
    let out_row1 = out_item + row1 * 1024u;
    let n1_0 = n0 + tx * 4u + 0u;
    let n1_0_at = (n1_0 / 1024u) * 32768u + n1_0 % 1024u;
    finish4(out_row1 + n1_0_at, c1_0);
    let row2 = m0 + ty * 4u + 2u;
    let out_row2 = out_item + row2 * 1024u;
    let n2_0 = n0 + tx * 4u + 0u;
    let n2_0_at = (n2_0 / 1024u) * 32768u + n2_0 % 1024u;
    finish4(out_row2 + n2_0_at, c2_0);
    let row3 = m0 + ty * 4u + 3u;
    let out_row3 = out_item + row3 * 1024u;
    let n3_0 = n0 + tx * 4u + 0u;
    let n3_0_at = (n3_0 / 1024u) * 32768u + n3_0 % 1024u;
    finish4(out_row3 + n3_0_at, c3_0);
}

