//! Functions of tensors that need autograd: losses, some with a gradient of their own, one that computes its forward pass again.

mod cross_entropy;
mod linear_cross_entropy;
mod loss;
mod metric_loss;

pub use cross_entropy::{
    CrossEntropyOptions, NllOptions, cross_entropy, cross_entropy_with, nll_loss, nll_loss_with,
    try_cross_entropy, try_cross_entropy_with, try_nll_loss, try_nll_loss_with,
};
pub use linear_cross_entropy::{
    LinearCrossEntropyOptions, linear_cross_entropy, linear_cross_entropy_with, try_linear_cross_entropy,
    try_linear_cross_entropy_with,
};
pub use loss::{
    BceOptions, KlDivOptions, Reduction, bce_loss, bce_loss_with, bce_with_logits, bce_with_logits_with,
    huber_loss, huber_loss_with, kl_div, kl_div_with, l1_loss, l1_loss_with, mse_loss, mse_loss_with,
    smooth_l1_loss, smooth_l1_loss_with, try_bce_loss, try_bce_loss_with, try_bce_with_logits,
    try_bce_with_logits_with, try_huber_loss, try_huber_loss_with, try_kl_div, try_kl_div_with, try_l1_loss,
    try_l1_loss_with, try_mse_loss, try_mse_loss_with, try_smooth_l1_loss, try_smooth_l1_loss_with,
};
pub use metric_loss::{
    CosineEmbeddingOptions, TripletMarginOptions, cosine_embedding_loss, cosine_embedding_loss_with,
    triplet_margin_loss, triplet_margin_loss_with, try_cosine_embedding_loss, try_cosine_embedding_loss_with,
    try_triplet_margin_loss, try_triplet_margin_loss_with,
};
