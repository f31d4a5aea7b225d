//! Every reader of files is given thousands of mutated files. None may panic, take more memory than its file accounts for,
//! or do more work than that.
//!
//! `VOLTA_FUZZ=1000000` reads as many files of every kind instead of a thousand; `VOLTA_FUZZ_SEED` begins with others. A
//! failure names the number of its file, which `VOLTA_FUZZ_SEED` reads again, and keeps the file.

mod memory;
mod mutate;
mod samples;

use mutate::{Random, mutated};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use volta::data::{Cifar10, Dataset, Mnist, decode_image};
use volta::io::Gguf;
use volta::text::{Corpus, Tokenizer};
use volta::{Checkpoint, Device, Weights};
use volta_testing::test;

/// How many files of every kind are read unless `VOLTA_FUZZ` says otherwise.
const FILES: u64 = 1000;

/// A kind of file and what reads it.
struct Kind {
    name: &'static str,
    samples: Vec<Vec<u8>>,
    /// Texts that mean something in it.
    words: &'static [&'static [u8]],
    /// What reading may take of memory, for every byte of a file.
    bytes_per_byte: usize,
    /// Makes checksums right and lengths true, for every other file: what is behind them is read then.
    repair: fn(&mut [u8]),
    read: fn(&[u8], &Scratch),
}

/// A file for readers that want a path.
struct Scratch(PathBuf);

impl Scratch {
    fn put(&self, bytes: &[u8]) -> &PathBuf {
        std::fs::write(&self.0, bytes).expect("the folder for temporary files can be written");
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// What every reader may take, whatever its file's size: tables, buffers of decoders.
const BASE_BYTES: usize = 4 << 20;
/// Work is measured in bytes that were asked for; what is freed and asked for again counts again.
const WORK_PER_PEAK: usize = 16;

fn fuzz(kind: Kind) {
    let temporary = std::env::temp_dir();
    let scratch = Scratch(temporary.join(format!("volta-fuzz-{}-{}", std::process::id(), kind.name)));
    let first = number("VOLTA_FUZZ_SEED").unwrap_or(0);
    // What is made once and kept is not the file's.
    kind.samples.iter().for_each(|sample| (kind.read)(sample, &scratch));
    for seed in first..first.saturating_add(number("VOLTA_FUZZ").unwrap_or(FILES)) {
        let mut file = mutated(&kind.samples, kind.words, &mut Random::new(seed));
        if seed % 2 == 1 {
            (kind.repair)(&mut file);
        }
        let read = || catch_unwind(AssertUnwindSafe(|| (kind.read)(&file, &scratch)));
        let (result, taken) = memory::measured(read);
        let most = BASE_BYTES + file.len() * kind.bytes_per_byte;
        let problem = if result.is_err() {
            "panicked".to_string()
        } else if taken.peak > most {
            format!("took {} bytes of memory for {}, more than {most}", taken.peak, file.len())
        } else if taken.total > most * WORK_PER_PEAK {
            format!(
                "asked for {} bytes in all for {}, more than {}",
                taken.total,
                file.len(),
                most * WORK_PER_PEAK
            )
        } else {
            continue;
        };
        let kept = temporary.join(format!("volta-fuzz-{}-{seed}", kind.name));
        std::fs::write(&kept, &file).expect("the folder for temporary files can be written");
        panic!("{}: file {seed} {problem}; it is kept as {}", kind.name, kept.display());
    }
}

/// Whatever a file of weights is used for.
fn use_weights(weights: &Weights) {
    assert!(!weights.to_string().chars().any(|c| c.is_control() && c != '\n'));
    for name in weights.names().take(50) {
        let _ = weights.tensor(name, Device::Cpu);
    }
    let _ = weights.under("model");
}

#[test]
fn safetensors() {
    fuzz(Kind {
        name: "safetensors",
        samples: vec![
            samples::stored("python.safetensors"),
            samples::stored("python_bf16.safetensors"),
            samples::weights(),
        ],
        words: &[
            b"\"F32\"",
            b"\"BF16\"",
            b"\"BOOL\"",
            b"\"F8_E4M3\"",
            b"[]",
            b"[0]",
            b"[1,1,1,1,1,1,1,1,1,1]",
            b"{}",
            b"__metadata__",
            b"null",
            b"\\u001b[31m",
            b"\\u009b",
        ],
        bytes_per_byte: 200,
        repair: samples::set_header_length,
        read: |bytes, _| {
            if let Ok(weights) = Weights::from_bytes(bytes.to_vec()) {
                use_weights(&weights);
            }
        },
    });
}

#[test]
fn pytorch() {
    let names =
        ["torch_checkpoint.pt", "torch_types.pt", "torch_views.pt", "torch_protocol4.pt", "torch_odd.pt"];
    fuzz(Kind {
        name: "pytorch",
        samples: names.map(samples::stored).to_vec(),
        words: &[
            b"h\x00",
            b"h\x01",
            b"](h\x00h\x00e",
            b"}",
            b"(",
            b"R",
            b"b",
            b"Q",
            b"q\x00",
            b"\x94",
            b"\x93",
            b"PK\x03\x04",
            b"PK\x01\x02",
            b"PK\x05\x06",
        ],
        bytes_per_byte: 2000,
        repair: |_| {},
        read: |bytes, _| {
            if let Ok(weights) = Weights::from_bytes(bytes.to_vec()) {
                use_weights(&weights);
            }
        },
    });
}

#[test]
fn gguf() {
    fuzz(Kind {
        name: "gguf",
        samples: vec![samples::stored("python.gguf"), samples::gguf(), samples::gguf()],
        words: &[
            b"general.alignment",
            b"tokenizer.ggml.tokens",
            b"tokenizer.ggml.token_type",
            b"<0x-1>",
            b"\x09\0\0\0\x08\0\0\0",
            b"\x04\0\0\0\0\0\0\0",
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x20\0\0\0\0\0\0\0",
            b"\x1b[31m",
        ],
        // Blocks of two bits become f32, and names and texts have memory of their own.
        bytes_per_byte: 200,
        repair: |_| {},
        read: |bytes, _| {
            if let Ok(file) = Gguf::from_bytes(bytes.to_vec()) {
                assert!(!file.to_string().chars().any(|c| c.is_control() && c != '\n'));
                let _ = file.vocabulary();
                for (key, _) in file.metadata().iter() {
                    let _ = (file.get::<usize>(key), file.get::<Vec<i32>>(key), file.get::<&[String]>(key));
                }
                for t in file.tensors() {
                    let _ = (file.blocks(t.name()), file.tensor(t.name(), Device::Cpu));
                }
            }
            if let Ok(weights) = Weights::from_bytes(bytes.to_vec()) {
                use_weights(&weights);
            }
        },
    });
}

#[test]
fn indices() {
    fuzz(Kind {
        name: "indices",
        samples: vec![
            br#"{"metadata":{"total_size":8},"weight_map":{"a":"one.safetensors","b":"one.safetensors"}}"#
                .to_vec(),
        ],
        words: &[b"..", b"/", b"null", b"[]", b"{}", b"\\u0000"],
        bytes_per_byte: 200,
        repair: |_| {},
        read: |bytes, scratch| {
            if let Ok(weights) = Weights::open(scratch.put(bytes)) {
                use_weights(&weights);
            }
        },
    });
}

#[test]
fn checkpoints() {
    fuzz(Kind {
        name: "checkpoints",
        samples: vec![samples::checkpoint()],
        words: &[b"\"int\"", b"\"text\"", b"\"F32\"", b"[]", b"{}", b"null", b"1e999"],
        bytes_per_byte: 400,
        repair: samples::set_header_length,
        read: |bytes, _| {
            if let Ok(checkpoint) = Checkpoint::from_bytes(bytes.to_vec()) {
                for part in checkpoint.parts() {
                    let _ = checkpoint.state(part);
                }
                let net = volta::Linear::new(3, 2, true);
                let _ = checkpoint.restore_module("net", &net);
                let _ = (checkpoint.int("step"), checkpoint.float("loss"), checkpoint.text("config"));
            }
        },
    });
}

#[test]
fn tokenizers() {
    fuzz(Kind {
        name: "tokenizers",
        samples: samples::tokenizers(),
        words: &[
            b"\"type\"",
            b"\"BPE\"",
            b"\"vocab\"",
            b"\"merges\"",
            b"null",
            b"[]",
            b"{}",
            b"true",
            b"\"\"",
            b"\"<unk>\"",
            b"4294967295",
        ],
        bytes_per_byte: 1000,
        repair: |_| {},
        read: |bytes, _| {
            let text = String::from_utf8_lossy(bytes);
            if let Ok(tokenizer) = Tokenizer::from_json(&text) {
                let ids =
                    tokenizer.try_encode("It's a text, with unknown words: 中文 \u{1b}").unwrap_or_default();
                let _ = tokenizer.decode(&ids);
                let _ = tokenizer.decode(&[0, 5, 300, u32::MAX]);
                let _ = Tokenizer::from_json(&tokenizer.to_json());
            }
        },
    });
}

#[test]
fn idx() {
    let (images, labels) = samples::idx();
    fuzz(Kind {
        name: "idx",
        samples: vec![images, labels],
        words: &[b"\x1f\x8b\x08", b"\0\0\x08\x03", b"\0\0\x08\x01"],
        // A gzip stream may unfold to a thousand times its size.
        bytes_per_byte: 3000,
        repair: |_| {},
        read: |bytes, _| {
            let (images, labels) = samples::idx();
            for data in
                [Mnist::from_bytes(bytes, &labels), Mnist::from_bytes(&images, bytes)].into_iter().flatten()
            {
                let _ = data.get(0);
            }
        },
    });
}

#[test]
fn cifar() {
    fuzz(Kind {
        name: "cifar",
        samples: samples::cifar(),
        words: &[b"\x1f\x8b\x08", b"data_batch_1.bin", b"ustar", b"77777777777"],
        bytes_per_byte: 3000,
        repair: |_| {},
        read: |bytes, scratch| {
            if let Ok(data) = Cifar10::train(scratch.put(bytes)) {
                let _ = data.get(0);
            }
        },
    });
}

#[test]
fn images() {
    fuzz(Kind {
        name: "images",
        samples: samples::images(),
        words: &[
            b"IHDR",
            b"IDAT",
            b"PLTE",
            b"IEND",
            b"\xff\xda",
            b"\xff\xc2",
            b"\xff\xc4",
            b"P6",
            b"P5",
            b"BM",
        ],
        bytes_per_byte: 40_000,
        repair: samples::set_png_checksums,
        read: |bytes, _| {
            let _ = decode_image(bytes);
        },
    });
}

#[test]
fn logs() {
    fuzz(Kind {
        name: "logs",
        samples: vec![
            b"step,epoch,name,value\n1,1,train/loss,0.5\n2,1,validation/loss,NaN\n2,1,train/loss,1e-3\n"
                .to_vec(),
        ],
        words: &[b",", b"\n", b"inf", b"-1", b"\"", b"18446744073709551616"],
        bytes_per_byte: 200,
        repair: |_| {},
        read: |bytes, scratch| {
            if let Ok(history) = volta::train::read_csv(scratch.put(bytes)) {
                let _ = (history.last("train/loss"), history.charts().len());
            }
        },
    });
}

#[test]
fn texts() {
    fuzz(Kind {
        name: "texts",
        samples: vec!["A line.\nAn ünïcödé line — 中文.\r\n".repeat(4).into_bytes()],
        words: &[b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\xed\xa0\x80"],
        bytes_per_byte: 50,
        repair: |_| {},
        read: |bytes, scratch| {
            if let Ok(corpus) = Corpus::load(&scratch.put(bytes).display().to_string(), &Default::default()) {
                assert!(!corpus.train.is_empty());
            }
        },
    });
}

volta_testing::main!();
