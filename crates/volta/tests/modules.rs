//! Modules: names, derived ones, state, moving, switching, summaries and where errors point.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use volta::nn::{Mode, summary};
use volta::{Adam, DType, Linear, Module, ReLU, Sequential, StateDict, Tensor, manual_seed, mse_loss};
use volta_testing::test;

#[derive(Module)]
struct Block {
    first: Linear,
    second: Option<Linear>,
    scale: Tensor,
    #[module(buffer)]
    seen: Tensor,
    #[module(skip)]
    _cache: std::sync::OnceLock<()>,
    heads: usize,
    mode: Mode,
}

impl Block {
    fn new(second: bool) -> Block {
        Block {
            first: Linear::new(3, 3, true),
            second: second.then(|| Linear::new(3, 3, false)),
            scale: Tensor::ones([3]).requires_grad(true),
            seen: Tensor::zeros([1]).variable(),
            _cache: std::sync::OnceLock::new(),
            heads: 1,
            mode: Mode::default(),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        assert_eq!(self.heads, 1);
        let x = self.first.forward(x);
        let x = self.second.as_ref().map_or(x.clone(), |l| l.forward(&x));
        if self.mode.is_training() { x * &self.scale } else { x }
    }
}

#[derive(Module)]
struct Net {
    blocks: Vec<Block>,
    head: Box<dyn Module>,
    tied: Arc<Linear>,
    again: Arc<Linear>,
}

impl Net {
    fn new() -> Net {
        let tied = Arc::new(Linear::new(3, 3, false));
        Net {
            blocks: vec![Block::new(true), Block::new(false)],
            head: Box::new(Linear::new(3, 2, true)),
            tied: tied.clone(),
            again: tied,
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.blocks.iter().fold(x.clone(), |x, b| b.forward(&x));
        self.head.forward(&self.again.forward(&self.tied.forward(&x)))
    }
}

#[test]
fn names_follow_the_fields_and_shared_tensors_come_once() {
    let net = Net::new();
    let names: Vec<String> = net.named_parameters().into_iter().map(|(n, _)| n).collect();
    assert_eq!(
        names,
        [
            "blocks.0.first.weight",
            "blocks.0.first.bias",
            "blocks.0.second.weight",
            "blocks.0.scale",
            "blocks.1.first.weight",
            "blocks.1.first.bias",
            "blocks.1.scale",
            "head.weight",
            "head.bias",
            "tied.weight",
        ]
    );
    let buffers: Vec<String> = net.named_buffers().into_iter().map(|(n, _)| n).collect();
    assert_eq!(buffers, ["blocks.0.seen", "blocks.1.seen"]);
    let state = net.state_dict();
    assert_eq!(state.len(), 13);
    assert!(state.get("tied.weight").unwrap().is_same(state.get("again.weight").unwrap()));
}

#[test]
fn a_module_is_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Box<dyn Module>>();
    check::<Sequential>();
    check::<Linear>();
}

#[test]
fn evaluation_reaches_every_layer_and_back() {
    let net = Net::new();
    net.eval();
    assert!(net.blocks.iter().all(|b| !b.mode.is_training()));
    net.train();
    assert!(net.blocks.iter().all(|b| b.mode.is_training()));
}

#[test]
fn a_state_moves_from_one_module_to_another() {
    let (a, b) = (Net::new(), Net::new());
    let x = Tensor::rand([4, 3]);
    assert_ne!(a.forward(&x).to_vec::<f32>(), b.forward(&x).to_vec::<f32>());
    let report = b.load_state_dict(&a.state_dict(), true).unwrap();
    assert!(report.is_complete());
    assert_eq!(a.forward(&x).to_vec::<f32>(), b.forward(&x).to_vec::<f32>());
    // Values were taken over, not tensors.
    a.blocks[0].scale.assign(&Tensor::zeros([3]));
    assert_eq!(b.blocks[0].scale.to_vec::<f32>(), [1.0; 3]);
}

#[test]
fn what_does_not_fit_is_reported_and_changes_nothing() {
    let net = Net::new();
    let before = net.head.parameters()[0].to_vec::<f32>();
    let mut state = net.state_dict().renamed(|n| (n != "blocks.0.scale").then(|| n.to_string()));
    state.insert("head.weight", Tensor::zeros([2, 4]));
    state.insert("tail", Tensor::zeros([1]));
    let error = net.load_state_dict(&state, true).unwrap_err();
    for part in ["missing: blocks.0.scale", "unexpected: tail", "head.weight (here [2, 3], given [2, 4])"] {
        assert!(error.message().contains(part), "{error}");
    }
    assert!(net.load_state_dict(&state, false).is_err(), "a shape that differs is never passed over");
    assert_eq!(net.head.parameters()[0].to_vec::<f32>(), before);

    state.insert("head.weight", Tensor::ones([2, 3]));
    let report = net.load_state_dict(&state, false).unwrap();
    assert_eq!((report.missing, report.unexpected), (vec!["blocks.0.scale".into()], vec!["tail".into()]));
    assert_eq!(net.head.parameters()[0].to_vec::<f32>(), [1.0; 6]);
}

#[test]
fn one_name_of_a_shared_tensor_is_enough() {
    let net = Net::new();
    let state: StateDict = net.state_dict().renamed(|n| (n != "again.weight").then(|| n.to_string()));
    assert!(net.load_state_dict(&state, true).unwrap().is_complete());
}

#[test]
fn converting_a_module_keeps_the_optimizers_parameters_its_own() {
    manual_seed(3);
    let model = Linear::new(2, 1, true);
    let mut adam = Adam::new(model.parameters(), 0.05, (0.9, 0.999), 1e-8, 0.0);
    let x = Tensor::rand([16, 2]);
    let y = x.sum_dim(1, true);
    let mut step = |dtype| {
        adam.zero_grad();
        let loss = mse_loss(&model.forward(&x.to_dtype(dtype)), &y.to_dtype(dtype));
        loss.backward();
        adam.step();
        loss.item::<f64>()
    };
    let first = step(DType::F32);
    if volta::default_device().is_gpu() {
        return;
    }
    model.to_dtype(DType::F64);
    assert_eq!(model.weight.dtype(), DType::F64);
    let last = (0..200).map(|_| step(DType::F64)).last().unwrap();
    assert!(last < first * 0.1, "{first} {last}");
}

#[test]
fn frozen_parameters_do_not_collect_gradients() {
    let net = Net::new();
    net.set_requires_grad(false);
    net.blocks[1].scale.set_requires_grad(true);
    net.forward(&Tensor::rand([2, 3])).sum().backward();
    let with_gradient: Vec<String> =
        net.named_parameters().into_iter().filter(|(_, p)| p.grad().is_some()).map(|(n, _)| n).collect();
    assert_eq!(with_gradient, ["blocks.1.scale"]);
}

/// Everything that a buffer may be.
#[derive(Module)]
struct Tables {
    #[module(buffer)]
    mean: Option<Tensor>,
    #[module(buffer)]
    missing: Option<Tensor>,
    #[module(buffer)]
    levels: Vec<Tensor>,
    #[module(buffer)]
    edges: [Tensor; 2],
    #[module(buffer)]
    ends: (Tensor, Option<Tensor>),
    scale: Tensor,
}

impl Tables {
    fn forward(&self, x: &Tensor) -> Tensor {
        x * &self.scale
    }
}

#[test]
fn options_and_lists_of_tensors_are_buffers_as_they_are_parameters() {
    let table = |x: f32| Tensor::vector(&[x]).variable();
    let tables = |x: f32| Tables {
        mean: Some(table(x)),
        missing: None,
        levels: vec![table(x), table(x)],
        edges: [table(x), table(x)],
        ends: (table(x), Some(table(x))),
        scale: table(x).requires_grad(true),
    };
    let (one, two) = (tables(1.0), tables(2.0));
    let names: Vec<String> = one.named_buffers().into_iter().map(|(n, _)| n).collect();
    assert_eq!(names, ["mean", "levels.0", "levels.1", "edges.0", "edges.1", "ends.0", "ends.1"]);
    assert_eq!(one.named_parameters().len(), 1);
    assert!(one.load_state_dict(&two.state_dict(), true).unwrap().is_complete());
    assert!(one.buffers().iter().all(|b| b.to_vec::<f32>() == [2.0]));
    assert_eq!(one.forward(&Tensor::ones([1])).to_vec::<f32>(), [2.0]);
}

/// Runs `f`, which must panic, and gives the panic's message.
fn panics<T>(f: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).err().expect("a panic");
    panic.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn two_layers_of_one_name_are_refused_at_this_line() {
    let layer = || Box::new(Linear::new(2, 2, true)) as Box<dyn Module>;
    let (line, error) =
        (line!(), Sequential::try_named(vec![("fc", layer()), ("fc", layer())]).err().unwrap());
    assert!(error.message().contains("\"fc\""), "{error}");
    assert_eq!((error.op(), error.location().file(), error.location().line()), ("Sequential", file!(), line));

    // `with` names by place, and somebody may have taken that name.
    let one = || Sequential::named(vec![("1", layer())]);
    let (line, error) = (line!(), one().try_with(ReLU).err().unwrap());
    assert!(error.message().contains("\"1\""), "{error}");
    assert_eq!((error.location().file(), error.location().line()), (file!(), line));

    let (line, message) = (line!(), panics(|| Sequential::named(vec![("fc", layer()), ("fc", layer())])));
    assert!(message.contains(&format!("{}:{line}", file!())), "{message}");
    let (line, message) = (line!(), panics(|| one().with(ReLU)));
    assert!(message.contains(&format!("{}:{line}", file!())), "{message}");

    let fine = Sequential::named(vec![("0", layer())]).with(Linear::new(2, 2, true));
    assert_eq!(fine.state_dict().len(), fine.parameters().len());
}

#[test]
fn names_that_could_meet_those_of_nested_layers_are_refused_at_this_line() {
    let layer = || Box::new(Linear::new(2, 2, true)) as Box<dyn Module>;
    for (name, part) in [("", "empty name"), ("fc.0", "\"fc.0\""), (".", "a dot")] {
        let (line, error) = (line!(), Sequential::try_named(vec![(name, layer())]).err().unwrap());
        assert!(error.message().contains(part), "{error}");
        assert_eq!((error.op(), error.location().line()), ("Sequential", line));
    }
}

#[test]
fn a_summary_tells_shapes_and_counts() {
    let model = Sequential::named(vec![
        ("hidden", Box::new(Linear::new(784, 128, true)) as Box<dyn Module>),
        ("act", Box::new(ReLU)),
        ("out", Box::new(Linear::new(128, 10, false))),
    ]);
    let summary = summary(&model, Some(&Tensor::zeros([32, 784]))).unwrap();
    assert_eq!(summary.parameters, 784 * 128 + 128 + 1280);
    let text = summary.to_string();
    for part in ["hidden", "Linear(784 → 128)", "[32, 128]", "100,480", "[32, 10]", "101,760 parameters"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn an_error_inside_a_layer_names_the_op_the_layer_and_this_line() {
    let model = Sequential::new(vec![
        Box::new(Linear::new(4, 8, true)),
        Box::new(ReLU),
        Box::new(Linear::new(9, 2, true)),
    ]);
    let (line, error) = (line!(), model.try_forward(&Tensor::zeros([3, 4])).unwrap_err());
    assert_eq!(error.op(), "linear");
    assert!(error.message().contains("in layer 2, Linear"), "{error}");
    assert_eq!((error.location().file(), error.location().line()), (file!(), line));
}

volta_testing::main!();
