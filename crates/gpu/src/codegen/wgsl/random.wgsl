// Threefry-2x32 with 20 rounds, the generator of every executor: the same key and counter give the same bits.
fn random_roundSFX(words: array<U, 2>, rotation: u32) -> array<U, 2> {
    let a = words[0] + words[1];
    let b = ((words[1] << U(rotation)) | (words[1] >> U(32u - rotation))) ^ a;
    return array<U, 2>(a, b);
}

fn random_firstSFX(key: vec2<u32>, counter: U) -> U {
    return random_wordsSFX(key, counter)[0];
}

fn random_secondSFX(key: vec2<u32>, counter: U) -> U {
    return random_wordsSFX(key, counter)[1];
}

// Uniform in [0, 1): 24 bits.
fn random_uniformSFX(bits: U) -> T {
    return T(bits >> U(8u)) * T(5.9604644775390625e-8);
}

fn random_foursSFX(words: array<U, 2>, r0: u32, r1: u32, r2: u32, r3: u32) -> array<U, 2> {
    return random_roundSFX(random_roundSFX(random_roundSFX(random_roundSFX(words, r0), r1), r2), r3);
}

fn random_wordsSFX(key: vec2<u32>, counter: U) -> array<U, 2> {
    let third = key.x ^ key.y ^ 0x1bd11bdau;
    var words = array<U, 2>(counter + U(key.x), U(key.y));
    words = random_foursSFX(words, 13u, 15u, 26u, 6u);
    words = array<U, 2>(words[0] + U(key.y), words[1] + U(third + 1u));
    words = random_foursSFX(words, 17u, 29u, 16u, 24u);
    words = array<U, 2>(words[0] + U(third), words[1] + U(key.x + 2u));
    words = random_foursSFX(words, 13u, 15u, 26u, 6u);
    words = array<U, 2>(words[0] + U(key.x), words[1] + U(key.y + 3u));
    words = random_foursSFX(words, 17u, 29u, 16u, 24u);
    words = array<U, 2>(words[0] + U(key.y), words[1] + U(third + 4u));
    words = random_foursSFX(words, 13u, 15u, 26u, 6u);
    return array<U, 2>(words[0] + U(third), words[1] + U(key.x + 5u));
}
