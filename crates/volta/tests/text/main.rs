//! Text through the public face: tokenizers, corpora and the sampler.

mod corpora;
mod sampling;
mod tokenizers;

volta_testing::main!();
