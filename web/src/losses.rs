//! Losses by name. Their operands are what people look at after a step, so they stay.

use crate::arguments::Arguments;
use crate::error::{Thrown, argument, js};
use crate::handles::{hold_result, tensors};
use volta::{
    BceOptions, CosineEmbeddingOptions, CrossEntropyOptions, KlDivOptions, NllOptions, TripletMarginOptions,
    try_bce_loss_with, try_bce_with_logits_with, try_cosine_embedding_loss_with, try_cross_entropy_with,
    try_huber_loss_with, try_kl_div_with, try_l1_loss_with, try_mse_loss_with, try_nll_loss_with,
    try_smooth_l1_loss_with, try_triplet_margin_loss_with,
};
use wasm_bindgen::prelude::wasm_bindgen;

/// A loss: the reduction comes first among the numbers. Of tensors that may be left out, a mask says which are there.
#[wasm_bindgen]
pub fn loss(name: &str, handles: &[u32], numbers: &[f64]) -> Thrown<u32> {
    let tensors = tensors(handles)?;
    let mut a = Arguments::new(name, &tensors, numbers);
    let reduction = a.reduction()?;
    let (input, target) = (a.tensor(0)?, a.tensor(1)?);
    let result = match name {
        "mse_loss" => try_mse_loss_with(input, target, reduction),
        "l1_loss" => try_l1_loss_with(input, target, reduction),
        "smooth_l1_loss" => try_smooth_l1_loss_with(input, target, a.number()?, reduction),
        "huber_loss" => try_huber_loss_with(input, target, a.number()?, reduction),
        "bce_loss" | "bce_with_logits" => {
            let (weighted, positive) = (a.flag()?, a.flag()?);
            let weight = a.optional(2).filter(|_| weighted);
            let pos_weight = a.optional(2 + usize::from(weighted)).filter(|_| positive);
            let options = BceOptions { weight, pos_weight, reduction };
            if name == "bce_loss" {
                try_bce_loss_with(input, target, options)
            } else {
                try_bce_with_logits_with(input, target, options)
            }
        }
        "cross_entropy" => {
            let (ignore_index, label_smoothing) = (a.maybe()?.map(|x| x as i64), a.number()?);
            let weight = a.optional(2);
            try_cross_entropy_with(
                input,
                target,
                CrossEntropyOptions { weight, ignore_index, label_smoothing, reduction },
            )
        }
        "nll_loss" => {
            let ignore_index = a.maybe()?.map(|x| x as i64);
            try_nll_loss_with(input, target, NllOptions { weight: a.optional(2), ignore_index, reduction })
        }
        "kl_div" => try_kl_div_with(input, target, KlDivOptions { log_target: a.flag()?, reduction }),
        "cosine_embedding_loss" => {
            let options = CosineEmbeddingOptions { margin: a.number()?, reduction };
            try_cosine_embedding_loss_with(input, target, a.tensor(2)?, options)
        }
        "triplet_margin_loss" => {
            let (margin, p) = (a.number()?, a.number()?);
            let options = TripletMarginOptions { margin, p, reduction, ..TripletMarginOptions::default() };
            try_triplet_margin_loss_with(input, target, a.tensor(2)?, options)
        }
        other => return Err(argument(&format!("no loss is called {other:?}"))),
    };
    result.map(hold_result).map_err(js)
}
