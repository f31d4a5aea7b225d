//! Every variant gives what the default one gives, and a choice changes the shaders of its problem and of no other. The variants
//! run where `VOLTA_DEVICE=gpu` picks a GPU; those for tensor cores, which no software adapter has, are validated and
//! translated everywhere.

use super::candidate::Candidate;
use super::{Problems, tune};
use crate::caps::Caps;
use crate::device::context::{self, Context};
use crate::kernels::select::variants;
use crate::lower::problem;
use crate::lower::selections::{DEFAULT, Selections};
use crate::lower::{CompileMode, lower_plan};
use crate::memory::transfer;
use crate::now;
use crate::snapshots::{rules, target, translate};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use volta::{AttentionOptions, ConvOptions, Tensor};
use volta::{Device, default_device, plans_of, with_device};
use volta_ir::dtype::DType;
use volta_ir::plan::Plan;
use volta_ir::plan::kernel::{Kernel, KernelBody, NativeKernel};

fn gpu() -> (Device, Arc<Context>) {
    let Device::Gpu(index) = default_device() else { panic!("VOLTA_DEVICE=gpu picks one") };
    (default_device(), context::open(index).expect("the GPU is there"))
}

fn random(shape: &[usize], dtype: DType) -> Tensor {
    let t = (Tensor::rand(shape) - 0.5).to_dtype(dtype).requires_grad(true);
    t.realize();
    t
}

/// Computes a result and the gradients of its operands.
fn with_gradients(result: &Tensor, operands: &[&Tensor]) {
    result.sum().backward();
    let gradients: Vec<Tensor> = operands.iter().map(|t| t.grad().expect("it has one")).collect();
    volta::realize_all(&gradients);
}

/// A product of sizes that no tile divides, in all layouts.
fn products(dtype: DType) {
    let (a, b) = (random(&[67, 45], dtype), random(&[45, 83], dtype));
    with_gradients(&a.matmul(&b), &[&a, &b]);
}

/// One of halves that come in eights, in all layouts, with whole steps and sizes that no tile divides, and one with rests.
fn products_in_eights() {
    for [m, n, k] in [[288, 352, 512], [200, 328, 264]] {
        let (a, b) = (random(&[m, k], DType::F16), random(&[k, n], DType::F16));
        with_gradients(&a.matmul(&b), &[&a, &b]);
    }
}

/// Products of few lanes, of long sums, of small matrices.
fn odd_products() {
    for (a, b) in [([3, 301], [301, 70]), ([66, 1030], [1030, 37])] {
        random(&a, DType::F32).matmul(&random(&b, DType::F32)).realize();
    }
    let (a, b) = (random(&[3, 35, 18], DType::F32), random(&[3, 29, 18], DType::F32));
    a.matmul(&b.transpose(1, 2)).realize();
}

/// One for tensor cores, with gradients that are as well.
fn broad_convolution() {
    let (x, w) = (random(&[4, 72, 14, 15], DType::F16), random(&[80, 72, 3, 3], DType::F16));
    let options = ConvOptions { padding: [1, 1], ..ConvOptions::default() };
    with_gradients(&x.conv2d(&w, None, options), &[&x, &w]);
}

fn convolutions() {
    let (x, w) = (random(&[2, 18, 9, 11], DType::F32), random(&[22, 9, 3, 3], DType::F32));
    let options = ConvOptions { stride: [2, 1], groups: 2, padding: [0, 1], ..ConvOptions::default() };
    with_gradients(&x.conv2d(&w, None, options), &[&x, &w]);
}

/// Those that are split into halves.
fn large_products() {
    let (a, b) = (random(&[270, 150], DType::F32), random(&[150, 261], DType::F32));
    with_gradients(&a.matmul(&b), &[&a, &b]);
}

/// Those whose sums are long enough for two steps a turn, and are cut into parts that are not all as long.
fn long_products(dtype: DType) {
    let (a, b) = (random(&[300, 2112], dtype), random(&[2112, 210], dtype));
    a.matmul(&b).realize();
}

fn attention(dtype: DType, [heads, queries, keys, width]: [usize; 4]) {
    let [q, k, v] = [queries, keys, keys].map(|rows| random(&[1, heads, rows, width], dtype));
    let result = q.scaled_dot_product_attention(&k, &v, AttentionOptions::default());
    with_gradients(&result, &[&q, &k, &v]);
}

fn masked_attention() {
    let [q, k, v] = [(); 3].map(|()| random(&[1, 2, 128, 64], DType::F16));
    let mask = random(&[1, 1, 128, 128], DType::F16);
    let options = AttentionOptions { mask: Some(&mask), ..AttentionOptions::default() };
    with_gradients(&q.scaled_dot_product_attention(&k, &v, options), &[&q, &k, &v, &mask]);
}

/// What a variant of a candidate computes.
fn values(trial: &Candidate, variant: &str) -> Vec<f32> {
    let program = Arc::new(trial.program(variant).unwrap_or_else(|e| panic!("{variant}: {e}")));
    let output = &trial.native().output;
    let results = program
        .run(trial.plan(), &trial.inputs, &[], &Cell::new(false))
        .unwrap_or_else(|e| panic!("{variant}: {e}"));
    let (dtype, count) = (output.dtype, output.shape.numel());
    let bytes = now(transfer::read(results.outputs[0].clone(), dtype, 0..count)).expect("it can be read");
    match dtype {
        DType::F32 => bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
        DType::F16 => {
            bytes.as_chunks::<2>().0.iter().map(|&b| half::f16::from_le_bytes(b).to_f32()).collect()
        }
        other => panic!("{other} is not tuned"),
    }
}

#[test]
#[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
fn every_way_gives_what_the_default_one_gives() {
    let (device, context) = gpu();
    let Caps { f16, cooperative, .. } = context.caps;
    let ((), plans) = plans_of(device, || {
        products(DType::F32);
        if f16 {
            products(DType::F16);
            products_in_eights();
        }
        odd_products();
        convolutions();
        attention(DType::F32, [2, 37, 70, 20]);
        if cooperative {
            large_products();
            broad_convolution();
            long_products(DType::F32);
            long_products(DType::F16);
            attention(DType::F16, [2, 37, 70, 32]);
            // More gradients of scores than are kept at once.
            attention(DType::F16, [3, 4096, 4096, 16]);
        }
    });
    let mut problems = Problems::default();
    plans.iter().for_each(|p| problems.add(p, &context));
    assert!(problems.all.len() >= 11, "{} problems", problems.all.len());
    let mut compared = 0;
    for p in &problems.all {
        let trial = Candidate::new(&context, &p.kernel, &p.native).expect("there is memory");
        let variants = trial.variants();
        assert!(variants.len() > 1 && variants[0] == DEFAULT, "{}: {variants:?}", p.name);
        trial.compile(&variants);
        let expected = values(&trial, DEFAULT);
        let largest = expected.iter().fold(0f32, |m, x| m.max(x.abs()));
        assert!(largest > 0.0 && largest.is_finite(), "{}: {largest}", p.name);
        let halves = p.native.operands.iter().any(|o| o.dtype == DType::F16);
        let tolerance = largest * if halves { 2e-3 } else { 1e-5 };
        for variant in &variants[1..] {
            for (k, (x, y)) in values(&trial, variant).iter().zip(&expected).enumerate() {
                assert!((x - y).abs() <= tolerance, "{}, {variant}: {x} is not {y} at {k}", p.name);
            }
            compared += 1;
        }
    }
    println!("{compared} ways of {} problems", problems.all.len());
}

#[test]
#[ignore = "needs a GPU: VOLTA_DEVICE=gpu"]
fn without_time_nothing_is_tuned() {
    let (device, context) = gpu();
    let (computed, plans) =
        plans_of(device, || Tensor::rand([33, 47]).try_matmul(&Tensor::rand([47, 53]))?.try_realize());
    computed.expect("it is a GPU");
    let state = || {
        let kept = context.kept();
        (kept.revision, kept.selections.clone())
    };
    let before = state();
    let tuning = tune(context.index, &plans, Duration::ZERO, |_, _| ()).expect("it is a GPU");
    assert_eq!((tuning.tuned.len(), tuning.known, tuning.left), (0, 0, 1));
    assert_eq!(before, state());
}

/// The shaders of a plan for a small adapter, with these choices.
fn shaders(plan: &Plan, caps: &Caps, selections: &Selections) -> Vec<String> {
    let rules = volta_ir::plan::memory::DeviceLimits { slots: 8, ..rules() };
    let target = target(caps, &rules, selections);
    let assembly = lower_plan(plan, &target, CompileMode::Baseline).expect("the plan has shaders");
    assembly.shaders.into_iter().map(|s| s.source).collect()
}

/// The kernels of a plan that are not generated from loops, each with a copy of the plan that has it alone.
fn alone(plan: &Plan) -> Vec<(Plan, NativeKernel)> {
    let one = |kernel: &Kernel| {
        let KernelBody::Native(native) = &kernel.body else { return None };
        let mut plan = plan.clone();
        plan.kernels = vec![kernel.clone()];
        Some((plan, NativeKernel::clone(native)))
    };
    plan.kernels.iter().filter_map(one).collect()
}

#[test]
fn every_way_on_tensor_cores_is_valid_and_can_be_translated() {
    let ((), plans) = with_device(Device::Cpu, || {
        plans_of(Device::Cpu, || {
            products(DType::F16);
            products_in_eights();
            large_products();
            long_products(DType::F16);
            for groups in [1, 2] {
                let (x, w) =
                    (random(&[2, 64, 16, 16], DType::F16), random(&[128, 64 / groups, 3, 3], DType::F16));
                let options = ConvOptions { groups, padding: [1, 1], ..ConvOptions::default() };
                with_gradients(&x.conv2d(&w, None, options), &[&x, &w]);
            }
            attention(DType::F16, [2, 128, 128, 64]);
            masked_attention();
        })
    });
    let (caps, rules) = (Caps::FULL, rules());
    let mut cooperative = [0; 3];
    for (mut plan, mut kernel) in plans.iter().flat_map(|plan| alone(plan)) {
        let kind = match kernel.op.name() {
            "matmul" => 0,
            name if name.starts_with("conv") => 1,
            name if name.starts_with("attention") => 2,
            _ => continue,
        };
        // A CPU computes attention of halves in f32; a GPU does not.
        if kind == 2 {
            kernel.operands.iter_mut().chain([&mut kernel.output]).for_each(|o| o.dtype = DType::F16);
            plan.kernels[0].body = KernelBody::Native(Box::new(kernel.clone()));
        }
        let name = problem::name(&kernel);
        for variant in variants(&kernel, &caps) {
            let selections = Selections::only(&name, &variant.to_string());
            let target = target(&caps, &rules, &selections);
            let assembly = lower_plan(&plan, &target, CompileMode::Baseline).expect("the plan has shaders");
            for shader in &assembly.shaders {
                translate(&format!("{variant} of {name}"), &shader.source);
                cooperative[kind] += usize::from(shader.source.contains("coopMultiplyAdd"));
            }
        }
    }
    assert!(cooperative[0] > 100 && cooperative[1] > 20 && cooperative[2] > 2, "{cooperative:?}");
}

#[test]
fn a_choice_changes_the_shader_of_its_problem_alone_and_only_if_it_fits() {
    let least = Caps::MINIMAL;
    let ((), plans) = with_device(Device::Cpu, || {
        plans_of(Device::Cpu, || {
            let (a, b, c) = (Tensor::rand([70, 80]), Tensor::rand([80, 90]), Tensor::rand([90, 60]));
            volta::realize_all(&[a.clone(), b.clone(), c.clone()]);
            (a.matmul(&b) + 1.0).relu().matmul(&c).realize();
        })
    });
    let plan = plans.last().expect("it ran");
    let natives: Vec<_> = plan
        .kernels
        .iter()
        .filter_map(|k| if let KernelBody::Native(s) = &k.body { Some(s) } else { None })
        .collect();
    assert_eq!(natives.len(), 2);
    let name = problem::name(natives[0]);
    assert_ne!(name, problem::name(natives[1]));
    let default = shaders(plan, &least, &Selections::default());
    let mut different = 0;
    for variant in variants(natives[0], &least) {
        let tuned = shaders(plan, &least, &Selections::only(&name, &variant.to_string()));
        different += usize::from(tuned != default);
        assert_eq!(tuned.last(), default.last(), "{variant} changed another product");
    }
    assert!(different >= 5, "{different} ways differ");
    for unknown in
        [DEFAULT, "tiled 1024x1024x16 by 8x8 of 1 in 1", "cooperative 256x128x32 by 4x4 with 1 in 1", ""]
    {
        assert_eq!(shaders(plan, &least, &Selections::only(&name, unknown)), default, "{unknown}");
    }
}
