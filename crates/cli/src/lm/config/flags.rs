//! Flags from the table of keys, for clap.

use super::keys::{KEYS, Key};
use super::rule::Rule;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;

/// What the command line says about the configuration; flattened into a command's options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// The file to read first.
    pub config: Option<PathBuf>,
    /// Names of keys, with their values as they were written.
    pub values: Vec<(&'static str, String)>,
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("A file with any of the keys below: TOML, or RustyFlow's config.env");
        command.arg(config).args(KEYS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl Flags {
    /// With another value of a key.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Flags {
        self.values.retain(|(key, _)| *key != name);
        self.values.push((name, value.into()));
        self
    }

    /// The flags as one would give them to a shell again.
    pub fn command_line(&self) -> String {
        let config = self.config.iter().map(|path| format!("--config={}", path.display()));
        let values = self.values.iter().map(|(key, value)| format!("--{key}={value}"));
        config.chain(values).map(|flag| quoted(&flag)).collect::<Vec<_>>().join(" ")
    }
}

/// A word that a shell takes as it is.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/+@%".contains(c);
    if word.chars().all(is_plain) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn argument(key: &'static Key) -> Arg {
    let default = if key.default == "none" { String::new() } else { format!(", default {}", key.default) };
    let argument = Arg::new(key.name)
        .long(key.name)
        .value_name(value_name(&key.rule))
        .help_heading(key.section)
        .help(format!("{} [{}{default}]", capitalised(key.meaning), key.rule.allowed()))
        // Numbers may be negative: the rule says what is wrong with them, not the parser.
        .allow_hyphen_values(matches!(key.rule, Rule::Real { .. } | Rule::Count { .. }));
    match key.rule {
        Rule::Flag => argument.num_args(0..=1).default_missing_value("true"),
        _ => argument,
    }
}

fn value_name(rule: &Rule) -> &'static str {
    match rule {
        Rule::Text(_) => "TEXT",
        Rule::Count { .. } => "N",
        Rule::Real { .. } => "X",
        Rule::Flag => "BOOL",
        Rule::Choice(_) => "NAME",
        Rule::ChoiceOrPath(..) => "NAME|PATH",
        Rule::Pair => "X,Y",
        Rule::Device => "DEVICE",
        Rule::Optional(rule) => value_name(rule),
    }
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Flags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        if let Some(config) = matches.get_one::<PathBuf>("config") {
            self.config = Some(config.clone());
        }
        for key in KEYS {
            if let Some(value) = matches.get_one::<String>(key.name) {
                self.values.push((key.name, value.clone()));
            }
        }
        Ok(())
    }
}
