//! The language model: every variant computes the same with and without its cache, and learns.

use volta::models::{Activation, Gpt, GptOptions, Norm, Positions};
use volta::{AdamW, Module, Tensor, manual_seed, no_grad};
use volta_testing::test;

fn small() -> GptOptions {
    GptOptions { vocabulary: 17, context: 12, layers: 2, heads: 2, width: 16, ..GptOptions::default() }
}

fn variants() -> Vec<GptOptions> {
    vec![
        small(),
        GptOptions { positions: Positions::Rotary, norm: Norm::Rms, ..small() },
        GptOptions { activation: Activation::SwiGlu, tied: true, ..small() },
    ]
}

fn tokens(length: usize) -> Tensor {
    let ids: Vec<i32> = (0..2 * length).map(|k| (k * k % 17) as i32).collect();
    Tensor::from_vec(ids, [2, length])
}

#[test]
fn the_cache_changes_nothing_but_the_cost() {
    manual_seed(1);
    for options in variants() {
        let model = Gpt::new(options);
        model.eval();
        // First values are so small that attention hardly looks at anything.
        for p in model.parameters() {
            p.assign(&(&p * 20.0));
        }
        let x = tokens(12);
        let whole = no_grad(|| model.forward(&x));
        let mut cache = model.cache(2);
        // Some at once, then one by one.
        let mut from = 0;
        for count in [4, 1, 2, 1, 1, 3] {
            let next = model.next(&x.narrow(1, from, count), &mut cache);
            from += count;
            assert_eq!(cache.len(), from);
            let expected = whole.narrow(1, from - 1, 1).squeeze(1);
            let distance = ((next - &expected).abs().max() / expected.abs().max()).item::<f32>();
            assert!(distance < 1e-4, "{options:?} after {from}: {distance}");
        }
    }
}

#[test]
fn a_causal_model_does_not_see_what_comes() {
    manual_seed(2);
    for options in variants() {
        let model = Gpt::new(options);
        let (a, b) = (tokens(12), Tensor::cat(&[&tokens(12).narrow(1, 0, 7), &Tensor::full([2, 5], 3)], 1));
        let early = |x: &Tensor| no_grad(|| model.forward(x)).narrow(1, 0, 7).to_vec::<f32>();
        assert_eq!(early(&a), early(&b));
    }
}

#[test]
fn tokens_after_the_first_few_compile_nothing() {
    let write = |count: i32| {
        let model = Gpt::new(GptOptions { context: 64, ..small() });
        model.eval();
        let mut cache = model.cache(1);
        for k in 0..count {
            model.try_next(&Tensor::from_vec(vec![k % 17], [1, 1]), &mut cache)?.try_realize()?;
        }
        Ok(())
    };
    write(3).unwrap();
    assert!(volta::plan_only(|| write(64)).unwrap().is_none(), "a position asked for a plan of its own");
}

#[test]
fn nothing_follows_no_tokens() {
    let model = Gpt::new(small());
    let none = Tensor::from_vec(Vec::<i32>::new(), [1, 0]);
    let error = model.try_next(&none, &mut model.cache(1)).expect_err("there is no last token").to_string();
    assert!(error.contains("there must be one at least"), "{error}");
}

#[test]
fn it_learns_a_pattern_by_heart() {
    manual_seed(3);
    for options in variants() {
        let model = Gpt::new(GptOptions { width: 32, ..options });
        let mut adam = AdamW::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
        let ids: Vec<i32> = (0..13).map(|k| [3, 1, 4, 1, 5, 9, 2, 6][k % 8]).collect();
        let all = Tensor::from_vec(ids, [1, 13]);
        let (x, y) = (all.narrow(1, 0, 12), all.narrow(1, 1, 12));
        let mut last = f32::NAN;
        for _ in 0..60 {
            adam.zero_grad();
            let loss = model.loss(&x, &y);
            loss.backward();
            adam.step();
            last = loss.item();
        }
        assert!(last < 0.1, "{options:?}: {last}");
    }
}

#[test]
fn a_tied_head_is_the_table_of_tokens() {
    let (free, tied) = (Gpt::new(small()), Gpt::new(GptOptions { tied: true, ..small() }));
    let count = |m: &Gpt| volta::nn::num_parameters(m);
    assert_eq!(count(&free) - count(&tied), 17 * 16);
}

#[test]
fn impossible_shapes_and_too_many_tokens_are_named() {
    let error = Gpt::try_new(GptOptions { heads: 3, ..small() }).err().unwrap();
    assert!(error.message().contains("16 does not divide into 3 heads"), "{error}");
    let error = Gpt::new(small()).try_forward(&tokens(13)).unwrap_err();
    assert!(error.message().contains("[2, 13]") && error.message().contains("12"), "{error}");
}

volta_testing::main!();
