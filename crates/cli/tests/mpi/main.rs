//! `mpirun volta train` as its users run it: the same bits for any number of ranks, ranks that die, hang or want something else, Ctrl-C.
//!
//! `VOLTA_MPI_KILLS` says how often to kill, `VOLTA_KILL_SEED` where the random numbers start.

mod hosts;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use volta::Weights;
use volta::train::read_csv;
use volta_testing::test;

const NAME: &str = "short-L1-H2-E16-cpu";

/// How often to kill, unless `VOLTA_MPI_KILLS` says otherwise.
const KILLS: u64 = 3;

fn number(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok().filter(|text| !text.is_empty());
    given.map_or(otherwise, |text| text.parse().unwrap_or_else(|e| panic!("{variable}: {e}")))
}

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("volta-mpi-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn run(&self) -> PathBuf {
        self.0.join("models").join(NAME)
    }

    fn model(&self) -> PathBuf {
        self.0.join("models").join(format!("{NAME}.safetensors"))
    }

    /// The process of a rank, as its log says at the latest; none before there is one.
    fn process(&self, rank: usize) -> Option<String> {
        let log = std::fs::read_to_string(self.run().join(format!("ranks/rank-{rank}.log"))).ok()?;
        let (_, rest) = log.rsplit_once("process ")?;
        Some(rest.split_once(' ')?.0.to_string())
    }

    /// Waits until so many lines of the first rank's log have come that `what` stands in.
    fn wait_for(&self, what: &str, lines: usize, run: &mut Child) {
        let log = self.run().join("ranks/rank-0.log");
        let count = || std::fs::read_to_string(&log).unwrap_or_default().matches(what).count();
        while count() < lines && run.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What every rank is told: a model that is trained in seconds.
fn training(steps: usize) -> Vec<String> {
    let words = format!(
        "train --data short --device cpu --layers 1 --width 16 --heads 2 --context 16 --batch 8 --warmup 2 --valid-interval 10 \
         --dropout 0.1 --sample-interval 0 --sample-length 20 --checkpoint-interval 4 --steps {steps}"
    );
    words.split_whitespace().map(String::from).collect()
}

/// The same with another value of one flag.
fn told_otherwise(mut words: Vec<String>, flag: &str) -> Vec<String> {
    let name = flag.split_whitespace().next();
    if let Some(at) = words.iter().position(|word| Some(word.as_str()) == name) {
        words.drain(at..at + 2);
    }
    with(words, flag)
}

fn with(words: Vec<String>, more: &str) -> Vec<String> {
    words.into_iter().chain(more.split_whitespace().map(String::from)).collect()
}

/// Ranks that are each told something of their own; all the same if there is one list for several.
fn mpirun(folder: &Folder, parts: &[(usize, Vec<String>)]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe"]);
    for (k, (count, words)) in parts.iter().enumerate() {
        if k > 0 {
            command.arg(":");
        }
        command.args(["-n", &count.to_string()]).arg(env!("CARGO_BIN_EXE_volta")).args(words);
    }
    alone(&mut command, folder);
    command
}

fn alone<'a>(command: &'a mut Command, folder: &Folder) -> &'a mut Command {
    command
        .current_dir(&folder.0)
        .env("VOLTA_THREADS", "1")
        .env_remove("VOLTA_DATA")
        .env_remove("VOLTA_DEVICE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// All tensors of a file, as bits.
fn bits(path: &Path) -> Vec<(String, Vec<u32>)> {
    let state = Weights::open(path).unwrap_or_else(|e| panic!("{e}")).load().unwrap();
    state
        .iter()
        .map(|(name, t)| (name.to_string(), t.to_vec::<f32>().into_iter().map(f32::to_bits).collect()))
        .collect()
}

fn validation(folder: &Folder) -> Vec<(u64, u64)> {
    let history = read_csv(folder.run().join("metrics.csv")).unwrap();
    history.series("validation/loss").into_iter().map(|(step, loss)| (step, loss.to_bits())).collect()
}

#[test]
fn one_two_and_four_ranks_train_the_same_model_bit_for_bit_and_one_of_them_speaks() {
    let words = with(training(50), "--gradient-parts 4");
    let alone_folder = Folder::new("alone");
    let mut single = Command::new(env!("CARGO_BIN_EXE_volta"));
    ok(&alone(single.args(&words), &alone_folder).output().unwrap());
    let expected = bits(&alone_folder.model());
    let mut validations = Vec::new();
    for size in [2, 4] {
        let folder = Folder::new(&format!("ranks-{size}"));
        let said = ok(&mpirun(&folder, &[(size, words.clone())]).output().unwrap());
        assert!(bits(&folder.model()) == expected, "{size} ranks differ from one process");
        assert_eq!(said.matches("Everything goes to").count(), 1, "{said}");
        assert!(said.contains(&format!("exchange of gradients among {size} ranks")), "{said}");
        assert_eq!(
            std::fs::read_dir(folder.0.join("models")).unwrap().count(),
            4,
            "a folder, a model, a page, a table"
        );
        let log = std::fs::read_to_string(folder.run().join(format!("ranks/rank-{}.log", size - 1))).unwrap();
        assert!(log.contains("has ended after step 50"), "{log}");
        validations.push(validation(&folder));
    }
    assert_eq!(validations[0], validations[1]);
    // What four ranks have saved goes on with one process.
    let folder = Folder::new("fewer");
    let part = with(training(20), "--gradient-parts 4");
    ok(&mpirun(&folder, &[(4, part)]).output().unwrap());
    let mut single = Command::new(env!("CARGO_BIN_EXE_volta"));
    ok(&alone(single.args(with(words, "--resume")), &folder).output().unwrap());
    assert_eq!(std::fs::read_dir(folder.run().join("checkpoints")).unwrap().count(), 2);
}

#[test]
fn ranks_without_gradient_parts_learn_too_and_may_send_halves() {
    for more in ["", "--exchange f16"] {
        let folder = Folder::new("plain");
        ok(&mpirun(&folder, &[(2, with(training(40), more))]).output().unwrap());
        let losses = validation(&folder);
        let loss = |k: usize| f64::from_bits(losses[k].1);
        assert!(loss(losses.len() - 1) < loss(0), "{more}: {losses:?}");
    }
}

#[test]
fn ranks_that_share_out_what_they_have_train_the_model_of_one_process_bit_for_bit() {
    let words = |steps| with(training(steps), "--gradient-parts 2 --clip 0 --schedule constant");
    let alone_folder = Folder::new("sharing-alone");
    let mut single = Command::new(env!("CARGO_BIN_EXE_volta"));
    ok(&alone(single.args(words(12)), &alone_folder).output().unwrap());
    for (first, then) in [(3, 1), (1, 2), (2, 3)] {
        let folder = Folder::new("sharing");
        ok(&mpirun(&folder, &[(2, with(words(8), &format!("--zero {first}")))]).output().unwrap());
        // What one stage has saved goes on with another.
        let resumed = with(words(12), &format!("--zero {then} --resume"));
        ok(&mpirun(&folder, &[(2, resumed)]).output().unwrap());
        assert!(bits(&folder.model()) == bits(&alone_folder.model()), "--zero {first} and then {then}");
        let checkpoint = "checkpoints/step-00000012.safetensors";
        assert!(
            bits(&folder.run().join(checkpoint)) == bits(&alone_folder.run().join(checkpoint)),
            "--zero {then}"
        );
    }
}

#[test]
fn ranks_that_agree_now_and_then_learn_and_go_on() {
    let folder = Folder::new("local-steps");
    let words = |steps| with(training(steps), "--sync-every 2 --outer-momentum 0.5");
    ok(&mpirun(&folder, &[(2, words(40))]).output().unwrap());
    let losses = validation(&folder);
    let loss = |k: usize| f64::from_bits(losses[k].1);
    assert!(loss(losses.len() - 1) < loss(0), "{losses:?}");
    ok(&mpirun(&folder, &[(2, with(words(44), "--resume"))]).output().unwrap());
}

/// Random numbers; the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn a_killed_rank_ends_all_and_the_run_goes_on_to_the_bits_of_one_left_alone() {
    let words = with(training(120), "--gradient-parts 4");
    let whole = Folder::new("left-alone");
    ok(&mpirun(&whole, &[(4, words.clone())]).output().unwrap());
    let killed = Folder::new("killed");
    let mut dice = Dice(number("VOLTA_KILL_SEED", 1));
    let mut resume = "";
    for kill in 0..number("VOLTA_MPI_KILLS", KILLS) {
        let mut run = mpirun(&killed, &[(4, with(words.clone(), resume))]).spawn().unwrap();
        killed.wait_for("is saved", kill as usize + 1, &mut run);
        std::thread::sleep(Duration::from_micros(dice.below(100_000)));
        if let Some(process) = killed.process(dice.below(4) as usize) {
            // It may have ended by itself.
            let _ = Command::new("kill").args(["-KILL", &process]).stderr(Stdio::null()).status();
        }
        let ended = run.wait_with_output().unwrap();
        assert!(!text(&ended.stderr).contains("panicked"), "{}", text(&ended.stderr));
        resume = "--resume";
    }
    ok(&mpirun(&killed, &[(4, with(words, resume))]).output().unwrap());
    assert!(bits(&killed.model()) == bits(&whole.model()), "the model differs");
    assert_eq!(validation(&killed), validation(&whole));
    let checkpoint = "checkpoints/step-00000120.safetensors";
    assert!(
        bits(&killed.run().join(checkpoint)) == bits(&whole.run().join(checkpoint)),
        "the checkpoint differs"
    );
}

#[test]
fn ranks_that_are_told_different_things_say_so_once_and_do_nothing() {
    for (more, parts) in [
        ("--learning-rate 0.5", ["rank 1", "learning-rate is 0.5, and 0.001 on rank 0"]),
        ("--data stories", ["rank 1", "the text's fingerprint is"]),
        ("--tokenizer words", ["rank 1", "the tokenizer's fingerprint is"]),
        ("--layers x", ["rank 1", "layers = x"]),
    ] {
        let folder = Folder::new("different");
        let run =
            mpirun(&folder, &[(1, training(10)), (1, told_otherwise(training(10), more))]).output().unwrap();
        let said = text(&run.stderr);
        assert!(!run.status.success(), "{more}: {said}");
        assert_eq!(said.matches("error:").count(), 1, "{more}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{more}: {said}");
        assert!(!folder.0.join("models").exists(), "{more}");
    }
}

#[test]
fn output_that_cannot_be_made_is_said_once() {
    let folder = Folder::new("blocked");
    std::fs::write(folder.0.join("models"), "a file where a folder should be").unwrap();
    let run = mpirun(&folder, &[(2, training(10))]).output().unwrap();
    let said = text(&run.stderr);
    assert!(
        !run.status.success() && said.matches("error:").count() == 1 && said.contains("models"),
        "{said}"
    );
}

#[test]
fn a_rank_that_hangs_ends_all_and_every_log_says_so() {
    let folder = Folder::new("hangs");
    let words = with(training(100_000), "--rank-timeout 3");
    let mut run = mpirun(&folder, &[(2, words)]).spawn().unwrap();
    folder.wait_for("is saved", 2, &mut run);
    let process = folder.process(1).expect("the second rank has begun");
    assert!(Command::new("kill").args(["-STOP", &process]).status().unwrap().success());
    let ended = run.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    // A stopped process dies with the others.
    assert!(!ended.status.success(), "{said}");
    let reason = "has ended the run: it has waited for the others";
    assert!(said.matches(reason).count() == 1 && said.contains("rank 0 on"), "{said}");
    for rank in 0..2 {
        let log = std::fs::read_to_string(folder.run().join(format!("ranks/rank-{rank}.log"))).unwrap();
        assert!(log.contains(reason), "{log}");
    }
}

#[test]
fn ctrl_c_at_the_first_rank_saves_once_and_the_run_goes_on() {
    let folder = Folder::new("ctrl-c");
    let words = with(training(100_000), "--gradient-parts 2");
    let mut run = mpirun(&folder, &[(2, words)]).spawn().unwrap();
    folder.wait_for("is saved", 1, &mut run);
    let process = folder.process(0).expect("the first rank has begun");
    assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
    let ended = run.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert_eq!(said.matches("Stopped after step").count(), 1, "{said}");
    let steps: u64 = Weights::open(folder.model()).unwrap().metadata()["steps"].parse().unwrap();
    let log = std::fs::read_to_string(folder.run().join("ranks/rank-1.log")).unwrap();
    assert!(log.contains(&format!("step {steps} is saved")), "{log}");
    let goes_on = with(training(steps as usize + 5), "--gradient-parts 2 --resume --quiet");
    ok(&mpirun(&folder, &[(2, goes_on)]).output().unwrap());
}

volta_testing::main!();
