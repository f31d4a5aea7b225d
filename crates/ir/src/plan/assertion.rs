//! What a plan asserts of integers: indices that must name a place, divisors that must not be zero. A kernel that computes
//! another one goes on, memory-safe, and reports it; whoever waits for the device next is given the error.

use super::graph::PlanGraph;
use super::kernel::{MapKernel, Step};
use crate::call::Origin;
use crate::error::{Error, ErrorKind};
use crate::op::{Assertion, Op};
use crate::shape::Shape;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// An assertion, and the call that made it.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    pub assertion: Assertion,
    /// Of the integers that it is about.
    pub shape: Shape,
    pub origin: Origin,
}

impl Site {
    /// The error of an integer that it does not hold of.
    pub fn error(&self, number: i64) -> Error {
        let shape = self.shape;
        let (kind, message) = match self.assertion {
            Assertion::InBounds { extent } => {
                let message = format!(
                    "index {number} is out of bounds for an axis of {extent} (indices of shape {shape})"
                );
                (ErrorKind::Index, message)
            }
            Assertion::NonZero => (
                ErrorKind::ZeroDivision,
                format!("an integer is divided by zero (divisors of shape {shape})"),
            ),
        };
        Error::at(kind, message, self.origin)
    }
}

/// All that a plan asserts.
#[derive(Debug)]
pub struct Sites {
    /// The number of its first site among those of all plans, which are 1 and more.
    pub first: u32,
    pub all: Vec<Site>,
}

impl Sites {
    /// Numbers the sites of kernels, whose steps name nodes until then, in the order of the kernels.
    pub fn number<'m>(maps: impl Iterator<Item = &'m mut MapKernel>, graph: &PlanGraph) -> Sites {
        let (mut nodes, mut known) = (Vec::new(), HashMap::new());
        for step in maps.flat_map(|map| &mut map.code).map(|i| &mut i.step) {
            if let Step::Assert { site, .. } = step {
                let node = *site;
                *site = *known.entry(node).or_insert_with(|| {
                    nodes.push(node);
                    nodes.len() - 1
                });
            }
        }
        let site = |n: usize| {
            let node = &graph.nodes[n];
            let Op::Assert(assertion) = node.op else {
                unreachable!("a step of this node asserts something")
            };
            Site { assertion, shape: node.shape, origin: node.origin }
        };
        Sites::of(nodes.into_iter().map(site).collect())
    }

    /// Those of a plan that asserts nothing.
    pub fn none() -> Sites {
        Sites { first: 1, all: Vec::new() }
    }

    fn of(all: Vec<Site>) -> Sites {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Sites { first: NEXT.fetch_add(all.len() as u32, Relaxed), all }
    }

    /// The place here of the site that has this number among those of all plans.
    pub fn place(&self, number: u32) -> Option<usize> {
        let place = number.checked_sub(self.first)? as usize;
        (place < self.all.len()).then_some(place)
    }
}

/// Whether a kernel asserts what stands at this site of its plan.
pub fn asserts(kernel: &super::kernel::Kernel, at: usize) -> bool {
    let is_it = |step: &Step| matches!(step, Step::Assert { site, .. } if *site == at);
    kernel.maps().any(|map| map.code.iter().any(|i| is_it(&i.step)))
}
