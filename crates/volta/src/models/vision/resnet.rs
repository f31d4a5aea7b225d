//! Residual networks (He et al., 2015), with the stride in the middle convolution of a bottleneck.

use super::conv_norm::conv;
use crate::call::Call;
use crate::error::{Result, bail};
use crate::nn::{BatchNorm2d, Conv2d, Linear, Module, layer};
use crate::tensor::{PoolOptions, Tensor};

/// The shape of a [`ResNet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResNetOptions {
    /// Blocks at each of four sizes of image.
    pub blocks: [usize; 4],
    /// Blocks of three convolutions, whose middle one is narrow, or of two.
    pub bottleneck: bool,
    /// Channels at the first size.
    pub width: usize,
    /// Channels of the images.
    pub channels: usize,
    /// Classes.
    pub classes: usize,
}

impl ResNetOptions {
    const fn of(blocks: [usize; 4], bottleneck: bool) -> ResNetOptions {
        ResNetOptions { blocks, bottleneck, width: 64, channels: 3, classes: 1000 }
    }

    /// ResNet-18.
    pub const fn resnet18() -> ResNetOptions {
        ResNetOptions::of([2, 2, 2, 2], false)
    }

    /// ResNet-34.
    pub const fn resnet34() -> ResNetOptions {
        ResNetOptions::of([3, 4, 6, 3], false)
    }

    /// ResNet-50.
    pub const fn resnet50() -> ResNetOptions {
        ResNetOptions::of([3, 4, 6, 3], true)
    }

    /// ResNet-101.
    pub const fn resnet101() -> ResNetOptions {
        ResNetOptions::of([3, 4, 23, 3], true)
    }

    /// ResNet-152.
    pub const fn resnet152() -> ResNetOptions {
        ResNetOptions::of([3, 8, 36, 3], true)
    }
}

/// Convolutions whose result is added to what went in.
#[derive(Module)]
struct Block {
    conv1: Conv2d,
    bn1: BatchNorm2d,
    conv2: Conv2d,
    bn2: BatchNorm2d,
    conv3: Option<Conv2d>,
    bn3: Option<BatchNorm2d>,
    downsample: Option<(Conv2d, BatchNorm2d)>,
}

impl Block {
    fn new(inputs: usize, width: usize, stride: usize, bottleneck: bool) -> Result<Block> {
        let outputs = if bottleneck { 4 * width } else { width };
        let (first, second) = if bottleneck { (1, stride) } else { (stride, 1) };
        let kernel = if bottleneck { 1 } else { 3 };
        let changes = stride != 1 || inputs != outputs;
        Ok(Block {
            conv1: conv(inputs, width, kernel, first, 1)?,
            bn1: BatchNorm2d::new(width),
            conv2: conv(width, width, 3, second, 1)?,
            bn2: BatchNorm2d::new(width),
            conv3: if bottleneck { Some(conv(width, outputs, 1, 1, 1)?) } else { None },
            bn3: bottleneck.then(|| BatchNorm2d::new(outputs)),
            downsample: if changes {
                Some((conv(inputs, outputs, 1, stride, 1)?, BatchNorm2d::new(outputs)))
            } else {
                None
            },
        })
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_pass(x).unwrap_or_else(|e| e.raise())
    }

    fn try_pass(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let mut y = self.bn1.try_forward(&self.conv1.try_forward(x)?)?.try_relu()?;
            y = self.bn2.try_forward(&self.conv2.try_forward(&y)?)?;
            if let (Some(conv3), Some(bn3)) = (&self.conv3, &self.bn3) {
                y = bn3.try_forward(&conv3.try_forward(&y.try_relu()?)?)?;
            }
            let before = match &self.downsample {
                Some((conv, norm)) => norm.try_forward(&conv.try_forward(x)?)?,
                None => x.clone(),
            };
            y.try_add(&before)?.try_relu()
        })
    }
}

/// A residual network: images of (batch, channels, height, width) in, a number for every class out.
///
/// ```
/// use volta::models::{ResNet, ResNetOptions};
/// use volta::{Linear, Module, Tensor};
///
/// let mut model = ResNet::new(ResNetOptions { width: 8, ..ResNetOptions::resnet18() });
/// // volta::load(&model, "resnet18.pth", true)?;
/// model.fc = Linear::new(model.fc.weight.size(1), 5, true); // another head, for five classes
/// assert_eq!(model.forward(&Tensor::randn([2, 3, 32, 32])).shape()[..], [2, 5]);
/// ```
#[derive(Module)]
pub struct ResNet {
    conv1: Conv2d,
    bn1: BatchNorm2d,
    layer1: Vec<Block>,
    layer2: Vec<Block>,
    layer3: Vec<Block>,
    layer4: Vec<Block>,
    /// From the mean of every channel to a number for every class.
    pub fc: Linear,
}

impl ResNet {
    /// With random first values.
    #[track_caller]
    pub fn new(options: ResNetOptions) -> ResNet {
        ResNet::try_new(options).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(options: ResNetOptions) -> Result<ResNet> {
        let _call = Call::enter("ResNet");
        let ResNetOptions { blocks, bottleneck, width, channels, classes } = options;
        if blocks.contains(&0) || width == 0 || channels == 0 || classes == 0 {
            bail!(Argument, "{options:?}: every number must be at least 1");
        }
        let conv1 = conv(channels, width, 7, 2, 1)?;
        let mut inputs = width;
        let mut stage = |k: usize| {
            let (width, stride) = (width << k, if k == 0 { 1 } else { 2 });
            let mut all = Vec::new();
            for place in 0..blocks[k] {
                all.push(Block::new(inputs, width, if place == 0 { stride } else { 1 }, bottleneck)?);
                inputs = if bottleneck { 4 * width } else { width };
            }
            Ok(all)
        };
        let (layer1, layer2, layer3, layer4) = (stage(0)?, stage(1)?, stage(2)?, stage(3)?);
        let fc = Linear::new(inputs, classes, true);
        Ok(ResNet { conv1, bn1: BatchNorm2d::new(width), layer1, layer2, layer3, layer4, fc })
    }

    /// What the head sees: the mean of every channel.
    #[track_caller]
    pub fn try_features(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let mut y = self.bn1.try_forward(&self.conv1.try_forward(x)?)?.try_relu()?;
            let halved = PoolOptions { stride: Some([2, 2]), padding: [1, 1], ..PoolOptions::default() };
            y = y.try_max_pool2d([3, 3], halved)?;
            for block in [&self.layer1, &self.layer2, &self.layer3, &self.layer4].into_iter().flatten() {
                y = block.try_pass(&y)?;
            }
            y.try_mean_dim([2, 3], false)
        })
    }

    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_features(x).and_then(|y| self.fc.try_forward(&y)).unwrap_or_else(|e| e.raise())
    }
}
