//! The networks that are trained in the benchmark, written out with tensors alone.

use volta::{
    Adam, AdamW, AttentionOptions, ConvOptions, Optimizer, PoolOptions, SGD, Tensor, cross_entropy, mse_loss,
};

/// A step to be timed: the loss of a forward pass, and what moves the parameters.
pub struct Training {
    pub loss: Box<dyn FnMut() -> Tensor>,
    pub optimizer: Box<dyn Optimizer>,
    /// Samples or tokens a step.
    pub units: usize,
    /// Whether the loss is read every step.
    pub read_loss: bool,
}

/// Parameters as they are made.
#[derive(Default)]
struct Parameters(Vec<Tensor>);

impl Parameters {
    fn add(&mut self, t: Tensor) -> Tensor {
        let t = t.requires_grad(true);
        t.realize();
        self.0.push(t.clone());
        t
    }

    fn uniform(&mut self, shape: &[usize], fan_in: usize) -> Tensor {
        let bound = 1.0 / (fan_in as f64).sqrt();
        self.add((Tensor::rand(shape) * 2.0 - 1.0) * bound)
    }

    fn linear(&mut self, inputs: usize, outputs: usize) -> Linear {
        Linear { weight: self.uniform(&[outputs, inputs], inputs), bias: self.uniform(&[outputs], inputs) }
    }

    fn conv(&mut self, inputs: usize, outputs: usize, kernel: usize) -> Tensor {
        self.uniform(&[outputs, inputs, kernel, kernel], inputs * kernel * kernel)
    }

    fn norm(&mut self, width: usize) -> Norm {
        Norm { weight: self.add(Tensor::ones([width])), bias: self.add(Tensor::zeros([width])) }
    }
}

#[derive(Clone)]
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, Some(&self.bias))
    }
}

struct Norm {
    weight: Tensor,
    bias: Tensor,
}

impl Norm {
    fn layer(&self, x: &Tensor) -> Tensor {
        x.layer_norm([self.weight.numel()], Some(&self.weight), Some(&self.bias), 1e-5)
    }

    fn batch(&self, x: &Tensor) -> Tensor {
        x.batch_norm_train(Some(&self.weight), Some(&self.bias), 1e-5).0
    }
}

/// How a GPT is built: vocabulary, context, layers, heads, width.
struct Size(usize, usize, usize, usize, usize);

struct Block {
    ln1: Norm,
    qkv: Linear,
    proj: Linear,
    ln2: Norm,
    up: Linear,
    down: Linear,
}

impl Block {
    fn forward(&self, x: &Tensor, heads: usize) -> Tensor {
        let [batch, context, width] = x.shape()[..] else { unreachable!("three axes") };
        let split = self.qkv.forward(&self.ln1.layer(x)).chunk(3, 2);
        let head = |t: &Tensor| t.reshape([batch, context, heads, width / heads]).transpose(1, 2);
        let options = AttentionOptions { causal: true, ..Default::default() };
        let y = head(&split[0]).scaled_dot_product_attention(&head(&split[1]), &head(&split[2]), options);
        let x = x + self.proj.forward(&y.transpose(1, 2).reshape([batch, context, width]));
        &x + self.down.forward(&self.up.forward(&self.ln2.layer(&x)).gelu_tanh())
    }
}

fn gpt(Size(vocabulary, context, layers, heads, width): Size, batch: usize) -> Training {
    let mut p = Parameters::default();
    let tokens = p.add(Tensor::randn([vocabulary, width]));
    let positions = p.add(Tensor::randn([context, width]));
    let blocks: Vec<Block> = (0..layers)
        .map(|_| Block {
            ln1: p.norm(width),
            ln2: p.norm(width),
            qkv: p.linear(width, 3 * width),
            proj: p.linear(width, width),
            up: p.linear(width, 4 * width),
            down: p.linear(4 * width, width),
        })
        .collect();
    let last = p.norm(width);
    let head = p.uniform(&[vocabulary, width], width);
    let index = Tensor::randint(0, vocabulary as i64, [batch, context]);
    let target = Tensor::randint(0, vocabulary as i64, [batch * context]);
    index.realize();
    target.realize();
    let place = Tensor::arange(0, context as i64);
    place.realize();
    let loss = move || {
        let mut x = tokens.embedding(&index) + positions.embedding(&place);
        for b in &blocks {
            x = b.forward(&x, heads);
        }
        let logits = last.layer(&x).reshape([batch * context, width]).matmul(&head.t());
        cross_entropy(&logits, &target)
    };
    let optimizer = AdamW::new(p.0, 3e-4, (0.9, 0.999), 1e-8, 0.01);
    Training {
        loss: Box::new(loss),
        optimizer: Box::new(optimizer),
        units: batch * context,
        read_loss: false,
    }
}

fn adam(parameters: Parameters) -> Box<dyn Optimizer> {
    Box::new(Adam::new(parameters.0, 1e-3, (0.9, 0.999), 1e-8, 0.0))
}

fn classes(batch: usize) -> Tensor {
    let y = Tensor::randint(0, 10, [batch]);
    y.realize();
    y
}

fn images(shape: &[usize]) -> Tensor {
    let x = Tensor::randn(shape);
    x.realize();
    x
}

fn xor() -> Training {
    let mut p = Parameters::default();
    let (a, b) = (p.linear(2, 8), p.linear(8, 1));
    let x = Tensor::from_vec(vec![0f32, 0., 0., 1., 1., 0., 1., 1.], [4, 2]);
    let y = Tensor::from_vec(vec![0f32, 1., 1., 0.], [4, 1]);
    let loss = move || mse_loss(&b.forward(&a.forward(&x).relu()), &y);
    Training { loss: Box::new(loss), optimizer: adam(p), units: 4, read_loss: true }
}

fn mlp(batch: usize) -> Training {
    let mut p = Parameters::default();
    let layers = [p.linear(784, 512), p.linear(512, 512), p.linear(512, 10)];
    let (x, y) = (images(&[batch, 784]), classes(batch));
    let loss = move || {
        let h = layers[0].forward(&x).relu();
        cross_entropy(&layers[2].forward(&layers[1].forward(&h).relu()), &y)
    };
    Training { loss: Box::new(loss), optimizer: adam(p), units: batch, read_loss: false }
}

fn cnn(batch: usize) -> Training {
    let mut p = Parameters::default();
    let convs = [(p.conv(1, 32, 3), p.uniform(&[32], 9)), (p.conv(32, 64, 3), p.uniform(&[64], 288))];
    let (hidden, out) = (p.linear(9216, 128), p.linear(128, 10));
    let (x, y) = (images(&[batch, 1, 28, 28]), classes(batch));
    let loss = move || {
        let mut h = x.clone();
        for (weight, bias) in &convs {
            h = h.conv2d(weight, Some(bias), ConvOptions::default()).relu();
        }
        let h = h.max_pool2d([2, 2], PoolOptions::default()).flatten(1, -1);
        cross_entropy(&out.forward(&hidden.forward(&h).relu()), &y)
    };
    Training { loss: Box::new(loss), optimizer: adam(p), units: batch, read_loss: false }
}

/// Two convolutions around which the input flows on.
struct Residual {
    convs: [(Tensor, Norm, usize); 2],
    short: Option<(Tensor, Norm)>,
}

impl Residual {
    fn forward(&self, x: &Tensor) -> Tensor {
        let conv = |x: &Tensor, w: &Tensor, stride: usize, padding: usize| {
            x.conv2d(
                w,
                None,
                ConvOptions { stride: [stride; 2], padding: [padding; 2], ..Default::default() },
            )
        };
        let [(w1, n1, stride), (w2, n2, _)] = &self.convs;
        let y = n1.batch(&conv(x, w1, *stride, 1)).relu();
        let y = n2.batch(&conv(&y, w2, 1, 1));
        let short = match &self.short {
            Some((w, norm)) => norm.batch(&conv(x, w, *stride, 0)),
            None => x.clone(),
        };
        (y + short).relu()
    }
}

fn resnet18(batch: usize) -> Training {
    let mut p = Parameters::default();
    let (stem, stem_norm) = (p.conv(3, 64, 3), p.norm(64));
    let mut blocks = Vec::new();
    let mut width = 64;
    for (out, stride) in [(64, 1), (128, 2), (256, 2), (512, 2)] {
        for stride in [stride, 1] {
            let convs = [(p.conv(width, out, 3), p.norm(out), stride), (p.conv(out, out, 3), p.norm(out), 1)];
            let short = (stride != 1 || width != out).then(|| (p.conv(width, out, 1), p.norm(out)));
            blocks.push(Residual { convs, short });
            width = out;
        }
    }
    let head = p.linear(512, 10);
    let (x, y) = (images(&[batch, 3, 32, 32]), classes(batch));
    let loss = move || {
        let padded = ConvOptions { padding: [1, 1], ..Default::default() };
        let mut h = stem_norm.batch(&x.conv2d(&stem, None, padded)).relu();
        for b in &blocks {
            h = b.forward(&h);
        }
        cross_entropy(&head.forward(&h.mean_dim([2, 3], false)), &y)
    };
    let optimizer = SGD::new(p.0, 0.1, 0.9, 0.0);
    Training { loss: Box::new(loss), optimizer: Box::new(optimizer), units: batch, read_loss: false }
}

pub fn training(name: &str, batch: usize) -> Result<Training, String> {
    let or = |own: usize| if batch == 0 { own } else { batch };
    Ok(match name {
        "xor" => xor(),
        "mlp" => mlp(or(128)),
        "cnn" => cnn(or(64)),
        "resnet18" => resnet18(or(128)),
        "gpt-small" => gpt(Size(65, 256, 6, 6, 384), or(64)),
        "gpt2" => gpt(Size(50304, 1024, 12, 12, 768), or(4)),
        "wikitext" => gpt(Size(33278, 64, 2, 4, 128), or(16)),
        _ => return Err(format!("unknown workload {name}")),
    })
}
