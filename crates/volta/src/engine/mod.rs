//! The engine: what is asked for is captured, its plan compiled or found, run, and the values handed
//! to their nodes.

pub(crate) mod absent;
mod cache;
mod capture;
mod devices;
mod dry_run;
#[cfg(all(test, feature = "gpu", not(target_arch = "wasm32")))]
mod gpu_tests;
#[cfg(test)]
mod interrupt_tests;
mod memory_limit;
mod poison;
mod settings;
mod submit;

pub(crate) use dry_run::assume;
pub use dry_run::plan_only;
pub use memory_limit::{memory_limit, set_memory_limit};
pub use settings::{guards_enabled, set_guards, with_fusion};
pub(crate) use submit::{Reason, begin_independent, submit};

use crate::device::Device;
use crate::error::Result;
use crate::graph::{Buffer, Node, Storage, forget_recorded, recycle, register};
use crate::plan::Plan;
use crate::plan::executor::{Executor, Outcome, Program};
use crate::plan::report::PlanReport;
use crate::telemetry::{count_compile, count_kernels, count_replay, span};
use crate::wait::wait_for;
use cache::Cache;
use capture::Capture;
use memory_limit::Limit;
use poison::DonationGuard;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct Prepared {
    plan: Arc<Plan>,
    program: Box<dyn Program>,
    /// The limit that it was made under.
    limit: Option<Limit>,
}

#[derive(Default)]
struct Engine {
    plans: Cache<Prepared>,
    capture: Capture,
}

thread_local! {
    static LAST: RefCell<Option<Arc<Prepared>>> = const { RefCell::new(None) };
}

/// Serialises plan execution on a device: inputs may be overwritten while a plan runs. No device waits for what another one's engine
/// compiles or runs, since no plan reads what is on another device.
fn engine(device: Device) -> MutexGuard<'static, Engine> {
    static ENGINES: Mutex<BTreeMap<u64, &'static Mutex<Engine>>> = Mutex::new(BTreeMap::new());
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    // One for each device that there is: they stay for as long as the program runs.
    let engine = *engines.entry(device_number(device)).or_insert_with(|| Box::leak(Box::default()));
    drop(engines);
    // A panic in a kernel leaves the engine usable: captures start from nothing.
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn executor(device: Device) -> Result<&'static dyn Executor> {
    volta_ir::environment::check()?;
    match device {
        Device::Cpu => Ok(volta_cpu::executor()),
        #[cfg(feature = "gpu")]
        Device::Gpu(index) => volta_gpu::executor(index),
        #[cfg(not(feature = "gpu"))]
        Device::Gpu(_) => Err(devices::no_gpus()),
    }
}

/// An error if these values were overwritten by a run that failed, or never computed.
pub(crate) fn check_values(values: &dyn Buffer) -> Result<()> {
    poison::check(values)?;
    absent::check(values)?;
    dry_run::check(values)
}

/// Runs one plan for each device that has something to compute; no graph reaches across devices.
fn run(mut roots: Vec<Arc<Node>>, mut pending: Vec<Arc<Node>>) -> Result<()> {
    while let Some(device) = roots.first().or(pending.first()).map(|n| n.device) {
        let take = |nodes: &mut Vec<Arc<Node>>| -> Vec<Arc<Node>> {
            if nodes.iter().all(|n| n.device == device) {
                return std::mem::take(nodes);
            }
            nodes.extract_if(.., |n| n.device == device).collect()
        };
        let (here, waiting) = (take(&mut roots), take(&mut pending));
        if let Err(error) = run_on(device, here, waiting) {
            pending.iter().for_each(register);
            return Err(error);
        }
    }
    Ok(())
}

fn run_on(device: Device, roots: Vec<Arc<Node>>, pending: Vec<Arc<Node>>) -> Result<()> {
    crate::interrupt::check_not_asking()?;
    let executor = executor(device)?;
    let _brought = match absent::bring(roots.iter().chain(&pending)) {
        Ok(brought) => brought,
        Err(error) => {
            pending.iter().for_each(register);
            return Err(error);
        }
    };
    let mut engine = engine(device);
    let Engine { plans, capture } = &mut *engine;
    let result = compute(plans, capture, (device, executor), roots, pending);
    // Views, rules and what has stand-ins stay pending, and are looked at again next time.
    capture.still_pending().for_each(register);
    let gone = std::mem::take(&mut capture.nodes);
    capture.clear();
    drop(engine);
    recycle(gone);
    forget_recorded();
    result
}

fn compute(
    plans: &mut Cache<Prepared>,
    capture: &mut Capture,
    (device, executor): (Device, &'static dyn Executor),
    roots: Vec<Arc<Node>>,
    pending: Vec<Arc<Node>>,
) -> Result<()> {
    let guarded = guards_enabled();
    // A guard names one op, so each has a kernel of its own.
    let fuse = settings::fusion_enabled() && !guarded;
    let capturing = span("capture");
    capture.collect(
        roots,
        pending,
        [
            u64::from(fuse) | if guarded { capture::GUARDED } else { 0 },
            device_number(device),
            executor.generation()?,
        ],
    );
    drop(capturing);
    if capture.nothing_to_do() {
        return Ok(());
    }
    capture.check_inputs()?;
    let limit = memory_limit::of(device, executor)?;
    let is_usable = |found: &Prepared| !found.program.is_lost() && memory_limit::suits(found, limit);
    let prepared = match plans.get(&capture.key).filter(|found| is_usable(found)) {
        Some(found) => {
            count_replay();
            found.clone()
        }
        None => {
            let (plan, program) = prepare(capture, executor, limit, fuse, guarded)?;
            // Programs of a device that was lost hold on to it.
            plans.retain(|prepared| !prepared.program.is_lost());
            let prepared = Arc::new(Prepared { plan: Arc::new(plan), program, limit });
            count_compile();
            plans.insert(&capture.key, prepared.clone());
            prepared
        }
    };
    LAST.set(Some(prepared.clone()));
    #[cfg(all(feature = "gpu", not(target_arch = "wasm32")))]
    crate::telemetry::record_plan(device, &prepared.plan);
    let plan = &*prepared.plan;
    let inputs: Vec<Storage> = plan.layout.inputs.iter().map(|&n| capture.take_input(n)).collect();
    let arguments: Vec<_> = plan.arguments.iter().map(|&n| capture::argument(&capture.nodes[n].op)).collect();
    count_kernels(plan.kernels.len() as u64);
    let Outcome { outputs, failed } = {
        let _running = span("run");
        let lent = DonationGuard::by(capture);
        crate::telemetry::set_device(device);
        let outcome = prepared.program.run(plan, &inputs, &arguments, &lent.begun)?;
        lent.returned();
        outcome
    };
    drop(inputs);
    capture.assign_outputs(plan.layout.outputs.iter().map(|o| o.slot).zip(outputs));
    // What was computed is there, though not what was meant.
    failed.map_or(Ok(()), Err)
}

/// Makes a plan of what was captured, and its program. Under a limit, what kernels set aside for themselves is known when there is a
/// program, so another plan may be made that leaves room for it.
fn prepare(
    capture: &Capture,
    executor: &dyn Executor,
    limit: Option<Limit>,
    fuse: bool,
    guarded: bool,
) -> Result<(Plan, Box<dyn Program>)> {
    let rules = executor.rules()?;
    let mut reserved = 0;
    loop {
        let nodes = &capture.nodes;
        let planning = span("plan");
        let graph = capture.graph();
        let room = limit.map(|limit| limit.room(&graph, &rules, capture.assumed()).saturating_sub(reserved));
        let plan = crate::plan::compile(graph, fuse, &rules, room, |n| nodes[n].id);
        drop(planning);
        dry_run::look(&plan)?;
        limit.map_or(Ok(()), |limit| limit.check(&plan, reserved))?;
        let preparing = span("prepare");
        let program = executor.prepare(&plan, guarded)?;
        drop(preparing);
        let scratch = program.scratch_bytes(&plan);
        match plan.fit {
            Some(fit) if scratch > reserved && fit.needed_bytes + scratch > fit.room + reserved => {
                reserved = scratch
            }
            _ => return Ok((plan, program)),
        }
    }
}

/// Computes what this thread has recorded and still holds, and waits until all devices that were used have done everything: for
/// measuring, as nothing else needs it. An index that was out of bounds, or a division of integers by zero, is the error of
/// whoever waits for the device next.
#[track_caller]
pub fn synchronize() -> Result<()> {
    wait_for(std::pin::pin!(synchronize_async()))
}

/// [`synchronize`] as a future, which blocks nobody: the only way in a browser.
#[track_caller]
pub fn synchronize_async() -> impl Future<Output = Result<()>> {
    let _call = crate::call::Call::enter("synchronize");
    let computed = submit(Reason::Step(&[]));
    let waiting: Vec<_> = devices::gpus_in_use().into_iter().map(Device::synchronize_async).collect();
    async move {
        let mut all = computed.map(drop);
        // All are waited for, also if one has failed.
        for device in waiting {
            all = all.and(device.await);
        }
        all
    }
}

fn device_number(device: Device) -> u64 {
    match device {
        Device::Cpu => 0,
        Device::Gpu(index) => 1 + index as u64,
    }
}

/// Looks at the plan that ran last on this thread: for tests of Volta's own crates.
#[doc(hidden)]
pub fn with_last_plan<R>(look: impl FnOnce(&Plan) -> R) -> R {
    LAST.with_borrow(|last| look(&last.as_ref().expect("a plan ran").plan))
}

/// The plan that ran last on this thread.
pub fn last_plan() -> Option<PlanReport> {
    LAST.with_borrow(|last| last.as_ref().map(|p| PlanReport::of(&p.plan)))
}

#[cfg(test)]
mod tests {
    use super::engine;
    use crate::default_device::with_device;
    use crate::{Device, Tensor};

    #[test]
    fn a_device_computes_while_another_one_s_engine_is_at_work() {
        let _at_work = engine(Device::Gpu(15));
        let sum = with_device(Device::Cpu, || Tensor::ones([3]).add(1.0).sum());
        assert_eq!(sum.item::<f32>(), 6.0);
    }
}
