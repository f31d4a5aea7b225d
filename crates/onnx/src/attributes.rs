//! Attributes that nobody would look at: a file that has them means something else than what would be computed.

use crate::model::subgraphs;
use crate::protobuf::{Attribute, GraphProto, NodeProto};
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

/// An operator a line, with the attributes that the standard gives it in any of its versions: `scripts/make-onnx-attributes` writes it.
const STANDARD: &str = include_str!("attributes.txt");

/// Attributes of the standard that are not read, with the numbers that say what is computed anyway. An axis of these operators is where
/// versions before 7 begin to broadcast. Others that are not read change nothing: seeds of random numbers, sizes that weights have, too,
/// and hints about memory and precision.
const UNREAD: &[(&str, &str, &[i64])] = &[
    ("Add", "axis", &[]),
    ("And", "axis", &[]),
    ("BatchNormalization", "spatial", &[1]),
    ("DequantizeLinear", "output_dtype", &[0, 1]),
    ("Div", "axis", &[]),
    ("Equal", "axis", &[]),
    ("Greater", "axis", &[]),
    ("Less", "axis", &[]),
    ("Mul", "axis", &[]),
    ("Or", "axis", &[]),
    ("Pow", "axis", &[]),
    ("QuantizeLinear", "precision", &[0, 1]),
    ("Scan", "directions", &[]),
    ("Sub", "axis", &[]),
    ("Xor", "axis", &[]),
];

/// Attributes of a graph's nodes, and of those inside of it, that Volta does not know.
pub(crate) fn unknown(graph: &GraphProto, found: &mut BTreeSet<String>) {
    for node in &graph.nodes {
        let names = node.attributes.iter().filter(|a| !is_known(node, &a.name, &a.value));
        found.extend(names.map(|a| format!("{}.{}", node.op, a.name)));
        subgraphs(node).for_each(|inner| unknown(inner, found));
    }
}

fn is_known(node: &NodeProto, name: &str, value: &Attribute) -> bool {
    static TABLE: OnceLock<HashMap<&'static str, Vec<&'static str>>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let entry = |line: &'static str| {
            let mut words = line.split(' ');
            Some((words.next()?, words.collect()))
        };
        STANDARD.lines().filter_map(entry).collect()
    });
    let is_standard = table.get(node.op.as_str()).is_some_and(|names| names.contains(&name));
    let unread = UNREAD.iter().find(|row| (row.0, row.1) == (node.op.as_str(), name));
    is_standard && unread.is_none_or(|row| matches!(value, Attribute::Int(x) if row.2.contains(x)))
}
