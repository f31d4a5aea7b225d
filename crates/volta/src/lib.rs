//! Deep learning in pure Rust: lazy tensors, autograd and fused kernels.
//!
//! Calling an op checks shapes at once and records a node. Reading a value, or an optimizer's step, turns what
//! is pending into a *plan*: few, fused kernels and one memory layout. A plan is cached under the structure of
//! the graph, so the second step only replays it.
//!
//! The layers, each using only those above it (crates/testing/tests/repository/layers.rs holds that):
//!
//! | layer | holds |
//! |---|---|
//! | `error` `call` `dtype` `shape` `device` `environment` | plain data |
//! | `op` | the table of primitives |
//! | `graph` | recorded nodes |
//! | `plan` | fusion, views, memory; the trait of executors |
//! | `telemetry` | counters, profiles, traces |
//! | `cpu` `gpu` | two executors of plans |
//! | `engine` | captures, compiles, caches and runs plans |
//! | `tensor` | what users hold |
//! | `autograd` | gradients as more nodes, by a table of derivatives |
//! | `functional` | losses |
//! | `state` | what is saved |
//! | `nn` `optim` | layers; optimizers |
//! | `io` | files |
//! | `data` | datasets and loaders |
//! | `text` | tokenizers |
//! | `parallel` | several devices or processes at once |
//! | `models` `train` | whole networks; the training loop |
//!
//! ```
//! use volta::Tensor;
//!
//! let x = Tensor::vector(&[1.0, 2.0, 3.0]).requires_grad(true);
//! (&x * &x).sum().backward();
//! assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0, 4.0, 6.0]);
//! ```

// `#[derive(Module)]` names this crate by its name, here too.
extern crate self as volta;

mod autograd;
pub mod data;
mod default_device;
mod device;
mod engine;
pub mod environment;
mod functional;
#[cfg(feature = "gpu")]
pub mod gpu;
mod graph;
pub mod io;
pub mod models;
pub mod nn;
pub mod optim;
pub mod parallel;
mod state;
#[cfg(target_arch = "wasm32")]
pub mod tab;
mod telemetry;
mod tensor;
pub mod text;
pub mod train;

// What is below tensors, under the names it has here.
use volta_ir::{
    call, clock, dtype, error, interrupt, op, plan, printable, random, regular_file, shape, wait,
};

pub use autograd::{
    BackwardOptions, Function, apply, checkpoint, enable_grad, grad, is_grad_enabled, no_grad,
    set_grad_enabled, try_apply, try_checkpoint, try_grad,
};
pub use data::{DataLoader, Dataset};
pub use default_device::{default_device, set_default_device, set_thread_device, with_device};
pub use device::Device;
pub use dtype::{DType, Element, Scalar};
#[doc(hidden)]
pub use engine::with_last_plan;
pub use engine::{
    guards_enabled, last_plan, memory_limit, plan_only, set_guards, set_memory_limit, synchronize,
    synchronize_async, with_fusion,
};
pub use error::{Error, ErrorKind, Result};
pub use functional::{
    BceOptions, CosineEmbeddingOptions, CrossEntropyOptions, KlDivOptions, LinearCrossEntropyOptions,
    NllOptions, Reduction, TripletMarginOptions, bce_loss, bce_loss_with, bce_with_logits,
    bce_with_logits_with, cosine_embedding_loss, cosine_embedding_loss_with, cross_entropy,
    cross_entropy_with, huber_loss, huber_loss_with, kl_div, kl_div_with, l1_loss, l1_loss_with,
    linear_cross_entropy, linear_cross_entropy_with, mse_loss, mse_loss_with, nll_loss, nll_loss_with,
    smooth_l1_loss, smooth_l1_loss_with, triplet_margin_loss, triplet_margin_loss_with,
};
pub use functional::{
    try_bce_loss, try_bce_loss_with, try_bce_with_logits, try_bce_with_logits_with,
    try_cosine_embedding_loss, try_cosine_embedding_loss_with, try_cross_entropy, try_cross_entropy_with,
    try_huber_loss, try_huber_loss_with, try_kl_div, try_kl_div_with, try_l1_loss, try_l1_loss_with,
    try_linear_cross_entropy, try_linear_cross_entropy_with, try_mse_loss, try_mse_loss_with, try_nll_loss,
    try_nll_loss_with, try_smooth_l1_loss, try_smooth_l1_loss_with, try_triplet_margin_loss,
    try_triplet_margin_loss_with,
};
pub use half::{bf16, f16};
pub use interrupt::interruptible;
pub use io::{Checkpoint, NameMap, Weights};
#[cfg(not(target_arch = "wasm32"))]
pub use io::{CheckpointFolder, inspect, load, load_safetensors, save, save_safetensors};
pub use nn::{
    AdaptiveAvgPool2d, AttentionMask, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, ConvTranspose2d,
    Dropout, ELU, Embedding, FeedForwardActivation, Flatten, GELU, GELUTanh, GRU, GRUCell, GroupNorm,
    Identity, KvCache, LSTM, LSTMCell, LayerNorm, LeakyReLU, Linear, LogSoftmax, MaxPool2d, Mish, Module,
    MultiHeadAttention, MultiHeadOptions, PixelShuffle, QuantizedLinear, RMSNorm, RNN, RNNCell, ReLU,
    RecurrentOptions, Rotary, Sequential, SiLU, Sigmoid, Softmax, Tanh, TransformerDecoderLayer,
    TransformerEncoderLayer, TransformerOptions, Unflatten, Upsample,
};
pub use op::quantized::BlockFormat;
pub use optim::{
    Adagrad, Adam, AdamW, Ema, GradScaler, Lion, Muon, Optimizer, RMSprop, SGD, Scheduler, clip_grad_norm,
    clip_grad_value, try_clip_grad_norm, try_clip_grad_value,
};
pub use plan::limit::MemoryFit;
pub use plan::report::{KernelReport, PlanReport};
pub use shape::{Dims, MAX_RANK, Shape};
pub use state::{State, StateDict, Stateful, Value};
#[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub use telemetry::plans_of;
pub use telemetry::{
    Counters, KernelTime, OpReport, OpTime, Peak, Profile, Profiler, counters, profile, reset_peak,
};
pub use tensor::{
    AttentionOptions, AutocastTypes, ConvOptions, HostMemory, Interpolation, Operand, PoolOptions,
    QuantizedMatrix, Range, RngState, Tensor, assume_computed, autocast, autocast_types, manual_seed,
    measure_peak, realize_all, try_realize_all, try_set_autocast,
};
#[doc(hidden)]
pub use tensor::{Recorded, recorded};
pub use volta_cpu::{set_threads, try_set_threads};

/// A second name of [`Tensor`].
pub type RawTensor = Tensor;

/// The README's code runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
