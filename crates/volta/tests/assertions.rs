//! Indices out of bounds and integers divided by zero: whoever waits for the device next is told, once, by an error that names
//! the op, the number and the line. What is computed stays memory-safe, and the program goes on.

use std::process::Command;
use volta::{
    Adam, CrossEntropyOptions, DType, Device, Error, ErrorKind, LinearCrossEntropyOptions, NllOptions,
    Reduction, Tensor, cross_entropy, cross_entropy_with, default_device, last_plan, linear_cross_entropy,
    linear_cross_entropy_with, nll_loss, nll_loss_with, realize_all, synchronize,
};
use volta_testing::test;

/// Here, for comparing with what an error says.
macro_rules! here {
    () => {
        format!("{}:{}:", file!(), line!())
    };
}

/// Set in the process that these tests have to themselves.
const ALONE: &str = "VOLTA_TEST_ALONE";

fn is_alone() -> bool {
    default_device() == Device::Cpu || std::env::var_os(ALONE).is_some()
}

/// Tests that on a GPU run one at a time in a process of their own: there another test might be the one that waits next.
macro_rules! alone {
    ($($name:ident() $body:block)*) => {$(
        #[test]
        fn $name() {
            if is_alone() $body
        }
    )*};
}

#[test]
fn one_at_a_time() {
    if is_alone() {
        return;
    }
    // The crate, then this file, if it is one of several.
    let filter = module_path!().split_once("::").map(|(_, file)| format!("{file}::"));
    let mut program = Command::new(std::env::current_exe().unwrap());
    let output = program.args(filter).arg("--test-threads=1").env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The error that reading gives, and nothing but the values the second time.
fn failure(t: &Tensor) -> Error {
    let error = t.try_to_vec::<f32>().expect_err("an assertion fails");
    t.try_to_vec::<f32>().expect("it is reported once");
    error
}

fn assert_names(error: &Error, kind: ErrorKind, op: &str, words: &str, here: &str) {
    let text = error.to_string();
    assert_eq!((error.kind(), error.op()), (kind, op), "{text}");
    assert!(text.contains(words), "{words:?} is missing: {text}");
    assert!(text.contains(here), "{text} should name {here}");
}

/// Not every device has integers of 64 bits.
fn ints(numbers: &[i64], dtype: DType) -> Tensor {
    let shape = [numbers.len()];
    let narrow: Option<Vec<i32>> = numbers.iter().map(|&number| number.try_into().ok()).collect();
    let given = match narrow {
        Some(narrow) => Tensor::from_vec(narrow, shape),
        None => Tensor::from_slice(numbers, shape),
    };
    given.to_dtype(dtype).realize().clone()
}

/// Integer types that the device has.
fn types() -> Vec<DType> {
    let all = [DType::I32, DType::I64, DType::U8, DType::U32];
    all.into_iter().filter(|&dtype| default_device().supports(dtype).unwrap()).collect()
}

alone! {
    an_index_out_of_bounds_is_named_with_its_op_and_line() {
        let table = Tensor::ones([5, 3]).realize().clone();
        for dtype in types() {
            let index = ints(&[0, 4, 7], dtype);
            let column = index.reshape([3, 1]).realize().clone();
            let said = "index 7 is out of bounds for an axis of 5 (indices of shape [3";
            let (found, here) = (table.embedding(&index), here!());
            assert_names(&failure(&found), ErrorKind::Index, "embedding", said, &here);
            assert!(found.to_vec::<f32>()[..6] == [1.0; 6] && found.to_vec::<f32>()[6].is_nan());
            let (found, here) = (table.index_select(0, &index), here!());
            assert_names(&failure(&found), ErrorKind::Index, "index_select", said, &here);
            let (found, here) = (table.gather(0, &column), here!());
            assert_names(&failure(&found), ErrorKind::Index, "gather", said, &here);
            let (found, here) = (Tensor::zeros([5]).scatter_add(0, &index, &Tensor::ones([3])), here!());
            assert_names(&failure(&found), ErrorKind::Index, "scatter_add", said, &here);
            assert_eq!(found.to_vec::<f32>(), [1.0, 0.0, 0.0, 0.0, 1.0]);
            let (found, here) = (index.one_hot(5), here!());
            assert_names(&failure(&found), ErrorKind::Index, "one_hot", said, &here);
        }
        // Negative ones, and one of 64 bits that is 1 in its lower half.
        let error = failure(&table.index_select(1, &ints(&[2, -1], DType::I32)));
        assert!(error.message().starts_with("index -1 is out of bounds for an axis of 3"), "{error}");
        if default_device().supports(DType::I64).unwrap() {
            let error = failure(&table.embedding(&ints(&[1, 1 + (1 << 32)], DType::I64)));
            assert!(error.message().starts_with("index 4294967297 is out of bounds"), "{error}");
        }
        // What is known when it is called is an error there.
        let error = table.try_embedding(&Tensor::full_of([2], 5, DType::I32)).map(|_| ()).unwrap_err();
        assert_names(&error, ErrorKind::Index, "embedding", "index 5 is out of bounds for an axis of 5", "");
        assert_eq!(table.sum().item::<f32>(), 15.0, "the program goes on");
    }

    a_target_that_is_no_class_is_named_and_one_that_is_ignored_is_not() {
        let (logits, x, weight) = (Tensor::zeros([4, 3]), Tensor::ones([4, 2]), Tensor::ones([3, 2]));
        realize_all(&[&logits, &x, &weight].map(Tensor::clone));
        let fine = ints(&[0, 2, -100, 1], DType::I32);
        let wrong = ints(&[0, 2, -100, 3], DType::I32);
        let said = "index 3 is out of bounds for an axis of 3";
        let smooth = CrossEntropyOptions { label_smoothing: 0.1, ..CrossEntropyOptions::default() };
        type Loss<'a> = &'a dyn Fn(&Tensor) -> Tensor;
        let losses: [(&str, Loss); 4] = [
            ("cross_entropy", &|target| cross_entropy(&logits, target)),
            ("cross_entropy_with", &|target| cross_entropy_with(&logits, target, smooth)),
            ("nll_loss", &|target| nll_loss(&logits, target)),
            ("linear_cross_entropy", &|target| linear_cross_entropy(&x, &weight, target)),
        ];
        for (op, loss) in losses {
            let error = failure(&loss(&wrong));
            assert_names(&error, ErrorKind::Index, op, said, "");
            assert!(loss(&fine).item::<f32>().is_finite(), "{op}");
            let every = CrossEntropyOptions { ignore_index: None, ..smooth };
            let error = failure(&cross_entropy_with(&logits, &fine, every));
            assert_names(&error, ErrorKind::Index, "cross_entropy_with", "index -100 is out of bounds", "");
        }
    }

    a_target_that_is_no_class_gives_no_loss() {
        let (logits, x, weight) = (Tensor::zeros([3, 4]), Tensor::ones([3, 2]), Tensor::ones([4, 2]));
        for (class, ok) in [(3, true), (-100, true), (4, false), (-1, false)] {
            let target = ints(&[0, class, 1], DType::I32);
            for reduction in [Reduction::Mean, Reduction::Sum, Reduction::BatchMean, Reduction::None] {
                let options = CrossEntropyOptions { reduction, ..CrossEntropyOptions::default() };
                let linear = LinearCrossEntropyOptions { loss: options, ..LinearCrossEntropyOptions::default() };
                let nll = NllOptions { reduction, ..NllOptions::default() };
                for loss in [
                    cross_entropy_with(&logits, &target, options),
                    nll_loss_with(&logits, &target, nll),
                    linear_cross_entropy_with(&x, &weight, &target, linear),
                ] {
                    if !ok {
                        assert_eq!(failure(&loss).kind(), ErrorKind::Index);
                    }
                    let loss: Vec<f32> = loss.to_vec();
                    assert_eq!(loss.iter().all(|l| l.is_finite()), ok, "{class}, {reduction:?}: {loss:?}");
                }
            }
        }
    }

    integers_divided_by_zero_are_named() {
        for dtype in types() {
            let (a, b) = (ints(&[7, 8, 9], dtype), ints(&[2, 0, 3], dtype));
            let said = "an integer is divided by zero (divisors of shape [3])";
            let (found, here) = (a.floor_divide(&b), here!());
            assert_names(&failure(&found), ErrorKind::ZeroDivision, "floor_divide", said, &here);
            assert_eq!(found.to_vec::<i32>(), [3, 0, 3]);
            let (found, here) = (a.remainder(&b), here!());
            assert_names(&failure(&found), ErrorKind::ZeroDivision, "remainder", said, &here);
            assert_eq!(a.floor_divide(2).to_vec::<i32>(), [3, 4, 4]);
            assert_eq!(b.floor_divide(&a).to_vec::<i32>(), [0, 0, 0]);
            let error = a.try_remainder(0).map(|_| ()).unwrap_err();
            assert_names(&error, ErrorKind::ZeroDivision, "remainder", "integers of shape", "");
        }
        let floats = Tensor::vector(&[1.0, -1.0]).floor_divide(0.0);
        assert_eq!(floats.to_vec::<f32>(), [f32::INFINITY, f32::NEG_INFINITY]);
    }

    of_two_lines_that_do_the_same_each_is_named() {
        let table = Tensor::ones([5, 2]).realize().clone();
        let index = ints(&[9], DType::I32);
        for _ in 0..2 {
            let (first, here) = (table.embedding(&index), here!());
            assert_names(&failure(&first), ErrorKind::Index, "embedding", "index 9", &here);
            let (second, here) = (table.embedding(&index), here!());
            assert_names(&failure(&second), ErrorKind::Index, "embedding", "index 9", &here);
        }
    }

    a_step_of_training_that_fails_is_one_error_and_the_next_goes_on() {
        let table = Tensor::randn([20, 8]).requires_grad(true);
        let head = Tensor::randn([8, 20]).requires_grad(true);
        let mut optimizer = Adam::new(vec![table.clone(), head.clone()], 1e-3, (0.9, 0.999), 1e-8, 0.0);
        let mut failed = Vec::new();
        for step in 0..24i64 {
            // Steps 9 and 17: what is read was foreseen, and commands were encoded before.
            let bad = if step % 8 == 1 && step > 8 { 20 + step } else { 3 };
            let tokens = ints(&[1, 2, bad], DType::I32);
            let target = ints(&[2, 3, 4], DType::I32);
            let loss = cross_entropy(&table.detach().embedding(&tokens).nan_to_zero().matmul(&head), &target);
            optimizer.zero_grad();
            loss.backward();
            let stepped = optimizer.try_step();
            let read = loss.try_item::<f32>();
            match stepped.and(read.map(|_| ())) {
                Ok(()) => {}
                Err(error) => {
                    let said = format!("index {bad} is out of bounds for an axis of 20");
                    assert_names(&error, ErrorKind::Index, "embedding", &said, "");
                    failed.push(step);
                }
            }
        }
        assert_eq!(failed, [9, 17]);
        assert!(head.to_vec::<f32>().iter().all(|x| x.is_finite()));
    }

    whoever_waits_for_all_devices_is_told() {
        let table = Tensor::ones([5, 2]).realize().clone();
        let found = table.embedding(&ints(&[1, 5], DType::I32));
        let computed = found.try_realize();
        let waited = synchronize();
        // A processor has waited when it has computed.
        let (told, other) = if default_device() == Device::Cpu { (computed, waited) } else { (waited, computed) };
        assert_names(&told.unwrap_err(), ErrorKind::Index, "embedding", "index 5", "");
        other.unwrap();
        synchronize().unwrap();
        default_device().synchronize().unwrap();
        found.try_to_vec::<f32>().unwrap();
    }

    nothing_is_computed_twice_for_it() {
        let table = Tensor::randn([50, 16]).realize().clone().requires_grad(true);
        let (index, target) = (ints(&[1, 2, 49, 2], DType::I32), ints(&[1, 15, 0, -100], DType::I32));
        table.embedding(&index).realize();
        assert_eq!(last_plan().unwrap().kernels.len(), 1);
        let rows = table.embedding(&index);
        let loss = cross_entropy(&rows.detach(), &target);
        loss.realize();
        let kernels = last_plan().unwrap().kernels.len();
        assert!(kernels <= 2, "{kernels} kernels");
        rows.sum().backward();
        table.grad().unwrap().realize();
        let plan = last_plan().unwrap();
        // The gradient looks at the same indices, which the table was asked for.
        assert!(plan.kernels.len() <= 2, "{plan}");
        synchronize().unwrap();
    }

    kernels_that_see_as_much_memory_as_they_may_report_it_too() {
        let numbers: Vec<Tensor> = (1..12).map(|k| Tensor::full([64], k as f32) * Tensor::ones([64])).collect();
        realize_all(&numbers);
        let table = Tensor::ones([9]).realize().clone();
        for (last, fails) in [(8, false), (9, true)] {
            let index = ints(&(0..64).map(|k| if k == 63 { last } else { k % 9 }).collect::<Vec<_>>(), DType::I32);
            let picked = table.index_select(0, &index);
            let sum = numbers.iter().fold(picked, |sum, x| sum + x);
            let (twice, root) = (&sum * 2.0, sum.sqrt());
            realize_all_or(&[sum.clone(), twice, root], fails);
            assert_eq!(sum.to_vec::<f32>()[..63], [67.0; 63]);
        }
    }

    an_unsigned_index_above_the_signed_ones_is_out_of_bounds() {
        // As a signed number the third is -1, and the fourth 0 once its highest bit is lost.
        let index = Tensor::from_vec(vec![2u32, 0, u32::MAX, 1 << 31, 1], [5]);
        let picked = Tensor::vector(&[10.0, 11.0, 12.0]).gather(0, &index);
        let error = failure(&picked);
        let said = |number: u32| error.message().contains(&format!("index {number} is out of bounds"));
        assert!(said(u32::MAX) || said(1 << 31), "{error}");
        let picked = picked.to_vec::<f32>();
        assert_eq!([picked[0], picked[1], picked[4]], [12.0, 10.0, 11.0]);
        assert!(picked[2].is_nan() && picked[3].is_nan(), "{picked:?}");
        let numbers = Tensor::from_vec(vec![7u32, 8, 1 << 31], [3]).index_select(0, &index);
        failure(&numbers);
        assert_eq!(numbers.to_vec::<u32>(), [1 << 31, 7, 0, 0, 8]);
        let added = Tensor::zeros([3]).scatter_add(0, &index, &Tensor::vector(&[1.0, 2.0, 4.0, 8.0, 16.0]));
        failure(&added);
        assert_eq!(added.to_vec::<f32>(), [2.0, 16.0, 1.0]);
        let hot = index.one_hot(3);
        failure(&hot);
        assert_eq!(hot.to_vec::<u32>(), [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        // What -100 wraps around to is a class that there is not, and not one that is left out; of long rows, too.
        for classes in [5, 33_278] {
            let wrapped = Tensor::from_vec(vec![4u32, 0, 2, (-100i32) as u32], [4]);
            let loss = cross_entropy(&Tensor::ones([4, classes]), &wrapped);
            assert_names(&failure(&loss), ErrorKind::Index, "cross_entropy", "index 4294967196", "");
            assert!(loss.item::<f32>().is_nan());
        }
    }

    what_is_out_of_bounds_has_no_gradient() {
        let v = Tensor::vector(&[1.0, 2.0, 3.0]).requires_grad(true);
        let index = ints(&[0, -1, 3], DType::I32);
        let sum = Tensor::zeros([3]).scatter_add(0, &index, &v).sum();
        failure(&sum);
        sum.backward();
        assert_eq!(v.grad().expect("one").to_vec::<f32>(), [1.0, 0.0, 0.0]);
        // Of a small table, and of one of which few rows are picked.
        let large = std::env::var("VOLTA_BLOCK_BYTES").is_err().then_some((33_000, 128));
        for (rows, width) in large.into_iter().chain([(4, 3)]) {
            let table = Tensor::zeros([rows, width]).requires_grad(true);
            let sum = table.embedding(&ints(&[1, -1, rows as i64, 1], DType::I32)).sum();
            failure(&sum);
            sum.backward();
            let gradient = table.grad().expect("a gradient").to_vec::<f32>();
            let wanted = |k: usize| if k / width == 1 { 2.0 } else { 0.0 };
            assert!(gradient.iter().enumerate().all(|(k, &x)| x == wanted(k)), "{rows} rows");
        }
    }

    of_many_indices_in_several_pieces_one_is_named() {
        let table = Tensor::ones([40, 3]).realize().clone();
        for (at, index) in [(0, 40), (3000, 77_777), (11_999, -5)] {
            let mut indices: Vec<i64> = (0..12_000).map(|k| k % 40).collect();
            indices[at] = index;
            let error = failure(&table.index_select(0, &ints(&indices, DType::I32)).sum());
            let said = format!("index {index} is out of bounds for an axis of 40");
            assert_names(&error, ErrorKind::Index, "index_select", &said, "");
        }
        // A table in many pieces is looked up in turns.
        let numbers: Vec<f32> = (0..12_000).map(|k| k as f32).collect();
        let table = Tensor::from_vec(numbers, [300, 40]).to_dtype(DType::U32).realize().clone();
        let index: Vec<u32> = (0..200).map(|k| ((k % 5 / 4) << 31) | (k * 7 % 300)).collect();
        let found = table.embedding(&Tensor::from_vec(index.clone(), [200]));
        failure(&found);
        let wanted = |&row: &u32| (0..40).map(move |k| if row < 300 { row * 40 + k } else { 0 });
        assert_eq!(found.to_vec::<u32>(), index.iter().flat_map(wanted).collect::<Vec<_>>());
    }
}

fn realize_all_or(tensors: &[Tensor], fails: bool) {
    let computed = volta::try_realize_all(tensors);
    assert_eq!(computed.and(synchronize()).is_err(), fails);
}

trait NanToZero {
    fn nan_to_zero(&self) -> Tensor;
}

impl NanToZero for Tensor {
    /// So that what is learned is not lost with a step that fails.
    fn nan_to_zero(&self) -> Tensor {
        self.isnan().where_(0.0, self)
    }
}

volta_testing::main!();
