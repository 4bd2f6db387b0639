//! What an item costs on its way through the multi-producer ring and the descriptor ring, on one
//! thread: `cargo run --release -p fwdlab-sys --example ring_cost`.
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::hint::black_box;
use std::time::Instant;

use fwdlab_sys::{Finished, MultiProducerRing, cycle_counter, descriptor_ring};

/// Items of a batch, each of 16 bytes.
const BATCH: usize = 64;

/// Batches that are timed at once: short, so that most times no other program comes between.
const BATCHES: u32 = 500;
const REPETITIONS: usize = 5_001;

type Item = [u64; 2];

fn main() {
    let ring = MultiProducerRing::<Item>::new(2048);
    let mut items: Vec<Item> = (0..BATCH as u64).map(|number| [number, 0]).collect();
    let mut taken = Vec::with_capacity(BATCH);
    report("enqueue, take, finish", || {
        let drainer = ring.enqueue(black_box(&mut items), false).drainer;
        if let Some(mut drainer) = drainer {
            drainer.take(BATCH, |item| taken.push(item));
            assert!(matches!(drainer.finish(), Finished::Idle));
        }
        std::mem::swap(&mut items, &mut taken);
    });
    assert_eq!(items.len(), BATCH);

    let mut sum = 0;
    let template = items.clone();
    items.clear();
    report("enqueue, take, finish; items added up, not kept", || {
        items.extend_from_slice(black_box(&template));
        let drainer = ring.enqueue(&mut items, false).drainer;
        if let Some(mut drainer) = drainer {
            drainer.take(BATCH, |[number, _]| sum += number);
            assert!(matches!(drainer.finish(), Finished::Idle));
        }
    });
    black_box(sum);

    let (mut driver, mut device) = descriptor_ring(vec![[0; 2]; 1024]);
    report("post, doorbell, complete, write back, reclaim", || {
        let free = driver.free(BATCH);
        free.copy_from_slice(black_box(&template));
        driver.post(BATCH);
        driver.doorbell();
        let posted = device.available();
        for [number, length] in device.run(posted) {
            *length = *number;
        }
        device.complete(posted);
        device.write_back();
        let completed = driver.completed();
        for [_, length] in driver.done(completed) {
            sum += *length;
        }
        driver.reclaim(completed);
    });
    black_box(sum);
}

/// Prints the median and the least of what an item cost.
fn report(what: &str, mut batch: impl FnMut()) {
    let items = f64::from(BATCHES) * BATCH as f64;
    let mut costs: Vec<(f64, f64)> = (0..REPETITIONS)
        .map(|_| {
            let (start, start_cycle) = (Instant::now(), cycle_counter());
            for _ in 0..BATCHES {
                batch();
            }
            let cycles = cycle_counter() - start_cycle;
            (
                start.elapsed().as_secs_f64() * 1e9 / items,
                cycles as f64 / items,
            )
        })
        .collect();
    costs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (median_ns, median_cycles) = costs[REPETITIONS / 2];
    println!(
        "{what}: median {median_ns:.3} ns ({median_cycles:.2} ticks) an item, least {:.3} ns",
        costs[0].0
    );
}
