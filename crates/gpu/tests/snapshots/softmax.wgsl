// reduce of softmax [64, 128]
@group(0) @binding(0) var<storage, read> memory0_0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> memory1_0: array<vec4<f32>>;
fn m_inf() -> f32 {
    var bits = 0x7f800000u;
    return f32(bitcast<f32>(bits));
}
fn m_is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & u32(0x7fffffffu)) > u32(0x7f800000u);
}
fn m_is_nan4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
fn m_head(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & u32(0xfffff000u));
}
fn m_head4(x: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u));
}
fn m_pow24(n: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(n + vec4<f32>(12583039.0)) << vec4<u32>(23u));
}
fn m_max(a: f32, b: f32) -> f32 {
    return select(select(max(a, b), b, m_is_nan(b)), a, m_is_nan(a));
}
fn m_max4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return select(select(max(a, b), b, m_is_nan4(b)), a, m_is_nan4(a));
}
fn m_residual(a: f32, q: f32, b: f32) -> f32 {
    let qh = m_head(q);
    let bh = m_head(b);
    let ql = q - qh;
    let bl = b - bh;
    let r = fma(-ql, bh, fma(-qh, bl, fma(-ql, bl, fma(-qh, bh, a))));
    return select(r, f32(0.0), abs(a) < f32(1e-30));
}
fn m_corrected(y: f32, correction: f32) -> f32 {
    let size = bitcast<u32>(correction) & u32(0x7fffffffu);
    return select(y, y + correction, (size - u32(1u)) < u32(0x7f7fffffu));
}
fn m_recip(x: f32) -> f32 {
    let y = f32(1.0) / x;
    return m_corrected(y, m_residual(f32(1.0), y, x) * y);
}
fn m_exp4(x: vec4<f32>) -> vec4<f32> {
    let n = min(round(x * vec4<f32>(1.442695)), vec4<f32>(127.0));
    let r = fma(m_head4(n), vec4<f32>(0.00021219444), fma(n, vec4<f32>(-0.6933594), x));
    var q = fma(r, vec4<f32>(0.000232505045), vec4<f32>(0.00138388842));
    q = fma(r, q, vec4<f32>(0.00832678191));
    q = fma(r, q, vec4<f32>(0.0416680649));
    q = fma(r, q, vec4<f32>(0.166666999));
    q = fma(r, q, vec4<f32>(0.49999994));
    let s = m_pow24(n);
    return select(fma(fma(r * r, q, r), s, s), vec4<f32>(0.0), x < vec4<f32>(-87.8));
}
fn load4_s0(i: u32) -> vec4<f32> {
    return memory0_0[i >> 2u];
}
fn store4_s1(i: u32, value: vec4<f32>) {
    memory1_0[i >> 2u] = value;
}
var<workgroup> shared_f32: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
let group = wg.x + wg.y * nwg.x;
if (group >= 8u) { return; }
let part = lane % 32u;
let row_wanted = group * 8u + lane / 32u;
let live = row_wanted < 64u;
let row = min(row_wanted, 63u);
let x0 = row;
var sum1: vec4<f32> = vec4<f32>((-m_inf()));
let e_0 = min(part * 4u + 0u, 124u);
let y_0_0_0 = e_0;
let v0_0 = load4_s0((x0 * 128u + y_0_0_0));
sum1 = m_max4(sum1, v0_0);
shared_f32[lane] = m_max(m_max(sum1.x, sum1.y), m_max(sum1.z, sum1.w));
workgroupBarrier();
if (part < 16u) { shared_f32[lane] = m_max(shared_f32[lane], shared_f32[lane + 16u]); }
workgroupBarrier();
if (part < 8u) { shared_f32[lane] = m_max(shared_f32[lane], shared_f32[lane + 8u]); }
workgroupBarrier();
if (part < 4u) { shared_f32[lane] = m_max(shared_f32[lane], shared_f32[lane + 4u]); }
workgroupBarrier();
if (part < 2u) { shared_f32[lane] = m_max(shared_f32[lane], shared_f32[lane + 2u]); }
workgroupBarrier();
if (part < 1u) { shared_f32[lane] = m_max(shared_f32[lane], shared_f32[lane + 1u]); }
workgroupBarrier();
let whole1 = shared_f32[lane - part * 1u];
workgroupBarrier();
let v1 = whole1;
var sum4: vec4<f32> = vec4<f32>(f32(0));
let y_0_1_0 = e_0;
let v2_0 = (v0_0 - vec4<f32>(v1));
let v3_0 = m_exp4(v2_0);
sum4 = (sum4 + v3_0);
shared_f32[lane] = ((sum4.x + sum4.y) + (sum4.z + sum4.w));
workgroupBarrier();
if (part < 16u) { shared_f32[lane] = (shared_f32[lane] + shared_f32[lane + 16u]); }
workgroupBarrier();
if (part < 8u) { shared_f32[lane] = (shared_f32[lane] + shared_f32[lane + 8u]); }
workgroupBarrier();
if (part < 4u) { shared_f32[lane] = (shared_f32[lane] + shared_f32[lane + 4u]); }
workgroupBarrier();
if (part < 2u) { shared_f32[lane] = (shared_f32[lane] + shared_f32[lane + 2u]); }
workgroupBarrier();
if (part < 1u) { shared_f32[lane] = (shared_f32[lane] + shared_f32[lane + 1u]); }
workgroupBarrier();
let whole4 = shared_f32[lane - part * 1u];
workgroupBarrier();
let v4 = whole4;
let v5 = m_recip(v4);
let y_0_2_0 = e_0;
let v6_0 = (v3_0 * vec4<f32>(v5));
if (live) {
store4_s1((x0 * 128u + y_0_2_0), v6_0);
}
}

