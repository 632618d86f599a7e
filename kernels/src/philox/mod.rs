//! Philox 4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011.
//!
//! A draw is a pure function of where it is used: no state is carried, so the order in which tokens are sampled,
//! and on which rank, cannot change a number.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Ten rounds of Philox 4x32: a keyed bijection of 128-bit counters.
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        let p0 = u64::from(MULTIPLIERS[0]) * u64::from(c0);
        let p1 = u64::from(MULTIPLIERS[1]) * u64::from(c2);
        (c0, c1, c2, c3) = (high(p1) ^ c1 ^ k0, low(p1), high(p0) ^ c3 ^ k1, low(p0));
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [c0, c1, c2, c3]
}

/// The draws of one call in one iteration of a run.
///
/// Seed, call and iteration are folded into a 64-bit key by one application of the generator; row, sample and
/// position are the counter. Two different counters of one stream never share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
}

impl Stream {
    /// The stream of `call` (see [`hash`]) in `iteration` of a run with `seed`.
    pub fn new(seed: u64, call: u64, iteration: u64) -> Self {
        let counter = [low(call), high(call), low(iteration), high(iteration)];
        let [a, b, c, d] = philox4x32(counter, [low(seed), high(seed)]);
        Stream {
            key: [a ^ c, b ^ d],
        }
    }

    /// One uniform number in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(&self, row: u64, sample: u32, position: u32) -> f64 {
        let [a, b, ..] = philox4x32([low(row), high(row), sample, position], self.key);
        let bits = u64::from(a) << 32 | u64::from(b);
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// FNV-1a, 64 bits: a stable number for a call's name.
pub fn hash(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

fn low(x: u64) -> u32 {
    x as u32
}

fn high(x: u64) -> u32 {
    (x >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_known_answers_hold() {
        let cases = [
            (
                [0; 4],
                [0; 2],
                [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8],
            ),
            (
                [u32::MAX; 4],
                [u32::MAX; 2],
                [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD],
            ),
            (
                [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344],
                [0xA409_3822, 0x299F_31D0],
                [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox4x32(counter, key), expected);
        }
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(hash("a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(hash("foobar"), 0x8594_4171_F739_67E8);
    }

    #[test]
    fn uniforms_fill_the_unit_interval_evenly() {
        let stream = Stream::new(7, hash("roll"), 3);
        let mut bins = [0u32; 16];
        let draws = 64_000;
        for i in 0..draws {
            let u = stream.uniform(i / 1000, (i / 100 % 10) as u32, (i % 100) as u32);
            assert!((0.0..1.0).contains(&u));
            bins[(u * 16.0) as usize] += 1;
        }
        // Chi-square with 15 degrees of freedom: 44.3 is passed once in 10,000 by chance.
        let expected = f64::from(draws as u32) / 16.0;
        let chi: f64 = bins
            .iter()
            .map(|&n| (f64::from(n) - expected).powi(2) / expected)
            .sum();
        assert!(chi < 44.3, "chi-square {chi}");
    }

    #[test]
    fn every_part_of_the_key_matters() {
        let base = Stream::new(1, 2, 3).uniform(4, 5, 6);
        let others = [
            Stream::new(9, 2, 3).uniform(4, 5, 6),
            Stream::new(1 << 40, 2, 3).uniform(4, 5, 6),
            Stream::new(1, 9, 3).uniform(4, 5, 6),
            Stream::new(1, 2, 9).uniform(4, 5, 6),
            Stream::new(1, 2, 3).uniform(9, 5, 6),
            Stream::new(1, 2, 3).uniform(4 | 1 << 40, 5, 6),
            Stream::new(1, 2, 3).uniform(4, 9, 6),
            Stream::new(1, 2, 3).uniform(4, 5, 9),
        ];
        assert!(others.iter().all(|&u| u != base), "{base} {others:?}");
    }
}
