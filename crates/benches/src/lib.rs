//! Benchmarks of Volta's parts, apart from whole workloads, which `volta bench` measures:
//!
//! ```sh
//! cargo bench                             # all
//! cargo bench --bench planning            # one
//! cargo bench --bench cpu_kernels matmul  # what has a name
//! ```
//!
//! Compare runs on one idle machine: the medians of two runs differ by a few per cent.
