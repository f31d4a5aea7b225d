//! `volta devices`: where plans can run.

use super::output::{Outcome, Output};
use serde_json::json;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use volta::Device;
use volta::gpu::{Adapter, adapters};

#[derive(clap::Args)]
pub struct Options {
    /// Also open every GPU, and show what drivers find wrong meanwhile.
    #[arg(long, short)]
    verbose: bool,
}

/// Lists the CPU and every adapter, with what each can do.
pub fn run(options: &Options, output: Output) -> Outcome {
    if options.verbose {
        Messages::listen();
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    output.result(
        &json!({"device": "cpu", "name": "CPU", "threads": threads}),
        format_args!("{:<8} the processor, {threads} threads", "cpu"),
    );
    let all = adapters();
    for adapter in &all {
        show(adapter, output);
    }
    if options.verbose {
        let failures = all.iter().filter_map(|adapter| Device::Gpu(adapter.index?).synchronize().err());
        let failures: Vec<String> = failures.map(|error| error.message().to_string()).collect();
        for message in Messages::heard().into_iter().chain(failures) {
            output.result(&json!({"message": message}), &message);
        }
    }
    if all.is_empty() {
        output.note("No GPU adapter was found: a Vulkan, Metal or DirectX 12 driver is needed.");
    } else if all.iter().any(|a| a.index.is_none()) {
        output.note(
            "Adapters without a number are not taken: software unless VOLTA_ADAPTER names a part of its name, and none where it \
             names one that is not there.",
        );
    }
    Ok(())
}

fn show(a: &Adapter, output: Output) {
    let name = a.index.map_or("-".to_string(), |i| format!("gpu:{i}"));
    let can: Vec<&str> = [
        (a.f16, "f16"),
        (a.i64, "i64"),
        (a.subgroups, "subgroups"),
        (a.cooperative_matrices, "cooperative matrices"),
        (a.timestamps, "timestamps"),
    ]
    .into_iter()
    .filter_map(|(has, what)| has.then_some(what))
    .collect();
    output.result(
        &json!({
            "device": a.index.map(|i| format!("gpu:{i}")), "name": a.name, "kind": format!("{:?}", a.kind).to_lowercase(),
            "backend": a.backend, "driver": a.driver, "features": can,
            "max_binding_bytes": a.max_binding_bytes, "max_buffers": a.max_buffers, "max_workgroup": a.max_workgroup,
            "workgroup_bytes": a.workgroup_bytes,
        }),
        format_args!(
            "{name:<8} {}, {:?}, {} ({}); {}; {} MiB a binding, {} buffers a kernel, {} threads and {} KiB a workgroup",
            a.name,
            a.kind,
            a.backend,
            a.driver,
            if can.is_empty() { "plain WebGPU".to_string() } else { can.join(", ") },
            a.max_binding_bytes >> 20,
            a.max_buffers,
            a.max_workgroup,
            a.workgroup_bytes >> 10
        ),
    );
}

/// What wgpu, and through it drivers and their loader, find wrong.
struct Messages(Mutex<Vec<String>>);

static MESSAGES: Messages = Messages(Mutex::new(Vec::new()));

impl Messages {
    fn listen() {
        // It fails only where somebody listens already.
        if log::set_logger(&MESSAGES).is_ok() {
            log::set_max_level(log::LevelFilter::Debug);
        }
    }

    fn heard() -> Vec<String> {
        std::mem::take(&mut *MESSAGES.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl log::Log for Messages {
    /// Warnings, errors, and interfaces that cannot be had at all.
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn || metadata.target() == "wgpu_core::instance"
    }

    fn log(&self, record: &log::Record<'_>) {
        let message = record.args().to_string();
        let matters = record.level() <= log::Level::Warn || message.contains("failed to create");
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.enabled(record.metadata()) && matters && !all.contains(&message) {
            all.push(message);
        }
    }

    fn flush(&self) {}
}

/// Mesa's layer that orders GPUs by the screen they drive asks the session for that screen, and complains on standard error
/// where there is no session. There it is not needed: the layer's own variable turns it off. To be called before threads are
/// started.
pub fn expect_no_session() {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if is_without_session(var("XDG_RUNTIME_DIR").as_deref()) && var("MESA_VK_DEVICE_SELECT").is_none() {
        // SAFETY: the program has one thread yet, so nobody reads the environment meanwhile.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}

/// Whether this is not the folder of a session.
fn is_without_session(runtime_folder: Option<&OsStr>) -> bool {
    cfg!(target_os = "linux") && runtime_folder.is_none_or(|folder| !Path::new(folder).is_absolute())
}

#[cfg(test)]
mod tests {
    use super::is_without_session;
    use std::ffi::OsStr;

    #[test]
    fn a_session_has_a_folder_that_can_be_one() {
        assert_eq!(is_without_session(None), cfg!(target_os = "linux"));
        assert_eq!(is_without_session(Some(OsStr::new("run"))), cfg!(target_os = "linux"));
        assert!(!is_without_session(Some(OsStr::new("/run/user/1000"))));
    }
}
