//! Runs that go on elsewhere: what a program without folders saves is what `volta train` saves, and the other way round.

use super::{Folder, ok, text, volta};
use pollster::block_on;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use volta::io::Weights;
use volta::text::{Corpus, SamplerOptions};
use volta::{Device, Tensor};
use volta_lm::{Config, Run, RunCheckpoint};
use volta_testing::test;

/// The random numbers are the whole program's: a run that is compared must be alone.
static RANDOM: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    RANDOM.lock().unwrap_or_else(PoisonError::into_inner)
}

const NAME: &str = "short-L1-H2-E16-cpu";

/// What both are told: a model that draws random numbers in every step, whose rate changes, and that is validated on the way.
const VALUES: [(&str, &str); 13] = [
    ("data", "short"),
    ("device", "cpu"),
    ("layers", "1"),
    ("width", "16"),
    ("heads", "2"),
    ("context", "16"),
    ("batch", "8"),
    ("dropout", "0.1"),
    ("warmup", "2"),
    ("valid-interval", "2"),
    ("checkpoint-interval", "3"),
    ("steps", "6"),
    ("sample-length", "5"),
];

fn train<'a>(command: &'a mut Command, more: &[&str]) -> &'a mut Command {
    command.arg("train").args(VALUES.map(|(key, value)| format!("--{key}={value}"))).args(more).arg("--quiet")
}

fn saved(folder: &Folder, step: u64) -> PathBuf {
    folder.0.join(format!("models/{NAME}/checkpoints/step-{step:08}.safetensors"))
}

fn config() -> Config {
    Config::given(&VALUES).unwrap()
}

fn corpus() -> Corpus {
    Corpus::load("short", &Default::default()).unwrap()
}

async fn steps(run: &mut Run, count: u64) {
    for _ in 0..count {
        run.step().await.unwrap().expect("a step is left");
    }
}

/// A checkpoint: its tensors' bits, and what it says beside them.
fn contents(bytes: Vec<u8>) -> (Vec<(String, Vec<f32>)>, String) {
    let weights = Weights::from_bytes(bytes).unwrap();
    let bits = |t: &Tensor| t.to_vec::<f32>();
    let tensors = weights.names().map(|name| {
        let tensor = weights.tensor(name, Device::Cpu).unwrap();
        (name.to_string(), bits(&tensor))
    });
    (tensors.collect(), weights.metadata()["state"].clone())
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The program and a run without a folder, three steps each, either first, and six by each alone: all the same to the bit.
#[test]
fn a_run_goes_on_in_a_tab_and_back_to_the_same_bits() {
    let _alone = alone();
    let folder = Folder::new("elsewhere");
    ok(&train(&mut volta(&folder), &[]).output().unwrap());
    let whole = contents(read(&saved(&folder, 6)));

    let alone = block_on(async {
        let mut run = Run::new(&config(), &corpus(), Device::Cpu).await.unwrap();
        assert_eq!(run.name(), NAME);
        steps(&mut run, 3).await;
        assert_eq!(folder.0.join("models").join(run.checkpoint_path()), saved(&folder, 3));
        let half = run.checkpoint().await.unwrap();
        // Looking changes nothing.
        run.writer("The", SamplerOptions::default()).unwrap().write().await.unwrap();
        run.validate().await.unwrap();
        run.set_log_every(2);
        steps(&mut run, 2).await;
        run.set_log_every(1);
        steps(&mut run, 1).await;
        assert_eq!(run.step().await.unwrap(), None);
        (half, run.checkpoint().await.unwrap())
    });
    let half = contents(alone.0.clone());
    assert_eq!(half, contents(read(&saved(&folder, 3))));
    assert_eq!(contents(alone.1).0, whole.0);

    let back = block_on(async {
        let checkpoint = RunCheckpoint::from_bytes(read(&saved(&folder, 3))).unwrap();
        assert_eq!((checkpoint.step(), checkpoint.name()), (3, NAME));
        let config = checkpoint.config().clone();
        let mut run = Run::resume(checkpoint, &config, &corpus(), Device::Cpu).await.unwrap();
        steps(&mut run, 3).await;
        (run.checkpoint().await.unwrap(), run.model_file().await.unwrap())
    });
    assert_eq!(contents(back.0).0, whole.0);
    std::fs::write(folder.0.join("models/tab.safetensors"), back.1).unwrap();
    let loss = |model: &str| {
        let said =
            ok(&volta(&folder).args(["eval", "--device=cpu", "--json", "--model", model]).output().unwrap());
        serde_json::from_str::<serde_json::Value>(said.trim()).unwrap()["loss"].as_f64().unwrap()
    };
    assert_eq!(loss("tab"), loss(NAME));
    ok(&volta(&folder)
        .args(["generate", "--device=cpu", "--length=5", "--model=tab", "The"])
        .output()
        .unwrap());

    let other = Folder::new("elsewhere-back");
    std::fs::create_dir_all(saved(&other, 3).parent().unwrap()).unwrap();
    std::fs::write(saved(&other, 3), alone.0).unwrap();
    ok(&train(&mut volta(&other), &["--resume"]).output().unwrap());
    assert_eq!(contents(read(&saved(&other, 6))), whole);
}

#[test]
fn a_run_from_elsewhere_goes_on_with_what_it_began_with_only() {
    let _alone = alone();
    let folder = Folder::new("elsewhere-changed");
    let checkpoint = block_on(async {
        let mut run = Run::new(&config(), &corpus(), Device::Cpu).await.unwrap();
        steps(&mut run, 1).await;
        run.checkpoint().await.unwrap()
    });
    std::fs::create_dir_all(saved(&folder, 1).parent().unwrap()).unwrap();
    std::fs::write(saved(&folder, 1), &checkpoint).unwrap();
    let refused = train(&mut volta(&folder), &["--resume", "--seed=4"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("seed = 4 (the flag --seed): it began with 0"));
    let resume = |config: Config, corpus: Corpus| {
        let saved = RunCheckpoint::from_bytes(checkpoint.clone()).unwrap();
        let error =
            block_on(Run::resume(saved, &config, &corpus, Device::Cpu)).err().expect("it has changed");
        error.message().to_string()
    };
    let said = resume(config().with(&[("seed", "4")]).unwrap(), corpus());
    assert!(said.contains("seed = 4 (the option seed): it began with 0"), "{said}");
    let said = resume(config(), Corpus::from_text("short", &corpus().train, 0.1).unwrap());
    assert!(said.contains("its text has changed"), "{said}");
}
