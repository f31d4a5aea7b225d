//! Other names for tensors: a model from elsewhere calls its parts otherwise, and may hold matrices transposed.

use crate::call::Call;
use crate::error::{Result, bail};
use crate::state::StateDict;

/// Rules that say what tensors of a file are called here. Names without a rule stay as they are.
///
/// In a pattern `{}` stands for one part of a name, between dots or within them, and `{..}` for any number of
/// parts; what they stood for is put into the new name in the same order. The first rule that fits counts.
///
/// ```
/// use volta::io::NameMap;
/// use volta::{StateDict, Tensor};
///
/// let gpt2 = NameMap::new()
///     .strip("transformer")
///     .drop("h.{}.attn.bias")
///     .rename_transposed("h.{}.attn.c_attn.weight", "blocks.{}.attn.qkv.weight")
///     .rename("h.{}.{..}", "blocks.{}.{..}");
/// let mut theirs = StateDict::new();
/// theirs.insert("transformer.h.0.attn.c_attn.weight", Tensor::zeros([4, 12]));
/// theirs.insert("transformer.h.0.ln_1.bias", Tensor::zeros([4]));
/// let ours = gpt2.apply(&theirs)?;
/// assert_eq!(ours.get("blocks.0.attn.qkv.weight").unwrap().shape()[..], [12, 4]);
/// assert!(ours.get("blocks.0.ln_1.bias").is_some());
/// # Ok::<(), volta::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct NameMap {
    prefixes: Vec<String>,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    from: String,
    /// Nothing if tensors of this name are left out.
    to: Option<String>,
    transposed: bool,
}

/// What a tensor is called here.
pub(crate) struct NewName {
    pub name: String,
    pub transposed: bool,
}

impl NameMap {
    /// Without rules: every name stays.
    pub fn new() -> NameMap {
        NameMap::default()
    }

    /// Takes `prefix` and a dot from the front of names, before any rule is looked at.
    #[must_use]
    pub fn strip(mut self, prefix: &str) -> NameMap {
        self.prefixes.push(format!("{}.", prefix.trim_end_matches('.')));
        self
    }

    /// Calls tensors whose names fit `from` by the name `to`.
    #[must_use]
    pub fn rename(self, from: &str, to: &str) -> NameMap {
        self.rule(from, Some(to), false)
    }

    /// [`rename`](Self::rename) for matrices that are the other way round there: the weights of GPT-2's `Conv1D`.
    #[must_use]
    pub fn rename_transposed(self, from: &str, to: &str) -> NameMap {
        self.rule(from, Some(to), true)
    }

    /// Leaves tensors out whose names fit `from`.
    #[must_use]
    pub fn drop(self, from: &str) -> NameMap {
        self.rule(from, None, false)
    }

    fn rule(mut self, from: &str, to: Option<&str>, transposed: bool) -> NameMap {
        self.rules.push(Rule { from: from.to_string(), to: to.map(String::from), transposed });
        self
    }

    /// The tensors of `state` under their new names; transposing is left to the engine.
    #[track_caller]
    pub fn apply(&self, state: &StateDict) -> Result<StateDict> {
        let _call = Call::enter("NameMap::apply");
        let mut out = StateDict::new();
        for (old, t) in state.iter() {
            let Some(new) = self.find(old)? else { continue };
            let t = match (new.transposed, t.rank()) {
                (false, _) => t.clone(),
                (true, 2) => t.try_t()?,
                (true, _) => {
                    bail!(Shape, "{old:?} has shape {}, and only a matrix can be transposed", t.shape())
                }
            };
            if out.insert(new.name.clone(), t).is_some() {
                bail!(Argument, "two tensors would be called {:?}; one of them is {old:?}", new.name);
            }
        }
        Ok(out)
    }

    /// What a tensor is called here; nothing if it is left out.
    pub(crate) fn find(&self, name: &str) -> Result<Option<NewName>> {
        let mut name = name;
        for prefix in &self.prefixes {
            name = name.strip_prefix(prefix.as_str()).unwrap_or(name);
        }
        for rule in &self.rules {
            let mut found = Vec::new();
            if !fits(name, &rule.from, &mut found) {
                continue;
            }
            let Some(to) = &rule.to else { return Ok(None) };
            let Some(name) = filled(to, &found) else {
                bail!(Argument, "{to:?} has another number of places to fill than {:?}", rule.from);
            };
            return Ok(Some(NewName { name, transposed: rule.transposed }));
        }
        Ok(Some(NewName { name: name.to_string(), transposed: false }))
    }
}

/// The next place to fill in a pattern: what stands before it, whether it may hold dots, and what follows.
fn next_place(pattern: &str) -> Option<(&str, bool, &str)> {
    let one = pattern.find("{}").map(|at| (at, false, 2));
    let many = pattern.find("{..}").map(|at| (at, true, 4));
    let (at, dots, length) = one.into_iter().chain(many).min()?;
    Some((&pattern[..at], dots, &pattern[at + length..]))
}

/// Whether a whole name fits a pattern; `found` gets what its places stand for, the shortest that will do.
fn fits<'n>(name: &'n str, pattern: &str, found: &mut Vec<&'n str>) -> bool {
    let Some((before, dots, after)) = next_place(pattern) else { return name == pattern };
    let Some(rest) = name.strip_prefix(before) else { return false };
    let mine = found.len();
    for (at, c) in rest.char_indices() {
        let end = at + c.len_utf8();
        if c == '.' && !dots {
            return false;
        }
        found.push(&rest[..end]);
        if fits(&rest[end..], after, found) {
            return true;
        }
        found.truncate(mine);
    }
    false
}

/// A pattern with its places filled, if there are as many as there is to fill in.
fn filled(pattern: &str, found: &[&str]) -> Option<String> {
    let (mut out, mut rest) = (String::new(), pattern);
    for &text in found {
        let (before, _, after) = next_place(rest)?;
        out.push_str(before);
        out.push_str(text);
        rest = after;
    }
    if next_place(rest).is_some() {
        return None;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(map: &NameMap, name: &str) -> Option<String> {
        map.find(name).unwrap().map(|new| new.name)
    }

    #[test]
    fn places_stand_for_parts_of_names() {
        let map = NameMap::new()
            .strip("model.")
            .rename("layers.{}.w{}", "blocks.{}.weight_{}")
            .rename("{..}.gamma", "{..}.weight")
            .drop("{..}.masked_bias");
        assert_eq!(renamed(&map, "model.layers.12.w3").unwrap(), "blocks.12.weight_3");
        assert_eq!(renamed(&map, "a.b.gamma").unwrap(), "a.b.weight");
        assert_eq!(renamed(&map, "model.other").unwrap(), "other");
        assert_eq!(renamed(&map, "layers.1.2.w3").unwrap(), "layers.1.2.w3", "a part has no dots");
        assert!(renamed(&map, "h.0.masked_bias").is_none());
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let map = NameMap::new().rename("a.{}", "first.{}").rename("{..}", "second.{..}");
        assert_eq!(renamed(&map, "a.x").unwrap(), "first.x");
        assert_eq!(renamed(&map, "a.x.y").unwrap(), "second.a.x.y");
    }

    #[test]
    fn a_rule_with_too_few_or_too_many_places_is_an_error() {
        for to in ["b", "b.{}.{}"] {
            let error = NameMap::new().rename("a.{}", to).find("a.1").err().unwrap();
            assert!(error.message().contains("another number of places"), "{error}");
        }
    }
}
