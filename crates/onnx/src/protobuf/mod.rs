//! A reader and writer of ONNX's files: `wire` knows Protocol Buffers, `messages` what ONNX says with them.

mod messages;
mod wire;

pub use messages::{
    Attribute, AttributeProto, Extent, GraphProto, ModelProto, NodeProto, TensorProto, ValueProto,
};
pub use wire::Chunk;
