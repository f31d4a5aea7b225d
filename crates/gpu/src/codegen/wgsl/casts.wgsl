// Casts of floats to integers as everywhere: towards zero, saturated, and NaN gives zero.
fn m_to_i32SFX(x: T) -> I {
    let y = I(clamp(x, T(-2147483648.0), T(2147483520.0)));
    return select(select(y, I(2147483647), x >= T(2147483648.0)), I(0), m_is_nanSFX(x));
}

fn m_to_u32SFX(x: T) -> U {
    let y = U(clamp(x, T(0.0), T(4294967040.0)));
    return select(select(y, U(4294967295u), x >= T(4294967296.0)), U(0u), m_is_nanSFX(x));
}

fn m_to_i64(x: f32) -> i64 {
    if (m_is_nan(x)) { return 0li; }
    if (x >= 9223372036854775808.0) { return 9223372036854775807li; }
    if (x <= -9223372036854775808.0) { return -9223372036854775807li - 1li; }
    return i64(x);
}

// Of both zeros no; of anything else, NaN included, yes.
fn m_is_trueSFX(x: T) -> B {
    return (bitcast<U>(x) & U(0x7fffffffu)) != U(0u);
}

// Drivers may hold that there is no NaN, and that x equals x: they are asked by the bits.
fn m_equalSFX(a: T, b: T) -> B {
    return (a == b) & !(m_is_nanSFX(a) | m_is_nanSFX(b));
}

fn m_less_equalSFX(a: T, b: T) -> B {
    return (a <= b) & !(m_is_nanSFX(a) | m_is_nanSFX(b));
}

// x - x and x / x, which drivers may hold to be 0 and 1.
fn m_differenceSFX(x: T) -> T {
    return select(T(0.0), m_nanSFX(), (bitcast<U>(x) & U(0x7f800000u)) == U(0x7f800000u));
}

fn m_quotientSFX(x: T) -> T {
    return select(T(1.0), m_nanSFX(), !m_is_trueSFX(x) | ((bitcast<U>(x) & U(0x7f800000u)) == U(0x7f800000u)));
}

// Both words of a number, without the sign of the lower one.
fn m_join_words(low: u32, high: u32) -> i64 {
    return (i64(bitcast<i32>(high)) << 32u) | (i64(low >> 16u) << 16u) | i64(low & 65535u);
}
