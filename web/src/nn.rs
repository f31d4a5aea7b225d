//! Layers with weights, made by name. What has none is made of ops by the typed layer.

use crate::arguments::Arguments;
use crate::error::{Thrown, argument, js};
use crate::handles::{LAYERS, hold, hold_result, operands};
use crate::object::{list, object};
use volta::nn::{Item, Visitor};
use volta::{
    AttentionMask, Conv1d, Conv2d, ConvTranspose2d, Embedding, FeedForwardActivation, GRU, GroupNorm, LSTM,
    LayerNorm, Linear, Module, MultiHeadAttention, MultiHeadOptions, RMSNorm, RNN, RecurrentOptions, Rotary,
    Shape, Tensor, TransformerEncoderLayer, TransformerOptions,
};
use volta::{ConvOptions, Result};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// A layer, by what its forward pass takes.
pub enum Layer {
    Plain(Box<dyn Module>),
    Attention(Box<MultiHeadAttention>),
    Encoder(Box<TransformerEncoderLayer>),
    Rnn(RNN),
    Gru(GRU),
    Lstm(LSTM),
}

impl Layer {
    fn module(&self) -> &dyn Module {
        match self {
            Layer::Plain(module) => &**module,
            Layer::Attention(module) => &**module,
            Layer::Encoder(module) => &**module,
            Layer::Rnn(module) => module,
            Layer::Gru(module) => module,
            Layer::Lstm(module) => module,
        }
    }

    /// The results for inputs. Of attention: query, key and value, and a mask; of recurrent layers: the input and states.
    fn forward(&self, inputs: &[Tensor], causal: bool) -> Result<Vec<Tensor>> {
        let x = &inputs[0];
        let several = |(y, state): (Tensor, Tensor)| vec![y, state];
        Ok(match self {
            Layer::Plain(module) => vec![module.try_forward(x)?],
            Layer::Attention(attention) => {
                let mask = AttentionMask { causal, mask: inputs.get(3), keys: None };
                let (key, value) = (inputs.get(1).unwrap_or(x), inputs.get(2).unwrap_or(x));
                vec![attention.try_attend(x, key, value, mask)?]
            }
            Layer::Encoder(layer) => {
                vec![layer.try_run(x, AttentionMask { causal, mask: inputs.get(1), keys: None })?]
            }
            Layer::Rnn(layer) => several(layer.try_run(x, inputs.get(1))?),
            Layer::Gru(layer) => several(layer.try_run(x, inputs.get(1))?),
            Layer::Lstm(layer) => {
                let (y, (hidden, cell)) = layer.try_run(x, inputs.get(1).zip(inputs.get(2)))?;
                vec![y, hidden, cell]
            }
        })
    }
}

/// An error if weights of these extents cannot be.
fn fits(extents: &[usize]) -> Thrown<()> {
    if extents.contains(&0) {
        return Err(argument("a layer has sizes from 1 on"));
    }
    let shape = Shape::new(extents).map_err(js)?;
    if shape.numel() > 1 << 29 {
        return Err(argument(&format!("weights of shape {shape} are more than a browser's memory holds")));
    }
    Ok(())
}

fn plain(module: impl Module + 'static) -> Layer {
    Layer::Plain(Box::new(module))
}

fn conv_options(a: &mut Arguments<'_>) -> Thrown<ConvOptions> {
    let (stride, padding, dilation, groups) = (a.pair()?, a.pair()?, a.pair()?, a.count()?);
    if stride.contains(&0) || dilation.contains(&0) || groups == 0 {
        return Err(argument("stride, dilation and groups are numbers from 1 on"));
    }
    Ok(ConvOptions { stride, padding, dilation, groups, ..ConvOptions::default() })
}

fn recurrent(a: &mut Arguments<'_>) -> Thrown<RecurrentOptions> {
    let (layers, bias, batch_first) = (a.count()?, a.flag()?, a.flag()?);
    Ok(RecurrentOptions { layers, bias, batch_first, dropout: a.number()?, bidirectional: a.flag()? })
}

fn build(name: &str, numbers: &[f64]) -> Thrown<Layer> {
    let a = &mut Arguments::new(name, &[], numbers);
    Ok(match name {
        "Linear" => {
            let (inputs, outputs) = (a.count()?, a.count()?);
            fits(&[outputs, inputs])?;
            plain(Linear::new(inputs, outputs, a.flag()?))
        }
        "Embedding" => {
            let (rows, width) = (a.count()?, a.count()?);
            fits(&[rows, width])?;
            let table = Embedding::new(rows, width);
            match a.maybe()? {
                Some(padding) => plain(table.try_with_padding(padding as usize).map_err(js)?),
                None => plain(table),
            }
        }
        "Conv2d" | "ConvTranspose2d" => {
            let (inputs, outputs, kernel) = (a.count()?, a.count()?, a.pair()?);
            let (mut options, bias) = (conv_options(a)?, a.flag()?);
            fits(&[inputs, outputs, kernel[0], kernel[1]])?;
            if name == "Conv2d" {
                plain(Conv2d::try_with_options(inputs, outputs, kernel, options, bias).map_err(js)?)
            } else {
                options.output_padding = a.pair()?;
                plain(ConvTranspose2d::try_with_options(inputs, outputs, kernel, options, bias).map_err(js)?)
            }
        }
        "Conv1d" => {
            let (inputs, outputs, kernel) = (a.count()?, a.count()?, a.count()?);
            let (options, bias) = (conv_options(a)?, a.flag()?);
            fits(&[inputs, outputs, kernel])?;
            plain(Conv1d::try_with_options(inputs, outputs, kernel, options, bias).map_err(js)?)
        }
        "LayerNorm" => {
            let (eps, affine, bias, shape) = (a.number()?, a.flag()?, a.flag()?, a.counts()?);
            fits(&shape)?;
            let layer = LayerNorm::new(&shape[..]).with_eps(eps);
            match (affine, bias) {
                (false, _) => plain(layer.without_affine()),
                (true, false) => plain(layer.without_bias()),
                (true, true) => plain(layer),
            }
        }
        "RMSNorm" => {
            let (eps, affine, shape) = (a.maybe()?, a.flag()?, a.counts()?);
            fits(&shape)?;
            let layer = RMSNorm::new(&shape[..]);
            let layer = if let Some(eps) = eps { layer.with_eps(eps) } else { layer };
            if affine { plain(layer) } else { plain(layer.without_affine()) }
        }
        "GroupNorm" => {
            let (groups, channels, eps, affine) = (a.count()?, a.count()?, a.number()?, a.flag()?);
            fits(&[channels])?;
            let layer = GroupNorm::try_new(groups, channels).map_err(js)?.with_eps(eps);
            if affine { plain(layer) } else { plain(layer.without_affine()) }
        }
        "BatchNorm1d" => batch_norm::<1>(a)?,
        "BatchNorm2d" => batch_norm::<2>(a)?,
        "MultiHeadAttention" => {
            let (width, heads, bias, dropout) = (a.count()?, a.count()?, a.flag()?, a.number()?);
            let (kv_heads, rotary) = (a.maybe()?.map(|n| n as usize), a.flag()?.then(Rotary::new));
            fits(&[width, width])?;
            let options = MultiHeadOptions { bias, dropout, kv_heads, rotary };
            Layer::Attention(Box::new(
                MultiHeadAttention::try_with_options(width, heads, options).map_err(js)?,
            ))
        }
        "TransformerEncoderLayer" => {
            let (width, heads, dim_feedforward, dropout) = (a.count()?, a.count()?, a.count()?, a.number()?);
            let (gelu, norm_first, rotary) = (a.flag()?, a.flag()?, a.flag()?.then(Rotary::new));
            fits(&[width, width])?;
            fits(&[width, dim_feedforward])?;
            let activation = if gelu { FeedForwardActivation::Gelu } else { FeedForwardActivation::Relu };
            let options = TransformerOptions {
                dim_feedforward,
                dropout,
                activation,
                norm_first,
                rotary,
                ..TransformerOptions::default()
            };
            Layer::Encoder(Box::new(
                TransformerEncoderLayer::try_with_options(width, heads, options).map_err(js)?,
            ))
        }
        "RNN" | "GRU" | "LSTM" => {
            let (inputs, hidden, options) = (a.count()?, a.count()?, recurrent(a)?);
            fits(&[4, hidden, inputs])?;
            fits(&[4, hidden, hidden])?;
            match name {
                "RNN" => Layer::Rnn(RNN::try_with_options(inputs, hidden, options).map_err(js)?),
                "GRU" => Layer::Gru(GRU::try_with_options(inputs, hidden, options).map_err(js)?),
                _ => Layer::Lstm(LSTM::try_with_options(inputs, hidden, options).map_err(js)?),
            }
        }
        other => return Err(argument(&format!("no layer is called {other:?}"))),
    })
}

fn batch_norm<const SPACE: usize>(a: &mut Arguments<'_>) -> Thrown<Layer>
where
    volta::nn::BatchNorm<SPACE>: Module,
{
    let (channels, eps, momentum, affine, track) =
        (a.count()?, a.number()?, a.maybe()?, a.flag()?, a.flag()?);
    fits(&[channels])?;
    let mut layer = volta::nn::BatchNorm::<SPACE>::new(channels).with_eps(eps).with_momentum(momentum);
    if !affine {
        layer = layer.without_affine();
    }
    if !track {
        layer = layer.without_running_stats();
    }
    Ok(plain(layer))
}

/// A new layer, by its name and sizes.
#[wasm_bindgen]
pub fn layer_new(name: &str, numbers: &[f64]) -> Thrown<u32> {
    let layer = build(name, numbers)?;
    Ok(LAYERS.with_borrow_mut(|all| all.insert(layer)))
}

/// The results of a layer.
#[wasm_bindgen]
pub fn layer_forward(handle: u32, inputs: &[u32], causal: bool) -> Thrown<Vec<u32>> {
    let inputs = operands(inputs)?;
    if inputs.is_empty() {
        return Err(argument("forward: a layer takes a tensor"));
    }
    let results = LAYERS.with_borrow_mut(|all| all.get(handle)?.forward(&inputs, causal).map_err(js))?;
    Ok(results.into_iter().map(hold_result).collect())
}

/// The tensors of a layer: name, handle, and whether it is trained.
#[wasm_bindgen]
pub fn layer_tensors(handle: u32) -> Thrown<JsValue> {
    let mut found: Vec<(String, Tensor, bool)> = Vec::new();
    LAYERS.with_borrow_mut(|all| {
        let layer = all.get(handle)?;
        let mut see = |name: &str, item: Item<'_>| match item {
            Item::Parameter(t) => found.push((name.to_string(), t.clone(), true)),
            Item::Buffer(t) => found.push((name.to_string(), t.clone(), false)),
            _ => {}
        };
        layer.module().visit(&mut Visitor::new(&mut see));
        Ok::<(), JsValue>(())
    })?;
    Ok(list(found.into_iter().map(|(name, t, trained)| {
        object([("name", name.into()), ("handle", hold(t).into()), ("trained", trained.into())])
    })))
}

/// Switches a layer between training and evaluation.
#[wasm_bindgen]
pub fn layer_train(handle: u32, yes: bool) -> Thrown<()> {
    LAYERS.with_borrow_mut(|all| {
        let layer = all.get(handle)?.module();
        let mut see = |_: &str, item: Item<'_>| {
            if let Item::Mode(mode) = item {
                mode.set_training(yes);
            }
        };
        layer.visit(&mut Visitor::new(&mut see));
        Ok(())
    })
}

/// Its sizes, for people.
#[wasm_bindgen]
pub fn layer_describe(handle: u32) -> Thrown<String> {
    LAYERS.with_borrow_mut(|all| all.get(handle).map(|layer| layer.module().describe()))
}

/// Frees layers.
#[wasm_bindgen]
pub fn layers_free(handles: &[u32]) {
    let freed: Vec<Option<Layer>> =
        LAYERS.with_borrow_mut(|all| handles.iter().map(|&handle| all.remove(handle)).collect());
    drop(freed);
}
