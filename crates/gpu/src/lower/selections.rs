//! Which variant is taken for each problem, where one was found to be the fastest.

use super::problem;
use crate::caps::Caps;
use crate::kernels::select::{self, Variant};
use std::collections::BTreeMap;
use volta_ir::plan::kernel::NativeKernel;

/// The name of the variant that is taken without a choice.
pub(crate) const DEFAULT: &str = "default";

/// Names of variants, by problem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selections(BTreeMap<String, String>);

impl Selections {
    /// One choice and no more.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn only(problem: &str, variant: &str) -> Selections {
        Selections([(problem.to_string(), variant.to_string())].into())
    }

    /// The variant that was chosen for a kernel; none if there is no choice, or it is not one of those that this adapter has.
    pub fn of(&self, kernel: &NativeKernel, caps: &Caps) -> Option<Variant> {
        if self.0.is_empty() {
            return None;
        }
        let name = self.get(&problem::name(kernel))?;
        select::variants(kernel, caps).into_iter().find(|variant| variant.to_string() == name)
    }

    pub fn get(&self, problem: &str) -> Option<&str> {
        self.0.get(problem).map(String::as_str)
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub fn insert(&mut self, problem: &str, variant: &str) {
        self.0.insert(problem.into(), variant.into());
    }

    /// The text of a file: whose it is, then a line for each problem.
    pub fn to_text(&self, owner: &str) -> String {
        let lines = self.0.iter().map(|(problem, variant)| format!("{problem}\t{variant}\n"));
        format!("{owner}\n{}", lines.collect::<String>())
    }

    pub fn from_text(text: &str, owner: &str) -> Option<Selections> {
        let mut lines = text.lines();
        if lines.next()? != owner {
            return None;
        }
        let pair = |line: &str| line.split_once('\t').map(|(p, v)| (p.to_string(), v.to_string()));
        lines.map(pair).collect::<Option<_>>().map(Selections)
    }

    /// Takes another's choices over its own.
    pub fn extend(&mut self, new: Selections) {
        self.0.extend(new.0);
    }
}
