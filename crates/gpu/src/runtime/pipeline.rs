//! Compiled shaders, remembered by their text. Those that a plan needs and that are new are compiled side by side, since
//! some take a second.

use super::disk_cache::DiskCache;
use crate::codegen::shader::Shader;
use crate::device::context::Context;
use crate::device::device_errors::Scopes;
use std::collections::HashMap;
#[cfg(not(target_arch = "wasm32"))]
use std::collections::HashSet;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use volta_ir::clock::Instant;
use volta_ir::error::Result;
use volta_ir::telemetry::count_shader;

/// What took less time to compile is not worth writing the file for.
const WORTH_KEEPING: Duration = Duration::from_millis(100);

/// A compiled shader.
pub(crate) struct Pipeline {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

/// So many pipelines are kept, also those of plans that are forgotten.
const MOST_IDLE: usize = 4096;

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

    /// The pipelines of these shaders, compiled where they are new.
    pub fn pipelines(&self, shaders: &[Shader]) -> Result<Vec<Arc<Pipeline>>> {
        let mut known = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<&Shader> = Vec::new();
        for shader in shaders {
            if !known.contains_key(&shader.source) && !new.iter().any(|n| n.source == shader.source) {
                new.push(shader);
            }
        }
        let kept = self.pipelines_on_disk().map(|kept| (kept, Instant::now()));
        if !new.is_empty() && known.len() >= MOST_IDLE {
            forget_idle(&mut known, |source| shaders.iter().any(|s| s.source == *source));
        }
        let compiled = self.compile_all(&new)?;
        if let Some((kept, start)) = kept
            && start.elapsed() >= WORTH_KEEPING
        {
            kept.save();
        }
        known.extend(new.iter().map(|s| s.source.clone()).zip(compiled));
        Ok(shaders.iter().map(|s| known[&s.source].clone()).collect())
    }

    fn compile_all(&self, shaders: &[&Shader]) -> Result<Vec<Arc<Pipeline>>> {
        let compiled = side_by_side(shaders.len(), |k| self.compile(shaders[k]).map(Arc::new));
        self.faults.check(|| "compiling shaders".into())?;
        compiled.into_iter().collect()
    }

    fn compile(&self, shader: &Shader) -> Result<Pipeline> {
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
        let (device, what) = (&self.device, Some(shader.what.as_str()));
        let spoiled = self.injected.bad_shader.swap(false, Ordering::Relaxed);
        let source = if spoiled { "fn main() { return 1; }" } else { &shader.source };
        let scopes = Scopes::new(device);
        let layout = device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let descriptor =
            wgpu::ShaderModuleDescriptor { label: what, source: wgpu::ShaderSource::Wgsl(source.into()) };
        // SAFETY: generated shaders check every index they do not know to be inside, and their loops end.
        let module = unsafe {
            device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
        };
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: what,
            layout: Some(&device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            })),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: self.pipelines_on_disk().map(|kept| &kept.cache),
        });
        match scopes.fault() {
            None => {
                count_shader();
                Ok(Pipeline { pipeline, layout })
            }
            fault => {
                let doing = format!("compiling {}", shader.what);
                Err(self.faults.failure(fault, &doing).with_context(&shader.kernel))
            }
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

/// A tab has one thread.
#[cfg(target_arch = "wasm32")]
fn side_by_side<T>(count: usize, make: impl Fn(usize) -> T) -> Vec<T> {
    (0..count).map(make).collect()
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
