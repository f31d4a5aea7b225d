//! The sampler: exact distributions, greedy picks, determinism, errors.

use volta::ErrorKind;
use volta::text::{Sampler, SamplerOptions};
use volta_testing::test;

fn sampler(options: SamplerOptions) -> Sampler {
    Sampler::new(options).unwrap()
}

fn plain() -> SamplerOptions {
    SamplerOptions::default()
}

/// Logits of these probabilities.
fn logits(probabilities: &[f64]) -> Vec<f32> {
    probabilities.iter().map(|p| p.ln() as f32).collect()
}

#[track_caller]
fn assert_distribution(options: SamplerOptions, logits: &[f32], recent: &[u32], expected: &[(u32, f64)]) {
    let found = sampler(options).distribution(logits, recent).unwrap();
    let tokens = |list: &[(u32, f64)]| list.iter().map(|&(token, _)| token).collect::<Vec<_>>();
    assert_eq!(tokens(&found), tokens(expected), "{found:?}");
    for (&(token, p), &(_, q)) in found.iter().zip(expected) {
        assert!((p - q).abs() < 1e-6, "token {token} has {p} instead of {q}");
    }
}

#[test]
fn without_options_the_models_probabilities_are_taken() {
    let logits = logits(&[0.1, 0.2, 0.3, 0.4]);
    assert_distribution(plain(), &logits, &[], &[(3, 0.4), (2, 0.3), (1, 0.2), (0, 0.1)]);
}

#[test]
fn temperature_sharpens_and_flattens() {
    let logits = logits(&[0.2, 0.8]);
    // Halving the temperature squares the odds; doubling it takes their root.
    let odds = |t: f32| SamplerOptions { temperature: t, ..plain() };
    assert_distribution(odds(0.5), &logits, &[], &[(1, 16.0 / 17.0), (0, 1.0 / 17.0)]);
    assert_distribution(odds(2.0), &logits, &[], &[(1, 2.0 / 3.0), (0, 1.0 / 3.0)]);
    assert_distribution(odds(1e-30), &logits, &[], &[(1, 1.0), (0, 0.0)]);
}

#[test]
fn top_k_keeps_the_likeliest_and_of_equals_the_first() {
    let top = |k| SamplerOptions { top_k: k, ..plain() };
    assert_distribution(top(2), &logits(&[0.1, 0.2, 0.3, 0.4]), &[], &[(3, 4.0 / 7.0), (2, 3.0 / 7.0)]);
    assert_distribution(top(2), &[1.0, 1.0, 1.0], &[], &[(0, 0.5), (1, 0.5)]);
    assert_distribution(top(9), &[1.0, 1.0], &[], &[(0, 0.5), (1, 0.5)]);
}

#[test]
fn top_p_keeps_the_fewest_that_reach_it() {
    let top = |p| SamplerOptions { top_p: p, ..plain() };
    let four = logits(&[0.1, 0.2, 0.3, 0.4]);
    assert_distribution(top(0.01), &four, &[], &[(3, 1.0)]);
    assert_distribution(top(0.5), &four, &[], &[(3, 4.0 / 7.0), (2, 3.0 / 7.0)]);
    assert_distribution(top(0.75), &four, &[], &[(3, 4.0 / 9.0), (2, 3.0 / 9.0), (1, 2.0 / 9.0)]);
    // After top_k, probabilities are those of what is left.
    let both = SamplerOptions { top_k: 2, top_p: 0.55, ..plain() };
    assert_distribution(both, &four, &[], &[(3, 1.0)]);
}

#[test]
fn top_p_of_a_large_vocabulary_is_that_of_a_full_sort() {
    let values: Vec<f32> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 4e6).collect();
    let found = sampler(SamplerOptions { top_p: 0.9, ..plain() }).distribution(&values, &[]).unwrap();
    let all = sampler(plain()).distribution(&values, &[]).unwrap();
    let mut mass = 0.0;
    let needed = all
        .iter()
        .take_while(|(_, p)| {
            let more = mass < 0.9;
            mass += p;
            more
        })
        .count();
    assert!(found.len() > 256 && found.len() < 5000, "{} tokens are no test", found.len());
    assert!(found.len().abs_diff(needed) <= 1, "{} instead of {needed}", found.len());
    assert!(found.iter().zip(&all).all(|(a, b)| a.0 == b.0), "not the likeliest");
}

#[test]
fn recent_tokens_become_less_likely_once() {
    let options = SamplerOptions { repetition_penalty: 2.0, ..plain() };
    let logits = [2.0, 2.0, -1.0, -1.0];
    let weights = [2f64.exp(), 1f64.exp(), (-2f64).exp(), (-1f64).exp()];
    let total: f64 = weights.iter().sum();
    let expected =
        [(0, weights[0] / total), (1, weights[1] / total), (3, weights[3] / total), (2, weights[2] / total)];
    // A recent token that the vocabulary does not have is no matter.
    assert_distribution(options, &logits, &[1, 2, 1, 99], &expected);
}

#[test]
fn temperature_zero_takes_the_likeliest_and_of_equals_the_first() {
    let mut greedy = sampler(SamplerOptions { temperature: 0.0, ..plain() });
    assert_eq!(greedy.pick(&[0.0, 3.0, 3.0, 1.0], &[]).unwrap(), 1);
    let mut penalised = sampler(SamplerOptions { temperature: 0.0, repetition_penalty: 2.0, ..plain() });
    assert_eq!(penalised.pick(&[0.0, 3.0, 2.5], &[1]).unwrap(), 2);
}

#[test]
fn tokens_of_minus_infinity_are_never_picked() {
    let mut sampler = sampler(SamplerOptions { temperature: 50.0, ..plain() });
    let logits = [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, 1.0];
    for _ in 0..200 {
        assert!([1, 3].contains(&sampler.pick(&logits, &[]).unwrap()));
    }
}

#[test]
fn picks_follow_the_distribution() {
    for options in
        [plain(), SamplerOptions { top_k: 3, ..plain() }, SamplerOptions { top_p: 0.85, ..plain() }]
    {
        let logits = logits(&[0.05, 0.15, 0.3, 0.5]);
        let mut sampler = sampler(SamplerOptions { seed: 11, ..options });
        let expected = sampler.distribution(&logits, &[]).unwrap();
        let draws = 20_000;
        let mut counts = [0f64; 4];
        for _ in 0..draws {
            counts[sampler.pick(&logits, &[]).unwrap() as usize] += 1.0;
        }
        for token in 0..4 {
            let p = expected.iter().find(|(t, _)| *t == token).map_or(0.0, |&(_, p)| p);
            // Five standard deviations of a count; the seed is fixed, so this holds or does not.
            let bound = 5.0 * (draws as f64 * p * (1.0 - p)).sqrt();
            let count = counts[token as usize];
            assert!((count - p * draws as f64).abs() <= bound, "token {token}: {count} of {draws}, p = {p}");
        }
    }
}

#[test]
fn a_seed_picks_the_same_and_another_seed_something_else() {
    let logits: Vec<f32> = (0..100).map(|i| (i % 7) as f32).collect();
    let draw = |seed| {
        let mut sampler = sampler(SamplerOptions { seed, top_p: 0.9, ..plain() });
        (0..50).map(|_| sampler.pick(&logits, &[]).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_ne!(draw(1), draw(1 << 40));
}

#[test]
fn options_out_of_their_range_are_named() {
    let table = [
        (SamplerOptions { temperature: -0.5, ..plain() }, "temperature is -0.5"),
        (SamplerOptions { temperature: f32::NAN, ..plain() }, "temperature is NaN"),
        (SamplerOptions { top_p: 0.0, ..plain() }, "top_p is 0; it must be more than 0 and at most 1"),
        (SamplerOptions { top_p: 1.5, ..plain() }, "top_p is 1.5"),
        (SamplerOptions { repetition_penalty: 0.0, ..plain() }, "repetition_penalty is 0"),
        (SamplerOptions { repetition_penalty: f32::INFINITY, ..plain() }, "repetition_penalty is inf"),
    ];
    for (options, expected) in table {
        let error = Sampler::new(options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.message().contains(expected), "{error}");
    }
}

#[test]
fn broken_logits_are_errors() {
    let mut sampler = sampler(plain());
    let error = sampler.pick(&[0.0, f32::NAN], &[]).unwrap_err();
    assert!(error.kind() == ErrorKind::NonFinite && error.message().contains("token 1 is NaN"), "{error}");
    assert_eq!(sampler.pick(&[f32::INFINITY], &[]).unwrap_err().kind(), ErrorKind::NonFinite);
    let error = sampler.pick(&[f32::NEG_INFINITY; 3], &[]).unwrap_err();
    assert!(error.message().contains("all 3 logits"), "{error}");
    assert!(sampler.pick(&[], &[]).is_err());
}
