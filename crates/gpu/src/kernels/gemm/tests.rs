//! What the generated text promises, whatever the sizes: limits are kept, results are finished and never
//! read.

use super::conv::{Geometry, phases};
use super::wgsl::Digits;
use super::{Variant, variants_beside};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, Lowered, Memory};
use volta_ir::dtype::DType;
use volta_ir::op::{ConvAttrs, ConvKind, NativeOp};
use volta_ir::plan::kernel::{NativeKernel, Operand};
use volta_ir::shape::Shape;

/// As the variant that is chosen.
fn lower(kernel: &NativeKernel, caps: &Caps) -> Lowered {
    super::lower(kernel, caps, None, [None; 2])
}

fn contiguous(slot: usize, dtype: DType, shape: &[usize]) -> Operand {
    let shape = Shape::of(shape);
    Operand { slot, dtype, shape, strides: shape.strides()[..shape.rank()].to_vec(), offset: 0 }
}

fn matmul(dtype: DType, batch: usize, [m, n, k]: [usize; 3]) -> NativeKernel {
    NativeKernel {
        op: NativeOp::Matmul,
        operands: vec![contiguous(0, dtype, &[batch, m, k]), contiguous(1, dtype, &[batch, k, n])],
        output: contiguous(2, dtype, &[batch, m, n]),
        prologues: vec![],
        epilogue: None,
    }
}

/// A convolution of `channels` on planes of `size`² with a kernel of `kernel`².
fn conv(
    kind: ConvKind,
    dtype: DType,
    channels: [usize; 2],
    [size, kernel, stride, groups]: [usize; 4],
) -> NativeKernel {
    let padding = kernel / 2;
    let out = (size + 2 * padding - kernel) / stride + 1;
    let x = [8, channels[0], size, size];
    let w = [channels[1], channels[0] / groups, kernel, kernel];
    let y = [8, channels[1], out, out];
    let (a, b, c) = match kind {
        ConvKind::Forward => (x, w, y),
        ConvKind::InputGrad => (y, w, x),
        ConvKind::WeightGrad => (x, y, w),
    };
    let attrs = ConvAttrs { stride: [stride; 2], padding: [padding; 2], dilation: [1; 2], groups };
    NativeKernel {
        op: NativeOp::Conv(kind, Box::new(attrs)),
        operands: vec![contiguous(0, dtype, &a), contiguous(1, dtype, &b)],
        output: contiguous(2, dtype, &c),
        prologues: vec![],
        epilogue: None,
    }
}

fn kernels(dtype: DType) -> Vec<NativeKernel> {
    let sizes = [
        [4096, 4096, 4096],
        [1000, 1001, 1003],
        [1, 4096, 4096],
        [4096, 1, 4096],
        [64, 64, 100_000],
        [32, 32, 32],
        [5, 6, 7],
        [1, 1, 1],
    ];
    let mut all: Vec<NativeKernel> =
        sizes.iter().flat_map(|&size| [1, 7].map(|batch| matmul(dtype, batch, size))).collect();
    if dtype.is_float() {
        for kind in [ConvKind::Forward, ConvKind::InputGrad, ConvKind::WeightGrad] {
            all.push(conv(kind, dtype, [64, 128], [32, 3, 2, 1]));
            all.push(conv(kind, dtype, [3, 64], [32, 3, 1, 1]));
            all.push(conv(kind, dtype, [64, 64], [32, 1, 1, 1]));
            all.push(conv(kind, dtype, [64, 64], [16, 3, 1, 64]));
            all.push(conv(kind, dtype, [33, 66], [9, 5, 3, 3]));
        }
    }
    all
}

/// The number that follows `mark` in `text`.
fn number(text: &str, mark: &str) -> usize {
    let at = text.find(mark).unwrap_or_else(|| panic!("no {mark} in {text}")) + mark.len();
    text[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
}

/// Bytes of workgroup variables.
fn workgroup_bytes(dispatch: &Dispatch) -> usize {
    let variables = dispatch.body.lines().filter(|line| line.starts_with("var<workgroup>"));
    let bytes = |line: &str| {
        let size = [("vec4<f32>", 16), ("vec4<i32>", 16), ("vec4<f16>", 8), ("<f32,", 4)]
            .iter()
            .find(|(ty, _)| line.contains(ty));
        number(line, ", ") * size.expect("a known type").1
    };
    variables.map(bytes).sum()
}

#[test]
fn limits_are_kept_and_results_are_finished() {
    for caps in [Caps::MINIMAL, Caps::FULL] {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::U8] {
            for kernel in kernels(dtype) {
                let Lowered { dispatches, scratch } = lower(&kernel, &caps);
                let last = dispatches.last().expect("there is something to do");
                assert!(last.body.contains("finish"), "{kernel:?}");
                for dispatch in &dispatches {
                    assert!(number(&dispatch.body, "@workgroup_size(") <= caps.invocations as usize);
                    assert!(workgroup_bytes(dispatch) <= caps.workgroup_bytes as usize, "{kernel:?}");
                    assert!(!dispatch.body.contains("load_c(") && !dispatch.body.contains("load4_c("));
                    assert!(dispatch.groups > 0 && dispatch.groups < 1 << 32);
                    for binding in &dispatch.bindings {
                        assert!(binding.reads != binding.writes);
                        if let Memory::Scratch(number) = binding.memory {
                            assert!(number < scratch.len());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn small_products_side_by_side_share_a_device() {
    let sizes = [[128, 384, 1024], [512, 128, 1024], [128, 512, 1024], [128, 512, 512], [0, 512, 1024]];
    let kernels = sizes.map(|size| matmul(DType::F32, 1, size));
    let all: Vec<&NativeKernel> = kernels.iter().collect();
    for caps in [Caps::MINIMAL, Caps::FULL] {
        // Those with sums of one length have one variant; alone, or with one other, each has its own.
        let variants = variants_beside(&all, &caps);
        assert!(
            variants[0].is_some() && variants[..3].iter().all(|variant| *variant == variants[0]),
            "{variants:?}"
        );
        assert!(variants[3..].iter().all(Option::is_none), "{variants:?}");
        assert!(variants_beside(&all[1..], &caps).iter().all(Option::is_none));
    }
    // Each of many has larger tiles than one that has to fill the device.
    let many: Vec<&NativeKernel> = [&kernels[1]; 12].to_vec();
    let Some(Variant::Tiled(tile, _)) = variants_beside(&many, &Caps::FULL)[0] else { panic!("no tiles") };
    let (alone, _) = super::tile::choose(&[&super::matmul::product(&kernels[1])], &Caps::FULL);
    assert!(tile.m * tile.n > alone.m * alone.n, "{tile:?} {alone:?}");
}

/// The first name that is declared where one of the same name is in sight.
fn hidden(body: &str) -> Option<String> {
    let mut scopes: Vec<Vec<&str>> = vec![Vec::new()];
    for line in body.lines() {
        let line = line.trim();
        let opens = line.matches('{').count();
        let closes = line.matches('}').count();
        if line.starts_with('}') {
            scopes.truncate(scopes.len().saturating_sub(1).max(1));
        }
        let declared = ["let ", "var "].iter().find_map(|word| line.strip_prefix(word));
        if let Some(name) = declared.and_then(|rest| rest.split([' ', ':']).next()) {
            if scopes.iter().flatten().any(|known| *known == name) {
                return Some(name.into());
            }
            scopes.last_mut()?.push(name);
        }
        let net = opens as isize - closes as isize + isize::from(line.starts_with('}'));
        (0..net).for_each(|_| scopes.push(Vec::new()));
    }
    None
}

#[test]
fn no_name_hides_another() {
    for caps in [Caps::MINIMAL, Caps::FULL] {
        for dtype in [DType::F32, DType::F16] {
            let thin = [[8191, 128, 1021], [128, 8190, 1022], [1027, 1030, 1029], [1500, 1502, 516]];
            let thin = thin.iter().map(|&size| matmul(dtype, 1, size));
            for kernel in kernels(dtype).into_iter().chain(thin) {
                for dispatch in lower(&kernel, &caps).dispatches {
                    assert_eq!(hidden(&dispatch.body), None, "{kernel:?}\n{}", dispatch.body);
                }
            }
        }
    }
    assert_eq!(hidden("let a = 1;\nif (b) {\n    let a = 2;\n}\n").as_deref(), Some("a"));
    assert_eq!(hidden("if (b) {\n    let a = 2;\n}\nlet a = 1;\n"), None);
}

#[test]
fn no_results_are_no_work_and_no_terms_are_zeros() {
    assert_eq!(lower(&matmul(DType::F32, 2, [0, 5, 3]), &Caps::MINIMAL), Lowered::default());
    let zeros = lower(&matmul(DType::F32, 2, [4, 5, 0]), &Caps::MINIMAL);
    assert_eq!(zeros.dispatches.len(), 1);
    assert!(zeros.dispatches[0].bindings.iter().all(|b| b.memory == Memory::Output));
}

#[test]
fn long_sums_are_cut_into_parts() {
    let lowered = lower(&matmul(DType::F32, 1, [64, 64, 100_000]), &Caps::MINIMAL);
    assert_eq!(lowered.dispatches.len(), 2);
    let parts = lowered.scratch[0] / (64 * 64 * 4);
    assert!(parts > 8, "{parts}");
    assert!(lowered.dispatches[0].groups > 8);
}

#[test]
fn two_steps_a_turn_are_taken_where_every_part_has_an_even_number() {
    let product = |k| lower(&matmul(DType::F16, 1, [768, 3072, k]), &Caps::FULL);
    let even = product(4096);
    assert_eq!(even.dispatches.len(), 2, "the sums are cut into parts");
    let body = &even.dispatches[0].body;
    assert!(body.contains("two < last; two += 2u") && body.contains("* 2u;\n"), "{body}");
    // 129 steps of 32.
    let odd = &product(4128).dispatches[0].body;
    assert!(odd.contains("now < last; now++") && !odd.contains("two"), "{odd}");
}

#[test]
fn cooperative_matrices_need_halves_and_an_adapter_that_has_them() {
    let cooperates = |dtype, caps: &Caps| {
        let lowered = lower(&matmul(dtype, 1, [512, 512, 512]), caps);
        lowered.dispatches[0].body.contains("coopMultiplyAdd")
    };
    assert!(cooperates(DType::F16, &Caps::FULL));
    assert!(!cooperates(DType::F32, &Caps::FULL));
    assert!(!cooperates(DType::F16, &Caps { cooperative: false, ..Caps::FULL }));
}

#[test]
fn large_products_are_split_into_halves() {
    let splits = |dtype, batch, size, caps: &Caps| {
        let lowered = lower(&matmul(dtype, batch, size), caps);
        lowered.dispatches.iter().any(|d| d.body.contains("fn split_a("))
    };
    assert!(splits(DType::F32, 1, [1024, 1024, 1024], &Caps::FULL));
    assert!(splits(DType::F32, 1, [4097, 4099, 4101], &Caps::FULL));
    assert!(splits(DType::F32, 16, [512, 512, 512], &Caps::FULL));
    assert!(splits(DType::F32, 1, [1024, 128, 33278], &Caps::FULL));
    // Too little to do, too thin, of another type, or on another adapter.
    assert!(!splits(DType::F32, 1, [512, 512, 512], &Caps::FULL));
    assert!(!splits(DType::F32, 1, [130, 16384, 4096], &Caps::FULL));
    assert!(!splits(DType::F32, 1, [64, 16384, 4096], &Caps::FULL));
    assert!(!splits(DType::BF16, 1, [4096, 4096, 4096], &Caps::FULL));
    assert!(!splits(DType::F16, 1, [4096, 4096, 4096], &Caps::FULL));
    assert!(!splits(DType::F32, 1, [4096, 4096, 4096], &Caps::MINIMAL));
    assert!(!splits(DType::F32, 1, [4096, 4096, 4096], &Caps { cooperative: false, ..Caps::FULL }));
    assert!(!splits(DType::F32, 1, [4096, 4096, 4096], &Caps { subgroup: Some(64), ..Caps::FULL }));
}

#[test]
fn split_operands_are_scaled_and_multiplied_three_times() {
    let lowered = lower(&matmul(DType::F32, 1, [4096, 4096, 4000]), &Caps::FULL);
    let [largest, split, product] = &lowered.dispatches[..] else { panic!("three dispatches") };
    assert!(largest.bindings.iter().any(|b| b.name == "largest" && b.writes));
    assert!(split.bindings.iter().any(|b| b.name == "largest" && b.reads));
    assert_eq!(split.bindings.iter().filter(|b| b.writes).count(), 3);
    // f16 pairs, with the sums' end padded to a whole step.
    assert_eq!(lowered.scratch[..2], [4096 * 4000 * 2 * 2; 2]);
    let body = &product.body;
    for terms in ["a_high0_0, b_high0_0", "a_high0_0, b_low0_0", "a_low0_0, b_high0_0"] {
        assert!(body.contains(terms), "{terms}");
    }
    assert!(!body.contains("a_low0_0, b_low0_0"));
    assert!(body.contains("c0_0 = c0_0 + run0_0;") && body.contains("load4_scales("));
    // One operand for all items is split once.
    let mut shared = matmul(DType::F32, 16, [512, 512, 512]);
    shared.operands[1].strides[0] = 0;
    let scratch = lower(&shared, &Caps::FULL).scratch;
    assert_eq!(scratch[0], 16 * scratch[1]);
}

#[test]
fn phases_share_all_taps_and_all_pixels() {
    for [size, kernel, stride, groups] in [[32, 3, 2, 1], [9, 5, 3, 1], [8, 1, 2, 1], [7, 3, 1, 1]] {
        let special = conv(ConvKind::InputGrad, DType::F32, [16, 16], [size, kernel, stride, groups]);
        let NativeOp::Conv(kind, attrs) = &special.op else { unreachable!() };
        let all = phases(&Geometry::new(&special, *kind, attrs));
        assert_eq!(all.len(), stride * stride);
        assert_eq!(all.iter().map(|p| p.taps[0] * p.taps[1]).sum::<usize>(), kernel * kernel);
        let pixels =
            |p: &[usize; 2]| p.iter().map(|start| (size - start).div_ceil(stride)).product::<usize>();
        assert_eq!(all.iter().map(|p| pixels(&p.start)).sum::<usize>(), size * size);
    }
}

#[test]
fn digits_join_where_they_count_on() {
    assert_eq!(Digits::new([(3, 20), (4, 5), (1, 7)]).position("i"), "i * 5u");
    assert_eq!(Digits::new([(3, 0), (4, 5)]).position("i"), "(i % 4u) * 5u");
    assert_eq!(Digits::new([(3, 7), (4, 1)]).position("i"), "(i / 4u) * 7u + i % 4u");
    assert_eq!(Digits::line(3, -1).position("i"), "i * 4294967295u");
}
