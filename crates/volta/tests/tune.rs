//! Tuning: choices are found, kept in a file, read by the next program, used there, and change results by no more than
//! rounding. Programs of their own do it, with a folder of their own for the file; `VOLTA_DEVICE=gpu` picks the GPU.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use volta::gpu::{Tuning, tune};
use volta::{Device, Tensor, default_device, with_device};
use volta_testing::test;

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("volta-tune-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The file of choices, if there is one.
    fn choices(&self) -> Option<PathBuf> {
        let files = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let mut tuned = files.filter(|f| f.file_name().unwrap().to_string_lossy().starts_with("tuned-"));
        let found = tuned.next();
        assert!(tuned.next().is_none(), "one device has one file");
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Seconds that no tuning here takes.
const ENOUGH: &str = "10000";

/// Says to the program that a test starts what it is for.
const BUDGET: &str = "VOLTA_TEST_TUNE_BUDGET";

/// Runs `tunes_for_another_test` as a program of its own.
fn program(cache: &Path, budget: &str) -> (Output, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tunes_for_another_test", "--ignored", "--nocapture", "--test-threads=1"])
        .env("VOLTA_CACHE", cache)
        .env(BUDGET, budget)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    (output, said)
}

/// A line of what a program said.
fn line<'s>(said: &'s str, what: &str) -> &'s str {
    let found = said.lines().find_map(|line| line.split_once(what));
    found.unwrap_or_else(|| panic!("{what} in\n{said}")).1.trim()
}

/// Numbers that differ everywhere, and are the same every time.
fn ramp(shape: [usize; 2]) -> Tensor {
    let n = shape[0] * shape[1];
    let data: Vec<f32> = (0..n).map(|k| ((k * 7919) % 1013) as f32 * 0.002 - 1.0).collect();
    Tensor::from_vec(data, shape).realize().clone()
}

/// Three products, two of them of the same shapes; of short sums, for which there are few ways.
fn products() -> Vec<f32> {
    let (a, b, c) = (ramp([70, 18]), ramp([18, 12]), ramp([12, 90]));
    let x = (a.matmul(&b) * 0.1).tanh();
    let y = (a.matmul(&(&b + 1.0)) * 0.1).tanh();
    (x + y).matmul(&c).to_vec::<f32>()
}

#[test(ignored = "a program for the other tests")]
fn tunes_for_another_test() {
    let budget = std::env::var(BUDGET).expect("another test runs this").parse().unwrap();
    let device = default_device();
    let before = products();
    let Tuning { tuned, known, left, .. } = tune(
        device,
        Duration::from_secs(budget),
        |_, _| (),
        || {
            products();
            Ok(())
        },
    )
    .unwrap();
    let after = products();
    for (a, b) in before.iter().zip(&after) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{a} before, {b} after");
    }
    for t in &tuned {
        assert!(t.tried > 1 && t.time <= t.default_time && !t.time.is_zero(), "{t:?}");
        println!("choice: {} for {}", t.choice, t.problem);
    }
    println!("found: {} tuned, {known} known, {left} left", tuned.len());
    let expected = with_device(Device::Cpu, products);
    for (a, b) in after.iter().zip(&expected) {
        assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{a} is not {b}");
    }
}

#[test(needs(gpu))]
fn choices_are_kept_for_the_next_program() {
    let folder = Folder::new("kept");
    let (_, said) = program(&folder.0, ENOUGH);
    assert_eq!(line(&said, "found:"), "2 tuned, 0 known, 0 left");
    assert_eq!(said.matches("choice:").count(), 2);
    let file = folder.choices().expect("there is a file");
    let bytes = std::fs::read(&file).unwrap();
    let (output, said) = program(&folder.0, ENOUGH);
    assert_eq!(line(&said, "found:"), "0 tuned, 2 known, 0 left");
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "nothing new is nothing to write");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("warning"));
}

#[test(needs(gpu))]
fn without_time_no_file_is_written() {
    let folder = Folder::new("zero");
    let (_, said) = program(&folder.0, "0");
    assert_eq!(line(&said, "found:"), "0 tuned, 0 known, 2 left");
    assert_eq!(folder.choices(), None);
}

#[test(needs(gpu))]
fn damaged_files_are_said_once_and_made_anew() {
    let folder = Folder::new("damaged");
    program(&folder.0, ENOUGH);
    let file = folder.choices().expect("there is a file");
    let whole = std::fs::read(&file).unwrap();
    let mut scribbled = whole.clone();
    scribbled[40] ^= 1;
    for damaged in [&whole[..whole.len() / 2], b"", &scribbled] {
        std::fs::write(&file, damaged).unwrap();
        let (output, said) = program(&folder.0, "0");
        assert_eq!(line(&said, "found:"), "0 tuned, 0 known, 2 left");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(errors.matches("is damaged").count(), 1, "{errors}");
    }
    let (_, said) = program(&folder.0, ENOUGH);
    assert_eq!(line(&said, "found:"), "2 tuned, 0 known, 0 left");
    let (output, said) = program(&folder.0, "0");
    assert_eq!(line(&said, "found:"), "0 tuned, 2 known, 0 left");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("damaged"));
}

#[test(needs(gpu))]
fn a_cache_that_is_off_keeps_nothing() {
    let (_, said) = program(Path::new("off"), ENOUGH);
    assert_eq!(line(&said, "found:"), "2 tuned, 0 known, 0 left");
    assert!(!Path::new("off").exists());
}

volta_testing::main!();
