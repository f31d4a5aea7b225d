//! GGUF files that nobody should trust: each is an error that says what is wrong, and where.

use volta::io::{Gguf, GgufWriter};
use volta::{ErrorKind, Weights};
use volta_testing::test;

/// Numbers of types.
const U8: u32 = 0;
const U32: u32 = 4;
const BOOL: u32 = 7;
const TEXT: u32 = 8;
const LIST: u32 = 9;

/// A file, piece by piece, whatever it says.
#[derive(Clone)]
struct File(Vec<u8>);

impl File {
    fn new(version: u32, tensors: u64, keys: u64) -> File {
        File(b"GGUF".to_vec()).u32(version).u64(tensors).u64(keys)
    }

    fn bytes(mut self, bytes: &[u8]) -> File {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, n: u32) -> File {
        self.bytes(&n.to_le_bytes())
    }

    fn u64(self, n: u64) -> File {
        self.bytes(&n.to_le_bytes())
    }

    fn text(self, text: &str) -> File {
        self.u64(text.len() as u64).bytes(text.as_bytes())
    }

    fn key(self, key: &str, kind: u32) -> File {
        self.text(key).u32(kind)
    }

    fn tensor(self, name: &str, extents: &[u64], kind: u32, place: u64) -> File {
        let file = self.text(name).u32(extents.len() as u32);
        let file = extents.iter().fold(file, |file, &extent| file.u64(extent));
        file.u32(kind).u64(place)
    }

    /// The elements, behind the header.
    fn elements(mut self, count: usize) -> File {
        self.0.resize(self.0.len().next_multiple_of(32), 0);
        self.0.resize(self.0.len() + count, 0);
        self
    }
}

fn with_key(key: &str, kind: u32) -> File {
    File::new(3, 0, 1).key(key, kind)
}

fn with_tensor(extents: &[u64], kind: u32, place: u64, elements: usize) -> File {
    File::new(3, 1, 0).tensor("w", extents, kind, place).elements(elements)
}

#[test]
fn headers_and_tensors_that_cannot_be_are_refused() {
    let padding = [0; 64];
    let alignment = |kind, value: &[u8]| with_key("general.alignment", kind).bytes(value).bytes(&padding);
    let many_axes = File::new(3, 1, 0).text("w").u32(u32::MAX).bytes(&padding);
    let two = |a: (u64, u64), b: (u64, u64)| {
        File::new(3, 2, 0).tensor("a", &[a.1], 0, a.0).tensor("b", &[b.1], 0, b.0).elements(64)
    };
    let table: Vec<(File, &[&str])> = vec![
        // The beginning.
        (File(b"GGUF".to_vec()), &["the given bytes", "version", "cut off"]),
        (File(b"GGUF\x03\0\0".to_vec()), &["cut off"]),
        (File::new(1, 0, 0), &["version 1"]),
        (File::new(4, 0, 0), &["version 4"]),
        (File::new(3u32.swap_bytes(), 0, 0), &["big-endian"]),
        (File::new(3, u64::MAX, 0), &["number of tensors", "18446744073709551615"]),
        (File::new(3, 0, u64::MAX), &["number of keys", "18446744073709551615"]),
        (File::new(3, 0, 1 << 60), &["number of keys"]),
        (File::new(3, 1 << 32, 0).bytes(&padding), &["number of tensors", "4294967296"]),
        // Keys and values.
        (with_key("", U8).bytes(&padding), &["key 0", "is empty"]),
        (with_key(&"k".repeat(65_536), U8).bytes(&[1]), &["65536 bytes"]),
        (File::new(3, 0, 1).u64(u64::MAX).bytes(&padding), &["length of key 0", "18446744073709551615"]),
        (File::new(3, 0, 1).u64(65).bytes(&padding), &["length of key 0", "65"]),
        (File::new(3, 0, 1).u64(2).bytes(&[0xff, 0xfe]).bytes(&padding), &["key 0", "UTF-8"]),
        (with_key("a", 13).bytes(&padding), &["\"a\"", "type 13"]),
        (with_key("a", BOOL).bytes(&[2]).bytes(&padding), &["\"a\"", "truth value", "2"]),
        (with_key("a", U32).bytes(&[2]), &["\"a\"", "cut off"]),
        (with_key("a", TEXT).u64(u64::MAX).bytes(&padding), &["length of the value of \"a\""]),
        (with_key("a", TEXT).u64(1 << 63).bytes(&padding), &["length of the value of \"a\""]),
        (with_key("a", TEXT).u64(1).bytes(&[0xff]), &["\"a\"", "UTF-8"]),
        (
            File::new(3, 0, 2).key("a", U8).bytes(&[1]).key("a", U8).bytes(&[1]).bytes(&padding),
            &["\"a\" stands twice"],
        ),
        // Lists.
        (with_key("a", LIST).u32(U32).u64(u64::MAX).bytes(&padding), &["length of the value of \"a\""]),
        (with_key("a", LIST).u32(U32).u64((1 << 62) + 1).bytes(&padding), &["4611686018427387905"]),
        (with_key("a", LIST).u32(TEXT).u64(9).bytes(&padding), &["is said to be 9"]),
        (with_key("a", LIST).u32(TEXT).u64(1).u64(57).bytes(&padding[..56]), &["element 0", "57"]),
        (with_key("a", LIST).u32(LIST).u64(1).bytes(&padding), &["\"a\"", "list of lists"]),
        (with_key("a", LIST).u32(99).u64(1).bytes(&padding), &["\"a\"", "type 99"]),
        (with_key("a", LIST).u32(BOOL).u64(1).bytes(&[7]), &["\"a\"", "truth value"]),
        // Alignments.
        (alignment(U32, &0u32.to_le_bytes()), &["general.alignment", "power of two"]),
        (alignment(U32, &33u32.to_le_bytes()), &["general.alignment", "33"]),
        (alignment(U32, &u32::MAX.to_le_bytes()), &["general.alignment"]),
        (alignment(10, &32u64.to_le_bytes()), &["general.alignment", "u64"]),
        (alignment(TEXT, &0u64.to_le_bytes()), &["general.alignment", "text"]),
        // Names.
        (File::new(3, 1, 0).tensor("", &[1], 0, 0).elements(64), &["name of tensor 0", "is empty"]),
        (File::new(3, 1, 0).u64(u64::MAX).bytes(&padding), &["length of the name of tensor 0"]),
        (
            File::new(3, 2, 0).tensor("w", &[8], 0, 0).tensor("w", &[8], 0, 32).elements(64),
            &["two tensors are called \"w\""],
        ),
        (File::new(3, 1, 0).tensor("\u{1b}[31m", &[0], 0, 0).elements(64), &["\"\\u{1b}[31m\"", "extent 0"]),
        // Shapes.
        (many_axes, &["\"w\"", "4294967295 axes"]),
        (with_tensor(&[1, 1, 1, 1, 1], 0, 0, 32), &["\"w\"", "5 axes"]),
        (with_tensor(&[0], 0, 0, 32), &["\"w\"", "extent 0"]),
        (with_tensor(&[8, 0, 8], 0, 0, 32), &["\"w\"", "extent 0"]),
        (with_tensor(&[1 << 63], 0, 0, 32), &["\"w\"", "extent 9223372036854775808"]),
        (with_tensor(&[u64::MAX], 0, 0, 32), &["\"w\"", "extent 18446744073709551615"]),
        (with_tensor(&[1 << 32, 1 << 32], 0, 0, 32), &["\"w\"", "counted"]),
        (with_tensor(&[1 << 62], 0, 0, 32), &["\"w\"", "counted"]),
        // 2⁶⁴ bytes of blocks, and a little more, which would wrap to something that fits.
        (with_tensor(&[32, 1 << 58, 2], 2, 0, 64), &["\"w\""]),
        (with_tensor(&[(1 << 62) + 8], 0, 0, 32), &["\"w\"", "counted"]),
        (with_tensor(&[31], 2, 0, 64), &["\"w\"", "rows of 31"]),
        (with_tensor(&[32], 12, 0, 256), &["\"w\"", "Q4_K", "256"]),
        // Types.
        (with_tensor(&[32], 4, 0, 64), &["\"w\"", "number 4"]),
        (with_tensor(&[32], u32::MAX, 0, 64), &["\"w\"", "number 4294967295"]),
        // Places.
        (with_tensor(&[8], 0, 0, 31), &["\"w\"", "32 bytes", "0 of 31"]),
        (with_tensor(&[8], 0, 32, 63), &["\"w\"", "32 of 63"]),
        (with_tensor(&[8], 0, u64::MAX - 31, 64), &["\"w\"", "18446744073709551584"]),
        (with_tensor(&[8], 0, 8, 64), &["\"w\"", "no multiple of 32"]),
        (two((0, 16), (32, 8)), &["\"b\" overlaps \"a\""]),
        (two((32, 8), (32, 8)), &["overlaps"]),
        (File::new(3, 1, 0).tensor("w", &[8], 0, 0), &["\"w\"", "cut off"]),
    ];
    for (file, parts) in table {
        for error in [Gguf::from_bytes(file.0.clone()).err(), Weights::from_bytes(file.0).err()] {
            let error = error.unwrap_or_else(|| panic!("{parts:?} was accepted"));
            assert_eq!(error.kind(), ErrorKind::Data);
            for part in parts {
                assert!(error.message().contains(part), "{error} does not say {part:?}");
            }
        }
    }
}

#[test]
fn what_may_be_is_read() {
    assert_eq!(Gguf::from_bytes(File::new(2, 0, 0).0).unwrap().version(), 2);
    // No tensors, and so nothing behind the header; a scalar; bytes of nobody at the end.
    assert!(Gguf::from_bytes(with_key("a", U8).bytes(&[1]).0).unwrap().tensors().is_empty());
    let file = Gguf::from_bytes(with_tensor(&[], 0, 0, 4).0).unwrap();
    assert_eq!(file.find("w").unwrap().shape(), [0usize; 0]);
    assert!(Gguf::from_bytes(with_tensor(&[8], 0, 0, 500).0).is_ok());
    let listed = Gguf::from_bytes(with_tensor(&[256], 16, 0, 66).0).unwrap();
    let error = listed.tensor("w", volta::Device::Cpu).unwrap_err();
    assert!(error.message().contains("IQ2_XXS"), "{error}");
}

/// What is wrong with a vocabulary of three tokens that is changed.
fn wrong_vocabulary(change: impl FnOnce(&mut GgufWriter)) -> String {
    let mut writer = GgufWriter::new();
    writer.set("tokenizer.ggml.model", "llama");
    writer.set("tokenizer.ggml.tokens", ["<unk>", "<0x0A>", "a"].map(String::from).to_vec());
    writer.set("tokenizer.ggml.scores", vec![0f32; 3]);
    writer.set("tokenizer.ggml.token_type", vec![2i32, 6, 1]);
    writer.set("tokenizer.ggml.eos_token_id", u32::MAX);
    assert!(Gguf::from_bytes(writer.to_bytes().unwrap()).unwrap().vocabulary().is_ok());
    change(&mut writer);
    let file = Gguf::from_bytes(writer.to_bytes().unwrap()).unwrap();
    file.vocabulary().unwrap_err().message().to_string()
}

#[test]
fn vocabularies_that_contradict_themselves_are_refused() {
    let tokens = |second: &str| vec!["<unk>".to_string(), second.to_string(), "a".to_string()];
    let table = [
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.tokens", vec![1i32, 2, 3])), "a list of texts"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.tokens", "abc")), "a list of texts"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.scores", vec![0f32; 2])), "has 2 elements"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.scores", vec![0i32; 3])), "a list of f32"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.token_type", vec![1i32; 4])), "has 4 elements"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.token_type", vec![1i32, 7, 1])), "kind 7"),
        (
            wrong_vocabulary(|w| w.set("tokenizer.ggml.token_type", vec![1u64, u64::MAX, 1])),
            "a list of whole",
        ),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.tokens", tokens("<0x-1>"))), "said to be a byte"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.tokens", tokens("<0x1FF>"))), "said to be a byte"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.bos_token_id", 3u32)), "is 3, and it has 3 tokens"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.bos_token_id", -1i32)), "a whole number"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.merges", vec![0u8])), "a list of texts"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.add_bos_token", 1u32)), "a truth value"),
        (wrong_vocabulary(|w| w.set("tokenizer.ggml.model", 1u32)), "a text"),
    ];
    for (message, part) in table {
        assert!(message.contains(part), "{message} lacks {part:?}");
    }
}
