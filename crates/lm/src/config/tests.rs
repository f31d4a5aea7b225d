//! Precedence, unknown keys, impossible values, RustyFlow's `config.env`, and the saved configuration.

use super::keys::{KEYS, Key};
use super::{Config, ConfigError, Duration, Flags, Optimizer, Positions, TokenizerSource};
use std::path::{Path, PathBuf};
use volta::text::TokenizerKind;

#[path = "../../../volta/tests/fuzz/mutate.rs"]
mod mutate;

/// A file that is gone with the test.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: &str) -> TempFile {
        let folder = std::env::temp_dir().join(format!("volta-config-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a temporary file");
        TempFile(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        // The folder goes with the last one in it.
        let _ = self.0.parent().map(std::fs::remove_dir);
    }
}

/// `--key=value` and `--key value`, in the order of the table, as the program gives them.
fn flags(arguments: &[&str]) -> Flags {
    let mut flags = Flags::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").expect("a flag");
        let (name, value) =
            name.split_once('=').unwrap_or_else(|| (name, words.next().expect("the value of a flag")));
        match Key::find(name) {
            Some(key) => flags.values.push((KEYS[key].name, value.to_string())),
            None => flags.config = Some(PathBuf::from(value)),
        }
    }
    flags.values.sort_by_key(|(name, _)| Key::find(name));
    flags
}

fn environment(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn resolve(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::resolve(&flags(arguments), &environment(variables))
}

fn toml(text: &str) -> Result<Config, ConfigError> {
    Config::from_toml(text, Path::new("run.toml"))
}

fn error(result: Result<Config, ConfigError>) -> String {
    result.expect_err("a configuration that cannot be used").to_string()
}

#[test]
fn the_defaults_can_be_used() {
    let config = resolve(&[], &[]).unwrap();
    assert_eq!(config.data, "stories");
    assert_eq!(config.duration(), Duration::Epochs(1));
    assert_eq!(config.betas, None);
}

#[test]
fn names_of_keys_are_unique_and_written_in_one_way() {
    for (at, key) in KEYS.iter().enumerate() {
        assert_eq!(Key::find(key.name), Some(at), "{} is there twice", key.name);
        assert!(key.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", key.name);
        assert!(key.rule.read(key.default).is_some(), "the default of {} is not allowed", key.name);
    }
}

#[test]
fn later_sources_win_over_earlier_ones() {
    let file = TempFile::new("order.toml", "layers = 2\nheads = 2\nwidth = 32\nlearning_rate = 0.5\n");
    let path = file.0.to_str().unwrap();
    let variables = [("VOLTA_TRAIN_HEADS", "8"), ("VOLTA_TRAIN_WIDTH", "64"), ("OTHER", "x")];
    let config = resolve(&["--config", path, "--width", "128"], &variables).unwrap();
    assert_eq!((config.layers, config.heads, config.width), (2, 8, 128));
    assert_eq!((config.learning_rate, config.batch), (0.5, 16));
}

#[test]
fn every_key_can_be_set_from_a_file_a_variable_and_a_flag() {
    for key in KEYS {
        let variable = key.variable();
        let defaults = resolve(&[], &[]).unwrap();
        assert_eq!(resolve(&[], &[(&variable, key.default)]).unwrap().values, defaults.values, "{variable}");
        let flag = format!("--{}={}", key.name, key.default);
        assert_eq!(resolve(&[&flag], &[]).unwrap().values, defaults.values, "{flag}");
        let text = format!("{} = \"{}\"", key.name, key.default);
        assert_eq!(toml(&text).unwrap().values, defaults.values, "{text}");
    }
}

#[test]
fn amounts_of_memory_have_units_of_1000_and_of_1024() {
    for (text, bytes) in [
        ("6GB", 6_000_000_000),
        ("1.5 gb", 1_500_000_000),
        ("4GiB", 4 << 30),
        ("512MB", 512_000_000),
        ("1_024 KiB", 1 << 20),
        ("123456789", 123_456_789),
        ("7b", 7),
    ] {
        assert_eq!(super::parse_bytes(text), Some(bytes), "{text}");
    }
    for text in
        ["", "GB", "0", "0GB", "-1GB", "1.5", "1.5b", "1e3GB", "infGB", "nanGB", "6 G B", "99999999999TB"]
    {
        assert_eq!(super::parse_bytes(text), None, "{text}");
    }
    assert_eq!(resolve(&["--memory", "6GB"], &[]).unwrap().memory, Some(6_000_000_000));
    assert_eq!(toml("memory = \"2GiB\"").unwrap().memory, Some(2 << 30));
    let config = resolve(&["--memory", "6GB"], &[]).unwrap();
    assert_eq!(toml(&config.effective()).unwrap().memory, config.memory);
    assert!(error(resolve(&["--memory", "much"], &[])).contains("as in 6GB"));
}

#[test]
fn unknown_keys_are_named_with_their_place_and_the_nearest_known_one() {
    let text = "layers = 2\n\nlearning_rat = 0.1\n";
    assert_eq!(
        error(toml(text)),
        "the configuration cannot be used: learning-rat (run.toml, line 3): there is no such key \
         (did you mean learning-rate?)"
    );
    let message = error(resolve(&[], &[("VOLTA_TRAIN_LAYER", "3")]));
    assert!(message.contains("the variable VOLTA_TRAIN_LAYER"), "{message}");
    assert!(message.contains("did you mean VOLTA_TRAIN_LAYERS?"), "{message}");
    let message = error(toml("[model]\nlayers = 3\n"));
    assert!(
        message.contains("model (run.toml, line 1)") && message.contains("the keys are data,"),
        "{message}"
    );
}

#[test]
fn impossible_values_are_named_with_their_place_and_what_is_allowed() {
    let table: [(&str, &str); 16] = [
        ("layers = 0", "layers = 0 (run.toml, line 1): must be a whole number from 1 to 1024"),
        ("layers = -1", "layers = -1 (run.toml, line 1): must be a whole number"),
        ("layers = 2.5", "layers = 2.5 (run.toml, line 1): must be a whole number"),
        ("dropout = 1.0", "must be a number from 0 to 0.99"),
        ("dropout = nan", "dropout = nan (run.toml, line 1): must be a number"),
        ("learning-rate = 0", "must be a number more than 0 and at most 10"),
        ("optimizer = \"adm\"", "must be adamw, adam, sgd, lion or muon (did you mean adam?)"),
        ("schedule = \"cosin\"", "did you mean cosine?"),
        ("tokenizer = \"word\"", "or the path of a tokenizer.json (did you mean words?)"),
        ("device = \"gpu:x\"", "must be auto, cpu, gpu or gpu:N"),
        ("tied-head = \"yes\"", "must be true or false"),
        ("betas = [0.9]", "two numbers"),
        ("betas = [0.9, 1.0]", "two numbers"),
        ("data = \"\"", "data =  (run.toml, line 1): must be stories"),
        ("layers = { a = 1 }", "layers (run.toml, line 1): is a table"),
        ("layers = ", "run.toml, line 1: not TOML"),
    ];
    for (text, expected) in table {
        let message = error(toml(text));
        assert!(message.contains(expected), "{text}: {message}");
    }
    let message = error(resolve(&["--top-p", "-1"], &[]));
    assert!(message.contains("top-p = -1 (the flag --top-p): must be a number more than 0"), "{message}");
    let message = error(resolve(&[], &[("VOLTA_TRAIN_BATCH", "many")]));
    assert!(message.contains("batch = many (the variable VOLTA_TRAIN_BATCH)"), "{message}");
}

#[test]
fn impossible_combinations_name_both_values() {
    let table: [(&str, &str); 9] = [
        (
            "width = 128\nheads = 5",
            "heads = 5 (run.toml, line 2): must divide width = 128 (run.toml, line 1)",
        ),
        ("epochs = 2\nsteps = 10", "steps = 10 (run.toml, line 2): cannot go together with epochs = 2"),
        ("positions = \"rotary\"\nwidth = 12\nheads = 4", "positions = rotary"),
        ("steps = 10\nwarmup = 20", "warmup = 20 (run.toml, line 2): is longer than the whole run"),
        ("tokenizer = \"bytes\"\nvocabulary = 500", "whose vocabulary is fixed"),
        ("tokenizer = \"x/tokenizer.json\"\nvocabulary = 500", "whose vocabulary is fixed"),
        ("tokenizer = \"bpe\"\nvocabulary = 100", "must be at least 257"),
        ("optimizer = \"sgd\"\nbetas = [0.9, 0.99]", "are not used by optimizer = sgd"),
        ("momentum = 0.9", "is not used by optimizer = adamw (the default)"),
    ];
    for (text, expected) in table {
        let message = error(toml(text));
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn everything_wrong_is_said_at_once() {
    let message = error(resolve(&["--layers", "0", "--norm", "batch"], &[("VOLTA_TRAIN_X", "1")]));
    assert_eq!(message.lines().count(), 4, "{message}");
}

#[test]
fn steps_of_a_later_source_take_the_place_of_epochs() {
    let config = resolve(&["--steps", "50"], &[("VOLTA_TRAIN_EPOCHS", "3")]).unwrap();
    assert_eq!(config.duration(), Duration::Steps(50));
    let config = resolve(&["--epochs", "2"], &[("VOLTA_TRAIN_STEPS", "30")]).unwrap();
    assert_eq!(config.duration(), Duration::Epochs(2));
    let message = error(resolve(&["--epochs", "2", "--steps", "3"], &[]));
    assert!(message.contains("the flag --steps") && message.contains("the flag --epochs"), "{message}");
}

#[test]
fn the_context_must_fit_into_the_data() {
    let config = resolve(&["--context", "64"], &[]).unwrap();
    assert_eq!(config.check_data(65, 0), Ok(()));
    assert_eq!(config.check_data(65, 65), Ok(()));
    let message = config.check_data(64, 65).unwrap_err().to_string();
    assert!(message.contains("context = 64 (the flag --context)"), "{message}");
    assert!(message.contains("at most 63"), "{message}");
    let message = config.check_data(1000, 10).unwrap_err().to_string();
    assert!(message.contains("validation") && message.contains("at most 9"), "{message}");
}

#[test]
fn the_effective_configuration_reads_back_the_same() {
    let arguments = [
        "--optimizer=lion",
        "--betas=0.95,0.98",
        "--tokenizer=dir/a \"b\\c.json",
        "--positions=rotary",
        "--steps=7",
        "--warmup=0",
        "--learning-rate=3e-4",
        "--name=x",
    ];
    let config = resolve(&arguments, &[]).unwrap();
    assert_eq!(config.optimizer, Optimizer::Lion);
    assert_eq!(config.positions, Positions::Rotary);
    assert_eq!(config.tokenizer, TokenizerSource::File("dir/a \"b\\c.json".into()));
    let text = config.effective();
    let again = toml(&text).unwrap();
    assert_eq!(again.values, config.values);
    assert_eq!(again.effective(), text);
    assert!(text.contains("\nlearning-rate = 0.0003\n"), "{text}");
}

#[test]
fn toml_may_write_numbers_in_its_own_ways() {
    let config = toml("batch = 1_6\nseed = 0xff\nlearning-rate = 1e-2\nclip = 1\n").unwrap();
    assert_eq!((config.batch, config.seed, config.learning_rate, config.clip), (16, 255, 0.01, 1.0));
}

#[test]
fn a_rustyflow_file_means_what_it_meant_there() {
    let file = TempFile::new(
        "config.env",
        "# settings\nDATASET=\"tinyshakespeare\"\n#DATASET=\"wikitext-2\"\nSEQ_LEN=64\nNUM_EPOCHS=10\n\
         BATCH_SIZE=8 # small\nLEARNING_RATE=0.01\nexport EMBED_DIM='256'\nNUM_HEADS=8\nNUM_LAYERS=2\n\
         MODEL_PATH=\"runs/${DATASET}-L${NUM_LAYERS}-H$NUM_HEADS-E${EMBED_DIM}.bin\"\nTEMPERATURE=0.7\nTOP_P=0.9\n",
    );
    let path = file.0.to_str().unwrap();
    let config = resolve(&["--config", path], &[]).unwrap();
    assert_eq!(config.data, "tinyshakespeare");
    assert_eq!((config.context, config.batch, config.width, config.heads, config.layers), (64, 8, 256, 8, 2));
    assert_eq!((config.learning_rate, config.temperature, config.top_p), (0.01, 0.7, 0.9));
    assert_eq!(config.duration(), Duration::Epochs(10));
    assert_eq!(config.tokenizer, TokenizerSource::Train(TokenizerKind::Words));
    assert_eq!(
        (config.output.as_str(), config.name.as_deref()),
        ("runs", Some("tinyshakespeare-L2-H8-E256"))
    );
    let config = resolve(&["--config", path, "--tokenizer", "chars"], &[]).unwrap();
    assert_eq!(config.tokenizer, TokenizerSource::Train(TokenizerKind::Chars));
}

#[test]
fn mistakes_in_a_rustyflow_file_are_named_with_their_lines() {
    let file = TempFile::new(
        "bad.env",
        "SEQ_LENGTH=64\nBATCH_SIZE\nNUM_HEADS=\"4\nMODEL_PATH=$NOTHING/x.bin\nNUM_LAYERS=many\nTOP_P=\"1\" x\n",
    );
    let message = error(resolve(&["--config", file.0.to_str().unwrap()], &[]));
    for expected in [
        "SEQ_LENGTH (",
        "line 1): there is no such key (did you mean SEQ_LEN?)",
        "line 2): must be KEY=VALUE",
        "line 3): the quotation mark \" is not closed",
        "line 4): the variable \"NOTHING\" is used before it is set",
        "line 5): must be a whole number from 1 to 1024",
        "line 6): \"x\" after the closing quotation mark",
    ] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn the_flags_of_a_command_line_are_quoted_for_a_shell() {
    let given = ["--config", "a b.toml", "--name", "it's; $HOME", "--data=-x.txt", "--betas", "0.9,0.99"];
    assert_eq!(
        flags(&given).command_line(),
        r"'--config=a b.toml' --data=-x.txt --betas=0.9,0.99 '--name=it'\''s; $HOME'"
    );
}

#[test]
fn what_must_not_change_in_a_run_is_told_with_both_values() {
    let (before, now) =
        (toml("seed = 3\nsteps = 5\ntop-k = 4").unwrap(), resolve(&["--seed", "4"], &[]).unwrap());
    assert_eq!(now.changes(&before), ["seed = 4 (the flag --seed): it began with 3"]);
    assert!(before.changes(&before).is_empty());
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let message = error(resolve(&["--config", "nowhere/run.toml"], &[]));
    assert!(message.contains("cannot read the configuration nowhere/run.toml"), "{message}");
}

#[test]
fn a_run_shorter_than_the_usual_warmup_reads_back_too() {
    let config = resolve(&["--steps", "2"], &[]).expect("the usual warmup is not anybody's wish");
    let again = Config::from_toml(&config.effective(), Path::new("model")).expect("nor is it in the file");
    assert_eq!(again.effective(), config.effective());
}

/// As `tests/fuzz` does with all other files; `VOLTA_FUZZ` says how many.
#[test]
fn mutated_files_are_read_or_refused() {
    let toml = b"layers = 2\nlearning-rate = 1e-3\ndata = \"short\"\ntied-head = true\nbetas = [0.9, 0x1]\n"
        .to_vec();
    let env = b"export LAYERS=2\nMODEL_PATH=\"models/$HOME\" # here\nA=x\nA=$A$A\nDATASET=${A}\n".to_vec();
    let words: [&[u8]; 8] = [b"\"", b"'", b"=", b"$A", b"${", b"[", b"\n", b"1979-05-27T07:32:00"];
    let environment = environment(&[("HOME", "/home/somebody")]);
    let path = Path::new("config.toml");
    let files = std::env::var("VOLTA_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(1000);
    for seed in 0..files {
        let file = mutate::mutated(&[toml.clone(), env.clone()], &words, &mut mutate::Random::new(seed));
        let text = String::from_utf8_lossy(&file);
        let problems = super::sources::toml_text(&text, path).problems;
        assert!(problems.iter().all(|p| p.len() < 1 << 20), "file {seed}");
        super::env_file::read(&text, path, &environment);
        let _ = Config::from_toml(&text, path);
    }
}

#[test]
fn a_variable_that_doubles_with_every_line_comes_to_an_end() {
    let text = format!("A=xx\n{}", "A=$A$A\n".repeat(60));
    let reading = super::env_file::read(&text, Path::new("config.env"), &[]);
    assert!(reading.problems.iter().any(|p| p.contains("longer than")), "{:?}", reading.problems.len());
}
