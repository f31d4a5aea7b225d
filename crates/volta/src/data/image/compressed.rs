//! PNG and JPEG, by crates made for them.

use super::{Flaw, Raster, check_size};
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// No deflate stream unfolds to more.
const MAX_PNG_BYTES_PER_BYTE: usize = 1032;
/// A block of 64 pixels takes a bit at the least.
const MAX_JPEG_PIXELS_PER_BYTE: usize = 512;

/// Checks before memory is asked for that `packed` bytes of a file can be `unpacked` of whatever they hold.
fn check_packing(unpacked: usize, packed: usize, most: usize) -> Result<(), Flaw> {
    if unpacked / most > packed {
        return Err(format!("a file of {packed} bytes cannot hold as many pixels as its header says"));
    }
    Ok(())
}

pub(super) fn decode_png(bytes: &[u8]) -> Result<Raster, Flaw> {
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

pub(super) fn decode_jpeg(bytes: &[u8]) -> Result<Raster, Flaw> {
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
