//! Programs of ops, each known both as a call on tensors and as a naive loop.

use crate::reference::Array;
use volta::Tensor;

pub type OnTensors = Box<dyn Fn(&[&Tensor]) -> Tensor>;
pub type OnArrays = Box<dyn Fn(&[&Array]) -> Array>;

pub struct Step {
    pub name: String,
    pub inputs: Vec<usize>,
    pub tensor: OnTensors,
    pub array: OnArrays,
}

/// Values are numbered: the leaves first, then one a step.
pub struct Program {
    pub leaves: Vec<Vec<usize>>,
    pub steps: Vec<Step>,
    pub outputs: Vec<usize>,
    /// Whether some gradient is stopped on its way.
    pub detaches: bool,
}

impl Program {
    /// Fewer outputs to try, the earliest values first: each alone, then in pairs.
    pub fn smaller_outputs(&self) -> Vec<Vec<usize>> {
        let all = self.leaves.len()..self.leaves.len() + self.steps.len();
        let mut tries: Vec<Vec<usize>> = all.clone().map(|k| vec![k]).collect();
        tries.extend(
            self.outputs
                .iter()
                .flat_map(|&b| all.clone().take_while(move |&a| a < b).map(move |a| vec![a, b])),
        );
        tries
    }

    /// Drops the steps that no output depends on.
    pub fn forget_unused(&mut self) {
        let first = self.leaves.len();
        let mut needed = vec![false; first + self.steps.len()];
        self.outputs.iter().for_each(|&k| needed[k] = true);
        for (k, step) in self.steps.iter().enumerate().rev() {
            if needed[first + k] {
                step.inputs.iter().for_each(|&i| needed[i] = true);
            }
        }
        let mut place = vec![0; needed.len()];
        let mut count = 0;
        for k in 0..needed.len() {
            place[k] = count;
            count += usize::from(k < first || needed[k]);
        }
        let mut k = first;
        self.steps.retain(|_| {
            k += 1;
            needed[k - 1]
        });
        self.steps.iter_mut().for_each(|s| s.inputs.iter_mut().for_each(|i| *i = place[*i]));
        self.outputs.iter_mut().for_each(|k| *k = place[*k]);
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (k, shape) in self.leaves.iter().enumerate() {
            writeln!(f, "  v{k} = leaf {shape:?}")?;
        }
        for (k, step) in self.steps.iter().enumerate() {
            writeln!(f, "  v{} = {} of {:?}", self.leaves.len() + k, step.name, step.inputs)?;
        }
        write!(f, "  outputs {:?}", self.outputs)
    }
}
