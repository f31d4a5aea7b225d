//! Networks of Volta's layers, to be written as ONNX files and computed by others.

use volta::models::{
    Bert, BertOptions, Gpt, GptOptions, MobileNetV3, MobileNetV3Options, ResNet, ResNetOptions,
    VisionTransformer, VisionTransformerOptions,
};
use volta::{
    AdaptiveAvgPool2d, AvgPool2d, BatchNorm2d, Conv2d, ConvTranspose2d, DType, Dropout, ELU, Embedding,
    Flatten, GELU, GELUTanh, GRU, GroupNorm, Interpolation, LSTM, LayerNorm, LeakyReLU, Linear, LogSoftmax,
    MaxPool2d, Mish, Module, PixelShuffle, RMSNorm, ReLU, RecurrentOptions, Result, Sequential, SiLU,
    Sigmoid, Softmax, Tanh, Tensor, TransformerEncoderLayer, TransformerOptions, Upsample,
};

/// What computes an output from an input.
type Compute = Box<dyn Fn(&Tensor) -> Result<Tensor>>;

pub struct Network {
    pub name: &'static str,
    pub module: Box<dyn Module>,
    /// A batch of one.
    pub example: Tensor,
    compute: Compute,
    tokens: Option<i64>,
}

impl Network {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        (self.compute)(x)
    }

    /// An input of another batch.
    pub fn input(&self, batch: usize) -> Tensor {
        let mut extents = self.example.shape().to_vec();
        extents[0] = batch;
        match self.tokens {
            Some(most) => Tensor::randint(0, most, &extents),
            None => Tensor::randn(&extents),
        }
    }
}

/// A module that several can hold.
fn of(name: &'static str, module: impl Module + 'static, shape: &[usize]) -> Network {
    network(name, std::sync::Arc::new(module), shape, None, |m, x| m.try_forward(x))
}

fn network<M: Module + 'static>(
    name: &'static str,
    module: std::sync::Arc<M>,
    shape: &[usize],
    tokens: Option<i64>,
    compute: impl Fn(&M, &Tensor) -> Result<Tensor> + 'static,
) -> Network {
    module.eval();
    let held = module.clone();
    let example = if tokens.is_some() { Tensor::full_of(shape, 0, DType::I32) } else { Tensor::zeros(shape) };
    Network { name, module: Box::new(module), example, compute: Box::new(move |x| compute(&held, x)), tokens }
}

fn layers(name: &'static str, layers: Vec<Box<dyn Module>>, shape: &[usize]) -> Network {
    of(name, Sequential::new(layers), shape)
}

pub fn all() -> Vec<Network> {
    volta::manual_seed(7);
    let bert = BertOptions {
        vocabulary: 50,
        context: 16,
        segments: 2,
        layers: 2,
        heads: 4,
        width: 32,
        hidden: 48,
        norm_eps: 1e-12,
    };
    let gpt =
        GptOptions { vocabulary: 50, context: 16, layers: 2, heads: 4, width: 32, ..GptOptions::default() };
    let vit = VisionTransformerOptions {
        image: 16,
        patch: 8,
        layers: 2,
        heads: 2,
        width: 16,
        hidden: 32,
        classes: 5,
    };
    let resnet = ResNetOptions { blocks: [1; 4], width: 4, classes: 5, ..ResNetOptions::resnet18() };
    let transformer = TransformerOptions {
        dropout: 0.0,
        batch_first: true,
        dim_feedforward: 24,
        ..TransformerOptions::default()
    };
    let recurrent =
        RecurrentOptions { layers: 2, bidirectional: true, batch_first: true, ..RecurrentOptions::default() };
    let bias = || BatchNorm2d::new(4);
    vec![
        layers(
            "perceptron",
            vec![
                Box::new(Linear::new(6, 8, true)),
                Box::new(ReLU),
                Box::new(Dropout::new(0.5)),
                Box::new(Linear::new(8, 3, false)),
                Box::new(LogSoftmax(-1)),
            ],
            &[1, 6],
        ),
        layers(
            "convolutions",
            vec![
                Box::new(Conv2d::new(3, 4, 3, 2, 1, false)),
                Box::new(bias()),
                Box::new(SiLU),
                Box::new(MaxPool2d::new(3, 2, 1)),
                Box::new(Conv2d::new(4, 8, [1, 3], 1, [0, 2], true).with_groups(2).with_dilation([1, 2])),
                Box::new(GroupNorm::new(2, 8)),
                Box::new(Upsample::new(2.0, Interpolation::Nearest)),
                Box::new(ConvTranspose2d::new(8, 4, 3, 2, 1, true)),
                Box::new(AvgPool2d::new(2, 1, 1)),
                Box::new(PixelShuffle::new(2)),
                Box::new(AdaptiveAvgPool2d::new(3)),
                Box::new(Flatten::new()),
            ],
            &[1, 3, 17, 19],
        ),
        layers(
            "activations",
            vec![
                Box::new(LayerNorm::new([6])),
                Box::new(GELU),
                Box::new(GELUTanh),
                Box::new(Mish),
                Box::new(ELU(0.7)),
                Box::new(LeakyReLU(0.1)),
                Box::new(Tanh),
                Box::new(RMSNorm::new([6]).with_eps(1e-6)),
                Box::new(Sigmoid),
                Box::new(Softmax(-1)),
            ],
            &[1, 5, 6],
        ),
        of("transformer", TransformerEncoderLayer::with_options(16, 4, transformer), &[1, 5, 16]),
        network(
            "lstm",
            std::sync::Arc::new(LSTM::with_options(4, 6, recurrent)),
            &[1, 5, 4],
            None,
            |m, x| Ok(m.run(x, None).0),
        ),
        network(
            "gru",
            std::sync::Arc::new(GRU::with_options(
                4,
                6,
                RecurrentOptions { batch_first: true, ..RecurrentOptions::default() },
            )),
            &[1, 5, 4],
            None,
            |m, x| Ok(m.run(x, None).0),
        ),
        network("embedding", std::sync::Arc::new(Embedding::new(50, 6)), &[1, 4], Some(50), |m, x| {
            m.try_forward(x)
        }),
        network(
            "bert",
            std::sync::Arc::new(Bert::try_new(bert).expect("options that fit")),
            &[1, 6],
            Some(50),
            |m, x| {
                let seen = x.try_ge(0)?;
                m.try_encode(x, &seen)
            },
        ),
        network("gpt", std::sync::Arc::new(Gpt::new(gpt)), &[1, 6], Some(50), |m, x| m.try_forward(x)),
        of("resnet", ResNet::new(resnet), &[1, 3, 32, 32]),
        of(
            "mobilenet",
            MobileNetV3::new(MobileNetV3Options { large: false, width: 0.1, classes: 5 }),
            &[1, 3, 32, 32],
        ),
        of("vit", VisionTransformer::new(vit), &[1, 3, 16, 16]),
    ]
}
