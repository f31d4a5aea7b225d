use std::time::Instant;
use volta::{BlockFormat, QuantizedMatrix, Tensor, no_grad};
fn main() {
    for m in [1usize, 4, 128] {
        for n in [4096usize, 1536] {
            let k = if n == 1536 { 576 } else { 4096 };
            let x = Tensor::rand([m, k]).realize().clone();
            let w = Tensor::rand([n, k]).realize().clone();
            let q: Vec<_> =
                BlockFormat::ALL.iter().map(|f| QuantizedMatrix::quantize(&w, *f).unwrap()).collect();
            let mut best = [f64::MAX; 6];
            for _ in 0..if m > 100 { 8 } else { 60 } {
                for (i, best) in best.iter_mut().enumerate() {
                    let t = Instant::now();
                    no_grad(|| {
                        match i {
                            0 => x.linear(&w, None).realize(),
                            1..=3 => x.quantized_linear(&q[i - 1], None).realize(),
                            _ => return,
                        };
                    });
                    *best = best.min(t.elapsed().as_secs_f64() * 1e3);
                }
            }
            println!(
                "m {m} n {n} k {k}: f32 {:.3} ms, int8 {:.3}, int4 {:.3}, int4_min {:.3}",
                best[0], best[1], best[2], best[3]
            );
        }
    }
}
