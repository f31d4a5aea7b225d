//! Values of a file's metadata: numbers, truth values, texts, and lists of one of these.

use super::cursor::Cursor;
use std::fmt;

/// The type that says of a value that it is a list.
const LIST: u32 = 9;
/// What a printed list shows of its beginning.
const MAX_SHOWN: usize = 8;

macro_rules! values {
    ($($id:literal $variant:ident $t:ty, $least:literal, $name:literal, $read:expr, $list:expr, $write:expr;)*) => {
        /// A value of a GGUF file's metadata.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the variants are named after what they hold")]
        pub enum GgufValue {
            $($variant($t),)*
            List(GgufList),
        }

        /// A list of a GGUF file's metadata: its elements are all of one type.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the variants are named after what they hold")]
        pub enum GgufList {
            $($variant(Vec<$t>),)*
        }

        impl GgufValue {
            /// What its type is called in messages.
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(GgufValue::$variant(_) => $name,)*
                    GgufValue::List(list) => list.type_name(),
                }
            }

            /// The number of its type in files.
            pub(super) fn id(&self) -> u32 {
                match self {
                    $(GgufValue::$variant(_) => $id,)*
                    GgufValue::List(_) => LIST,
                }
            }

            pub(super) fn read(cursor: &mut Cursor, what: &str) -> Result<GgufValue, String> {
                match cursor.number::<u32>(what)? {
                    $($id => $read(cursor, what).map(GgufValue::$variant),)*
                    LIST => GgufList::read(cursor, what).map(GgufValue::List),
                    other => Err(format!("{what} has type {other}, which GGUF does not have")),
                }
            }

            pub(super) fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(GgufValue::$variant(value) => $write(value, out),)*
                    GgufValue::List(list) => {
                        out.extend(list.id().to_le_bytes());
                        out.extend((list.len() as u64).to_le_bytes());
                        list.write(out);
                    }
                }
            }
        }

        impl GgufList {
            /// How many elements it has.
            pub fn len(&self) -> usize {
                match self {
                    $(GgufList::$variant(all) => all.len(),)*
                }
            }

            /// What its type is called in messages.
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(GgufList::$variant(_) => concat!("a list of ", $name),)*
                }
            }

            fn id(&self) -> u32 {
                match self {
                    $(GgufList::$variant(_) => $id,)*
                }
            }

            fn read(cursor: &mut Cursor, what: &str) -> Result<GgufList, String> {
                match cursor.number::<u32>(what)? {
                    $($id => {
                        let count = cursor.count($least, &format!("the length of {what}"))?;
                        $list(cursor, count, what).map(GgufList::$variant)
                    })*
                    LIST => Err(format!("{what} is a list of lists, which are not read")),
                    other => Err(format!("{what} is a list of type {other}, which GGUF does not have")),
                }
            }

            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(GgufList::$variant(all) => all.iter().for_each(|value| $write(value, out)),)*
                }
            }

            /// An element as text.
            fn shown(&self, k: usize) -> String {
                match self {
                    $(GgufList::$variant(all) => format!("{:?}", all[k]),)*
                }
            }
        }

        $(
            impl From<$t> for GgufValue {
                fn from(value: $t) -> GgufValue {
                    GgufValue::$variant(value)
                }
            }

            impl From<Vec<$t>> for GgufValue {
                fn from(all: Vec<$t>) -> GgufValue {
                    GgufValue::List(GgufList::$variant(all))
                }
            }
        )*
    };
}

fn texts(cursor: &mut Cursor, count: usize, what: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::with_capacity(count);
    for k in 0..count {
        all.push(cursor.text(&format!("element {k} of {what}"))?);
    }
    Ok(all)
}

fn truths(cursor: &mut Cursor, count: usize, what: &str) -> Result<Vec<bool>, String> {
    (0..count).map(|_| cursor.truth(what)).collect()
}

pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

values! {
    0 U8 u8, 1, "u8", Cursor::number, Cursor::numbers, |v: &u8, out: &mut Vec<u8>| out.push(*v);
    1 I8 i8, 1, "i8", Cursor::number, Cursor::numbers, |v: &i8, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
    2 U16 u16, 2, "u16", Cursor::number, Cursor::numbers, |v: &u16, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
    3 I16 i16, 2, "i16", Cursor::number, Cursor::numbers, |v: &i16, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
    4 U32 u32, 4, "u32", Cursor::number, Cursor::numbers, |v: &u32, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
    5 I32 i32, 4, "i32", Cursor::number, Cursor::numbers, |v: &i32, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
    6 F32 f32, 4, "f32", Cursor::number, Cursor::numbers, |v: &f32, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
    7 Bool bool, 1, "truth values", Cursor::truth, truths, |v: &bool, out: &mut Vec<u8>| out.push(u8::from(*v));
    8 Text String, 8, "text", Cursor::text, texts, |v: &String, out: &mut Vec<u8>| write_text(v, out);
    10 U64 u64, 8, "u64", Cursor::number, Cursor::numbers, |v: &u64, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
    11 I64 i64, 8, "i64", Cursor::number, Cursor::numbers, |v: &i64, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
    12 F64 f64, 8, "f64", Cursor::number, Cursor::numbers, |v: &f64, out: &mut Vec<u8>| out.extend(v.to_le_bytes());
}

impl GgufList {
    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn integers(&self) -> Option<Vec<i128>> {
        macro_rules! widened {
            ($($variant:ident)*) => {
                match self {
                    $(GgufList::$variant(all) => Some(all.iter().map(|&n| i128::from(n)).collect()),)*
                    _ => None,
                }
            };
        }
        widened!(U8 I8 U16 I16 U32 I32 U64 I64)
    }
}

impl From<&str> for GgufValue {
    fn from(text: &str) -> GgufValue {
        GgufValue::Text(text.to_string())
    }
}

/// As people read it: texts as they are, lists by their first elements.
impl fmt::Display for GgufValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        macro_rules! plainly {
            ($($variant:ident)*) => {
                match self {
                    $(GgufValue::$variant(value) => write!(f, "{value}"),)*
                    GgufValue::List(list) => {
                        let first: Vec<String> = (0..list.len().min(MAX_SHOWN)).map(|k| list.shown(k)).collect();
                        let more = if list.len() > MAX_SHOWN { format!(", … {} in all", list.len()) } else { String::new() };
                        write!(f, "[{}{more}]", first.join(", "))
                    }
                }
            };
        }
        plainly!(U8 I8 U16 I16 U32 I32 F32 Bool Text U64 I64 F64)
    }
}

/// What a value of metadata can be asked for as. Integers may be of any width that holds them; nothing else is converted.
pub trait FromGguf<'a>: Sized {
    /// What is expected, for messages.
    const WANTED: &'static str;

    /// The value as this type; nothing if it is of another, or does not fit.
    fn from_gguf(value: &'a GgufValue) -> Option<Self>;
}

macro_rules! from_gguf {
    ($($t:ty, $wanted:literal, $value:ident => $as:expr;)*) => {$(
        impl<'a> FromGguf<'a> for $t {
            const WANTED: &'static str = $wanted;

            fn from_gguf($value: &'a GgufValue) -> Option<Self> {
                $as
            }
        }
    )*};
}

fn integer(value: &GgufValue) -> Option<i128> {
    Some(match value {
        GgufValue::U8(n) => i128::from(*n),
        GgufValue::I8(n) => i128::from(*n),
        GgufValue::U16(n) => i128::from(*n),
        GgufValue::I16(n) => i128::from(*n),
        GgufValue::U32(n) => i128::from(*n),
        GgufValue::I32(n) => i128::from(*n),
        GgufValue::U64(n) => i128::from(*n),
        GgufValue::I64(n) => i128::from(*n),
        _ => return None,
    })
}

fn float(value: &GgufValue) -> Option<f64> {
    match value {
        GgufValue::F32(x) => Some(f64::from(*x)),
        GgufValue::F64(x) => Some(*x),
        _ => None,
    }
}

fn integers<T: TryFrom<i128>>(value: &GgufValue) -> Option<Vec<T>> {
    let GgufValue::List(list) = value else { return None };
    list.integers()?.into_iter().map(|n| T::try_from(n).ok()).collect()
}

from_gguf! {
    u32, "a whole number below 2^32", value => integer(value)?.try_into().ok();
    u64, "a whole number below 2^64", value => integer(value)?.try_into().ok();
    i64, "a whole number between -2^63 and 2^63", value => integer(value)?.try_into().ok();
    usize, "a whole number that a size can be", value => integer(value)?.try_into().ok();
    f32, "a floating-point number", value => float(value).map(|x| x as f32);
    f64, "a floating-point number", value => float(value);
    bool, "a truth value", value => if let GgufValue::Bool(b) = value { Some(*b) } else { None };
    &'a str, "a text", value => if let GgufValue::Text(text) = value { Some(text) } else { None };
    &'a [String], "a list of texts", value => match value {
        GgufValue::List(GgufList::Text(all)) => Some(all),
        _ => None,
    };
    &'a [f32], "a list of f32", value => match value {
        GgufValue::List(GgufList::F32(all)) => Some(all),
        _ => None,
    };
    &'a [bool], "a list of truth values", value => match value {
        GgufValue::List(GgufList::Bool(all)) => Some(all),
        _ => None,
    };
    Vec<u32>, "a list of whole numbers below 2^32", value => integers(value);
    Vec<i32>, "a list of whole numbers between -2^31 and 2^31", value => integers(value);
    Vec<usize>, "a list of whole numbers that sizes can be", value => integers(value);
    &'a GgufList, "a list", value => if let GgufValue::List(list) = value { Some(list) } else { None };
    &'a GgufValue, "any value", value => Some(value);
}
