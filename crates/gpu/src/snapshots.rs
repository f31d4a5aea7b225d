//! The shaders of some plans, for adapters that are fixed here: their text is kept under `tests/snapshots`, so that a
//! change of a generator is read as a difference; and those for tensor cores, which no software adapter has, are
//! validated and translated as the driver's front end would.

use super::caps::AdapterKind;
use super::codegen::shader::Shader;
use super::lower::submission::CostModel;
use super::lower::{CompileMode, LoweringTarget, lower_plan};
use crate::caps::Caps;
use crate::caps::SIZE_CLASSES;
use crate::lower::selections::Selections;
use naga::valid::Capabilities;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use volta::optim::Adam;
use volta::with_last_plan;
use volta::{AttentionOptions, BlockFormat, ConvOptions, QuantizedMatrix, Tensor, realize_all};
use volta::{Device, with_device};
use volta_ir::dtype::DType;
use volta_ir::plan::Plan;
use volta_ir::plan::kernel::KernelBody;
use volta_ir::plan::memory::{DeviceLimits, Rates};

/// Leaves a shader in the folder that `VOLTA_SHADERS` names: `web/tests/shaders` asks a browser for its opinion.
fn leave(text: &str) {
    if let Some(folder) = std::env::var_os("VOLTA_SHADERS") {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let file = Path::new(&folder).join(format!("{:016x}.wgsl", hasher.finish()));
        std::fs::write(file, text).expect("VOLTA_SHADERS names a folder that can be written to");
    }
}

/// The module, if it is valid with these capabilities.
pub(super) fn validate(text: &str, capabilities: Capabilities) -> (naga::Module, naga::valid::ModuleInfo) {
    leave(text);
    let module = naga::front::wgsl::parse_str(text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(text)));
    let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities);
    validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE);
    validator.subgroup_operations(naga::valid::SubgroupOperationSet::all());
    let info = validator.validate(&module).unwrap_or_else(|e| panic!("{}", e.emit_to_string(text)));
    (module, info)
}

/// Validates a shader for tensor cores, and translates it as Vulkan's drivers are given it.
pub(super) fn translate(name: &str, source: &str) {
    let capabilities = Capabilities::COOPERATIVE_MATRIX
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::SUBGROUP;
    let (module, info) = validate(source, capabilities);
    let options = naga::back::spv::Options { lang_version: (1, 3), ..Default::default() };
    let words = naga::back::spv::write_vec(&module, &info, &options, None)
        .unwrap_or_else(|e| panic!("{name}: {e}\n{source}"));
    // The number that every SPIR-V module starts with.
    assert_eq!(words[0], 0x0723_0203);
}

/// The shaders of the plan that `f` runs last. The plan is made, and run, on the CPU.
pub(super) fn shaders(caps: &Caps, f: impl FnOnce()) -> Vec<Shader> {
    with_device(Device::Cpu, f);
    with_last_plan(|plan| shaders_of(plan, caps, CompileMode::Baseline))
}

/// What a GPU of the tests asks for.
pub(super) fn rules() -> DeviceLimits {
    let sizes = DType::ALL.map(DType::size);
    DeviceLimits {
        // That of the CPU, whose plans are looked at.
        alignment: 64,
        block: 1 << 31,
        regions: 1,
        slots: 64,
        max_fused_row: 1 << 16,
        min_rows_unsplit: 2048,
        columns: true,
        prologues: true,
        horizontal_fusion: true,
        sizes,
        size_classes: SIZE_CLASSES,
        rates: Rates { flops_per_byte: 64, kernel_bytes: 4 << 20, host_byte: 0 },
    }
}

/// What shaders are made for in tests.
pub(super) fn target<'a>(
    caps: &'a Caps,
    rules: &'a DeviceLimits,
    selections: &'a Selections,
) -> LoweringTarget<'a> {
    let cost_model = CostModel::of(AdapterKind::Discrete);
    LoweringTarget { who: "a GPU of the tests", caps, rules, selections, cost_model }
}

/// The shaders of a plan for such an adapter.
pub(super) fn shaders_of(plan: &Plan, caps: &Caps, usage: CompileMode) -> Vec<Shader> {
    let lowered = lower_plan(plan, &target(caps, &rules(), &Selections::default()), usage);
    lowered.expect("the plan has shaders").shaders
}

/// The same of attention alone, with halves for operands and result, which the CPU does not use.
fn shaders_of_halves(backward: bool) -> Vec<Shader> {
    with_device(Device::Cpu, || attention(backward));
    let mut plan = with_last_plan(Plan::clone);
    plan.kernels.retain_mut(|kernel| match &mut kernel.body {
        KernelBody::Native(s) if s.op.name().starts_with("attention") => {
            s.operands.iter_mut().chain([&mut s.output]).for_each(|o| o.dtype = DType::F16);
            true
        }
        _ => false,
    });
    shaders_of(&plan, &Caps::FULL, CompileMode::Baseline)
}

pub(super) fn numbers<const N: usize>(shape: [usize; N]) -> Tensor {
    Tensor::from_vec(vec![0.5f32; shape.iter().product()], shape)
}

fn adam_step() {
    let parameters = [numbers([8, 128]).requires_grad(true), numbers([33]).requires_grad(true)];
    let mut adam = Adam::new(parameters.to_vec(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    for p in &parameters {
        p.square().sum().backward();
        p.grad().expect("a gradient").realize();
    }
    adam.step();
}

fn attention(backward: bool) {
    let [q, k, v] = [(); 3].map(|()| numbers([1, 2, 128, 64]).requires_grad(backward));
    let options = AttentionOptions { causal: true, ..AttentionOptions::default() };
    let out = q.scaled_dot_product_attention(&k, &v, options);
    if backward {
        out.sum().backward();
        q.grad().expect("a gradient").realize();
    } else {
        out.realize();
    }
}

fn product(dtype: DType, n: usize) {
    let [a, b] = [(); 2].map(|()| numbers([n, n]).to_dtype(dtype).realize().clone());
    a.matmul(&b).realize();
}

/// Its sums are cut into parts, and two steps are taken an iteration.
fn long_product(dtype: DType) {
    let [a, b] = [[768, 4096], [4096, 3072]].map(|size| numbers(size).to_dtype(dtype).realize().clone());
    a.matmul(&b).realize();
}

/// Its results are written one by one, since its rows do not begin at fours.
fn odd_product() {
    let [a, b] = [[4096, 384], [384, 65]].map(|size| numbers(size).to_dtype(DType::F16).realize().clone());
    a.matmul(&b).realize();
}

/// What is multiplied comes in eights, and is read again when the results are finished.
fn residual_product() {
    let [a, b] = [[4096, 512], [512, 512]].map(|size| numbers(size).to_dtype(DType::F16).realize().clone());
    (a.matmul(&b) + a).realize();
}

/// Steps are stored in two, whichever way round operands lie.
fn large_products() {
    let [a, b] = [[4096, 128], [128, 4096]].map(|size| numbers(size).to_dtype(DType::F16).realize().clone());
    realize_all(&[a.matmul(&b), a.matmul(&a.t()), b.t().matmul(&b), b.t().matmul(&a.t())]);
}

/// One operand is read once, and its rows do not begin at fours.
fn thin_product(transposed: bool) {
    let wide = numbers([1022, 8190]);
    if transposed {
        wide.transpose(0, 1).matmul(&numbers([1022, 128])).realize();
    } else {
        wide.matmul(&numbers([8190, 128])).realize();
    }
}

/// Name, adapter, and what runs.
const SNAPSHOTS: [(&str, &Caps, fn()); 7] = [
    ("softmax", &Caps::MINIMAL, || {
        numbers([64, 128]).softmax(-1).realize();
    }),
    ("softmax_subgroups", &Caps::FULL, || {
        numbers([64, 128]).softmax(-1).realize();
    }),
    ("layer_norm", &Caps::MINIMAL, || {
        let [weight, bias] = [(); 2].map(|()| numbers([128]));
        numbers([64, 128]).layer_norm([128], Some(&weight), Some(&bias), 1e-5).realize();
    }),
    ("adam", &Caps::MINIMAL, adam_step),
    ("matmul_bias_relu", &Caps::MINIMAL, || {
        (numbers([256, 256]).matmul(&numbers([256, 256])) + numbers([256])).relu().realize();
    }),
    ("conv", &Caps::MINIMAL, || {
        let options = ConvOptions { padding: [1, 1], ..ConvOptions::default() };
        numbers([2, 16, 32, 32]).conv2d(&numbers([32, 16, 3, 3]), None, options).realize();
    }),
    ("attention", &Caps::MINIMAL, || attention(false)),
];

#[test]
fn shaders_are_those_of_the_snapshots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let write = std::env::var("VOLTA_SNAPSHOTS").is_ok_and(|v| v == "write");
    let mut changed = Vec::new();
    for (name, caps, run) in SNAPSHOTS {
        let mut text = String::new();
        for shader in shaders(caps, run) {
            validate(&shader.source, Capabilities::SHADER_INT64 | Capabilities::SUBGROUP);
            text += &format!("// {}\n{}\n", shader.kernel, shader.source);
        }
        let file = folder.join(name).with_extension("wgsl");
        if write {
            std::fs::write(&file, text).expect("the snapshots can be written");
        } else if std::fs::read_to_string(&file).unwrap_or_default() != text {
            changed.push(name);
        }
    }
    assert!(
        changed.is_empty(),
        "shaders have changed: {changed:?}. If they should, run this test with VOLTA_SNAPSHOTS=write and read the \
         difference in tests/snapshots"
    );
}

/// WebGPU lets a write to a part of a vector write all of it, over what another invocation has written beside it.
#[test]
fn parts_of_vectors_are_written_where_that_is_promised_only() {
    let kernels: [(&str, fn()); 7] = [
        ("matmul", || product(DType::F32, 256)),
        ("odd matmul", || product(DType::F32, 255)),
        ("matmul of long sums", || {
            numbers([64, 4096]).matmul(&numbers([4096, 64])).realize();
        }),
        ("conv", SNAPSHOTS[5].2),
        ("attention", || attention(false)),
        ("attention's gradient", || attention(true)),
        ("products in parts", odd_product),
    ];
    // Of memory: parts of variables of one invocation are its own.
    let writes_a_part =
        |line: &&str| line.split(" = ").next().is_some_and(|to| to.contains("][")) && line.contains(" = ");
    let halves = Caps { f16: true, subgroup: Some(32), ..Caps::MINIMAL };
    let mut where_promised = 0;
    for (name, run) in kernels {
        for shader in [&Caps::MINIMAL, &halves].into_iter().flat_map(|caps| shaders(caps, run)) {
            let line = shader.source.lines().find(writes_a_part);
            assert_eq!(line, None, "{name}:\n{}", shader.source);
        }
        let promised = Caps { component_stores: true, ..Caps::MINIMAL };
        where_promised +=
            shaders(&promised, run).iter().filter(|s| s.source.lines().any(|l| writes_a_part(&l))).count();
    }
    assert!(where_promised >= 4, "{where_promised}");
}

/// Where the invocations of a workgroup run one after the other, those that wait for each other are slow.
#[test]
fn products_and_rows_of_a_browser_s_software_adapter_have_no_barriers() {
    let kernels: [fn(); 5] = [
        || product(DType::F32, 255),
        || product(DType::F32, 256),
        SNAPSHOTS[0].2,
        SNAPSHOTS[2].2,
        SNAPSHOTS[4].2,
    ];
    for shader in kernels.into_iter().flat_map(|run| shaders(&Caps::SOFTWARE, run)) {
        validate(&shader.source, Capabilities::empty());
        assert!(!shader.source.contains("workgroupBarrier"), "{}:\n{}", shader.kernel, shader.source);
    }
}

#[test]
fn large_products_store_their_steps_in_two() {
    let all = shaders(&Caps::FULL, large_products);
    assert!(all.iter().all(|shader| shader.source.contains("let eight = ")), "not all do");
    // Rows along k cross over from half to half, and rows along lanes do not.
    let variants = ["ab", "a", "b", ""].map(|crossed: &str| {
        move |source: &str| {
            ["a", "b"]
                .iter()
                .all(|name| source.contains(&format!("let {name}_slot1 = ")) == crossed.contains(name))
        }
    });
    for variant in variants {
        let found = all.iter().filter(|shader| variant(&shader.source)).count();
        assert_eq!(found, 1);
    }
}

/// The gradient of a norm's weight: what is summed over all rows reads two numbers of every row besides.
#[test]
fn columns_are_read_side_by_side_whatever_is_known_of_the_rows() {
    let [x, dy] = [(); 2].map(|()| numbers([4096, 64]));
    let [mean, scale] = [(); 2].map(|()| numbers([4096, 1]));
    let all = shaders(&Caps::FULL, || {
        ((&x - &mean) * &scale * &dy).sum_dim(0, false).realize();
    });
    let fours = |l: &&str| l.starts_with("let v") && l.contains("= load4_") && l.contains("* 64u");
    assert!(all[0].source.lines().filter(fours).count() >= 2, "{}", all[0].source);
}

/// Kernels for few rows, in tiles, and on tensor cores; blocks that begin with a word of scales, and an odd number of them.
#[test]
fn products_decode_quantised_weights_where_they_read_them() {
    let mut multiplied_on_tensor_cores = 0;
    for format in BlockFormat::ALL {
        for columns in [1024, 96] {
            let w = with_device(Device::Cpu, || QuantizedMatrix::quantize(&numbers([1024, columns]), format));
            let w = w.expect("whole blocks");
            let mut all = Vec::new();
            for caps in [&Caps::MINIMAL, &Caps::SOFTWARE, &Caps::FULL] {
                for m in [1, 40, 1024] {
                    all.extend(shaders(caps, || {
                        numbers([m, columns]).quantized_linear(&w, None).relu().realize();
                    }));
                    all.extend(shaders(caps, || {
                        numbers([m, 1024]).quantized_matmul(&w).realize();
                    }));
                }
                all.extend(shaders(caps, || {
                    w.dequantize().realize();
                }));
            }
            let decodes =
                |s: &&Shader| s.source.contains("load_packed(") && s.source.contains("load_block_scales(");
            assert!(all.iter().filter(decodes).count() >= 21, "{format:?} of {columns}");
            for Shader { source, .. } in &all {
                translate("a product with quantised weights", source);
                multiplied_on_tensor_cores += usize::from(source.contains("coopMultiplyAdd"));
            }
        }
    }
    assert!(multiplied_on_tensor_cores > 0);
}

#[test]
fn shaders_for_tensor_cores_are_valid_and_can_be_translated() {
    let kernels = [
        ("f16 product", shaders(&Caps::FULL, || product(DType::F16, 512))),
        ("f16 product of odd rows", shaders(&Caps::FULL, odd_product)),
        ("f16 product with its operand added", shaders(&Caps::FULL, residual_product)),
        ("f16 products in all layouts", shaders(&Caps::FULL, large_products)),
        ("f16 product of long sums", shaders(&Caps::FULL, || long_product(DType::F16))),
        ("f32 product of long sums", shaders(&Caps::FULL, || long_product(DType::F32))),
        ("f32 product by halves", shaders(&Caps::FULL, || product(DType::F32, 1024))),
        ("f32 product that splits what it reads", shaders(&Caps::FULL, || thin_product(false))),
        ("f32 product that splits columns", shaders(&Caps::FULL, || thin_product(true))),
        ("attention", shaders_of_halves(false)),
        ("attention's gradient", shaders_of_halves(true)),
    ];
    for (name, shaders) in kernels {
        let mut cooperative = 0;
        for Shader { source, .. } in shaders {
            translate(name, &source);
            cooperative += usize::from(source.contains("coopMultiplyAdd"));
        }
        assert!(cooperative > 0, "{name} uses no cooperative matrices");
    }
}
