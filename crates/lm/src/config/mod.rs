//! The configuration of `volta train`: one table of keys (`keys`), four sources (`sources`), later ones
//! winning: defaults, a file, variables, flags. Everything that is wrong is said at once, before anything
//! starts, with the key, the value, where it came from and what is allowed.

mod changes;
mod check;
mod choices;
mod env_file;
mod flags;
mod inherit;
mod keys;
mod rule;
mod sources;
mod suggest;
#[cfg(test)]
mod tests;

pub use choices::{Activation, Norm, Optimizer, Positions, Precision, Schedule, Shares, TokenizerSource};
pub use flags::{Flags, quoted};
pub use keys::{KEYS, Key, Values};
pub use rule::{Rule, parse_bytes};

use rule::Value;
use sources::{Origin, Reading};
use std::fmt::{self, Write};
use std::ops::Deref;
use std::path::Path;
use suggest::did_you_mean;

/// A configuration that can be used; its values are fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    values: Values,
    /// In the order of the table.
    settings: Vec<Setting>,
}

/// The value of one key, and where it came from.
#[derive(Clone, Debug, PartialEq)]
struct Setting {
    value: Value,
    /// As it was written.
    text: String,
    origin: Origin,
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// So many walks through the data.
    Epochs(u64),
    /// So many updates.
    Steps(u64),
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError(Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [one] => write!(f, "the configuration cannot be used: {one}"),
            all => {
                write!(f, "the configuration cannot be used:")?;
                all.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<ConfigError> for volta::Error {
    fn from(error: ConfigError) -> volta::Error {
        volta::Error::new(volta::ErrorKind::Argument, error.to_string())
    }
}

impl Deref for Config {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.values
    }
}

impl Config {
    /// The configuration that the flags, the file they name and variables say.
    pub fn resolve(flags: &Flags, environment: &[(String, String)]) -> Result<Config, ConfigError> {
        let file = flags.config.as_ref().map(|path| sources::file(path, environment)).unwrap_or_default();
        Config::combine([
            sources::device(environment),
            file,
            sources::variables(environment),
            sources::flags(&flags.values),
        ])
    }

    /// The configuration that values by the names of their keys say, and defaults: for programs that have no flags.
    ///
    /// ```
    /// use volta_lm::Config;
    ///
    /// let config = Config::given(&[("layers", "2"), ("learning-rate", "1e-3")])?;
    /// assert_eq!((config.layers, config.batch), (2, 16));
    /// let error = Config::given(&[("layer", "2")]).unwrap_err();
    /// assert!(error.to_string().contains("did you mean layers?"));
    /// # Ok::<(), volta_lm::ConfigError>(())
    /// ```
    pub fn given(values: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::combine([sources::options(values)])
    }

    /// This configuration with other values of some keys.
    pub fn with(&self, values: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::change(self.settings.clone(), [sources::options(values)])
    }

    /// `volta COMMAND` with what the flags, the file they name and variables say, for a shell in the same folder.
    pub fn command(&self, command: &str, flags: &Flags) -> String {
        let settings = KEYS.iter().zip(&self.settings);
        // Epochs that gave way to steps are not what anybody wants.
        let counts = |s: &Setting| s.value != Value::None || s.text == "none";
        let is_flag = |name: &str| flags.values.iter().any(|&(flag, _)| flag == name);
        let variables = settings
            .filter(|(key, s)| matches!(s.origin, Origin::Variable(_)) && counts(s) && !is_flag(key.name));
        let variables = variables.map(|(key, setting)| (key.name, setting.text.clone()));
        let values = variables.chain(flags.values.iter().cloned()).collect();
        let flags = Flags { config: flags.config.clone(), values };
        format!("volta {command} {}", flags.command_line()).trim_end().to_string()
    }

    /// The configuration that [`effective`](Self::effective) wrote; `path` is for errors.
    pub fn from_toml(text: &str, path: &Path) -> Result<Config, ConfigError> {
        Config::combine([sources::toml_text(text, path)])
    }

    /// Reads sources in the order in which they win.
    fn combine(readings: impl IntoIterator<Item = Reading>) -> Result<Config, ConfigError> {
        let defaults = KEYS.iter().map(|key| Setting {
            value: key.rule.read(key.default).expect("a default is allowed"),
            text: key.default.into(),
            origin: Origin::Default,
        });
        Config::change(defaults.collect(), readings)
    }

    /// Settings, changed by what sources say.
    fn change(
        mut settings: Vec<Setting>,
        readings: impl IntoIterator<Item = Reading>,
    ) -> Result<Config, ConfigError> {
        let mut problems = Vec::new();
        for reading in readings {
            problems.extend(reading.problems);
            for sources::Assignment { key, text, origin } in reading.assignments {
                match KEYS[key].rule.read(&text) {
                    Some(value) => settings[key] = Setting { value, text, origin },
                    None => problems.push(refusal(&KEYS[key], &text, &origin)),
                }
            }
        }
        later_duration_wins(&mut settings);
        let config = Config::of(settings);
        // Combinations of values that are wrong themselves would only confuse.
        if problems.is_empty() {
            problems = check::combinations(&config);
        }
        if problems.is_empty() { Ok(config) } else { Err(ConfigError(problems)) }
    }

    /// From settings in the order of the table.
    fn of(settings: Vec<Setting>) -> Config {
        Config { values: Values::collect(settings.iter().map(|setting| setting.value.clone())), settings }
    }

    /// Whether products are computed in half precision.
    pub fn is_half(&self) -> bool {
        self.precision == Precision::F16
    }

    /// How long to train: epochs or steps, whichever was given; one epoch if neither was.
    pub fn duration(&self) -> Duration {
        match (self.steps, self.epochs) {
            (Some(steps), _) => Duration::Steps(steps),
            (None, epochs) => Duration::Epochs(epochs.unwrap_or(1)),
        }
    }

    /// Checks what only the data tells: whether there are enough tokens for one sequence and its targets.
    pub fn check_data(&self, train_tokens: usize, valid_tokens: usize) -> Result<(), ConfigError> {
        let parts = [("training", train_tokens), ("validation", valid_tokens)];
        // Without any validation text there is no validation.
        let short = parts
            .iter()
            .find(|&&(part, tokens)| tokens <= self.context && (part == "training" || tokens > 0));
        match short {
            None => Ok(()),
            Some((part, tokens)) => Err(ConfigError(vec![format!(
                "{}: is longer than the {part} data: {} has {tokens} tokens for it, so it must be at most {}",
                self.cite("context"),
                self.cite("data"),
                tokens.saturating_sub(1)
            )])),
        }
    }

    /// The whole configuration as TOML, to be saved with the model and read again.
    pub fn effective(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        for (key, setting) in KEYS.iter().zip(&self.settings) {
            if key.section != section {
                section = key.section;
                let gap = if text.is_empty() { "" } else { "\n" };
                let _ = writeln!(text, "{gap}# {section}");
            }
            let _ = writeln!(text, "{} = {}", key.name, setting.value.toml());
        }
        text
    }

    /// Whether somebody wished for something else than the default; a saved configuration has all keys.
    fn is_given(&self, key: &str) -> bool {
        let default = Key::find(key).and_then(|k| KEYS[k].rule.read(KEYS[k].default));
        let setting = self.setting(key);
        setting.origin != Origin::Default && Some(&setting.value) != default.as_ref()
    }

    /// `heads = 5 (the flag --heads)`.
    pub fn cite(&self, key: &str) -> String {
        let Setting { text, origin, .. } = self.setting(key);
        format!("{key} = {text} ({origin})")
    }

    fn setting(&self, key: &str) -> &Setting {
        &self.settings[Key::find(key).expect("the table has the key")]
    }
}

/// Epochs of a file do not stand against steps of a flag: the later source wins. Within a source they do.
fn later_duration_wins(settings: &mut [Setting]) {
    let [Some(epochs), Some(steps)] = ["epochs", "steps"].map(Key::find) else { return };
    let (e, s) = (settings[epochs].origin.rank(), settings[steps].origin.rank());
    let loser = match e.cmp(&s) {
        std::cmp::Ordering::Less => epochs,
        std::cmp::Ordering::Greater => steps,
        std::cmp::Ordering::Equal => return,
    };
    if settings[epochs].value != Value::None && settings[steps].value != Value::None {
        settings[loser].value = Value::None;
    }
}

/// The message about a value that is not allowed.
fn refusal(key: &Key, text: &str, origin: &Origin) -> String {
    let near = did_you_mean(text, key.rule.names().iter().copied());
    format!("{} = {text} ({origin}): must be {}{near}", key.name, key.rule.allowed())
}
