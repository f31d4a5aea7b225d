//! Checkpoints: every part comes back to the bit, and what is not one is an error that says why.

use crate::scratch::Scratch;
use volta::io::Metadata;
use volta::{
    Checkpoint, CheckpointFolder, Device, ErrorKind, Linear, Module, Result, RngState, State, StateDict,
    Stateful, Tensor, Value, Weights, save_safetensors,
};
use volta_testing::test;

/// Something with all kinds of state.
struct Part(State);

impl Stateful for Part {
    fn state(&self) -> State {
        self.0.clone()
    }

    fn load_state(&mut self, state: &State) -> Result<()> {
        state.int("steps")?;
        self.0 = state.clone();
        Ok(())
    }
}

fn part() -> Part {
    let state = State::new()
        .with("steps", i64::MIN)
        .with("rate", 0.1)
        .with("worst", f64::NEG_INFINITY)
        .with("nothing", f64::NAN)
        .with("whole", 1.0)
        .with("name", "a \"name\" \u{0} \u{1F980}")
        .with_tensor("0.exp_avg", Tensor::vector(&[1.0, f32::NAN, -0.0]))
        .with_tensor("deep.mask", Tensor::vector(&[1.0, 0.0]).gt(0.5));
    Part(state)
}

fn bits(state: &State, name: &str) -> u64 {
    state.float(name).unwrap().to_bits()
}

#[test]
fn every_part_comes_back_to_the_bit() {
    let scratch = Scratch::new("parts");
    let path = scratch.file("last.safetensors");
    let net = Linear::new(3, 2, true);
    let saved = Checkpoint::new()
        .with_module("model", &net)
        .with("optimizer", &part())
        .with("rng", &RngState::save())
        .with_value("epoch", 7)
        .with_value("loss", 0.1 + 0.2)
        .with_value("note", "so far");
    saved.save(&path).unwrap();
    let loaded = Checkpoint::load(&path).unwrap();
    assert_eq!(loaded.parts().collect::<Vec<_>>(), ["model", "optimizer", "rng"]);
    assert_eq!(loaded.int("epoch").unwrap(), 7);
    assert_eq!(loaded.float("loss").unwrap().to_bits(), (0.1f64 + 0.2).to_bits());
    assert_eq!(loaded.text("note").unwrap(), "so far");

    let (before, mut after) = (part().0, Part(State::new()));
    loaded.restore("optimizer", &mut after).unwrap();
    let after = after.0;
    assert_eq!(after.values.keys().collect::<Vec<_>>(), before.values.keys().collect::<Vec<_>>());
    assert_eq!(after.values["steps"], Value::Int(i64::MIN));
    assert_eq!(after.values["whole"], Value::Float(1.0), "a float stays one");
    assert_eq!(after.values["name"], before.values["name"]);
    for name in ["rate", "worst", "nothing"] {
        assert_eq!(bits(&after, name), bits(&before, name));
    }
    assert_eq!(after.tensors.names().collect::<Vec<_>>(), ["0.exp_avg", "deep.mask"]);
    let numbers = after.tensor("0.exp_avg").unwrap().to_vec::<f32>();
    assert_eq!(numbers.map_bits(), [1.0, f32::NAN, -0.0].to_vec().map_bits());
    assert_eq!(after.tensor("deep.mask").unwrap().to_vec::<bool>(), [true, false]);

    let other = Linear::new(3, 2, true);
    loaded.restore_module("model", &other).unwrap();
    assert_eq!(other.parameters()[0].to_vec::<f32>(), net.parameters()[0].to_vec::<f32>());
}

trait MapBits {
    fn map_bits(self) -> Vec<u32>;
}

impl MapBits for Vec<f32> {
    fn map_bits(self) -> Vec<u32> {
        self.into_iter().map(f32::to_bits).collect()
    }
}

#[test]
fn a_part_is_kept_as_it_is_when_it_is_added() {
    let net = Linear::new(2, 1, false);
    let before = net.parameters()[0].to_vec::<f32>();
    let checkpoint = Checkpoint::new().with_module("model", &net);
    net.parameters()[0].assign(&Tensor::zeros([1, 2]));
    let bytes = checkpoint.to_bytes().unwrap();
    Checkpoint::from_bytes(bytes).unwrap().restore_module("model", &net).unwrap();
    assert_eq!(net.parameters()[0].to_vec::<f32>(), before);
}

#[test]
fn the_random_state_is_a_part_like_others() {
    let mut rng = RngState::save();
    let checkpoint = Checkpoint::new().with("rng", &rng);
    let saved = rng;
    let other = State::new().with("seed", -1).with("drawn", 5);
    rng.load_state(&other).unwrap();
    assert_ne!(rng, saved);
    assert_eq!(rng.state().values, other.values);
    checkpoint.restore("rng", &mut rng).unwrap();
    assert_eq!(rng, saved);
    assert!(rng.load_state(&State::new()).is_err());
    assert_eq!(rng, saved, "after an error nothing has changed");
}

#[test]
fn what_does_not_fit_is_an_error_that_names_the_part() {
    let checkpoint =
        Checkpoint::new().with_module("model", &Linear::new(3, 2, true)).with("optimizer", &part());
    let wider = Linear::new(4, 2, true);
    let error = checkpoint.restore_module("model", &wider).unwrap_err();
    assert!(error.message().contains("part \"model\"") && error.message().contains("[2, 4]"), "{error}");
    assert_eq!((error.op(), error.location().file()), ("Checkpoint::restore_module", file!()));
    let error = checkpoint.restore("model", &mut part()).unwrap_err();
    assert!(error.message().contains("part \"model\"") && error.message().contains("\"steps\""), "{error}");
    let error = checkpoint.restore("scheduler", &mut part()).unwrap_err();
    assert!(error.message().contains("\"scheduler\"; it has model, optimizer"), "{error}");
    assert!(checkpoint.int("epoch").unwrap_err().message().contains("\"epoch\""));
}

#[test]
fn parts_whose_names_run_together_are_refused_when_they_clash() {
    let one = State::new().with_tensor("b.c", Tensor::zeros([1]));
    let two = State::new().with_tensor("c", Tensor::ones([1]));
    let clash = Checkpoint::new().with("a", &Part(one.clone())).with("a.b", &Part(two));
    let error = clash.to_bytes().unwrap_err();
    assert!(error.kind() == ErrorKind::Argument && error.message().contains("\"a.b.c\""), "{error}");
    let apart = Checkpoint::new().with("a", &Part(one)).with("a.b", &Part(State::new().with("x", 1)));
    let loaded = Checkpoint::from_bytes(apart.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.state("a").unwrap().tensors.names().collect::<Vec<_>>(), ["b.c"]);
    assert!(loaded.state("a.b").unwrap().tensors.is_empty());
}

#[test]
fn a_checkpoint_is_a_safetensors_file_for_others() {
    let bytes = Checkpoint::new().with("optimizer", &part()).to_bytes().unwrap();
    let weights = Weights::from_bytes(bytes).unwrap();
    assert_eq!(weights.metadata()["format"], "volta-checkpoint");
    assert_eq!(weights.tensor("optimizer.0.exp_avg", Device::Cpu).unwrap().numel(), 3);
}

fn refused(bytes: Vec<u8>, part: &str) {
    let error = Checkpoint::from_bytes(bytes).expect_err("no checkpoint");
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.message().contains(part), "{error} does not say {part:?}");
}

/// A checkpoint's file with other metadata.
fn forged(entries: &[(&str, &str)]) -> Vec<u8> {
    let metadata: Metadata = entries.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    volta::io::to_safetensors(&StateDict::new(), &metadata).unwrap()
}

#[test]
fn a_newer_format_and_other_files_are_told_apart() {
    let state = r#"{"values":{},"parts":{}}"#;
    let with = |version: &str, state: &str| {
        forged(&[("format", "volta-checkpoint"), ("version", version), ("state", state)])
    };
    assert!(Checkpoint::from_bytes(with("1", state)).is_ok());
    refused(with("3", state), "newer Volta");
    refused(with("99999999999", state), "Update Volta");
    refused(with("one", state), "version");
    refused(with("0", state), "version");
    refused(forged(&[]), "no checkpoint");
    // What `torch.save` writes is a zip archive.
    let zip = b"PK\x03\x04\0\0\x08\x08\0\0".to_vec();
    refused(zip, "it is a PyTorch weight file, but no checkpoint: open it with Weights::open");
    refused(with("1", "{"), "damaged");
    refused(with("1", r#"{"values":{}}"#), "parts");
    refused(with("1", r#"{"values":{"a":[]},"parts":{}}"#), "values");
    refused(with("1", r#"{"values":{"a":{"f64":"x"}},"parts":{}}"#), "values");
    refused(with("1", r#"{"values":{},"parts":{"m":{"values":{},"tensors":["w"]}}}"#), "\"m.w\"");
    refused(with("1", r#"{"values":{},"parts":{"m":{"values":{},"tensors":[1]}}}"#), "damaged");
}

/// A file that a crash cut off anywhere is refused, and no byte brings the program down.
#[test]
fn every_prefix_is_refused() {
    let bytes =
        Checkpoint::new().with("optimizer", &part()).with_rng().with_value("epoch", 1).to_bytes().unwrap();
    assert!(Checkpoint::from_bytes(bytes.clone()).is_ok());
    for end in 0..bytes.len() {
        refused(bytes[..end].to_vec(), "");
    }
    for at in 0..bytes.len() {
        for value in [0, b'"', b'9', 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let _ = Checkpoint::from_bytes(damaged);
        }
    }
}

#[test]
fn a_folder_keeps_the_last_and_the_best() {
    let scratch = Scratch::new("folder");
    let path = scratch.file("run");
    let folder = CheckpointFolder::open(&path).unwrap().keep(2);
    assert!(folder.last().unwrap().is_none() && folder.best().unwrap().is_none());
    let mut saved = Vec::new();
    for (step, score) in [(9u64, 3.0), (10, 1.0), (100, 2.0), (11, f64::NAN)] {
        let checkpoint = Checkpoint::new().with_value("step", step as i64);
        folder.save(step, &checkpoint).unwrap();
        saved.push(folder.save_if_best(score, &checkpoint).unwrap());
    }
    assert_eq!(saved, [true, true, false, false]);
    assert_eq!(folder.steps().unwrap(), [11, 100]);
    assert_eq!(folder.last().unwrap().unwrap().int("step").unwrap(), 100);
    let best = folder.best().unwrap().unwrap();
    assert_eq!((best.int("step").unwrap(), best.float("best_score").unwrap()), (10, 1.0));
    // Gone back to an earlier step, which is not the latest by its number.
    let elsewhere = CheckpointFolder::open(scratch.file("again")).unwrap().keep(2);
    for step in [800, 900, 500] {
        elsewhere.save(step, &Checkpoint::new()).unwrap();
    }
    assert_eq!(elsewhere.steps().unwrap(), [500, 800, 900], "what was just saved is there");
    std::fs::write(path.join(".step-00000012.safetensors.1-0.unfinished"), b"cut").unwrap();
    std::fs::write(path.join("notes.txt"), b"mine").unwrap();
    let again = CheckpointFolder::open(&path).unwrap();
    assert_eq!(again.steps().unwrap(), [11, 100]);
    let mut names: Vec<_> = std::fs::read_dir(&path).unwrap().map(|f| f.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["best.safetensors", "notes.txt", "step-00000011.safetensors", "step-00000100.safetensors"]
    );
}

#[test]
fn plain_weights_are_no_checkpoint() {
    let scratch = Scratch::new("plain");
    let path = scratch.file("net.safetensors");
    save_safetensors(&path, &Linear::new(1, 1, true).state_dict(), &Metadata::new()).unwrap();
    let error = Checkpoint::load(&path).unwrap_err();
    assert!(
        error.message().contains("net.safetensors") && error.message().contains("no checkpoint"),
        "{error}"
    );
}
