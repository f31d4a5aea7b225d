//! MobileNets (Sandler et al., 2018; Howard et al., 2019): narrow layers between wide ones that see each channel alone.

use super::conv_norm::{Activation, conv_norm, rounded};
use crate::call::Call;
use crate::error::{Result, bail};
use crate::nn::{BatchNorm2d, Conv2d, Dropout, Linear, Module, Sequential, layer};
use crate::tensor::Tensor;

/// The shape of a [`MobileNetV2`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MobileNetV2Options {
    /// Multiplies the channels of every layer.
    pub width: f64,
    /// Classes.
    pub classes: usize,
}

impl Default for MobileNetV2Options {
    fn default() -> Self {
        MobileNetV2Options { width: 1.0, classes: 1000 }
    }
}

/// A block; what went in is added where it has the result's shape.
struct Residual {
    /// Its name, and its layers.
    name: &'static str,
    layers: Sequential,
    adds: bool,
}

impl Module for Residual {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let y = self.layers.try_forward(x)?;
            if self.adds { x.try_add(&y) } else { Ok(y) }
        })
    }

    fn visit(&self, visitor: &mut crate::nn::Visitor<'_>) {
        visitor.child(self.name, &self.layers);
    }
}

fn check(classes: usize, width: f64) -> Result<()> {
    if classes == 0 || !(width > 0.0 && width < 100.0) {
        bail!(Argument, "{classes} classes and {width} times the width: there must be some of both");
    }
    Ok(())
}

/// A MobileNet of the second version: images of (batch, 3, height, width) in, a number for every class out.
///
/// ```
/// use volta::models::{MobileNetV2, MobileNetV2Options};
/// use volta::{Module, Tensor};
///
/// let model = MobileNetV2::new(MobileNetV2Options { width: 0.1, classes: 5 });
/// model.eval();
/// assert_eq!(model.forward(&Tensor::randn([1, 3, 32, 32])).shape()[..], [1, 5]);
/// ```
#[derive(Module)]
pub struct MobileNetV2 {
    features: Sequential,
    /// Dropout, and from the mean of every channel to a number for every class.
    pub classifier: (Dropout, Linear),
}

impl MobileNetV2 {
    /// With random first values.
    #[track_caller]
    pub fn new(options: MobileNetV2Options) -> MobileNetV2 {
        MobileNetV2::try_new(options).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(options: MobileNetV2Options) -> Result<MobileNetV2> {
        let _call = Call::enter("MobileNetV2");
        let MobileNetV2Options { width, classes } = options;
        check(classes, width)?;
        let (norm, relu6) = (BatchNorm2d::new, Some(Activation::Relu6));
        let mut inputs = rounded(32.0 * width);
        let mut features: Vec<Box<dyn Module>> =
            vec![Box::new(conv_norm((3, inputs), (3, 2, 1), norm, relu6)?)];
        // How much wider the middle is, channels, blocks, stride of the first.
        const STAGES: [(usize, f64, usize, usize); 7] = [
            (1, 16.0, 1, 1),
            (6, 24.0, 2, 2),
            (6, 32.0, 3, 2),
            (6, 64.0, 4, 2),
            (6, 96.0, 3, 1),
            (6, 160.0, 3, 2),
            (6, 320.0, 1, 1),
        ];
        for (wider, channels, blocks, first) in STAGES {
            let outputs = rounded(channels * width);
            for place in 0..blocks {
                let (stride, middle) = (if place == 0 { first } else { 1 }, inputs * wider);
                let mut layers: Vec<Box<dyn Module>> = Vec::new();
                if wider != 1 {
                    layers.push(Box::new(conv_norm((inputs, middle), (1, 1, 1), norm, relu6)?));
                }
                layers.push(Box::new(conv_norm((middle, middle), (3, stride, middle), norm, relu6)?));
                layers.push(Box::new(super::conv_norm::conv(middle, outputs, 1, 1, 1)?));
                layers.push(Box::new(norm(outputs)));
                let adds = stride == 1 && inputs == outputs;
                features.push(Box::new(Residual { name: "conv", layers: Sequential::new(layers), adds }));
                inputs = outputs;
            }
        }
        let last = rounded(1280.0 * width.max(1.0));
        features.push(Box::new(conv_norm((inputs, last), (1, 1, 1), norm, relu6)?));
        Ok(MobileNetV2 {
            features: Sequential::new(features),
            classifier: (Dropout::new(0.2), Linear::new(last, classes, true)),
        })
    }

    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let pass = layer(self, || {
            let y = self.features.try_forward(x)?.try_mean_dim([2, 3], false)?;
            self.classifier.1.try_forward(&self.classifier.0.try_forward(&y)?)
        });
        pass.unwrap_or_else(|e| e.raise())
    }
}

/// A block of [`MobileNetV3`]: kernel, channels of its middle and its result, whether it weighs channels, its function, its stride.
type Row = (usize, f64, f64, bool, Activation, usize);

use Activation::{HardSwish as HS, Relu as RE};

const LARGE: [Row; 15] = [
    (3, 16.0, 16.0, false, RE, 1),
    (3, 64.0, 24.0, false, RE, 2),
    (3, 72.0, 24.0, false, RE, 1),
    (5, 72.0, 40.0, true, RE, 2),
    (5, 120.0, 40.0, true, RE, 1),
    (5, 120.0, 40.0, true, RE, 1),
    (3, 240.0, 80.0, false, HS, 2),
    (3, 200.0, 80.0, false, HS, 1),
    (3, 184.0, 80.0, false, HS, 1),
    (3, 184.0, 80.0, false, HS, 1),
    (3, 480.0, 112.0, true, HS, 1),
    (3, 672.0, 112.0, true, HS, 1),
    (5, 672.0, 160.0, true, HS, 2),
    (5, 960.0, 160.0, true, HS, 1),
    (5, 960.0, 160.0, true, HS, 1),
];

const SMALL: [Row; 11] = [
    (3, 16.0, 16.0, true, RE, 2),
    (3, 72.0, 24.0, false, RE, 2),
    (3, 88.0, 24.0, false, RE, 1),
    (5, 96.0, 40.0, true, HS, 2),
    (5, 240.0, 40.0, true, HS, 1),
    (5, 240.0, 40.0, true, HS, 1),
    (5, 120.0, 48.0, true, HS, 1),
    (5, 144.0, 48.0, true, HS, 1),
    (5, 288.0, 96.0, true, HS, 2),
    (5, 576.0, 96.0, true, HS, 1),
    (5, 576.0, 96.0, true, HS, 1),
];

/// The shape of a [`MobileNetV3`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MobileNetV3Options {
    /// The large one, or the small one.
    pub large: bool,
    /// Multiplies the channels of every layer.
    pub width: f64,
    /// Classes.
    pub classes: usize,
}

/// Weighs channels by what all of them are in the mean (Hu et al., 2017).
#[derive(Module)]
struct SqueezeExcitation {
    fc1: Conv2d,
    fc2: Conv2d,
}

impl SqueezeExcitation {
    fn new(channels: usize) -> SqueezeExcitation {
        let narrow = rounded(channels as f64 / 4.0);
        let one = |inputs, outputs| Conv2d::new(inputs, outputs, 1, 1, 0, true);
        SqueezeExcitation { fc1: one(channels, narrow), fc2: one(narrow, channels) }
    }

    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let pass = layer(self, || {
            let mean = x.try_mean_dim([2, 3], true)?;
            let weights =
                self.fc2.try_forward(&self.fc1.try_forward(&mean)?.try_relu()?)?.try_hardsigmoid()?;
            weights.try_mul(x)
        });
        pass.unwrap_or_else(|e| e.raise())
    }
}

/// A MobileNet of the third version: images of (batch, 3, height, width) in, a number for every class out.
///
/// ```
/// use volta::models::{MobileNetV3, MobileNetV3Options};
/// use volta::{Module, Tensor};
///
/// let model = MobileNetV3::new(MobileNetV3Options { large: false, width: 0.1, classes: 5 });
/// model.eval();
/// assert_eq!(model.forward(&Tensor::randn([1, 3, 32, 32])).shape()[..], [1, 5]);
/// ```
#[derive(Module)]
pub struct MobileNetV3 {
    features: Sequential,
    classifier: Sequential,
}

impl MobileNetV3 {
    /// With random first values.
    #[track_caller]
    pub fn new(options: MobileNetV3Options) -> MobileNetV3 {
        MobileNetV3::try_new(options).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(options: MobileNetV3Options) -> Result<MobileNetV3> {
        let _call = Call::enter("MobileNetV3");
        let MobileNetV3Options { large, width, classes } = options;
        check(classes, width)?;
        let norm = |channels| BatchNorm2d::new(channels).with_eps(1e-3).with_momentum(Some(0.01));
        let mut inputs = rounded(16.0 * width);
        let mut features: Vec<Box<dyn Module>> =
            vec![Box::new(conv_norm((3, inputs), (3, 2, 1), norm, Some(HS))?)];
        let rows: &[Row] = if large { &LARGE } else { &SMALL };
        for &(kernel, middle, outputs, weighs, function, stride) in rows {
            let (middle, outputs) = (rounded(middle * width), rounded(outputs * width));
            let mut layers: Vec<Box<dyn Module>> = Vec::new();
            if middle != inputs {
                layers.push(Box::new(conv_norm((inputs, middle), (1, 1, 1), norm, Some(function))?));
            }
            layers.push(Box::new(conv_norm(
                (middle, middle),
                (kernel, stride, middle),
                norm,
                Some(function),
            )?));
            if weighs {
                layers.push(Box::new(SqueezeExcitation::new(middle)));
            }
            layers.push(Box::new(conv_norm((middle, outputs), (1, 1, 1), norm, None)?));
            let adds = stride == 1 && inputs == outputs;
            features.push(Box::new(Residual { name: "block", layers: Sequential::new(layers), adds }));
            inputs = outputs;
        }
        let last = 6 * inputs;
        features.push(Box::new(conv_norm((inputs, last), (1, 1, 1), norm, Some(HS))?));
        let hidden = rounded(if large { 1280.0 } else { 1024.0 } * width);
        let classifier: Vec<Box<dyn Module>> = vec![
            Box::new(Linear::new(last, hidden, true)),
            Box::new(HS),
            Box::new(Dropout::new(0.2)),
            Box::new(Linear::new(hidden, classes, true)),
        ];
        Ok(MobileNetV3 { features: Sequential::new(features), classifier: Sequential::new(classifier) })
    }

    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let pass = layer(self, || {
            let y = self.features.try_forward(x)?.try_mean_dim([2, 3], false)?;
            self.classifier.try_forward(&y)
        });
        pass.unwrap_or_else(|e| e.raise())
    }
}
