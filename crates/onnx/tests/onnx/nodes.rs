//! Node tests of the standard, one an operator, and networks that onnxruntime computed.

use super::cases_of;
use volta_onnx::operators;
use volta_testing::test;

/// What docs/onnx.md lists as failing, and why.
fn is_listed(name: &str) -> bool {
    let page = include_str!("../../../../docs/onnx.md");
    let patterns = page.split('`').filter(|part| part.starts_with("test_"));
    patterns.into_iter().any(|pattern| match pattern.split_once('*') {
        Some((head, tail)) => name.starts_with(head) && name.ends_with(tail),
        None => name == pattern,
    })
}

#[test(needs(f64))]
fn operators_compute_what_the_standard_says() {
    let cases = cases_of("nodes.bin");
    let checked = cases.iter().map(|(name, case)| (name, case.check()));
    let wrong: Vec<_> = checked.filter(|(name, found)| found.is_err() && !is_listed(name)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(cases.len() > 80, "{}", cases.len());
}

#[test]
fn networks_compute_what_onnxruntime_does() {
    for (name, case) in cases_of("networks.bin") {
        case.check().unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    }
}

#[test]
fn no_operator_stands_in_the_table_twice() {
    let names = operators();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}
