//! Data, what is learnt of it, rows, and the loss of preferences, on a tiny model.

use std::path::Path;
use volta::data::{DataLoader, Dataset};
use volta::models::Llm;
use volta::text::ChatMessage;
use volta::{Module, Tensor};
use volta_lm::finetune::{
    Example, PackedRows, Preferences, Said, Tokens, dpo_outcome, packed_outcome, read_examples, tokenize,
};
use volta_testing::test;

fn model() -> Llm {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../volta/tests/models/fixtures");
    Llm::load(fixtures.join("llama")).unwrap()
}

/// What is learnt, in pieces.
fn learnt(llm: &Llm, tokens: &Tokens) -> Vec<String> {
    let mut pieces: Vec<Vec<u32>> = vec![Vec::new()];
    for (&id, &learnt) in tokens.ids.iter().zip(&tokens.learnt) {
        match learnt {
            true => pieces.last_mut().unwrap().push(id as u32),
            false if !pieces.last().unwrap().is_empty() => pieces.push(Vec::new()),
            false => {}
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces.iter().map(|piece| llm.tokenizer.decode(piece)).collect()
}

fn whole(llm: &Llm, tokens: &Tokens) -> String {
    llm.tokenizer.decode(&tokens.ids.iter().map(|&id| id as u32).collect::<Vec<_>>())
}

#[test]
fn lines_are_told_apart_by_their_fields() {
    let lines = r#"{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}], "id": 7}

{"prompt": "1 + 1 =", "completion": " 2"}
{"text": "The river runs."}
{"prompt": [{"role": "user", "content": "Who?"}], "chosen": "I", "rejected": "You"}"#;
    let found = read_examples("data", lines).unwrap();
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 5]);
    assert_eq!(
        found[1].1,
        Example::Completion { prompt: Said::Text("1 + 1 =".into()), completion: Said::Text(" 2".into()) }
    );
    let Example::Preference { prompt, .. } = &found[3].1 else { panic!("{found:?}") };
    assert_eq!(prompt, &Said::Turns(vec![ChatMessage::new("user", "Who?")]));
}

#[test]
fn a_line_that_is_wrong_is_named_by_its_number() {
    for (line, expected) in [
        ("{\"text\": ", "no JSON"),
        ("[1]", "object"),
        ("{}", "no fields"),
        ("{\"question\": \"Who?\"}", "it has question"),
        ("{\"prompt\": \"Who?\"}", "it has prompt"),
        ("{\"text\": \"a\", \"prompt\": \"b\", \"completion\": \"c\"}", "one kind"),
        ("{\"text\": \"\"}", "not empty"),
        ("{\"text\": 5}", "text"),
        ("{\"prompt\": \"a\", \"completion\": \"\"}", "completion is empty"),
        ("{\"prompt\": 1, \"completion\": \"a\"}", "prompt must be"),
        ("{\"messages\": []}", "list of turns"),
        ("{\"messages\": [{\"role\": \"user\"}]}", "turn 1 of messages"),
        ("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", "no turn of the assistant"),
    ] {
        let error = read_examples("data", &format!("{{\"text\": \"a\"}}\n{line}\n")).unwrap_err();
        assert!(error.message().starts_with("data, line 2: "), "{error}");
        assert!(error.message().contains(expected), "{line}: {error}");
    }
    assert!(read_examples("data", "\n \n").unwrap_err().message().contains("nothing"));
}

#[test]
fn only_what_the_assistant_says_is_learnt() {
    let _alone = super::alone();
    let llm = model();
    let turn = ChatMessage::new;
    let chat = Example::Chat(vec![
        turn("user", "Hi"),
        turn("assistant", "The river?"),
        turn("user", "Who?"),
        turn("assistant", "A town."),
    ]);
    let pair =
        Example::Completion { prompt: Said::Text("Who?".into()), completion: Said::Text("A town.".into()) };
    let text = Example::Text("The river runs.".into());
    let examples = [(1, chat.clone()), (2, pair.clone()), (3, text)];
    let found = tokenize(&llm, "data", &examples, 500, false).unwrap();
    assert_eq!(learnt(&llm, &found.texts[0]), ["The river?<|im_end|>", "A town.<|im_end|>"]);
    assert_eq!(learnt(&llm, &found.texts[1]), ["A town.<|im_end|>"]);
    assert_eq!(learnt(&llm, &found.texts[2]), ["The river runs.<|im_end|>"]);
    // The tokens are those of the whole text, up to the end of the last answer's turn.
    let Example::Chat(turns) = &chat else { unreachable!() };
    let rendered = llm.template().unwrap().render(turns, false).unwrap();
    assert_eq!(whole(&llm, &found.texts[0]), rendered);
    assert_eq!(
        found.texts[0].ids,
        llm.tokenizer.encode(&rendered).iter().map(|&id| id as i32).collect::<Vec<_>>()
    );
    assert!(llm.tokenizer.decode(&found.prompt).ends_with("<|im_start|>assistant\n"));
    let plain = tokenize(&llm, "data", &[(1, pair)], 500, true).unwrap();
    assert_eq!(whole(&llm, &plain.texts[0]), "Who?A town.<|im_end|>");
    assert_eq!(learnt(&llm, &plain.texts[0]), ["A town.<|im_end|>"]);
    let error = tokenize(&llm, "data", &[(4, chat)], 500, true).unwrap_err();
    assert!(error.message().contains("line 4"), "{error}");
}

#[test]
fn what_is_too_long_is_cut_and_counted() {
    let _alone = super::alone();
    let llm = model();
    let of = |completion: &str| Example::Completion {
        prompt: Said::Text("What is the name of the town?".into()),
        completion: Said::Text(completion.into()),
    };
    let prompt = llm.prompt("What is the name of the town?").unwrap().len();
    let examples = [(1, of("1")), (2, of("the river the river the river"))];
    let found = tokenize(&llm, "data", &examples, prompt + 2, true).unwrap();
    assert_eq!((found.texts.len(), found.cut, found.left_out), (2, 1, 0));
    assert_eq!(found.longest(), prompt + 2);
    let found =
        tokenize(&llm, "data", &[(1, Example::Text("a b".into())), (2, of("1"))], prompt, true).unwrap();
    assert_eq!((found.texts.len(), found.cut, found.left_out), (1, 1, 1));
    assert!(tokenize(&llm, "data", &[(1, of("1"))], prompt, true).is_err());
    // Every token of a long text but the first is learnt once.
    let long = Example::Text("The river runs to the sea. ".repeat(9));
    let found = tokenize(&llm, "data", &[(1, long.clone())], 16, false).unwrap();
    let all = tokenize(&llm, "data", &[(1, long)], 5000, false).unwrap().texts.remove(0);
    let pieces: usize = found.texts.iter().map(|text| text.ids.len() - 1).sum();
    assert_eq!(pieces, all.ids.len() - 1);
    assert!(found.texts.iter().all(|text| text.ids.len() <= 16));
}

#[test]
fn rows_hold_every_text_once_and_cost_what_the_texts_cost_alone() {
    let _alone = super::alone();
    let llm = model();
    let text = |ids: std::ops::Range<i32>| Tokens { learnt: vec![true; ids.len()], ids: ids.collect() };
    let texts = [text(10..15), text(20..30), text(40..43), text(50..58)];
    let rows = PackedRows::new(&texts, 16, true);
    assert_eq!(rows.len(), 2);
    assert!((rows.filled() - 22.0 / 32.0).abs() < 1e-12);
    let mean = |rows: PackedRows| {
        let (mut sum, mut count) = (0.0, 0.0);
        for batch in DataLoader::over(rows, 1).try_iter() {
            let (x, y) = batch.unwrap();
            let outcome = packed_outcome(&llm, &x, &y).unwrap();
            let learnt = outcome.counted.unwrap().item::<f32>();
            sum += outcome.loss.item::<f32>() * learnt;
            count += learnt;
        }
        (sum / count, count)
    };
    let (packed, alone) = (mean(rows), mean(PackedRows::new(&texts, 16, false)));
    assert_eq!((packed.1, alone.1), (22.0, 22.0));
    assert!((packed.0 - alone.0).abs() < 1e-4 * alone.0, "{packed:?} {alone:?}");
}

/// log p of what is learnt of a text, from all logits.
fn by_hand(llm: &Llm, text: &Tokens) -> f64 {
    let length = text.ids.len();
    let tokens = Tensor::from_vec(text.ids[..length - 1].to_vec(), [1, length - 1]);
    let logits = volta::no_grad(|| llm.forward(&tokens)).to_vec::<f32>();
    let rows = logits.chunks_exact(llm.vocabulary()).zip(&text.ids[1..]).zip(&text.learnt[1..]);
    rows.filter(|(_, learnt)| **learnt)
        .map(|((row, &next), _)| {
            let all: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
            f64::from(row[next as usize]) - all.ln()
        })
        .sum()
}

#[test]
fn the_loss_of_preferences_is_that_of_its_formula() {
    let _alone = super::alone();
    let llm = model();
    let text = |ids: &[i32], first: usize| Tokens {
        ids: ids.to_vec(),
        learnt: (0..ids.len()).map(|k| k >= first).collect(),
    };
    let pairs = [
        [text(&[5, 6, 7, 8, 9, 10], 3), text(&[5, 6, 7, 30, 31], 3)],
        [text(&[40, 41, 42], 1), text(&[40, 50, 51, 52], 1)],
    ];
    let data = Preferences::new(&pairs, 8, 0);
    let found = data.reference(&llm, 1, |_| {}).unwrap();
    let hand: Vec<f64> = pairs.iter().flatten().map(|text| by_hand(&llm, text)).collect();
    for (found, hand) in found.iter().zip(&hand) {
        assert!((f64::from(*found) - hand).abs() < 1e-3, "{found} {hand}");
    }
    // Some other model stood at the beginning.
    let before = [-30.0, -28.5, -12.25, -31.0];
    let reference = Tensor::from_vec(before.map(|x| x as f32).to_vec(), [2, 2]);
    let beta = 0.3;
    let (x, y) = DataLoader::over(data, 2).try_iter().next().unwrap().unwrap();
    let outcome = dpo_outcome(&llm, &reference, beta, &x, &y).unwrap();
    let margin = |k: usize| beta * ((hand[2 * k] - before[2 * k]) - (hand[2 * k + 1] - before[2 * k + 1]));
    let expected = (0..2).map(|k| (1.0 + (-margin(k)).exp()).ln()).sum::<f64>() / 2.0;
    let found = f64::from(outcome.loss.item::<f32>());
    assert!((found - expected).abs() < 1e-3 * expected.max(1.0), "{found} {expected}");
    let right = (0..2).filter(|&k| margin(k) > 0.0).count() as f32 / 2.0;
    assert_eq!(outcome.metrics[0].1.item::<f32>(), right);
    // As it was, the model prefers neither.
    let own = Tensor::from_vec(hand.iter().map(|&x| x as f32).collect(), [2, 2]);
    let even = dpo_outcome(&llm, &own, beta, &x, &y).unwrap().loss.item::<f32>();
    assert!((even - std::f32::consts::LN_2).abs() < 1e-3, "{even}");
}
