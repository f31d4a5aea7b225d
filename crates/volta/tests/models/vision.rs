//! Networks for images are torchvision's: names, shapes and results.
//!
//! `scripts/make-vision-fixtures` writes what torchvision says. Weights follow from their names, there and here.

use super::files::{distance, fixture, floats};
use serde_json::Value;
use volta::models::{
    MobileNetV2, MobileNetV2Options, MobileNetV3, MobileNetV3Options, ResNet, ResNetOptions,
    VisionTransformer, VisionTransformerOptions,
};
use volta::{Module, StateDict, Tensor, no_grad};
use volta_testing::test;

fn said() -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixture("vision.json")).unwrap()).unwrap()
}

fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |value, byte| (value ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Numbers within ±1/2 that follow from a name.
fn uniform(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let seed = u64::from(fnv(name));
    (0..count as u64).map(move |k| {
        let x = (k * 2_654_435_761 + seed) % (1 << 32);
        ((x * 2_246_822_519) % (1 << 32)) as f64 / f64::from(2u32.pow(31)) / 2.0 - 0.5
    })
}

fn value(name: &str, shape: &[usize]) -> Vec<f32> {
    let count = shape.iter().product();
    let change = |u: f64| match shape {
        _ if name.ends_with("running_var") => 1.0 + u,
        [_, rest @ ..] if !rest.is_empty() => u * 2.0 * (3.0 / rest.iter().product::<usize>() as f64).sqrt(),
        _ if name.ends_with("weight") => 1.0 + 0.4 * u,
        _ => 0.4 * u,
    };
    uniform(name, count).map(|u| change(u) as f32).collect()
}

fn lines(model: &dyn Module) -> Vec<String> {
    let state = model.state_dict();
    let mut all: Vec<String> =
        state.iter().map(|(name, t)| format!("{name} {:?}", t.shape().to_vec())).collect();
    all.sort();
    all
}

fn resnet(options: ResNetOptions) -> Box<dyn Module> {
    Box::new(ResNet::new(options))
}

fn vit(options: VisionTransformerOptions) -> Box<dyn Module> {
    Box::new(VisionTransformer::new(options))
}

fn v3(large: bool, width: f64, classes: usize) -> Box<dyn Module> {
    Box::new(MobileNetV3::new(MobileNetV3Options { large, width, classes }))
}

const TINY_VIT: VisionTransformerOptions =
    VisionTransformerOptions { image: 32, patch: 8, layers: 2, heads: 2, width: 16, hidden: 32, classes: 5 };

#[test]
fn names_and_shapes_are_those_of_torchvision() {
    let said = said();
    let made = [
        ("resnet18", resnet(ResNetOptions::resnet18())),
        ("resnet34", resnet(ResNetOptions::resnet34())),
        ("resnet50", resnet(ResNetOptions::resnet50())),
        ("resnet101", resnet(ResNetOptions::resnet101())),
        ("resnet152", resnet(ResNetOptions::resnet152())),
        ("mobilenet_v2", Box::new(MobileNetV2::new(MobileNetV2Options::default()))),
        ("mobilenet_v3_large", v3(true, 1.0, 1000)),
        ("mobilenet_v3_small", v3(false, 1.0, 1000)),
        ("vit_b_16", vit(VisionTransformerOptions::b_16())),
        ("vit_b_32", vit(VisionTransformerOptions::b_32())),
        ("vit_l_16", vit(VisionTransformerOptions::l_16())),
        ("vit_l_32", vit(VisionTransformerOptions::l_32())),
        ("vit_h_14", vit(VisionTransformerOptions::h_14())),
    ];
    for (name, model) in made {
        let found = lines(&*model);
        let hash = found.join("\n").bytes().fold(0xcbf2_9ce4_8422_2325_u64, |value, byte| {
            (value ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let expected = &said["shapes"][name];
        assert_eq!(found.len() as u64, expected["count"].as_u64().unwrap(), "{name}: {found:#?}");
        assert_eq!(format!("{hash:016x}"), expected["hash"].as_str().unwrap(), "{name}: {found:#?}");
    }
}

#[test]
fn results_are_those_of_torchvision() {
    let said = said();
    let small = |options: ResNetOptions| ResNetOptions { blocks: [1; 4], classes: 5, ..options };
    let made = [
        ("basic", resnet(small(ResNetOptions::resnet18()))),
        ("bottleneck", resnet(small(ResNetOptions::resnet50()))),
        ("mobilenet_v2", Box::new(MobileNetV2::new(MobileNetV2Options { width: 0.25, classes: 5 }))),
        ("mobilenet_v3_large", v3(true, 0.25, 5)),
        ("mobilenet_v3_small", v3(false, 0.25, 5)),
        ("vit", vit(TINY_VIT)),
    ];
    for (name, model) in made {
        for (part, t) in model.state_dict().iter() {
            if t.dtype().is_float() {
                t.assign(&Tensor::from_vec(value(part, &t.shape()), t.shape()));
            }
        }
        model.eval();
        let expected = &said["outputs"][name];
        let size = expected["size"].as_u64().unwrap() as usize;
        let images = uniform("images", 2 * 3 * size * size).map(|u| (2.0 * u) as f32).collect::<Vec<_>>();
        let found = no_grad(|| model.forward(&Tensor::from_vec(images, [2, 3, size, size])));
        let apart = distance(&found.to_vec::<f32>(), &floats(&expected["output"]));
        assert!(apart < 1e-4, "{name}: {apart}");
    }
}

#[test]
fn weights_of_timm_load_by_their_names() {
    let said = said();
    let mut theirs = StateDict::new();
    for line in said["timm"].as_array().unwrap() {
        let (name, shape) = line.as_str().unwrap().split_once(' ').unwrap();
        let shape: Vec<usize> = serde_json::from_str(shape).unwrap();
        theirs.insert(name, Tensor::full(&shape, 0.5));
    }
    let model = VisionTransformer::new(TINY_VIT);
    model.load_state_dict(&VisionTransformer::timm_names().apply(&theirs).unwrap(), true).unwrap();
    assert_eq!(model.heads.head.bias.as_ref().unwrap().to_vec::<f32>(), [0.5; 5]);
}

#[test]
fn a_network_for_images_trains() {
    let model =
        ResNet::new(ResNetOptions { blocks: [1; 4], width: 4, classes: 2, ..ResNetOptions::resnet18() });
    let images = Tensor::from_vec(
        (0..4 * 3 * 32 * 32).map(|k| if k / 3072 % 2 == 0 { 0.5f32 } else { -0.5 }).collect(),
        [4, 3, 32, 32],
    );
    let classes = Tensor::from_vec(vec![0i32, 1, 0, 1], [4]);
    let mut adam = volta::Adam::new(model.parameters(), 0.01, (0.9, 0.999), 1e-8, 0.0);
    let mut losses = Vec::new();
    for _ in 0..8 {
        adam.zero_grad();
        let loss = volta::cross_entropy(&model.forward(&images), &classes);
        loss.backward();
        adam.step();
        losses.push(loss.item::<f32>());
    }
    assert!(losses[7] < 0.3 * losses[0], "{losses:?}");
}
