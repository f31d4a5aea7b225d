//! How long it takes to load a large safetensors file that is in the page cache, beside reading it.
//!
//! `cargo run --release --example load_speed -- [megabytes]`

use std::io::Read;
use std::time::Instant;
use volta::io::Metadata;
use volta::{StateDict, Tensor, load_safetensors, save_safetensors};

/// The best of a few runs, in milliseconds.
fn best(mut run: impl FnMut()) -> f64 {
    let mut time = || {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..5).map(|_| time()).fold(f64::INFINITY, f64::min)
}

fn main() -> volta::Result<()> {
    let megabytes: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(500);
    let path = std::env::temp_dir().join(format!("volta-load-speed-{}.safetensors", std::process::id()));
    // Like a transformer of that size: matrices of 10 MB, and vectors.
    let mut state = StateDict::new();
    for k in 0..megabytes / 10 {
        state.insert(format!("blocks.{k}.weight"), Tensor::full([2500, 1000], k as f64));
        state.insert(format!("blocks.{k}.bias"), Tensor::zeros([2500]));
    }
    let start = Instant::now();
    save_safetensors(&path, &state, &Metadata::new())?;
    println!("saved {megabytes} MB in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    drop(state);

    let read = best(|| {
        let mut file = std::fs::File::open(&path).expect("it was just written");
        let mut buffer = vec![0; 128 << 10];
        while file.read(&mut buffer).expect("it can be read") > 0 {}
    });
    let whole = best(|| assert!(!std::fs::read(&path).expect("it can be read").is_empty()));
    let cat = best(|| {
        let out = std::fs::File::options().write(true).open("/dev/null").expect("there is a /dev/null");
        let done = std::process::Command::new("cat").arg(&path).stdout(out).status();
        assert!(done.is_ok_and(|status| status.success()), "cat failed");
    });
    let mut first = f64::NAN;
    let load = best(|| {
        let start = Instant::now();
        let (state, _) = load_safetensors(&path).expect("it was just written");
        assert_eq!(state.len(), 2 * (megabytes / 10));
        if first.is_nan() {
            first = start.elapsed().as_secs_f64() * 1e3;
        }
    });
    println!(
        "reading it whole {whole:.0} ms, by 128 kB at a time {read:.0} ms, cat {cat:.0} ms; loading {load:.0} ms, the first time {first:.0} ms"
    );
    std::fs::remove_file(&path).expect("it was just written");
    Ok(())
}
