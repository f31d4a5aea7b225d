//! Work on a device, in order. A browser compiles shaders while its tab goes on: runs that need them wait here until they are
//! compiled, and so does what comes behind them. Natively a plan that is ready has its shaders, and nothing waits.

use super::oneshot::Receiver;

/// What work gives: at once, or when everything before it is submitted.
pub(crate) enum Ordered<T> {
    Done(T),
    #[cfg_attr(not(target_arch = "wasm32"), expect(dead_code, reason = "natively nothing waits"))]
    Waits(Receiver<T>),
}

impl<T> Ordered<T> {
    pub async fn get(self) -> T {
        match self {
            Ordered::Done(value) => value,
            Ordered::Waits(value) => value.await,
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::WorkQueue;
#[cfg(target_arch = "wasm32")]
pub use tab::on_compile;
#[cfg(target_arch = "wasm32")]
pub(crate) use tab::{Task, WorkQueue};

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::Ordered;

    #[derive(Default)]
    pub(crate) struct WorkQueue;

    impl WorkQueue {
        /// Does it now.
        pub fn in_order<T>(&self, job: impl FnOnce() -> T) -> Ordered<T> {
            Ordered::Done(job())
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod tab {
    use super::Ordered;
    use crate::device::oneshot::channel;
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use wasm_bindgen_futures::spawn_local;

    /// Shaders that a browser compiles at a time.
    const AT_ONCE: usize = 8;

    /// Has the browser compile a shader, and is done when that is.
    pub(crate) type Task = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>>>;

    struct Job {
        /// Whether what it needs is compiled.
        is_ready: Box<dyn Fn() -> bool>,
        work: Box<dyn FnOnce()>,
    }

    #[derive(Default)]
    struct State {
        tasks: VecDeque<Task>,
        jobs: VecDeque<Job>,
        /// Whether somebody is at work with it.
        is_driven: bool,
        /// Shaders that were compiled since nothing waited, and those that were asked for.
        compiled: usize,
        asked: usize,
    }

    #[derive(Default)]
    pub(crate) struct WorkQueue(Mutex<State>);

    // SAFETY: a tab has one thread. Another worker has a module, and memory, of its own.
    unsafe impl Send for WorkQueue {}
    // SAFETY: as above.
    unsafe impl Sync for WorkQueue {}

    type Listener = Rc<dyn Fn(usize, usize)>;

    thread_local! {
        static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
    }

    /// Tells `listener` after every shader how many are compiled, of how many that were asked for since nothing was to be
    /// compiled.
    pub fn on_compile(listener: impl Fn(usize, usize) + 'static) {
        LISTENER.set(Some(Rc::new(listener)));
    }

    impl WorkQueue {
        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Whether what is asked for now must wait for something before it.
        pub fn is_busy(&self) -> bool {
            !self.state().jobs.is_empty()
        }

        /// Does it now, if nothing waits, or else behind what does.
        pub fn in_order<T: 'static>(self: &Arc<Self>, job: impl FnOnce() -> T + 'static) -> Ordered<T> {
            if !self.is_busy() {
                return Ordered::Done(job());
            }
            let (sender, receiver) = channel();
            self.when(|| true, move || sender.give(job()));
            Ordered::Waits(receiver)
        }

        /// Does it when it is ready, which only what is compiled here changes, and everything before it is done.
        pub fn when(self: &Arc<Self>, is_ready: impl Fn() -> bool + 'static, work: impl FnOnce() + 'static) {
            self.state().jobs.push_back(Job { is_ready: Box::new(is_ready), work: Box::new(work) });
            self.drive();
        }

        /// Has shaders compiled.
        pub fn compile(self: &Arc<Self>, shaders: impl IntoIterator<Item = Task>) {
            {
                let mut state = self.state();
                let before = state.tasks.len();
                state.tasks.extend(shaders);
                state.asked += state.tasks.len() - before;
            }
            self.drive();
        }

        fn next_task(&self) -> Option<Task> {
            self.state().tasks.pop_front()
        }

        /// The first job, if it is ready. It counts as waiting until it is [done](Self::done).
        fn next_job(&self) -> Option<Box<dyn FnOnce()>> {
            let mut state = self.state();
            let job = state.jobs.front_mut()?;
            if !(job.is_ready)() {
                return None;
            }
            Some(std::mem::replace(&mut job.work, Box::new(|| ())))
        }

        fn done(&self) {
            self.state().jobs.pop_front();
        }

        /// Whether there is nothing left, and nobody at work with it any more.
        fn stop(&self) -> bool {
            let mut state = self.state();
            state.is_driven = !(state.tasks.is_empty() && state.jobs.is_empty());
            if !state.is_driven {
                (state.compiled, state.asked) = (0, 0);
            }
            !state.is_driven
        }

        fn count_compiled(&self) {
            let (compiled, asked) = {
                let mut state = self.state();
                state.compiled += 1;
                (state.compiled, state.asked)
            };
            let listener = LISTENER.with_borrow(Clone::clone);
            if let Some(listener) = listener {
                listener(compiled, asked);
            }
        }

        fn drive(self: &Arc<Self>) {
            if !std::mem::replace(&mut self.state().is_driven, true) {
                spawn_local(self.clone().work_off());
            }
        }

        /// Compiles and does what waits, until nothing does.
        async fn work_off(self: Arc<Self>) {
            let mut compiling = VecDeque::new();
            loop {
                while let Some(job) = self.next_job() {
                    job();
                    self.done();
                }
                while compiling.len() < AT_ONCE
                    && let Some(task) = self.next_task()
                {
                    compiling.push_back(task());
                }
                match compiling.pop_front() {
                    Some(compiled) => {
                        compiled.await;
                        self.count_compiled();
                    }
                    None if self.stop() => return,
                    None => {}
                }
            }
        }
    }
}
