//! Binary PPM (P6) and PGM (P5): three numbers in decimal, then the pixels.

use super::{Flaw, Raster, check_size};

pub(super) fn decode(file: &[u8]) -> Result<Raster, Flaw> {
    let channels = if file[1] == b'6' { 3 } else { 1 };
    let mut at = 2;
    let mut number = || -> Result<usize, Flaw> {
        // Blanks, and comments up to the end of their line.
        while let Some(&byte) = file.get(at) {
            if byte == b'#' {
                at += file[at..].iter().position(|&b| b == b'\n').unwrap_or(file.len() - at);
            } else if !byte.is_ascii_whitespace() {
                break;
            } else {
                at += 1;
            }
        }
        let digits = file[at.min(file.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&file[at..at + digits]).expect("digits are text");
        at += digits;
        text.parse().map_err(|_| "its header is cut off or wrong".to_string())
    };
    let (width, height, most) = (number()?, number()?, number()?);
    check_size(width, height)?;
    if !(1..=255).contains(&most) {
        return Err(format!("a largest value of {most} is not supported: only up to 255"));
    }
    // One blank stands between the header and the pixels.
    let size = width * height * channels;
    let Some(pixels) = file.get(at + 1..).and_then(|rest| rest.get(..size)) else {
        return Err(format!("{width} × {height} pixels are not there"));
    };
    let scaled = |&p: &u8| ((usize::from(p) * 255 + most / 2) / most).min(255) as u8;
    Ok(Raster { width, height, channels, bytes: pixels.iter().map(scaled).collect() })
}
