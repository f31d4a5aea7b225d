// For drivers that take a number there and back again for the number itself: something unknown happens to its bits.
fn round_half(x: f32) -> f32 { return unpack2x16float(pack2x16float(vec2<f32>(x, 0.0)) ^ unknown_zero()).x; }
fn round_half4(x: vec4<f32>) -> vec4<f32> {
    let zero = unknown_zero();
    return vec4<f32>(unpack2x16float(pack2x16float(x.xy) ^ zero), unpack2x16float(pack2x16float(x.zw) ^ zero));
}
