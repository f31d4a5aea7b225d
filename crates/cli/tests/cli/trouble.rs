//! What the world does to a run: files that cannot be read, or not be written, and models of other programs.

use super::{Folder, ok, text, tiny, tiny_on, volta};
use std::process::Command;
use volta_testing::test;

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

/// What a program says that must not take a minute; pipes and devices would take for ever.
#[cfg(unix)]
fn soon(command: &mut Command) -> std::process::Output {
    use std::process::Stdio;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    for _ in 0..6000 {
        if child.try_wait().expect("it is a child").is_some() {
            return child.wait_with_output().expect("it has ended");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let _ = child.kill();
    panic!("{command:?} waits");
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_that_are_named_like_models_are_not_opened() {
    let folder = Folder::new("pipes");
    let models = folder.0.join("models");
    std::fs::create_dir(&models).unwrap();
    assert!(Command::new("mkfifo").arg(models.join("pipe.safetensors")).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", models.join("zero.safetensors")).unwrap();
    let listed = soon(volta(&folder).arg("models"));
    assert!(ok(&listed).contains("No models"));
    for (arguments, part) in [
        (&["chat"][..], "there is no model"),
        (&["chat", "pipe"], "pipe"),
        (&["generate", "--model", "models/pipe.safetensors", "x"], "pipe"),
        (&["inspect", "models/pipe.safetensors"], "a named pipe"),
        (&["inspect", "models/zero.safetensors"], "a device"),
        (&["inspect", "/dev/zero"], "a device"),
        (&["train", "--data", "/dev/zero", "--device", "cpu"], "a device"),
        (&["train", "--config", "/dev/zero"], "longer than"),
    ] {
        let output = soon(volta(&folder).args(arguments));
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {:?}\n{said}", output.status);
        assert!(said.contains(part) && !said.contains("panicked"), "{arguments:?}\n{said}");
    }
}

/// Names in files, texts and what models write reach the terminal without control characters.
#[test]
fn what_a_terminal_would_obey_is_escaped() {
    let folder = Folder::new("escapes");
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{8}";
    let safe = |output: &std::process::Output| {
        let said = text(&output.stdout) + &text(&output.stderr);
        let obeyed = |c: char| !matches!(c, '\n' | '\t') && (c.is_control() || c == '\u{202e}');
        assert!(!said.chars().any(obeyed), "{said:?}");
        assert!(said.contains("\\u{1b}") || said.contains("\\u001b"), "{said:?}");
    };
    let name = serde_json::to_string(evil).unwrap();
    let header = format!(r#"{{{name}:{{"dtype":{name},"shape":[1],"data_offsets":[0,1]}}}}"#);
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0]].concat();
    std::fs::write(folder.0.join("evil.safetensors"), file).unwrap();
    safe(&volta(&folder).args(["inspect", "evil.safetensors"]).output().unwrap());
    safe(&volta(&folder).args(["inspect", "--json", "evil.safetensors"]).output().unwrap());
    let header = header.replace(r#""data_offsets":[0,1]"#, r#""data_offsets":[0,2]"#);
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0]].concat();
    std::fs::write(folder.0.join("wrong.safetensors"), file).unwrap();
    safe(&volta(&folder).args(["inspect", "wrong.safetensors"]).output().unwrap());
    std::fs::write(folder.0.join("wrong.toml"), format!("{name} = 1\n")).unwrap();
    safe(&volta(&folder).args(["train", "--config", "wrong.toml"]).output().unwrap());
    // A model that has learnt nothing else says nothing else, in samples, texts and answers.
    std::fs::write(folder.0.join("evil.txt"), evil.repeat(60)).unwrap();
    let trained = tiny_on("evil.txt", &mut volta(&folder))
        .args(["--steps", "20", "--tokenizer", "chars"])
        .output()
        .unwrap();
    ok(&trained);
    safe(&trained);
    let generate = ["generate", "--device", "cpu", "--length", "20", "--seed", "1"];
    safe(&volta(&folder).args(generate).arg("x").output().unwrap());
    safe(&volta(&folder).args(generate).args(["--json", "x"]).output().unwrap());
}
