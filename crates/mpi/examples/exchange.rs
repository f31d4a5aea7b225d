//! How long an exchange of gradients takes, beside a bare MPI_Allreduce of the same bytes:
//! `mpirun -n 2 target/release/examples/exchange 64`, with the megabytes.

use mpi::collective::{CommunicatorCollectives, SystemOperation};
use mpi::topology::SimpleCommunicator;
use std::time::Instant;
use volta::parallel::{Summation, time_exchange};

/// As large as a trainer's unless told otherwise.
const BUCKET_BYTES: usize = 16 << 20;
const ROUNDS: usize = 9;

fn main() -> volta::Result<()> {
    let session = volta_mpi::Session::begin()?;
    let world = session.world();
    let megabytes: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(64);
    let count = megabytes * (1 << 20) / 4;
    let (numbers, mut sums) = (vec![1f32; count], vec![0f32; count]);
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let mut bare = Vec::new();
    let names =
        [("any order", Summation::AnyOrder), ("fixed tree", Summation::Tree), ("f16", Summation::Half)];
    let mut ours = names.map(|_| Vec::new());
    // By turns, so that what else the machine does hits all of them.
    for _ in 0..ROUNDS {
        world.barrier()?;
        let started = Instant::now();
        SimpleCommunicator::world().all_reduce_into(&numbers[..], &mut sums[..], SystemOperation::sum());
        bare.push(started.elapsed().as_secs_f64());
        for ((_, summation), times) in names.iter().zip(&mut ours) {
            world.barrier()?;
            times.push(time_exchange(&world, *summation, count, BUCKET_BYTES)?.as_secs_f64());
        }
    }
    let bare = median(bare);
    if world.rank() == 0 {
        println!("{megabytes} MiB, {} ranks: a bare MPI_Allreduce takes {:.1} ms", world.size(), 1e3 * bare);
        for ((name, _), times) in names.iter().zip(ours) {
            let time = median(times);
            println!("in buckets, {name}: {:.1} ms, {:.2} of it", 1e3 * time, time / bare);
        }
    }
    Ok(())
}
