//! How Volta's tests run. A test says what it needs, and is ignored, with that reason, where the environment does not have it:
//!
//! ```
//! use volta_testing::test;
//!
//! #[test(needs(f64))]
//! fn sums_are_exact_in_f64() {}
//! ```
//!
//! A test program has `harness = false` in its `Cargo.toml`, and `volta_testing::main!();` at its root. It takes the arguments that
//! Rust's own test programs take, and prints what they print.

mod arguments;
mod need;
mod panics;

pub use inventory;
pub use need::Need;
pub use volta_testing_macros::test;

use arguments::Arguments;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A test, as `#[test]` registers it.
pub struct Test {
    /// The path of its module, from the program on.
    pub module: &'static str,
    /// The function.
    pub name: &'static str,
    /// What it cannot do without.
    pub needs: &'static [Need],
    /// Why it runs only where it is asked for.
    pub ignored: Option<&'static str>,
    /// The test.
    pub run: fn(),
}

inventory::collect!(Test);

/// The `main` of a test program.
#[macro_export]
macro_rules! main {
    () => {
        fn main() -> ::std::process::ExitCode {
            $crate::run()
        }
    };
}

impl Test {
    /// Its path below the program.
    fn path(&self) -> String {
        match self.module.split_once("::") {
            Some((_, below)) => format!("{below}::{}", self.name),
            None => self.name.to_string(),
        }
    }

    /// Why it does not run here.
    fn missing(&self) -> Option<&'static str> {
        self.ignored.or_else(|| self.needs.iter().find_map(|need| need.missing()))
    }
}

/// What came of a test.
enum Outcome {
    Passed,
    Ignored(&'static str),
    /// What it said.
    Failed(String),
}

/// Runs the tests that the arguments ask for.
pub fn run() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let mut all: Vec<(String, &Test)> = inventory::iter::<Test>().map(|test| (test.path(), test)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let known = all.len();
    if known == 0 {
        eprintln!("this program has no tests: is each marked with volta_testing's #[test]?");
        return ExitCode::from(2);
    }
    all.retain(|(path, test)| arguments.picks(path, test.ignored.is_some()));
    if arguments.list {
        all.iter().for_each(|(path, _)| println!("{path}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", all.len());
    let (begun, filtered) = (Instant::now(), known - all.len());
    panics::keep();
    let mut failures = Vec::new();
    let (mut passed, mut ignored) = (0, 0);
    let queue = Mutex::new(all.into_iter());
    std::thread::scope(|scope| {
        let (sender, outcomes) = mpsc::channel();
        for _ in 0..arguments.threads {
            let (sender, queue, arguments) = (sender.clone(), &queue, &arguments);
            scope.spawn(move || {
                loop {
                    let next = queue.lock().expect("no panic while the queue is held").next();
                    let Some((path, test)) = next else { return };
                    let begun = Instant::now();
                    let outcome = one(&path, test, arguments);
                    sender.send((path, outcome, begun.elapsed())).expect("the main thread listens");
                }
            });
        }
        drop(sender);
        for (path, outcome, took) in outcomes {
            match outcome {
                Outcome::Passed => {
                    passed += 1;
                    println!("test {path} ... ok{}", seconds(took));
                }
                Outcome::Ignored(reason) => {
                    ignored += 1;
                    println!("test {path} ... ignored, {reason}");
                }
                Outcome::Failed(said) => {
                    println!("test {path} ... FAILED");
                    failures.push((path, said));
                }
            }
        }
    });
    report(&failures);
    println!(
        "\ntest result: {}. {passed} passed; {} failed; {ignored} ignored; 0 measured; {filtered} filtered out; finished in {:.2}s\n",
        if failures.is_empty() { "ok" } else { "FAILED" },
        failures.len(),
        begun.elapsed().as_secs_f64()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

fn one(path: &str, test: &Test, arguments: &Arguments) -> Outcome {
    let missing = if arguments.runs_ignored() && test.ignored.is_some() {
        test.needs.iter().find_map(|need| need.missing())
    } else {
        test.missing()
    };
    if let Some(reason) = missing {
        return Outcome::Ignored(reason);
    }
    // A thread of its own, under the test's name: what is kept for a thread ends with the test.
    let (run, captures) = (test.run, arguments.captures);
    let thread = std::thread::Builder::new().name(path.to_string());
    let running = thread.spawn(move || panics::heard(run, captures)).expect("a thread can be had");
    match running.join() {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(said)) => Outcome::Failed(said),
        // What a thread leaves behind may panic as it ends.
        Err(_) => Outcome::Failed("it panicked as its thread ended".into()),
    }
}

/// How long a test took, where that is worth a look: those who make the tests faster begin there.
fn seconds(took: Duration) -> String {
    if took.as_secs() < 1 { String::new() } else { format!(" ({} s)", took.as_secs()) }
}

fn report(failures: &[(String, String)]) {
    if failures.is_empty() {
        return;
    }
    println!("\nfailures:\n");
    for (path, said) in failures {
        println!("---- {path} ----\n{said}");
    }
    println!("failures:");
    failures.iter().for_each(|(path, _)| println!("    {path}"));
}
