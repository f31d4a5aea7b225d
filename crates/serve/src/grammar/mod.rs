//! What an answer may be, as a grammar over bytes: `build` makes one, `json` that of any JSON, `schema` that of a JSON Schema. `matcher`
//! follows a text through it, and `vocabulary` says which tokens may come next.

mod build;
mod json;
mod matcher;
mod schema;
mod vocabulary;

pub use matcher::Matcher;
pub use schema::{any_object, of_schema};
pub use vocabulary::Vocabulary;

/// States with edges between them. A state may call another, and goes on elsewhere when that has come to an end.
pub struct Grammar {
    states: Vec<State>,
    start: u32,
}

#[derive(Clone, Default)]
struct State {
    edges: Vec<Edge>,
    /// Whether what was called has come to an end.
    ends: bool,
}

#[derive(Clone, Copy)]
enum Edge {
    /// A byte of a range.
    Bytes { from: u8, to: u8, next: u32 },
    /// Nothing.
    Empty(u32),
    /// What begins at a state, and then on from another.
    Call { start: u32, next: u32 },
}
