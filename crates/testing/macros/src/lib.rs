//! The attribute `#[test]` of Volta's tests.

use proc_macro::{TokenStream, TokenTree};

/// Marks a function as a test: `#[test]`, `#[test(needs(f64))]`, or `#[test(ignored = "run by another test")]`. What a test can
/// need are the variants of `volta_testing::Need` in lower case.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match expand(arguments, item.clone()) {
        Ok(registration) => item.into_iter().chain(registration).collect(),
        Err(message) => format!("compile_error!({message:?});").parse().expect("it is Rust"),
    }
}

fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, String> {
    let mut tokens = item.into_iter().skip_while(|token| token.to_string() != "fn");
    let (_, name) = (tokens.next(), tokens.next());
    let name = name.ok_or("#[test] stands before a function")?.to_string();
    let mut needs = String::new();
    let mut ignored = "None".to_string();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match (argument.to_string().as_str(), arguments.next()) {
            ("needs", Some(TokenTree::Group(group))) => {
                for need in group.stream().into_iter().map(|t| t.to_string()).filter(|t| t != ",") {
                    needs += &format!("::volta_testing::Need::named({need:?}),");
                }
            }
            ("ignored", Some(_)) => {
                let reason = arguments.next().ok_or("ignored = \"why\"")?;
                ignored = format!("Some({reason})");
            }
            (other, _) => return Err(format!("a test has needs(..) and ignored = \"..\", not {other}")),
        }
        // The comma.
        arguments.next();
    }
    let registration = format!(
        "const _: () = {{
            ::volta_testing::inventory::submit! {{
                ::volta_testing::Test {{
                    module: module_path!(),
                    name: {name:?},
                    needs: &[{needs}],
                    ignored: {ignored},
                    run: {name},
                }}
            }}
        }};"
    );
    registration.parse().map_err(|e| format!("{e}"))
}
