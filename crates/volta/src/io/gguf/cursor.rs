//! Reading a header front to back. Whatever the file says of its sizes is compared with what is left of it before anything
//! is done with it.

/// A number as it lies in a file, little-endian.
pub(super) trait Number: Copy {
    const BYTES: usize;

    fn of(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const BYTES: usize = size_of::<$t>();

            fn of(bytes: &[u8]) -> $t {
                <$t>::from_le_bytes(bytes.try_into().expect("as many bytes as it has"))
            }
        }
    )*};
}
numbers!(u8, i8, u16, i16, u32, i32, f32, u64, i64, f64);

/// The rest of a file.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes, length: bytes.len() }
    }

    /// How many bytes were read.
    pub fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    /// The next `count` bytes.
    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], String> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(format!(
                "{what} takes {count} bytes, but only {} follow: the file is cut off",
                self.rest.len()
            ));
        };
        self.rest = rest;
        Ok(taken)
    }

    pub fn number<T: Number>(&mut self, what: &str) -> Result<T, String> {
        self.take(T::BYTES, what).map(T::of)
    }

    /// How many things of at least `least` bytes follow.
    pub fn count(&mut self, least: usize, what: &str) -> Result<usize, String> {
        let said: u64 = self.number(what)?;
        match usize::try_from(said) {
            Ok(count) if count <= self.rest.len() / least => Ok(count),
            _ => Err(format!(
                "{what} is said to be {said}, but only {} bytes follow, and each takes at least {least}",
                self.rest.len()
            )),
        }
    }

    pub fn numbers<T: Number>(&mut self, count: usize, what: &str) -> Result<Vec<T>, String> {
        let bytes = count.checked_mul(T::BYTES).ok_or_else(|| format!("{what} is too long to be counted"))?;
        Ok(self.take(bytes, what)?.chunks_exact(T::BYTES).map(T::of).collect())
    }

    pub fn truth(&mut self, what: &str) -> Result<bool, String> {
        match self.number::<u8>(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{what} should be a truth value, and its byte is {other}")),
        }
    }

    pub fn text(&mut self, what: &str) -> Result<String, String> {
        let length = self.count(1, &format!("the length of {what}"))?;
        // Copied first: another program may change the file meanwhile.
        String::from_utf8(self.take(length, what)?.to_vec()).map_err(|e| format!("{what} is not UTF-8: {e}"))
    }
}
