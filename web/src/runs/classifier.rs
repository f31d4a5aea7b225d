//! A digit classifier's run.

use super::images::{Images, Order, SIDE};
use crate::error::{Thrown, argument, js};
use crate::object::{flag, number, numbers, object, text};
use std::future::Future;
use volta::io::Metadata;
use volta::nn::{Flatten, MaxPool2d};
use volta::optim::{AdamWOptions, CosineAnnealingLR, LinearLR, Schedule, WarmupLR};
use volta::{
    AdamW, Checkpoint, Conv2d, DType, Linear, Module, PlanReport, ReLU, Result, Scheduler, Sequential,
    Tensor, assume_computed, no_grad, plan_only, try_clip_grad_norm, try_cross_entropy,
};
use wasm_bindgen::JsValue;

const CLASSES: usize = 10;

/// Mean and deviation of MNIST's pixels.
const PIXELS: [f64; 2] = [0.1307, 0.3081];

/// Examples of one forward pass of a validation.
const VALIDATION_BATCH: usize = 250;

/// The most examples that a validation looks at.
const VALIDATION_EXAMPLES: usize = 1000;

/// What a run is told.
struct Options {
    steps: u64,
    batch: usize,
    learning_rate: f64,
    weight_decay: f64,
    clip: f64,
    warmup: u64,
    schedule: String,
    validate_every: u64,
    seed: u64,
    hidden: Vec<usize>,
    convolutional: bool,
}

impl Options {
    fn of(options: &JsValue) -> Thrown<Options> {
        let count = |name: &str, default: f64, least: f64| -> Thrown<f64> {
            let x = number(options, name).unwrap_or(default);
            let fits = x >= least && x.fract() == 0.0 && x <= 1e9;
            if fits {
                Ok(x)
            } else {
                Err(argument(&format!("{name} is {x}, and must be a whole number from {least} on")))
            }
        };
        let real = |name: &str, default: f64| -> Thrown<f64> {
            let x = number(options, name).unwrap_or(default);
            let fits = x >= 0.0 && x.is_finite();
            if fits {
                Ok(x)
            } else {
                Err(argument(&format!("{name} is {x}, and must be a number from 0 on")))
            }
        };
        let hidden = numbers(options, "hidden").unwrap_or_else(|| vec![256.0, 128.0]);
        if let Some(width) =
            hidden.iter().find(|&&width| !(1.0..=16384.0).contains(&width) || width.fract() != 0.0)
        {
            return Err(argument(&format!(
                "a hidden layer has width {width}, and must have a whole number from 1 to 16384"
            )));
        }
        if hidden.len() > 16 {
            return Err(argument(&format!("there are {} hidden layers, and can be 16", hidden.len())));
        }
        let schedule = text(options, "schedule").unwrap_or_else(|| "cosine".into());
        if !["cosine", "linear", "constant"].contains(&&schedule[..]) {
            return Err(argument(&format!(
                "no schedule is called {schedule:?}; there are cosine, linear and constant"
            )));
        }
        let batch = count("batch", 64.0, 1.0)?;
        if batch > 8192.0 {
            return Err(argument(&format!("a batch of {batch} is more than 8192")));
        }
        Ok(Options {
            steps: count("steps", 500.0, 1.0)? as u64,
            batch: batch as usize,
            learning_rate: real("learningRate", 1e-3)?,
            weight_decay: real("weightDecay", 0.01)?,
            clip: real("clip", 1.0)?,
            warmup: count("warmup", 20.0, 0.0)? as u64,
            schedule,
            validate_every: count("validateEvery", 50.0, 0.0)? as u64,
            seed: count("seed", 0.0, 0.0)? as u64,
            hidden: hidden.iter().map(|&width| width as usize).collect(),
            convolutional: flag(options, "convolutional"),
        })
    }

    /// A network with fresh weights.
    fn network(&self) -> Result<Sequential> {
        let mut layers: Vec<Box<dyn Module>> = Vec::new();
        let mut width = SIDE * SIDE;
        if self.convolutional {
            for (inputs, outputs) in [(1, 16), (16, 32)] {
                layers.push(Box::new(Conv2d::new(inputs, outputs, 3, 1, 1, true)));
                layers.push(Box::new(ReLU));
                layers.push(Box::new(MaxPool2d::new(2, 2, 0)));
            }
            width = 32 * (SIDE / 4) * (SIDE / 4);
        }
        layers.push(Box::new(Flatten::new()));
        for &outputs in &self.hidden {
            layers.push(Box::new(Linear::new(width, outputs, true)));
            layers.push(Box::new(ReLU));
            width = outputs;
        }
        layers.push(Box::new(Linear::new(width, CLASSES, true)));
        Ok(Sequential::new(layers))
    }

    fn optimizer(&self, model: &Sequential) -> Result<AdamW> {
        let (learning_rate, weight_decay) = (self.learning_rate, self.weight_decay);
        AdamW::try_with(
            model.parameters(),
            AdamWOptions { learning_rate, weight_decay, ..AdamWOptions::default() },
        )
    }

    fn rates(&self) -> Box<dyn Schedule> {
        let steps = self.steps.saturating_sub(self.warmup).max(1);
        let then: Box<dyn Schedule> = match &self.schedule[..] {
            "constant" => Box::new(LinearLR::new(1.0, 1.0, 1)),
            "linear" => Box::new(LinearLR::new(1.0, 0.0, steps)),
            _ => Box::new(CosineAnnealingLR::new(steps, self.learning_rate / 100.0)),
        };
        Box::new(WarmupLR::new(self.warmup, then))
    }

    /// The norm that gradients are cut to.
    fn max_norm(&self) -> f64 {
        if self.clip > 0.0 { self.clip } else { f64::INFINITY }
    }
}

/// A network's input for bytes of pixels.
fn input(pixels: Vec<u8>, count: usize) -> Result<Tensor> {
    let pixels = Tensor::try_from_vec(pixels, [count, 1, SIDE, SIDE])?.try_to_dtype(DType::F32)?;
    normalized(&pixels.try_div(255.0)?)
}

fn normalized(pixels: &Tensor) -> Result<Tensor> {
    pixels.try_sub(PIXELS[0])?.try_div(PIXELS[1])
}

/// Forward, backward and the optimizer's step; gives the loss and the norm of the gradients.
fn train(
    model: &Sequential,
    optimizer: &mut AdamW,
    max_norm: f64,
    (pixels, classes): (Vec<u8>, Vec<i32>),
) -> Result<[Tensor; 2]> {
    let count = classes.len();
    optimizer.zero_grad();
    let loss = try_cross_entropy(
        &model.try_forward(&input(pixels, count)?)?,
        &Tensor::try_from_vec(classes, [count])?,
    )?;
    loss.try_backward()?;
    let norm = try_clip_grad_norm(optimizer.parameters(), max_norm)?;
    optimizer.try_step()?;
    Ok([loss.detach(), norm])
}

/// The plan of a step of a network of its own, whose values are never computed.
fn plan(options: &Options) -> Result<(usize, Option<PlanReport>)> {
    let model = options.network()?;
    let parameters = model.parameters();
    assume_computed(&parameters);
    let mut optimizer = options.optimizer(&model)?;
    let batch = (vec![0; options.batch * SIDE * SIDE], vec![0; options.batch]);
    let plan = plan_only(|| train(&model, &mut optimizer, options.max_norm(), batch).map(drop))?;
    Ok((parameters.iter().map(Tensor::numel).sum(), plan))
}

/// Parameters and memory of a step.
pub fn estimate(options: &JsValue) -> Thrown<JsValue> {
    let (parameters, plan) = plan(&Options::of(options)?).map_err(js)?;
    let peak = plan.map_or(0, |plan| plan.peak_bytes);
    Ok(object([("parameters", (parameters as f64).into()), ("peakBytes", (peak as f64).into())]))
}

/// A network that learns digits.
pub struct Classifier {
    options: Options,
    model: Sequential,
    optimizer: AdamW,
    scheduler: Scheduler,
    training: Images,
    validation: Images,
    order: Order,
    step: u64,
}

impl Classifier {
    /// On drawn digits, or on those of MNIST's files; from fresh weights, or from a checkpoint.
    pub fn new(
        options: &JsValue,
        files: Option<(Vec<u8>, Vec<u8>)>,
        checkpoint: Option<Vec<u8>>,
    ) -> Thrown<Classifier> {
        let options = Options::of(options)?;
        let [training, validation] = match files {
            Some((images, labels)) => Images::of_files(&images, &labels)?,
            None => Images::drawn(options.seed),
        };
        volta::manual_seed(options.seed);
        let model = options.network().map_err(js)?;
        let mut optimizer = options.optimizer(&model).map_err(js)?;
        let scheduler = Scheduler::new(options.rates(), &mut optimizer);
        let order = Order::new(training.len(), options.seed, 0, 0);
        let mut run =
            Classifier { options, model, optimizer, scheduler, training, validation, order, step: 0 };
        if let Some(bytes) = checkpoint {
            run.restore(&Checkpoint::from_bytes(bytes).map_err(js)?).map_err(js)?;
        }
        Ok(run)
    }

    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        checkpoint.restore_module("model", &self.model)?;
        checkpoint.restore("optimizer", &mut self.optimizer)?;
        checkpoint.restore("scheduler", &mut self.scheduler)?;
        checkpoint.restore_rng()?;
        self.step = checkpoint.int("step")?.max(0) as u64;
        let (seed, epoch) = (checkpoint.int("seed")? as u64, checkpoint.int("epoch")?.max(0) as u64);
        self.order =
            Order::new(self.training.len(), seed, epoch, checkpoint.int("position")?.max(0) as usize);
        self.options.seed = seed;
        Ok(())
    }

    /// The file that a run goes on from.
    pub fn checkpoint(&self) -> impl Future<Output = Result<Vec<u8>>> + use<> {
        let (epoch, position) = self.order.place();
        Checkpoint::new()
            .with_module("model", &self.model)
            .with("optimizer", &self.optimizer)
            .with("scheduler", &self.scheduler)
            .with_rng()
            .with_value("step", self.step as i64)
            .with_value("seed", self.options.seed as i64)
            .with_value("epoch", epoch as i64)
            .with_value("position", position as i64)
            .to_bytes_async()
    }

    /// The weights alone.
    pub fn model_file(&self) -> impl Future<Output = Result<Vec<u8>>> + use<> {
        let hidden: Vec<String> = self.options.hidden.iter().map(usize::to_string).collect();
        let about = [
            ("format", "pt".to_string()),
            ("kind", "volta-classifier".to_string()),
            ("hidden", hidden.join(",")),
            ("convolutional", self.options.convolutional.to_string()),
        ];
        let about: Metadata = about.into_iter().map(|(name, text)| (name.to_string(), text)).collect();
        volta::io::to_safetensors_async(&self.model.state_dict(), &about)
    }

    /// What is trained, by name.
    pub fn named_parameters(&self) -> Vec<(String, Tensor)> {
        self.model.named_parameters()
    }

    /// What is known before the first step.
    pub fn info(&self) -> Thrown<JsValue> {
        let (parameters, plan) = {
            let rng = volta::RngState::save();
            let planned = plan(&self.options).map_err(js);
            rng.restore();
            planned?
        };
        let plan = plan.as_ref().map_or(JsValue::NULL, crate::profile::plan);
        Ok(object([
            ("parameters", (parameters as f64).into()),
            ("step", (self.step as f64).into()),
            ("steps", (self.options.steps as f64).into()),
            ("plan", plan),
        ]))
    }

    /// One step, and a validation where one is due.
    pub async fn step(&mut self) -> Thrown<JsValue> {
        let batch = self.training.batch(self.order.next(self.options.batch))?;
        let count = batch.1.len();
        let rate = self.optimizer.learning_rates()[0];
        let [loss, norm] =
            train(&self.model, &mut self.optimizer, self.options.max_norm(), batch).map_err(js)?;
        let (loss, norm) = (loss.to_vec_async::<f32>(), norm.to_vec_async::<f32>());
        self.scheduler.step(&mut self.optimizer);
        let (loss, norm) = (loss.await.map_err(js)?, norm.await.map_err(js)?);
        self.step += 1;
        let every = self.options.validate_every;
        let is_due = every > 0 && (self.step.is_multiple_of(every) || self.step == self.options.steps);
        let [validation_loss, accuracy] = if is_due { self.validate().await? } else { [None; 2] };
        let or_nothing = |x: Option<f64>| x.map_or(JsValue::UNDEFINED, JsValue::from);
        Ok(object([
            ("step", (self.step as f64).into()),
            ("steps", (self.options.steps as f64).into()),
            ("loss", f64::from(loss[0]).into()),
            ("gradNorm", f64::from(norm[0]).into()),
            ("learningRate", rate.into()),
            ("examples", (count as f64).into()),
            ("validationLoss", or_nothing(validation_loss)),
            ("accuracy", or_nothing(accuracy)),
        ]))
    }

    /// The mean loss, and the part that is right, of examples that are kept apart.
    async fn validate(&mut self) -> Thrown<[Option<f64>; 2]> {
        let count = self.validation.len().min(VALIDATION_EXAMPLES);
        let mut sums = Vec::new();
        for start in (0..count).step_by(VALIDATION_BATCH) {
            let indices: Vec<usize> = (start..(start + VALIDATION_BATCH).min(count)).collect();
            let (pixels, classes) = self.validation.batch(&indices)?;
            let [loss, right] = no_grad(|| self.judged(pixels, classes)).map_err(js)?;
            sums.push((loss.to_vec_async::<f32>(), right.to_vec_async::<f32>(), indices.len() as f64));
        }
        let (mut loss, mut right) = (0.0, 0.0);
        for (losses, accuracies, examples) in sums {
            loss += f64::from(losses.await.map_err(js)?[0]) * examples;
            right += f64::from(accuracies.await.map_err(js)?[0]) * examples;
        }
        Ok([loss, right].map(|sum| Some(sum / count as f64)))
    }

    fn judged(&self, pixels: Vec<u8>, classes: Vec<i32>) -> Result<[Tensor; 2]> {
        let count = classes.len();
        let classes = Tensor::try_from_vec(classes, [count])?;
        let logits = self.model.try_forward(&input(pixels, count)?)?;
        let right =
            logits.try_argmax_dim(-1, false)?.try_eq(&classes)?.try_to_dtype(DType::F32)?.try_mean()?;
        Ok([try_cross_entropy(&logits, &classes)?, right])
    }

    /// Probabilities for one image of numbers from 0 to 1.
    pub fn classify(&self, pixels: Vec<f32>) -> Thrown<impl Future<Output = Result<Vec<f32>>> + use<>> {
        if pixels.len() != SIDE * SIDE {
            return Err(argument(&format!(
                "an image has {} pixels, and this one {}",
                SIDE * SIDE,
                pixels.len()
            )));
        }
        let probabilities = no_grad(|| {
            let pixels = Tensor::try_from_vec(pixels, [1, 1, SIDE, SIDE])?;
            self.model.try_forward(&normalized(&pixels)?)?.try_softmax(-1)
        });
        Ok(probabilities.map_err(js)?.to_vec_async::<f32>())
    }
}
