//! Matrix products and convolutions for the GPU. All of them are `C[item, m, n] = Σk A[item, m, k] · B[item,
//! k, n]` for operands that are strided matrices or windows of images, and go to the kernel that suits their
//! sizes and type. `quantized` lets them decode an operand as they read it.

mod blocked;
mod conv;
mod coop;
mod direct_conv;
mod f16_pair_gemm;
mod f16_pairs;
mod gemv;
mod im2col;
mod load;
mod matmul;
mod naive;
mod output_view;
mod pack;
mod product;
mod quantized;
mod scales;
mod split_k;
mod split_on_load;
#[cfg(test)]
mod tests;
mod thread_mapping;
mod tile;
mod tile_raster;
mod tiled;
mod variant;
mod wgsl;
mod write;

use crate::caps::Caps;
use crate::dispatch::{AbsMax, Lowered};
use product::Product;
pub(crate) use variant::Variant;
use volta_ir::op::NativeOp;
use volta_ir::plan::kernel::NativeKernel;
pub(crate) use wgsl::Digits;

/// The variants of a matrix product or a convolution.
pub(crate) fn variants(kernel: &NativeKernel, caps: &Caps) -> Vec<Variant> {
    if is_empty(kernel) {
        return Vec::new();
    }
    match &kernel.op {
        NativeOp::Conv(kind, attrs) => conv::variants(kernel, *kind, attrs, caps),
        _ => variant::all(&matmul::product(kernel), kernel.output.dtype, caps),
    }
}

/// Whether there is nothing to multiply.
fn is_empty(kernel: &NativeKernel) -> bool {
    kernel.operands.iter().chain([&kernel.output]).any(|o| o.shape.numel() == 0)
}

/// The variant for all of these products, where one dispatch for them takes less time than one for each.
pub(crate) fn variant_together(kernels: &[&NativeKernel], caps: &Caps) -> Option<Variant> {
    let alone = |k: &NativeKernel| k.epilogue.is_none() && k.prologues.is_empty();
    let plain = |k: &&NativeKernel| k.op == NativeOp::Matmul && alone(k) && !is_empty(k);
    let products: Vec<_> = kernels.iter().filter(|k| plain(k)).map(|k| matmul::product(k)).collect();
    if products.len() < kernels.len() {
        return None;
    }
    let products: Vec<_> = products.iter().collect();
    coop::choose_together(&products, caps).map(|(tile, parts)| Variant::Coop(tile, parts))
}

/// The variants of kernels that run side by side, where it makes a difference that they do: several small products with sums of one
/// length get tiles that would be too few for a device if each were alone.
pub(crate) fn variants_beside(kernels: &[&NativeKernel], caps: &Caps) -> Vec<Option<Variant>> {
    /// Fewer do not fill a device.
    const SEVERAL: usize = 3;
    let tiled = |k: &&NativeKernel| match k.op {
        NativeOp::Matmul if !is_empty(k) => matmul::tiled(k, caps),
        _ => None,
    };
    let products: Vec<Option<Product>> = kernels.iter().map(tiled).collect();
    let variant = |product: &Option<Product>| {
        let depth = product.as_ref()?.steps.depth();
        let alike: Vec<&Product> = products.iter().flatten().filter(|p| p.steps.depth() == depth).collect();
        let (tile, parts) = (alike.len() >= SEVERAL).then(|| tile::choose(&alike, caps))?;
        Some(Variant::Tiled(tile, parts))
    };
    products.iter().map(variant).collect()
}

/// Of which operands a matrix product asks for the largest magnitudes of lanes: they need not be looked for where whoever
/// wrote an operand noted them.
pub(crate) fn needs_absmax(kernel: &NativeKernel, caps: &Caps, wanted: Option<Variant>) -> [bool; 2] {
    if kernel.op != NativeOp::Matmul || is_empty(kernel) {
        return [false; 2];
    }
    matmul::needs_absmax(kernel, caps, wanted)
}

/// The dispatches of a matrix product or a convolution, as the variant that is `wanted`, or else the one that suits it.
/// `largest` are what is known of the operands.
pub(crate) fn lower(
    kernel: &NativeKernel,
    caps: &Caps,
    wanted: Option<Variant>,
    largest: [Option<AbsMax>; 2],
) -> Lowered {
    let count = kernel.output.shape.numel();
    if count == 0 {
        return Lowered::default();
    }
    match &kernel.op {
        NativeOp::Conv(kind, attrs) => conv::lower(kernel, *kind, attrs, caps, wanted),
        NativeOp::QuantizedMatmul { format, by_rows } => {
            quantized::lower(kernel, *format, *by_rows, caps, wanted)
        }
        NativeOp::Dequantize(format) => quantized::dequantize(kernel, *format),
        _ if kernel.operands.iter().any(|o| o.shape.numel() == 0) => {
            Lowered { dispatches: vec![naive::zeros(count, kernel.output.dtype)], scratch: vec![] }
        }
        _ => matmul::lower(kernel, caps, wanted, largest),
    }
}
