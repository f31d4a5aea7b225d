//! Several elementwise ops as one: what is done alike to many tensors is recorded once, and is one node for each.

use super::Op;
use crate::dtype::DType;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An elementwise program over the sources of a node. Sources have the node's shape, or no axes: then they are the same
/// everywhere.
pub struct FusedElementwise {
    /// Tells its program from all others.
    pub id: u64,
    /// Every step uses earlier ones; the last one is the result.
    pub steps: Vec<FormulaStep>,
}

#[derive(Clone)]
pub enum FormulaStep {
    Source(usize),
    /// An elementwise op of earlier steps.
    Apply {
        op: Op,
        of: SmallVec<[usize; 3]>,
        dtype: DType,
    },
}

impl FusedElementwise {
    /// The formula of these steps; equal steps are one formula.
    pub fn of(steps: Vec<FormulaStep>) -> Arc<FusedElementwise> {
        static KNOWN: Mutex<Option<HashMap<Vec<u64>, Arc<FusedElementwise>>>> = Mutex::new(None);
        let mut key = Vec::new();
        for step in &steps {
            match step {
                FormulaStep::Source(k) => key.push(*k as u64),
                FormulaStep::Apply { op, of, dtype } => {
                    key.push(1 << 32 | (of.len() as u64) << 16 | *dtype as u64);
                    op.encode(&mut key);
                    key.extend(of.iter().map(|&k| k as u64));
                }
            }
        }
        // Whoever panicked while holding it left a whole formula, or none.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let id = known.len() as u64;
        known.entry(key).or_insert_with(|| Arc::new(FusedElementwise { id, steps })).clone()
    }
}
