//! A language model of characters in a short loop of one's own; `volta train` does the same with all comforts.
//!
//! `cargo run --release --example gpt -- --steps 300`

use clap::Parser;
use volta::data::{DataLoader, TokenWindows};
use volta::models::{Generation, Gpt, GptOptions};
use volta::optim::clip_grad_norm;
use volta::text::{Sampler, SamplerOptions, Tokenizer, TokenizerKind, TokenizerOptions, stories};
use volta::{AdamW, Device, Module, Result, manual_seed, set_default_device};

#[derive(Parser)]
struct Options {
    /// Training steps.
    #[arg(long, default_value_t = 300)]
    steps: usize,
    /// The width of the model.
    #[arg(long, default_value_t = 64)]
    width: usize,
}

fn main() -> Result<()> {
    let options = Options::parse();
    set_default_device(Device::auto());
    manual_seed(1);
    let text = stories(3, 100_000);
    let tokenizer = Tokenizer::train(TokenizerKind::Chars, &text, &TokenizerOptions::default())?;
    let tokens: Vec<i32> = tokenizer.encode(&text).into_iter().map(|t| t as i32).collect();
    let loader = DataLoader::over(TokenWindows::new(tokens, 64).at_random(16 * options.steps), 16);

    let shape = GptOptions {
        vocabulary: tokenizer.vocabulary_size(),
        context: 64,
        layers: 2,
        ..GptOptions::default()
    };
    let model = Gpt::new(GptOptions { width: options.width, ..shape });
    let mut adam = AdamW::new(model.parameters(), 3e-3, (0.9, 0.99), 1e-8, 0.1);
    for (step, (x, y)) in loader.iter().enumerate() {
        adam.zero_grad();
        let loss = model.loss(&x, &y);
        loss.backward();
        clip_grad_norm(adam.parameters(), 1.0);
        adam.step();
        if step % 50 == 0 || step + 1 == options.steps {
            println!("step {step:>4}  loss {:.3}", loss.item::<f32>());
        }
    }

    let mut writer =
        Generation::new(&model, Sampler::new(SamplerOptions { temperature: 0.7, ..Default::default() })?);
    writer.read(&tokenizer.encode("One "))?;
    let written: Vec<u32> = (0..150).map(|_| writer.write()).collect::<Result<_>>()?;
    println!("\nOne {}", tokenizer.decode(&written));
    Ok(())
}
