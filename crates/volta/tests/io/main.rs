//! Files: what is written comes back, files of others are read, damaged and hostile ones are refused, and a training
//! goes on after it was stopped at any moment.

mod archive;
mod checkpoint;
mod crash;
mod gguf;
mod gguf_hostile;
mod hostile;
mod names;
mod python;
mod pytorch;
mod pytorch_hostile;
mod resume;
mod safetensors;
mod scratch;

volta_testing::main!();
