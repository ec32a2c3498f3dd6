//! Pauses between attempts: exponential, with full jitter (Brooker, "Exponential Backoff And Jitter", 2015).
//!
//! A pause is uniform between nothing and a ceiling that doubles, so that a fleet doesn't come back all at once. A
//! server's `Retry-After` is a lower bound. Where the randomness comes from is the caller's business.

use crate::quantity::Micros;

/// The first ceiling, unless the caller has another.
pub const FIRST_CEILING: Micros = Micros::from_millis(100);
/// The longest `Retry-After` that is obeyed.
pub const MAX_RETRY_AFTER: Micros = Micros::from_secs(600);
/// After so many doublings the ceiling stays.
const MAX_DOUBLINGS: u32 = 20;

/// The ceiling below which the pause is drawn, after so many failed attempts before this one.
#[must_use]
pub fn ceiling(first: Micros, max: Micros, attempts: u32) -> Micros {
    Micros(first.0.saturating_mul(1 << attempts.min(MAX_DOUBLINGS))).min(max)
}

/// The pause for what was drawn: never shorter than the server asked for, within reason.
#[must_use]
pub fn pause(drawn: Micros, retry_after: Option<Micros>) -> Micros {
    drawn.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_double_up_to_the_longest() {
        let max = Micros::from_secs(30);
        let mut expected = FIRST_CEILING;
        for attempts in 0..80 {
            assert_eq!(ceiling(FIRST_CEILING, max, attempts), expected);
            expected = Micros(expected.0 * 2).min(max);
        }
        assert_eq!(ceiling(Micros(u64::MAX), Micros(u64::MAX), 3), Micros(u64::MAX));
    }

    #[test]
    fn retry_after_is_obeyed_within_a_limit() {
        let (drawn, asked) = (Micros::from_secs(1), |secs| Some(Micros::from_secs(secs)));
        assert_eq!(pause(drawn, None), drawn);
        assert_eq!(pause(drawn, asked(0)), drawn);
        assert_eq!(pause(drawn, asked(7)), Micros::from_secs(7));
        assert_eq!(pause(drawn, asked(86_400)), MAX_RETRY_AFTER);
    }
}
