//! How programs that use a GPU begin and end: with many threads at once, and before the device is done. Each test runs this
//! program again, as `program`, and looks at how that went. Runs where `VOLTA_ADAPTER` names an adapter (`llvmpipe` will do)
//! or there is a GPU; says so and passes where there is none.

use std::process::Command;
use std::sync::Barrier;
use volta::gpu::devices_opened;
use volta::{Device, ErrorKind, Tensor, with_device};
use volta_testing::test;

/// What `program` is to do.
const TASK: &str = "VOLTA_TEST_PROGRAM";
const THREADS: usize = 16;

/// Runs this program for a task, with it on the main thread or on another one, and with nothing compiled before.
fn run(task: &str, on_main: bool) {
    if let Err(error) = Device::gpu() {
        assert_eq!(error.kind(), ErrorKind::Device);
        return eprintln!("not tested: {error}");
    }
    let threads = if on_main { "--test-threads=1" } else { "--test-threads=2" };
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "program", "--nocapture", threads]).env(TASK, task);
    let output = program.env("VOLTA_CACHE", "off").env("MESA_SHADER_CACHE_DISABLE", "true").output().unwrap();
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn program() {
    let Ok(task) = std::env::var(TASK) else { return };
    match task.as_str() {
        "begin" => begin(),
        "end" => end(),
        "again" => again(),
        other => panic!("there is no {other}"),
    }
}

fn begin() {
    let together = Barrier::new(THREADS);
    let work = |k: usize| {
        together.wait();
        let x = with_device(Device::gpu().unwrap(), || Tensor::vector(&[1.0, 2.0, k as f32]));
        assert_eq!((x * 2.0).to_vec::<f32>(), [2.0, 4.0, 2.0 * k as f32]);
    };
    std::thread::scope(|scope| {
        for k in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(k));
        }
    });
    assert_eq!(devices_opened(), 1);
}

#[cfg(unix)]
unsafe extern "C" {
    // SAFETY: C's own, which every program is linked with; the function is called once, at the end.
    safe fn atexit(leave: extern "C" fn()) -> std::ffi::c_int;
}

/// Goes on for a while after drivers have taken themselves apart.
#[cfg(unix)]
extern "C" fn linger() {
    std::thread::sleep(std::time::Duration::from_millis(500));
}

fn end() {
    #[cfg(unix)]
    assert_eq!(atexit(linger), 0);
    with_device(Device::gpu().unwrap(), || {
        let mut x = Tensor::rand([64, 64]);
        // A software adapter compiles what is new while it runs.
        for ops in 1..=20 {
            x = (0..ops).fold(x, |x, k| (x * (f64::from(k) + 0.5)).tanh());
            x = x.matmul(&Tensor::rand([64, 64]));
            x.realize();
        }
    });
}

/// A thread that does nothing but to submit what another one has made.
fn again() {
    let device = Device::gpu().unwrap();
    let x = with_device(device, || Tensor::rand([256, 256]));
    x.realize();
    let work = || {
        (&x * 2.0).realize();
    };
    // Plans that run often are encoded while the host waits.
    for _ in 0..8 {
        work();
        device.synchronize().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(work);
        });
    }
}

#[test]
fn threads_that_begin_at_once_share_a_device() {
    (0..3).for_each(|_| run("begin", false));
}

#[test]
fn what_nobody_waits_for_does_not_break_the_end() {
    run("end", true);
    run("end", false);
}

#[test]
fn threads_that_only_submit_come_to_an_end() {
    run("again", true);
    run("again", false);
}

volta_testing::main!();
