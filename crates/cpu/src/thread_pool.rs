//! Threads that help with jobs. A job's caller works on it too, so a job never waits for a thread to wake up, and
//! jobs may come from any thread, also from inside another job. Helpers stay awake for a moment after a job: the
//! next kernel of a plan follows within microseconds, while waking a thread takes as long as a small kernel.

use std::any::Any;
use std::hint::spin_loop;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;
use volta_ir::clock::Instant;
use volta_ir::warn::warn;

/// How long a thread looks out for what it waits for before it sleeps.
const AWAKE: Duration = Duration::from_micros(100);

/// Something to be done for every number below `tasks`, on its caller's stack.
struct Job<'a> {
    run: &'a (dyn Fn(usize) + Sync),
    tasks: usize,
    next: AtomicUsize,
    /// Helpers at work on it.
    helpers: AtomicUsize,
    caller: Thread,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job<'_> {
    /// Takes one task after the other until none is left.
    fn work(&self) {
        loop {
            let task = self.next.fetch_add(1, Relaxed);
            if task >= self.tasks {
                return;
            }
            (self.run)(task);
        }
    }
}

/// A job that is in the list. Its caller withdraws it, and waits for its helpers, before it goes away.
struct Open(*const Job<'static>);
// SAFETY: a job is shared by reference only, and all of it may be.
unsafe impl Send for Open {}

#[derive(Default)]
struct List {
    open: Vec<Open>,
    asleep: usize,
}

/// The helpers, and the jobs that are open to them.
#[derive(Default)]
pub(super) struct Workers {
    list: Mutex<List>,
    /// How many jobs there have been.
    jobs: AtomicUsize,
    wake: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether `holds` comes true before it is time to sleep.
fn comes_soon(holds: impl Fn() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..32 {
            if holds() {
                return true;
            }
            spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() > AWAKE {
            return false;
        }
        // Where there are more threads than cores, the one that is waited for may need this core.
        thread::yield_now();
    }
}

/// Address space that the threads leave to others.
const RESERVED_BYTES: usize = 128 << 20;

/// Starts threads until one is refused: how many there are then, and why there are no more.
fn start_threads(count: usize, start: impl Fn(usize) -> io::Result<()>) -> Result<(), (usize, io::Error)> {
    (0..count).try_for_each(|k| start(k).map_err(|error| (k, error)))
}

impl Workers {
    /// So many helpers, for as long as the program runs; fewer if the system starts no more, which is said.
    pub fn start(helpers: usize) -> &'static Workers {
        let workers: &'static Workers = Box::leak(Box::default());
        // Threads may take all the address space there is. This is let go behind them, so that something is left to compute with.
        let mut reserve = Vec::<u8>::new();
        let _ = std::hint::black_box(&mut reserve).try_reserve_exact(RESERVED_BYTES);
        let started = start_threads(helpers, |k| {
            let named = thread::Builder::new().name(format!("volta-{k}"));
            named.spawn(|| workers.help()).map(drop)
        });
        drop(reserve);
        if let Err((started, error)) = started {
            warn(format_args!(
                "the system started {started} of {helpers} threads that help ({error}): the CPU computes with {}; \
                 VOLTA_THREADS sets how many are asked for",
                started + 1
            ));
        }
        workers
    }

    /// Runs f(0..tasks), each once. A panic of any of them is the caller's.
    pub fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        let job = Job {
            run: f,
            tasks,
            next: AtomicUsize::new(0),
            helpers: AtomicUsize::new(0),
            caller: thread::current(),
            panic: Mutex::new(None),
        };
        self.publish(&job);
        let own = catch_unwind(AssertUnwindSafe(|| job.work()));
        if own.is_err() {
            // Nobody begins another task.
            job.next.store(tasks, Relaxed);
        }
        self.withdraw(&job);
        let panic = own.err().or_else(|| lock(&job.panic).take());
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn publish(&self, job: &Job) {
        let mut list = lock(&self.list);
        list.open.push(Open(std::ptr::from_ref(job).cast()));
        self.jobs.fetch_add(1, Release);
        let wanted = list.asleep.min(job.tasks - 1);
        drop(list);
        (0..wanted).for_each(|_| self.wake.notify_one());
    }

    /// No helper has the job, and none will come to it, when this returns.
    fn withdraw(&self, job: &Job) {
        lock(&self.list).open.retain(|open| !std::ptr::addr_eq(open.0, job));
        let left = || job.helpers.load(Acquire) == 0;
        if !comes_soon(left) {
            while !left() {
                thread::park();
            }
        }
    }

    /// An open job with tasks left; its caller waits for who took it.
    fn take(&self) -> Option<&Job<'static>> {
        let list = lock(&self.list);
        // SAFETY: a job in the list is alive, and stays so as long as it has helpers.
        let jobs = list.open.iter().map(|open| unsafe { &*open.0 });
        let job = jobs.into_iter().find(|job| job.next.load(Relaxed) < job.tasks)?;
        job.helpers.fetch_add(1, Relaxed);
        Some(job)
    }

    fn help(&self) {
        loop {
            let seen = self.jobs.load(Acquire);
            let Some(job) = self.take() else {
                self.wait(seen);
                continue;
            };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job.work())) {
                job.next.store(job.tasks, Relaxed);
                *lock(&job.panic) = Some(panic);
            }
            let caller = job.caller.clone();
            // The job may be gone from here on.
            if job.helpers.fetch_sub(1, Release) == 1 {
                caller.unpark();
            }
        }
    }

    /// Returns when there is a job more than were `seen`.
    fn wait(&self, seen: usize) {
        let new = || self.jobs.load(Acquire) != seen;
        if comes_soon(new) {
            return;
        }
        let mut list = lock(&self.list);
        list.asleep += 1;
        while !new() {
            list = self.wake.wait(list).unwrap_or_else(PoisonError::into_inner);
        }
        list.asleep -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran_once(workers: &Workers, tasks: usize) {
        let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
        workers.run(tasks, &|t| {
            counts[t].fetch_add(1, Relaxed);
        });
        assert!(counts.iter().all(|c| c.load(Relaxed) == 1));
    }

    #[test]
    fn every_task_runs_once_with_any_number_of_helpers() {
        for helpers in [0, 1, 3] {
            let workers = Workers::start(helpers);
            for tasks in [1, 2, 3, 7, 64, 1000] {
                ran_once(workers, tasks);
            }
            // Once all are asleep.
            thread::sleep(4 * AWAKE);
            ran_once(workers, 100);
        }
    }

    #[test]
    fn threads_that_are_refused_are_counted_and_do_not_end_the_program() {
        let refused = || io::Error::from(io::ErrorKind::WouldBlock);
        let started = start_threads(8, |k| if k < 3 { Ok(()) } else { Err(refused()) });
        assert!(matches!(started, Err((3, error)) if error.kind() == refused().kind()));
        assert!(start_threads(8, |_| Ok(())).is_ok());
    }

    #[test]
    fn jobs_come_from_many_threads_and_from_jobs() {
        let workers = Workers::start(2);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|round| ran_once(workers, 1 + round % 9)));
            }
        });
        workers.run(5, &|_| ran_once(workers, 20));
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_the_helpers_at_work() {
        let workers = Workers::start(2);
        for bad in [0, 3, 49] {
            let result = catch_unwind(AssertUnwindSafe(|| {
                workers.run(50, &|t| {
                    thread::sleep(Duration::from_micros(20));
                    assert_ne!(t, bad);
                });
            }));
            assert!(result.is_err());
            ran_once(workers, 50);
        }
    }
}
