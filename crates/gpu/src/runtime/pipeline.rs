//! Compiled shaders, remembered by their text. Those that a plan needs and that are new are compiled side by side, since
//! some take a second; in a browser, beside the tab (`device/work_queue.rs`).

use super::context::Context;
use super::disk_cache::DiskCache;
use crate::codegen::shader::Shader;
use crate::device::device_errors::Scopes;
#[cfg(target_arch = "wasm32")]
use crate::device::{browser::compiled_aside, work_queue::Task};
use std::collections::HashMap;
#[cfg(not(target_arch = "wasm32"))]
use std::collections::HashSet;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use volta_ir::call;
use volta_ir::clock::Instant;
use volta_ir::error::{Error, Result};
use volta_ir::telemetry::count_shader;

/// What took less time to compile is not worth writing the file for.
const WORTH_KEEPING: Duration = Duration::from_millis(100);

/// A shader, compiled or about to be.
pub(crate) struct Pipeline {
    pub layout: wgpu::BindGroupLayout,
    /// What came of compiling it.
    compiled: OnceLock<Result<wgpu::ComputePipeline>>,
}

impl Pipeline {
    /// The compiled shader, for those who know that it is.
    pub fn get(&self) -> Result<&wgpu::ComputePipeline> {
        let compiled = self.compiled.get().expect("a run waits for its shaders");
        compiled.as_ref().map_err(Clone::clone)
    }

    /// Whether it is known what came of compiling it.
    pub fn is_known(&self) -> bool {
        self.compiled.get().is_some()
    }

    /// Whether it was tried to compile it, and failed.
    pub fn is_refused(&self) -> bool {
        self.compiled.get().is_some_and(Result::is_err)
    }

    /// Says what came of it.
    pub fn set_compiled(&self, compiled: Result<wgpu::ComputePipeline>) {
        let _ = self.compiled.set(compiled);
    }
}

/// So many pipelines are kept, also those of plans that are forgotten.
const MAX_IDLE: usize = 4096;

/// The pipelines of a device, by the text of their shaders.
pub(crate) type Pipelines = Mutex<HashMap<String, Arc<Pipeline>>>;

/// While it lives, what is compiled is on trial: it is not kept on disk, and not in memory afterwards.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) struct OnTrial<'c> {
    context: &'c Context,
    /// The shaders that were compiled before.
    known: HashSet<String>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Drop for OnTrial<'_> {
    fn drop(&mut self) {
        self.context.on_trial.store(false, Ordering::Relaxed);
        let mut all = self.context.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|source, _| self.known.contains(source));
    }
}

impl Context {
    /// Begins to compile on trial.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn try_pipelines(&self) -> OnTrial<'_> {
        let all = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        self.on_trial.store(true, Ordering::Relaxed);
        OnTrial { context: self, known: all.keys().cloned().collect() }
    }

    /// Where compiled pipelines are kept, unless they are on trial.
    fn pipelines_on_disk(&self) -> Option<&DiskCache> {
        self.disk_cache.as_ref().filter(|_| !self.on_trial.load(Ordering::Relaxed))
    }

    /// The pipelines of these shaders, where they are new compiled now, or in a browser while the tab goes on.
    pub fn pipelines(self: &Arc<Self>, shaders: &[Shader]) -> Result<Vec<Arc<Pipeline>>> {
        let mut known = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<&Shader> = Vec::new();
        for shader in shaders {
            if !known.contains_key(&shader.source) && !new.iter().any(|n| n.source == shader.source) {
                new.push(shader);
            }
        }
        let kept = self.pipelines_on_disk().map(|kept| (kept, Instant::now()));
        if !new.is_empty() && known.len() >= MAX_IDLE {
            forget_idle(&mut known, |source| shaders.iter().any(|s| s.source == *source));
        }
        let new: Vec<(Arc<Pipeline>, Shader)> =
            new.into_iter().map(|shader| (Arc::new(self.uncompiled(shader)), shader.clone())).collect();
        self.compile_all(&new)?;
        if let Some((kept, start)) = kept
            && start.elapsed() >= WORTH_KEEPING
        {
            kept.save();
        }
        known.extend(new.into_iter().map(|(pipeline, shader)| (shader.source, pipeline)));
        Ok(shaders.iter().map(|s| known[&s.source].clone()).collect())
    }

    /// Compiles them now.
    #[cfg(not(target_arch = "wasm32"))]
    fn compile_all(self: &Arc<Self>, new: &[(Arc<Pipeline>, Shader)]) -> Result<()> {
        let compile = |k: usize| {
            let (pipeline, shader) = &new[k];
            pipeline.set_compiled(crate::now(self.compile(shader, &pipeline.layout)));
        };
        side_by_side(new.len(), compile);
        self.faults.check(|| "compiling shaders".into())?;
        new.iter().try_for_each(|(pipeline, _)| pipeline.get().map(drop))
    }

    /// Has the browser compile them, while the tab goes on.
    #[cfg(target_arch = "wasm32")]
    fn compile_all(self: &Arc<Self>, new: &[(Arc<Pipeline>, Shader)]) -> Result<()> {
        self.work.compile(new.iter().cloned().map(|(pipeline, shader)| -> Task {
            let context = self.clone();
            Box::new(move || {
                let compiled = context.compile(&shader, &pipeline.layout);
                Box::pin(async move {
                    let compiled = compiled.await;
                    if compiled.is_err() {
                        context.forget(&shader);
                    }
                    pipeline.set_compiled(compiled);
                })
            })
        }));
        Ok(())
    }

    /// A shader that was refused is compiled again for whoever asks next.
    #[cfg(target_arch = "wasm32")]
    fn forget(&self, shader: &Shader) {
        self.pipelines.lock().unwrap_or_else(PoisonError::into_inner).remove(&shader.source);
    }

    fn uncompiled(&self, shader: &Shader) -> Pipeline {
        let buffer = |k: usize, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
            binding: k as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        };
        let mut entries: Vec<wgpu::BindGroupLayoutEntry> = Vec::new();
        for (k, writable) in shader.writable.iter().enumerate() {
            entries.push(buffer(k, wgpu::BufferBindingType::Storage { read_only: !writable }));
        }
        if shader.arguments {
            entries.push(buffer(shader.writable.len(), wgpu::BufferBindingType::Uniform));
        }
        let layout = self
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        Pipeline { layout, compiled: OnceLock::new() }
    }

    /// Compiles a shader. It is asked for now, whenever the future is.
    pub fn compile(
        &self,
        shader: &Shader,
        layout: &wgpu::BindGroupLayout,
    ) -> impl Future<Output = Result<wgpu::ComputePipeline>> + use<> {
        let (device, faults) = (self.device.clone(), self.faults.clone());
        let (what, kernel, origin) = (shader.what.clone(), shader.kernel.clone(), call::current());
        let spoiled = self.injected.bad_shader.swap(false, Ordering::Relaxed);
        let source = if spoiled { "fn main() { return 1; }" } else { &shader.source };
        let scopes = Scopes::new(&device);
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(&what),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        };
        // SAFETY: generated shaders check every index they do not know to be inside, and their loops end.
        let module = unsafe {
            device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
        };
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(layout)],
            immediate_size: 0,
        });
        let (label, cache) = (what.clone(), self.pipelines_on_disk().map(|kept| kept.cache.clone()));
        let pipeline = compiled_aside(move || {
            device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(&label),
                layout: Some(&layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: cache.as_ref(),
            })
        });
        let closed = scopes.close();
        async move {
            let doing = || format!("compiling {what}");
            let failed =
                |error: Error| Error::at(error.kind(), error.message(), origin).with_context(&kernel);
            if let Some(fault) = closed.await {
                return Err(failed(faults.failure(Some(fault), &doing())));
            }
            let pipeline = pipeline.await.map_err(|why| failed(faults.refusal(&doing(), &why)))?;
            count_shader();
            Ok(pipeline)
        }
    }
}

/// Forgets what nobody holds, unless it is wanted.
fn forget_idle<T>(known: &mut HashMap<String, Arc<T>>, is_wanted: impl Fn(&String) -> bool) {
    known.retain(|source, pipeline| Arc::strong_count(pipeline) > 1 || is_wanted(source));
}

/// Bytes of stack for a driver's compiler, which may recurse deeply: a thread that asks for a plan may have little left.
#[cfg(not(target_arch = "wasm32"))]
const STACK: usize = 32 << 20;

/// `make` of every number under `count`, by as many threads as there are processors, none of them the caller's.
#[cfg(not(target_arch = "wasm32"))]
fn side_by_side<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= count {
                return made;
            }
            made.push((k, make(k)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let helper = || std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (0..threads).map_while(|_| helper()).collect();
        // Where a system gives no thread, the caller's does it.
        let mut all = if helpers.is_empty() { work() } else { Vec::new() };
        for helper in helpers {
            all.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|made| made.0);
    all.into_iter().map(|made| made.1).collect()
}

/// Natively a driver compiles at once.
#[cfg(not(target_arch = "wasm32"))]
fn compiled_aside(
    make: impl Fn() -> wgpu::ComputePipeline,
) -> impl Future<Output = Result<wgpu::ComputePipeline, String>> {
    std::future::ready(Ok(make()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_or_wanted_is_not_forgotten() {
        let held = Arc::new(1);
        let all = [("held", held.clone()), ("wanted", Arc::new(2)), ("idle", Arc::new(3))];
        let mut known: HashMap<String, Arc<i32>> = all.map(|(source, p)| (source.to_string(), p)).into();
        forget_idle(&mut known, |source| source == "wanted");
        let mut left: Vec<&String> = known.keys().collect();
        left.sort();
        assert_eq!(left, ["held", "wanted"]);
    }

    #[test]
    fn what_is_made_side_by_side_comes_in_order() {
        assert_eq!(side_by_side(100, |k| k * k), (0..100).map(|k| k * k).collect::<Vec<_>>());
        assert!(side_by_side(0, |k| k).is_empty());
    }

    #[test]
    fn whoever_makes_it_has_a_large_stack() {
        // More than a thread has that asks for nothing.
        fn deep(levels: usize) -> usize {
            let room = std::hint::black_box([1u8; 4096]);
            let below = if levels == 0 { 0 } else { deep(levels - 1) };
            below + usize::from(room[levels % 4096])
        }
        assert_eq!(side_by_side(2, |k| deep(1000 * (k + 1))), [1001, 2001]);
    }
}
