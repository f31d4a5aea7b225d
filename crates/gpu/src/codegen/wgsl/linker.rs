//! Functions that shaders use, picked by name: a shader holds what it calls and nothing else.

use std::collections::{BTreeSet, HashMap};

/// The functions of `text`, each with its name. A function starts with `fn` at the start of a line.
fn functions(text: &str) -> Vec<(&str, &str)> {
    let starts: Vec<usize> = text
        .match_indices("fn ")
        .map(|(at, _)| at)
        .filter(|&at| at == 0 || text[..at].ends_with('\n'))
        .collect();
    let end = |k: usize| starts.get(k + 1).copied().unwrap_or(text.len());
    let function = |(k, &at): (usize, &usize)| {
        let whole = &text[at..end(k)];
        (whole[3..].split('(').next().expect("a name").trim(), whole)
    };
    starts.iter().enumerate().map(function).collect()
}

/// The identifiers that are followed by an opening parenthesis.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('(').filter_map(move |(at, _)| {
        let before = &text[..at];
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |k| k + 1);
        (start < at).then(|| &before[start..])
    })
}

/// The functions of the libraries that `body` calls, directly or through others, in the libraries' order.
pub(crate) fn needed(libraries: &[&str], body: &str) -> String {
    let all: Vec<(&str, &str)> = libraries.iter().flat_map(|text| functions(text)).collect();
    let numbers: HashMap<&str, usize> = all.iter().enumerate().map(|(k, (name, _))| (*name, k)).collect();
    let mut wanted: BTreeSet<usize> = BTreeSet::new();
    let mut queue = vec![body];
    while let Some(text) = queue.pop() {
        for name in calls(text) {
            if let Some(&k) = numbers.get(name)
                && wanted.insert(k)
            {
                queue.push(all[k].1);
            }
        }
    }
    wanted.into_iter().map(|k| all[k].1).collect()
}

#[cfg(test)]
mod tests {
    use super::needed;

    #[test]
    fn only_what_is_called_comes_along() {
        let library =
            "fn one() -> f32 { return 1.0; }\nfn two() -> f32 { return one() + one(); }\nfn three() {}\n";
        let found = needed(&[library], "let x = two();");
        assert!(found.contains("fn one") && found.contains("fn two") && !found.contains("three"));
        assert_eq!(needed(&[library], "let tone = 1;"), "");
    }
}
