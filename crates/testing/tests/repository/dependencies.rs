//! What Volta depends on: `deny.toml` says which licences and sources are allowed. `cargo deny check` looks at advisories as well, and
//! at what other systems depend on; it takes minutes to install, so every run of the tests has this part.

use super::sources;
use serde_json::Value;
use std::process::Command;

/// The strings of a list in `deny.toml`.
fn list(deny: &str, key: &str) -> Vec<String> {
    let rest = deny.split(&format!("\n{key} = [")).nth(1).unwrap_or_else(|| panic!("deny.toml has no {key}"));
    let inside = rest.split(']').next().unwrap_or_default();
    inside.split('"').skip(1).step_by(2).map(String::from).collect()
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("it writes text")
}

/// Whether an expression of SPDX is one that these licences satisfy: `AND` binds more than `OR`, and an old form writes `/` for `OR`.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace(" / ", " OR ").replace('/', " OR ");
    // Parentheses stand around alternatives only, and there is one pair.
    let all = match expression.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((inside, rest)) => vec![inside.to_string(), rest.trim_start_matches(" AND ").to_string()],
        None => vec![expression],
    };
    let alternatives = |part: &str| {
        part.split(" OR ").any(|one| one.split(" AND ").all(|name| allowed.iter().any(|a| a == name.trim())))
    };
    all.iter().filter(|part| !part.is_empty()).all(|part| alternatives(part))
}

#[test]
fn expressions_of_licences_are_understood() {
    let allowed = ["MIT", "ISC", "Unicode-3.0"].map(String::from);
    for (expression, expected) in [
        ("MIT OR Apache-2.0", true),
        ("GPL-3.0 OR AGPL-3.0", false),
        ("Apache-2.0/MIT", true),
        ("Apache-2.0 AND ISC", false),
        ("MIT AND ISC", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-3.0 OR Apache-2.0) AND Unicode-3.0", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}

#[test]
fn dependencies_have_licences_and_sources_that_are_allowed() {
    let deny = sources::read(&sources::root().join("deny.toml"));
    let (licences, registries) = (list(&deny, "allow"), list(&deny, "allow-registry"));
    let version = run(Command::new("rustc").arg("-vV"));
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc says where it runs");
    let mut metadata = Command::new(env!("CARGO"));
    metadata.current_dir(sources::root()).args(["metadata", "--offline", "--format-version=1"]);
    metadata.args(["--filter-platform", host, "--features", "volta-ml/download"]);
    let metadata: Value = serde_json::from_str(&run(&mut metadata)).expect("Cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    assert!(packages.len() > 50, "{} packages", packages.len());
    let mut wrong = Vec::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        if !is_allowed(text("license"), &licences) {
            wrong.push(format!("{} has the licence {:?}", text("name"), text("license")));
        }
        let source = text("source");
        if !source.is_empty() && !registries.iter().any(|r| source == format!("registry+{r}")) {
            wrong.push(format!("{} comes from {source}", text("name")));
        }
    }
    assert!(wrong.is_empty(), "deny.toml does not allow: {}", wrong.join("; "));
}
