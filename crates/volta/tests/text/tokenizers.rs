//! Tokenizers of every kind: round trips, determinism, JSON, files, streams.

use volta::ErrorKind;
use volta::text::{Tokenizer, TokenizerKind, TokenizerOptions, stories};
use volta_testing::test;

/// Text with what breaks tokenizers: accents in one and in two characters, other scripts, emoji with joiners,
/// controls, quotation marks, the names of reserved tokens.
const ODD: &str = "Ünïcödé e\u{301} — 中文字符，日本語。 🙂👩\u{200D}🚀\u{FE0F} עברית \t\r\n\0 <pad> <unk> \"don't\" 3.14\u{A0}\u{10FFFF}";

const LOSSLESS: [TokenizerKind; 3] = [TokenizerKind::Chars, TokenizerKind::Bytes, TokenizerKind::Bpe];

fn train(kind: TokenizerKind, text: &str) -> Tokenizer {
    Tokenizer::train(kind, text, &TokenizerOptions::default()).unwrap()
}

fn limited(kind: TokenizerKind, text: &str, vocabulary: usize) -> Tokenizer {
    Tokenizer::train(kind, text, &TokenizerOptions { vocabulary: Some(vocabulary) }).unwrap()
}

#[test]
fn characters_bytes_and_pairs_give_back_the_text_they_were_given() {
    let story = stories(1, 3000);
    for kind in LOSSLESS {
        for text in ["", " ", "\n\n", "a", ODD, &story] {
            let tokenizer = train(kind, text);
            assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text, "{kind}");
        }
    }
}

#[test]
fn bytes_and_pairs_know_every_text_whatever_they_were_trained_on() {
    for kind in [TokenizerKind::Bytes, TokenizerKind::Bpe] {
        let tokenizer = train(kind, "only ascii here, only ascii");
        assert_eq!(tokenizer.decode(&tokenizer.encode(ODD)), ODD, "{kind}");
        assert_eq!(tokenizer.unknown(), None);
    }
}

#[test]
fn words_come_by_frequency_and_then_by_first_appearance() {
    let tokenizer = train(TokenizerKind::Words, "one two, two three; three four");
    let tokens: Vec<String> =
        (0..tokenizer.vocabulary_size() as u32).map(|id| tokenizer.token(id).unwrap()).collect();
    assert_eq!(tokens, ["<pad>", "<unk>", "two", "three", "one", ",", ";", "four"]);
    assert_eq!((tokenizer.pad(), tokenizer.unknown()), (Some(0), Some(1)));
    assert_eq!((tokenizer.id("four"), tokenizer.id("five"), tokenizer.token(8)), (Some(7), None, None));
}

#[test]
fn words_are_joined_as_one_would_write_them() {
    for text in [
        "The cat, the dog and the bird: they sang!",
        "\"May I have it?\" asked Mia. \"Yes,\" said Tom.",
        "It costs 3.50 (or less) at Tom's shop; don't wait.",
    ] {
        let tokenizer = train(TokenizerKind::Words, text);
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
    }
    let story = stories(2, 2000);
    let story = story.split("\n\n").next().unwrap();
    let tokenizer = train(TokenizerKind::Words, story);
    assert_eq!(tokenizer.decode(&tokenizer.encode(story)), story);
}

#[test]
fn unknown_words_and_characters_become_the_unknown_token() {
    let words = train(TokenizerKind::Words, "a b");
    assert_eq!(words.encode("a zebra b <unk> <pad>"), [2, 1, 3, 1, 0]);
    assert_eq!(words.decode(&[2, 1, 0, 3]), "a <unk> b");
    let chars = train(TokenizerKind::Chars, "ab");
    assert_eq!(chars.encode("azb"), [1, 0, 2]);
    assert_eq!(chars.decode(&[1, 0, 2]), "a\u{FFFD}b");
    assert_eq!(chars.pad(), None);
}

#[test]
fn a_limit_keeps_the_most_frequent() {
    let words = limited(TokenizerKind::Words, "a b b c c c", 4);
    assert_eq!(words.vocabulary_size(), 4);
    assert_eq!(words.encode("c b a"), [2, 3, 1]);
    let chars = limited(TokenizerKind::Chars, "zzzaab", 3);
    assert_eq!(
        (chars.vocabulary_size(), chars.id("a"), chars.id("z"), chars.id("b")),
        (3, Some(1), Some(2), None)
    );
    let pairs = limited(TokenizerKind::Bpe, &stories(1, 20_000), 300);
    assert_eq!(pairs.vocabulary_size(), 300);
}

#[test]
fn a_limit_too_small_is_an_error_that_says_what_is_needed() {
    for (kind, least) in TokenizerKind::ALL.into_iter().zip([3, 2, 256, 257]) {
        let options = TokenizerOptions { vocabulary: Some(least - 1) };
        let error = Tokenizer::train(kind, "text", &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.message().contains(&format!("at least {least}")), "{error}");
    }
}

#[test]
fn the_same_text_trains_the_same_tokenizer() {
    let text = stories(7, 30_000) + ODD;
    for kind in TokenizerKind::ALL {
        let first = limited(kind, &text, 400);
        assert_eq!(first.to_json(), limited(kind, &text, 400).to_json(), "{kind}");
    }
}

#[test]
fn json_gives_back_the_same_tokenizer() {
    let text = stories(3, 20_000) + ODD;
    for kind in TokenizerKind::ALL {
        for text in [text.as_str(), ""] {
            let tokenizer = train(kind, text);
            let again = Tokenizer::from_json(&tokenizer.to_json()).unwrap();
            assert_eq!(again, tokenizer);
            assert_eq!(again.kind(), kind);
            assert_eq!(again.vocabulary_size(), tokenizer.vocabulary_size());
            for sample in [text, ODD, "Who has the ball?"] {
                assert_eq!(again.encode(sample), tokenizer.encode(sample), "{kind}");
            }
            assert_eq!(again.to_json(), tokenizer.to_json(), "{kind}");
        }
    }
    assert_ne!(train(TokenizerKind::Words, "a b"), train(TokenizerKind::Words, "b a"));
}

#[test]
fn json_that_is_no_tokenizer_is_refused_with_the_reason() {
    let table = [
        ("", "must be JSON"),
        ("{\"a\": ", "must be JSON"),
        ("[1]", "must be a JSON object"),
        ("{\"a\": 1}", "no tokenizer"),
        ("{\"format\": \"volta tokenizer\"}", "\"version\" must be a number"),
        ("{\"format\": \"volta tokenizer\", \"version\": 2}", "a newer Volta wrote it"),
        ("{\"format\": \"volta tokenizer\", \"version\": 1}", "\"kind\" must be a string"),
        ("{\"format\": \"volta tokenizer\", \"version\": 1, \"kind\": \"x\"}", "of the kind \"x\""),
        ("{\"format\": \"volta tokenizer\", \"version\": 1, \"kind\": \"words\"}", "has no \"tokens\""),
        (
            "{\"format\": \"volta tokenizer\", \"version\": 1, \"kind\": \"words\", \"tokens\": [1]}",
            "must be a list of strings",
        ),
        (
            "{\"format\": \"volta tokenizer\", \"version\": 1, \"kind\": \"words\", \"tokens\": [\"a\", \"b\"]}",
            "must begin with",
        ),
        (
            "{\"format\": \"volta tokenizer\", \"version\": 1, \"kind\": \"words\", \
             \"tokens\": [\"<pad>\", \"<unk>\", \"a\", \"a\"]}",
            "\"a\" is there twice",
        ),
        (
            "{\"format\": \"volta tokenizer\", \"version\": 1, \"kind\": \"chars\", \"characters\": \"ba\"}",
            "must be in order",
        ),
        ("{\"model\": {\"type\": \"Nothing\"}}", "this tokenizer.json cannot be used"),
    ];
    for (json, expected) in table {
        let error = Tokenizer::from_json(json).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{json}");
        assert!(error.message().contains(expected), "{json}: {error}");
    }
}

/// A tokenizer.json as Hugging Face writes them: words of letters, merged.
const TOKENIZER_JSON: &str = r###"{
  "version": "1.0",
  "truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0},
  "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 7, "pad_type_id": 0, "pad_token": "[PAD]"},
  "added_tokens": [
    {"id": 7, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
  ],
  "normalizer": null,
  "pre_tokenizer": {"type": "Whitespace"},
  "post_processor": null,
  "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
  "model": {
    "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
    "end_of_word_suffix": "</w>", "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {"<unk>": 0, "a": 1, "b</w>": 2, "ab</w>": 3, "b": 4, "a</w>": 5, "ab": 6},
    "merges": [["a", "b</w>"], ["a", "b"]]
  }
}"###;

#[test]
fn a_tokenizer_json_is_read_and_kept() {
    let tokenizer = Tokenizer::from_json(TOKENIZER_JSON).unwrap();
    assert_eq!(tokenizer.kind(), TokenizerKind::Bpe);
    assert_eq!(tokenizer.vocabulary_size(), 8);
    assert_eq!((tokenizer.pad(), tokenizer.unknown()), (Some(7), Some(0)));
    // Neither cut to three tokens nor filled up to eight.
    assert_eq!(tokenizer.encode("ab a b aba"), [3, 5, 2, 6, 5]);
    assert_eq!(tokenizer.decode(&[3, 5, 2]), "ab a b");
    assert_eq!((tokenizer.id("ab</w>"), tokenizer.token(6).as_deref()), (Some(3), Some("ab")));
    let again = Tokenizer::from_json(&tokenizer.to_json()).unwrap();
    assert_eq!((again.encode("ab aba"), again.pad(), again.unknown()), (vec![3, 6, 5], Some(7), Some(0)));
}

#[test]
fn files_of_tokenizers_are_named_in_errors() {
    let folder = crate::corpora::TempFolder::new("tokenizer-files");
    let good = folder.write("tokenizer.json", TOKENIZER_JSON.as_bytes());
    assert_eq!(Tokenizer::from_file(good).unwrap().vocabulary_size(), 8);
    let bad = folder.write("bad.json", b"{");
    let error = Tokenizer::from_file(bad).unwrap_err();
    assert!(error.kind() == ErrorKind::Data && error.message().contains("bad.json"), "{error}");
    let error = Tokenizer::from_file(folder.path("none.json")).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("none.json"), "{error}");
}

#[test]
fn a_stream_shows_whole_characters_and_all_of_the_text() {
    let text = stories(1, 2000) + ODD;
    for kind in TokenizerKind::ALL {
        let tokenizer = train(kind, &text[..1500]);
        for sample in [ODD, &text, "", "🙂"] {
            let tokens = tokenizer.encode(sample);
            let mut stream = tokenizer.decode_stream();
            let mut shown = String::new();
            for &token in &tokens {
                let piece = stream.push(token);
                assert!(
                    kind == TokenizerKind::Chars || !piece.contains('\u{FFFD}'),
                    "{kind}: half a character"
                );
                shown += &piece;
            }
            shown += &stream.finish();
            assert_eq!(shown, tokenizer.decode(&tokens), "{kind}");
        }
    }
}

#[test]
fn a_character_that_never_ends_is_shown_at_the_end() {
    for kind in [TokenizerKind::Bytes, TokenizerKind::Bpe] {
        let tokenizer = train(kind, "");
        let tokens = tokenizer.encode("a🙂");
        let mut stream = tokenizer.decode_stream();
        let shown: String = tokens[..4].iter().map(|&token| stream.push(token)).collect();
        assert_eq!((shown.as_str(), stream.finish().as_str()), ("a", "\u{FFFD}"), "{kind}");
    }
}

#[test]
fn ids_outside_the_vocabulary_are_left_out() {
    for kind in TokenizerKind::ALL {
        let tokenizer = train(kind, "a b");
        let mut tokens = tokenizer.encode("a b");
        tokens.insert(1, 999_999);
        assert_eq!(tokenizer.decode(&tokens), "a b", "{kind}");
        assert_eq!(tokenizer.token(999_999), None);
    }
}

#[test]
fn bytes_have_names_that_lead_back_to_them() {
    let tokenizer = train(TokenizerKind::Bytes, "");
    for id in 0..256 {
        assert_eq!(tokenizer.id(&tokenizer.token(id).unwrap()), Some(id));
    }
    assert_eq!(
        (tokenizer.token(0xE2).as_deref(), tokenizer.id("<0xZZ>"), tokenizer.id("ab")),
        (Some("<0xE2>"), None, None)
    );
}

#[test]
fn kinds_have_names() {
    for kind in TokenizerKind::ALL {
        assert_eq!(kind.to_string().parse::<TokenizerKind>().unwrap(), kind);
    }
    let error = "wrds".parse::<TokenizerKind>().unwrap_err();
    assert!(error.message().contains("words, chars, bytes and bpe"), "{error}");
}
