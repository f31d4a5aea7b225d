//! The networks that are trained in the benchmark.

use crate::output::Failure;
use volta::models::{Gpt, GptOptions};
use volta::nn::Flatten;
use volta::{
    Adam, AdamW, BatchNorm2d, Conv2d, Linear, MaxPool2d, Module, Optimizer, ReLU, Result, SGD, Sequential,
    Tensor, try_cross_entropy, try_mse_loss,
};

/// The loss of a batch.
type Loss = Box<dyn FnMut(&Tensor, &Tensor) -> Result<Tensor>>;

/// A step to be timed: a batch, the loss of a forward pass, and what moves the parameters.
pub struct Training {
    pub batch: (Tensor, Tensor),
    pub loss: Loss,
    /// What the model keeps besides parameters.
    pub buffers: Vec<Tensor>,
    pub optimizer: Box<dyn Optimizer>,
    /// Samples or tokens a step.
    pub units: usize,
    /// Whether the loss is read every step.
    pub read_loss: bool,
}

fn adam(model: &impl Module) -> Box<dyn Optimizer> {
    Box::new(Adam::new(model.parameters(), 1e-3, (0.9, 0.999), 1e-8, 0.0))
}

/// Inputs and classes that are there before the clock starts.
pub fn given(t: Tensor) -> Result<Tensor> {
    t.try_realize()?;
    Ok(t)
}

fn classes(batch: usize) -> Result<Tensor> {
    given(Tensor::try_randint(0, 10, [batch])?)
}

/// Training a model to classify a batch of `x`.
fn classifier(model: impl Module + 'static, x: Tensor, optimizer: Box<dyn Optimizer>) -> Result<Training> {
    let (y, units, buffers) = (classes(x.size(0))?, x.size(0), model.buffers());
    let loss = move |x: &Tensor, y: &Tensor| try_cross_entropy(&model.try_forward(x)?, y);
    Ok(Training { batch: (given(x)?, y), loss: Box::new(loss), buffers, optimizer, units, read_loss: false })
}

fn gpt(options: GptOptions, batch: usize) -> Result<Training> {
    let model = Gpt::try_new(options)?;
    let optimizer = AdamW::new(model.parameters(), 3e-4, (0.9, 0.999), 1e-8, 0.01);
    let ids = || given(Tensor::try_randint(0, options.vocabulary as i64, [batch, options.context])?);
    Ok(Training {
        batch: (ids()?, ids()?),
        buffers: model.buffers(),
        loss: Box::new(move |tokens, next| model.try_loss(tokens, next)),
        optimizer: Box::new(optimizer),
        units: batch * options.context,
        read_loss: false,
    })
}

fn xor() -> Training {
    let model = Sequential::new(vec![
        Box::new(Linear::new(2, 8, true)),
        Box::new(ReLU),
        Box::new(Linear::new(8, 1, true)),
    ]);
    let x = Tensor::from_vec(vec![0f32, 0., 0., 1., 1., 0., 1., 1.], [4, 2]);
    let y = Tensor::from_vec(vec![0f32, 1., 1., 0.], [4, 1]);
    let optimizer = adam(&model);
    let loss = move |x: &Tensor, y: &Tensor| try_mse_loss(&model.try_forward(x)?, y);
    Training {
        batch: (x, y),
        loss: Box::new(loss),
        buffers: Vec::new(),
        optimizer,
        units: 4,
        read_loss: true,
    }
}

fn mlp(batch: usize) -> Result<Training> {
    let model = Sequential::new(vec![
        Box::new(Linear::new(784, 512, true)),
        Box::new(ReLU),
        Box::new(Linear::new(512, 512, true)),
        Box::new(ReLU),
        Box::new(Linear::new(512, 10, true)),
    ]);
    let optimizer = adam(&model);
    classifier(model, Tensor::try_randn([batch, 784])?, optimizer)
}

fn cnn(batch: usize) -> Result<Training> {
    let model = Sequential::new(vec![
        Box::new(Conv2d::new(1, 32, 3, 1, 0, true)),
        Box::new(ReLU),
        Box::new(Conv2d::new(32, 64, 3, 1, 0, true)),
        Box::new(ReLU),
        Box::new(MaxPool2d::new(2, 2, 0)),
        Box::new(Flatten::default()),
        Box::new(Linear::new(9216, 128, true)),
        Box::new(ReLU),
        Box::new(Linear::new(128, 10, true)),
    ]);
    let optimizer = adam(&model);
    classifier(model, Tensor::try_randn([batch, 1, 28, 28])?, optimizer)
}

/// Two convolutions around which the input flows on.
#[derive(Module)]
struct Residual {
    conv1: Conv2d,
    norm1: BatchNorm2d,
    conv2: Conv2d,
    norm2: BatchNorm2d,
    short: Option<Sequential>,
}

impl Residual {
    fn new(inputs: usize, outputs: usize, stride: usize) -> Residual {
        Residual {
            conv1: Conv2d::new(inputs, outputs, 3, stride, 1, false),
            norm1: BatchNorm2d::new(outputs),
            conv2: Conv2d::new(outputs, outputs, 3, 1, 1, false),
            norm2: BatchNorm2d::new(outputs),
            short: (stride != 1 || inputs != outputs).then(|| {
                Sequential::new(vec![
                    Box::new(Conv2d::new(inputs, outputs, 1, stride, 0, false)),
                    Box::new(BatchNorm2d::new(outputs)),
                ])
            }),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let y = self.norm1.forward(&self.conv1.forward(x)).relu();
        let y = self.norm2.forward(&self.conv2.forward(&y));
        let short = self.short.as_ref().map_or(x.clone(), |s| s.forward(x));
        (y + short).relu()
    }
}

#[derive(Module)]
struct ResNet {
    stem: Conv2d,
    norm: BatchNorm2d,
    blocks: Vec<Residual>,
    head: Linear,
}

impl ResNet {
    fn new() -> ResNet {
        let mut width = 64;
        let mut blocks = Vec::new();
        for (outputs, stride) in [(64, 1), (128, 2), (256, 2), (512, 2)] {
            for stride in [stride, 1] {
                blocks.push(Residual::new(width, outputs, stride));
                width = outputs;
            }
        }
        let (stem, norm) = (Conv2d::new(3, 64, 3, 1, 1, false), BatchNorm2d::new(64));
        ResNet { stem, norm, blocks, head: Linear::new(512, 10, true) }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.norm.forward(&self.stem.forward(x)).relu();
        let x = self.blocks.iter().fold(x, |x, block| block.forward(&x));
        self.head.forward(&x.mean_dim([2, 3], false))
    }
}

fn resnet18(batch: usize) -> Result<Training> {
    let model = ResNet::new();
    let optimizer = Box::new(SGD::new(model.parameters(), 0.1, 0.9, 0.0));
    classifier(model, Tensor::try_randn([batch, 3, 32, 32])?, optimizer)
}

/// Vocabulary, context, layers, heads, width.
fn size(vocabulary: usize, context: usize, layers: usize, heads: usize, width: usize) -> GptOptions {
    GptOptions { vocabulary, context, layers, heads, width, ..GptOptions::default() }
}

/// The networks there are.
pub const NAMES: [&str; 7] = ["xor", "mlp", "cnn", "resnet18", "gpt-small", "gpt2", "wikitext"];

pub fn training(name: &str, batch: usize) -> Result<Training, Failure> {
    let or = |own: usize| if batch == 0 { own } else { batch };
    Ok(match name {
        "xor" => xor(),
        "mlp" => mlp(or(128))?,
        "cnn" => cnn(or(64))?,
        "resnet18" => resnet18(or(128))?,
        "gpt-small" => gpt(size(65, 256, 6, 6, 384), or(64))?,
        "gpt2" => gpt(size(50304, 1024, 12, 12, 768), or(4))?,
        "wikitext" => gpt(size(33278, 64, 2, 4, 128), or(16))?,
        _ => return Err(Failure::Usage(format!("unknown workload {name}"))),
    })
}
