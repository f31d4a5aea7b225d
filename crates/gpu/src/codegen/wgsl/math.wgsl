// Elementwise functions, each in a block of its own between blank lines.
//
// Written once for one lane and for four: T stands for f32 or vec4<f32>, U, I and B for the same of u32, i32
// and bool, P for a pair of T that is read by [0] and [1]; names end in SFX, which is nothing or 4. A block
// whose name has no SFX is taken as it is. A function that ends in _i has an I of i64 where it is asked for
// with _l instead.
//
// Rules that every block keeps, since a driver may take products and sums together, may not have a fused fma,
// may reassociate sums, and may hold that there is no NaN:
// - what must be exact is exact with and without fusing: factors have 12 bits each, or one is a power of two;
// - (a + b) - b may become a: a sum that is to be taken apart again first loses low bits by a mask;
// - (a + n b) + n c may become a + n (b + c): a mask that takes nothing off n makes another n of it;
// - x < y ? x : y may become min(x, y), which drops a NaN: NaN passes through arithmetic, or is found by its
//   bits.

// The polynomials are minimax fits (Remez exchange).

// A NaN, kept from being evaluated before it runs: WGSL has no constants that are not finite.
fn m_nanSFX() -> T {
    var bits = 0x7fc00000u;
    return T(bitcast<f32>(bits));
}

fn m_infSFX() -> T {
    var bits = 0x7f800000u;
    return T(bitcast<f32>(bits));
}

fn m_is_nanSFX(x: T) -> B {
    return (bitcast<U>(x) & U(0x7fffffffu)) > U(0x7f800000u);
}

// The size of x with the sign of y.
fn m_copysignSFX(x: T, y: T) -> T {
    return bitcast<T>((bitcast<U>(x) & U(0x7fffffffu)) | (bitcast<U>(y) & U(0x80000000u)));
}

// The first 12 significant bits of x; the others, x - m_head(x), are 12 again.
fn m_headSFX(x: T) -> T {
    return bitcast<T>(bitcast<U>(x) & U(0xfffff000u));
}

// 2^n for a whole n from -126 to 127, and 0 for -127; anything for others. Adding 1.5 * 2^23 + 127 leaves n +
// 127 in the low bits.
fn m_pow2SFX(n: T) -> T {
    return bitcast<T>(bitcast<U>(n + T(12583039.0)) << U(23u));
}

fn m_maxSFX(a: T, b: T) -> T {
    return select(select(max(a, b), b, m_is_nanSFX(b)), a, m_is_nanSFX(a));
}

fn m_minSFX(a: T, b: T) -> T {
    return select(select(min(a, b), b, m_is_nanSFX(b)), a, m_is_nanSFX(a));
}

fn m_reluSFX(x: T) -> T {
    return select(max(x, T(0.0)), x, m_is_nanSFX(x));
}

// Either zero gives 0, and so does NaN.
fn m_signSFX(x: T) -> T {
    let y = select(m_copysignSFX(T(1.0), x), T(0.0), x == T(0.0));
    return select(y, T(0.0), m_is_nanSFX(x));
}

// To the nearest, ties to even.
fn m_roundSFX(x: T) -> T {
    return round(x);
}

// a - q b without rounding, for a q that is nearly a / b; 0 where a is so small that parts of it are
// subnormal.
fn m_residualSFX(a: T, q: T, b: T) -> T {
    let qh = m_headSFX(q);
    let bh = m_headSFX(b);
    let ql = q - qh;
    let bl = b - bh;
    let r = fma(-ql, bh, fma(-qh, bl, fma(-ql, bl, fma(-qh, bh, a))));
    return select(r, T(0.0), abs(a) < T(1e-30));
}

// y + correction, but y itself where there is nothing to correct or the correction is not finite, as it is
// not where y is exact anyway: at zero, infinity and NaN.
fn m_correctedSFX(y: T, correction: T) -> T {
    let size = bitcast<U>(correction) & U(0x7fffffffu);
    return select(y, y + correction, (size - U(1u)) < U(0x7f7fffffu));
}

// a / b. Drivers multiply by a reciprocal, which is up to 2.5 units off, and may be zero for the largest b:
// those are first made smaller.
fn m_divSFX(a: T, b: T) -> T {
    let scale = select(T(1.0), T(0.25), abs(b) > T(4.2535296e37));
    let n = a * scale;
    let d = b * scale;
    let q = n / d;
    // A driver may hold that zero by anything is zero.
    return select(m_correctedSFX(q, m_residualSFX(n, q, d) * (T(1.0) / d)), m_nanSFX(), (a == T(0.0)) & (b == T(0.0)));
}

fn m_recipSFX(x: T) -> T {
    let y = T(1.0) / x;
    return m_correctedSFX(y, m_residualSFX(T(1.0), y, x) * y);
}

// Drivers take x / sqrt(x) from an approximation. What is missing is (x - y^2) / 2y.
fn m_sqrtSFX(x: T) -> T {
    let y = sqrt(x);
    let z = m_correctedSFX(y, m_residualSFX(x, y, y) * (T(0.5) / y));
    return select(select(z, m_nanSFX(), x < T(0.0)), x, x == T(0.0));
}

// 1 / sqrt(x); -inf for -0, as from a division by sqrt(-0).
fn m_rsqrtSFX(x: T) -> T {
    let y = inverseSqrt(x);
    let z = m_correctedSFX(y, fma(-(x * y), y, T(1.0)) * (T(0.5) * y));
    return select(select(z, m_nanSFX(), x < T(0.0)), m_copysignSFX(m_infSFX(), x), x == T(0.0));
}

// a / b for 1 <= b <= 2, cheaper than m_div.
fn m_ratioSFX(a: T, b: T) -> T {
    let inverse = T(1.0) / b;
    let q = a * inverse;
    return fma(fma(-q, b, a), inverse, q);
}

// e^x = 2^n e^r with |r| <= ln 2 / 2, but up to ln 2 in the last octave, since 2^128 is no f32; results far
// below the normal numbers are 0. ln 2 is taken in two parts: the first has 10 bits, so that its product with
// n is exact. e^r = 1 + r + r^2 Q(r), to 2^-29; its 1 is multiplied by 2^n apart, since a driver might add it
// to r first.
fn m_expSFX(x: T) -> T {
    let n = min(round(x * T(1.442695)), T(127.0));
    let r = fma(m_headSFX(n), T(0.00021219444), fma(n, T(-0.6933594), x));
    var q = fma(r, T(0.000232505045), T(0.00138388842));
    q = fma(r, q, T(0.00832678191));
    q = fma(r, q, T(0.0416680649));
    q = fma(r, q, T(0.166666999));
    q = fma(r, q, T(0.49999994));
    let s = m_pow2SFX(n);
    return select(fma(fma(r * r, q, r), s, s), T(0.0), x < T(-87.8));
}

// 2^x as e^x: 2^r for r from -1/2 to 1, to 2^-29.
fn m_exp2SFX(x: T) -> T {
    let n = min(round(x), T(127.0));
    let r = x - n;
    var y = fma(r, T(0.0000178738719), T(0.000153478511));
    y = fma(r, y, T(0.00133230968));
    y = fma(r, y, T(0.00961845275));
    y = fma(r, y, T(0.0555042177));
    y = fma(r, y, T(0.240226477));
    y = fma(r, fma(r, y, T(0.6931472)), T(1.0));
    return select(y * m_pow2SFX(n), T(0.0), x < T(-127.0));
}

// 2^r for |r| <= 1/2, to 2^-28.9.
fn m_exp2_partSFX(r: T) -> T {
    var y = fma(r, T(0.0001535334), T(0.0013398874));
    y = fma(r, y, T(0.009618438));
    y = fma(r, y, T(0.055503324));
    y = fma(r, y, T(0.24022648));
    return fma(r, fma(r, y, T(0.6931472)), T(1.0));
}

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1) with |r| <= ln 2 / 2, and e^r - 1 = r + r^2 Q(r), to 2^-31.9. Here 2^n
// is 2^h 2^k, since 2^128 is no f32, and r keeps what its last bits lost.
fn m_expm1SFX(x: T) -> T {
    let n = max(min(round(x * T(1.442695)), T(128.0)), T(-30.0));
    let high = fma(n, T(-0.6933594), x);
    let low = n * T(-0.00021219444);
    let t = high - low;
    let r = m_headSFX(t);
    let lost = (high - r) - low;
    var q = fma(t, T(0.00019845922), T(0.0013940893));
    q = fma(t, q, T(0.00833339));
    q = fma(t, q, T(0.04166636));
    q = fma(t, q, T(0.16666666));
    q = fma(t, q, T(0.5));
    let p = r + fma(t * t, q, lost);
    let half = floor(n * T(0.5));
    let h = m_pow2SFX(half);
    let y = fma(h, p, h - m_pow2SFX(half - n)) * m_pow2SFX(n - half);
    let bounded = select(select(y, T(-1.0), x < T(-20.0)), m_infSFX(), x > T(89.0));
    return select(bounded, x, x == T(0.0));
}

// tanh |x| = -t / (t + 2) with t = e^(-2|x|) - 1, which keeps its relative precision at zero. The fit of
// (e^r - 1 - r) / r^2 is good to 2^-27 of e^r - 1; tanh 10 rounds to one.
fn m_tanhSFX(x: T) -> T {
    let a = abs(x);
    let n = round(a * T(-2.88539));
    let r = fma(m_headSFX(n), T(0.00021219444), fma(n, T(-0.6933594), T(-2.0) * a));
    var q = fma(r, T(0.00138825132), T(0.00836658012));
    q = fma(r, q, T(0.0416672006));
    q = fma(r, q, T(0.166665435));
    q = fma(r, q, T(0.49999997));
    let s = m_pow2SFX(n);
    let t = fma(s, fma(r * r, q, r), s - T(1.0));
    let y = select(m_ratioSFX(t, t + T(2.0)), T(1.0), a > T(10.0));
    return m_copysignSFX(y, x);
}

// 1 / (1 + e^-x), from e^-|x| so that nothing overflows and small results stay precise.
fn m_sigmoidSFX(x: T) -> T {
    let e = m_expSFX(-abs(x));
    return m_ratioSFX(select(T(1.0), e, x < T(0.0)), T(1.0) + e);
}

// For what is rounded to halves: a driver's exponential is good to 3 + 2 |x| units of an f32.
fn m_rough_expSFX(x: T) -> T {
    return exp(x);
}

// Long before the exponential is infinite, the result is nothing to a half.
fn m_rough_sigmoidSFX(x: T) -> T {
    return select(T(1.0) / (T(1.0) + exp(-x)), T(0.0), x < T(-80.0));
}

// Exponent and mantissa of a positive number's bits: the mantissa from sqrt(1/2) to sqrt 2. The bits of a
// subnormal are, as an integer, the number in units of 2^-149.
fn m_splitSFX(bits: U) -> P {
    let tiny = bits < U(0x00800000u);
    let normal = select(bits, bitcast<U>(T(bits)), tiny);
    let b = normal - U(0x3f3504f3u);
    let e = T(bitcast<I>(b) >> U(23u)) - select(T(0.0), T(149.0), tiny);
    return P(e, bitcast<T>((b & U(0x007fffffu)) + U(0x3f3504f3u)));
}

// log(1 + f) - f, for 1 + f from sqrt(1/2) to sqrt 2, to 2^-27.4 of log(1 + f).
fn m_log_tailSFX(f: T) -> T {
    var p = fma(f, T(-0.07634633), T(0.12761645));
    p = fma(f, p, T(-0.13160156));
    p = fma(f, p, T(0.14201744));
    p = fma(f, p, T(-0.16623358));
    p = fma(f, p, T(0.20001228));
    p = fma(f, p, T(-0.2500082));
    p = fma(f, p, T(0.3333333));
    let ff = f * f;
    return fma(f * ff, p, T(-0.5) * ff);
}

// y, but the results of a logarithm at the ends of its domain: log 0 = -inf, log inf = inf, NaN below zero.
fn m_log_endsSFX(bits: U, y: T) -> T {
    let above = select(y, m_infSFX(), bits == U(0x7f800000u));
    let below = select(above, m_nanSFX(), bits > U(0x7f800000u));
    return select(below, -m_infSFX(), (bits & U(0x7fffffffu)) == U(0u));
}

fn m_logSFX(x: T) -> T {
    let bits = bitcast<U>(x);
    let split = m_splitSFX(bits);
    let e = split[0];
    let f = split[1] - T(1.0);
    let y = fma(e, T(0.6933594), f + fma(e, T(-0.00021219444), m_log_tailSFX(f)));
    return m_log_endsSFX(bits, y);
}

// log(1 + f) and log2(e) are sums of two with 12 bits in the first, so that the largest product is exact.
fn m_log2SFX(x: T) -> T {
    let bits = bitcast<U>(x);
    let split = m_splitSFX(bits);
    let f = split[1] - T(1.0);
    let t = m_log_tailSFX(f);
    let high = m_headSFX(f + t);
    let low = (f - high) + t;
    let y = fma(high, T(1.4423828125), fma(low, T(1.442695), high * T(0.000312228389))) + split[0];
    return m_log_endsSFX(bits, y);
}

// log(1 + x): what 1 + x lost by rounding is added back to the reduced argument. Where 1 + x needs no
// reduction that argument is x itself. Beyond an exponent of 126 what was lost is far below the last bit.
fn m_log1pSFX(x: T) -> T {
    let bits = bitcast<U>(T(1.0) + x) & U(0xfffffffeu);
    let u = bitcast<T>(bits);
    let lost = select(T(1.0) - (u - x), x - (u - T(1.0)), abs(x) < T(1.0));
    let split = m_splitSFX(bits);
    let e = split[0];
    let f = select((split[1] - T(1.0)) + lost * m_pow2SFX(-min(e, T(126.0))), x, e == T(0.0));
    let y = fma(e, T(0.6933594), f + fma(e, T(-0.00021219444), m_log_tailSFX(f)));
    return select(m_log_endsSFX(bits, y), x, x == T(0.0));
}

// Up to 0.92, x + x P(x^2), to 2^-26; beyond, 1 - 2^g(|x|) with g a fit to log2 erfc weighted by erfc, 2^-29
// of the result. erf 4 rounds to one.
fn m_erfSFX(x: T) -> T {
    let a = abs(x);
    let z = x * x;
    var p = fma(z, T(-0.0005999405), T(0.00499483));
    p = fma(z, p, T(-0.02676772));
    p = fma(z, p, T(0.11281846));
    p = fma(z, p, T(-0.37612498));
    p = fma(z, p, T(0.12837915));
    let near = fma(x, p, x);
    let b = min(a, T(4.0));
    var g = fma(b, T(0.00028267558), T(-0.004390417));
    g = fma(b, g, T(0.03206661));
    g = fma(b, g, T(-0.1499415));
    g = fma(b, g, T(-0.9192598));
    g = fma(b, g, T(-1.626892));
    g = fma(b, g, T(-0.00028230893));
    let n = round(g);
    let far = m_copysignSFX(T(1.0) - m_exp2_partSFX(g - n) * m_pow2SFX(n), x);
    return select(select(far, near, a < T(0.92)), x, m_is_nanSFX(x));
}

// Up to 1/2, 1 - erf x; beyond, e^(-x^2) R(t) with t = (|x| - 2) / (|x| + 2) and R a fit to erfc(x) e^(x^2), 2^-29 of it.
// The square is taken in two parts, since e^ makes its error large. erfc 10.1 rounds to zero.
fn m_erfcSFX(x: T) -> T {
    let a = min(abs(x), T(10.1));
    let t = m_divSFX(a - T(2.0), a + T(2.0));
    var r = fma(t, T(0.00014539636), T(0.000064018335));
    r = fma(t, r, T(-0.00097093085));
    r = fma(t, r, T(-0.0008537183));
    r = fma(t, r, T(0.0069956956));
    r = fma(t, r, T(0.0037338042));
    r = fma(t, r, T(-0.07897848));
    r = fma(t, r, T(0.24165815));
    r = fma(t, r, T(-0.42718586));
    r = fma(t, r, T(0.25539568));
    let high = bitcast<T>(bitcast<U>(a) & U(0xfffff000u));
    let far = m_expSFX(-high * high) * m_expSFX((high - a) * (high + a)) * r;
    let beyond = select(far, T(2.0) - far, x < T(0.0));
    return select(select(beyond, T(1.0) - m_erfSFX(x), a < T(0.5)), x, m_is_nanSFX(x));
}

// The upper 32 bits of the product of a number below 2^24 and any other.
fn m_product_above(a: u32, b: u32) -> u32 {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let cross = (a & 0xffffu) * (b >> 16u) + (low >> 16u);
    let other = (a >> 16u) * (b & 0xffffu) + (cross & 0xffffu);
    return (a >> 16u) * (b >> 16u) + (cross >> 16u) + (other >> 16u);
}

// For |x| >= 2^16: x less the nearest multiple of pi/2, and that multiple modulo 4 (Payne and Hanek). x is m
// 2^e with whole m; bits of 2/pi that would give multiples of 4 are left out, and of the others 96 are taken.
// The table is 2/pi after a word of zeros. Smaller x give anything.
fn m_far_angle(x: f32) -> vec2<f32> {
    var words = array<u32, 9>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
        0x3c439041u, 0xfe5163abu, 0xdebbc561u);
    let bits = bitcast<u32>(x);
    let m = (bits & 0x007fffffu) | 0x00800000u;
    let start = max((bits >> 23u) & 255u, 143u) - 120u;
    let word = start >> 5u;
    let shift = start & 31u;
    // In two steps, since a shift by 32 is none.
    let back = 31u - shift;
    let a = (words[word] << shift) | ((words[word + 1u] >> 1u) >> back);
    let b = (words[word + 1u] << shift) | ((words[word + 2u] >> 1u) >> back);
    let c = (words[word + 2u] << shift) | ((words[word + 3u] >> 1u) >> back);
    var low = m * b + m_product_above(m, c);
    var high = m * a + m_product_above(m, b) + select(0u, 1u, low < m * b);
    let iterations = (high + 0x20000000u) >> 30u;
    high -= iterations << 30u;
    let below = high >= 0x80000000u;
    if (below) {
        low = ~low + 1u;
        high = ~high + select(0u, 1u, low == 0u);
    }
    let quarter = fma(f32(high), 9.313225746154785e-10, f32(low) * 2.168404344971009e-19);
    let r = quarter * 1.5707964;
    let flip = below != (bits >= 0x80000000u);
    let n = select(iterations, 4u - iterations, bits >= 0x80000000u);
    return vec2<f32>(select(r, -r, flip), f32(n & 3u));
}

fn m_far_angle4(x: vec4<f32>) -> mat2x4<f32> {
    let a = m_far_angle(x.x);
    let b = m_far_angle(x.y);
    let c = m_far_angle(x.z);
    let d = m_far_angle(x.w);
    return mat2x4<f32>(a.x, b.x, c.x, d.x, a.y, b.y, c.y, d.y);
}

// sin(x + turns pi/2), with x reduced by n pi/2. pi/2 is taken in parts of 8 bits, so that their products
// with an n below 2^16 are exact. Fits on |r| <= pi/4: sine to 2^-28, cosine to 2^-33.
fn m_sin_turnedSFX(x: T, iterations: U) -> T {
    let far = abs(x) > T(100000.0);
    let n = round(x * T(0.63661975));
    let other = bitcast<T>(bitcast<U>(n) & U(0xffffff00u));
    var r = fma(n, T(-1.5703125), x);
    r = fma(other, T(-0.0004825592041015625), r);
    r = fma(n, T(-1.2665987014770508e-6), r);
    r = fma(other, T(-9.895302355289459e-10), r);
    r = fma(n, T(-2.563344e-12), r);
    var quadrant = bitcast<U>(n + T(12582912.0));
    if (any(far)) {
        let angle = m_far_angleSFX(x);
        r = select(r, angle[0], far);
        quadrant = select(quadrant, U(angle[1]), far);
    }
    quadrant += iterations;
    let z = r * r;
    let sine = fma(r * z, fma(z, fma(z, T(-0.0001951729), T(0.008332178)), T(-0.16666655)), r);
    let q = fma(z, fma(z, T(0.00002443846), T(-0.0013887368)), T(0.041666646));
    let cosine = T(1.0) - fma(z * z, -q, T(0.5) * z);
    let y = select(sine, cosine, (quadrant & U(1u)) == U(1u));
    let oriented = bitcast<T>(bitcast<U>(y) ^ ((quadrant & U(2u)) << U(30u)));
    return select(oriented, m_nanSFX(), (bitcast<U>(x) & U(0x7fffffffu)) >= U(0x7f800000u));
}

fn m_sinSFX(x: T) -> T {
    return select(m_sin_turnedSFX(x, U(0u)), x, x == T(0.0));
}

fn m_cosSFX(x: T) -> T {
    return m_sin_turnedSFX(x, U(1u));
}

// log2 of a positive number as a sum of two, the first of 12 bits: the exponent and s L(s^2), where
// s = (m - 1) / (m + 1) is a sum of two as well, and so is L's first coefficient, 2 / ln 2.
fn m_log2_pairSFX(a: T) -> P {
    let split = m_splitSFX(bitcast<U>(a));
    let e = split[0];
    let f = split[1] - T(1.0);
    let dh = m_headSFX(split[1] + T(1.0));
    let dl = split[1] - (dh - T(1.0));
    let inverse = T(1.0) / (dh + dl);
    let sh = m_headSFX(f * inverse);
    let sl = fma(-sh, dl, fma(-sh, dh, f)) * inverse;
    let s = sh + sl;
    // s^3 as a sum of two: s^2 is one of 12 bits and a rest.
    let zh = m_headSFX(s * s);
    let zl = fma(sh, sh, -zh) + (s + sh) * sl;
    let z = zh + zl;
    var l = fma(z, T(0.28290144), T(0.3199056));
    l = fma(z, l, T(0.41220927));
    l = fma(z, l, T(0.5770779));
    l = z * l;
    // 0.961… is one of 12 bits and a rest, too.
    let cube = sh * zh;
    let rest = fma(sl, zh, s * zl);
    let ch = m_headSFX(cube);
    let tail = fma((cube - ch) + rest, T(0.961669921875), (cube + rest) * (l + T(0.000126772238)));
    let th = ch * T(0.961669921875);
    let first = sh * T(2.884765625);
    let small = fma(sl, T(2.88539), fma(sh, T(0.000624456778), tail));
    let sum = m_headSFX(first + th);
    let lost = (first - sum) + th;
    let hi = m_headSFX(e + sum);
    return P(hi, ((e - hi) + sum) + (lost + small));
}

// x^y by C's rules for zeros, infinities, NaN and negative bases.
fn m_powSFX(x: T, y: T) -> T {
    let a = abs(x);
    let b = abs(y);
    let size = bitcast<U>(a);
    let l = m_log2_pairSFX(a);
    // 2^40 is enough to overflow with the number nearest to 1.
    let w = max(min(y, T(1099511627776.0)), T(-1099511627776.0));
    let wh = m_headSFX(w);
    let large = wh * l[0];
    let rest = fma(w - wh, l[0], w * l[1]);
    let t = large + rest;
    let n = round(max(min(t, T(130.0)), T(-152.0)));
    let half = floor(n * T(0.5));
    var p = m_exp2_partSFX((large - n) + rest) * m_pow2SFX(half) * m_pow2SFX(n - half);
    let positive = y > T(0.0);
    let zero = size == U(0u);
    let infinite = size == U(0x7f800000u);
    p = select(p, m_infSFX(), (t > T(129.0)) | (zero & !positive) | (infinite & positive));
    p = select(p, T(0.0), ((t < T(-151.0)) & !zero & !infinite) | (zero & positive) | (infinite & !positive));
    let whole = trunc(b) == b;
    let odd = whole & (trunc(T(0.5) * b) != T(0.5) * b);
    let sign = select(U(0u), bitcast<U>(x) & U(0x80000000u), odd);
    p = bitcast<T>(bitcast<U>(p) ^ sign);
    p = select(p, m_nanSFX(), ((x < T(0.0)) & !infinite & !whole) | m_is_nanSFX(x) | m_is_nanSFX(y));
    // 1^y and (-1)^(+-inf) are one, whatever y; so is x^0, whatever x.
    let unit = bitcast<U>(b) == U(0x7f800000u);
    return select(p, T(1.0), (bitcast<U>(b) == U(0u)) | (x == T(1.0)) | ((x == T(-1.0)) & unit));
}

// The bits of |a| mod |b|, exactly, and the whole part of |a| / |b| or, from 2^31, anything above; a and b
// are finite, b is not zero. Long division of the mantissas as integers, 8 bits a step.
fn m_long_division(a: f32, b: f32) -> vec2<u32> {
    let abits = bitcast<u32>(a) & 0x7fffffffu;
    let bbits = bitcast<u32>(b) & 0x7fffffffu;
    if (abits < bbits) {
        return vec2<u32>(abits, 0u);
    }
    let am = select(abits & 0x007fffffu, (abits & 0x007fffffu) | 0x00800000u, abits >= 0x00800000u);
    let bm = select(bbits & 0x007fffffu, (bbits & 0x007fffffu) | 0x00800000u, bbits >= 0x00800000u);
    let exponent = max(bbits >> 23u, 1u);
    var more = max(abits >> 23u, 1u) - exponent;
    var q = am / bm;
    var r = am - q * bm;
    while (more > 0u) {
        let step = min(more, 8u);
        r = r << step;
        let digits = r / bm;
        r -= digits * bm;
        q = select((q << step) + digits, 0x80000000u, q >= (0x80000000u >> step));
        more -= step;
    }
    if (r == 0u) {
        return vec2<u32>(0u, q);
    }
    let shifted = bitcast<u32>(f32(r)) + (exponent << 23u);
    // The remainder is r 2^(exponent - 150); where that is subnormal its bits are r shifted.
    let normal = shifted > 0x4b7fffffu;
    return vec2<u32>(select(r << min(exponent - 1u, 23u), shifted - 0x4b000000u, normal), q);
}

// a - b floor(a / b), with the sign of b; a zero has the sign of a.
fn m_mod(a: f32, b: f32) -> f32 {
    let abits = bitcast<u32>(a) & 0x7fffffffu;
    let bbits = bitcast<u32>(b) & 0x7fffffffu;
    if (abits >= 0x7f800000u || bbits > 0x7f800000u || bbits == 0u) {
        return m_nan();
    }
    var r = abits;
    if (bbits < 0x7f800000u) {
        r = m_long_division(a, b).x;
    }
    let oriented = bitcast<f32>(r | (bitcast<u32>(a) & 0x80000000u));
    let opposite = ((bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u) != 0u;
    return select(oriented, oriented + b, r != 0u && opposite);
}

fn m_mod4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(m_mod(a.x, b.x), m_mod(a.y, b.y), m_mod(a.z, b.z), m_mod(a.w, b.w));
}

// floor(a / b); a quotient of 2^31 or more is a whole number as it is.
fn m_floor_div(a: f32, b: f32) -> f32 {
    let abits = bitcast<u32>(a) & 0x7fffffffu;
    let bbits = bitcast<u32>(b) & 0x7fffffffu;
    let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
    if (bbits == 0u && abits != 0u && abits <= 0x7f800000u) {
        return bitcast<f32>(0x7f800000u | sign);
    }
    if (abits >= 0x7f800000u || bbits > 0x7f800000u || bbits == 0u) {
        return m_nan();
    }
    var parts = vec2<u32>(abits, 0u);
    if (bbits < 0x7f800000u) {
        parts = m_long_division(a, b);
    }
    if (parts.y >= 0x80000000u) {
        return m_div(a, b);
    }
    let q = parts.y + select(0u, 1u, parts.x != 0u && sign != 0u);
    return bitcast<f32>(bitcast<u32>(f32(q)) | sign);
}

fn m_floor_div4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let low = vec2<f32>(m_floor_div(a.x, b.x), m_floor_div(a.y, b.y));
    return vec4<f32>(low, m_floor_div(a.z, b.z), m_floor_div(a.w, b.w));
}

// Towards zero; zero where the divisor is zero. -1 is left to a negation, which wraps.
fn m_div_iSFX(a: I, b: I) -> I {
    let special = (b == I(0)) | (b == I(-1));
    let q = a / select(b, I(1), special);
    return select(select(q, I(0) - a, b == I(-1)), I(0), b == I(0));
}

// Rounded down; zero where the divisor is zero.
fn m_floor_div_iSFX(a: I, b: I) -> I {
    let q = m_div_iSFX(a, b);
    let r = a - q * b;
    return select(q, q - I(1), (r != I(0)) & ((r ^ b) < I(0)) & (b != I(0)));
}

// The remainder of m_floor_div_i, with the sign of b; zero where the divisor is zero.
fn m_mod_iSFX(a: I, b: I) -> I {
    let r = a - m_div_iSFX(a, b) * b;
    let oriented = select(r, r + b, (r != I(0)) & ((r ^ b) < I(0)));
    return select(oriented, I(0), b == I(0));
}

// The same of unsigned numbers, all of whose bits are digits.
fn m_floor_div_uSFX(a: U, b: U) -> U {
    return select(a / select(b, U(1u), b == U(0u)), U(0u), b == U(0u));
}

fn m_mod_uSFX(a: U, b: U) -> U {
    return select(a - m_floor_div_uSFX(a, b) * b, U(0u), b == U(0u));
}

fn m_pow_uSFX(a: U, b: U) -> U {
    var base = a;
    var e = b;
    var result = U(1u);
    while (any(e > U(0u))) {
        result = select(result, result * base, (e & U(1u)) == U(1u));
        base = base * base;
        e = e >> U(1u);
    }
    return result;
}

// By squaring, wrapping; a negative exponent truncates the reciprocal to zero unless the base is 1 or -1.
fn m_pow_iSFX(a: I, b: I) -> I {
    var base = a;
    var e = max(b, I(0));
    var result = I(1);
    while (any(e > I(0))) {
        result = select(result, result * base, (e & I(1)) == I(1));
        base = base * base;
        e = e >> U(1u);
    }
    let unit = select(I(0), I(1), a == I(1));
    let inverse = select(unit, I(1) - I(2) * (b & I(1)), a == I(-1));
    return select(result, inverse, b < I(0));
}
