//! Environment variables: docs/variables.md lists all, and one place reads them.

use super::sources;
use std::collections::{BTreeMap, BTreeSet};

/// The keys of `volta train` have a variable each, which `volta train --help` lists; what tests tell the programs that they start
/// is between them.
const FAMILIES: [&str; 2] = ["VOLTA_TRAIN_", "VOLTA_TEST_"];

/// Who reads the environment besides `crates/ir/src/environment.rs`, and why.
const READERS: [(&str, &str); 8] = [
    ("crates/ir/src/environment.rs", "reads all that Volta's libraries listen to"),
    ("crates/cli/src/lm/config_flags.rs", "hands the variables of a run's keys to their table"),
    ("crates/cli/src/devices.rs", "asks whether there is a session before Mesa does"),
    ("crates/cli/src/lm/ranks.rs", "asks whether somebody has said how many threads a rank has"),
    ("crates/cli/src/pretrained/serve.rs", "asks for the key that clients must send"),
    ("crates/mpi/src/launcher.rs", "asks how many ranks mpirun has started"),
    ("crates/volta/src/io/hub.rs", "asks for the variables that other programs of the Hub listen to"),
    ("crates/gpu/src/snapshots.rs", "is a test"),
];

/// The names of variables in a text, where they stand behind `before`.
fn names(text: &str, before: &str) -> BTreeSet<String> {
    let marker = format!("{before}VOLTA_");
    let found = text.match_indices(&marker).map(|(at, _)| {
        let rest = &text[at + before.len()..];
        rest.chars().take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_').collect()
    });
    found
        .filter(|name: &String| {
            name.len() > "VOLTA_".len() && !FAMILIES.iter().any(|family| name.starts_with(family))
        })
        .collect()
}

#[test]
fn every_variable_is_listed_and_every_listed_one_is_read() {
    let root = sources::root();
    let mut used: BTreeMap<String, String> = BTreeMap::new();
    let rust = sources::files(&root.join("crates"), "rs");
    let python = sources::files(&root.join("python"), "rs");
    for file in rust.into_iter().chain(python).filter(|file| !file.ends_with("repository/variables.rs")) {
        for name in names(&sources::read(&file), "\"") {
            used.insert(name, sources::name(&file));
        }
    }
    let listed = names(&sources::read(&root.join("docs/variables.md")), "`");
    let missing: Vec<_> = used.iter().filter(|(name, _)| !listed.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/variables.md does not list {missing:?}");
    let unread: Vec<_> = listed.iter().filter(|name| !used.contains_key(*name)).collect();
    assert!(unread.is_empty(), "docs/variables.md lists {unread:?}, which nobody reads");
    assert!(listed.len() > 15, "{listed:?}");
    // The documentation of the library has those that are for users of the library.
    let documented = names(&sources::read(&root.join("crates/volta/src/environment.rs")), "`");
    let unlisted: Vec<_> = documented.difference(&listed).collect();
    assert!(unlisted.is_empty() && documented.len() > 8, "{unlisted:?}");
    let environment = sources::read(&root.join("crates/ir/src/environment.rs"));
    let read: BTreeSet<_> = names(environment.split("mod tests").next().unwrap_or_default(), "\"");
    let undocumented: Vec<_> = documented.difference(&read).collect();
    assert!(undocumented.is_empty(), "the library does not read {undocumented:?}");
}

#[test]
fn the_environment_is_read_in_one_place() {
    let root = sources::root();
    let sources_of = |folder: &str| sources::files(&root.join(folder), "rs");
    let mut wrong = Vec::new();
    for file in sources_of("crates").into_iter().chain(sources_of("python")).chain(sources_of("web")) {
        let name = sources::name(&file);
        let is_source = name.contains("/src/") && !name.contains("tests") && !name.contains("crates/testing");
        let text = sources::read(&file);
        if is_source && text.contains("env::var") && !READERS.iter().any(|(reader, _)| *reader == name) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?} read the environment: volta_ir::environment does");
}
