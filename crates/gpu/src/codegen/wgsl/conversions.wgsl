fn half_of_bits(x: u32) -> f32 { return unpack2x16float(x).x; }
fn half_of_bits4(x: vec4<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(x.x).x, unpack2x16float(x.y).x, unpack2x16float(x.z).x, unpack2x16float(x.w).x);
}
fn bits_of_half(x: f32) -> u32 { return pack2x16float(vec2<f32>(x, 0.0)); }
fn bits_of_half4(x: vec4<f32>) -> vec4<u32> {
    return vec4<u32>(bits_of_half(x.x), bits_of_half(x.y), bits_of_half(x.z), bits_of_half(x.w));
}
// To nearest, ties to even; NaN stays NaN.
fn bits_of_bfloat4(x: vec4<f32>) -> vec4<u32> {
    let bits = bitcast<vec4<u32>>(x);
    let rounded = (bits + vec4<u32>(32767u) + ((bits >> vec4<u32>(16u)) & vec4<u32>(1u))) >> vec4<u32>(16u);
    let nan = (bits & vec4<u32>(2147483647u)) > vec4<u32>(2139095040u);
    return select(rounded, vec4<u32>(32704u), nan);
}
fn bits_of_bfloat(x: f32) -> u32 { return bits_of_bfloat4(vec4<f32>(x)).x; }
fn round_bfloat4(x: vec4<f32>) -> vec4<f32> { return bitcast<vec4<f32>>(bits_of_bfloat4(x) << vec4<u32>(16u)); }
fn round_bfloat(x: f32) -> f32 { return round_bfloat4(vec4<f32>(x)).x; }
fn halves_of_words(x: vec2<u32>) -> vec4<f16> {
    return vec4<f16>(vec2<f16>(unpack2x16float(x.x)), vec2<f16>(unpack2x16float(x.y)));
}
fn words_of_halves(x: vec4<f16>) -> vec2<u32> {
    return vec2<u32>(pack2x16float(vec2<f32>(x.xy)), pack2x16float(vec2<f32>(x.zw)));
}
fn one_of_eight(x: vec4<u32>, i: u32) -> f16 {
    var words = x;
    return f16(unpack2x16float(words[(i >> 1u) & 3u] >> ((i & 1u) * 16u)).x);
}
// The four of an eight that starts at i.
fn four_of_eight(x: vec4<u32>, i: u32) -> vec4<f16> { return halves_of_words(select(x.xy, x.zw, (i & 4u) != 0u)); }
