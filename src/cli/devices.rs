//! `volta devices`: where plans can run.

use super::output::{Outcome, Output};
use serde_json::json;
use volta::gpu::adapters;

/// Lists the CPU and every adapter, with what each can do.
pub fn run(output: Output) -> Outcome {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    output.result(
        &json!({"device": "cpu", "name": "CPU", "threads": threads}),
        format_args!("{:<8} the processor, {threads} threads", "cpu"),
    );
    let all = adapters();
    for a in &all {
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
