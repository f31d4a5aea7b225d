//! `#[op]`: the form of an op that panics, made from the one that returns its error.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::quote;

/// What a function is made of.
struct Parts {
    /// Its documentation and other attributes.
    attributes: TokenStream,
    /// The name, which begins with `try_`.
    name: Ident,
    generics: TokenStream,
    arguments: Group,
    /// The type inside of `Result<…>`.
    result: TokenStream,
    body: Group,
}

pub(crate) fn expand(function: TokenStream) -> Result<TokenStream, String> {
    let Parts { attributes, name, generics, arguments, result, body } = parse(function)?;
    let text = name.to_string();
    let plain = text
        .strip_prefix("try_")
        .ok_or_else(|| format!("#[op] stands before a function called try_…, not {text}"))?;
    let short = Ident::new(plain, Span::call_site());
    let (is_method, names) = argument_names(arguments.stream())?;
    let inputs = arguments.stream();
    let call = if is_method { quote!(self.#name(#(#names),*)) } else { quote!(#name(#(#names),*)) };
    let link = if is_method { format!("[`{plain}`](Self::{plain})") } else { format!("[`{plain}`]") };
    let fallible = format!("{link} that returns its error.");
    Ok(quote! {
        #attributes
        #[track_caller]
        pub fn #short #generics (#inputs) -> #result {
            match #call {
                Ok(value) => value,
                Err(error) => error.raise(),
            }
        }

        #[doc = #fallible]
        #[track_caller]
        pub fn #name #generics (#inputs) -> crate::Result<#result> {
            crate::tensor::record::run_op(#plain, move || #body)
        }
    })
}

fn parse(function: TokenStream) -> Result<Parts, String> {
    let mut tokens = function.into_iter();
    let mut attributes = TokenStream::new();
    loop {
        match tokens.next().ok_or("#[op] stands before a function")? {
            TokenTree::Ident(word) if word == "pub" => {}
            TokenTree::Ident(word) if word == "fn" => break,
            token => attributes.extend([token]),
        }
    }
    let Some(TokenTree::Ident(name)) = tokens.next() else { return Err("a function has a name".into()) };
    let mut generics = TokenStream::new();
    let arguments = loop {
        match tokens.next() {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => break group,
            Some(token) => generics.extend([token]),
            None => return Err(format!("{name} has no arguments")),
        }
    };
    let mut rest: Vec<TokenTree> = tokens.collect();
    let Some(TokenTree::Group(body)) = rest.pop() else { return Err(format!("{name} has no body")) };
    // `-> Result<T>`.
    let words: Vec<String> = rest.iter().map(ToString::to_string).collect();
    if words.len() < 6
        || words[..4] != ["-", ">", "Result", "<"]
        || words.last().is_none_or(|last| last != ">")
    {
        return Err(format!("{name} returns Result<…>"));
    }
    let result = rest.drain(4..words.len() - 1).collect();
    Ok(Parts { attributes, name, generics, arguments, result, body })
}

/// Whether it is a method, and the names of the other arguments.
fn argument_names(arguments: TokenStream) -> Result<(bool, Vec<Ident>), String> {
    let (mut is_method, mut names) = (false, Vec::new());
    let (mut depth, mut begins) = (0, true);
    for token in arguments {
        match &token {
            TokenTree::Punct(punct) => match punct.as_char() {
                '<' => depth += 1,
                '>' => depth -= 1,
                ',' if depth == 0 => begins = true,
                _ => {}
            },
            TokenTree::Ident(word) if begins => {
                if word == "self" {
                    is_method = true;
                } else {
                    names.push(word.clone());
                }
                begins = false;
            }
            TokenTree::Group(_) if begins => return Err("an op's arguments have names".into()),
            _ => {}
        }
    }
    Ok((is_method, names))
}
