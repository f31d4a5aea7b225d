//! Compiled pipelines on disk, where the backend lets them be kept: the driver compiles a shader once a machine and not
//! once a run. `VOLTA_CACHE` names the folder, `off` turns it off; otherwise it is the user's folder for caches.
//! A file that cannot be read, was cut off or is another driver's is as good as none.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first bytes of a file, with the version of its form.
const MAGIC: &[u8; 8] = b"voltapc1";
/// Larger files are as good as none.
const MAX_CACHE_BYTES: usize = 1 << 30;

/// The cache of one device.
pub(crate) struct DiskCache {
    pub cache: wgpu::PipelineCache,
    file: PathBuf,
}

impl DiskCache {
    /// The cache for an adapter, with what the disk has; none where the backend has no such thing, or nobody wants it.
    pub fn open(device: &wgpu::Device, info: &wgpu::AdapterInfo) -> Option<DiskCache> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let folder = volta_ir::environment::values().kernel_cache.as_ref()?;
        let file = folder.join(wgpu::util::pipeline_cache_key(info)?);
        Some(DiskCache::of(device, file))
    }

    /// The cache in a file, which need not be there yet.
    fn of(device: &wgpu::Device, file: PathBuf) -> DiskCache {
        let bytes = volta_ir::regular_file::read(&file, MAX_CACHE_BYTES).ok();
        let data = bytes.and_then(|bytes| unwrap(MAGIC, &bytes).map(<[u8]>::to_vec));
        let descriptor =
            wgpu::PipelineCacheDescriptor { label: Some("volta"), data: data.as_deref(), fallback: true };
        // SAFETY: the data is what a cache gave, as its checksum tells; wgpu looks whether it is this driver's.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        DiskCache { cache, file }
    }

    /// Writes what there is now. A disk that does not take it costs time on the next run and nothing else.
    pub fn save(&self) {
        if let Some(data) = self.cache.get_data() {
            let _ = write_whole(&self.file, &wrap(MAGIC, &data));
        }
    }
}

/// FNV-1a: enough to tell a file that was cut off or scribbled on.
pub(crate) fn checksum(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// A file of the kind that `magic` says.
pub(crate) fn wrap(magic: &[u8; 8], data: &[u8]) -> Vec<u8> {
    [magic, &checksum(data).to_le_bytes()[..], data].concat()
}

/// The data of a whole file of that kind.
pub(crate) fn unwrap<'f>(magic: &[u8; 8], file: &'f [u8]) -> Option<&'f [u8]> {
    let (sum, data) = file.strip_prefix(magic)?.split_at_checked(8)?;
    (sum == checksum(data).to_le_bytes()).then_some(data)
}

/// Writes a file so that others see the old one or the new one, never half of it.
pub(crate) fn write_whole(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let name = format!(".volta-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let part = folder.join(name);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_whole_is_none() {
        let whole = wrap(MAGIC, b"what the driver gave");
        assert_eq!(unwrap(MAGIC, &whole), Some(&b"what the driver gave"[..]));
        for cut in 0..whole.len() {
            assert_eq!(unwrap(MAGIC, &whole[..cut]), None, "cut off at {cut}");
            let mut scribbled = whole.clone();
            scribbled[cut] ^= 4;
            assert_eq!(unwrap(MAGIC, &scribbled), None, "scribbled on at {cut}");
        }
        assert_eq!(unwrap(b"voltatn1", &whole), None);
        assert_eq!(unwrap(MAGIC, &wrap(MAGIC, b"")), Some(&b""[..]));
    }

    /// On the GPU that `VOLTA_DEVICE=gpu` picks: what was compiled before the file was written is there when it is read.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn what_was_compiled_once_is_found_by_the_next_program() {
        let volta::Device::Gpu(index) = volta::default_device() else { panic!("VOLTA_DEVICE=gpu picks one") };
        let context = crate::runtime::context::open(index).expect("the GPU is there");
        let device = &context.device;
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return;
        }
        let file = std::env::temp_dir().join(format!("volta-pipelines-{}", std::process::id()));
        let bytes = |cache: &DiskCache| cache.cache.get_data().map_or(0, |data| data.len());
        let first = DiskCache::of(device, file.clone());
        let empty = bytes(&first);
        let source = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
            @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] += 7.0; }";
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let _compiled = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: Some(&first.cache),
        });
        let compiled = bytes(&first);
        if compiled == empty {
            eprintln!("not tested: {} has a cache, and keeps nothing in it", context.who());
            return;
        }
        first.save();
        assert_eq!(bytes(&DiskCache::of(device, file.clone())), compiled);
        // Of a file that was scribbled on, nothing is taken.
        let mut scribbled = std::fs::read(&file).unwrap();
        *scribbled.last_mut().unwrap() ^= 1;
        std::fs::write(&file, scribbled).unwrap();
        assert_eq!(bytes(&DiskCache::of(device, file.clone())), empty);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn writing_replaces_the_whole_file_and_leaves_nothing_else() {
        let folder = std::env::temp_dir().join(format!("volta-cache-{}", std::process::id()));
        let file = folder.join("deep").join("cache");
        for text in ["first", "second"] {
            write_whole(&file, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(folder.join("deep")).unwrap().count(), 1);
        // A folder that cannot be made is an error, and no harm.
        assert!(write_whole(&file.join("under a file"), b"").is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
