//! Plans that are seen and not run. A file of its own, since it counts kernels, and so would see those of other tests.

use volta::{ErrorKind, Tensor};
use volta_testing::test;

#[test]
fn a_plan_can_be_seen_before_it_is_run() {
    let x = Tensor::rand([64, 64]);
    x.realize();
    let before = volta::counters();
    let plan = volta::plan_only(|| x.matmul(&x).exp().sum().try_realize()).unwrap().unwrap();
    assert!(plan.flops() > 2 * 64 * 64 * 64 && plan.peak_bytes >= 2 * 64 * 64 * 4);
    assert_eq!(volta::counters().kernels_run, before.kernels_run);
    assert!(volta::plan_only(|| Ok(())).unwrap().is_none());
    let failed = volta::plan_only(|| x.try_matmul(&Tensor::zeros([3, 3])).map(drop)).unwrap_err();
    assert_eq!(failed.kind(), volta::ErrorKind::Shape);
    // Afterwards it computes as ever.
    assert!((x.matmul(&x).sum().item::<f32>()).is_finite());
}

#[test]
fn what_is_assumed_to_be_computed_is_planned_with_and_cannot_be_read() {
    let x = Tensor::rand([1 << 14, 1 << 14]);
    volta::assume_computed(std::slice::from_ref(&x));
    let plan = volta::plan_only(|| x.sum().try_realize()).unwrap().unwrap();
    assert!(plan.peak_bytes >= 1 << 30, "{plan}");
    let (read, computed) = (x.try_to_vec::<f32>().unwrap_err(), x.sum().try_item::<f32>().unwrap_err());
    for error in [read, computed] {
        assert!(error.kind() == ErrorKind::NotRun && error.message().contains("never computed"), "{error}");
    }
}

volta_testing::main!();
