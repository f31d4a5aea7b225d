//! The walk over a module: every tensor it holds, with its name, and every module inside it.

use super::{BufferField, Module};
use crate::tensor::Tensor;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a module shows of itself.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A tensor that is trained.
    Parameter(&'a Tensor),
    /// A tensor that is kept but not trained, such as a running mean.
    Buffer(&'a Tensor),
    /// The switch between training and evaluation.
    Mode(&'a Mode),
    /// A module; what is inside it follows.
    Child(&'a dyn Module),
}

/// Walks through a module and hands everything in it to a closure, with its full name (`blocks.0.norm.weight`).
pub struct Visitor<'v> {
    path: String,
    see: &'v mut dyn FnMut(&str, Item<'_>),
}

impl<'v> Visitor<'v> {
    /// A walk that calls `see`.
    pub fn new(see: &'v mut dyn FnMut(&str, Item<'_>)) -> Visitor<'v> {
        Visitor { path: String::new(), see }
    }

    /// Shows what stands under `name`, with its full name.
    pub(super) fn at(&mut self, name: &str, look: impl FnOnce(&mut Self)) {
        let outer = self.path.len();
        if outer > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        look(self);
        self.path.truncate(outer);
    }

    /// Shows a tensor that is trained.
    pub fn parameter(&mut self, name: &str, tensor: &Tensor) {
        self.at(name, |v| (v.see)(&v.path, Item::Parameter(tensor)));
    }

    /// Shows a tensor that is kept but not trained.
    pub fn buffer(&mut self, name: &str, tensor: &Tensor) {
        self.at(name, |v| (v.see)(&v.path, Item::Buffer(tensor)));
    }

    /// Shows the switch between training and evaluation.
    pub fn mode(&mut self, name: &str, mode: &Mode) {
        self.at(name, |v| (v.see)(&v.path, Item::Mode(mode)));
    }

    /// Shows a module and everything in it.
    pub fn child(&mut self, name: &str, module: &dyn Module) {
        self.at(name, |v| {
            (v.see)(&v.path, Item::Child(module));
            module.visit(v);
        });
    }

    /// Shows whatever a field holds.
    pub fn field(&mut self, name: &str, field: &(impl Field + ?Sized)) {
        field.show(name, self);
    }

    /// Shows whatever a field holds that is marked `#[module(buffer)]`.
    pub fn buffer_field(&mut self, name: &str, field: &(impl BufferField + ?Sized)) {
        field.show(name, self);
    }
}

/// Whether a layer trains or evaluates; layers that care hold one, and `train` and `eval` set it.
#[derive(Debug)]
pub struct Mode(AtomicBool);

impl Default for Mode {
    /// Training.
    fn default() -> Mode {
        Mode(AtomicBool::new(true))
    }
}

impl Mode {
    /// Whether the layer trains.
    pub fn is_training(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Switches it.
    pub fn set_training(&self, yes: bool) {
        self.0.store(yes, Ordering::Relaxed);
    }
}

/// What may be a field of a module that `#[derive(Module)]` walks through: tensors, which are parameters unless they
/// are marked `#[module(buffer)]`; modules; options, vectors, arrays and pairs of these; and plain values, which have
/// nothing to show.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a module",
    label = "neither a module, a tensor, a list of these, nor a plain value",
    note = "derive `Module` for it, or mark the field with `#[module(skip)]`"
)]
pub trait Field {
    /// Shows everything in this field, which is called `name`.
    fn show(&self, name: &str, visitor: &mut Visitor<'_>);
}

impl<M: Module> Field for M {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.child(name, self);
    }
}

impl Field for Tensor {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.parameter(name, self);
    }
}

impl Field for Mode {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.mode(name, self);
    }
}

impl<F: Field> Field for Option<F> {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        if let Some(field) = self {
            field.show(name, visitor);
        }
    }
}

impl<F: Field> Field for [F] {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.at(name, |v| {
            for (k, field) in self.iter().enumerate() {
                field.show(&k.to_string(), v);
            }
        });
    }
}

impl<F: Field> Field for Vec<F> {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        self.as_slice().show(name, visitor);
    }
}

impl<F: Field, const N: usize> Field for [F; N] {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        self.as_slice().show(name, visitor);
    }
}

impl<A: Field, B: Field> Field for (A, B) {
    fn show(&self, name: &str, visitor: &mut Visitor<'_>) {
        visitor.at(name, |v| {
            self.0.show("0", v);
            self.1.show("1", v);
        });
    }
}

/// Plain values.
macro_rules! nothing_to_show {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            fn show(&self, _: &str, _: &mut Visitor<'_>) {}
        }
    )*};
}
nothing_to_show!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize,
    f32,
    f64,
    String,
    &'static str,
    crate::dtype::DType,
    crate::device::Device,
    crate::shape::Shape
);
