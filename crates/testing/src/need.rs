//! What a test can need of the environment: `VOLTA_DEVICE` picks the device, `VOLTA_LIMITS=webgpu` takes from a GPU what WebGPU does not
//! promise.

/// Something that not every run of the tests has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Floats of 64 bits.
    F64,
    /// A GPU as the default device.
    Gpu,
    /// Integers of 64 bits, clocks, many buffers: what WebGPU does not promise. The CPU has it.
    MoreThanWebGpu,
    /// Tensors in many pieces: `VOLTA_BLOCK_BYTES`.
    Pieces,
    /// Four GPUs, `gpu:0` to `gpu:3`: `VOLTA_VIRTUAL_DEVICES`.
    FourGpus,
    /// Network namespaces that stand for hosts: `VOLTA_MPI_HOSTS`, which `scripts/test-mpi` sets where the machine has them.
    Hosts,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn on_gpu() -> bool {
    variable("VOLTA_DEVICE").is_some_and(|device| device.to_lowercase().starts_with("gpu"))
}

impl Need {
    /// The need that a test calls so.
    pub const fn named(name: &str) -> Need {
        match name.as_bytes() {
            b"f64" => Need::F64,
            b"gpu" => Need::Gpu,
            b"more_than_webgpu" => Need::MoreThanWebGpu,
            b"pieces" => Need::Pieces,
            b"four_gpus" => Need::FourGpus,
            b"hosts" => Need::Hosts,
            _ => panic!("a test can need f64, gpu, more_than_webgpu, pieces, four_gpus or hosts"),
        }
    }

    /// Why the environment does not have it, if it does not.
    pub fn missing(self) -> Option<&'static str> {
        let (has, reason) = match self {
            Need::F64 => (!on_gpu(), "needs f64, which only the CPU has"),
            Need::Gpu => (on_gpu(), "needs a GPU: VOLTA_DEVICE=gpu"),
            Need::MoreThanWebGpu => {
                (!on_gpu() || variable("VOLTA_LIMITS").is_none(), "needs more than WebGPU promises")
            }
            Need::Pieces => {
                (on_gpu() && variable("VOLTA_BLOCK_BYTES").is_some(), "needs a GPU with VOLTA_BLOCK_BYTES")
            }
            Need::FourGpus => {
                let count = variable("VOLTA_VIRTUAL_DEVICES").and_then(|count| count.parse().ok());
                (
                    on_gpu() && count.is_some_and(|count: usize| count >= 4),
                    "needs VOLTA_DEVICE=gpu VOLTA_VIRTUAL_DEVICES=4",
                )
            }
            Need::Hosts => (
                variable("VOLTA_MPI_HOSTS").is_some(),
                "needs network namespaces in the place of hosts: root, iproute2 and unshare, which scripts/test-mpi looks for",
            ),
        };
        (!has).then_some(reason)
    }
}
