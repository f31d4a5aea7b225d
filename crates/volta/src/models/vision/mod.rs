//! Networks that classify images. Parameters have torchvision's names and layouts, so that its weights load with [`load`](crate::load).
//!
//! `resnet`, `mobilenet` and `vit` are a family each; `conv_norm` is the part that the first two are made of.

mod conv_norm;
mod mobilenet;
mod resnet;
mod vit;

pub use mobilenet::{MobileNetV2, MobileNetV2Options, MobileNetV3, MobileNetV3Options};
pub use resnet::{ResNet, ResNetOptions};
pub use vit::{VisionHeads, VisionTransformer, VisionTransformerOptions};
