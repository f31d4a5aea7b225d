//! Taking over all values of a module by name.

use crate::call::Call;
use crate::error::{Result, bail};
use crate::shape::Shape;
use crate::state::StateDict;
use crate::tensor::{Tensor, try_realize_all};
use std::collections::HashSet;
use std::fmt;

/// What a [`StateDict`] and a module did not have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Names of the module that were not given.
    pub missing: Vec<String>,
    /// Names that were given and that the module does not have.
    pub unexpected: Vec<String>,
    /// Names with the module's shape and the one that was given.
    pub mis_shaped: Vec<(String, Shape, Shape)>,
}

impl LoadReport {
    /// Whether everything fitted.
    pub fn is_complete(&self) -> bool {
        *self == LoadReport::default()
    }
}

/// At most this many names are spelt out.
const SPELT_OUT: usize = 8;

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_complete() {
            return f.write_str("everything was loaded");
        }
        let shapes: Vec<String> = self
            .mis_shaped
            .iter()
            .map(|(name, ours, theirs)| format!("{name} (here {ours}, given {theirs})"))
            .collect();
        let mut first = true;
        for (what, names) in
            [("missing", &self.missing), ("unexpected", &self.unexpected), ("of another shape", &shapes)]
        {
            if names.is_empty() {
                continue;
            }
            let more = names.len().saturating_sub(SPELT_OUT);
            let shown = names[..names.len() - more].join(", ");
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            write!(f, "{}{what}: {shown}{more}", if first { "" } else { "; " })?;
            first = false;
        }
        Ok(())
    }
}

/// Gives the tensors of `own` the values that `given` has for them.
#[track_caller]
pub(super) fn load(own: &StateDict, given: &StateDict, strict: bool) -> Result<LoadReport> {
    let _call = Call::enter("load_state_dict");
    let mut report = LoadReport::default();
    let mut pairs = Vec::new();
    for (name, t) in own.iter() {
        match given.get(name) {
            None => report.missing.push(name.to_string()),
            Some(new) if new.shape() != t.shape() => {
                report.mis_shaped.push((name.to_string(), t.shape(), new.shape()));
            }
            Some(new) => pairs.push((t, new)),
        }
    }
    forgive_shared_names(own, given, &mut report);
    report.unexpected = given.names().filter(|name| own.get(name).is_none()).map(String::from).collect();
    let fits = report.mis_shaped.is_empty()
        && (!strict || (report.missing.is_empty() && report.unexpected.is_empty()));
    if !fits {
        bail!(Argument, "the state does not fit the module: {report}");
    }
    let converted: Vec<(&Tensor, Tensor)> =
        pairs.into_iter().map(|(t, new)| Ok((t, fitted(new, t)?))).collect::<Result<_>>()?;
    for (t, new) in &converted {
        t.try_assign(new)?;
    }
    try_realize_all(&converted.into_iter().map(|(t, _)| t.clone()).collect::<Vec<_>>())?;
    Ok(report)
}

/// A value as a tensor of the type and on the device of `like`. The CPU has all types, so it is converted there.
fn fitted(value: &Tensor, like: &Tensor) -> Result<Tensor> {
    let (value, device, dtype) = (value.detach(), like.device(), like.dtype());
    if value.device().is_gpu() {
        return value.try_to_device(device)?.try_to_dtype(dtype);
    }
    value.try_to_dtype(dtype)?.try_to_device(device)
}

/// A tensor with two names needs only one of them to be given: files often leave the other out.
fn forgive_shared_names(own: &StateDict, given: &StateDict, report: &mut LoadReport) {
    let had: HashSet<usize> =
        own.iter().filter(|(name, _)| given.get(name).is_some()).map(|(_, t)| t.address()).collect();
    report.missing.retain(|name| own.get(name).is_none_or(|t| !had.contains(&t.address())));
}
