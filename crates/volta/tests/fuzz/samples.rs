//! Small whole files of every kind.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;
use volta::io::{GgufType, GgufWriter, to_safetensors};
use volta::text::{Tokenizer, TokenizerKind, TokenizerOptions};
use volta::{Adam, Checkpoint, Linear, Module};

/// A file of the repository.
pub fn stored(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    std::fs::read(path).expect("it stands in the repository")
}

pub fn weights() -> Vec<u8> {
    let metadata = [("format".to_string(), "pt".to_string())].into();
    to_safetensors(&Linear::new(3, 2, true).state_dict(), &metadata).expect("memory takes everything")
}

/// A small file, so that what is changed is mostly the header.
pub fn gguf() -> Vec<u8> {
    let mut file = GgufWriter::new();
    file.set("general.architecture", "llama");
    file.set("llama.block_count", 1u32);
    file.set("llama.rope.freq_base", 10_000f32);
    file.set("tokenizer.ggml.model", "llama");
    file.set("tokenizer.ggml.tokens", ["<unk>", "<0x0A>", "a"].map(String::from).to_vec());
    file.set("tokenizer.ggml.token_type", vec![2i32, 6, 1]);
    file.set("tokenizer.ggml.add_bos_token", true);
    for (name, kind, bytes) in
        [("a", GgufType::Q4_0, 18), ("b", GgufType::F16, 64), ("c", GgufType::Q8_0, 34)]
    {
        file.blocks(name, kind, &[1, 32], vec![0x11; bytes]).expect("they fit");
    }
    file.to_bytes().expect("memory takes everything")
}

pub fn checkpoint() -> Vec<u8> {
    let net = Linear::new(3, 2, true);
    let optimizer = Adam::new(net.parameters(), 0.1, (0.9, 0.999), 1e-8, 0.0);
    let checkpoint = Checkpoint::new().with_module("net", &net).with("optimizer", &optimizer).with_rng();
    let checkpoint = checkpoint.with_value("step", 7).with_value("loss", 0.5).with_value("config", "a = 1");
    checkpoint.to_bytes().expect("memory takes everything")
}

/// Every kind that is trained here, and one as Hugging Face writes it.
pub fn tokenizers() -> Vec<Vec<u8>> {
    let options = TokenizerOptions { vocabulary: Some(270) };
    let text = "the cat sat on the mat, and the dog sat on the cat";
    let mut all: Vec<Vec<u8>> = TokenizerKind::ALL
        .iter()
        .map(|&kind| {
            Tokenizer::train(kind, text, &options).expect("it is large enough").to_json().into_bytes()
        })
        .collect();
    let theirs = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<unk>","single_word":false,
        "lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":{"type":"Lowercase"},
        "pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,"model":{"type":"WordLevel",
        "vocab":{"<unk>":0,"the":1,"cat":2},"unk_token":"<unk>"}}"#;
    all.push(theirs.as_bytes().to_vec());
    all
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

/// Three images of 2 × 2 with their labels, the latter gzipped.
pub fn idx() -> (Vec<u8>, Vec<u8>) {
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2];
    images.extend((0..12).map(|k| k * 20));
    (images, gzip(&[0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9]))
}

/// An archive of five files of one image each, plain and gzipped.
pub fn cifar() -> Vec<Vec<u8>> {
    let mut archive = Vec::new();
    for n in 1..=5u8 {
        let name = format!("cifar-10-batches-bin/data_batch_{n}.bin");
        let mut header = [0u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", 3073).as_bytes());
        header[156] = b'0';
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        archive.extend(header);
        archive.push(n);
        archive.extend((0..3072u32).map(|p| p as u8));
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    vec![gzip(&archive), archive]
}

/// One image of every kind: PNG of colours and of a palette, JPEG, BMP, PPM and PGM.
pub fn images() -> Vec<Vec<u8>> {
    let pixels: Vec<u8> = (0..48).map(|k| k * 5).collect();
    let png = |colour: png::ColorType, depth: png::BitDepth, data: &[u8]| {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 4, 4);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        if colour == png::ColorType::Indexed {
            encoder.set_palette(vec![0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 255]);
        }
        let mut writer = encoder.write_header().expect("memory takes everything");
        writer.write_image_data(data).expect("memory takes everything");
        drop(writer);
        file
    };
    let mut bmp = b"BM".to_vec();
    for number in [102u32, 0, 54, 40, 4, 4] {
        bmp.extend(number.to_le_bytes());
    }
    bmp.extend([1, 0, 24, 0]);
    bmp.extend([0; 24]);
    bmp.extend(&pixels);
    vec![
        png(png::ColorType::Rgb, png::BitDepth::Eight, &pixels),
        png(png::ColorType::Indexed, png::BitDepth::Two, &[0x1b, 0xe4, 0x1b, 0xe4]),
        jpeg(),
        bmp,
        [&b"P6 # made here\n4 4 255\n"[..], &pixels].concat(),
        [&b"P5\n4 4\n15\n"[..], &[3; 16]].concat(),
    ]
}

/// A JPEG of one block of 8 × 8. Its tables have one code each: a difference of seven bits, and the end of a block.
fn jpeg() -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    let mut segment = |marker: u8, content: &[u8]| {
        file.extend([0xff, marker]);
        file.extend((content.len() as u16 + 2).to_be_bytes());
        file.extend(content);
    };
    segment(0xdb, &[&[0][..], &[8; 64]].concat());
    segment(0xc0, &[8, 0, 8, 0, 8, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    for (class, symbol) in [(0x00, 7), (0x10, 0)] {
        segment(0xc4, &[&[class, 1][..], &[0; 15], &[symbol]].concat());
    }
    segment(0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    // 0 1001000 0, 0 1010000 0, 0 1100100 0, and ones to the end of the byte.
    file.extend([0b0100_1000, 0b0010_1000, 0b0001_1001, 0b0001_1111, 0xff, 0xd9]);
    file
}

/// Says of a safetensors file that its header ends with the last brace in it.
pub fn set_header_length(file: &mut [u8]) {
    if let Some(last) = file.iter().rposition(|&byte| byte == b'}').filter(|&last| last >= 8) {
        file[..8].copy_from_slice(&(last as u64 - 7).to_le_bytes());
    }
}

/// Writes the checksum of every chunk of a PNG, as far as their lengths lead from one to the next.
pub fn set_png_checksums(file: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = file.get(at..at + 4) {
        let length = length.iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
        let end = at + 8 + length;
        if end + 4 > file.len() {
            return;
        }
        let mut sum = flate2::Crc::new();
        sum.update(&file[at + 4..end]);
        file[end..end + 4].copy_from_slice(&sum.sum().to_be_bytes());
        at = end + 4;
    }
}
