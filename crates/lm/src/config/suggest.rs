//! "Did you mean": the name nearest to one that is not there.

/// ` (did you mean x?)` for a name that is nearly `x`, or nothing.
pub fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let nearest = names.into_iter().map(|name| (distance(wrong, name), name)).min();
    // A third of a name may be wrong, not more, unless one is the beginning of the other.
    let near = |away: usize, name: &str| {
        let begins = wrong.len() >= 3 && (wrong.starts_with(name) || name.starts_with(wrong));
        begins || away <= 1.max(name.len() / 3)
    };
    match nearest {
        Some((away, name)) if near(away, name) => format!(" (did you mean {name}?)"),
        _ => String::new(),
    }
}

/// How many letters must be added, left out or changed to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, distance};

    #[test]
    fn distances_count_edits() {
        let table =
            [("", "", 0), ("abc", "", 3), ("", "abc", 3), ("kitten", "sitting", 3), ("heads", "head", 1)];
        for (a, b, expected) in table {
            assert_eq!(distance(a, b), expected, "{a:?} and {b:?}");
        }
    }

    #[test]
    fn only_near_names_are_offered() {
        assert_eq!(did_you_mean("layer", ["layers", "heads"]), " (did you mean layers?)");
        assert_eq!(did_you_mean("seq-length", ["seq", "heads"]), " (did you mean seq?)");
        assert_eq!(did_you_mean("colour", ["layers", "heads"]), "");
        assert_eq!(did_you_mean("x", []), "");
    }
}
