//! Flags from the table of keys, for clap.

use crate::output::Failure;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;
use volta_lm::Config;
use volta_lm::config::{Flags, KEYS, Key, Rule};

/// What the command line says about the configuration; flattened into a command's options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigFlags(pub Flags);

impl ConfigFlags {
    /// The configuration that the flags, the file they name and this process's variables say.
    pub fn load(&self) -> Result<Config, Failure> {
        let text = |part: std::ffi::OsString| part.to_string_lossy().into_owned();
        let environment: Vec<_> =
            std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
        Config::resolve(&self.0, &environment).map_err(|e| Failure::Usage(e.to_string()))
    }
}

impl Args for ConfigFlags {
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
        Rule::Bytes => "BYTES",
        Rule::Optional(rule) => value_name(rule),
    }
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

impl FromArgMatches for ConfigFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = ConfigFlags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        if let Some(config) = matches.get_one::<PathBuf>("config") {
            self.0.config = Some(config.clone());
        }
        for key in KEYS {
            if let Some(value) = matches.get_one::<String>(key.name) {
                self.0.values.push((key.name, value.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(arguments: &[&str], variables: &[(&str, &str)]) -> Config {
        let command = ConfigFlags::augment_args(Command::new("train")).no_binary_name(true);
        let matches = command.try_get_matches_from(arguments).expect("flags that clap knows");
        let flags = ConfigFlags::from_arg_matches(&matches).expect("flags");
        let variables: Vec<_> = variables.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Config::resolve(&flags.0, &variables).expect("a configuration")
    }

    #[test]
    fn the_help_tells_every_key_its_meaning_default_and_what_is_allowed() {
        let help = ConfigFlags::augment_args(Command::new("train"))
            .term_width(10_000)
            .render_long_help()
            .to_string();
        for key in KEYS {
            assert!(help.contains(&format!("--{}", key.name)), "{} is missing", key.name);
            assert!(help.contains(&key.meaning[1..]), "{} has no meaning", key.name);
            assert!(help.contains(&key.rule.allowed()), "{} does not say what is allowed", key.name);
        }
    }

    #[test]
    fn switches_need_no_value() {
        assert!(resolve(&["--tied-head"], &[("VOLTA_TRAIN_TIED_HEAD", "false")]).tied_head);
        assert!(!resolve(&["--tied-head", "false"], &[]).tied_head);
    }
}
