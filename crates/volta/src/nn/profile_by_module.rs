//! Where the time goes, by the layers of a model.

use super::call::layer_of;
use super::module::{Module, walk};
use super::visit::Item;
use crate::call::Layer;
use crate::telemetry::{OpReport, Profile};
use std::collections::HashMap;

/// The time of a [`profile`](crate::profile()) by the layers of `model`, forward and gradients together, each under its name
/// (`blocks.0.up (Linear)`); what no layer of it called, such as the loss and the optimizer's step, is one entry. Time
/// counts for the innermost layer. Printing it gives a table.
///
/// A layer is known by its place in memory, so the model must stand where it stood when it ran first.
///
/// ```
/// use volta::{Linear, Module, ReLU, Sequential, Tensor, nn::by_module, profile};
/// let model = Sequential::new(vec![
///     Box::new(Linear::new(64, 128, true)),
///     Box::new(ReLU),
///     Box::new(Linear::new(128, 10, true)),
/// ]);
/// let x = Tensor::randn([32, 64]);
/// let (_, profile) = profile(|| {
///     model.forward(&x).realize();
/// });
/// let report = by_module(&profile, &model);
/// assert!(report.ops.iter().any(|entry| entry.name == "0 (Linear)"));
/// println!("{report}");
/// ```
pub fn by_module(profile: &Profile, model: &(impl Module + ?Sized)) -> OpReport {
    let mut names: HashMap<Layer, String> = HashMap::new();
    if let Some(whole) = layer_of(model) {
        names.insert(whole, format!("({})", whole.kind));
    }
    walk(model, &mut |name, item| {
        if let Item::Child(module) = item
            && let Some(layer) = layer_of(module)
        {
            names.insert(layer, format!("{name} ({})", layer.kind));
        }
    });
    profile.by_layer(|layer| {
        let known = layer.as_ref().and_then(|layer| names.get(layer).cloned());
        known.unwrap_or_else(|| "outside of the model".into())
    })
}
