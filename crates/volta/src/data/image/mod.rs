//! Image files: PNG, JPEG, BMP and PNM as bytes of red, green and blue, and folders of them.
//!
//! PNG and JPEG are read by crates made for them; BMP and PNM are little more than a header before the pixels. The
//! `image` crate reads all four, and takes six times as long to build: it brings colour management along.

mod bmp;
#[cfg(feature = "images")]
mod compressed;
mod folder;
mod pnm;

#[cfg(feature = "images")]
use compressed::{decode_jpeg, decode_png};

pub use folder::ImageFolder;

use super::array::Array;
use crate::call::Call;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::regular_file;
use std::path::Path;

/// Larger images are taken for damaged headers.
const MAX_PIXELS: usize = 1 << 27;
/// Larger files are no images of that many pixels.
const MAX_FILE_BYTES: usize = 1 << 30;

/// An image as it comes out of a file: rows from the top, `channels` bytes a pixel.
struct Raster {
    width: usize,
    height: usize,
    channels: usize,
    bytes: Vec<u8>,
}

/// What is wrong with a file.
type Flaw = String;

/// How a kind of file begins, and what reads it.
type Format = (&'static [u8], fn(&[u8]) -> Result<Raster, Flaw>);

const FORMATS: [Format; 5] = [
    (b"\x89PNG", decode_png),
    (b"\xff\xd8\xff", decode_jpeg),
    (b"BM", bmp::decode),
    (b"P5", pnm::decode),
    (b"P6", pnm::decode),
];

/// Reads an image file: bytes of `[3, height, width]`, red, green and blue. Grey is three equal channels, transparency
/// is left out.
#[track_caller]
pub fn read_image(path: impl AsRef<Path>) -> Result<Array<'static>> {
    let _call = Call::enter("read_image");
    let path = path.as_ref();
    let bytes = regular_file::read(path, MAX_FILE_BYTES).map_err(|e| Error::io(path, &e, "read an image"))?;
    decode(&bytes).map_err(|e| Error::new(e.kind(), format!("{}: {}", path.display(), e.message())))
}

/// The image of a file's contents, as [`read_image`] gives it.
#[track_caller]
pub fn decode_image(bytes: &[u8]) -> Result<Array<'static>> {
    let _call = Call::enter("decode_image");
    decode(bytes)
}

#[cfg(not(feature = "images"))]
fn decode_png(_: &[u8]) -> Result<Raster, Flaw> {
    Err("PNG is read where the feature `images` of volta-ml is enabled".into())
}

#[cfg(not(feature = "images"))]
fn decode_jpeg(_: &[u8]) -> Result<Raster, Flaw> {
    Err("JPEG is read where the feature `images` of volta-ml is enabled".into())
}

fn decode(bytes: &[u8]) -> Result<Array<'static>> {
    let Some((_, decoder)) = FORMATS.iter().find(|(start, _)| bytes.starts_with(start)) else {
        bail!(Data, "this is no image in PNG, JPEG, BMP or binary PPM or PGM");
    };
    decoder(bytes)
        .and_then(planes)
        .map_err(|flaw| Error::new(ErrorKind::Data, format!("the image cannot be decoded: {flaw}")))
}

fn check_size(width: usize, height: usize) -> Result<(), Flaw> {
    match width.checked_mul(height) {
        Some(1..=MAX_PIXELS) => Ok(()),
        _ => Err(format!("a size of {width} × {height} cannot be right")),
    }
}

/// Red, green and blue one plane after the other.
fn planes(raster: Raster) -> Result<Array<'static>, Flaw> {
    let Raster { width, height, channels, bytes } = raster;
    if bytes.len() != width * height * channels {
        return Err(format!("{} bytes are not {width} × {height} pixels", bytes.len()));
    }
    // One or two channels: grey, and how opaque; three or four: colours, and how opaque.
    let colour = |k: usize| if channels < 3 { 0 } else { k };
    let pixels: Vec<u8> =
        (0..3).flat_map(|k| bytes.iter().skip(colour(k)).step_by(channels).copied()).collect();
    Array::try_new(pixels, &[3, height, width]).map_err(|e| e.message().to_string())
}
