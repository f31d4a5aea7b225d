//! Image files: PNG, JPEG, BMP and PNM as bytes of red, green and blue, and folders of them.
//!
//! PNG and JPEG are read by crates made for them; BMP and PNM are little more than a header before the pixels. The
//! `image` crate reads all four, and takes six times as long to build: it brings colour management along.

mod bmp;
mod folder;
mod pnm;

pub use folder::ImageFolder;

use super::array::Array;
use crate::call::Call;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::regular_file;
use std::io::Cursor;
use std::path::Path;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Larger images are taken for damaged headers.
const MOST_PIXELS: usize = 1 << 27;
/// No deflate stream unfolds to more.
const MAX_PNG_BYTES_PER_BYTE: usize = 1032;
/// A block of 64 pixels takes a bit at the least.
const MAX_JPEG_PIXELS_PER_BYTE: usize = 512;
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
        Some(1..=MOST_PIXELS) => Ok(()),
        _ => Err(format!("a size of {width} × {height} cannot be right")),
    }
}

/// Checks before memory is asked for that `packed` bytes of a file can be `unpacked` of whatever they hold.
fn check_packing(unpacked: usize, packed: usize, most: usize) -> Result<(), Flaw> {
    if unpacked / most > packed {
        return Err(format!("a file of {packed} bytes cannot hold as many pixels as its header says"));
    }
    Ok(())
}

fn decode_png(bytes: &[u8]) -> Result<Raster, Flaw> {
    let flaw = |e: png::DecodingError| e.to_string();
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(flaw)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    check_size(width, height)?;
    check_packing(reader.info().raw_bytes(), bytes.len(), MAX_PNG_BYTES_PER_BYTE)?;
    let size = reader.output_buffer_size().ok_or_else(|| "it does not fit into memory".to_string())?;
    let mut pixels = vec![0; size];
    let frame = reader.next_frame(&mut pixels).map_err(flaw)?;
    pixels.truncate(frame.buffer_size());
    Ok(Raster { width, height, channels: frame.color_type.samples(), bytes: pixels })
}

fn decode_jpeg(bytes: &[u8]) -> Result<Raster, Flaw> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB).set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|e| format!("{e:?}"))?;
    let info = decoder.info().ok_or_else(|| "it has no header".to_string())?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    check_size(width, height)?;
    check_packing(width * height, bytes.len(), MAX_JPEG_PIXELS_PER_BYTE)?;
    let pixels = decoder.decode().map_err(|e| format!("{e:?}"))?;
    Ok(Raster { width, height, channels: 3, bytes: pixels })
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
