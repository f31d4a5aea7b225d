//! The programs around a template's dispatches: what is done to operands as they are read, and to results as they are
//! finished.

use crate::codegen::{self, Arguments, MapDispatch, MapLowered, Slots};
use crate::dispatch::{Binding, Dispatch, Lowered, Memory};
use volta_ir::plan::kernel::{Kernel, NativeKernel};

/// Dispatches of a kernel from a template, with `finish` before bodies that use it, and with what reads operands that are not
/// in memory.
pub(super) fn write_programs(s: &NativeKernel, kernel: &Kernel, lowered: Lowered) -> MapLowered {
    let write = |mut dispatch: Dispatch| {
        let (mut slots, mut arguments) = (Slots::default(), Arguments::default());
        let finish = write_epilogue(s, kernel, &mut dispatch, &mut slots, &mut arguments);
        let reads = write_prologues(s, &mut dispatch, &mut slots, &mut arguments);
        dispatch.body = finish + &reads + &dispatch.body;
        dispatch.bindings.extend(slots.bindings);
        MapDispatch { dispatch, uniforms: codegen::uniforms(&arguments) }
    };
    MapLowered { dispatches: lowered.dispatches.into_iter().map(write).collect(), scratch: lowered.scratch }
}

/// `finish`, if the body uses it. A result that nobody reads afterwards has no binding any more.
fn write_epilogue(
    s: &NativeKernel,
    kernel: &Kernel,
    dispatch: &mut Dispatch,
    slots: &mut Slots,
    arguments: &mut Arguments,
) -> String {
    let output = dispatch.bindings.iter().position(|b| b.memory == Memory::Output && b.writes);
    let Some(k) = output.filter(|_| dispatch.body.contains("finish")) else { return String::new() };
    let eights = dispatch.bindings[k].width == 8 && codegen::finishes_eights(s.epilogue.as_ref());
    if !eights {
        dispatch.bindings[k].width = dispatch.bindings[k].width.min(4);
    }
    let Binding { name, reads, .. } = dispatch.bindings[k];
    let read_elsewhere = kernel.parts.iter().any(|p| p.stored && p.slot == s.output.slot);
    let keep = s.epilogue.is_none() || read_elsewhere;
    if !keep && !reads {
        dispatch.bindings.remove(k);
    }
    let keep = keep.then_some(name);
    codegen::write_epilogue(s.epilogue.as_ref(), &s.output, keep, &dispatch.body, eights, slots, arguments)
}

/// What stands for the functions that would read operands from memory.
fn write_prologues(
    s: &NativeKernel,
    dispatch: &mut Dispatch,
    slots: &mut Slots,
    arguments: &mut Arguments,
) -> String {
    let mut text = String::new();
    dispatch.bindings.retain(|binding| {
        let Memory::Operand(number) = binding.memory else { return true };
        let Some(prologue) = s.prologue(number) else { return true };
        text += &codegen::write_prologue(prologue, binding, slots, arguments);
        false
    });
    text
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::lower::selections::Selections;
    use crate::lower::{CompileMode, lower_plan};
    use crate::snapshots::{numbers, rules, shaders_of, target, translate, validate};
    use volta::Tensor;
    use volta::with_last_plan;
    use volta::{DType, Device, default_device, with_device};
    use volta_ir::plan::Plan;
    use volta_ir::plan::kernel::{Kernel, KernelBody, Prologue};
    use volta_ir::plan::memory::DeviceLimits;

    /// The shaders of a product that computes its operands, which the CPU's plan does in kernels before it.
    fn texts(caps: &Caps, product: impl Fn() -> Tensor) -> Vec<String> {
        product().realize();
        let mut plan = with_last_plan(Plan::clone);
        let KernelBody::Native(mut s) = plan.kernels.pop().expect("a product").body else {
            panic!("a product")
        };
        let kernels: Vec<_> = plan.kernels.drain(..).collect();
        for kernel in &kernels {
            let KernelBody::Map(maps) = &kernel.body else { panic!("{}", kernel.label) };
            let mut map = maps[0].simplified();
            let made = map.stores.pop().expect("an operand").access.slot;
            let operands = (0..2).filter(|&k| s.operands[k].slot == made);
            s.prologues.extend(operands.map(|operand| Prologue { operand, map: map.clone() }));
        }
        assert!(!s.prologues.is_empty());
        plan.kernels = vec![Kernel { body: KernelBody::Native(s), ..kernels[0].clone() }];
        shaders_of(&plan, caps, CompileMode::Baseline).into_iter().map(|shader| shader.source).collect()
    }

    /// The shader of a product of halves with what is done to its results.
    fn finished(n: usize, finish: impl Fn(&Tensor) -> Tensor) -> String {
        with_device(Device::Cpu, || {
            let half = |shape: [usize; 2]| numbers(shape).to_dtype(DType::F16).realize().clone();
            let (a, b) = (half([512, 256]), half([256, n]));
            finish(&a.matmul(&b)).realize();
        });
        let plan = with_last_plan(Plan::clone);
        assert_eq!(plan.kernels.len(), 1);
        let text = shaders_of(&plan, &Caps::FULL, CompileMode::Baseline).remove(0).source;
        translate("a product of halves", &text);
        text
    }

    #[test]
    fn results_are_finished_eight_at_a_time_where_they_stand_in_one_row() {
        let relu = |product: &Tensor| product.relu();
        for (n, eights) in [(512, true), (520, true), (516, false), (514, false)] {
            let text = finished(n, relu);
            assert_eq!(text.contains("fn finish8("), eights, "{n} columns: {text}");
            assert!(!eights || text.contains("store8_") && !text.contains("store4_"), "{n} columns: {text}");
        }
        // The rows of the product are eights, those of what is made of it are fours, or not even that.
        for (rows, call) in [(4, "store4_"), (2, "store_")] {
            let bias = with_device(Device::Cpu, || numbers([rows]).to_dtype(DType::F16).realize().clone());
            let text = finished(512, |product| product.reshape([512, 512 / rows, rows]) + &bias);
            assert!(text.contains("fn finish8(") && !text.contains("store8_"), "{text}");
            assert!(text.contains(call), "{text}");
        }
    }

    #[test]
    fn parts_of_a_product_put_eights_where_they_belong() {
        with_device(Device::Cpu, || {
            let half = |shape: [usize; 2]| numbers(shape).to_dtype(DType::F16).realize().clone();
            half([512, 256]).matmul(&half([256, 512])).relu().realize();
        });
        let plan = with_last_plan(Plan::clone);
        // More pieces than a kernel may see.
        let (rules, selections) =
            (DeviceLimits { block: 1 << 16, slots: 8, ..rules() }, Selections::default());
        let assembly = lower_plan(&plan, &target(&Caps::FULL, &rules, &selections), CompileMode::Baseline);
        let shaders = assembly.expect("it can be cut").shaders;
        assert!(shaders.len() > 1 && shaders.iter().any(|s| s.source.contains("put_result8(")));
        for shader in &shaders {
            assert!(!shader.source.contains("store8_"), "{}", shader.source);
            translate("a part of a product", &shader.source);
        }
    }

    /// Where `VOLTA_DEVICE=gpu` picks a GPU: results are the same however many are finished at a time.
    #[test]
    #[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
    fn halves_are_finished_right() {
        assert!(default_device().is_gpu(), "VOLTA_DEVICE=gpu picks one");
        let half = |shape: [usize; 2]| (Tensor::rand(shape) - 0.5).to_dtype(DType::F16).realize().clone();
        let check = |n: usize, finish: &dyn Fn(&Tensor) -> Tensor| {
            let (a, b) = (half([520, 256]), half([256, n]));
            let [wide_a, wide_b] = [&a, &b].map(|t| t.to_dtype(DType::F32));
            let error = finish(&a.matmul(&b)).to_dtype(DType::F32) - finish(&wide_a.matmul(&wide_b));
            let most: f32 = error.abs().max().item();
            assert!(most < 0.01, "{n} columns: {most}");
        };
        for n in [512, 520, 516, 514] {
            check(n, &|product| product.relu());
        }
        for rows in [4, 2] {
            let bias = half([1, rows]);
            check(512, &|product| product.reshape([520, 512 / rows, rows]) + &bias);
        }
    }

    #[test]
    fn operands_are_computed_in_every_way_to_multiply() {
        let f16 = |t: &Tensor| t.to_dtype(DType::F16);
        for [m, k, n] in [[3, 512, 512], [100, 512, 512], [512, 512, 512], [1024, 1024, 1024], [33, 35, 37]] {
            let (a, b) = with_device(Device::Cpu, || (numbers([m, k]), numbers([k, n])));
            let halves = texts(&Caps::FULL, || f16(&a).matmul(&f16(&b)));
            let floats = texts(&Caps::FULL, || a.relu().matmul(&(&b * 2.0)));
            for text in halves.iter().chain(&floats) {
                translate("a product with a prologue", text);
            }
            assert!(
                m < 512 || halves[0].contains("coop_mat") && halves[0].contains("fn load8_a"),
                "{}",
                halves[0]
            );
            assert!(m < 1024 || floats.last().is_some_and(|text| text.contains("coop_mat")));
            for text in texts(&Caps::MINIMAL, || a.relu().matmul(&(&b * 2.0))) {
                validate(&text, naga::valid::Capabilities::empty());
            }
        }
    }
}
