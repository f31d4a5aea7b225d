//! Kernels that see more memory than a binding may hold. A tensor lies in several chunks; `loops` splits generated loops along
//! their rows, `kernel_split` splits templates along axes of their results or sums, `multipass` computes a row in several
//! passes, and `staging` copies what lies across chunks.

mod external_sort;
pub(super) mod kernel_split;
pub(super) mod loops;
pub(super) mod multipass;
mod some_heads;
pub(super) mod staging;
