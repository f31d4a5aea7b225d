//! Moving tensors between devices, gradients included: over the host's memory, in pieces of which some are read while others are written.
//! Only the device that is read from is waited for, and only for what is read; another one goes on with what it has to do.

use super::Tensor;
use super::read::{storage_of, while_reading};
use super::record::require;
use crate::autograd;
use crate::autograd::{CustomGradient, custom_op};
use crate::call::Call;
use crate::device::Device;
use crate::engine;
use crate::error::Result;
use crate::graph::{Node, NodeSpec, Storage};
use crate::plan::executor::{Reading, WHOLE_WORDS};
use crate::wait::wait_for;
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

/// The most bytes of a piece of a tensor on its way. It lies in the processor's cache when it is written after it was read.
const PIECE_BYTES: usize = 4 << 20;

/// Pieces that are read ahead of the one that is written.
const MAX_PIECES_AHEAD: usize = 16;

/// Bytes of them.
const MAX_BYTES_AHEAD: usize = 32 << 20;

impl Tensor {
    /// The same value on another device; a tensor that is there already is returned as it is. Gradients flow back.
    #[track_caller]
    pub fn to_device(&self, device: Device) -> Tensor {
        self.try_to_device(device).unwrap_or_else(|e| e.raise())
    }

    /// [`to_device`](Self::to_device) that returns its error.
    #[track_caller]
    pub fn try_to_device(&self, device: Device) -> Result<Tensor> {
        wait_for(std::pin::pin!(self.to_device_async(device)))
    }

    /// [`to_device`](Self::to_device) as a future, as [`to_vec_async`](Self::to_vec_async) is: in a browser the only way to take
    /// values from a GPU.
    #[track_caller]
    pub fn to_device_async(&self, device: Device) -> impl Future<Output = Result<Tensor>> + use<> {
        let _call = Call::enter("to_device");
        let tensor = self.clone();
        let is_tracked = self.is_tracked() && autograd::is_enabled();
        let moved = (self.device() != device).then(|| Copying::begin(vec![(self.node(), vec![device])]));
        async move {
            let Some(moved) = moved else { return Ok(tensor) };
            let node = moved?.finish().await?.remove(0).remove(0);
            if !is_tracked {
                return Ok(Tensor::variable_of(node));
            }
            let way_back: Arc<dyn CustomGradient> = Arc::new(Move { from: tensor.device() });
            let (op, shape, dtype) = (custom_op(way_back), node.shape, node.dtype);
            let sources = [node, tensor.node()].into_iter().collect();
            let moved = NodeSpec { op, sources, shape, dtype, device, tracked: true };
            Ok(Tensor::from_node(Node::record(moved)))
        }
    }
}

/// The gradient of a move goes back to where the tensor came from.
struct Move {
    from: Device,
}

impl CustomGradient for Move {
    fn gradients(&self, _: &[Tensor], _: &Tensor, gradient: &Tensor) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(gradient.try_to_device(self.from)?)])
    }
}

/// The same values on other devices, cut from the tape, all at once: while one is written, the next are read. What is on its device
/// already stays as it is.
pub(crate) fn copied_to<'t>(tensors: impl IntoIterator<Item = (&'t Tensor, Device)>) -> Result<Vec<Tensor>> {
    let wanted: Vec<(Arc<Node>, Device)> =
        tensors.into_iter().map(|(t, device)| (t.node(), device)).collect();
    let moving = wanted.iter().filter(|(node, device)| node.device != *device);
    let moving = moving.map(|(node, device)| (node.clone(), vec![*device])).collect();
    let mut moved = wait_for(std::pin::pin!(Copying::begin(moving)?.finish()))?.into_iter().flatten();
    let each = wanted.into_iter().map(|(node, device)| match node.device == device {
        true => node,
        false => moved.next().expect("each that moves"),
    });
    Ok(each.map(Tensor::from_node).collect())
}

/// The same values on each of several other devices: read once, and written to all.
pub(crate) fn broadcast(tensors: &[Tensor], devices: &[Device]) -> Result<Vec<Vec<Arc<Node>>>> {
    let values = tensors.iter().map(|tensor| (tensor.node(), devices.to_vec())).collect();
    wait_for(std::pin::pin!(Copying::begin(values)?.finish()))
}

/// Values on their way to other devices.
struct Copying {
    ways: Vec<Way>,
    /// What is still to be read: pieces, in the order in which they are written.
    pieces: VecDeque<(usize, Range<usize>)>,
    /// What is being read.
    reading: VecDeque<(usize, Range<usize>, Reading)>,
    bytes_ahead: usize,
}

/// A value on its way.
struct Way {
    node: Arc<Node>,
    from: Storage,
    /// Where it goes, and the memory that it has there.
    to: Vec<(Device, Option<Storage>)>,
}

impl Copying {
    /// Computes what is to be moved, and starts to read it.
    fn begin(values: Vec<(Arc<Node>, Vec<Device>)>) -> Result<Copying> {
        for (node, devices) in &values {
            devices.iter().try_for_each(|device| require(*device, node.dtype))?;
        }
        let pending: Vec<&Arc<Node>> =
            values.iter().map(|(node, _)| node).filter(|node| !node.is_realized()).collect();
        if !pending.is_empty() {
            engine::submit(engine::Reason::Read(&pending))?;
        }
        let way = |(node, devices): (Arc<Node>, Vec<Device>)| -> Result<Way> {
            let to = devices.into_iter().map(|device| (device, None)).collect();
            Ok(Way { from: storage_of(&node)?, node, to })
        };
        let ways = values.into_iter().map(way).collect::<Result<Vec<_>>>()?;
        let pieces_of = |(k, way): (usize, &Way)| {
            let (count, size) = (way.node.shape.numel(), way.node.dtype.size());
            let each = PIECE_BYTES / size / WHOLE_WORDS * WHOLE_WORDS;
            let pieces = count.div_ceil(each).max(1);
            (0..pieces).map(move |p| (k, p * each..count.min((p + 1) * each)))
        };
        let pieces = ways.iter().enumerate().flat_map(pieces_of).collect();
        let mut copying = Copying { ways, pieces, reading: VecDeque::new(), bytes_ahead: 0 };
        copying.read_ahead()?;
        Ok(copying)
    }

    /// Reads as much ahead as may be.
    fn read_ahead(&mut self) -> Result<()> {
        while self.reading.len() < MAX_PIECES_AHEAD
            && (self.bytes_ahead < MAX_BYTES_AHEAD || self.reading.is_empty())
            && let Some((k, piece)) = self.pieces.pop_front()
        {
            let Way { node, from, .. } = &self.ways[k];
            self.bytes_ahead += piece.len() * node.dtype.size();
            let bytes = engine::executor(node.device)?.read(from.clone(), node.dtype, piece.clone());
            self.reading.push_back((k, piece, bytes));
        }
        Ok(())
    }

    /// The values where they were to come: for each, one on each of its devices.
    async fn finish(mut self) -> Result<Vec<Vec<Arc<Node>>>> {
        while let Some((k, piece, bytes)) = self.reading.pop_front() {
            let (dtype, shape) = (self.ways[k].node.dtype, self.ways[k].node.shape);
            let bytes = bytes.await.map_err(|error| while_reading(error, dtype, shape))?;
            self.bytes_ahead -= bytes.len();
            self.read_ahead()?;
            for (device, memory) in &mut self.ways[k].to {
                let executor = engine::executor(*device)?;
                if piece.len() == shape.numel() {
                    *memory = Some(executor.upload(dtype, &bytes)?);
                    continue;
                }
                let to = match memory {
                    Some(to) => to,
                    None => memory.insert(executor.allocate(dtype, shape.numel())?),
                };
                executor.write(to, dtype, piece.start, &bytes)?;
            }
        }
        let arrived = |Way { node, to, .. }: Way| {
            let there = |(device, memory): (Device, Option<Storage>)| {
                Node::realized(node.shape, node.dtype, device, memory.expect("every value has a piece"))
            };
            to.into_iter().map(there).collect()
        };
        Ok(self.ways.into_iter().map(arrived).collect())
    }
}
