//! BMP without compression: 24 or 32 bits a pixel, or 8 with a palette; rows from the bottom unless the height is
//! negative, each padded to whole words, blue before green before red.

use super::{Flaw, Raster, check_size};

const COMPRESSION_NONE: u32 = 0;
const COMPRESSION_MASKS: u32 = 3;

fn word(bytes: &[u8], at: usize) -> Result<u32, Flaw> {
    match bytes.get(at..at + 4) {
        Some(&[a, b, c, d]) => Ok(u32::from_le_bytes([a, b, c, d])),
        _ => Err("its header is cut off".to_string()),
    }
}

pub(super) fn decode(file: &[u8]) -> Result<Raster, Flaw> {
    let (start, header) = (word(file, 10)? as usize, word(file, 14)? as usize);
    let (wide, high) = (word(file, 18)? as i32, word(file, 22)? as i32);
    let (bits, compression) = (word(file, 28)? as u16, word(file, 30)?);
    let (width, height) = (wide.max(0) as usize, high.unsigned_abs() as usize);
    check_size(width, height)?;
    match (bits, compression) {
        (8 | 24 | 32, COMPRESSION_NONE) => {}
        // The masks that nearly all such files have, and those of no other order.
        (32, COMPRESSION_MASKS)
            if (word(file, 54)?, word(file, 58)?, word(file, 62)?) == (0xff_0000, 0xff00, 0xff) => {}
        _ => {
            return Err(format!(
                "BMP with {bits} bits a pixel and compression {compression} is not supported"
            ));
        }
    }
    let pixel = usize::from(bits / 8);
    let row = (width * pixel).next_multiple_of(4);
    let Some(pixels) = file.get(start..).and_then(|rest| rest.get(..row * height)) else {
        return Err(format!("{width} × {height} pixels are not there"));
    };
    let palette = file.get(14 + header..).unwrap_or_default();
    let mut bytes = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        let y = if high < 0 { y } else { height - 1 - y };
        for entry in pixels[y * row..][..width * pixel].chunks_exact(pixel) {
            let colour = match entry {
                [index] => palette
                    .get(usize::from(*index) * 4..)
                    .filter(|rest| rest.len() >= 3)
                    .ok_or_else(|| format!("its palette has no colour {index}"))?,
                colour => colour,
            };
            bytes.extend([colour[2], colour[1], colour[0]]);
        }
    }
    Ok(Raster { width, height, channels: 3, bytes })
}
