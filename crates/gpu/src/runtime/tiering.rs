//! A plan that runs again and again. Its first program is soon compiled, of shaders that other plans have too; one that has
//! lasted gets another, of fewer dispatches, whose shaders nobody else has.

use super::context::Context;
use super::program::GpuProgram;
use crate::lower::CompileMode;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use volta_ir::buffer::Storage;
use volta_ir::error::Result;
use volta_ir::plan::Plan;
use volta_ir::plan::executor::{Argument, Outcome, Program};
use volta_ir::warn::warn;

/// Runs of a plan that will run as often again, and make up for the time that compiling takes.
const TIER_UP_RUNS: u32 = 1024;

/// `VOLTA_TIER_UP_RUNS` says after how many runs that is, to test what comes then.
fn many() -> u32 {
    volta_ir::environment::values().tier_up_runs.unwrap_or(TIER_UP_RUNS)
}

pub(crate) struct TieredProgram {
    context: Arc<Context>,
    programs: Mutex<Programs>,
    runs: AtomicU32,
    /// Runs after which it gets the other program; none if it has it, or stays as it is.
    many: Option<u32>,
}

struct Programs {
    current: Arc<GpuProgram>,
    /// The one that will be worth it, until its shaders are compiled.
    next: Option<Arc<GpuProgram>>,
}

impl TieredProgram {
    /// A program of a plan; one that is `checked` kernel by kernel stays as it is.
    pub fn new(context: Arc<Context>, plan: &Plan, checked: bool) -> Result<TieredProgram> {
        let selections = context.tuned().selections.clone();
        let (usage, many) = match many() {
            _ if checked => (CompileMode::Checked, None),
            0 => (CompileMode::Optimized, None),
            // A browser's software adapter takes seconds for a shader.
            _ if cfg!(target_arch = "wasm32") && context.is_software => (CompileMode::Baseline, None),
            many => (CompileMode::Baseline, Some(many)),
        };
        let current = Arc::new(GpuProgram::new(context.clone(), plan, usage, &selections)?);
        let programs = Mutex::new(Programs { current, next: None });
        Ok(TieredProgram { context, programs, runs: AtomicU32::new(0), many })
    }

    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The best program that is ready.
    fn program(&self) -> Arc<GpuProgram> {
        let mut programs = self.programs();
        if let Some(next) = programs.next.take_if(|next| next.is_ready())
            && !next.is_refused()
        {
            programs.current = next;
        }
        programs.current.clone()
    }

    /// Makes the program that is worth it by now.
    fn recompile_optimized(&self, plan: &Plan) {
        static WARNED: Once = Once::new();
        let selections = self.context.tuned().selections.clone();
        match GpuProgram::new(self.context.clone(), plan, CompileMode::Optimized, &selections) {
            Ok(program) if program.dispatches() < self.program().dispatches() => {
                self.programs().next = Some(Arc::new(program));
            }
            Ok(_) => {}
            // A device that is lost says so when the plan runs.
            Err(_) if self.context.is_lost() => {}
            // What ran until now goes on running.
            Err(error) => WARNED.call_once(|| warn(format_args!("a plan stays slower: {}", error.message()))),
        }
    }
}

impl Program for TieredProgram {
    fn is_lost(&self) -> bool {
        self.context.is_lost() || self.programs().current.is_refused()
    }

    fn scratch_bytes(&self, plan: &Plan) -> usize {
        self.programs().current.arena_bytes().saturating_sub(plan.layout.arena_bytes())
    }

    fn run(
        &self,
        plan: &Plan,
        inputs: &[Storage],
        arguments: &[Argument],
        begun: &Cell<bool>,
    ) -> Result<Outcome> {
        if self.many.is_some_and(|many| self.runs.fetch_add(1, Relaxed) == many) {
            self.recompile_optimized(plan);
        }
        self.program().run(plan, inputs, arguments, begun)
    }
}

/// On the GPU that `VOLTA_DEVICE=gpu` picks.
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use volta::with_last_plan;

    use crate::memory::transfer;
    use crate::now;
    use crate::runtime::context;
    use volta::{DType, Device, Tensor, default_device, realize_all};
    use volta_ir::telemetry::counters;

    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn a_plan_that_has_lasted_gets_a_program_of_fewer_dispatches() {
        let Device::Gpu(index) = default_device() else { panic!("VOLTA_DEVICE=gpu picks one") };
        let context = context::open(index).expect("the GPU is there");
        let x = Tensor::rand([20]);
        let bytes: Vec<u8> = x.to_vec::<f32>().into_iter().flat_map(f32::to_le_bytes).collect();
        let input = transfer::upload(&context.memory, DType::F32, &bytes).expect("there is memory");
        let result = x.cumsum(0).exp().cumsum(0);
        realize_all(&[&result].map(Tensor::clone));
        let plan = with_last_plan(Plan::clone);
        let tiered = TieredProgram {
            many: Some(3),
            ..TieredProgram::new(context, &plan, false).expect("it is compiled")
        };
        let before = tiered.program().dispatches();
        for run in 0..8 {
            let compiled = counters().shaders_compiled;
            let Outcome { outputs, .. } =
                tiered.run(&plan, std::slice::from_ref(&input), &[], &Cell::new(false)).expect("it runs");
            let bytes = now(transfer::read(outputs[0].clone(), DType::F32, 0..20)).expect("it is read");
            let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            assert_eq!(values, result.to_vec::<f32>(), "run {run}");
            assert_eq!(tiered.program().dispatches() < before, run >= 3, "run {run}");
            // Other tests compile shaders meanwhile.
            assert!(run != 3 || counters().shaders_compiled > compiled, "what was compiled is counted");
        }
    }

    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn loops_go_on_when_their_plan_has_lasted() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        let state = Tensor::full([16], 0.0f32).realize().assignable();
        let mut kept = Vec::new();
        for step in 1..TIER_UP_RUNS + 40 {
            let next = &state + 1.0;
            let (sum, first) = (next.sum(), next.cumsum(0).min());
            state.assign(&(first + &state * 0.0));
            realize_all(&[sum.clone(), state.clone()]);
            let wanted = 16.0 * step as f32;
            match step % 50 {
                0 => kept.push((sum, wanted)),
                _ => assert_eq!(sum.item::<f32>(), wanted, "step {step}"),
            }
            assert_eq!(state.to_vec::<f32>(), [step as f32; 16], "step {step}");
        }
        for (sum, wanted) in kept {
            assert_eq!(sum.item::<f32>(), wanted);
        }
    }
}
