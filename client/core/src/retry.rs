//! Pauses before another attempt, from a seed.

use crate::time::Micros;
use sojourn_protocol::backoff;

/// The pause after so many attempts that failed before this one, never shorter than the server asked for.
pub(crate) fn pause(attempts: u32, max: Micros, asked: Option<Micros>, rng: &mut Rng) -> Micros {
    let ceiling = backoff::ceiling(backoff::FIRST_CEILING, max, attempts);
    backoff::pause(Micros(rng.next_below(ceiling.0)), asked)
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
    fn pauses_are_drawn_from_the_whole_range() {
        let (max, mut rng) = (Micros::from_secs(30), Rng::new(7));
        let pauses: Vec<_> = (0..1000).map(|_| pause(3, max, None, &mut rng)).collect();
        let (least, most) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
        assert!(*least < Micros::from_millis(20) && *most > Micros::from_millis(780));
        assert!(*most < Micros::from_millis(800), "{most:?}");
    }
    /// The first numbers of the seed 1234567, as others have published them.
    #[test]
    fn a_seed_determines_the_numbers_of_splitmix64() {
        let mut rng = Rng::new(1_234_567);
        for expected in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ] {
            assert_eq!(rng.next_below(u64::MAX), expected);
        }
        assert_eq!(rng.next_below(0), 0);
    }
}
