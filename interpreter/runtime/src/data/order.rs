//! Which rows a batch takes: a new order for every epoch, fixed by the seed.

use rlhf_text::rows::count as count_of;

use crate::fault::{Fault, Result};

/// Full batches in one epoch. The rows left over are not used in that epoch; the next one's order
/// leaves out others.
pub fn batches(rows: usize, batch: usize) -> usize {
    rows / batch.max(1)
}

/// The order of the rows of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A permutation that this seed and the epoch fix.
    Seeded(u64),
    /// As the data has them.
    Data,
}

/// The rows of batch `index` of an epoch, `index` below [`batches`].
///
/// D314 when the data set is smaller than one batch.
pub fn batch_rows(
    order: Order,
    epoch: u64,
    rows: usize,
    batch: usize,
    index: usize,
) -> Result<Vec<usize>> {
    let count = batches(rows, batch);
    if count == 0 {
        return Err(Fault::code(
            "D314",
            format!("{} cannot fill one batch of {batch}", count_of(rows)),
        )
        .help(format!("a batch of at most {rows}, or more rows")));
    }
    if index >= count {
        return Err(Fault::new(format!(
            "batch {index} of an epoch of {count} batches does not exist"
        )));
    }
    let batch = index * batch..(index + 1) * batch;
    Ok(match order {
        Order::Seeded(seed) => permutation(&[seed, epoch], rows)[batch].to_vec(),
        Order::Data => batch.collect(),
    })
}

/// 0, 1, …, n−1 in an order that `key` fixes: Fisher–Yates over a splitmix64 stream.
pub fn permutation(key: &[u64], n: usize) -> Vec<usize> {
    let mut random = SplitMix(0);
    for part in key {
        random.0 = random.next() ^ *part;
    }
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}

/// splitmix64 (Steele, Lea and Flood, 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..n, without bias: draws past the last whole multiple of n are thrown away.
    fn below(&mut self, n: u64) -> u64 {
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let draw = self.next();
            if draw < limit {
                return draw % n;
            }
        }
    }
}
