//! A keyed permutation of `0..rows` that needs no memory.
//!
//! A Feistel network over the smallest power of two that holds all rows. A value outside the range goes through the network
//! again until it is inside (cycle walking: Black and Rogaway, "Ciphers with Arbitrary
//! Finite Domains", CT-RSA 2002, section 5). Under two walks on average, and a bijection for any round
//! function. It mixes rows; it keeps no secrets.

use sojourn_protocol::seeds;

const ROUNDS: u64 = 8;

/// A permutation of `0..rows`.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    rows: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: Vec<u64>,
}

impl Permutation {
    /// The permutation of `0..rows` for `seed` and `stream`; another stream, another permutation.
    pub(crate) fn new(seed: u64, stream: u64, rows: u64) -> Self {
        let bits = u64::BITS - rows.saturating_sub(1).leading_zeros();
        // At least one bit on each side, or there is nothing to mix with.
        let low_bits = bits.div_ceil(2).max(1);
        let high_bits = (bits - bits.div_ceil(2)).max(1);
        let keys =
            (0..ROUNDS).map(|round| seeds::derive("ingest-rows", &[seed, stream, round])).collect();
        Self {
            rows,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << high_bits) - 1,
            keys,
        }
    }

    /// The seed of the permutation of a class's rows.
    pub(crate) fn seed_of(seed: u64, class: u64) -> u64 {
        seeds::derive("ingest-class", &[seed, class])
    }

    /// Where row `index` goes; `None` where there is no such row.
    pub(crate) fn at(&self, index: u64) -> Option<u64> {
        if index >= self.rows {
            return None;
        }
        let mut place = self.network(index);
        while place >= self.rows {
            place = self.network(place);
        }
        Some(place)
    }

    fn network(&self, value: u64) -> u64 {
        let (mut high, mut low) = (value >> self.low_bits, value & self.low_mask);
        for pair in self.keys.chunks_exact(2) {
            if let [first, second] = pair {
                high ^= mix(low ^ first) & self.high_mask;
                low ^= mix(high ^ second) & self.low_mask;
            }
        }
        high << self.low_bits | low
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_place_is_taken_once(seed: u64, stream in 0u64..3, rows in 1u64..3000) {
            let permutation = Permutation::new(seed, stream, rows);
            let mut places: Vec<u64> = (0..rows).map(|i| permutation.at(i).unwrap()).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..rows).collect::<Vec<_>>());
            prop_assert_eq!(permutation.at(rows), None);
        }

        #[test]
        fn large_domains_stay_inside(seed: u64, rows in 1u64 << 32..1 << 62, ratio in 0.0f64..1.0) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside")]
            let index = (rows as f64 * ratio * 0.999) as u64;
            prop_assert!(Permutation::new(seed, 0, rows).at(index).unwrap() < rows);
        }
    }

    #[test]
    fn the_permutation_is_the_same_on_any_machine() {
        let permutation = Permutation::new(7, 0, 1000);
        let first: Vec<u64> = (0..6).filter_map(|index| permutation.at(index)).collect();
        // Written down once; a change here gives every submitted data set new digests.
        assert_eq!(first, PINNED);
    }

    const PINNED: [u64; 6] = [99, 156, 51, 850, 244, 949];

    #[test]
    fn the_permutation_mixes_rows() {
        // Neighbours must not stay together: of 10,000 pairs, about one in ten shares its tenth.
        let permutation = Permutation::new(1, 0, 10_000);
        let tenth = |index| permutation.at(index).unwrap() / 1000;
        let together = (0..9_999).filter(|index| tenth(*index) == tenth(index + 1)).count();
        assert!((800..1200).contains(&together), "{together}");
    }
}
