//! What the world does to a run: files that cannot be read, or not be written, and models of other programs.

use super::{Folder, ok, text, tiny, tiny_on, volta};
use std::process::Command;

#[test]
fn texts_that_cannot_be_learnt_from_are_named() {
    let folder = Folder::new("texts");
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.0.join(name), bytes).unwrap();
    put("empty.txt", b"");
    put("blank.txt", b"\n\n  \n");
    put("latin.txt", b"caf\xe9 au lait, and more of it");
    put("line.txt", b"one line");
    for (name, parts) in [
        ("empty.txt", &["empty.txt"][..]),
        ("blank.txt", &["blank.txt"]),
        ("latin.txt", &["latin.txt", "UTF-8", "3"]),
        ("line.txt", &["tokens", "context"]),
    ] {
        let run = tiny_on(name, &mut volta(&folder)).args(["--steps", "2"]).output().unwrap();
        let said = text(&run.stderr);
        assert!(matches!(run.status.code(), Some(1 | 2)), "{name}: {:?}\n{said}", run.status);
        for part in parts {
            assert!(said.contains(part), "{name}: {part} in\n{said}");
        }
        assert!(!said.contains("panicked") && !folder.0.join("models").exists(), "{name}\n{said}");
    }
}

#[test]
fn a_vocabulary_larger_than_the_text_has_is_no_trouble() {
    let folder = Folder::new("vocabulary");
    let arguments = ["--steps", "4", "--tokenizer", "words", "--vocabulary", "100000", "--quiet"];
    ok(&tiny(&mut volta(&folder)).args(arguments).output().unwrap());
}

/// A shell that lets its program write files of so many kilobytes; beyond, writing fails as on a full disk.
#[cfg(unix)]
fn limited(kilobytes: u32, folder: &Folder, arguments: &str) -> std::process::Output {
    let volta = env!("CARGO_BIN_EXE_volta");
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec {volta} {arguments}");
    let mut command = Command::new("bash");
    command.current_dir(&folder.0).env_remove("VOLTA_DATA").env("VOLTA_THREADS", "1");
    command.args(["-c", &script]).output().unwrap()
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_that_leaves_no_half_a_model() {
    let folder = Folder::new("full");
    let arguments = "train --data short --device cpu --layers 1 --width 64 --heads 2 --context 16 --batch 4 --steps 4 \
                     --warmup 1 --valid-interval 0 --sample-interval 0 --quiet";
    let run = limited(40, &folder, arguments);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("models") && !said.contains("panicked"), "{said}");
    let name = folder.0.join("models/short-L1-H2-E64-cpu.safetensors");
    assert!(!name.exists(), "half a model");
    // With room the same command goes through.
    let roomy = Folder::new("roomy");
    ok(&limited(100_000, &roomy, arguments));
    assert!(roomy.0.join("models/short-L1-H2-E64-cpu.safetensors").exists());
}

#[test]
fn what_is_too_large_for_memory_is_an_error() {
    let folder = Folder::new("too-large");
    let arguments = "train --device cpu --data short --context 16 --layers 1 --heads 1 --width 1048576";
    for more in [&["--dry-run"][..], &["--steps", "2"]] {
        let run = volta(&folder).args(arguments.split(' ')).args(more).output().unwrap();
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{said}");
        assert!(said.contains("memory") && !said.contains("panicked"), "{said}");
        // On Linux it is known what there is.
        let numbers = said.matches(" GB").count();
        assert!(!cfg!(target_os = "linux") || numbers == 2, "{said}");
        assert!(!folder.0.join("models").exists(), "a folder for a run that never was");
    }
    for (workload, batch) in
        [("matmul-9999999", "0"), ("matmul-99999999999999999", "0"), ("mlp", "999999999999")]
    {
        let arguments = ["bench", "--iters", "1", "--workloads", workload, "--batch", batch];
        let run = volta(&folder).args(arguments).output().unwrap();
        let (said, line) = (text(&run.stderr), text(&run.stdout));
        assert_eq!(run.status.code(), Some(1), "{said}");
        let line: serde_json::Value =
            serde_json::from_str(line.trim()).unwrap_or_else(|e| panic!("{e}: {line}{said}"));
        assert!(line["error"].is_string() && line["workload"] == workload, "{line}");
    }
}

#[test]
fn a_model_of_a_newer_version_says_so() {
    let folder = Folder::new("version");
    ok(&tiny(&mut volta(&folder)).args(["--steps", "4", "--quiet"]).output().unwrap());
    let path = folder.0.join("models/short-L1-H2-E16-cpu.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let version = br#""version":"1""#;
    let at = bytes.windows(version.len()).position(|part| part == version).expect("the version is written");
    bytes[at + version.len() - 2] = b'9';
    std::fs::write(&path, &bytes).unwrap();
    let run = volta(&folder).args(["generate", "--device", "cpu", "The"]).output().unwrap();
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(said.contains("version 9") && said.contains("newer"), "{said}");
    // Cut off in the middle it is not read either.
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let run = volta(&folder).args(["eval", "--device", "cpu"]).output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    assert!(!text(&run.stderr).contains("panicked"), "{}", text(&run.stderr));
}

/// With no driver to be found.
#[cfg(target_os = "linux")]
#[test]
fn without_a_gpu_it_says_what_to_install() {
    let folder = Folder::new("no_gpu");
    let run = |adapter: Option<&str>| {
        let mut command = volta(&folder);
        command
            .args(["bench", "--device", "gpu", "--workloads", "xor", "--iters", "1"])
            .env_remove("VOLTA_ADAPTER");
        command.env("VK_DRIVER_FILES", "nowhere").env("VK_ICD_FILENAMES", "nowhere");
        if let Some(name) = adapter {
            command.env("VOLTA_ADAPTER", name);
        }
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{:?}", output.status);
        text(&output.stderr)
    };
    let said = run(None);
    assert!(said.contains("no GPU was found") && said.contains("mesa-vulkan-drivers"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let said = run(Some("llvmpipe"));
    assert!(said.contains("llvmpipe") && said.contains("VOLTA_ADAPTER"), "{said}");
}
