//! The environment variables that Volta reads; `volta::environment` lists them. All are checked once.

use crate::device::DeviceId;
use crate::error::{Error, ErrorKind, Result};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;

/// More threads than any processor has; a system that starts many times as many may run out of memory maps, which ends the
/// program.
pub const MAX_THREADS: usize = 1024;

/// As many devices as can be told apart.
pub const MAX_VIRTUAL_DEVICES: usize = 16;

/// Variables that were renamed: the name, and the old one.
const RENAMED: [(&str, &str); 2] =
    [("VOLTA_MAX_DISPATCH_MS", "VOLTA_LONGEST_MS"), ("VOLTA_TIER_UP_RUNS", "VOLTA_MANY_RUNS")];

/// What the variables say; `None` and `false` where they say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    pub device: Option<DeviceId>,
    /// In lower case.
    pub adapter: Option<String>,
    pub virtual_devices: Option<usize>,
    pub threads: Option<usize>,
    pub guards: bool,
    /// Without a slash at its end.
    pub mirror: Option<String>,
    pub webgpu_limits: bool,
    pub block_bytes: Option<u64>,
    pub max_dispatch_ms: Option<f64>,
    pub tier_up_runs: Option<u32>,
}

/// Checks every variable that Volta reads.
///
/// # Errors
///
/// [`ErrorKind::Argument`] with all variables that have values which they cannot have, and what these must be.
#[track_caller]
pub fn check() -> Result<()> {
    get().map(drop)
}

/// What the variables say, or what is wrong with them.
#[track_caller]
pub fn get() -> Result<&'static Environment> {
    static READ: OnceLock<Result<Environment, String>> = OnceLock::new();
    let read =
        READ.get_or_init(|| Environment::read(|name| set_under_any_name(name, |n| std::env::var_os(n))));
    read.as_ref().map_err(|problems| Error::new(ErrorKind::Argument, problems))
}

/// A variable's value. An old name counts where the new one is not set, and a note says so.
fn set_under_any_name(name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<OsString> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    set(name).or_else(|| {
        let (_, old) = RENAMED.iter().find(|(new, _)| *new == name)?;
        let value = set(old)?;
        eprintln!("note: the variable {old} is called {name} now; the old name goes with the next release");
        Some(value)
    })
}

/// What the variables say, for callers that cannot fail: those panic with what is wrong.
#[track_caller]
pub fn values() -> &'static Environment {
    get().unwrap_or_else(|error| error.raise())
}

impl Environment {
    /// What `variable` gives for each name; everything that is wrong with it, a line each.
    fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Environment, String> {
        let mut reader = Reader { variable, problems: Vec::new() };
        // Folders are asked for where they are used; they may be made there.
        reader.folder("VOLTA_DATA", "a folder", |_| false);
        reader.folder("VOLTA_CACHE", "a folder, or off", |value| value == "off");
        let environment = Environment {
            device: reader.value("VOLTA_DEVICE", "cpu, gpu or gpu:N", |text| text.parse().ok()),
            adapter: reader
                .value("VOLTA_ADAPTER", "a part of an adapter's name", |text| Some(text.to_lowercase())),
            virtual_devices: reader.value(
                "VOLTA_VIRTUAL_DEVICES",
                &format!("a whole number from 1 to {MAX_VIRTUAL_DEVICES}"),
                |text| text.parse().ok().filter(|count| (1..=MAX_VIRTUAL_DEVICES).contains(count)),
            ),
            threads: reader.value(
                "VOLTA_THREADS",
                &format!("a whole number from 1 to {MAX_THREADS}"),
                |text| text.parse().ok().filter(|count| (1..=MAX_THREADS).contains(count)),
            ),
            guards: reader.value("VOLTA_GUARDS", "0 or 1", switch).unwrap_or(false),
            mirror: reader.value("VOLTA_MIRROR", "a URL that begins with http:// or https://", |text| {
                let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
                is_url.then(|| text.trim_end_matches('/').to_string())
            }),
            webgpu_limits: reader
                .value("VOLTA_LIMITS", "webgpu", |text| (text == "webgpu").then_some(()))
                .is_some(),
            block_bytes: reader.value("VOLTA_BLOCK_BYTES", "a whole number of at least 1", |text| {
                text.parse().ok().filter(|&bytes| bytes > 0)
            }),
            max_dispatch_ms: reader.value("VOLTA_MAX_DISPATCH_MS", "a number more than 0", |text| {
                text.parse().ok().filter(|ms: &f64| *ms > 0.0 && ms.is_finite())
            }),
            tier_up_runs: reader.value(
                "VOLTA_TIER_UP_RUNS",
                &format!("a whole number from 0 to {}", u32::MAX),
                |text| text.parse().ok(),
            ),
        };
        if reader.problems.is_empty() { Ok(environment) } else { Err(reader.problems.join("\n")) }
    }
}

/// `1` and `0`, and the words for them.
fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "true" | "on" => Some(true),
        "0" | "false" | "off" => Some(false),
        _ => None,
    }
}

struct Reader<F> {
    variable: F,
    problems: Vec<String>,
}

impl<F: Fn(&str) -> Option<OsString>> Reader<F> {
    /// A variable as it is, unless it is empty.
    fn raw(&self, name: &str) -> Option<OsString> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// A variable that names a folder, there or not, unless it is one of a few words: what is there and is none is a problem.
    fn folder(&mut self, name: &str, allowed: &str, is_word: impl FnOnce(&OsStr) -> bool) {
        let Some(value) = self.raw(name) else { return };
        let path = Path::new(&value);
        if !is_word(&value) && path.exists() && !path.is_dir() {
            self.problem(name, &value, allowed);
        }
    }

    fn problem(&mut self, name: &str, value: &OsStr, allowed: &str) {
        let written = value.to_string_lossy();
        self.problems.push(format!("the variable {name} = {written:?}: must be {allowed}"));
    }

    /// What `parse` makes of a variable's text; nothing is a problem, for which `allowed` says what it must be.
    fn value<T>(&mut self, name: &str, allowed: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let raw = self.raw(name)?;
        let value = raw.to_str().and_then(|text| parse(text.trim()));
        if value.is_none() {
            self.problem(name, &raw, allowed);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, String> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        Environment::read(find)
    }

    #[test]
    fn nothing_and_empty_variables_say_nothing() {
        assert_eq!(read(&[]), Ok(Environment::default()));
        let names = ["DEVICE", "ADAPTER", "THREADS", "GUARDS", "MIRROR", "LIMITS", "BLOCK_BYTES"];
        let names: Vec<String> = names.iter().map(|name| format!("VOLTA_{name}")).collect();
        let empty: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        assert_eq!(read(&empty), Ok(Environment::default()));
    }

    #[test]
    fn values_that_can_be_are_read() {
        let said = read(&[
            ("VOLTA_DEVICE", "gpu:2"),
            ("VOLTA_ADAPTER", "LLVMpipe"),
            ("VOLTA_VIRTUAL_DEVICES", "4"),
            ("VOLTA_THREADS", " 3 "),
            ("VOLTA_GUARDS", "1"),
            ("VOLTA_MIRROR", "http://127.0.0.1:80/x/"),
            ("VOLTA_LIMITS", "webgpu"),
            ("VOLTA_BLOCK_BYTES", "4096"),
            ("VOLTA_MAX_DISPATCH_MS", "0.5"),
            ("VOLTA_TIER_UP_RUNS", "0"),
        ]);
        let expected = Environment {
            device: Some(DeviceId::Gpu(2)),
            adapter: Some("llvmpipe".into()),
            virtual_devices: Some(4),
            threads: Some(3),
            guards: true,
            mirror: Some("http://127.0.0.1:80/x".into()),
            webgpu_limits: true,
            block_bytes: Some(4096),
            max_dispatch_ms: Some(0.5),
            tier_up_runs: Some(0),
        };
        assert_eq!(said, Ok(expected));
    }

    #[test]
    fn values_that_cannot_be_name_their_variable_and_what_is_allowed() {
        let table = [
            ("VOLTA_DEVICE", "tpu", "cpu, gpu or gpu:N"),
            ("VOLTA_VIRTUAL_DEVICES", "0", "from 1 to 16"),
            ("VOLTA_VIRTUAL_DEVICES", "17", "from 1 to 16"),
            ("VOLTA_THREADS", "abc", "from 1 to 1024"),
            ("VOLTA_THREADS", "-1", "from 1 to 1024"),
            ("VOLTA_THREADS", "0", "from 1 to 1024"),
            ("VOLTA_THREADS", "100000", "from 1 to 1024"),
            ("VOLTA_THREADS", "99999999999999999999999", "from 1 to 1024"),
            ("VOLTA_GUARDS", "yes", "0 or 1"),
            ("VOLTA_MIRROR", "ftp://x", "http://"),
            ("VOLTA_LIMITS", "metal", "webgpu"),
            ("VOLTA_BLOCK_BYTES", "0", "at least 1"),
            ("VOLTA_MAX_DISPATCH_MS", "nan", "more than 0"),
            ("VOLTA_TIER_UP_RUNS", "-3", "from 0"),
        ];
        for (name, value, allowed) in table {
            let said = read(&[(name, value)]).expect_err(value);
            assert!(said.contains(name) && said.contains(value) && said.contains(allowed), "{said}");
        }
        let said = read(&[("VOLTA_THREADS", "x"), ("VOLTA_GUARDS", "y")]).unwrap_err();
        assert_eq!(said.lines().count(), 2, "{said}");
    }

    #[test]
    fn an_old_name_counts_where_the_new_one_is_not_set() {
        let set = |variables: &'static [(&str, &str)]| {
            let find = move |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
            };
            set_under_any_name("VOLTA_TIER_UP_RUNS", find)
        };
        assert_eq!(set(&[("VOLTA_MANY_RUNS", "3")]), Some("3".into()));
        assert_eq!(set(&[("VOLTA_MANY_RUNS", "3"), ("VOLTA_TIER_UP_RUNS", "4")]), Some("4".into()));
        assert_eq!(set(&[("VOLTA_MANY_RUNS", "3"), ("VOLTA_TIER_UP_RUNS", "")]), Some("3".into()));
        assert_eq!(set(&[]), None);
    }

    #[test]
    fn folders_are_folders_or_not_there_yet() {
        let (folder, file) = (env!("CARGO_MANIFEST_DIR"), concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        for value in [folder, "/nowhere/at/all", "off"] {
            assert!(read(&[("VOLTA_CACHE", value), ("VOLTA_DATA", value)]).is_ok(), "{value}");
        }
        for name in ["VOLTA_CACHE", "VOLTA_DATA"] {
            let said = read(&[(name, file)]).unwrap_err();
            assert!(said.contains(name) && said.contains("a folder"), "{said}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_utf_8_is_named_too() {
        use std::os::unix::ffi::OsStringExt;
        let find = |name: &str| (name == "VOLTA_DEVICE").then(|| OsString::from_vec(vec![b'c', 0xff]));
        let said = Environment::read(find).unwrap_err();
        assert!(said.contains("VOLTA_DEVICE"), "{said}");
    }
}
