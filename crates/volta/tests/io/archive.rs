//! Builders of PyTorch files: zip archives and pickles, right or wrong in any place.

/// A zip archive of uncompressed entries.
#[derive(Clone)]
pub struct Archive {
    pub entries: Vec<(String, Vec<u8>)>,
    /// Sizes and places stand in 64-bit fields.
    pub wide: bool,
    /// The method of compression that the list of entries names.
    pub method: u16,
    pub comment: Vec<u8>,
}

impl Archive {
    /// What PyTorch writes for a pickle and the elements of storages `0`, `1`, …
    pub fn new(pickle: Vec<u8>, storages: &[&[u8]]) -> Archive {
        let mut entries = vec![("net/data.pkl".to_string(), pickle)];
        entries.extend(storages.iter().enumerate().map(|(k, s)| (format!("net/data/{k}"), s.to_vec())));
        entries.push(("net/version".to_string(), b"3\n".to_vec()));
        Archive { entries, wide: false, method: 0, comment: Vec::new() }
    }

    pub fn with(mut self, name: &str, bytes: &[u8]) -> Archive {
        self.entries.push((name.to_string(), bytes.to_vec()));
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut list = Vec::new();
        for (name, bytes) in &self.entries {
            let place = out.len() as u64;
            out.extend_from_slice(b"PK\x03\x04");
            // Version, flags, method, time, date, checksum, two sizes, which readers take from the list.
            out.extend_from_slice(&[0; 22]);
            out.extend_from_slice(&(name.len() as u16).to_le_bytes());
            // An extra field, as PyTorch pads elements to multiples of 64.
            out.extend_from_slice(&4u16.to_le_bytes());
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"FB\0\0");
            out.extend_from_slice(bytes);
            self.list_entry(&mut list, name, bytes.len() as u64, place);
        }
        let (place, count) = (out.len() as u64, self.entries.len() as u64);
        out.extend_from_slice(&list);
        if self.wide {
            let end = out.len() as u64;
            out.extend_from_slice(b"PK\x06\x06");
            out.extend_from_slice(&44u64.to_le_bytes());
            out.extend_from_slice(&[0; 12]);
            for n in [count, count, list.len() as u64, place] {
                out.extend_from_slice(&n.to_le_bytes());
            }
            out.extend_from_slice(b"PK\x06\x07\0\0\0\0");
            out.extend_from_slice(&end.to_le_bytes());
            out.extend_from_slice(&[1, 0, 0, 0]);
        }
        out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        let narrow = |n: u64| if self.wide { u32::MAX } else { n as u32 };
        let narrow_count = if self.wide { u16::MAX } else { count as u16 };
        out.extend_from_slice(&narrow_count.to_le_bytes());
        out.extend_from_slice(&narrow_count.to_le_bytes());
        out.extend_from_slice(&narrow(list.len() as u64).to_le_bytes());
        out.extend_from_slice(&narrow(place).to_le_bytes());
        out.extend_from_slice(&(self.comment.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.comment);
        out
    }

    fn list_entry(&self, list: &mut Vec<u8>, name: &str, length: u64, place: u64) {
        list.extend_from_slice(b"PK\x01\x02\0\0\0\0\0\0");
        list.extend_from_slice(&self.method.to_le_bytes());
        list.extend_from_slice(&[0; 8]);
        let narrow = |n: u64| if self.wide { u32::MAX } else { n as u32 };
        list.extend_from_slice(&narrow(length).to_le_bytes());
        list.extend_from_slice(&narrow(length).to_le_bytes());
        list.extend_from_slice(&(name.len() as u16).to_le_bytes());
        list.extend_from_slice(&(if self.wide { 28u16 + 4 } else { 0 }).to_le_bytes());
        list.extend_from_slice(&[0; 10]);
        list.extend_from_slice(&narrow(place).to_le_bytes());
        list.extend_from_slice(name.as_bytes());
        if self.wide {
            // Another extra field first, then the 64-bit one.
            list.extend_from_slice(&[9, 0, 0, 0, 1, 0, 24, 0]);
            for n in [length, length, place] {
                list.extend_from_slice(&n.to_le_bytes());
            }
        }
    }
}

/// A pickle of a dictionary, written opcode by opcode.
#[derive(Clone)]
pub struct Pickle(pub Vec<u8>);

impl Pickle {
    pub fn new() -> Pickle {
        Pickle(vec![0x80, 2])
    }

    pub fn raw(mut self, bytes: &[u8]) -> Pickle {
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn text(self, text: &str) -> Pickle {
        self.raw(b"X").raw(&(text.len() as u32).to_le_bytes()).raw(text.as_bytes())
    }

    pub fn int(self, n: i32) -> Pickle {
        self.raw(b"J").raw(&n.to_le_bytes())
    }

    pub fn ints(self, all: &[i32]) -> Pickle {
        all.iter().fold(self.raw(b"("), |p, &n| p.int(n)).raw(b"t")
    }

    pub fn global(self, module: &str, name: &str) -> Pickle {
        self.raw(format!("c{module}\n{name}\n").as_bytes())
    }

    /// A tensor over storage `0`.
    pub fn tensor(self, class: &str, offset: i32, shape: &[i32], strides: &[i32]) -> Pickle {
        self.global("torch._utils", "_rebuild_tensor_v2")
            .raw(b"((")
            .text("storage")
            .global("torch", class)
            .text("0")
            .text("cpu")
            .int(1)
            .raw(b"tQ")
            .int(offset)
            .ints(shape)
            .ints(strides)
            .raw(b"\x89}tR")
    }

    /// A tensor over storage `0` as PyTorch writes one whose type has no storage class: the type stands at its end.
    pub fn typed_tensor(self, dtype: &str, bytes: i32, shape: &[i32], strides: &[i32]) -> Pickle {
        self.global("torch._utils", "_rebuild_tensor_v3")
            .raw(b"((")
            .text("storage")
            .global("torch.storage", "UntypedStorage")
            .text("0")
            .text("cpu")
            .int(bytes)
            .raw(b"tQ")
            .int(0)
            .ints(shape)
            .ints(strides)
            .raw(b"\x89")
            .global("collections", "OrderedDict")
            .raw(b")R")
            .global("torch", dtype)
            .raw(b"tR")
    }

    /// A whole file whose dictionary has one member `w`.
    pub fn holding(w: impl FnOnce(Pickle) -> Pickle) -> Vec<u8> {
        w(Pickle::new().raw(b"}").text("w")).raw(b"s.").0
    }
}
