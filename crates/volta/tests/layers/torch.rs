//! Numbers that PyTorch gave, in f64 on a CPU.
//!
//! Every parameter was filled by the rule of `array::wave`, `0.5 * sin(0.7 k + 1.3 seed)` for its element `k`, where the seed is
//! the parameter's place among the sorted names, from 1; inputs by the same rule with the seeds below. The loss is the
//! sum of the checksums of all outputs, `Σ element[k] · cos(k)`; the tables hold the checksums of the outputs and of all
//! gradients after `loss.backward()`.

use crate::array::{Array, array, real, tensor};
use crate::driver::fill;
use volta::{
    AttentionMask, BatchNorm2d, CosineEmbeddingOptions, DType, FeedForwardActivation, GRU, LSTM, Module,
    MultiHeadAttention, RNN, RecurrentOptions, Tensor, TransformerDecoderLayer, TransformerEncoderLayer,
    TransformerOptions, TripletMarginOptions, cosine_embedding_loss_with, triplet_margin_loss_with,
};
use volta_testing::test;

fn near(name: &str, found: f64, expected: f64) {
    let tolerance = if real() == DType::F64 { 1e-10 } else { 1e-3 };
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1.0),
        "{name} is {found}, PyTorch's {expected}"
    );
}

/// Inputs by their shapes and seeds.
fn inputs(shapes: &[(&[usize], usize)]) -> Vec<Tensor> {
    shapes.iter().map(|(shape, seed)| tensor(&Array::waves(shape, *seed)).requires_grad(true)).collect()
}

/// Compares outputs and gradients with a table.
fn compare(parameters: Vec<(String, Tensor)>, inputs: &[Tensor], outputs: &[Tensor], table: &[(&str, f64)]) {
    let weighted = |t: &Tensor| {
        let weights = Array::from_fn(&[t.numel()], |k| (k[0] as f64).cos());
        (t.reshape([t.numel()]) * tensor(&weights)).sum()
    };
    let loss = outputs.iter().map(weighted).reduce(|a, b| a + b).expect("an output");
    loss.backward();
    let gradient = |t: &Tensor| array(&t.grad().expect("a gradient")).checksum();
    let mut found: Vec<(String, f64)> = Vec::new();
    found.extend(outputs.iter().enumerate().map(|(k, t)| (format!("out {k}"), array(t).checksum())));
    found.extend(inputs.iter().enumerate().map(|(k, t)| (format!("input {k}"), gradient(t))));
    found.extend(parameters.iter().map(|(name, t)| (name.clone(), gradient(t))));
    assert_eq!(found.len(), table.len());
    for (name, expected) in table {
        let (_, value) = found.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name} is missing"));
        near(name, *value, *expected);
    }
}

fn compare_module(module: &dyn Module, inputs: &[Tensor], outputs: &[Tensor], table: &[(&str, f64)]) {
    compare(module.named_parameters(), inputs, outputs, table);
}

#[test]
fn multi_head_attention() {
    let layer = MultiHeadAttention::new(8, 2);
    fill(&layer);
    // MultiheadAttention(8, 2, batch_first=True) with a causal attn_mask
    let x = inputs(&[(&[2, 5, 8], 30)]);
    let y = layer.attend(&x[0], &x[0], &x[0], AttentionMask::causal());
    compare_module(
        &layer,
        &x,
        &[y],
        &[
            ("out 0", -3.7658367147391316),
            ("input 0", 21.835317220428962),
            ("in_proj_bias", -0.23479602448801284),
            ("in_proj_weight", 1.6261788194886564),
            ("out_proj.bias", 0.18265249105356673),
            ("out_proj.weight", -0.2619191937239972),
        ],
    );
    // … with another sequence and a float attn_mask
    layer.zero_grad();
    let x = inputs(&[(&[2, 3, 8], 31), (&[2, 5, 8], 32)]);
    let mask = tensor(&Array::waves(&[3, 5], 33));
    let y = layer.attend(&x[0], &x[1], &x[1], AttentionMask::of(&mask));
    compare_module(
        &layer,
        &x,
        &[y],
        &[
            ("out 0", 1.5822546889113345),
            ("input 0", 9.070910793338337),
            ("input 1", 0.9011685977423696),
            ("in_proj_bias", 2.2694524834539433),
            ("in_proj_weight", 0.5324524005314909),
            ("out_proj.bias", 1.7477166384372835),
            ("out_proj.weight", -1.041923364824997),
        ],
    );
}

#[test]
fn transformer_encoder_layers() {
    let options = TransformerOptions { dim_feedforward: 12, ..TransformerOptions::default() };
    // TransformerEncoderLayer(8, 2, 12, batch_first=True).eval()
    let layer = TransformerEncoderLayer::with_options(8, 2, options);
    layer.eval();
    fill(&layer);
    let x = inputs(&[(&[2, 5, 8], 30)]);
    compare_module(
        &layer,
        &x,
        &[layer.forward(&x[0])],
        &[
            ("out 0", -0.5492738334116127),
            ("input 0", -1.6232909780862332),
            ("linear1.bias", 0.11530435491545493),
            ("linear1.weight", -0.10081374720822522),
            ("linear2.bias", -0.19652022263572955),
            ("linear2.weight", -0.05926515545663835),
            ("norm1.bias", -0.4352115596421706),
            ("norm1.weight", 0.18627224783332746),
            ("norm2.bias", 0.18265249105356646),
            ("norm2.weight", -0.36644979558279134),
            ("self_attn.in_proj_bias", -0.18883770757509966),
            ("self_attn.in_proj_weight", 0.10560627713192774),
            ("self_attn.out_proj.bias", 0.5874656754497947),
            ("self_attn.out_proj.weight", 0.47653441099403937),
        ],
    );
    // … with activation="gelu", norm_first=True and a causal src_mask
    let options = TransformerOptions { activation: FeedForwardActivation::Gelu, norm_first: true, ..options };
    let layer = TransformerEncoderLayer::with_options(8, 2, options);
    layer.eval();
    fill(&layer);
    let x = inputs(&[(&[2, 5, 8], 30)]);
    compare_module(
        &layer,
        &x,
        &[layer.run(&x[0], AttentionMask::causal())],
        &[
            ("out 0", 2.5947252189122305),
            ("input 0", 44.56099605688453),
            ("linear1.bias", 0.20886595156715396),
            ("linear1.weight", 0.002045388392071107),
            ("linear2.bias", 0.1826524910535675),
            ("linear2.weight", -0.48797247221844753),
            ("norm1.bias", -7.10135431950361),
            ("norm1.weight", -7.92881559335714),
            ("norm2.bias", -3.0388511099068136),
            ("norm2.weight", 0.4347263436245298),
            ("self_attn.in_proj_bias", 4.3379296889203705),
            ("self_attn.in_proj_weight", 1.859543919405581),
            ("self_attn.out_proj.bias", 0.35266038440173714),
            ("self_attn.out_proj.weight", -0.8753314579698648),
        ],
    );
}

#[test]
fn transformer_decoder_layers() {
    let options = TransformerOptions { dim_feedforward: 12, ..TransformerOptions::default() };
    // TransformerDecoderLayer(8, 2, 12, batch_first=True).eval() with a causal tgt_mask
    let layer = TransformerDecoderLayer::with_options(8, 2, options);
    layer.eval();
    fill(&layer);
    let x = inputs(&[(&[2, 5, 8], 30), (&[2, 4, 8], 31)]);
    let y = layer.run(&x[0], &x[1], AttentionMask::causal(), AttentionMask::default());
    compare_module(
        &layer,
        &x,
        &[y],
        &[
            ("out 0", 2.3393492302533234),
            ("input 0", -0.23415282694242817),
            ("input 1", -0.006389021035729671),
            ("linear1.bias", 0.0699185191822696),
            ("linear1.weight", -0.6699442813171603),
            ("linear2.bias", 0.04412712584780425),
            ("linear2.weight", 0.18641982358331266),
            ("multihead_attn.in_proj_bias", 0.07726504937676867),
            ("multihead_attn.in_proj_weight", -0.0002774147149597096),
            ("multihead_attn.out_proj.bias", 0.003422732698418921),
            ("multihead_attn.out_proj.weight", 0.543018314378637),
            ("norm1.bias", 0.026095839421442668),
            ("norm1.weight", -0.08460324521056548),
            ("norm2.bias", 0.42898019973433643),
            ("norm2.weight", 0.20402713174813036),
            ("norm3.bias", 0.18265249105356646),
            ("norm3.weight", -2.51045850081258),
            ("self_attn.in_proj_bias", 0.0002936013245644271),
            ("self_attn.in_proj_weight", -0.03938051005870364),
            ("self_attn.out_proj.bias", 0.0075438191751019896),
            ("self_attn.out_proj.weight", 0.05023963802863904),
        ],
    );
}

#[test]
fn lstm() {
    // LSTM(3, 4, 2, bidirectional=True)
    let options = RecurrentOptions { layers: 2, bidirectional: true, ..RecurrentOptions::default() };
    let layer = LSTM::with_options(3, 4, options);
    fill(&layer);
    let x = inputs(&[(&[5, 2, 3], 30), (&[4, 2, 4], 31), (&[4, 2, 4], 32)]);
    let (y, (h, c)) = layer.run(&x[0], Some((&x[1], &x[2])));
    compare_module(
        &layer,
        &x,
        &[y, h, c],
        &[
            ("out 0", -0.4679109205357832),
            ("out 1", -0.1140952561258464),
            ("out 2", 0.49299963684382253),
            ("input 0", -0.5765656617080512),
            ("input 1", 0.09946960825681248),
            ("input 2", 1.4888881659225375),
            ("bias_hh_l0", -0.9012307074701311),
            ("bias_hh_l0_reverse", 0.48911949387323345),
            ("bias_hh_l1", 1.500689727017535),
            ("bias_hh_l1_reverse", -0.8684253855537937),
            ("bias_ih_l0", -0.9012307074701311),
            ("bias_ih_l0_reverse", 0.48911949387323334),
            ("bias_ih_l1", 1.5006897270175354),
            ("bias_ih_l1_reverse", -0.8684253855537934),
            ("weight_hh_l0", 0.2856243490690872),
            ("weight_hh_l0_reverse", 0.12198046414694216),
            ("weight_hh_l1", 0.4661481472714988),
            ("weight_hh_l1_reverse", -0.305929329770885),
            ("weight_ih_l0", -0.11124326378736293),
            ("weight_ih_l0_reverse", -0.06903803604784718),
            ("weight_ih_l1", -0.17989504064631842),
            ("weight_ih_l1_reverse", -0.3855995360265093),
        ],
    );
}

#[test]
fn gru() {
    // GRU(3, 4, 2, bidirectional=True, batch_first=True)
    let options =
        RecurrentOptions { layers: 2, bidirectional: true, batch_first: true, ..Default::default() };
    let layer = GRU::with_options(3, 4, options);
    fill(&layer);
    let x = inputs(&[(&[2, 5, 3], 30), (&[4, 2, 4], 31)]);
    let (y, h) = layer.run(&x[0], Some(&x[1]));
    compare_module(
        &layer,
        &x,
        &[y, h],
        &[
            ("out 0", -0.24783479690842988),
            ("out 1", 0.6537006719296914),
            ("input 0", -0.3834990017700707),
            ("input 1", -0.11036844461874318),
            ("bias_hh_l0", 0.3438651613204892),
            ("bias_hh_l0_reverse", -0.06038874235808788),
            ("bias_hh_l1", 0.8441369602317037),
            ("bias_hh_l1_reverse", 0.5061837917213908),
            ("bias_ih_l0", 0.5575407924343971),
            ("bias_ih_l0_reverse", -0.08780754034762432),
            ("bias_ih_l1", 1.7847441214732533),
            ("bias_ih_l1_reverse", 0.22186219016030656),
            ("weight_hh_l0", 0.27383050935543407),
            ("weight_hh_l0_reverse", 0.2357841557460951),
            ("weight_hh_l1", -0.05863457127599846),
            ("weight_hh_l1_reverse", -0.2297298551988719),
            ("weight_ih_l0", -0.16711458168933138),
            ("weight_ih_l0_reverse", -0.21925300774135068),
            ("weight_ih_l1", -0.7355249566887385),
            ("weight_ih_l1_reverse", -0.26725639784861205),
        ],
    );
}

#[test]
fn rnn() {
    // RNN(3, 4, nonlinearity="relu")
    let layer = RNN::new(3, 4).with_relu();
    fill(&layer);
    let x = inputs(&[(&[5, 2, 3], 30), (&[1, 2, 4], 31)]);
    let (y, h) = layer.run(&x[0], Some(&x[1]));
    compare_module(
        &layer,
        &x,
        &[y, h],
        &[
            ("out 0", 1.8646848236996005),
            ("out 1", 0.981386615322378),
            ("input 0", -1.6662405359456587),
            ("input 1", -0.08308397680853688),
            ("bias_hh_l0", 2.4526974060266324),
            ("bias_ih_l0", 2.4526974060266324),
            ("weight_hh_l0", 2.0155569130357183),
            ("weight_ih_l0", -2.699131089470999),
        ],
    );
}

#[test]
fn batch_norm() {
    // BatchNorm2d(3): one batch of seed 30, then one of seed 31, then that one again in evaluation.
    let layer = BatchNorm2d::new(3);
    fill(&layer);
    layer.forward(&tensor(&Array::waves(&[2, 3, 4, 5], 30)));
    let x = inputs(&[(&[2, 3, 4, 5], 31)]);
    compare_module(
        &layer,
        &x,
        &[layer.forward(&x[0])],
        &[
            ("out 0", -0.5281947582652333),
            ("input 0", -10.856647755308565),
            ("bias", 0.18204071220392234),
            ("weight", -0.8679686608269302),
        ],
    );
    let state = layer.state_dict();
    let buffer = |name: &str| array(state.get(name).expect("a buffer")).checksum();
    near("running_mean", buffer("running_mean"), 0.0060744937163780075);
    near("running_var", buffer("running_var"), 0.93782336590851);
    assert_eq!(state.get("num_batches_tracked").expect("a buffer").item::<i32>(), 2);
    layer.eval();
    near("evaluation", array(&layer.forward(&x[0])).checksum(), -0.05188948467600357);
}

#[test]
fn losses_of_distances() {
    // cosine_embedding_loss(a, b, [1, -1, -1], margin=0.1)
    let x = inputs(&[(&[3, 4], 30), (&[3, 4], 31)]);
    let target = Tensor::from_slice(&[1i32, -1, -1], [3]);
    let options = CosineEmbeddingOptions { margin: 0.1, ..Default::default() };
    let loss = cosine_embedding_loss_with(&x[0], &x[1], &target, options);
    compare(
        Vec::new(),
        &x,
        &[loss],
        &[("out 0", 0.3765765047910184), ("input 0", 0.0574195596620346), ("input 1", -1.255535128664512)],
    );
    // triplet_margin_loss(a, b, c, margin=1.5, p=3, swap=True)
    let x = inputs(&[(&[3, 4], 30), (&[3, 4], 31), (&[3, 4], 32)]);
    let options = TripletMarginOptions { margin: 1.5, p: 3.0, swap: true, ..Default::default() };
    let loss = triplet_margin_loss_with(&x[0], &x[1], &x[2], options);
    compare(
        Vec::new(),
        &x,
        &[loss],
        &[
            ("out 0", 1.5177500564678585),
            ("input 0", -0.580500557803826),
            ("input 1", 0.4097269108151387),
            ("input 2", 0.17077364698868727),
        ],
    );
}
