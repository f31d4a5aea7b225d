//! Misuse: the message names the op, what was wrong with which shapes or types, and the caller's line; the same
//! from the method that panics and the one that returns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use volta::{ConvOptions, DType, Error, ErrorKind, Range, Tensor};
use volta_testing::test;

struct Misuse {
    op: &'static str,
    kind: ErrorKind,
    text: &'static str,
    file: &'static str,
    line: u32,
    column: u32,
    panicking: Box<dyn Fn()>,
    fallible: Box<dyn Fn() -> Option<Error>>,
}

/// A row of the table: kind, message, then the call twice. The place is that of the row itself, however its
/// lines are broken.
macro_rules! misuse {
    ($kind:ident, $text:expr, $target:expr, $op:ident | $try_op:ident ($($arg:expr),* $(,)?)) => {
        Misuse {
            op: stringify!($op),
            kind: ErrorKind::$kind,
            text: $text,
            file: file!(),
            line: line!(),
            column: column!(),
            panicking: Box::new(|| {
                $target.$op($($arg),*);
            }),
            fallible: Box::new(|| $target.$try_op($($arg),*).err()),
        }
    };
    ($kind:ident, $text:expr, Tensor::$op:ident | $try_op:ident ($($arg:expr),* $(,)?)) => {
        Misuse {
            op: stringify!($op),
            kind: ErrorKind::$kind,
            text: $text,
            file: file!(),
            line: line!(),
            column: column!(),
            panicking: Box::new(|| {
                Tensor::$op($($arg),*);
            }),
            fallible: Box::new(|| Tensor::$try_op($($arg),*).err()),
        }
    };
}

mod contraction;
mod elementwise;
mod movement;
mod state;

fn f(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape)
}

fn of(shape: &[usize], dtype: DType) -> Tensor {
    Tensor::full_of(shape, 1, dtype)
}

fn bools() -> Tensor {
    of(&[2], DType::Bool)
}

fn panic_text(f: &dyn Fn()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("it must panic");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
        .unwrap_or_default()
}

fn check(table: &[Misuse]) {
    let mut wrong = vec![];
    for row in table {
        let place = format!("{}:{}:{}", row.file, row.line, row.column);
        let expected = format!("{}: {} (at {place})", row.op, row.text);
        let mut expect = |what: &str, found: String| {
            if found != expected {
                wrong.push(format!("{what}:  {found}\nexpected: {expected}"));
            }
        };
        match catch_unwind(AssertUnwindSafe(|| (row.fallible)())) {
            Ok(Some(error)) => {
                expect("returned", error.to_string());
                assert_eq!(error.kind(), row.kind, "{}", row.op);
                assert_eq!(error.op(), row.op);
                assert_eq!(
                    (error.location().file(), error.location().line()),
                    (row.file, row.line),
                    "{}",
                    row.op
                );
            }
            Ok(None) => expect("returned", "nothing".into()),
            Err(_) => expect("returned", "a panic instead of an error".into()),
        }
        expect("panicked", panic_text(&*row.panicking));
    }
    assert!(wrong.is_empty(), "{} messages differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn operators_name_the_op_and_the_line_of_the_operator() {
    let (text, line) = (panic_text(&|| drop(f(&[2]) + f(&[3]))), line!());
    assert!(text.starts_with("add: shapes [2] and [3] do not broadcast"), "{text}");
    assert!(text.contains(&format!("(at {}:{line}:", file!())), "{text}");
    let (text, line) = (panic_text(&|| drop(&f(&[2]) / &f(&[3]))), line!());
    assert!(text.starts_with("div: ") && text.contains(&format!("(at {}:{line}:", file!())), "{text}");
    let (text, line) = (panic_text(&|| drop(-bools())), line!());
    assert!(text.starts_with("neg: ") && text.contains(&format!("(at {}:{line}:", file!())), "{text}");
}

/// Numbers so large that their sum or product cannot be written down are refused like any others.
#[test]
fn extents_too_large_to_add_up_are_errors_not_overflows() {
    let most = usize::MAX;
    let wide = ConvOptions { padding: [most; 2], ..Default::default() };
    type Call<'a> = &'a dyn Fn() -> Option<Error>;
    let table: &[(&str, Call)] = &[
        ("narrow", &|| f(&[3]).try_narrow(0, most, 2).err()),
        ("pad", &|| f(&[3]).try_pad(&[(most, 1)], 0.0).err()),
        ("windows", &|| f(&[3]).try_windows(0, most, 1, 2).err()),
        ("reshape", &|| f(&[3]).try_reshape([1usize << 33, 1 << 33]).err()),
        ("expand", &|| f(&[1, 1]).try_expand([1usize << 33, 1 << 33]).err()),
        ("conv2d", &|| f(&[1, 1, 3, 3]).try_conv2d(&f(&[1, 1, 1, 1]), None, wide).err()),
    ];
    let mut wrong = vec![];
    for (name, call) in table {
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Some(error)) => assert_eq!(error.op(), *name),
            Ok(None) => wrong.push(format!("{name} took it")),
            Err(_) => wrong.push(format!("{name} panicked on its own")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(f(&[3]).slice([Range::from(0..=isize::MAX)]).shape()[..], [3], "beyond the end means the end");
}

#[test]
fn a_composed_op_names_itself_not_its_parts() {
    let error = f(&[2, 3]).try_embedding(&of(&[1], DType::Bool)).expect_err("not an integer");
    assert_eq!(error.op(), "embedding");
    let error = f(&[2]).try_layer_norm([3], None, None, 1e-5).expect_err("not the last extents");
    assert_eq!((error.op(), error.location().line()), ("layer_norm", line!() - 1));
    let error = Tensor::try_cat(&[f(&[2, 2]), f(&[2, 3])], 0).expect_err("they differ");
    assert_eq!((error.op(), error.location().line()), ("cat", line!() - 1));
}

#[test]
fn reading_names_the_shape_that_is_no_number() {
    let error = f(&[2]).try_item::<f32>().expect_err("two elements");
    let place = format!("{}:{}:", file!(), line!() - 1);
    let text =
        format!("item: only a tensor of one element is one number, and this has shape [2] (at {place}");
    assert!(error.to_string().starts_with(&text), "{error}");
    let text = panic_text(&|| assert_eq!(f(&[0]).item::<f32>(), 0.0));
    assert!(text.starts_with("item: only a tensor of one element"), "{text}");
}

#[test]
fn an_error_in_one_call_does_not_name_the_next() {
    assert!(f(&[2]).try_add(f(&[3])).is_err());
    let error = f(&[2]).try_reshape([5]).expect_err("too few elements");
    assert_eq!(error.op(), "reshape");
    drop(panic_text(&|| drop(f(&[2]).matmul(&f(&[3])))));
    let error = f(&[2]).try_narrow(0, 1, 5).expect_err("too far");
    assert_eq!(error.op(), "narrow");
}

#[test]
fn the_error_is_an_error_of_the_standard_library_and_shows_its_message() {
    let error: Box<dyn std::error::Error> = Box::new(f(&[2]).try_narrow(0, 1, 5).expect_err("too far"));
    assert_eq!(format!("{error}"), format!("{error:?}"), "unwrap prints what a reader needs");
    assert!(error.to_string().starts_with("narrow: 5 elements from 1 of axis 0 are outside shape [2] (at "));
}

volta_testing::main!();
