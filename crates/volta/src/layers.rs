//! The layers of this crate, and a test that imports run down only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each layer uses only those above it in this list. Modules of one row stand side by side: those of a row that is `false` do not
/// know each other.
const LAYERS: [(bool, &[&str]); 16] = [
    (true, &["call", "error", "printable"]),
    (false, &["clock", "dtype", "interrupt", "random", "regular_file", "shape", "wait", "warn"]),
    (false, &["device"]),
    (false, &["environment"]),
    (false, &["default_device"]),
    (false, &["op"]),
    (false, &["graph"]),
    (false, &["plan"]),
    (false, &["telemetry"]),
    (false, &["cpu", "gpu"]),
    (false, &["engine"]),
    (true, &["autograd", "tensor"]),
    (false, &["state"]),
    (true, &["data", "io", "nn", "optim", "text"]),
    (true, &["models", "train"]),
    (false, &["tab"]),
];

/// Files that stand outside: the crate's root, this one, and the program, which is a crate of its own.
const OUTSIDE: [&str; 4] = ["lib", "layers", "main", "cli"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The module at the root to which a file belongs.
fn module(file: &Path) -> String {
    let below = file.strip_prefix(source()).expect("below src");
    let first = below.components().next().expect("a name").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_string()
}

fn is_test(file: &Path) -> bool {
    let in_tests = file.components().any(|part| part.as_os_str() == "tests");
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    in_tests || stem.ends_with("tests") || stem == "snapshots"
}

/// A file without comments and unit tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a source file");
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with("#[cfg(") && line.contains("test") {
            break;
        }
        kept += line.split("//").next().unwrap_or_default();
        kept.push('\n');
    }
    kept
}

/// The modules at the root that a text names: `crate::NAME`, and each of `crate::{NAME, …}`.
fn imports(code: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut all = Vec::new();
    for rest in code.split("crate::").skip(1) {
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

#[test]
fn imports_run_down_only() {
    let rank: BTreeMap<&str, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(k, (_, modules))| modules.iter().map(move |m| (*m, k)))
        .collect();
    let (mut all, mut seen, mut wrong) = (Vec::new(), 0, Vec::new());
    files(&source(), &mut all);
    for file in all.iter().filter(|file| !is_test(file)) {
        let from = module(file);
        if OUTSIDE.contains(&from.as_str()) {
            continue;
        }
        let here =
            *rank.get(from.as_str()).unwrap_or_else(|| panic!("{from} is in no layer: put it into LAYERS"));
        for to in imports(&code(file)) {
            let Some(&there) = rank.get(to.as_str()) else { continue };
            seen += 1;
            let beside = there == here && (to == from || LAYERS[here].0);
            if there >= here && !beside {
                wrong.push(format!("{} imports {to}, which is not below {from}", file.display()));
            }
        }
    }
    assert!(seen > 1000, "{seen} imports were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::plan::kernel::{Kernel, Slot};\nuse crate::{Device, gpu::{self, open}, tensor};\nlet x = crate::op::Op::Data;";
    assert_eq!(imports(text), ["plan", "Device", "gpu", "tensor", "op"]);
}
