//! Language models: logits and greedy text are those of `transformers`, from a folder and from a GGUF file.

use super::files::{answers, distance, fixture, numbers, oracle};
use volta::models::{CausalLm, CausalLmOptions, Generation, LanguageModel, Llm};
use volta::text::{Sampler, SamplerOptions};
use volta::{Module, Tensor, no_grad};
use volta_testing::test;

/// How far logits may be off, as a share of the largest.
const TOLERANCE: f32 = 1e-4;

fn greedy() -> Sampler {
    Sampler::new(SamplerOptions { temperature: 0.0, ..SamplerOptions::default() }).unwrap()
}

/// Reads a model and compares all that the oracle of `name` says.
fn agrees(file: &str, name: &str) {
    let llm = Llm::load(fixture(file)).unwrap();
    let tokens = oracle(name, "tokens");
    let (given, logits) = (tokens.to_vec::<i32>(), oracle(name, "logits"));
    let device = volta::default_device();
    let found = no_grad(|| llm.forward(&tokens.to_device(device)));
    let shown = logits.size(1);
    let found = found.narrow(1, given.len() - shown, shown).to_vec::<f32>();
    let apart = distance(&found, &logits.to_vec::<f32>());
    assert!(apart < TOLERANCE, "{file}: logits are off by {apart}");
    // With a cache: some at once, and then token by token.
    let expected: Vec<u32> = oracle(name, "greedy").to_vec::<i32>().into_iter().map(|t| t as u32).collect();
    let mut text = Generation::new(&llm, greedy());
    let given: Vec<u32> = given.into_iter().map(|t| t as u32).collect();
    text.read(&given[..7]).unwrap();
    text.read(&given[7..]).unwrap();
    let written: Vec<u32> = expected.iter().map(|_| text.write().unwrap()).collect();
    assert_eq!(written, expected, "{file}");
}

/// The tokenizer gives the oracle's tokens.
fn cuts_alike(file: &str, name: &str) {
    let llm = Llm::load(fixture(file)).unwrap();
    for row in answers(name)["tokenizer"].as_array().unwrap() {
        let text = row["text"].as_str().unwrap();
        assert_eq!(llm.tokenizer.encode(text), numbers(&row["ids"]), "{file}: {text:?}");
        let whole = llm.tokenizer.try_encode_with_special_tokens(text).unwrap();
        assert_eq!(whole, numbers(&row["with_special"]), "{file}: {text:?}");
        assert_eq!(llm.tokenizer.decode(&numbers(&row["ids"])), row["decoded"].as_str().unwrap(), "{file}");
    }
}

macro_rules! folders {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            agrees(stringify!($name), stringify!($name));
            cuts_alike(stringify!($name), stringify!($name));
        }
    )*};
}

mod folder {
    use super::{agrees, cuts_alike};
    use volta_testing::test;
    folders! { llama llama3 mistral qwen2 qwen3 gemma2 gemma3 phi3 stablelm gpt2 }
}

mod gguf {
    use super::{agrees, cuts_alike};
    use volta_testing::test;
    macro_rules! files {
        ($($name:ident)*) => {$(
            #[test]
            fn $name() {
                agrees(concat!(stringify!($name), ".gguf"), stringify!($name));
                cuts_alike(concat!(stringify!($name), ".gguf"), stringify!($name));
            }
        )*};
    }
    files! { llama llama3 mistral qwen2 gemma3 phi3 }
}

#[test]
fn a_text_that_begins_alike_is_not_read_again() {
    let llm = Llm::load(fixture("llama")).unwrap();
    let mut text = Generation::new(&llm, greedy());
    text.read(&[5, 6, 7, 8, 9]).unwrap();
    text.write().unwrap();
    text.restart(&[5, 6, 7, 11, 12]).unwrap();
    let written: Vec<u32> = (0..6).map(|_| text.write().unwrap()).collect();
    let mut anew = Generation::new(&llm, greedy());
    anew.read(&[5, 6, 7, 11, 12]).unwrap();
    assert_eq!(written, (0..6).map(|_| anew.write().unwrap()).collect::<Vec<_>>());
}

#[test]
fn a_full_context_goes_on() {
    let llm = Llm::load(fixture("qwen3")).unwrap();
    let mut text = Generation::new(&llm, greedy());
    text.read(&[3; 40]).unwrap();
    // The context has 64 tokens.
    for _ in 0..60 {
        assert!(text.write().unwrap() < 300);
    }
}

#[test]
fn room_grows_with_the_text_and_changes_nothing() {
    volta::manual_seed(5);
    let options = CausalLmOptions { context: 700, vocabulary: 50, ..CausalLmOptions::default() };
    let model = CausalLm::new(options);
    for p in model.parameters() {
        p.assign(&(&p * 10.0));
    }
    let tokens: Vec<u32> = (0..610u32).map(|k| k * k % 50).collect();
    let mut cache = model.start();
    let logits = model.read(&tokens, &mut cache).unwrap();
    assert_eq!(cache.len(), 610);
    let row = Tensor::from_vec(tokens.iter().map(|&t| t as i32).collect::<Vec<_>>(), [1, 610]);
    let whole = no_grad(|| model.forward(&row)).narrow(1, 609, 1).to_vec::<f32>();
    assert!(distance(&logits.to_vec::<f32>(), &whole) < TOLERANCE);
}

#[test]
fn a_model_learns_with_a_loss_in_chunks_as_with_its_logits() {
    volta::manual_seed(6);
    let model = CausalLm::new(CausalLmOptions { vocabulary: 40, tied: true, ..CausalLmOptions::default() });
    let x = Tensor::randint(0, 40, [2, 9]);
    let y = Tensor::randint(0, 40, [2, 9]);
    let by_logits = volta::cross_entropy(&model.forward(&x).reshape([18, 40]), &y.reshape([18]));
    let in_chunks = model.loss(&x, &y);
    assert!((by_logits.item::<f32>() - in_chunks.item::<f32>()).abs() < 1e-5);
    in_chunks.backward();
    assert!(model.parameters().iter().all(|p| p.grad().is_some()));
}
