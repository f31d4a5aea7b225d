//! From scores to weights by cooperative matrices' threads: exp(score - level). Where nothing is added to the products
//! of queries and keys they serve as scores: exp2 takes them as they are, with scale and log2 e in one factor.

use super::problem::Problem;
use std::f32::consts::LOG2_E;

/// How far the level of the forward pass may lag behind the largest score: f16 holds exp(8) with room to spare.
const RESCALE_THRESHOLD: f32 = 8.0;

pub(super) struct Exponent {
    /// The scale, where products serve as scores.
    products: Option<f32>,
}

impl Exponent {
    pub fn of(p: &Problem) -> Exponent {
        // A factor below 0 would turn the order of scores round, and one that is very large or small leaves the range of f32.
        let is_usual =
            p.factor > 0.0 && (p.factor * LOG2_E).is_finite() && (RESCALE_THRESHOLD / p.factor).is_finite();
        Exponent { products: (p.mask.is_none() && is_usual).then_some(p.factor) }
    }

    /// The statements that scale products and add the mask, unless products serve as scores.
    pub fn scores(&self, finish: String) -> String {
        if self.products.is_some() { String::new() } else { finish }
    }

    /// How far a peak of scores may lag behind.
    pub fn lag(&self) -> String {
        format!("{:?}f", RESCALE_THRESHOLD / self.products.unwrap_or(1.0))
    }

    /// The level of a score.
    pub fn level_of_score(&self, score: &str) -> String {
        self.products.map_or(score.into(), |scale| format!("({score} * {:?}f)", scale * LOG2_E))
    }

    /// The level of a log-sum-exp.
    pub fn level_of_lse(&self, lse: &str) -> String {
        if self.products.is_some() { format!("({lse} * {LOG2_E:?}f)") } else { lse.into() }
    }

    /// A score as the log-sum-exp counts.
    pub fn natural(&self, score: &str) -> String {
        self.products.map_or(score.into(), |scale| format!("({score} * {scale:?}f)"))
    }

    /// The weights of four scores, or of one, less a level of the same type.
    pub fn weight(&self, scores: &str, level: &str, four: bool) -> String {
        let Some(scale) = self.products else { return format!("exp({scores} - {level})") };
        let factor = format!("{:?}f", scale * LOG2_E);
        let factor = if four { format!("vec4<f32>({factor})") } else { factor };
        format!("exp2(fma({scores}, {factor}, -{level}))")
    }
}
