//! safetensors files that nobody should trust: each is an error that says what is wrong, and where.

use volta::{Device, ErrorKind, Weights};
use volta_testing::test;

/// A file with any header and any elements.
fn file(header: &str, elements: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + elements, 0);
    bytes
}

fn refused(bytes: Vec<u8>, parts: &[&str]) {
    let error = Weights::from_bytes(bytes).err().unwrap_or_else(|| panic!("{parts:?} was accepted"));
    assert_eq!(error.kind(), ErrorKind::Data);
    for part in parts {
        assert!(error.to_string().contains(part), "{error} does not say {part:?}");
    }
}

fn tensor(name: &str, dtype: &str, shape: &str, start: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
}

#[test]
fn headers_that_cannot_be_are_refused() {
    let said = |length: u64| {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend_from_slice(b"{}      ");
        bytes
    };
    refused(said(u64::MAX), &["the given bytes", "header"]);
    refused(said(9), &["9 bytes, but only 8 follow"]);
    refused(said(1 << 40), &["at most"]);
    refused(said(i64::MAX as u64), &["header"]);
    refused(vec![], &["neither"]);
    refused(vec![3, 0, 0], &["neither"]);
    refused(file("{", 0), &["EOF"]);
    refused(file("{]", 0), &["header"]);
    refused(file(r#"{"a":1}"#, 0), &["tensor \"a\"", "dtype"]);
    refused(file(r#"{"__metadata__":{"a":1}}"#, 0), &["__metadata__"]);
    refused(file(r#"{"__metadata__":{"a":"1","a":"2"}}"#, 0), &["\"a\" stands there twice"]);
    let mut not_text = file(r#"{"aaaa":1}"#, 0);
    not_text[11..13].copy_from_slice(&[0xff, 0xfe]);
    refused(not_text, &["UTF-8"]);
}

#[test]
fn tensors_that_cannot_be_are_refused_by_name() {
    let one = |tensor: String, elements: usize| file(&format!("{{{tensor}}}"), elements);
    let w = |shape: &str, start: u64, end: u64| tensor("w", "F32", shape, start, end);
    refused(one(w("[2]", 0, 16), 8), &["tensor \"w\"", "0 to 16 of 8"]);
    refused(one(w("[2]", 8, 0), 8), &["tensor \"w\"", "8 to 0"]);
    refused(one(w("[3]", 0, 8), 8), &["tensor \"w\"", "F32 [3] takes 12 bytes, and it has 8"]);
    refused(one(w("[-2]", 0, 8), 8), &["tensor \"w\"", "shape"]);
    refused(one(w("[2.0]", 0, 8), 8), &["tensor \"w\"", "shape"]);
    refused(one(w("[4611686018427387904,4611686018427387904]", 0, 8), 8), &["tensor \"w\"", "counted"]);
    refused(one(w("[2]", u64::MAX - 8, u64::MAX), 8), &["tensor \"w\"", "data_offsets"]);
    refused(one(w("[2]", 4, 12), 12), &["tensor \"w\"", "does not follow"]);
    refused(one(w("[2]", 0, 8), 12), &["end at byte 8, and it has 12"]);
    refused(one(r#""w":{"dtype":"F32","shape":[2],"data_offsets":[0]}"#.into(), 8), &["tensor \"w\"", "[0]"]);
    refused(one(r#""w":{"dtype":"F32","shape":[2]}"#.into(), 8), &["tensor \"w\"", "no \"data_offsets\""]);
    let twice = format!("{},{}", w("[2]", 0, 8), w("[2]", 8, 16));
    refused(one(twice, 16), &["\"w\" stands there twice"]);
    let over = format!("{},{}", w("[2]", 0, 8), tensor("v", "F32", "[2]", 4, 12));
    refused(one(over, 12), &["tensor \"v\"", "overlaps"]);
}

#[test]
fn tensors_may_stand_in_any_order() {
    let header = format!("{{{},{}}}", tensor("b", "U8", "[2]", 1, 3), tensor("a", "U8", "[1]", 0, 1));
    let mut bytes = file(&header, 3);
    let end = bytes.len();
    bytes[end - 3..].copy_from_slice(&[5, 6, 7]);
    let weights = Weights::from_bytes(bytes).unwrap();
    assert_eq!(weights.names().collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(weights.tensor("b", Device::Cpu).unwrap().to_vec::<u8>(), [6, 7]);
}

#[test]
fn a_type_that_volta_does_not_have_matters_only_to_who_asks_for_it() {
    for dtype in ["I8", "U16", "F8_E4M3", "SOMETHING_NEW"] {
        let bytes = if dtype == "U16" { 4 } else { 2 };
        let header = format!(
            "{{{},{}}}",
            tensor("odd", dtype, "[2]", 0, bytes),
            tensor("fine", "U8", "[2]", bytes, bytes + 2)
        );
        let weights = Weights::from_bytes(file(&header, bytes as usize + 2)).unwrap();
        assert_eq!(weights.entry("odd").unwrap().dtype(), None);
        assert!(weights.to_string().contains(dtype));
        assert_eq!(weights.tensor("fine", Device::Cpu).unwrap().to_vec::<u8>(), [0, 0]);
        let error = weights.tensor("odd", Device::Cpu).unwrap_err();
        assert!(error.message().contains("\"odd\"") && error.message().contains(dtype), "{error}");
        assert!(weights.load().err().unwrap().message().contains("\"odd\""));
    }
}

#[test]
fn more_axes_than_volta_has_matter_only_to_who_asks_for_them() {
    let bytes = file(&format!("{{{}}}", tensor("w", "U8", "[1,1,1,1,1,1,1,1,2]", 0, 2)), 2);
    let error = Weights::from_bytes(bytes).unwrap().tensor("w", Device::Cpu).unwrap_err();
    assert!(error.message().contains("\"w\"") && error.message().contains("9 axes"), "{error}");
}

/// What is longer than a table can be wide is cut there.
#[test]
fn names_types_and_shapes_of_any_length_are_listed() {
    let long = "n".repeat(70_000);
    let many = format!("[{}1]", "1,".repeat(69_999));
    for (name, dtype, shape) in [(&*long, "U8", "[1]"), ("w", &*long, "[1]"), ("w", "U8", &*many)] {
        let weights =
            Weights::from_bytes(file(&format!("{{{}}}", tensor(name, dtype, shape, 0, 1)), 1)).unwrap();
        let table = weights.to_string();
        assert_eq!(table.lines().count(), 3);
        assert!(table.len() < 2_000 && table.contains('…') && table.contains("1 B"), "{table:.300}");
    }
    let twice = format!("{},{}", tensor(&long, "U8", "[1]", 0, 1), tensor("w", "U8", "[1]", 0, 1));
    let error = Weights::from_bytes(file(&format!("{{{twice}}}"), 1)).unwrap_err();
    assert!(
        error.message().len() < 5_000 && error.message().contains("overlaps"),
        "{:.300}",
        error.message()
    );
}

/// Names, types and keys reach a terminal as escapes.
#[test]
fn what_a_terminal_would_obey_is_never_printed() {
    let evil = r"\u001b[31mred\u001b]0;title\u0007\u009b2J\u202e\u0000\r";
    let safe = |text: &str| {
        let control = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.chars().any(control) && text.contains("\\u{1b}[31mred"), "{text:?}");
    };
    let weights = Weights::from_bytes(file(&format!("{{{}}}", tensor(evil, evil, "[1]", 0, 1)), 1)).unwrap();
    safe(&weights.to_string());
    safe(weights.load().err().unwrap().message());
    safe(weights.tensor("w", Device::Cpu).unwrap_err().message());
    for header in [
        tensor(evil, "U8", "[2]", 0, 1),
        format!(r#""w":{{"dtype":{{"{evil}":1}},"shape":[1],"data_offsets":[0,1]}}"#),
        format!(r#""{evil}":1,"{evil}":1"#),
    ] {
        let error = Weights::from_bytes(file(&format!("{{{header}}}"), 1)).unwrap_err();
        let text = error.to_string();
        assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}') && text.contains("red"), "{text:?}");
    }
}

/// A pipe makes whoever opens it wait, and a device may never end.
#[cfg(unix)]
#[test]
fn only_regular_files_are_opened() {
    let scratch = crate::scratch::Scratch::new("pipes");
    let pipe = scratch.file("model.safetensors");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let folder = pipe.parent().unwrap();
    let device = scratch.file("zero.safetensors");
    std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
    let index = scratch.file("index.json");
    std::fs::write(&index, r#"{"weight_map":{"w":"model.safetensors"}}"#).unwrap();
    for (path, what) in [(&pipe, "a named pipe"), (&device, "a device"), (&index, "a named pipe")] {
        let error = Weights::open(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains(what), "{error}");
    }
    assert!(Weights::open(folder).is_err());
    for path in [&pipe, &device] {
        assert!(volta::text::Tokenizer::from_file(path).is_err());
        assert!(volta::data::read_image(path).is_err());
        assert!(volta::train::read_csv(path).is_err());
    }
    let data = volta::text::Corpus::load(&device.display().to_string(), &Default::default()).unwrap_err();
    assert!(data.message().contains("a device"), "{data}");
}

/// The first bytes of a file are the length of its header: by chance they look like those of other formats.
#[test]
fn a_header_may_have_any_length() {
    let scratch = crate::scratch::Scratch::new("lengths");
    let path = scratch.file("net.safetensors");
    for (length, like) in [(0x7b, "{"), (0x7b20, " {"), (0x4b50, "PK"), (0x0280, "\u{80}\u{2}")] {
        let mut header = format!("{{{}}}", tensor("w", "U8", "[2]", 0, 2));
        header.extend(std::iter::repeat_n(' ', length - header.len()));
        let bytes = file(&header, 2);
        assert_eq!(bytes[..like.chars().count()], like.chars().map(|c| c as u8).collect::<Vec<u8>>());
        std::fs::write(&path, bytes).unwrap();
        let weights = Weights::open(&path).unwrap();
        assert_eq!(weights.tensor("w", Device::Cpu).unwrap().to_vec::<u8>(), [0, 0]);
    }
}

#[test]
fn other_files_are_told_from_weights() {
    refused(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n".to_vec(), &["git lfs pull"]);
    refused(b"hello, this is no file of weights".to_vec(), &["neither"]);
}

/// Whatever happens, no byte may bring the program down; prefixes are always refused.
#[test]
fn every_prefix_is_refused_and_no_byte_brings_the_program_down() {
    let whole = std::fs::read(crate::scratch::stored("python.safetensors")).unwrap();
    for end in 0..whole.len() {
        refused(whole[..end].to_vec(), &[]);
    }
    for at in 0..whole.len() {
        for value in [0, 1, b'"', b'9', 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            if let Ok(weights) = Weights::from_bytes(bytes) {
                for name in weights.names() {
                    let _ = weights.tensor(name, Device::Cpu);
                }
            }
        }
    }
}
