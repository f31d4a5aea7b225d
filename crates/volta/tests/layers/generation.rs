//! Generation through a cache gives what the whole sequence gives.

use crate::array::{Array, array, real, tensor};
use crate::driver::{assert_close, fill, value_tolerance};
use volta::{
    AttentionMask, Module, MultiHeadAttention, MultiHeadOptions, Rotary, Tensor, TransformerDecoderLayer,
    TransformerEncoderLayer, TransformerOptions,
};
use volta_testing::test;

fn compare(what: &str, x: &Tensor, whole: &Tensor, mut next: impl FnMut(&Tensor) -> Tensor, cuts: &[usize]) {
    let mut at = 0;
    for &count in cuts {
        let found = next(&x.narrow(1, at, count));
        let expected = whole.narrow(1, at, count);
        assert_close(
            &format!("{what}: {count} from {at}"),
            &array(&found),
            &array(&expected),
            value_tolerance(),
        );
        assert!(!found.is_tracked());
        at += count;
    }
    assert_eq!(at, x.size(1));
}

#[test]
fn attention_through_a_cache_is_causal_attention() {
    let x = tensor(&Array::waves(&[2, 8, 8], 80));
    let plain = MultiHeadOptions::default();
    for (what, options) in [
        ("plain", plain),
        ("rotary", MultiHeadOptions { rotary: Some(Rotary::new()), ..plain }),
        ("shared keys", MultiHeadOptions { kv_heads: Some(2), rotary: Some(Rotary::new()), ..plain }),
    ] {
        let layer = MultiHeadAttention::with_options(8, 4, options);
        fill(&layer);
        let whole = layer.attend(&x, &x, &x, AttentionMask::causal());
        for cuts in [&[1; 8][..], &[3, 1, 1, 2, 1], &[8]] {
            let mut cache = layer.cache(2, 11);
            compare(what, &x, &whole, |x| layer.attend_cached(x, &mut cache), cuts);
            assert_eq!((cache.len(), cache.capacity()), (8, 11));
            // A second text in the same memory.
            cache.truncate(0);
            assert!(cache.is_empty());
            compare(what, &x, &whole, |x| layer.attend_cached(x, &mut cache), cuts);
        }
    }
}

#[test]
fn a_text_may_be_taken_back_to_a_position() {
    let layer = MultiHeadAttention::new(8, 2);
    fill(&layer);
    let x = tensor(&Array::waves(&[1, 6, 8], 80));
    let mut cache = layer.cache(1, 6);
    layer.attend_cached(&x, &mut cache);
    cache.truncate(4);
    let again = layer.attend_cached(&x.narrow(1, 4, 2), &mut cache);
    let whole = layer.attend(&x, &x, &x, AttentionMask::causal());
    assert_close("again", &array(&again), &array(&whole.narrow(1, 4, 2)), value_tolerance());
}

#[test]
fn transformer_layers_generate_what_they_give_for_the_whole() {
    let x = tensor(&Array::waves(&[2, 5, 8], 80));
    let memory = tensor(&Array::waves(&[2, 3, 8], 81));
    for norm_first in [false, true] {
        let rotary = Some(Rotary::new());
        let options = TransformerOptions { dim_feedforward: 12, norm_first, rotary, ..Default::default() };
        let layer = TransformerEncoderLayer::with_options(8, 2, options);
        layer.eval();
        fill(&layer);
        let mut cache = layer.self_attn.cache(2, 8);
        let whole = layer.run(&x, AttentionMask::causal());
        compare("encoder", &x, &whole, |x| layer.run_cached(x, &mut cache), &[2, 1, 1, 1]);

        let layer = TransformerDecoderLayer::with_options(8, 2, options);
        layer.eval();
        fill(&layer);
        let mut cache = layer.self_attn.cache(2, 8);
        let whole = layer.run(&x, &memory, AttentionMask::causal(), AttentionMask::default());
        let next = |x: &Tensor| layer.run_cached(x, &memory, &mut cache, AttentionMask::default());
        compare("decoder", &x, &whole, next, &[1, 1, 3]);
    }
}

#[test]
fn a_full_cache_is_an_error() {
    let layer = MultiHeadAttention::new(8, 2);
    layer.to_dtype(real());
    let x = tensor(&Array::waves(&[1, 3, 8], 80));
    let mut cache = layer.cache(1, 4);
    layer.attend_cached(&x, &mut cache);
    let (line, error) = (line!(), layer.try_attend_cached(&x, &mut cache).unwrap_err());
    assert!(error.message().contains("no room"), "{error}");
    assert_eq!((error.location().file(), error.location().line()), (file!(), line));
    assert_eq!(cache.len(), 3, "nothing was written");
    let wide = tensor(&Array::waves(&[2, 1, 8], 80));
    assert!(layer.try_attend_cached(&wide, &mut cache).is_err());
}
