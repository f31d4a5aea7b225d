//! The layers inside of each crate, and a test that imports run down only. Between crates the compiler holds it.

use super::sources;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Modules side by side, which do not know each other.
type Layer = &'static [&'static str];

/// Each layer of a crate uses only those above it in its list.
const CRATES: [(&str, &[Layer]); 6] = [
    (
        "ir",
        &[
            &["clock"],
            &["call", "printable"],
            &["error"],
            &["buffer", "dtype", "interrupt", "random", "regular_file", "shape", "wait", "warn"],
            &["device", "op"],
            &["environment", "plan"],
            &["telemetry"],
        ],
    ),
    (
        "cpu",
        &[
            &["available", "huge_pages", "thread_pool"],
            &["buffer_pool", "threads"],
            &["vector"],
            &["gemm"],
            &["attention", "conv", "interpreter", "quantized"],
            &["index"],
            &["native_kernels"],
            &["program"],
        ],
    ),
    (
        "gpu",
        &[
            &["caps", "dispatch"],
            &["codegen"],
            // A plan as shaders: needs no device.
            &["kernels"],
            &["chunking"],
            &["lower"],
            &["device"],
            &["memory"],
            &["runtime"],
            &["fault_injection", "raw", "tune"],
        ],
    ),
    (
        "volta",
        &[
            &["device"],
            &["default_device", "environment", "graph"],
            &["telemetry"],
            &["engine"],
            &["gpu", "tensor"],
            &["autograd"],
            &["functional"],
            &["state"],
            &["nn", "optim"],
            &["io"],
            &["data"],
            &["text"],
            &["parallel"],
            &["models", "train"],
            &["tab"],
        ],
    ),
    (
        "lm",
        &[
            &["config", "date", "fingerprint", "finetune", "histogram"],
            &["epoch_math", "model_file", "optimizer"],
            &["gpt2", "prepare"],
            &["plan", "run_manifest", "sampling"],
            &["memory_fit", "rank_memory"],
            &["run"],
        ],
    ),
    ("serve", &[&["json", "metrics", "options"], &["grammar"], &["engine"], &["api"], &["http"]]),
];

/// Files that stand outside: a crate's root, and those of tests.
const OUTSIDE: [&str; 2] = ["lib", "snapshots"];

/// The modules that a file is in, from its crate's root, the file's own last.
fn modules(root: &Path, file: &Path) -> Vec<String> {
    let below = file.strip_prefix(root).expect("below src").with_extension("");
    let mut all: Vec<String> =
        below.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    if all.last().is_some_and(|last| last == "mod") {
        all.pop();
    }
    all
}

fn is_test(modules: &[String]) -> bool {
    modules.iter().any(|name| name == "tests" || name.ends_with("_tests"))
}

/// A file without comments and unit tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a source file");
    let mut kept = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(") && line.contains("test") {
            match lines.peek() {
                // The module of the tests ends a file; before it one declaration may be for tests.
                Some(next) if next.starts_with("mod tests {") => break,
                _ => continue,
            }
        }
        kept += line.split("//").next().unwrap_or_default();
        kept.push('\n');
    }
    kept
}

/// The modules at a crate's root that a text names behind `prefix`: `crate::NAME`, and each of `crate::{NAME, …}`.
fn imports(code: &str, prefix: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut all = Vec::new();
    for rest in code.split(prefix).skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            all.push(name(rest));
            continue;
        };
        let (mut depth, mut begins) = (0, true);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    all.push(name(&list[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    all
}

/// What a file of these modules names at its crate's root.
fn named(modules: &[String], code: &str) -> Vec<String> {
    let mut all = imports(code, "crate::");
    all.extend(imports(code, &"super::".repeat(modules.len())));
    all
}

#[test]
fn imports_run_down_only() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for (name, layers) in CRATES {
        let rank: BTreeMap<&str, usize> =
            layers.iter().enumerate().flat_map(|(k, modules)| modules.iter().map(move |m| (*m, k))).collect();
        let root = sources::root().join("crates").join(name).join("src");
        for file in sources::files(&root, "rs") {
            let modules = modules(&root, &file);
            let from = modules[0].as_str();
            if OUTSIDE.contains(&from) || is_test(&modules) {
                continue;
            }
            let here = *rank
                .get(from)
                .unwrap_or_else(|| panic!("{from} is in no layer of {name}: put it into CRATES"));
            for to in named(&modules, &code(&file)) {
                let Some(&there) = rank.get(to.as_str()) else { continue };
                seen += 1;
                if to != from && there >= here {
                    wrong.push(format!("{} imports {to}, which is not above {from}", file.display()));
                }
            }
        }
    }
    assert!(seen > 500, "{seen} imports were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::plan::kernel::{Kernel, Slot};\nuse crate::{Device, gpu::{self, open}, tensor};\nlet x = crate::op::Op::Data;\n\
                use super::super::memory::pool;";
    let modules = ["lower", "bindings"].map(String::from);
    assert_eq!(named(&modules, text), ["plan", "Device", "gpu", "tensor", "op", "memory"]);
}
