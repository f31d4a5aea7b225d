//! Layers and losses against plain loops in f64, against numbers that PyTorch gave, and their misuse. With
//! `VOLTA_DEVICE=gpu` the same in f32 on a GPU.

mod array;
mod driver;

mod activations;
mod attention;
mod batch_norm;
mod convolution;
mod generation;
mod images;
mod linear;
mod losses;
mod misuse;
mod norms;
mod recurrent;
mod tokens;
mod torch;
mod transformer;

volta_testing::main!();
