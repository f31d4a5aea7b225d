//! Protocol Buffers' wire format: fields with numbers, read from a part of a file that is never copied, and written.

use std::ops::{Deref, Range};
use std::sync::Arc;
use volta::Result;
use volta_ir::bail;

/// A part of a file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Chunk {
    file: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Chunk {
    /// All of a file.
    pub fn whole(file: Vec<u8>) -> Chunk {
        let range = 0..file.len();
        Chunk { file: Arc::new(file), range }
    }

    fn part(&self, start: usize, length: usize) -> Chunk {
        Chunk { file: self.file.clone(), range: start..start + length }
    }

    /// As text; what is no UTF-8 becomes a mark.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self).into_owned()
    }
}

impl Default for Chunk {
    fn default() -> Chunk {
        Chunk::whole(Vec::new())
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.file[self.range.clone()]
    }
}

/// What a field holds.
#[derive(Debug)]
pub enum Field {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Chunk),
}

/// The fields of a message, one after another.
pub struct Reader {
    chunk: Chunk,
    at: usize,
}

impl Reader {
    pub fn new(chunk: Chunk) -> Reader {
        Reader { at: chunk.range.start, chunk }
    }

    fn left(&self) -> usize {
        self.chunk.range.end - self.at
    }

    fn take(&mut self, count: usize) -> Result<&[u8]> {
        if count > self.left() {
            bail!(Data, "the file ends inside of a field: it is no ONNX file, or it was cut");
        }
        self.at += count;
        Ok(&self.chunk.file[self.at - count..self.at])
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            // Bits beyond the 64th are lost, as in every other reader.
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        bail!(Data, "a number has more than ten bytes: this is no ONNX file")
    }

    /// The next field and its number.
    pub fn next(&mut self) -> Result<Option<(u64, Field)>> {
        if self.left() == 0 {
            return Ok(None);
        }
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes"))),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                self.take(length)?;
                Field::Bytes(self.chunk.part(self.at - length, length))
            }
            5 => Field::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes"))),
            kind => bail!(Data, "a field has the wire type {kind}: this is no ONNX file"),
        };
        Ok(Some((key >> 3, field)))
    }
}

impl Field {
    fn wrong<T>(&self) -> Result<T> {
        bail!(Data, "a field is of another kind than ONNX says")
    }

    pub fn chunk(self) -> Result<Chunk> {
        match self {
            Field::Bytes(chunk) => Ok(chunk),
            other => other.wrong(),
        }
    }

    pub fn text(self) -> Result<String> {
        Ok(self.chunk()?.text())
    }

    pub fn int(self) -> Result<i64> {
        match self {
            Field::Varint(value) => Ok(value as i64),
            other => other.wrong(),
        }
    }

    pub fn float(self) -> Result<f32> {
        match self {
            Field::Fixed32(bits) => Ok(f32::from_bits(bits)),
            other => other.wrong(),
        }
    }

    /// Adds one number, or a packed list of them.
    pub fn ints_into(self, list: &mut Vec<i64>) -> Result<()> {
        match self {
            Field::Varint(value) => list.push(value as i64),
            Field::Bytes(chunk) => {
                let mut reader = Reader::new(chunk);
                while reader.left() > 0 {
                    list.push(reader.varint()? as i64);
                }
            }
            other => return other.wrong(),
        }
        Ok(())
    }

    pub fn floats_into(self, list: &mut Vec<f32>) -> Result<()> {
        match self {
            Field::Fixed32(bits) => list.push(f32::from_bits(bits)),
            Field::Bytes(chunk) if chunk.len().is_multiple_of(4) => {
                list.extend(chunk.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
            }
            other => return other.wrong(),
        }
        Ok(())
    }

    pub fn doubles_into(self, list: &mut Vec<f64>) -> Result<()> {
        match self {
            Field::Fixed64(bits) => list.push(f64::from_bits(bits)),
            Field::Bytes(chunk) if chunk.len().is_multiple_of(8) => {
                list.extend(
                    chunk.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes"))),
                );
            }
            other => return other.wrong(),
        }
        Ok(())
    }
}

/// A message that is being written.
#[derive(Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn int(&mut self, number: u64, value: i64) {
        self.varint(number << 3);
        self.varint(value as u64);
    }

    pub fn float(&mut self, number: u64, value: f32) {
        self.varint(number << 3 | 5);
        self.0.extend(value.to_le_bytes());
    }

    pub fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub fn text(&mut self, number: u64, text: &str) {
        if !text.is_empty() {
            self.bytes(number, text.as_bytes());
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut w = Writer::default();
        w.int(1, -3);
        w.float(2, 1.5);
        w.text(3, "text");
        let mut r = Reader::new(Chunk::whole(w.finish()));
        assert_eq!(r.next().unwrap().unwrap().1.int().unwrap(), -3);
        assert_eq!(r.next().unwrap().unwrap().1.float().unwrap(), 1.5);
        let (number, text) = r.next().unwrap().unwrap();
        assert_eq!((number, text.text().unwrap()), (3, "text".to_string()));
        assert!(r.next().unwrap().is_none());
    }

    #[test]
    fn lengths_beyond_the_file_are_errors() {
        for bytes in [
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..],
            &[0x0a, 5, 1],
            &[0x80; 12],
            &[0x0b],
        ] {
            assert!(Reader::new(Chunk::whole(bytes.to_vec())).next().is_err(), "{bytes:?}");
        }
    }
}
