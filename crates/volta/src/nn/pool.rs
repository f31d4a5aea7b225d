//! Pooling layers.

use super::call::{forward, layer};
use super::pair::fmt_pair;
use super::{Module, Pair};
use crate::error::Result;
use crate::tensor::{PoolOptions, Tensor};

/// Layers that move a window over images.
macro_rules! pools {
    ($($(#[$meta:meta])* $name:ident => $method:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            /// Height and width of the window.
            pub kernel: [usize; 2],
            /// How it moves.
            pub options: PoolOptions,
        }

        impl $name {
            /// A window that moves by `stride`, over an image with `padding` on every side. Sizes are one number for
            /// both axes, or one each.
            pub fn new(
                kernel: impl Into<Pair>,
                stride: impl Into<Pair>,
                padding: impl Into<Pair>,
            ) -> $name {
                let (stride, padding) = (Some(stride.into().0), padding.into().0);
                $name::with_options(kernel, PoolOptions { stride, padding, ..PoolOptions::default() })
            }

            /// With all options of pooling; without a stride, windows stand side by side.
            pub fn with_options(kernel: impl Into<Pair>, options: PoolOptions) -> $name {
                $name { kernel: kernel.into().0, options }
            }
        }

        impl Module for $name {
            forward!();

            #[track_caller]
            fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
                layer(self, || x.$method(self.kernel, self.options))
            }

            fn describe(&self) -> String {
                let stride = self.options.stride.unwrap_or(self.kernel);
                let padding = match self.options.padding {
                    [0, 0] => String::new(),
                    padding => format!(", padding {}", fmt_pair(padding)),
                };
                format!("kernel {}, stride {}{padding}", fmt_pair(self.kernel), fmt_pair(stride))
            }
        }
    )*};
}

pools! {
    /// The largest element of every window of (batch, channels, height, width), or the same without the batch.
    MaxPool2d => try_max_pool2d;
    /// The mean of every window of (batch, channels, height, width), or the same without the batch.
    AvgPool2d => try_avg_pool2d;
}

/// The means of images cut into as many parts as the result has pixels.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveAvgPool2d {
    /// Height and width of the result.
    pub size: [usize; 2],
}

impl AdaptiveAvgPool2d {
    /// Images of this size, whatever they were before.
    pub fn new(size: impl Into<Pair>) -> AdaptiveAvgPool2d {
        AdaptiveAvgPool2d { size: size.into().0 }
    }
}

impl Module for AdaptiveAvgPool2d {
    forward!();

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || x.try_adaptive_avg_pool2d(self.size))
    }

    fn describe(&self) -> String {
        fmt_pair(self.size)
    }
}
