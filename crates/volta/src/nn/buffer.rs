//! What a field that is marked `#[module(buffer)]` may hold.

use super::Visitor;
use crate::tensor::{QuantizedMatrix, Tensor};

/// What may be a field of a module that is marked `#[module(buffer)]`: tensors, quantised matrices, and options, vectors, arrays and pairs of
/// these. They have the names that parameters would have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a buffer of a module",
    label = "neither a tensor nor a list of tensors",
    note = "modules are fields without a mark, and show their own buffers"
)]
pub trait BufferField {
    /// Shows every tensor in this field, which is called `name`.
    fn show(&self, name: &str, visitor: &mut Visitor<'_>);
}

impl BufferField for Tensor {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.buffer(name, self);
    }
}

impl BufferField for QuantizedMatrix {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.at(name, |v| {
            v.buffer("words", self.words());
            v.buffer("scales", self.scales());
        });
    }
}

impl<B: BufferField> BufferField for Option<B> {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        if let Some(buffer) = self {
            buffer.show(name, visitor);
        }
    }
}

impl<B: BufferField> BufferField for [B] {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.at(name, |v| {
            for (k, buffer) in self.iter().enumerate() {
                buffer.show(&k.to_string(), v);
            }
        });
    }
}

impl<B: BufferField> BufferField for Vec<B> {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        self.as_slice().show(name, visitor);
    }
}

impl<B: BufferField, const N: usize> BufferField for [B; N] {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        self.as_slice().show(name, visitor);
    }
}

impl<A: BufferField, B: BufferField> BufferField for (A, B) {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.at(name, |v| {
            self.0.show("0", v);
            self.1.show("1", v);
        });
    }
}
