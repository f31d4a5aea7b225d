//! What a key's value must be: reading it from text, and saying what is allowed.

/// The most that TOML can write, where a key has no limit of its own.
pub const NO_MOST: u64 = i64::MAX as u64;

/// What is allowed for a key.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Anything but nothing; with what it means.
    Text(&'static str),
    /// A whole number.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A number.
    Real {
        /// The least, or more than that.
        min: f64,
        /// The most.
        max: f64,
        /// Whether it must be more than `min`.
        above: bool,
    },
    /// `true` or `false`.
    Flag,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A name, or the path of a file with this ending.
    ChoiceOrPath(&'static [&'static str], &'static str),
    /// Two numbers, each at least 0 and less than 1.
    Pair,
    /// `auto`, `cpu`, `gpu`, `gpu:N`, several of these with commas between them, or `gpus`.
    Device,
    /// An amount of memory, as [`parse_bytes`] reads it.
    Bytes,
    /// What the other rule allows, or `none`.
    Optional(&'static Rule),
}

/// A value that its key's rule allows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Text(String),
    Count(u64),
    Real(f64),
    Flag(bool),
    Pair(f64, f64),
}

/// The bytes of an amount of memory: a number, with `kB`, `MB`, `GB` or `TB` for powers of 1000, `KiB`, `MiB`, `GiB` or `TiB` for powers of
/// 1024. At least one.
pub fn parse_bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 9] = [
        ("tib", 1 << 40),
        ("gib", 1 << 30),
        ("mib", 1 << 20),
        ("kib", 1 << 10),
        ("tb", 1_000_000_000_000),
        ("gb", 1_000_000_000),
        ("mb", 1_000_000),
        ("kb", 1_000),
        ("b", 1),
    ];
    let text = text.trim().to_lowercase();
    let found = UNITS.iter().find_map(|&(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (number, unit) = found.unwrap_or((&text, 1));
    let number = number.trim_end().replace('_', "");
    // Whole numbers of bytes have no fraction, and are exact.
    let bytes = match number.parse::<u64>() {
        Ok(number) => number.checked_mul(unit)?,
        Err(_) if unit == 1 || number.contains(['e', 'i', 'n']) => return None,
        Err(_) => {
            let bytes = number.parse::<f64>().ok()? * unit as f64;
            (0.0..9e18).contains(&bytes).then_some(bytes as u64)?
        }
    };
    (bytes > 0).then_some(bytes)
}

impl Rule {
    /// The value that a text means, if it is allowed.
    pub(super) fn read(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        let plain = || (!text.is_empty()).then(|| Value::Text(text.into()));
        match *self {
            Rule::Text(_) => plain(),
            Rule::Count { min, max } => {
                text.replace('_', "").parse().ok().filter(|n| (min..=max).contains(n)).map(Value::Count)
            }
            Rule::Real { min, max, above } => {
                let fits = |x: &f64| *x <= max && if above { *x > min } else { *x >= min };
                text.parse().ok().filter(fits).map(Value::Real)
            }
            Rule::Flag => text.parse().ok().map(Value::Flag),
            Rule::Choice(names) => names.contains(&text).then(|| Value::Text(text.into())),
            Rule::ChoiceOrPath(names, _) => {
                // A word that is neither a name nor looks like a path is a name spelled wrong.
                let is_path = text.contains(['/', '\\', '.']);
                (names.contains(&text) || is_path).then(|| Value::Text(text.into()))
            }
            Rule::Pair => {
                let (a, b) = text.split_once(',')?;
                let part = |x: &str| x.trim().parse().ok().filter(|x| (0.0..1.0).contains(x));
                Some(Value::Pair(part(a)?, part(b)?))
            }
            Rule::Device => {
                let is_numbered =
                    |name: &str| name.strip_prefix("gpu:").is_some_and(|n| n.parse::<u32>().is_ok());
                let is_one = |name: &str| is_numbered(name) || ["cpu", "gpu"].contains(&name);
                let is_list = text.split(',').all(|name| is_one(name.trim()));
                (is_list || ["auto", "gpus"].contains(&text)).then(|| Value::Text(text.into()))
            }
            Rule::Bytes => parse_bytes(text).filter(|&bytes| bytes <= NO_MOST).map(Value::Count),
            Rule::Optional(_) if text == "none" => Some(Value::None),
            Rule::Optional(rule) => rule.read(text),
        }
    }

    /// What is allowed, to stand after "must be".
    pub fn allowed(&self) -> String {
        match *self {
            Rule::Text(what) => what.to_string(),
            Rule::Count { min, max: NO_MOST } => format!("a whole number of at least {min}"),
            Rule::Count { min, max } => format!("a whole number from {min} to {max}"),
            Rule::Real { min, max: f64::MAX, .. } => format!("a number of at least {min}"),
            Rule::Real { min, max, above: true } => format!("a number more than {min} and at most {max}"),
            Rule::Real { min, max, above: false } => format!("a number from {min} to {max}"),
            Rule::Flag => "true or false".to_string(),
            Rule::Choice(names) => one_of(names),
            Rule::ChoiceOrPath(names, file) => format!("{}, or the path of a {file}", names.join(", ")),
            Rule::Pair => "two numbers from 0 to under 1, as in 0.9,0.999".to_string(),
            Rule::Device => {
                "auto, cpu, gpu or gpu:N, several with commas between them, or gpus for all".to_string()
            }
            Rule::Bytes => "an amount of memory, as in 6GB, 512MB or 4GiB".to_string(),
            Rule::Optional(rule) => format!("{}, or none", rule.allowed()),
        }
    }

    /// The names that a wrong one may be meant as.
    pub fn names(&self) -> &'static [&'static str] {
        match *self {
            Rule::Choice(names) | Rule::ChoiceOrPath(names, _) => names,
            Rule::Device => &["auto", "cpu", "gpu", "gpus"],
            Rule::Flag => &["true", "false"],
            Rule::Optional(rule) => rule.names(),
            _ => &[],
        }
    }
}

/// `a, b or c`.
fn one_of(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        names => names.concat(),
    }
}

impl Value {
    /// The text of a textual value.
    pub fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            other => unreachable!("{other:?} is no text"),
        }
    }

    /// As TOML writes it.
    pub fn toml(&self) -> String {
        match self {
            Value::None => "\"none\"".into(),
            Value::Text(text) => quoted(text),
            Value::Count(n) => n.to_string(),
            Value::Real(x) => x.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Pair(a, b) => format!("[{a}, {b}]"),
        }
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", c as u32),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// What a field of the configuration can be made of.
pub(super) trait FromValue {
    /// From a value that the key's rule has let through.
    fn from_value(value: Value) -> Self;
}

macro_rules! conversions {
    ($($type:ty: $pattern:pat => $value:expr;)*) => {$(
        impl FromValue for $type {
            fn from_value(value: Value) -> Self {
                match value {
                    $pattern => $value,
                    other => unreachable!("the rule let {other:?} through"),
                }
            }
        }
    )*};
}

conversions! {
    String: Value::Text(text) => text;
    usize: Value::Count(n) => n as usize;
    u64: Value::Count(n) => n;
    f64: Value::Real(x) => x;
    bool: Value::Flag(flag) => flag;
    (f64, f64): Value::Pair(a, b) => (a, b);
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Self {
        (value != Value::None).then(|| T::from_value(value))
    }
}
