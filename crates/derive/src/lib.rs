//! `#[derive(Module)]`: a struct of layers is a module. And what Volta itself needs of the kind.

mod op;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Field, Fields, Result, parse_macro_input};

/// Makes a struct of layers, tensors and plain values a module. Its `forward` is the struct's own method
/// `fn forward(&self, x: &Tensor) -> Tensor`.
///
/// - `#[module(no_forward)]` on the struct: it has no such method; calling it through `Module` panics.
/// - `#[module(buffer)]` on a tensor, or an option or list of tensors: they are kept and saved but not trained.
/// - `#[module(skip)]` on a field: it is left out.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implement(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// For Volta's own ops: makes the form that panics at the caller from the one that returns its error. It gets the documentation; an
/// op's body runs under its name, which errors and profiles tell.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn op(_: proc_macro::TokenStream, function: proc_macro::TokenStream) -> proc_macro::TokenStream {
    match op::expand(function.into()) {
        Ok(both) => both.into(),
        Err(message) => quote!(compile_error!(#message);).into(),
    }
}

/// Which of the words in `#[module(…)]` are there; any other word is an error.
fn marks(attributes: &[syn::Attribute], known: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| {
            match meta.path.get_ident().map(ToString::to_string).filter(|word| known.contains(&word.as_str()))
            {
                Some(word) => found.push(word),
                None => return Err(meta.error(format!("expected one of: {}", known.join(", ")))),
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The line that shows a field, if it has something to show.
fn show(index: usize, field: &Field) -> Result<Option<TokenStream>> {
    let marks = marks(&field.attrs, &["buffer", "skip"])?;
    let (name, member) = match &field.ident {
        Some(ident) => (ident.to_string().trim_start_matches("r#").to_string(), quote!(#ident)),
        None => {
            let place = syn::Index::from(index);
            (index.to_string(), quote!(#place))
        }
    };
    Ok(match marks.first().map(String::as_str) {
        Some("skip") => None,
        Some(_) => Some(quote!(visitor.buffer_field(#name, &self.#member);)),
        None => Some(quote!(visitor.field(#name, &self.#member);)),
    })
}

fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only a struct can derive Module"));
    };
    let fields: Vec<&Field> = match &data.fields {
        Fields::Named(fields) => fields.named.iter().collect(),
        Fields::Unnamed(fields) => fields.unnamed.iter().collect(),
        Fields::Unit => Vec::new(),
    };
    let mut shown = Vec::new();
    for (k, field) in fields.into_iter().enumerate() {
        shown.extend(show(k, field)?);
    }
    let name = &input.ident;
    let forward = if marks(&input.attrs, &["no_forward"])?.is_empty() {
        // The struct's own method comes before the trait's; without one this would call itself.
        quote!(
            #[deny(unconditional_recursion)]
            #[track_caller]
            fn forward(&self, x: &::volta::Tensor) -> ::volta::Tensor {
                self.forward(x)
            }
        )
    } else {
        let message = format!("{name} has no forward of one tensor: call its own methods");
        quote!(
            #[track_caller]
            fn forward(&self, _: &::volta::Tensor) -> ::volta::Tensor {
                ::std::panic!(#message)
            }
        )
    };
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    Ok(quote! {
        impl #generics ::volta::Module for #name #arguments #conditions {
            #forward

            fn visit(&self, visitor: &mut ::volta::nn::Visitor<'_>) {
                let _ = &visitor;
                #(#shown)*
            }
        }
    })
}
