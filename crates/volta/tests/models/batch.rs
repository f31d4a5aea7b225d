//! Many texts at once: each goes on as it would alone, whoever joins or leaves.

use super::files::{distance, fixture};
use volta::models::{LanguageModel, Llm, LlmBatch, LlmCache, TextId};
use volta_testing::test;

fn best(logits: &[f32]) -> u32 {
    (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32
}

fn read(llm: &Llm, tokens: &[u32]) -> (LlmCache, Vec<f32>) {
    let mut cache = llm.start();
    let logits = llm.read(tokens, &mut cache).unwrap().to_vec::<f32>();
    (cache, logits)
}

/// A prompt like no other.
fn prompt(number: u32) -> Vec<u32> {
    (0..3 + number * 2).map(|k| 3 + (k * k + 7 * number) % 200).collect()
}

/// The logits of each greedy step, alone.
fn alone(llm: &Llm, prompt: &[u32], count: usize) -> Vec<Vec<f32>> {
    let (mut cache, mut logits) = read(llm, prompt);
    let mut all = Vec::new();
    for _ in 0..count {
        logits = llm.read(&[best(&logits)], &mut cache).unwrap().to_vec::<f32>();
        all.push(logits.clone());
    }
    all
}

/// Texts that join one after the other, and leave after so many steps.
fn together(mut batch: LlmBatch<'_>, llm: &Llm, texts: u32, count: usize) -> Vec<Vec<Vec<f32>>> {
    let mut running: Vec<(u32, TextId, u32)> = Vec::new();
    let mut found = vec![Vec::new(); texts as usize];
    let mut next = 0;
    while next < texts || !running.is_empty() {
        if next < texts {
            let (cache, logits) = read(llm, &prompt(next));
            running.push((next, batch.join(&cache).unwrap(), best(&logits)));
            next += 1;
        }
        let tokens: Vec<(TextId, u32)> = running.iter().map(|&(_, id, token)| (id, token)).collect();
        for (logits, (number, _, token)) in batch.step(&tokens).unwrap().into_iter().zip(&mut running) {
            *token = best(&logits);
            found[*number as usize].push(logits);
        }
        running.retain(|&(number, id, _)| {
            let stays = found[number as usize].len() < count + number as usize;
            if !stays {
                batch.leave(id);
            }
            stays
        });
    }
    assert!(batch.is_empty());
    found
}

#[test]
fn each_text_goes_on_as_it_would_alone() {
    for name in ["llama", "gemma3", "gemma2", "phi3", "gpt2"] {
        let llm = Llm::load(fixture(name)).unwrap();
        let found = together(LlmBatch::new(&llm, 5), &llm, 5, 6);
        for (number, found) in (0..).zip(found) {
            let alone = alone(&llm, &prompt(number), found.len());
            for (step, (a, b)) in found.iter().zip(&alone).enumerate() {
                let apart = distance(a, b);
                assert!(apart < 1e-5, "{name}, text {number}, step {step}: off by {apart}");
                assert_eq!(best(a), best(b));
            }
        }
    }
}

#[test]
fn a_fixed_batch_gives_the_same_bits_to_one_text_as_to_many() {
    let llm = Llm::load(fixture("llama")).unwrap();
    let many = together(LlmBatch::new(&llm, 4).fixed(), &llm, 4, 8);
    for (number, found) in (0..).zip(many) {
        let mut batch = LlmBatch::new(&llm, 4).fixed();
        let (cache, logits) = read(&llm, &prompt(number));
        let (text, mut token) = (batch.join(&cache).unwrap(), best(&logits));
        for logits in found {
            assert_eq!(batch.step(&[(text, token)]).unwrap()[0], logits);
            token = best(&logits);
        }
    }
}

/// The tiny Llama with a longer context.
fn with_context(context: usize) -> Llm {
    let folder = std::env::temp_dir().join(format!("volta-batch-{context}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for entry in std::fs::read_dir(fixture("llama")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    let longer =
        config.replace("\"max_position_embeddings\": 64", &format!("\"max_position_embeddings\": {context}"));
    assert_ne!(config, longer);
    std::fs::write(folder.join("config.json"), longer).unwrap();
    let llm = Llm::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    llm
}

#[test]
fn texts_move_to_more_room_while_others_stay() {
    let llm = with_context(300);
    let (long, short) = ([5; 253], [7; 3]);
    let mut batch = LlmBatch::new(&llm, 2);
    let mut texts: Vec<(TextId, u32)> = [&long[..], &short[..]]
        .iter()
        .map(|prompt| {
            let (cache, logits) = read(&llm, prompt);
            (batch.join(&cache).unwrap(), best(&logits))
        })
        .collect();
    assert!(batch.join(&read(&llm, &short).0).unwrap_err().message().contains("must leave"));
    let expected = [alone(&llm, &long, 8), alone(&llm, &short, 8)];
    for step in 0..8 {
        let found = batch.step(&texts).unwrap();
        for ((text, logits), expected) in texts.iter_mut().zip(&found).zip(&expected) {
            assert!(distance(logits, &expected[step]) < 1e-5, "step {step}");
            text.1 = best(logits);
        }
    }
    // The longer one has 261 tokens, and goes on alone.
    batch.leave(texts[1].0);
    assert!(batch.step(&texts).is_err());
    assert_eq!(batch.step(&texts[..1]).unwrap().len(), 1);
}

#[test]
fn a_full_text_is_an_error_and_leaves_the_others_as_they_are() {
    let llm = Llm::load(fixture("qwen3")).unwrap();
    let mut batch = LlmBatch::new(&llm, 2);
    let (cache, _) = read(&llm, &[5; 64]);
    let full = batch.join(&cache).unwrap();
    let (cache, logits) = read(&llm, &[7; 3]);
    let other = batch.join(&cache).unwrap();
    let error = batch.step(&[(other, 1), (full, 1)]).unwrap_err();
    assert!(error.message().contains("64 tokens"), "{error}");
    let found = batch.step(&[(other, best(&logits))]).unwrap();
    assert!(distance(&found[0], &alone(&llm, &[7; 3], 1)[0]) < 1e-5);
}

#[test]
fn tokens_spell_the_text() {
    for name in ["llama", "qwen3", "mistral", "mistral.gguf", "gpt2"] {
        let llm = Llm::load(fixture(name)).unwrap();
        let text = "The river née 中 1984!\n";
        let tokens = llm.tokenizer.try_encode(text).unwrap();
        let bytes: Vec<u8> = tokens.iter().flat_map(|&t| llm.tokenizer.token_bytes(t).unwrap()).collect();
        let spelled = String::from_utf8(bytes).unwrap();
        assert_eq!(spelled.trim_start(), text, "{name}");
    }
}
