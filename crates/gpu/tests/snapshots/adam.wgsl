// map of step [33]
@group(0) @binding(0) var<storage, read> memory0_0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> memory1_0: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> memory2_0: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> memory3_0: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> memory4_0: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> memory5_0: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> memory6_0: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> memory7_0: array<vec4<f32>>;
@group(0) @binding(8) var<uniform> arguments: array<vec4<u32>, 8>;
fn m_nan4() -> vec4<f32> {
    var bits = 0x7fc00000u;
    return vec4<f32>(bitcast<f32>(bits));
}
fn m_head4(x: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u));
}
fn m_residual4(a: vec4<f32>, q: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let qh = m_head4(q);
    let bh = m_head4(b);
    let ql = q - qh;
    let bl = b - bh;
    let r = fma(-ql, bh, fma(-qh, bl, fma(-ql, bl, fma(-qh, bh, a))));
    return select(r, vec4<f32>(0.0), abs(a) < vec4<f32>(1e-30));
}
fn m_corrected4(y: vec4<f32>, correction: vec4<f32>) -> vec4<f32> {
    let size = bitcast<vec4<u32>>(correction) & vec4<u32>(0x7fffffffu);
    return select(y, y + correction, (size - vec4<u32>(1u)) < vec4<u32>(0x7f7fffffu));
}
fn m_div4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let scale = select(vec4<f32>(1.0), vec4<f32>(0.25), abs(b) > vec4<f32>(4.2535296e37));
    let n = a * scale;
    let d = b * scale;
    let q = n / d;
    return select(m_corrected4(q, m_residual4(n, q, d) * (vec4<f32>(1.0) / d)), m_nan4(), (a == vec4<f32>(0.0)) & (b == vec4<f32>(0.0)));
}
fn m_sqrt4(x: vec4<f32>) -> vec4<f32> {
    let y = sqrt(x);
    let z = m_corrected4(y, m_residual4(x, y, y) * (vec4<f32>(0.5) / y));
    return select(select(z, m_nan4(), x < vec4<f32>(0.0)), x, x == vec4<f32>(0.0));
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
fn load4_s3(i: u32) -> vec4<f32> {
    return memory3_0[i >> 2u];
}
fn store4_s4(i: u32, value: vec4<f32>) {
    memory4_0[i >> 2u] = value;
}
fn store4_s5(i: u32, value: vec4<f32>) {
    memory5_0[i >> 2u] = value;
}
fn store4_s6(i: u32, value: vec4<f32>) {
    memory1_0[i >> 2u] = value;
}
fn store4_s7(i: u32, value: vec4<f32>) {
    memory6_0[i >> 2u] = value;
}
fn store4_s8(i: u32, value: vec4<f32>) {
    memory7_0[i >> 2u] = value;
}
fn store4_s9(i: u32, value: vec4<f32>) {
    memory3_0[i >> 2u] = value;
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
let group = wg.x + wg.y * nwg.x;
if (group >= arguments[5u + 2u].x) { return; }
var program = 0u;
var behind = 2u;
while (behind - program > 1u) {
let middle = (program + behind) / 2u;
if (arguments[5u + middle].x <= group) { program = middle; } else { behind = middle; }
}
let i = (group - arguments[5u + program].x) * 256u + lane;
if (i >= arguments[5u + program].z) { return; }
let x0 = i;
var v0: f32;
var v3: vec4<f32>;
var v7: f32;
var v14: vec4<f32>;
if (program < 1u) {
v0 = bitcast<f32>(arguments[0].xy.x);
v3 = load4_s0((x0 * 4u));
v7 = bitcast<f32>(arguments[0].zw.x);
v14 = load4_s1((x0 * 4u));
} else {
v0 = bitcast<f32>(arguments[1].xy.x);
v3 = load4_s2((x0 * 4u));
v7 = bitcast<f32>(arguments[1].zw.x);
v14 = load4_s3((x0 * 4u));
}
let v1 = bitcast<f32>(arguments[2].xy.x);
let v2 = (v0 * v1);
let v4 = bitcast<f32>(arguments[2].zw.x);
let v5 = (v3 * vec4<f32>(v4));
let v6 = (vec4<f32>(v2) + v5);
let v8 = bitcast<f32>(arguments[3].xy.x);
let v9 = (v7 * v8);
let v10 = (v3 * v3);
let v11 = bitcast<f32>(arguments[3].zw.x);
let v12 = (v10 * vec4<f32>(v11));
let v13 = (vec4<f32>(v9) + v12);
let v15 = m_sqrt4(v13);
let v16 = bitcast<f32>(arguments[4].xy.x);
let v17 = (v15 * vec4<f32>(v16));
let v18 = bitcast<f32>(arguments[4].zw.x);
let v19 = (v17 + vec4<f32>(v18));
let v20 = m_div4(v6, v19);
let v21 = (v14 - v20);
if (program < 1u) {
store4_s4((x0 * 4u), v6);
store4_s5((x0 * 4u), v13);
store4_s6((x0 * 4u), v21);
} else {
store4_s7((x0 * 4u), v6);
store4_s8((x0 * 4u), v13);
store4_s9((x0 * 4u), v21);
}
}

