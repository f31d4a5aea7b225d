//! The scalar engine of `micrograd_rs`, without Python.

#[expect(dead_code, reason = "the bindings use more of it than its tests")]
#[path = "../src/micrograd/engine/mod.rs"]
mod engine;

use engine::{Arena, Fault, Neuron, NodeId, Op, Operand};

const BINARY: [Op; 5] = [Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Pow];
const UNARY: [Op; 5] = [Op::Neg, Op::Relu, Op::Tanh, Op::Exp, Op::Log];

#[test]
fn slopes_are_those_of_the_values() {
    let h = 1e-6;
    let value = |op: Op, a: f64, b: f64| op.value(a, b).unwrap();
    for op in BINARY.into_iter().chain(UNARY) {
        for (a, b) in [(0.7, 1.9), (2.3, -1.2), (1.1, 0.4)] {
            let (to_a, to_b) = op.slopes(a, b, value(op, a, b));
            let slope_a = (value(op, a + h, b) - value(op, a - h, b)) / (2.0 * h);
            let slope_b = (value(op, a, b + h) - value(op, a, b - h)) / (2.0 * h);
            assert!((to_a - slope_a).abs() < 1e-7, "{op:?}({a}, {b}) by a: {to_a} and {slope_a}");
            assert!((to_b - slope_b).abs() < 1e-7, "{op:?}({a}, {b}) by b: {to_b} and {slope_b}");
        }
    }
}

#[test]
fn what_has_no_value_is_a_fault_and_leaves_nothing_behind() {
    let mut arena = Arena::new();
    let zero = arena.leaf(0.0).unwrap();
    let node = Operand::Node(zero);
    assert_eq!(arena.binary(Op::Div, Operand::Number(1.0), node), Err(Fault::ZeroDivision));
    assert_eq!(arena.binary(Op::Pow, node, Operand::Number(-1.0)), Err(Fault::ZeroDivision));
    assert!(matches!(arena.unary(Op::Log, zero), Err(Fault::Domain(_))));
    assert!(matches!(
        arena.binary(Op::Pow, Operand::Number(-2.0), Operand::Number(0.5)),
        Err(Fault::Domain(_))
    ));
    assert!(matches!(
        arena.binary(Op::Pow, Operand::Number(1e200), Operand::Number(2.0)),
        Err(Fault::Overflow(_))
    ));
    assert_eq!(arena.live(), 1);
}

#[test]
fn a_node_that_is_used_twice_gets_both_gradients() {
    let mut arena = Arena::new();
    let a = arena.leaf(3.0).unwrap();
    let square = arena.binary(Op::Mul, Operand::Node(a), Operand::Node(a)).unwrap();
    let sum = arena.binary(Op::Add, Operand::Node(square), Operand::Node(a)).unwrap();
    arena.backward(sum);
    assert_eq!(arena.grad(a), 7.0);
}

#[test]
fn nodes_end_with_their_last_holder_and_their_places_serve_again() {
    let mut arena = Arena::new();
    let a = arena.leaf(1.0).unwrap();
    let mut places = Vec::new();
    for _ in 0..3 {
        let b = arena.binary(Op::Add, Operand::Node(a), Operand::Number(1.0)).unwrap();
        let c = arena.unary(Op::Exp, b).unwrap();
        arena.release(b);
        assert_eq!(arena.live(), 4, "c needs b, and b the number");
        arena.release(c);
        assert_eq!(arena.live(), 1);
        places.push(c);
    }
    assert!(places.iter().all(|NodeId(place)| *place < 4));
}

#[test]
fn a_chain_of_a_million_nodes_is_differentiated_and_ended_without_recursion() {
    let mut arena = Arena::new();
    let first = arena.leaf(0.0).unwrap();
    let mut last = arena.unary(Op::Neg, first).unwrap();
    for _ in 0..1_000_000 {
        let next = arena.binary(Op::Add, Operand::Node(last), Operand::Node(first)).unwrap();
        arena.release(last);
        last = next;
    }
    arena.backward(last);
    assert_eq!(arena.grad(first), 999_999.0);
    arena.release(last);
    assert_eq!(arena.live(), 1);
}

#[test]
fn a_network_is_the_same_as_its_products_and_sums_one_by_one() {
    let mut arena = Arena::new();
    let numbers =
        |count: usize, salt: usize| (0..count).map(move |k| ((k * 7 + salt * 5) % 11) as f64 / 5.0 - 1.0);
    let mut layer = |nin: usize, nout: usize, nonlin: bool| -> Vec<Neuron> {
        (0..nout)
            .map(|k| Neuron {
                parameters: arena.list(numbers(nin + 1, k + nin).map(Operand::Number)).unwrap(),
                nonlin,
            })
            .collect()
    };
    let layers = [layer(3, 4, true), layer(4, 2, false)];
    let x: Vec<NodeId> = numbers(3, 9).map(|n| arena.leaf(n).unwrap()).collect();
    let before = arena.live();
    let outputs =
        arena.layers(layers.iter().map(Vec::as_slice), x.iter().map(|&id| Operand::Node(id))).unwrap();

    // The same, a node a product.
    let mut held = Vec::new();
    let mut h = x.clone();
    for layer in &layers {
        h = layer
            .iter()
            .map(|neuron| {
                let parameters: Vec<NodeId> = arena.members(neuron.parameters).collect();
                let (&bias, weights) = parameters.split_last().unwrap();
                let mut sum = bias;
                for (&w, &x) in weights.iter().zip(&h) {
                    let product = arena.binary(Op::Mul, Operand::Node(w), Operand::Node(x)).unwrap();
                    sum = arena.binary(Op::Add, Operand::Node(sum), Operand::Node(product)).unwrap();
                    held.extend([product, sum]);
                }
                if neuron.nonlin {
                    sum = arena.unary(Op::Relu, sum).unwrap();
                    held.push(sum);
                }
                sum
            })
            .collect();
    }
    let leaves: Vec<NodeId> = layers
        .iter()
        .flatten()
        .flat_map(|n| arena.members(n.parameters).collect::<Vec<_>>())
        .chain(x)
        .collect();
    for (output, plain) in outputs.iter().zip(&h) {
        assert_eq!(arena.data(*output), arena.data(*plain));
    }
    let mut gradients = |ends: &[NodeId]| -> Vec<f64> {
        leaves.iter().for_each(|&id| arena.set_grad(id, 0.0));
        let root = arena.binary(Op::Sub, Operand::Node(ends[0]), Operand::Node(ends[1])).unwrap();
        arena.backward(root);
        arena.release(root);
        leaves.iter().map(|&id| arena.grad(id)).collect()
    };
    let (fused, plain) = (gradients(&outputs), gradients(&h));
    assert!(fused.iter().filter(|g| **g != 0.0).count() > leaves.len() / 2, "{fused:?}");
    assert!(fused.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-12), "{fused:?} and {plain:?}");
    outputs.into_iter().chain(held).for_each(|id| arena.release(id));
    assert_eq!(arena.live(), before);
}
