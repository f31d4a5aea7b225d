//! The arguments of a test program: those of Rust's own that tools and people give.

/// What to run, and how.
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    only_ignored: bool,
    include_ignored: bool,
    pub list: bool,
    pub threads: usize,
    /// Whether what is said by a test that passes is dropped.
    pub captures: bool,
}

impl Arguments {
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let threads = match std::env::var("RUST_TEST_THREADS") {
            Ok(count) => number(&count)?,
            Err(_) => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let mut parsed = Arguments {
            filters: Vec::new(),
            skip: Vec::new(),
            exact: false,
            only_ignored: false,
            include_ignored: false,
            list: false,
            threads,
            captures: true,
        };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with('-') => (name.to_string(), Some(value.to_string())),
                _ => (argument, None),
            };
            let mut value = |name: &str| {
                value.clone().or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"))
            };
            match name.as_str() {
                "--skip" => parsed.skip.push(value("--skip")?),
                "--test-threads" => parsed.threads = number(&value("--test-threads")?)?,
                "--exact" => parsed.exact = true,
                "--ignored" => parsed.only_ignored = true,
                "--include-ignored" => parsed.include_ignored = true,
                "--list" => parsed.list = true,
                "--nocapture" | "--no-capture" => parsed.captures = false,
                // How it looks is always the same.
                "--show-output" | "--quiet" | "-q" => {}
                "--color" | "--format" => drop(value(&name)?),
                other if other.starts_with('-') => {
                    return Err(format!(
                        "there is no option {other}; there are --skip NAME, --exact, --ignored, --include-ignored, --list, \
                         --test-threads N and --nocapture"
                    ));
                }
                filter => parsed.filters.push(filter.to_string()),
            }
        }
        Ok(parsed)
    }

    /// Whether tests that run only where they are asked for run.
    pub fn runs_ignored(&self) -> bool {
        self.only_ignored || self.include_ignored
    }

    /// Whether a test is to run, or to be listed as ignored.
    pub fn picks(&self, path: &str, ignored: bool) -> bool {
        let fits = |filter: &String| if self.exact { path == filter } else { path.contains(filter.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(fits))
            && !self.skip.iter().any(fits)
            && (ignored || !self.only_ignored)
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| format!("{text:?} is no number of threads"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, String> {
        Arguments::parse(arguments.iter().map(|a| a.to_string()))
    }

    #[test]
    fn names_are_picked_and_skipped_by_a_part_or_exactly() {
        let some = parse(&["conv::", "pool", "--skip", "slow", "--skip=far"]).unwrap();
        assert!(some.picks("conv::values", false) && some.picks("maxpool", true));
        assert!(
            !some.picks("conv::slow", false)
                && !some.picks("pool_far", false)
                && !some.picks("matmul", false)
        );
        let exact = parse(&["--exact", "a::b", "--ignored"]).unwrap();
        assert!(exact.picks("a::b", true) && !exact.picks("a::b", false) && !exact.picks("a::bc", true));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(parse(&["--test-threads", "none"]).is_err());
        assert!(parse(&["--skip"]).is_err());
        assert!(parse(&["--benchmark"]).unwrap_err().contains("--benchmark"));
        assert_eq!(parse(&["--test-threads=3"]).unwrap().threads, 3);
    }
}
