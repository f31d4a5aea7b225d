//! Summaries show what every layer gives, also those without fields, which have no place of their own in memory.

use volta::nn::summary;
use volta::{GELU, Linear, Module, ReLU, Sequential, Tensor};
use volta_testing::test;

/// The lines of a summary as name and output.
fn outputs(model: &dyn Module, width: usize) -> Vec<(String, String)> {
    let text = summary(model, Some(&Tensor::zeros([3, width]))).unwrap().to_string();
    let lines = text.lines().skip(2).take_while(|line| line.starts_with("  "));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
            (cells[0].to_string(), cells[2].to_string())
        })
        .collect()
}

fn linear(from: usize, to: usize) -> Box<dyn Module> {
    Box::new(Linear::new(from, to, true))
}

#[track_caller]
fn assert_outputs(model: &dyn Module, width: usize, expected: &[(&str, &str)]) {
    let found = outputs(model, width);
    let found: Vec<(&str, &str)> = found.iter().map(|(n, o)| (n.as_str(), o.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn layers_without_fields_show_what_they_give() {
    let model = Sequential::new(vec![linear(4, 8), Box::new(ReLU), linear(8, 2), Box::new(ReLU)]);
    let expected = [("0", "[3, 8]"), ("1", "[3, 8]"), ("2", "[3, 2]"), ("3", "[3, 2]")];
    assert_outputs(&model, 4, &expected);

    let inner = Sequential::new(vec![linear(2, 6), Box::new(ReLU), Box::new(GELU)]);
    let outer = Sequential::new(vec![Box::new(ReLU), Box::new(inner), Box::new(ReLU), Box::new(GELU)]);
    let expected = [
        ("0", "[3, 2]"),
        ("1", "[3, 6]"),
        ("1.0", "[3, 6]"),
        ("1.1", "[3, 6]"),
        ("1.2", "[3, 6]"),
        ("2", "[3, 6]"),
        ("3", "[3, 6]"),
    ];
    assert_outputs(&outer, 2, &expected);
}

/// Runs its parts in another order than it lists them, and one of them twice.
#[derive(Module)]
struct Crossed {
    late: Sequential,
    early: Sequential,
    boxed: Box<dyn Module>,
    unused: Box<dyn Module>,
}

impl Crossed {
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.early.forward(&self.early.forward(x));
        self.boxed.forward(&self.late.forward(&x))
    }
}

#[test]
fn layers_in_boxes_are_known_by_their_box_whatever_the_order() {
    let model = Crossed {
        late: Sequential::new(vec![linear(4, 7), Box::new(ReLU)]),
        early: Sequential::new(vec![linear(4, 4), Box::new(ReLU)]),
        boxed: Box::new(ReLU),
        unused: Box::new(ReLU),
    };
    let expected = [
        ("late", "[3, 7]"),
        ("late.0", "[3, 7]"),
        ("late.1", "[3, 7]"),
        ("early", "[3, 4]"),
        ("early.0", "[3, 4]"),
        ("early.1", "[3, 4]"),
        ("boxed", "[3, 7]"),
        ("unused", "-"),
    ];
    assert_outputs(&model, 4, &expected);
}

#[derive(Module)]
struct Net {
    first: Linear,
    act: ReLU,
    second: Linear,
    again: ReLU,
    other: GELU,
}

impl Net {
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.act.forward(&self.first.forward(x));
        self.other.forward(&self.again.forward(&self.second.forward(&x)))
    }
}

#[test]
fn layers_without_fields_in_a_struct_are_told_apart_by_their_order() {
    let net = || Net {
        first: Linear::new(4, 5, true),
        act: ReLU,
        second: Linear::new(5, 4, true),
        again: ReLU,
        other: GELU,
    };
    let expected = [
        ("first", "[3, 5]"),
        ("act", "[3, 5]"),
        ("second", "[3, 4]"),
        ("again", "[3, 4]"),
        ("other", "[3, 4]"),
    ];
    assert_outputs(&net(), 4, &expected);

    // Structs of one's own show their output too where a box holds them.
    let model = Sequential::new(vec![Box::new(net()), Box::new(net())]);
    let found = outputs(&model, 4);
    assert_eq!(found[0], ("0".to_string(), "[3, 4]".to_string()));
    assert_eq!(found[8], ("1.act".to_string(), "[3, 5]".to_string()));
}

#[test]
fn an_input_that_does_not_fit_names_the_line_that_gave_it() {
    let model = Sequential::new(vec![Box::new(Linear::new(3, 2, true))]);
    let here = line!() + 1;
    let error = summary(&model, Some(&Tensor::zeros([4, 5]))).unwrap_err().to_string();
    assert!(error.contains(&format!("tests/summary_shapes.rs:{here}")), "{error}");
}

volta_testing::main!();
