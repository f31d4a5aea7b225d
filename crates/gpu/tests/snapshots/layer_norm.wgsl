// reduce of layer_norm [64, 128]
@group(0) @binding(0) var<storage, read> memory0_0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> memory1_0: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> memory2_0: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> memory3_0: array<vec4<f32>>;
@group(0) @binding(4) var<uniform> arguments: array<vec4<u32>, 2>;
fn m_nan() -> f32 {
    var bits = 0x7fc00000u;
    return f32(bitcast<f32>(bits));
}
fn m_inf() -> f32 {
    var bits = 0x7f800000u;
    return f32(bitcast<f32>(bits));
}
fn m_copysign(x: f32, y: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(x) & u32(0x7fffffffu)) | (bitcast<u32>(y) & u32(0x80000000u)));
}
fn m_head(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & u32(0xfffff000u));
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
fn m_div(a: f32, b: f32) -> f32 {
    let scale = select(f32(1.0), f32(0.25), abs(b) > f32(4.2535296e37));
    let n = a * scale;
    let d = b * scale;
    let q = n / d;
    return select(m_corrected(q, m_residual(n, q, d) * (f32(1.0) / d)), m_nan(), (a == f32(0.0)) & (b == f32(0.0)));
}
fn m_rsqrt(x: f32) -> f32 {
    let y = inverseSqrt(x);
    let z = m_corrected(y, fma(-(x * y), y, f32(1.0)) * (f32(0.5) * y));
    return select(select(z, m_nan(), x < f32(0.0)), m_copysign(m_inf(), x), x == f32(0.0));
}
fn load4_s0(i: u32) -> vec4<f32> {
    return memory0_0[i >> 2u];
}
fn load4_s1(i: u32) -> vec4<f32> {
    return memory1_0[i >> 2u];
}
fn load4_s2(i: u32) -> vec4<f32> {
    return memory2_0[i >> 2u];
}
fn store4_s3(i: u32, value: vec4<f32>) {
    memory3_0[i >> 2u] = value;
}
var<workgroup> shared_f32: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
let group = wg.x + wg.y * nwg.x;
if (group >= 8u) { return; }
let v2 = bitcast<f32>(arguments[0].xy.x);
let v8 = bitcast<f32>(arguments[0].zw.x);
let v10 = bitcast<f32>(arguments[1].xy.x);
let part = lane % 32u;
let row_wanted = group * 8u + lane / 32u;
let live = row_wanted < 64u;
let row = min(row_wanted, 63u);
let x0 = row;
var sum1: vec4<f32> = vec4<f32>(f32(0));
let e_0 = min(part * 4u + 0u, 124u);
let y_0_0_0 = e_0;
let v0_0 = load4_s0((x0 * 128u + y_0_0_0));
let v14_0 = load4_s1(y_0_0_0);
let v16_0 = load4_s2(y_0_0_0);
sum1 = (sum1 + v0_0);
shared_f32[lane] = ((sum1.x + sum1.y) + (sum1.z + sum1.w));
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
let whole1 = shared_f32[lane - part * 1u];
workgroupBarrier();
let v1 = whole1;
let v3 = m_div(v1, v2);
var sum7: vec4<f32> = vec4<f32>(f32(0));
let y_0_1_0 = e_0;
let v4_0 = (v0_0 - vec4<f32>(v3));
let v5_0 = (v0_0 - vec4<f32>(v3));
let v6_0 = (v5_0 * v5_0);
sum7 = (sum7 + v6_0);
shared_f32[lane] = ((sum7.x + sum7.y) + (sum7.z + sum7.w));
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
let whole7 = shared_f32[lane - part * 1u];
workgroupBarrier();
let v7 = whole7;
let v9 = m_div(v7, v8);
let v11 = (v9 + v10);
let v12 = m_rsqrt(v11);
let y_0_2_0 = e_0;
let v13_0 = (v4_0 * vec4<f32>(v12));
let v15_0 = (v13_0 * v14_0);
let v17_0 = (v15_0 + v16_0);
if (live) {
store4_s3((x0 * 128u + y_0_2_0), v17_0);
}
}

