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

/// A small file can describe very many objects by naming one container again and again. So objects, with their names,
/// may take this many bytes of memory for every byte that describes them: a whole number in a list takes two bytes,
/// and some two hundred under a long name.
const MAX_BYTES_PER_BYTE: usize = 200;
/// What a short file may take in any case.
const MIN_BYTES: usize = 1 << 16;
/// What no file may take.
const MAX_BYTES: usize = 1 << 29;
/// What an object takes beside its name and its text.
const OBJECT_BYTES: usize = 64;

/// Everything in a pickle of `length` bytes under its full name.
pub(super) fn flatten(pickle: &Pickle, length: usize) -> Result<Vec<(String, Leaf<'_>)>, String> {
    let left = length.saturating_mul(MAX_BYTES_PER_BYTE).clamp(MIN_BYTES, MAX_BYTES);
    let mut walk = Walk { pickle, left, found: Vec::new() };
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
    /// Bytes that the rest may take.
    left: usize,
    found: Vec<(String, Leaf<'p>)>,
}

impl<'p> Walk<'p> {
    fn see(&mut self, name: String, item: &'p Item, depth: usize) -> Result<(), String> {
        let text = if let Item::Text(text) = item { text.len() } else { 0 };
        self.left = self
            .left
            .checked_sub(name.len() + text + OBJECT_BYTES)
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
