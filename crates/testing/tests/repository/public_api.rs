//! The library's public names, with their types, as far as its sources write them out: `public_api.txt` records them, so that a change of what users
//! write is seen in a diff. `VOLTA_SNAPSHOTS=write` records them anew.

use super::sources;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

const RECORD: &str = "crates/testing/tests/repository/public_api.txt";

/// The beginnings of public items.
const ITEMS: [&str; 10] = [
    "pub fn ",
    "pub async fn ",
    "pub const fn ",
    "pub unsafe fn ",
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub type ",
    "pub const ",
    "pub static ",
];

/// The names that `pub use` lists in a file.
fn exported(text: &str, names: &mut BTreeSet<String>) {
    for list in text.split("\npub use ").skip(1) {
        let list = list.split(';').next().unwrap_or_default();
        let words = list.split(|c: char| !c.is_alphanumeric() && c != '_');
        names.extend(words.filter(|word| !word.is_empty()).map(String::from));
    }
}

/// An item's text from its beginning to its body, in one line.
fn signature<'a>(first: &str, rest: impl Iterator<Item = &'a str>) -> String {
    let mut text = first.trim().to_string();
    let is_whole = |text: &str| text.ends_with(['{', ';', '}']);
    for line in rest {
        if is_whole(&text) {
            break;
        }
        let _ = write!(text, " {}", line.trim());
    }
    let end = text.find(" {").or_else(|| text.find(" where ")).unwrap_or(text.len());
    let text = text[..end].trim_end_matches([';', ' ', ',']).replace("( ", "(").replace(", )", ")");
    text.strip_prefix("pub ").map(String::from).unwrap_or(text)
}

/// The type that an `impl` is for.
fn implemented(line: &str) -> Option<String> {
    let rest = line.strip_prefix("impl")?;
    let rest = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest.trim_start() };
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!rest.contains(" for ")).then(|| name.to_string())
}

/// The public items of a file; those of modules and types that are not exported are left out.
fn items(text: &str, exported: &BTreeSet<String>, is_public_module: bool, found: &mut BTreeSet<String>) {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let (mut owner, mut hidden) = (None, false);
    for (k, line) in lines.iter().enumerate() {
        let (depth, line) = (line.len() - line.trim_start().len(), line.trim_start());
        if line.starts_with("#[doc(hidden)]") {
            hidden = true;
        }
        let is_item = ITEMS.iter().any(|item| line.starts_with(item));
        if depth == 0 && line.starts_with("impl") {
            owner = implemented(line);
        }
        let name = |line: &str| {
            let word = ITEMS.iter().find_map(|item| line.strip_prefix(item)).unwrap_or_default();
            word.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_string()
        };
        if is_item && !hidden {
            let whole = signature(line, lines[k + 1..].iter().copied());
            if depth == 0 && (is_public_module || exported.contains(&name(line))) {
                found.insert(whole);
            } else if depth == 4
                && let Some(owner) = owner.as_ref().filter(|owner| exported.contains(*owner))
            {
                found.insert(format!("{owner}: {whole}"));
            }
        }
        if depth == 0 && (is_item || line.starts_with('}')) {
            owner = owner.filter(|_| !line.starts_with('}'));
        }
        if !line.starts_with('#') && !line.starts_with("//") {
            hidden = false;
        }
    }
}

fn public_names() -> String {
    let source = sources::root().join("crates/volta/src");
    let (files, mut names) = (sources::files(&source, "rs"), BTreeSet::new());
    for file in files.iter().filter(|file| file.ends_with("mod.rs") || file.ends_with("src/lib.rs")) {
        exported(&format!("\n{}", sources::read(file)), &mut names);
    }
    let mut found = BTreeSet::new();
    for file in &files {
        let modules = ["environment.rs", "gpu.rs", "tab.rs", "nn/init.rs"];
        let is_public_module = modules.iter().any(|module| *file == source.join(Path::new(module)));
        items(&sources::read(file), &names, is_public_module, &mut found);
    }
    let ir = sources::root().join("crates/ir/src");
    for file in ["device.rs", "dtype.rs", "error.rs", "shape.rs", "plan/report.rs"] {
        items(&sources::read(&ir.join(file)), &names, false, &mut found);
    }
    // What the tables of ops make.
    for table in ["op/unary.rs", "op/binary.rs"] {
        let table = sources::read(&ir.join(table));
        let rows = table.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with("//"));
        let words = rows.flat_map(|row| row.split([' ', ',']).filter(|word| word.starts_with("try_")));
        found.extend(words.map(|method| format!("Tensor: op {method}")));
    }
    let mut text =
        String::from("# The public names of the library: VOLTA_SNAPSHOTS=write records them anew.\n");
    found.iter().for_each(|item| text += &format!("{item}\n"));
    text
}

#[test]
fn public_names_are_those_that_were_recorded() {
    let (now, record) = (public_names(), sources::root().join(RECORD));
    if std::env::var("VOLTA_SNAPSHOTS").is_ok_and(|v| v == "write") {
        std::fs::write(&record, &now).expect("the record can be written");
    }
    let before = sources::read(&record);
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (before.lines().collect(), now.lines().collect());
    let mut changes = String::new();
    old.difference(&new).for_each(|line| changes += &format!("- {line}\n"));
    new.difference(&old).for_each(|line| changes += &format!("+ {line}\n"));
    assert!(
        changes.is_empty(),
        "public names changed. If users shall see that, say so in CHANGELOG.md and record them with VOLTA_SNAPSHOTS=write:\n{changes}"
    );
    assert!(new.len() > 800, "{} names", new.len());
}

#[test]
fn items_are_found_with_their_types() {
    let text = "/// One.\npub struct Shown {\n    pub x: u8,\n}\n\nimpl Shown {\n    pub fn new(\n        x: u8,\n        y: u8,\n    ) -> Shown {\n        a()\n    }\n\n\
                    #[doc(hidden)]\n    pub fn secret(&self) {}\n\n    pub(crate) fn inside(&self) {}\n}\n\nimpl Clone for Shown {\n}\n\npub struct Other;\n\nimpl Other {\n    pub fn new() -> Other {}\n}\n";
    let mut found = BTreeSet::new();
    items(text, &BTreeSet::from(["Shown".to_string()]), false, &mut found);
    let found: Vec<_> = found.iter().map(String::as_str).collect();
    assert_eq!(found, ["Shown: fn new(x: u8, y: u8) -> Shown", "struct Shown"]);
}
