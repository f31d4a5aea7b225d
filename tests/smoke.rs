use volta::*;
#[test]
fn adds() {
    let a = Tensor::new(&[1.0, 2.0, 3.0]);
    let b = Tensor::from_vec(vec![10.0f32, 20.0], [2, 1]);
    let c = &a + &b;
    assert_eq!(c.to_vec::<f32>(), [11.0, 12.0, 13.0, 21.0, 22.0, 23.0]);
    let s = c.sum_dim(1, false);
    assert_eq!(s.to_vec::<f32>(), [36.0, 66.0]);
    assert_eq!(c.sum_dim(0, false).to_vec::<f32>(), [32.0, 34.0, 36.0]);
    let m = a.reshape([1, 3]).matmul(&c.t());
    assert_eq!(m.to_vec::<f32>(), [11.0 + 24.0 + 39.0, 21.0 + 44.0 + 69.0]);
}
#[test]
fn trains() {
    manual_seed(1);
    let x = Tensor::from_vec(vec![0.0f32, 0., 0., 1., 1., 0., 1., 1.], [4, 2]);
    let y = Tensor::from_vec(vec![0.0f32, 1., 1., 0.], [4, 1]);
    let w1 = Tensor::randn([8, 2]).requires_grad(true);
    let b1 = Tensor::zeros([8]).requires_grad(true);
    let w2 = Tensor::randn([1, 8]).requires_grad(true);
    let b2 = Tensor::zeros([1]).requires_grad(true);
    let mut last = 0.0;
    for step in 0..500 {
        let h = (x.matmul(&w1.t()) + &b1).relu();
        let p = h.matmul(&w2.t()) + &b2;
        let loss = (&p - &y).square().sum() * 0.25;
        loss.backward();
        for p in [&w1, &b1, &w2, &b2] {
            let g = p.grad().unwrap();
            p.assign(&(p.detach() - g * 0.1));
            p.zero_grad();
        }
        realize_all(&[w1.clone(), b1.clone(), w2.clone(), b2.clone()]);
        last = loss.item::<f32>();
        if step == 2 {
            println!("{}", last_plan().unwrap());
            println!("{:?}", counters());
        }
    }
    println!("{last} {:?}", counters());
    assert!(last < 0.01);
}
#[test]
fn softmax_one_kernel() {
    let x = Tensor::randn([4, 33]).requires_grad(false);
    x.realize();
    let m = x.max_dim(1, true);
    let e = (&x - &m).exp();
    let s = &e / &e.sum_dim(1, true);
    let v = s.to_vec::<f32>();
    println!("{}", last_plan().unwrap());
    let t: f32 = v[..33].iter().sum();
    assert!((t - 1.0).abs() < 1e-5);
    assert_eq!(last_plan().unwrap().kernels.len(), 1);
}
