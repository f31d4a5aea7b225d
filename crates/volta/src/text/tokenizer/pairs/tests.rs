//! Training and encoding give what the `tokenizers` crate gives, and are not slower on text without spaces.

use super::*;
use crate::text::stories;
use tokenizers::Tokenizer;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// What the crate makes of a text.
fn reference(text: &str, size: usize) -> Tokenizer {
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    tokenizer.with_decoder(Some(ByteLevel::default()));
    let trainer = BpeTrainer::builder()
        .vocab_size(size)
        .min_frequency(LEAST_FREQUENCY)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .show_progress(false)
        .build();
    tokenizer.train(&mut TrainerWrapper::from(trainer), text.split_inclusive('\n')).unwrap();
    tokenizer
}

fn trained(text: &str, size: usize) -> Arc<dyn Scheme> {
    train(text, Some(size), &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap()
}

/// Letters in an order that looks like none.
fn letters(count: usize, different: u32) -> String {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + ((state >> 16) % different) as u8)
    };
    (0..count).map(|_| next()).collect()
}

fn texts() -> Vec<String> {
    vec![
        stories(3, 40_000),
        letters(5_000, 3),
        letters(3_000, 2).replace("ab", "a "),
        "a".repeat(999),
        "ab\n\n\n   c\t\r\nabc  it's we'll".repeat(20),
        "中文字没有空格，但是有标点。日本語も🙂🙂é\u{301}".repeat(30),
        String::new(),
        " ".repeat(300),
    ]
}

#[test]
fn pairs_and_tokens_are_those_of_the_crate() {
    for (text, size) in texts().iter().zip([900, 400, 300, 300, 400, 500, 300, 270]) {
        let (own, theirs) = (trained(text, size), reference(text, size));
        assert_eq!(own.content().1, serde_json::to_value(&theirs).unwrap(), "{:.40?}", text);
        let plain = Encoder::of(&own.content().1).expect("what is trained here is plain");
        for other in texts() {
            assert_eq!(
                plain.encode(&other),
                theirs.encode_fast(&*other, false).unwrap().get_ids(),
                "{other:.40?}"
            );
        }
    }
}

#[test]
fn a_text_of_one_piece_is_learnt_and_encoded_piece_by_piece_or_not() {
    let text = letters(400_000, 12);
    let pairs = trained(&text, 2000);
    assert_eq!(pairs.size(), 2000);
    let tokens = pairs.encode(&text).unwrap();
    assert!(tokens.len() < text.len() / 2, "{}", tokens.len());
    let mut decoder = pairs.decoder();
    let start: String = tokens[..500].iter().map(|&id| decoder.push(id)).collect();
    assert!(text.starts_with(&start) && start.len() > 1000);
}

#[test]
fn training_tells_how_far_it_is_and_can_be_stopped() {
    let text = letters(2_000, 5);
    let mut heard = Vec::new();
    let stopped = train(&text, Some(400), &mut |found, most| {
        heard.push((found, most));
        if found < 300 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(stopped.unwrap().is_none());
    assert_eq!((heard[0], heard.last()), ((0, 400), Some(&(300, 400))));
}

#[test]
fn what_a_file_asks_for_beyond_pairs_is_left_to_the_crate() {
    let json = trained("some text, some more text", 270).content().1;
    assert!(Encoder::of(&json).is_some());
    let changed = |path: &str, value: Value| {
        let mut json = json.clone();
        *json.pointer_mut(path).unwrap() = value;
        Encoder::of(&json).is_some()
    };
    assert!(!changed("/normalizer", json!({"type": "NFC"})));
    assert!(!changed("/post_processor", json!({"type": "ByteLevel"})));
    assert!(!changed("/added_tokens", json!([{"id": 0, "content": "x"}])));
    assert!(!changed("/pre_tokenizer/add_prefix_space", json!(true)));
    assert!(!changed("/pre_tokenizer/use_regex", json!(false)));
    assert!(!changed("/pre_tokenizer/type", json!("Whitespace")));
    assert!(!changed("/model/dropout", json!(0.1)));
    assert!(!changed("/model/ignore_merges", json!(true)));
    assert!(!changed("/model/merges", json!([["a", "zz"]])));
    assert!(!changed("/model/vocab/a", json!("a")));
    // A pair that is merged before it is made.
    let json = trained(&letters(2_000, 4), 300).content().1;
    let mut merges = json["model"]["merges"].as_array().unwrap().clone();
    assert!(Encoder::of(&json).is_some());
    merges.reverse();
    let mut json = json;
    json["model"]["merges"] = merges.into();
    assert!(Encoder::of(&json).is_none());
}

/// As the crate encodes and decodes GPT-2's own file, with a text that ends in it.
#[test]
fn special_tokens_are_those_of_the_crate() {
    let mut json = trained(&stories(3, 20_000), 400).content().1;
    json["model"]["vocab"]["<|endoftext|>"] = 400.into();
    json["added_tokens"] = json!([{"id": 400, "content": "<|endoftext|>", "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": true, "special": true}]);
    json["post_processor"] = byte_level(json!({}), json!([]))["decoder"].clone();
    assert!(Pairs::of(&json).is_none());
    let (own, theirs) = (Pairs::with_special_tokens(&json).unwrap(), Foreign::read(&json).unwrap());
    let text = "The fox<|endoftext|><|endoftext|> a<|end é🙂<|endoftext|>";
    let tokens = own.encode(text).unwrap();
    assert_eq!(tokens, theirs.encode(text).unwrap());
    assert_eq!((own.size(), own.id("<|endoftext|>")), (theirs.size(), theirs.id("<|endoftext|>")));
    let decoded = |scheme: &dyn Scheme| {
        let mut decoder = scheme.decoder();
        let text: String = tokens.iter().map(|&id| decoder.push(id)).collect();
        text + &decoder.finish()
    };
    assert_eq!((decoded(&own), decoded(&theirs)), (text.to_string(), text.to_string()));
}
