//! The canary check: the loss of a result on held-out rows (docs/internals/merging.md).
//!
//! A result can have the right names, finite values and a change of the usual length, and still undo what others have
//! trained. That shows where its loss is many times that of the version which it would be merged into.

use crate::refusal::Refusal;

/// Is a result's loss no more than `most` times the current version's, both means over the same rows?
///
/// # Errors
/// [`Refusal::Canary`] where it is more, or not finite.
pub fn check_canary(most: f64, current: f64, result: f64) -> Result<(), Refusal> {
    // Where the current version is broken itself, whatever is finite can only be better.
    let explodes = current.is_finite() && result > most * current;
    if !result.is_finite() || explodes {
        return Err(Refusal::Canary { result, current, most });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_explodes_is_refused() {
        assert_eq!(check_canary(2.0, 0.5, 1.0), Ok(()));
        assert_eq!(check_canary(2.0, 0.5, 0.0), Ok(()));
        let error = check_canary(2.0, 0.5, 1.25).unwrap_err();
        let said =
            "its loss on held-out rows is 1.25, more than 2 times the 0.5 of the current version";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn what_is_not_finite_is_refused_and_not_compared_with() {
        for result in [f64::NAN, f64::INFINITY] {
            assert!(check_canary(2.0, 0.5, result).is_err());
            assert!(check_canary(2.0, f64::NAN, result).is_err());
        }
        assert_eq!(check_canary(2.0, f64::NAN, 1e9), Ok(()));
        assert_eq!(check_canary(2.0, f64::INFINITY, 1e9), Ok(()));
    }
}
