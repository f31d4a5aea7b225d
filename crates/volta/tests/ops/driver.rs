//! The checks that every row of the table goes through.

use crate::layout::Layout;
use crate::random::Random;
use crate::reference::Array;
use crate::table::{Row, array, stored, tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use volta::{
    BackwardOptions, DType, Device, Tensor, default_device, no_grad, try_grad, with_device, with_fusion,
};

/// Declares the tests of a family from the function that gives its rows.
macro_rules! checks {
    ($rows:expr) => {
        #[test]
        fn values_match_the_reference_in_every_type() {
            $crate::driver::each_row($rows, $crate::driver::values);
        }
        #[test]
        fn gradients_match_finite_differences() {
            $crate::driver::each_row($rows, $crate::driver::gradients);
        }
        #[test]
        fn gradients_of_gradients_match_finite_differences() {
            $crate::driver::each_row($rows, $crate::driver::second_gradients);
        }
        #[test]
        fn layouts_change_neither_values_nor_gradients() {
            $crate::driver::each_row($rows, $crate::driver::layouts);
        }
        #[test]
        fn fusion_changes_neither_values_nor_gradients() {
            $crate::driver::each_row($rows, $crate::driver::fusion);
        }
    };
}

/// How far apart the points of a finite difference are.
const STEP: f64 = 1e-5;
/// How many elements of an input are tried by finite differences.
const SAMPLES: usize = 10;
const DIFFERENCE: f64 = 2e-6;

/// Runs a check on every row and reports all that fail, not only the first.
pub fn each_row(rows: Vec<Row>, check: fn(&Row)) {
    assert!(!rows.is_empty());
    let mut failures = Vec::new();
    let on_gpu = default_device().is_gpu();
    for (k, row) in rows.iter().enumerate() {
        if on_gpu && (row.name.contains("f64") || (row.name.contains("i64") && only_webgpu())) {
            continue;
        }
        assert!(rows[..k].iter().all(|other| other.name != row.name), "two rows are called {}", row.name);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(row))) {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
                .unwrap_or_default();
            failures.push(format!("{}: {message}", row.name));
        }
    }
    let (failed, all) = (failures.len(), rows.len());
    assert!(failures.is_empty(), "{failed} of {all} rows fail:\n{}", failures.join("\n"));
}

/// The row's types that the device under test computes in: `VOLTA_DEVICE=gpu` runs the table on a GPU.
fn types(row: &Row) -> impl Iterator<Item = DType> {
    let missing = match (default_device().is_gpu(), only_webgpu()) {
        (false, _) => &[][..],
        (true, false) => &[DType::F64],
        (true, true) => &[DType::F64, DType::I64],
    };
    row.dtypes.iter().copied().filter(move |d| !missing.contains(d))
}

/// The type as the device under test has it: without i64, integers are i32.
pub fn available(dtype: DType) -> DType {
    match dtype {
        DType::I64 if default_device().is_gpu() && only_webgpu() => DType::I32,
        dtype => dtype,
    }
}

/// The type of sums of integers of this type.
pub fn summed(dtype: DType) -> DType {
    match available(DType::I64) {
        DType::I32 if dtype == DType::U32 => DType::U32,
        wide => wide,
    }
}

/// Whether the GPU has no more than every WebGPU device.
pub fn only_webgpu() -> bool {
    std::env::var("VOLTA_LIMITS").is_ok_and(|v| v == "webgpu")
}

/// Which of many things a row is tried with: with all, or, on a software adapter, which takes long to compile shaders, with
/// every `every`th, and other rows with others.
fn by_turns(row: &Row, every: usize) -> impl Fn(usize) -> bool {
    let (all, turn) = (!on_software(), row.name.bytes().map(usize::from).sum::<usize>());
    move |k| all || (k + turn).is_multiple_of(every)
}

/// The same for what is not about values: `seldom` times as seldom, and with others, where the GPU has no more than WebGPU
/// promises.
fn by_rarer_turns(row: &Row, every: usize, seldom: usize) -> impl Fn(usize) -> bool {
    let (every, shift) = if only_webgpu() { (every * seldom, 1) } else { (every, 0) };
    let due = by_turns(row, every);
    move |k| due(k + shift)
}

/// Whether this job tries the `k`th of many things: on a software adapter, of two that follow each other, the job with all that the
/// adapter offers tries one and the job with WebGPU's limits the other.
fn is_this_jobs(row: &Row, k: usize) -> bool {
    by_rarer_turns(row, 2, 1)(k)
}

/// Whether the device under test is a GPU in software.
pub fn on_software() -> bool {
    default_device().is_gpu() && std::env::var("VOLTA_ADAPTER").is_ok_and(|v| v == "llvmpipe")
}

/// The relative error of about one op in this type.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 2e-6,
        DType::F16 => 2e-3,
        DType::BF16 => 1.6e-2,
        _ => 0.0,
    }
}

fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// Panics where two arrays differ by more than `tolerance`, relative to the larger of 1 and the value.
fn assert_close(what: &str, actual: &Array, expected: &Array, tolerance: f64) {
    assert_eq!(actual.shape, expected.shape, "{what}: the shape");
    for (k, (&a, &e)) in actual.data.iter().zip(&expected.data).enumerate() {
        let close = same(a, e) || (a - e).abs() <= tolerance * e.abs().max(1.0);
        assert!(close, "{what}: element {k} of {:?} is {a:?}, expected {e:?}", expected.shape);
    }
}

/// Panics where two arrays are not the same bits, signs of zeros included; any NaN is like another.
fn assert_same(what: &str, actual: &Array, expected: &Array) {
    assert_close(what, actual, expected, 0.0);
    let signs =
        |x: &Array| -> Vec<bool> { x.data.iter().map(|v| v.is_sign_negative() && !v.is_nan()).collect() };
    assert_eq!(signs(actual), signs(expected), "{what}: the signs");
}

fn random_array(shape: &[usize], seed: u64) -> Array {
    let mut random = Random::new(seed);
    Array::from_fn(shape, |_| random.between(0.25, 1.5))
}

/// The forward value of every case in every type, or in one of them by turns, against the reference.
pub fn values(row: &Row) {
    let due = by_turns(row, row.dtypes.len().max(1));
    for (k, case) in row.cases.iter().enumerate() {
        // The first one in all types, others by turns. Both jobs of a software adapter have the first in f32; only one knows i64.
        let is_tried = |t: usize, dtype: DType| {
            let by_both = k == 0 && dtype == DType::F32 || dtype == DType::I64;
            (k == 0 || due(k + t)) && (by_both || is_this_jobs(row, k + t))
        };
        let known =
            row.dtypes.iter().copied().enumerate().filter(|(_, d)| types(row).any(|known| known == *d));
        for (_, dtype) in known.filter(|&(t, dtype)| is_tried(t, dtype)) {
            let inputs = row.inputs(case, dtype);
            let expected = (row.reference)(&inputs);
            let out = (row.call)(&row.tensors(&inputs, dtype));
            let gives = available(row.gives.dtype(dtype));
            assert_eq!(out.dtype(), gives, "{case:?} of {dtype}: the result's type");
            let expected = expected.map(|x| stored(x, gives));
            let wide = if gives.is_float() { tolerance(dtype).max(tolerance(gives)) } else { 0.0 };
            assert_close(&format!("{case:?} of {dtype}"), &array(&out), &expected, wide * row.slack);
        }
    }
}

/// Like [`values`], with errors relative to each value, however small it is.
pub fn relative_values(row: &Row) {
    for dtype in types(row) {
        let inputs = row.inputs(&row.cases[0], dtype);
        let expected = (row.reference)(&inputs);
        let ratio = array(&(row.call)(&row.tensors(&inputs, dtype))).div(&expected);
        let what = format!("{dtype}, relative to the expected value");
        assert_close(&what, &ratio, &Array::full(&expected.shape, 1.0), tolerance(dtype) * row.slack);
    }
}

/// A row's result in the middle of a graph, and the gradients of the leaves before it.
struct Evaluated {
    out: Array,
    gradients: Vec<Option<Array>>,
}

/// Leaves that hold half of what the op shall see (exactly: it is a power of two), and the op's inputs.
fn leaves_and_inputs(
    row: &Row,
    inputs: &[Array],
    dtype: DType,
    layout: Layout,
    scaled: bool,
) -> (Vec<Tensor>, Vec<Tensor>) {
    let mut leaves = Vec::new();
    let mut seen = Vec::new();
    for (k, x) in inputs.iter().enumerate() {
        let own = row.dtype_of(k, dtype);
        let free = row.values_of(k).is_free() && own.is_float();
        let values = if free && scaled { x.map(|v| v / 2.0) } else { x.clone() };
        let mut leaf = tensor(&layout.store(&values, 0.0), own);
        if free && row.differentiable {
            leaf = leaf.requires_grad(true);
        }
        let doubled = if free && scaled { leaf.mul(2.0) } else { leaf.clone() };
        seen.push(layout.view(&doubled, &x.shape));
        leaves.push(leaf);
    }
    (leaves, seen)
}

/// The loss that makes the gradient entering the op a random one, and that gradient.
fn weighted(out: &Tensor) -> (Tensor, Array) {
    let weights = random_array(&out.shape(), 5).map(|w| stored(w, out.dtype()));
    (out.mul(tensor(&weights, out.dtype())).sum(), weights)
}

fn evaluate(row: &Row, inputs: &[Array], dtype: DType, layout: Layout, scaled: bool) -> Evaluated {
    let (leaves, seen) = leaves_and_inputs(row, inputs, dtype, layout, scaled);
    let out = (row.call)(&seen);
    let mut gradients = vec![None; leaves.len()];
    if row.differentiable && out.is_tracked() {
        weighted(&out).0.backward();
        gradients = leaves.iter().map(|leaf| leaf.grad().map(|g| array(&g))).collect();
    }
    Evaluated { out: array(&out), gradients }
}

/// Up to a few places of an array, the same every time.
fn places(count: usize) -> Vec<usize> {
    let mut random = Random::new(count as u64 + 3);
    let mut all = random.order(count);
    all.truncate(SAMPLES);
    all
}

fn nudged(x: &[Array], input: usize, place: usize, by: f64) -> Vec<Array> {
    let mut all = x.to_vec();
    all[input].data[place] += by;
    all
}

/// The gradients in f64, mid-graph, against differences of the op's own forward values.
pub fn gradients(row: &Row) {
    if !row.differentiable {
        return;
    }
    if default_device().is_gpu() {
        return gradients_as_on_the_cpu(row);
    }
    for case in &row.cases {
        let inputs = row.inputs(case, DType::F64);
        let found = evaluate(row, &inputs, DType::F64, Layout::Contiguous, true);
        let weights = random_array(&found.out.shape, 5);
        let forward = |x: &[Array]| no_grad(|| array(&(row.call)(&row.tensors(x, DType::F64))));
        for k in (0..inputs.len()).filter(|&k| row.values_of(k).is_free()) {
            let gradient = found.gradients[k].as_ref().unwrap_or_else(|| panic!("no gradient of input {k}"));
            assert_eq!(gradient.shape, inputs[k].shape, "{case:?}: the shape of the gradient of input {k}");
            for place in places(inputs[k].numel()) {
                let up = forward(&nudged(&inputs, k, place, STEP));
                let down = forward(&nudged(&inputs, k, place, -STEP));
                let slope: f64 =
                    (0..up.numel()).map(|i| weights.data[i] * (up.data[i] - down.data[i])).sum::<f64>()
                        / (2.0 * STEP);
                // The leaf is half of the input.
                assert_slope(&format!("{case:?}: input {k}"), place, gradient.data[place], 2.0 * slope);
            }
        }
    }
}

/// The gradients in f32 and in f16 on the device under test, against those of the CPU. The two jobs of a software adapter share out
/// the cases in f32; the one with all that it offers has the last case of every third row in f16, too.
fn gradients_as_on_the_cpu(row: &Row) {
    let last = row.cases.len() - 1;
    let in_halves_as_well = row.dtypes.contains(&DType::F16) && by_turns(row, 3)(0) && !only_webgpu();
    for (number, case) in row.cases.iter().enumerate() {
        let is_due = |dtype: DType| match dtype {
            DType::F16 => in_halves_as_well && number == last,
            _ => is_this_jobs(row, number),
        };
        for dtype in [DType::F32, DType::F16].into_iter().filter(|d| row.dtypes.contains(d)) {
            if is_due(dtype) || !on_software() {
                agrees_with_the_cpu(row, case, dtype);
            }
        }
    }
}

fn agrees_with_the_cpu(row: &Row, case: &[Vec<usize>], dtype: DType) {
    let inputs = row.inputs(case, dtype);
    let run = || evaluate(row, &inputs, dtype, Layout::Contiguous, true);
    let (here, there) = (run(), with_device(Device::Cpu, run));
    for (k, (a, b)) in here.gradients.iter().zip(&there.gradients).enumerate() {
        assert_eq!(a.is_some(), b.is_some(), "{case:?} of {dtype}: the gradient of input {k}");
        if let (Some(a), Some(b)) = (a, b) {
            let what = format!("{case:?} of {dtype}: gradient {k}");
            match dtype {
                DType::F16 => assert_near(&what, a, b),
                _ => assert_close(&what, a, b, 16.0 * tolerance(dtype) * row.slack),
            }
        }
    }
}

/// Panics where two arrays of halves differ by more than a small part of the largest of them.
fn assert_near(what: &str, actual: &Array, expected: &Array) {
    assert_eq!(actual.shape, expected.shape, "{what}: the shape");
    let largest = expected.data.iter().filter(|x| x.is_finite()).fold(0f64, |m, x| m.max(x.abs()));
    let most = 0.03 * largest + tolerance(DType::F16);
    for (k, (&a, &e)) in actual.data.iter().zip(&expected.data).enumerate() {
        assert!(same(a, e) || (a - e).abs() <= most, "{what}: element {k} is {a:?}, expected {e:?}");
    }
}

fn assert_slope(what: &str, place: usize, found: f64, expected: f64) {
    let close = (found - expected).abs() <= DIFFERENCE * expected.abs().max(1.0);
    assert!(close, "{what}: the gradient at {place} is {found:?}, by differences {expected:?}");
}

/// Gradients of gradients: of (gradients · fixed directions) with respect to the inputs and to the entering gradient.
struct Twice<'r> {
    row: &'r Row,
    dtype: DType,
    inputs: Vec<Array>,
    /// The inputs that have gradients.
    free: Vec<usize>,
    directions: Vec<Array>,
}

impl<'r> Twice<'r> {
    fn new(row: &'r Row, dtype: DType) -> Twice<'r> {
        let inputs = row.inputs(&row.cases[0], dtype);
        let free: Vec<usize> = (0..inputs.len()).filter(|&k| row.values_of(k).is_free()).collect();
        let directions = free.iter().map(|&k| random_array(&inputs[k].shape, 11 + k as u64)).collect();
        Twice { row, dtype, inputs, free, directions }
    }

    /// Everything that can be nudged: the free inputs, then the entering gradient.
    fn variables(&self) -> Vec<Array> {
        let shape = no_grad(|| (self.row.call)(&self.row.tensors(&self.inputs, self.dtype)).shape());
        let mut all: Vec<Array> = self.free.iter().map(|&k| self.inputs[k].clone()).collect();
        all.push(random_array(&shape, 5));
        all
    }

    fn first(&self, all: &[Array], create_graph: bool) -> (Vec<Tensor>, Vec<Option<Tensor>>) {
        let leaves: Vec<Tensor> = all.iter().map(|x| tensor(x, self.dtype).requires_grad(true)).collect();
        let mut seen = self.row.tensors(&self.inputs, self.dtype);
        for (leaf, &k) in leaves.iter().zip(&self.free) {
            seen[k] = leaf.mul(2.0).mul(0.5);
        }
        let loss = (self.row.call)(&seen).mul(&leaves[self.free.len()]).sum();
        let wanted: Vec<&Tensor> = leaves[..self.free.len()].iter().collect();
        let options = BackwardOptions { retain_graph: false, create_graph };
        let found = try_grad(&[&loss], &wanted, None, options).unwrap_or_else(|e| panic!("{e}"));
        (leaves, found)
    }

    /// Those of all variables, if first gradients depend on any.
    fn second(&self, all: &[Array]) -> Option<Vec<Option<Array>>> {
        let (leaves, found) = self.first(all, true);
        let parts = found.iter().zip(&self.directions).filter_map(|(g, d)| {
            g.as_ref().filter(|g| g.is_tracked()).map(|g| g.mul(tensor(d, self.dtype)).sum())
        });
        let total = parts.reduce(|a, b| a.add(&b))?;
        let wanted: Vec<&Tensor> = leaves.iter().collect();
        let second =
            try_grad(&[&total], &wanted, None, BackwardOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        Some(second.iter().map(|g| g.as_ref().map(array)).collect())
    }

    /// First gradients along the directions.
    fn along(&self, all: &[Array]) -> f64 {
        let (_, found) = self.first(all, false);
        let dot = |(g, d): (&Option<Tensor>, &Array)| {
            g.as_ref().map_or(0.0, |g| array(g).data.iter().zip(&d.data).map(|(g, d)| g * d).sum::<f64>())
        };
        found.iter().zip(&self.directions).map(dot).sum()
    }
}

/// Gradients of gradients against differences of first gradients; on a GPU, which has no f64, against those of the CPU.
pub fn second_gradients(row: &Row) {
    if !row.differentiable {
        return;
    }
    if default_device().is_gpu() {
        return second_gradients_as_on_the_cpu(row);
    }
    let twice = Twice::new(row, DType::F64);
    let all = twice.variables();
    let Some(second) = twice.second(&all) else { return };
    for (k, gradient) in second.into_iter().enumerate() {
        let gradient = gradient.unwrap_or_else(|| Array::full(&all[k].shape, 0.0));
        for place in places(all[k].numel()).into_iter().take(4) {
            let up = twice.along(&nudged(&all, k, place, STEP));
            let down = twice.along(&nudged(&all, k, place, -STEP));
            let free = &twice.free;
            let what = if k < free.len() { format!("input {}", free[k]) } else { "entering gradient".into() };
            assert_slope(&what, place, gradient.data[place], (up - down) / (2.0 * STEP));
        }
    }
}

/// They are made of the same ops as the first: a software adapter tries every eighth row.
fn second_gradients_as_on_the_cpu(row: &Row) {
    if !row.dtypes.contains(&DType::F32) || !by_rarer_turns(row, 8, 1)(0) {
        return;
    }
    let twice = Twice::new(row, DType::F32);
    let all = twice.variables();
    let run = || twice.second(&all);
    let (here, there) = (run(), with_device(Device::Cpu, run));
    assert_eq!(here.is_some(), there.is_some(), "whether there are any");
    for (k, (a, b)) in here.into_iter().flatten().zip(there.into_iter().flatten()).enumerate() {
        assert_eq!(a.is_some(), b.is_some(), "second gradient {k}");
        if let (Some(a), Some(b)) = (a, b) {
            let largest = b.data.iter().filter(|x| x.is_finite()).fold(1f64, |m, x| m.max(x.abs()));
            let tolerance = 64.0 * tolerance(DType::F32) * row.slack * largest;
            assert_close(&format!("second gradient {k}"), &a, &b, tolerance);
        }
    }
}

/// Every input through every layout, or some by turns, straight from memory and from an elementwise op: the same values, and the
/// same gradients at the place each element is stored.
pub fn layouts(row: &Row) {
    // A software adapter takes long to compile shaders: one type there.
    let on_gpu = default_device().is_gpu();
    for dtype in types(row).filter(|d| !d.is_half() && (!on_gpu || *d == DType::F32)) {
        let inputs = row.inputs(&row.cases[0], dtype);
        let due = by_rarer_turns(row, 4 * row.shader_cost, 6);
        for (_, layout) in Layout::ALL.into_iter().enumerate().filter(|(k, _)| due(*k)) {
            let inputs: Vec<Array> = inputs.iter().map(|x| layout.values(x)).collect();
            let gives = available(row.gives.dtype(dtype));
            let wide =
                if gives.is_float() { 4.0 * tolerance(dtype).max(tolerance(gives)) * row.slack } else { 0.0 };
            let expected = (row.reference)(&inputs).map(|x| stored(x, gives));
            for scaled in [false, true].into_iter().skip(usize::from(on_gpu)) {
                let plain = evaluate(row, &inputs, dtype, Layout::Contiguous, scaled);
                let moved = evaluate(row, &inputs, dtype, layout, scaled);
                let what = format!("{layout:?} {dtype}, scaled: {scaled}");
                assert_close(&what, &moved.out, &expected, wide);
                for (k, (plain, moved)) in plain.gradients.iter().zip(&moved.gradients).enumerate() {
                    let expected = plain.as_ref().map(|g| layout.stored_gradient(g));
                    assert_eq!(moved.is_some(), expected.is_some(), "{what}: the gradient of input {k}");
                    if let (Some(moved), Some(expected)) = (moved, expected) {
                        assert_close(&format!("{what}: gradient {k}"), moved, &expected, 4.0 * wide);
                    }
                }
            }
        }
    }
}

/// One kernel for many ops against a kernel for every op.
pub fn fusion(row: &Row) {
    let on_gpu = default_device().is_gpu();
    let due = by_rarer_turns(row, row.cases.len().max(1) * row.shader_cost, 6);
    for (_, case) in row.cases.iter().enumerate().filter(|(k, _)| due(*k)) {
        for dtype in types(row).filter(|d| !on_gpu || *d == DType::F32) {
            let inputs = row.inputs(case, dtype);
            let run = |fused| with_fusion(fused, || evaluate(row, &inputs, dtype, Layout::Contiguous, true));
            let (fused, unfused) = (run(true), run(false));
            let gives = available(row.gives.dtype(dtype));
            let loose =
                if gives.is_float() { 4.0 * tolerance(dtype).max(tolerance(gives)) * row.slack } else { 0.0 };
            let what = format!("{case:?} of {dtype}, fused against unfused");
            // A GPU's compiler may round a product and a sum as one.
            let exact = row.exact && !on_gpu;
            if exact {
                assert_same(&what, &fused.out, &unfused.out);
            } else {
                assert_close(&what, &fused.out, &unfused.out, loose);
            }
            // Broadcast operands have sums in their gradients, which may be taken in another order.
            let sums = case.iter().any(|shape| *shape != case[0]);
            for (k, (a, b)) in fused.gradients.iter().zip(&unfused.gradients).enumerate() {
                assert_eq!(a.is_some(), b.is_some(), "{what}: the gradient of input {k}");
                if let (Some(a), Some(b)) = (a, b) {
                    let what = format!("{what}: gradient {k}");
                    if exact && !sums {
                        assert_same(&what, a, b);
                    } else {
                        assert_close(&what, a, b, 4.0 * loose);
                    }
                }
            }
        }
    }
}
