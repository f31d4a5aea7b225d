//! A plan that runs again and again. Its first program is soon compiled, of shaders that other plans have too; one that has
//! lasted gets another, of fewer dispatches, whose shaders nobody else has.

use super::assemble::Usage;
use super::context::Context;
use super::program::GpuProgram;
use crate::error::Result;
use crate::graph::Storage;
use crate::plan::Plan;
use crate::plan::executor::{Argument, Program};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// Runs of a plan that will run as often again, and make up for the time that compiling takes.
const MANY: u32 = 1024;

/// `VOLTA_MANY_RUNS` says after how many runs that is, to test what comes then.
fn many() -> u32 {
    std::env::var("VOLTA_MANY_RUNS").ok().and_then(|v| v.parse().ok()).unwrap_or(MANY)
}

pub(super) struct Lasting {
    context: Arc<Context>,
    program: Mutex<Arc<GpuProgram>>,
    runs: AtomicU32,
    many: u32,
}

impl Lasting {
    pub fn new(context: Arc<Context>, plan: &Plan) -> Result<Lasting> {
        let (choices, many) = (context.kept().choices.clone(), many());
        let usage = if many == 0 { Usage::Often } else { Usage::Seldom };
        let program = GpuProgram::new(context.clone(), plan, usage, &choices)?;
        Ok(Lasting { context, program: Mutex::new(Arc::new(program)), runs: AtomicU32::new(0), many })
    }

    fn program(&self) -> Arc<GpuProgram> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the program that is worth it by now.
    fn settle(&self, plan: &Plan) {
        static WARNED: Once = Once::new();
        let choices = self.context.kept().choices.clone();
        match GpuProgram::new(self.context.clone(), plan, Usage::Often, &choices) {
            Ok(program) if program.dispatches() < self.program().dispatches() => {
                *self.program.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(program);
            }
            Ok(_) => {}
            // A device that is lost says so when the plan runs.
            Err(_) if self.context.is_lost() => {}
            // What ran until now goes on running.
            Err(error) => WARNED.call_once(|| eprintln!("warning: a plan stays slower: {}", error.message())),
        }
    }
}

impl Program for Lasting {
    fn is_lost(&self) -> bool {
        self.context.is_lost()
    }

    fn run(&self, plan: &Plan, inputs: &[Storage], arguments: &[Argument]) -> Result<Vec<Storage>> {
        if self.many > 0 && self.runs.fetch_add(1, Relaxed) == self.many {
            self.settle(plan);
        }
        self.program().run(plan, inputs, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::MANY;
    use crate::tensor::Tensor;
    use crate::{Device, default_device};

    /// On the GPU that `VOLTA_DEVICE=gpu` picks: the program of fewer dispatches takes over in the middle of a loop that reads
    /// what it computes, now and then, and keeps some of it.
    #[test]
    fn numbers_stay_the_same_when_a_plan_has_lasted() {
        if default_device() == Device::Cpu {
            return;
        }
        let state = Tensor::full([16], 0.0f32).realize().assignable();
        let mut kept = Vec::new();
        for step in 1..MANY + 40 {
            let next = &state + 1.0;
            let (sum, first) = (next.sum(), next.cumsum(0).min());
            state.assign(&(first + &state * 0.0));
            let wanted = 16.0 * step as f32;
            if step % 3 == 0 {
                assert_eq!(sum.item::<f32>(), wanted, "step {step}");
            }
            if step % 50 == 0 {
                kept.push((sum, wanted));
            }
            assert_eq!(state.to_vec::<f32>(), [step as f32; 16], "step {step}");
        }
        for (sum, wanted) in kept {
            assert_eq!(sum.item::<f32>(), wanted);
        }
    }
}
