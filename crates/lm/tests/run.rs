//! Runs that are driven from outside: what a step tells, texts with probabilities, models that go on, what is refused. `finetune` is what
//! models of others learn.

#[cfg(feature = "finetune")]
#[path = "run/finetune.rs"]
mod finetune;

use pollster::block_on;
use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::text::{Corpus, SamplerOptions, TokenizerKind};
use volta::{Device, ErrorKind, Module, Tensor};
use volta_lm::{Config, Model, Run, RunCheckpoint, StepMetrics, StepPlan, Writer};
use volta_testing::test;

volta_testing::main!();

/// The random numbers are the whole program's: a run that is compared must be alone.
static RANDOM: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    RANDOM.lock().unwrap_or_else(PoisonError::into_inner)
}

const TINY: [(&str, &str); 7] = [
    ("layers", "1"),
    ("heads", "2"),
    ("width", "16"),
    ("context", "16"),
    ("batch", "4"),
    ("warmup", "0"),
    ("valid-interval", "3"),
];

fn config(more: &[(&str, &str)]) -> Config {
    Config::given(&[&TINY, more].concat()).unwrap()
}

fn corpus() -> Corpus {
    Corpus::load("short", &Default::default()).unwrap()
}

fn begun(config: &Config) -> Run {
    block_on(Run::new(config, &corpus(), Device::Cpu)).unwrap()
}

fn all(run: &mut Run) -> Vec<StepMetrics> {
    std::iter::from_fn(|| block_on(run.step()).unwrap()).collect()
}

fn weights(gpt: &impl Module) -> Vec<Vec<f32>> {
    gpt.parameters().iter().map(Tensor::to_vec::<f32>).collect()
}

#[test]
fn every_step_tells_what_was_read_then() {
    let _alone = alone();
    let mut run = begun(&config(&[("steps", "7")]));
    assert_eq!((run.total_steps(), run.parameters()), (7, volta::nn::num_parameters(&**run.gpt())));
    assert!(run.plan().is_some_and(|plan| plan.peak_bytes() > 0 && plan.kernels() > 0));
    let steps = all(&mut run);
    assert_eq!(steps.iter().map(|m| m.step).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert!(steps.iter().all(|m| m.loss.is_some_and(f64::is_finite) && m.learning_rate > 0.0));
    let validated: Vec<u64> = steps.iter().filter(|m| m.validation_loss.is_some()).map(|m| m.step).collect();
    // The last one is that of the end.
    assert_eq!(validated, [3, 6, 7]);
    assert!((block_on(run.validate()).unwrap() - steps[6].validation_loss.unwrap()).abs() < 1e-12);
    assert_eq!(block_on(run.step()).unwrap(), None);
}

#[test]
fn a_loss_that_is_read_less_often_is_the_mean_of_more_steps() {
    let _alone = alone();
    let (mut often, mut seldom) = (begun(&config(&[("steps", "6")])), begun(&config(&[("steps", "6")])));
    seldom.set_log_every(3);
    let losses: Vec<f64> = all(&mut often).iter().filter_map(|m| m.loss).collect();
    let means: Vec<f64> = all(&mut seldom).iter().filter_map(|m| m.loss).collect();
    assert_eq!((losses.len(), means.len()), (6, 2));
    for (mean, three) in means.iter().zip(losses.chunks(3)) {
        assert!((mean - three.iter().sum::<f64>() / 3.0).abs() < 1e-6);
    }
    assert_eq!(weights(&**often.gpt()), weights(&**seldom.gpt()));
}

#[test]
fn a_model_file_is_read_back_and_gone_on_with() {
    let _alone = alone();
    let mut run = begun(&config(&[("steps", "3"), ("tokenizer", "bytes")]));
    all(&mut run);
    for bytes in [block_on(run.model_file()).unwrap(), block_on(run.checkpoint()).unwrap()] {
        let model = Model::from_bytes(bytes, Device::Cpu).unwrap();
        assert_eq!(model.tokenizer.kind(), TokenizerKind::Bytes);
        assert_eq!(weights(&model.gpt), weights(&**run.gpt()));
        let next = Config::given(&[("from", "a model"), ("steps", "1"), ("batch", "4")]).unwrap();
        let next = block_on(Run::from_model(&next, &model, &corpus(), Device::Cpu)).unwrap();
        assert_eq!(weights(&**next.gpt()), weights(&model.gpt));
    }
}

#[test]
fn texts_come_token_by_token_with_what_the_model_gave_them() {
    let _alone = alone();
    let run = begun(&config(&[]));
    let write = |options: SamplerOptions| {
        let mut writer = run.writer("The", options).unwrap();
        let tokens: Vec<_> = (0..40).map(|_| block_on(writer.write()).unwrap()).collect();
        (tokens, writer.finish())
    };
    let (tokens, rest) = write(SamplerOptions { seed: 3, ..Default::default() });
    assert!(rest.is_empty() && tokens.iter().all(|t| t.probability > 0.0 && t.probability < 1.0));
    assert_eq!(write(SamplerOptions { seed: 3, ..Default::default() }).0, tokens);
    // The likeliest has the probability that softmax gives it.
    let ids: Vec<i32> = run.tokenizer().encode("The").iter().map(|&t| t as i32).collect();
    let logits = run.gpt().forward(&Tensor::from_vec(ids.clone(), [1, ids.len()]));
    let last = logits.narrow(1, ids.len() - 1, 1).flatten(0, -1).softmax(0).to_vec::<f32>();
    let (greedy, _) = write(SamplerOptions { temperature: 0.0, ..Default::default() });
    let most = last.iter().copied().fold(0.0, f32::max);
    assert_eq!(last[greedy[0].id as usize], most);
    assert!((greedy[0].probability - f64::from(most)).abs() < 1e-6);
}

#[test]
fn looking_at_weights_and_gradients_changes_nothing() {
    let _alone = alone();
    let dropping = config(&[("steps", "4"), ("dropout", "0.2")]);
    let mut plain = begun(&dropping);
    all(&mut plain);
    let mut watched = begun(&dropping);
    for _ in 0..4 {
        let reports = block_on(watched.weights(true)).unwrap();
        assert_eq!(reports.len(), watched.gpt().parameters().len());
        for report in reports {
            let count: u32 = report.values.counts.iter().sum();
            assert_eq!(count as usize, report.shape.iter().product::<usize>(), "{}", report.name);
            assert!(report.gradient.is_some_and(|g| g.non_finite == 0 && g.high > g.low), "{}", report.name);
        }
        block_on(watched.step()).unwrap();
    }
    assert_eq!(weights(&**watched.gpt()), weights(&**plain.gpt()));
    assert!(block_on(watched.weights(false)).unwrap().iter().all(|report| report.gradient.is_none()));
}

#[test]
fn a_text_that_is_written_between_steps_draws_nothing_of_the_runs() {
    let _alone = alone();
    let dropping = config(&[("steps", "3"), ("dropout", "0.2")]);
    let mut plain = begun(&dropping);
    all(&mut plain);
    let mut run = begun(&dropping);
    let (gpt, tokenizer) = (run.gpt().clone(), run.tokenizer().clone());
    let mut writer = Writer::new(&gpt, &tokenizer, "The", SamplerOptions::default()).unwrap();
    while let Some(_step) = block_on(run.step()).unwrap() {
        block_on(writer.write()).unwrap();
    }
    assert_eq!(weights(&**run.gpt()), weights(&**plain.gpt()));
}

#[test]
fn a_writer_without_a_prompt_begins_a_line() {
    let _alone = alone();
    let run = begun(&config(&[]));
    let mut writer = Writer::new(run.gpt(), run.tokenizer(), "", SamplerOptions::default()).unwrap();
    block_on(writer.write()).unwrap();
}

#[test]
fn attention_looks_back_only_and_its_rows_sum_to_one() {
    let _alone = alone();
    for positions in ["learned", "rotary"] {
        let run = begun(&config(&[("positions", positions), ("layers", "2")]));
        let tokens = Tensor::from_vec(vec![1, 2, 3, 4], [1, 4]);
        let weights = run.gpt().attention(&tokens, 1, 1).to_vec::<f32>();
        for (at, row) in weights.chunks(4).enumerate() {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row[at + 1..].iter().all(|&w| w == 0.0));
        }
        let error = run.gpt().try_attention(&tokens, 2, 0).unwrap_err();
        assert!(error.message().contains("there is no layer 2"), "{error}");
    }
}

#[test]
fn what_a_step_needs_is_known_before_there_is_a_text() {
    let _alone = alone();
    let config = config(&[("steps", "1")]);
    let run = begun(&config);
    let estimate = StepPlan::estimate(&config, run.tokenizer().vocabulary_size(), Device::Cpu).unwrap();
    let (estimate, plan) = (estimate.unwrap(), run.plan().unwrap());
    assert_eq!((estimate.kernels(), estimate.peak_bytes()), (plan.kernels(), plan.peak_bytes()));
}

#[test]
fn what_is_no_run_is_refused_with_a_reason() {
    let _alone = alone();
    let message = |error: volta::Error| error.message().to_string();
    let short = Corpus::from_text("text", "too short", 0.0).unwrap();
    let error = block_on(Run::new(&config(&[]), &short, Device::Cpu)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(message(error).contains("context = 16 (the option context): is longer than the training data"));
    let mut run = begun(&config(&[("steps", "2")]));
    block_on(run.step()).unwrap();
    let model = block_on(run.model_file()).unwrap();
    let said = message(RunCheckpoint::from_bytes(model.clone()).unwrap_err());
    assert!(said.contains("no checkpoint"), "{said}");
    for bytes in [Vec::new(), vec![1; 100], model[..model.len() / 2].to_vec()] {
        assert!(RunCheckpoint::from_bytes(bytes.clone()).is_err());
        assert!(Model::from_bytes(bytes, Device::Cpu).is_err());
    }
}

#[test]
fn numbers_that_are_not_finite_end_a_run() {
    let _alone = alone();
    let mut run =
        begun(&config(&[("steps", "50"), ("learning-rate", "10"), ("clip", "0"), ("optimizer", "sgd")]));
    let error = loop {
        match block_on(run.step()) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it has not diverged"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NonFinite);
    assert!(error.message().contains("the training has diverged"), "{error}");
}
