//! Transformers of images cut into squares (Dosovitskiy et al., 2020).

use crate::call::Call;
use crate::error::{Result, bail};
use crate::io::NameMap;
use crate::nn::{
    AttentionMask, Conv2d, LayerNorm, Linear, Module, MultiHeadAttention, Sequential, Visitor, init, layer,
};
use crate::tensor::Tensor;

/// The shape of a [`VisionTransformer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisionTransformerOptions {
    /// Height and width of the images.
    pub image: usize,
    /// Height and width of the squares that they are cut into.
    pub patch: usize,
    /// Blocks.
    pub layers: usize,
    /// Heads of attention.
    pub heads: usize,
    /// The width of a square's vector.
    pub width: usize,
    /// The width between the products of a feed-forward part.
    pub hidden: usize,
    /// Classes.
    pub classes: usize,
}

impl VisionTransformerOptions {
    const fn of(patch: usize, layers: usize, heads: usize, width: usize) -> VisionTransformerOptions {
        VisionTransformerOptions { image: 224, patch, layers, heads, width, hidden: 4 * width, classes: 1000 }
    }

    /// ViT-B/16.
    pub const fn b_16() -> VisionTransformerOptions {
        VisionTransformerOptions::of(16, 12, 12, 768)
    }

    /// ViT-B/32.
    pub const fn b_32() -> VisionTransformerOptions {
        VisionTransformerOptions::of(32, 12, 12, 768)
    }

    /// ViT-L/16.
    pub const fn l_16() -> VisionTransformerOptions {
        VisionTransformerOptions::of(16, 24, 16, 1024)
    }

    /// ViT-L/32.
    pub const fn l_32() -> VisionTransformerOptions {
        VisionTransformerOptions::of(32, 24, 16, 1024)
    }

    /// ViT-H/14.
    pub const fn h_14() -> VisionTransformerOptions {
        VisionTransformerOptions::of(14, 32, 16, 1280)
    }
}

/// Keeps a norm's divisor from zero.
const EPS: f64 = 1e-6;

fn norm(width: usize) -> LayerNorm {
    LayerNorm::new([width]).with_eps(EPS)
}

struct Block {
    ln_1: LayerNorm,
    self_attention: MultiHeadAttention,
    ln_2: LayerNorm,
    /// The first is `mlp.0`, the second `mlp.3`: between them are what has no parameters.
    mlp: (Linear, Linear),
}

impl Module for Block {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_forward(x).unwrap_or_else(|e| e.raise())
    }

    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let seen = self.ln_1.try_forward(x)?;
            let x =
                self.self_attention.try_attend(&seen, &seen, &seen, AttentionMask::default())?.try_add(x)?;
            let hidden = self.mlp.0.try_forward(&self.ln_2.try_forward(&x)?)?.try_gelu()?;
            self.mlp.1.try_forward(&hidden)?.try_add(&x)
        })
    }

    fn visit(&self, visitor: &mut Visitor<'_>) {
        visitor.field("ln_1", &self.ln_1);
        visitor.field("self_attention", &self.self_attention);
        visitor.field("ln_2", &self.ln_2);
        visitor.field("mlp.0", &self.mlp.0);
        visitor.field("mlp.3", &self.mlp.1);
    }
}

#[derive(Module)]
#[module(no_forward)]
struct Encoder {
    pos_embedding: Tensor,
    layers: Sequential,
    ln: LayerNorm,
}

/// The last layer.
#[derive(Module)]
#[module(no_forward)]
pub struct VisionHeads {
    /// From an image's vector to a number for every class.
    pub head: Linear,
}

/// A vision transformer: images of (batch, 3, height, width) in, a number for every class out.
///
/// ```
/// use volta::models::{VisionTransformer, VisionTransformerOptions};
/// use volta::{Module, Tensor};
///
/// let options = VisionTransformerOptions { image: 32, layers: 2, heads: 2, width: 16, hidden: 32, classes: 5, ..VisionTransformerOptions::b_16() };
/// let model = VisionTransformer::new(options);
/// assert_eq!(model.forward(&Tensor::randn([1, 3, 32, 32])).shape()[..], [1, 5]);
/// ```
#[derive(Module)]
pub struct VisionTransformer {
    class_token: Tensor,
    conv_proj: Conv2d,
    encoder: Encoder,
    /// From an image's vector to a number for every class.
    pub heads: VisionHeads,
}

impl VisionTransformer {
    /// With random first values.
    #[track_caller]
    pub fn new(options: VisionTransformerOptions) -> VisionTransformer {
        VisionTransformer::try_new(options).unwrap_or_else(|e| e.raise())
    }

    /// [`new`](Self::new) that returns its error.
    #[track_caller]
    pub fn try_new(options: VisionTransformerOptions) -> Result<VisionTransformer> {
        let _call = Call::enter("VisionTransformer");
        let VisionTransformerOptions { image, patch, layers, heads, width, hidden, classes } = options;
        if [image, patch, layers, heads, width, hidden, classes].contains(&0)
            || !image.is_multiple_of(patch)
            || !width.is_multiple_of(heads)
        {
            bail!(
                Argument,
                "{options:?}: images must divide into squares and widths into heads, and there must be some of all"
            );
        }
        let block = |k: usize| {
            let block = Block {
                ln_1: norm(width),
                self_attention: MultiHeadAttention::new(width, heads),
                ln_2: norm(width),
                mlp: (Linear::new(width, hidden, true), Linear::new(hidden, width, true)),
            };
            (format!("encoder_layer_{k}"), Box::new(block) as Box<dyn Module>)
        };
        let squares = (image / patch) * (image / patch);
        Ok(VisionTransformer {
            class_token: init::zeros([1, 1, width]),
            conv_proj: Conv2d::new(3, width, patch, patch, 0, true),
            encoder: Encoder {
                pos_embedding: init::normal([1, squares + 1, width], 0.02),
                layers: Sequential::try_named((0..layers).map(block).collect())?,
                ln: norm(width),
            },
            heads: VisionHeads { head: Linear::new(width, classes, true) },
        })
    }

    /// What timm calls its parameters, whose values are the same.
    pub fn timm_names() -> NameMap {
        let block = |from: &str, to: &str| {
            (format!("blocks.{{}}.{from}.{{}}"), format!("encoder.layers.encoder_layer_{{}}.{to}.{{}}"))
        };
        let mut names = NameMap::new()
            .rename("cls_token", "class_token")
            .rename("pos_embed", "encoder.pos_embedding")
            .rename("patch_embed.proj.{}", "conv_proj.{}")
            .rename("norm.{}", "encoder.ln.{}")
            .rename("head.{}", "heads.head.{}")
            .rename("blocks.{}.attn.qkv.{}", "encoder.layers.encoder_layer_{}.self_attention.in_proj_{}");
        for (from, to) in [
            ("norm1", "ln_1"),
            ("norm2", "ln_2"),
            ("attn.proj", "self_attention.out_proj"),
            ("mlp.fc1", "mlp.0"),
            ("mlp.fc2", "mlp.3"),
        ] {
            let (from, to) = block(from, to);
            names = names.rename(&from, &to);
        }
        names
    }

    /// What the head sees: the vector that looked at all squares.
    #[track_caller]
    pub fn try_features(&self, x: &Tensor) -> Result<Tensor> {
        layer(self, || {
            let squares = self.conv_proj.try_forward(x)?.try_flatten(2, 3)?.try_transpose(1, 2)?;
            let width = squares.size(2);
            let token = self.class_token.try_expand([squares.size(0), 1, width])?;
            let x = Tensor::try_cat(&[token, squares], 1)?.try_add(&self.encoder.pos_embedding)?;
            let x = self.encoder.ln.try_forward(&self.encoder.layers.try_forward(&x)?)?;
            x.try_select(1, 0)
        })
    }

    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.try_features(x).and_then(|y| self.heads.head.try_forward(&y)).unwrap_or_else(|e| e.raise())
    }
}
