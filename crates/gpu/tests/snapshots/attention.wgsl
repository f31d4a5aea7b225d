// attention of scaled_dot_product_attention [16640]
@group(0) @binding(0) var<storage, read> memory0_0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> memory1_0: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> memory2_0: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> memory3_0: array<f32>;
fn load4_q(i: u32) -> vec4<f32> {
    return memory0_0[i >> 2u];
}
fn load4_k(i: u32) -> vec4<f32> {
    return memory1_0[i >> 2u];
}
fn load4_v(i: u32) -> vec4<f32> {
    return memory2_0[i >> 2u];
}
fn store_result(i: u32, value: f32) {
    memory3_0[i] = value;
}
fn store4_result(i: u32, value: vec4<f32>) { store_result(i + 0u, value[0]); store_result(i + 1u, value[1]); store_result(i + 2u, value[2]); store_result(i + 3u, value[3]); }
var<workgroup> own_rows: array<vec4<f32>, 256>;
var<workgroup> other_rows: array<vec4<f32>, 256>;
var<workgroup> weights: array<vec4<f32>, 256>;
var<workgroup> partial: array<f32, 256>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) nwg: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
let wanted = wg.x + wg.y * nwg.x;
if (wanted >= 8u) { return; }
{
let group = wanted - 0u;
let slice = group % 1u;
let rest = group / 1u;
let item = rest % 2u;
let tile = 3u - rest / 2u;
let batch = item / 2u;
let head = item % 2u;
let first = tile * 32u;
let down = lane / 8u;
let across = lane % 8u;
let q_start = 0u + batch * 16384u + head * 8192u;
let k_start = 0u + batch * 16384u + head * 8192u;
let v_start = 0u + batch * 16384u + head * 8192u;
var o_0_0_0 = vec4<f32>();
var o_0_1_0 = vec4<f32>();
var o_0_2_0 = vec4<f32>();
var o_0_3_0 = vec4<f32>();
var o_1_0_0 = vec4<f32>();
var o_1_1_0 = vec4<f32>();
var o_1_2_0 = vec4<f32>();
var o_1_3_0 = vec4<f32>();
var peak_0 = -3.4028234e38;
var total_0 = 0.0;
var peak_1 = -3.4028234e38;
var total_1 = 0.0;
var peak_2 = -3.4028234e38;
var total_2 = 0.0;
var peak_3 = -3.4028234e38;
var total_3 = 0.0;
let hidden = bitcast<f32>(0xff800000u | (lane & 0u));
let seen = min(128u, first + 32u);
for (var other = 0u; other < seen; other += 32u) {
var s_0_0 = vec4<f32>();
var s_1_0 = vec4<f32>();
var s_2_0 = vec4<f32>();
var s_3_0 = vec4<f32>();
for (var part = 0u; part < 2u; part++) {
var own_next_0 = vec4<f32>();
var own_next_1 = vec4<f32>();
var own_next_2 = vec4<f32>();
var own_next_3 = vec4<f32>();
own_next_0 = vec4<f32>();
if ((part * 8u + (lane + 0u) % 8u) * 4u < 64u) { own_next_0 = load4_q(q_start + (first + (lane + 0u) / 8u) * 64u + ((part * 8u + (lane + 0u) % 8u) * 4u) * 1u); }
own_next_1 = vec4<f32>();
if ((part * 8u + (lane + 64u) % 8u) * 4u < 64u) { own_next_1 = load4_q(q_start + (first + (lane + 64u) / 8u) * 64u + ((part * 8u + (lane + 64u) % 8u) * 4u) * 1u); }
own_next_2 = vec4<f32>();
if ((part * 8u + (lane + 128u) % 8u) * 4u < 64u) { own_next_2 = load4_q(q_start + (first + (lane + 128u) / 8u) * 64u + ((part * 8u + (lane + 128u) % 8u) * 4u) * 1u); }
own_next_3 = vec4<f32>();
if ((part * 8u + (lane + 192u) % 8u) * 4u < 64u) { own_next_3 = load4_q(q_start + (first + (lane + 192u) / 8u) * 64u + ((part * 8u + (lane + 192u) % 8u) * 4u) * 1u); }
var other_next_0 = vec4<f32>();
var other_next_1 = vec4<f32>();
var other_next_2 = vec4<f32>();
var other_next_3 = vec4<f32>();
other_next_0 = vec4<f32>();
if ((part * 8u + (lane + 0u) % 8u) * 4u < 64u) { other_next_0 = load4_k(k_start + (other + (lane + 0u) / 8u) * 64u + ((part * 8u + (lane + 0u) % 8u) * 4u) * 1u); }
other_next_1 = vec4<f32>();
if ((part * 8u + (lane + 64u) % 8u) * 4u < 64u) { other_next_1 = load4_k(k_start + (other + (lane + 64u) / 8u) * 64u + ((part * 8u + (lane + 64u) % 8u) * 4u) * 1u); }
other_next_2 = vec4<f32>();
if ((part * 8u + (lane + 128u) % 8u) * 4u < 64u) { other_next_2 = load4_k(k_start + (other + (lane + 128u) / 8u) * 64u + ((part * 8u + (lane + 128u) % 8u) * 4u) * 1u); }
other_next_3 = vec4<f32>();
if ((part * 8u + (lane + 192u) % 8u) * 4u < 64u) { other_next_3 = load4_k(k_start + (other + (lane + 192u) / 8u) * 64u + ((part * 8u + (lane + 192u) % 8u) * 4u) * 1u); }
workgroupBarrier();
own_rows[((lane + 0u) / 8u) * 8u + (((lane + 0u) % 8u) ^ ((((lane + 0u) / 8u) / 4u) & 7u))] = own_next_0;
own_rows[((lane + 64u) / 8u) * 8u + (((lane + 64u) % 8u) ^ ((((lane + 64u) / 8u) / 4u) & 7u))] = own_next_1;
own_rows[((lane + 128u) / 8u) * 8u + (((lane + 128u) % 8u) ^ ((((lane + 128u) / 8u) / 4u) & 7u))] = own_next_2;
own_rows[((lane + 192u) / 8u) * 8u + (((lane + 192u) % 8u) ^ ((((lane + 192u) / 8u) / 4u) & 7u))] = own_next_3;
other_rows[((lane + 0u) / 8u) * 8u + (((lane + 0u) % 8u) ^ ((((lane + 0u) / 8u) / 4u) & 7u))] = other_next_0;
other_rows[((lane + 64u) / 8u) * 8u + (((lane + 64u) % 8u) ^ ((((lane + 64u) / 8u) / 4u) & 7u))] = other_next_1;
other_rows[((lane + 128u) / 8u) * 8u + (((lane + 128u) % 8u) ^ ((((lane + 128u) / 8u) / 4u) & 7u))] = other_next_2;
other_rows[((lane + 192u) / 8u) * 8u + (((lane + 192u) % 8u) ^ ((((lane + 192u) / 8u) / 4u) & 7u))] = other_next_3;
workgroupBarrier();
for (var c = 0u; c < 8u; c += 2u) {
let a_0_0 = own_rows[((down) * 4u + 0u) * 8u + ((c + 0u) ^ ((down) & 7u))];
let a_0_1 = own_rows[((down) * 4u + 1u) * 8u + ((c + 0u) ^ ((down) & 7u))];
let a_0_2 = own_rows[((down) * 4u + 2u) * 8u + ((c + 0u) ^ ((down) & 7u))];
let a_0_3 = own_rows[((down) * 4u + 3u) * 8u + ((c + 0u) ^ ((down) & 7u))];
let b_0_0_0 = other_rows[((across + 0u) * 4u + 0u) * 8u + ((c + 0u) ^ ((across + 0u) & 7u))];
let b_0_0_1 = other_rows[((across + 0u) * 4u + 1u) * 8u + ((c + 0u) ^ ((across + 0u) & 7u))];
let b_0_0_2 = other_rows[((across + 0u) * 4u + 2u) * 8u + ((c + 0u) ^ ((across + 0u) & 7u))];
let b_0_0_3 = other_rows[((across + 0u) * 4u + 3u) * 8u + ((c + 0u) ^ ((across + 0u) & 7u))];
let d_0_0_x = vec4<f32>(b_0_0_0.x, b_0_0_1.x, b_0_0_2.x, b_0_0_3.x);
s_0_0 = fma(vec4<f32>(a_0_0.x), d_0_0_x, s_0_0);
s_1_0 = fma(vec4<f32>(a_0_1.x), d_0_0_x, s_1_0);
s_2_0 = fma(vec4<f32>(a_0_2.x), d_0_0_x, s_2_0);
s_3_0 = fma(vec4<f32>(a_0_3.x), d_0_0_x, s_3_0);
let d_0_0_y = vec4<f32>(b_0_0_0.y, b_0_0_1.y, b_0_0_2.y, b_0_0_3.y);
s_0_0 = fma(vec4<f32>(a_0_0.y), d_0_0_y, s_0_0);
s_1_0 = fma(vec4<f32>(a_0_1.y), d_0_0_y, s_1_0);
s_2_0 = fma(vec4<f32>(a_0_2.y), d_0_0_y, s_2_0);
s_3_0 = fma(vec4<f32>(a_0_3.y), d_0_0_y, s_3_0);
let d_0_0_z = vec4<f32>(b_0_0_0.z, b_0_0_1.z, b_0_0_2.z, b_0_0_3.z);
s_0_0 = fma(vec4<f32>(a_0_0.z), d_0_0_z, s_0_0);
s_1_0 = fma(vec4<f32>(a_0_1.z), d_0_0_z, s_1_0);
s_2_0 = fma(vec4<f32>(a_0_2.z), d_0_0_z, s_2_0);
s_3_0 = fma(vec4<f32>(a_0_3.z), d_0_0_z, s_3_0);
let d_0_0_w = vec4<f32>(b_0_0_0.w, b_0_0_1.w, b_0_0_2.w, b_0_0_3.w);
s_0_0 = fma(vec4<f32>(a_0_0.w), d_0_0_w, s_0_0);
s_1_0 = fma(vec4<f32>(a_0_1.w), d_0_0_w, s_1_0);
s_2_0 = fma(vec4<f32>(a_0_2.w), d_0_0_w, s_2_0);
s_3_0 = fma(vec4<f32>(a_0_3.w), d_0_0_w, s_3_0);
let a_1_0 = own_rows[((down) * 4u + 0u) * 8u + ((c + 1u) ^ ((down) & 7u))];
let a_1_1 = own_rows[((down) * 4u + 1u) * 8u + ((c + 1u) ^ ((down) & 7u))];
let a_1_2 = own_rows[((down) * 4u + 2u) * 8u + ((c + 1u) ^ ((down) & 7u))];
let a_1_3 = own_rows[((down) * 4u + 3u) * 8u + ((c + 1u) ^ ((down) & 7u))];
let b_1_0_0 = other_rows[((across + 0u) * 4u + 0u) * 8u + ((c + 1u) ^ ((across + 0u) & 7u))];
let b_1_0_1 = other_rows[((across + 0u) * 4u + 1u) * 8u + ((c + 1u) ^ ((across + 0u) & 7u))];
let b_1_0_2 = other_rows[((across + 0u) * 4u + 2u) * 8u + ((c + 1u) ^ ((across + 0u) & 7u))];
let b_1_0_3 = other_rows[((across + 0u) * 4u + 3u) * 8u + ((c + 1u) ^ ((across + 0u) & 7u))];
let d_1_0_x = vec4<f32>(b_1_0_0.x, b_1_0_1.x, b_1_0_2.x, b_1_0_3.x);
s_0_0 = fma(vec4<f32>(a_1_0.x), d_1_0_x, s_0_0);
s_1_0 = fma(vec4<f32>(a_1_1.x), d_1_0_x, s_1_0);
s_2_0 = fma(vec4<f32>(a_1_2.x), d_1_0_x, s_2_0);
s_3_0 = fma(vec4<f32>(a_1_3.x), d_1_0_x, s_3_0);
let d_1_0_y = vec4<f32>(b_1_0_0.y, b_1_0_1.y, b_1_0_2.y, b_1_0_3.y);
s_0_0 = fma(vec4<f32>(a_1_0.y), d_1_0_y, s_0_0);
s_1_0 = fma(vec4<f32>(a_1_1.y), d_1_0_y, s_1_0);
s_2_0 = fma(vec4<f32>(a_1_2.y), d_1_0_y, s_2_0);
s_3_0 = fma(vec4<f32>(a_1_3.y), d_1_0_y, s_3_0);
let d_1_0_z = vec4<f32>(b_1_0_0.z, b_1_0_1.z, b_1_0_2.z, b_1_0_3.z);
s_0_0 = fma(vec4<f32>(a_1_0.z), d_1_0_z, s_0_0);
s_1_0 = fma(vec4<f32>(a_1_1.z), d_1_0_z, s_1_0);
s_2_0 = fma(vec4<f32>(a_1_2.z), d_1_0_z, s_2_0);
s_3_0 = fma(vec4<f32>(a_1_3.z), d_1_0_z, s_3_0);
let d_1_0_w = vec4<f32>(b_1_0_0.w, b_1_0_1.w, b_1_0_2.w, b_1_0_3.w);
s_0_0 = fma(vec4<f32>(a_1_0.w), d_1_0_w, s_0_0);
s_1_0 = fma(vec4<f32>(a_1_1.w), d_1_0_w, s_1_0);
s_2_0 = fma(vec4<f32>(a_1_2.w), d_1_0_w, s_2_0);
s_3_0 = fma(vec4<f32>(a_1_3.w), d_1_0_w, s_3_0);
}
}
s_0_0 *= 0.125f;
s_1_0 *= 0.125f;
s_2_0 *= 0.125f;
s_3_0 *= 0.125f;
if (other + 32u > first + 1u) {
let column_0 = vec4<u32>(other + (across + 0u) * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
s_0_0 = select(vec4<f32>(hidden), s_0_0, column_0 < vec4<u32>(min(128u, first + down * 4u + 1u)));
s_1_0 = select(vec4<f32>(hidden), s_1_0, column_0 < vec4<u32>(min(128u, first + down * 4u + 2u)));
s_2_0 = select(vec4<f32>(hidden), s_2_0, column_0 < vec4<u32>(min(128u, first + down * 4u + 3u)));
s_3_0 = select(vec4<f32>(hidden), s_3_0, column_0 < vec4<u32>(min(128u, first + down * 4u + 4u)));
}
let most_0 = s_0_0;
var top_0 = max(max(most_0.x, most_0.y), max(most_0.z, most_0.w));
let most_1 = s_1_0;
var top_1 = max(max(most_1.x, most_1.y), max(most_1.z, most_1.w));
let most_2 = s_2_0;
var top_2 = max(max(most_2.x, most_2.y), max(most_2.z, most_2.w));
let most_3 = s_3_0;
var top_3 = max(max(most_3.x, most_3.y), max(most_3.z, most_3.w));
partial[(down * 4u + 0u) * 8u + across] = top_0;
partial[(down * 4u + 1u) * 8u + across] = top_1;
partial[(down * 4u + 2u) * 8u + across] = top_2;
partial[(down * 4u + 3u) * 8u + across] = top_3;
workgroupBarrier();
top_0 = partial[(down * 4u + 0u) * 8u];
for (var other_lane = 1u; other_lane < 8u; other_lane++) { top_0 = max(top_0, partial[(down * 4u + 0u) * 8u + other_lane]); }
top_1 = partial[(down * 4u + 1u) * 8u];
for (var other_lane = 1u; other_lane < 8u; other_lane++) { top_1 = max(top_1, partial[(down * 4u + 1u) * 8u + other_lane]); }
top_2 = partial[(down * 4u + 2u) * 8u];
for (var other_lane = 1u; other_lane < 8u; other_lane++) { top_2 = max(top_2, partial[(down * 4u + 2u) * 8u + other_lane]); }
top_3 = partial[(down * 4u + 3u) * 8u];
for (var other_lane = 1u; other_lane < 8u; other_lane++) { top_3 = max(top_3, partial[(down * 4u + 3u) * 8u + other_lane]); }
workgroupBarrier();
top_0 = max(top_0, peak_0);
let shrink_0 = exp(peak_0 - top_0);
peak_0 = top_0;
total_0 *= shrink_0;
s_0_0 = exp(s_0_0 - top_0);
total_0 += dot(s_0_0, vec4<f32>(1.0));
o_0_0_0 *= shrink_0;
o_1_0_0 *= shrink_0;
top_1 = max(top_1, peak_1);
let shrink_1 = exp(peak_1 - top_1);
peak_1 = top_1;
total_1 *= shrink_1;
s_1_0 = exp(s_1_0 - top_1);
total_1 += dot(s_1_0, vec4<f32>(1.0));
o_0_1_0 *= shrink_1;
o_1_1_0 *= shrink_1;
top_2 = max(top_2, peak_2);
let shrink_2 = exp(peak_2 - top_2);
peak_2 = top_2;
total_2 *= shrink_2;
s_2_0 = exp(s_2_0 - top_2);
total_2 += dot(s_2_0, vec4<f32>(1.0));
o_0_2_0 *= shrink_2;
o_1_2_0 *= shrink_2;
top_3 = max(top_3, peak_3);
let shrink_3 = exp(peak_3 - top_3);
peak_3 = top_3;
total_3 *= shrink_3;
s_3_0 = exp(s_3_0 - top_3);
total_3 += dot(s_3_0, vec4<f32>(1.0));
o_0_3_0 *= shrink_3;
o_1_3_0 *= shrink_3;
weights[((down) * 4u + 0u) * 8u + ((across + 0u) ^ ((down) & 7u))] = s_0_0;
weights[((down) * 4u + 1u) * 8u + ((across + 0u) ^ ((down) & 7u))] = s_1_0;
weights[((down) * 4u + 2u) * 8u + ((across + 0u) ^ ((down) & 7u))] = s_2_0;
weights[((down) * 4u + 3u) * 8u + ((across + 0u) ^ ((down) & 7u))] = s_3_0;
{
var other_next_0 = vec4<f32>();
var other_next_1 = vec4<f32>();
var other_next_2 = vec4<f32>();
var other_next_3 = vec4<f32>();
other_next_0 = vec4<f32>();
if ((0u + (lane + 0u) % 8u) * 4u < 64u) { other_next_0 = load4_v(v_start + (other + (lane + 0u) / 8u) * 64u + ((0u + (lane + 0u) % 8u) * 4u) * 1u); }
other_next_1 = vec4<f32>();
if ((0u + (lane + 64u) % 8u) * 4u < 64u) { other_next_1 = load4_v(v_start + (other + (lane + 64u) / 8u) * 64u + ((0u + (lane + 64u) % 8u) * 4u) * 1u); }
other_next_2 = vec4<f32>();
if ((0u + (lane + 128u) % 8u) * 4u < 64u) { other_next_2 = load4_v(v_start + (other + (lane + 128u) / 8u) * 64u + ((0u + (lane + 128u) % 8u) * 4u) * 1u); }
other_next_3 = vec4<f32>();
if ((0u + (lane + 192u) % 8u) * 4u < 64u) { other_next_3 = load4_v(v_start + (other + (lane + 192u) / 8u) * 64u + ((0u + (lane + 192u) % 8u) * 4u) * 1u); }
workgroupBarrier();
other_rows[((lane + 0u) / 8u) * 8u + (((lane + 0u) % 8u) ^ ((((lane + 0u) / 8u) / 4u) & 7u))] = other_next_0;
other_rows[((lane + 64u) / 8u) * 8u + (((lane + 64u) % 8u) ^ ((((lane + 64u) / 8u) / 4u) & 7u))] = other_next_1;
other_rows[((lane + 128u) / 8u) * 8u + (((lane + 128u) % 8u) ^ ((((lane + 128u) / 8u) / 4u) & 7u))] = other_next_2;
other_rows[((lane + 192u) / 8u) * 8u + (((lane + 192u) % 8u) ^ ((((lane + 192u) / 8u) / 4u) & 7u))] = other_next_3;
workgroupBarrier();
for (var c = 0u; c < 8u; c++) {
let a_0 = weights[((down) * 4u + 0u) * 8u + ((c) ^ ((down) & 7u))];
let a_1 = weights[((down) * 4u + 1u) * 8u + ((c) ^ ((down) & 7u))];
let a_2 = weights[((down) * 4u + 2u) * 8u + ((c) ^ ((down) & 7u))];
let a_3 = weights[((down) * 4u + 3u) * 8u + ((c) ^ ((down) & 7u))];
let b_0_0 = other_rows[((c) * 4u + 0u) * 8u + ((across + 0u) ^ ((c) & 7u))];
o_0_0_0 = fma(vec4<f32>(a_0.x), b_0_0, o_0_0_0);
o_0_1_0 = fma(vec4<f32>(a_1.x), b_0_0, o_0_1_0);
o_0_2_0 = fma(vec4<f32>(a_2.x), b_0_0, o_0_2_0);
o_0_3_0 = fma(vec4<f32>(a_3.x), b_0_0, o_0_3_0);
let b_0_1 = other_rows[((c) * 4u + 1u) * 8u + ((across + 0u) ^ ((c) & 7u))];
o_0_0_0 = fma(vec4<f32>(a_0.y), b_0_1, o_0_0_0);
o_0_1_0 = fma(vec4<f32>(a_1.y), b_0_1, o_0_1_0);
o_0_2_0 = fma(vec4<f32>(a_2.y), b_0_1, o_0_2_0);
o_0_3_0 = fma(vec4<f32>(a_3.y), b_0_1, o_0_3_0);
let b_0_2 = other_rows[((c) * 4u + 2u) * 8u + ((across + 0u) ^ ((c) & 7u))];
o_0_0_0 = fma(vec4<f32>(a_0.z), b_0_2, o_0_0_0);
o_0_1_0 = fma(vec4<f32>(a_1.z), b_0_2, o_0_1_0);
o_0_2_0 = fma(vec4<f32>(a_2.z), b_0_2, o_0_2_0);
o_0_3_0 = fma(vec4<f32>(a_3.z), b_0_2, o_0_3_0);
let b_0_3 = other_rows[((c) * 4u + 3u) * 8u + ((across + 0u) ^ ((c) & 7u))];
o_0_0_0 = fma(vec4<f32>(a_0.w), b_0_3, o_0_0_0);
o_0_1_0 = fma(vec4<f32>(a_1.w), b_0_3, o_0_1_0);
o_0_2_0 = fma(vec4<f32>(a_2.w), b_0_3, o_0_2_0);
o_0_3_0 = fma(vec4<f32>(a_3.w), b_0_3, o_0_3_0);
}
}
{
var other_next_0 = vec4<f32>();
var other_next_1 = vec4<f32>();
var other_next_2 = vec4<f32>();
var other_next_3 = vec4<f32>();
other_next_0 = vec4<f32>();
if ((8u + (lane + 0u) % 8u) * 4u < 64u) { other_next_0 = load4_v(v_start + (other + (lane + 0u) / 8u) * 64u + ((8u + (lane + 0u) % 8u) * 4u) * 1u); }
other_next_1 = vec4<f32>();
if ((8u + (lane + 64u) % 8u) * 4u < 64u) { other_next_1 = load4_v(v_start + (other + (lane + 64u) / 8u) * 64u + ((8u + (lane + 64u) % 8u) * 4u) * 1u); }
other_next_2 = vec4<f32>();
if ((8u + (lane + 128u) % 8u) * 4u < 64u) { other_next_2 = load4_v(v_start + (other + (lane + 128u) / 8u) * 64u + ((8u + (lane + 128u) % 8u) * 4u) * 1u); }
other_next_3 = vec4<f32>();
if ((8u + (lane + 192u) % 8u) * 4u < 64u) { other_next_3 = load4_v(v_start + (other + (lane + 192u) / 8u) * 64u + ((8u + (lane + 192u) % 8u) * 4u) * 1u); }
workgroupBarrier();
other_rows[((lane + 0u) / 8u) * 8u + (((lane + 0u) % 8u) ^ ((((lane + 0u) / 8u) / 4u) & 7u))] = other_next_0;
other_rows[((lane + 64u) / 8u) * 8u + (((lane + 64u) % 8u) ^ ((((lane + 64u) / 8u) / 4u) & 7u))] = other_next_1;
other_rows[((lane + 128u) / 8u) * 8u + (((lane + 128u) % 8u) ^ ((((lane + 128u) / 8u) / 4u) & 7u))] = other_next_2;
other_rows[((lane + 192u) / 8u) * 8u + (((lane + 192u) % 8u) ^ ((((lane + 192u) / 8u) / 4u) & 7u))] = other_next_3;
workgroupBarrier();
for (var c = 0u; c < 8u; c++) {
let a_0 = weights[((down) * 4u + 0u) * 8u + ((c) ^ ((down) & 7u))];
let a_1 = weights[((down) * 4u + 1u) * 8u + ((c) ^ ((down) & 7u))];
let a_2 = weights[((down) * 4u + 2u) * 8u + ((c) ^ ((down) & 7u))];
let a_3 = weights[((down) * 4u + 3u) * 8u + ((c) ^ ((down) & 7u))];
let b_0_0 = other_rows[((c) * 4u + 0u) * 8u + ((across + 0u) ^ ((c) & 7u))];
o_1_0_0 = fma(vec4<f32>(a_0.x), b_0_0, o_1_0_0);
o_1_1_0 = fma(vec4<f32>(a_1.x), b_0_0, o_1_1_0);
o_1_2_0 = fma(vec4<f32>(a_2.x), b_0_0, o_1_2_0);
o_1_3_0 = fma(vec4<f32>(a_3.x), b_0_0, o_1_3_0);
let b_0_1 = other_rows[((c) * 4u + 1u) * 8u + ((across + 0u) ^ ((c) & 7u))];
o_1_0_0 = fma(vec4<f32>(a_0.y), b_0_1, o_1_0_0);
o_1_1_0 = fma(vec4<f32>(a_1.y), b_0_1, o_1_1_0);
o_1_2_0 = fma(vec4<f32>(a_2.y), b_0_1, o_1_2_0);
o_1_3_0 = fma(vec4<f32>(a_3.y), b_0_1, o_1_3_0);
let b_0_2 = other_rows[((c) * 4u + 2u) * 8u + ((across + 0u) ^ ((c) & 7u))];
o_1_0_0 = fma(vec4<f32>(a_0.z), b_0_2, o_1_0_0);
o_1_1_0 = fma(vec4<f32>(a_1.z), b_0_2, o_1_1_0);
o_1_2_0 = fma(vec4<f32>(a_2.z), b_0_2, o_1_2_0);
o_1_3_0 = fma(vec4<f32>(a_3.z), b_0_2, o_1_3_0);
let b_0_3 = other_rows[((c) * 4u + 3u) * 8u + ((across + 0u) ^ ((c) & 7u))];
o_1_0_0 = fma(vec4<f32>(a_0.w), b_0_3, o_1_0_0);
o_1_1_0 = fma(vec4<f32>(a_1.w), b_0_3, o_1_1_0);
o_1_2_0 = fma(vec4<f32>(a_2.w), b_0_3, o_1_2_0);
o_1_3_0 = fma(vec4<f32>(a_3.w), b_0_3, o_1_3_0);
}
}
}
partial[(down * 4u + 0u) * 8u + across] = total_0;
partial[(down * 4u + 1u) * 8u + across] = total_1;
partial[(down * 4u + 2u) * 8u + across] = total_2;
partial[(down * 4u + 3u) * 8u + across] = total_3;
workgroupBarrier();
total_0 = partial[(down * 4u + 0u) * 8u];
for (var other_lane = 1u; other_lane < 8u; other_lane++) { total_0 = total_0 + partial[(down * 4u + 0u) * 8u + other_lane]; }
total_1 = partial[(down * 4u + 1u) * 8u];
for (var other_lane = 1u; other_lane < 8u; other_lane++) { total_1 = total_1 + partial[(down * 4u + 1u) * 8u + other_lane]; }
total_2 = partial[(down * 4u + 2u) * 8u];
for (var other_lane = 1u; other_lane < 8u; other_lane++) { total_2 = total_2 + partial[(down * 4u + 2u) * 8u + other_lane]; }
total_3 = partial[(down * 4u + 3u) * 8u];
for (var other_lane = 1u; other_lane < 8u; other_lane++) { total_3 = total_3 + partial[(down * 4u + 3u) * 8u + other_lane]; }
workgroupBarrier();
let row_0 = first + down * 4u + 0u;
if (row_0 < 128u) {
let nothing = total_0 == 0.0;
let part = 1.0 / select(total_0, 1.0, nothing);
if ((0u + across + 0u) * 4u < 64u) { store4_result(0u + ((batch * 128u + row_0) * 2u + head) * 64u + (0u + across + 0u) * 4u, o_0_0_0 * part); }
if ((8u + across + 0u) * 4u < 64u) { store4_result(0u + ((batch * 128u + row_0) * 2u + head) * 64u + (8u + across + 0u) * 4u, o_1_0_0 * part); }
if (across == 0u && slice == 0u) {
store_result(16384u + (item * 128u + row_0) * 1u + 0u, select(peak_0 + log(total_0), hidden, nothing));
}
}
let row_1 = first + down * 4u + 1u;
if (row_1 < 128u) {
let nothing = total_1 == 0.0;
let part = 1.0 / select(total_1, 1.0, nothing);
if ((0u + across + 0u) * 4u < 64u) { store4_result(0u + ((batch * 128u + row_1) * 2u + head) * 64u + (0u + across + 0u) * 4u, o_0_1_0 * part); }
if ((8u + across + 0u) * 4u < 64u) { store4_result(0u + ((batch * 128u + row_1) * 2u + head) * 64u + (8u + across + 0u) * 4u, o_1_1_0 * part); }
if (across == 0u && slice == 0u) {
store_result(16384u + (item * 128u + row_1) * 1u + 0u, select(peak_1 + log(total_1), hidden, nothing));
}
}
let row_2 = first + down * 4u + 2u;
if (row_2 < 128u) {
let nothing = total_2 == 0.0;
let part = 1.0 / select(total_2, 1.0, nothing);
if ((0u + across + 0u) * 4u < 64u) { store4_result(0u + ((batch * 128u + row_2) * 2u + head) * 64u + (0u + across + 0u) * 4u, o_0_2_0 * part); }
if ((8u + across + 0u) * 4u < 64u) { store4_result(0u + ((batch * 128u + row_2) * 2u + head) * 64u + (8u + across + 0u) * 4u, o_1_2_0 * part); }
if (across == 0u && slice == 0u) {
store_result(16384u + (item * 128u + row_2) * 1u + 0u, select(peak_2 + log(total_2), hidden, nothing));
}
}
let row_3 = first + down * 4u + 3u;
if (row_3 < 128u) {
let nothing = total_3 == 0.0;
let part = 1.0 / select(total_3, 1.0, nothing);
if ((0u + across + 0u) * 4u < 64u) { store4_result(0u + ((batch * 128u + row_3) * 2u + head) * 64u + (0u + across + 0u) * 4u, o_0_3_0 * part); }
if ((8u + across + 0u) * 4u < 64u) { store4_result(0u + ((batch * 128u + row_3) * 2u + head) * 64u + (8u + across + 0u) * 4u, o_1_3_0 * part); }
if (across == 0u && slice == 0u) {
store_result(16384u + (item * 128u + row_3) * 1u + 0u, select(peak_3 + log(total_3), hidden, nothing));
}
}
}
}

// map of scaled_dot_product_attention [1, 2, 128, 64]
@group(0) @binding(0) var<storage, read> memory0_0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> memory1_0: array<vec4<f32>>;
fn load4_s0(i: u32) -> vec4<f32> {
    return memory0_0[i >> 2u];
}
fn store4_s1(i: u32, value: vec4<f32>) {
    memory1_0[i >> 2u] = value;
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
let i = (wg.x + wg.y * nwg.x) * 256u + lane;
if (i >= 4096u) { return; }
let x0 = (i / 2048u);
let x1 = ((i / 16u) % 128u);
let x2 = (i % 16u);
let v0 = load4_s0((x0 * 64u + x1 * 128u + (x2 * 4u)));
store4_s1((x0 * 8192u + x1 * 64u + (x2 * 4u)), v0);
}

