//! Pauses before another attempt: exponential, with full jitter (Brooker, "Exponential Backoff And Jitter", 2015).
//! A pause is uniform between nothing and a ceiling that doubles, so that a fleet doesn't come back all at once.

use crate::time::Micros;

/// The first ceiling.
const FIRST_CEILING: Micros = Micros::from_millis(100);
/// The longest that a server's `Retry-After` is obeyed for.
const MAX_ASKED: Micros = Micros::from_secs(600);

/// The pause after so many attempts that failed before this one, never shorter than the server asked for.
pub(crate) fn pause(attempts: u32, max: Micros, asked: Option<Micros>, rng: &mut Rng) -> Micros {
    let ceiling = Micros(FIRST_CEILING.0 << attempts.min(20)).min(max);
    let jittered = Micros(rng.next_below(ceiling.0));
    jittered.max(asked.unwrap_or_default().min(MAX_ASKED))
}

/// A sequence of numbers that a seed determines (Steele et al., "Fast splittable pseudorandom number generators",
/// 2014: `SplitMix64`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, or 0.
    fn next_below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_stay_under_a_ceiling_that_doubles() {
        let (max, mut rng) = (Micros::from_secs(30), Rng::new(7));
        let mut ceiling = FIRST_CEILING;
        for attempts in 0..80 {
            for _ in 0..100 {
                assert!(pause(attempts, max, None, &mut rng) < ceiling);
            }
            ceiling = Micros(ceiling.0 * 2).min(max);
        }
    }

    #[test]
    fn a_pause_that_the_server_asks_for_is_obeyed_within_reason() {
        let (max, mut rng) = (Micros::from_secs(1), Rng::new(7));
        let mut asked = |secs| pause(0, max, Some(Micros::from_secs(secs)), &mut rng);
        assert_eq!(asked(7), Micros::from_secs(7));
        assert_eq!(asked(86_400), MAX_ASKED);
    }
}
