//! SIGKILL at any moment, also while a run resumes: nothing is lost, and the run ends where one that was left alone ends,
//! to the bit. `VOLTA_KILLS` says how often to kill, `VOLTA_KILL_SEED` where the random numbers start.

use super::{Folder, ok, text, tiny, values, volta};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use volta::train::{History, read_csv};
use volta::{Checkpoint, Weights};
use volta_testing::test;

const NAME: &str = "short-L1-H2-E16-cpu";
const STEPS: &str = "300";

/// How often to kill, unless `VOLTA_KILLS` says otherwise.
const KILLS: u64 = 12;

fn number(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok().filter(|text| !text.is_empty());
    given.map_or(otherwise, |text| text.parse().unwrap_or_else(|e| panic!("{variable}: {e}")))
}

/// Random numbers; the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn start(folder: &Folder, resume: bool) -> Child {
    let mut command = volta(folder);
    // The loss is read every three steps, and every four there is a checkpoint.
    tiny(&mut command).args(["--steps", STEPS, "--json"]);
    if resume {
        command.arg("--resume");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Kills a run at a random time behind its start, or behind the line that `until` stands in.
fn kill(mut run: Child, dice: &mut Dice, until: Option<&str>) {
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    match until {
        Some(until) => {
            lines.find(|line| line.contains(until));
            std::thread::sleep(Duration::from_micros(dice.below(6000)));
        }
        // It starts within some tens of milliseconds; this is before or after that, as it comes.
        None => std::thread::sleep(Duration::from_micros(dice.below(60_000))),
    }
    let _ = run.kill();
    let ended = run.wait_with_output().unwrap();
    assert!(ended.status.code().is_none_or(|code| code == 0), "{}", text(&ended.stderr));
}

/// What must hold whenever a run was killed.
fn check(run: &Path) {
    let history = read_csv(run.join("metrics.csv")).expect("the history is whole");
    assert!(history.rows.iter().any(|row| row.step <= 3), "the history has lost its beginning");
    let files = std::fs::read_dir(run.join("checkpoints")).unwrap().map(|file| file.unwrap().path());
    let last = files.filter(|path| path.extension().is_some_and(|e| e == "safetensors")).max();
    Checkpoint::load(last.expect("a checkpoint")).expect("the last checkpoint can be read");
}

/// What was measured, but for how fast it was.
fn measured(run: &Path) -> Vec<(u64, String, u64)> {
    let History { rows } = read_csv(run.join("metrics.csv")).unwrap();
    let rows = rows.into_iter().filter(|row| row.name != "per_second");
    rows.map(|row| (row.step, row.name, row.value.to_bits())).collect()
}

/// All tensors of a checkpoint or a model, as bits.
fn bits(path: &Path) -> Vec<(String, Vec<u8>)> {
    let state = Weights::open(path).unwrap().load().unwrap();
    let bytes = |t: &volta::Tensor| t.to_vec::<f32>().iter().flat_map(|x| x.to_le_bytes()).collect();
    state.iter().map(|(name, t)| (name.to_string(), bytes(t))).collect()
}

fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(unfinished(&entry));
        } else if entry.extension().is_some_and(|ending| ending == "unfinished") {
            found.push(entry);
        }
    }
    found
}

#[test]
fn a_run_that_is_killed_again_and_again_loses_nothing() {
    let (whole, killed) = (Folder::new("left-alone"), Folder::new("killed"));
    ok(&start(&whole, false).wait_with_output().unwrap());
    let run = |folder: &Folder| folder.0.join("models").join(NAME);
    let mut dice = Dice(number("VOLTA_KILL_SEED", 1));
    kill(start(&killed, false), &mut dice, Some("\"saved\""));
    // What a writer leaves that is killed in the middle of the file.
    for left in
        [".best.safetensors.1-0.unfinished", ".metrics.csv.1-0.unfinished", "checkpoints/.x.1-0.unfinished"]
    {
        std::fs::write(run(&killed).join(left), "cut off").unwrap();
    }
    for _ in 0..number("VOLTA_KILLS", KILLS) {
        let until = [None, None, Some("\"resumed\""), Some("\"saved\""), Some("\"validation\"")];
        let until = until[dice.below(5) as usize];
        kill(start(&killed, true), &mut dice, until);
        check(&run(&killed));
    }
    ok(&start(&killed, true).wait_with_output().unwrap());
    assert_eq!(unfinished(&killed.0), Vec::<PathBuf>::new());
    assert_eq!(measured(&run(&killed)), measured(&run(&whole)));
    let model = format!("models/{NAME}.safetensors");
    assert_eq!(values(&killed.0.join(&model)), values(&whole.0.join(&model)));
    let last = format!("checkpoints/step-{:08}.safetensors", STEPS.parse::<u64>().unwrap());
    for file in ["best.safetensors", &last] {
        assert!(bits(&run(&killed).join(file)) == bits(&run(&whole).join(file)), "{file} differs");
    }
}
