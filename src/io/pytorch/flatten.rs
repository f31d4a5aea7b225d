//! Nested dictionaries and lists as names with dots.

use super::pickle::{Item, Pickle, TensorView};

/// What stands under a name.
pub(super) enum Leaf<'p> {
    Tensor(&'p TensorView),
    /// A number or a text.
    Text(String),
}

/// Containers within containers beyond this are refused.
const DEEPEST: usize = 64;

/// Names, texts and containers beyond this many bytes are refused: a small file can describe very many by naming one
/// container again and again.
const MOST: usize = 1 << 26;

/// Everything in a pickle under its full name.
pub(super) fn flatten(pickle: &Pickle) -> Result<Vec<(String, Leaf<'_>)>, String> {
    let mut walk = Walk { pickle, left: MOST, found: Vec::new() };
    if let Some(root) = &pickle.root {
        if !matches!(root, Item::Dict(_)) {
            return Err("it does not hold a dictionary: save a state_dict()".to_string());
        }
        walk.see(String::new(), root, 0)?;
    }
    Ok(walk.found)
}

struct Walk<'p> {
    pickle: &'p Pickle,
    left: usize,
    found: Vec<(String, Leaf<'p>)>,
}

impl<'p> Walk<'p> {
    fn see(&mut self, name: String, item: &'p Item, depth: usize) -> Result<(), String> {
        let text = if let Item::Text(text) = item { text.len() } else { 0 };
        self.left = self
            .left
            .checked_sub(name.len() + text + 1)
            .ok_or("it describes too many objects: containers are named again and again")?;
        if depth > DEEPEST {
            return Err(format!("{name:?} lies deeper than {DEEPEST} containers"));
        }
        let leaf = match item {
            Item::Dict(k) => {
                for (key, value) in &self.pickle.dicts[*k] {
                    let key = match key {
                        Item::Text(text) => text.to_string(),
                        Item::Int(n) => n.to_string(),
                        other => return Err(format!("{name:?} has the key {other:?}, which makes no name")),
                    };
                    self.see(joined(&name, &key, depth), value, depth + 1)?;
                }
                return Ok(());
            }
            Item::Sequence(k) => {
                for (n, value) in self.pickle.sequences[*k].iter().enumerate() {
                    self.see(joined(&name, &n.to_string(), depth), value, depth + 1)?;
                }
                return Ok(());
            }
            Item::Tensor(k) => Leaf::Tensor(&self.pickle.tensors[*k]),
            Item::None => Leaf::Text("None".to_string()),
            Item::Bool(yes) => Leaf::Text(yes.to_string()),
            Item::Int(n) => Leaf::Text(n.to_string()),
            Item::Float(x) => Leaf::Text(x.to_string()),
            Item::Text(text) | Item::Global(text) => Leaf::Text(text.to_string()),
            Item::Storage(_) => return Err(format!("{name:?} is a storage without a tensor")),
        };
        self.found.push((name, leaf));
        Ok(())
    }
}

fn joined(outer: &str, inner: &str, depth: usize) -> String {
    if depth == 0 { inner.to_string() } else { format!("{outer}.{inner}") }
}
