//! The combinations of a space that has only some: how many differ, and which are left when random draws find no others.

use super::{
    Combinations, MAX_TRIALS, SearchError, Trial,
    odometer::{Odometer, Taken},
};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    spec::JobSpec,
};

/// The most combinations of a space that are counted, those that constraints leave out among them. A job has no more trials.
const MAX_COUNTED: usize = MAX_TRIALS;

/// Hands over every combination of a space until `look` has seen enough; `false` where the space has numbers that can't be counted, or
/// more combinations than [`MAX_COUNTED`].
pub(super) fn each(
    spec: &JobSpec,
    mut look: impl FnMut(Trial) -> Result<bool, SearchError>,
) -> Result<bool, SearchError> {
    let mut count = 0;
    for model in 0..u32::saturating_from(spec.models.len()) {
        let mut odometer = Odometer::new(Taken::All, spec.search.combinations);
        loop {
            let trial = match odometer.trial(spec, model) {
                Ok(trial) => trial,
                Err(
                    SearchError::NoPoints { .. }
                    | SearchError::NormalInGrid { .. }
                    | SearchError::TooMany,
                ) => return Ok(false),
                Err(error) => return Err(error),
            };
            count += 1;
            if count > MAX_COUNTED {
                return Ok(false);
            }
            if look(trial)? {
                return Ok(true);
            }
            if !odometer.advance() {
                break;
            }
        }
    }
    Ok(true)
}

/// Number of combinations that differ, where these are fewer than the search asks for.
///
/// # Errors
/// A space that is empty, or a constraint that can't be decided.
pub fn falls_short(spec: &JobSpec) -> Result<Option<u32>, SearchError> {
    let Some(asked) = spec.search.method.trials() else { return Ok(None) };
    if !spec.search.combinations.is_distinct() {
        return Ok(None);
    }
    let mut combinations = Combinations::new(spec)?;
    let mut differ = 0usize;
    let is_whole = each(spec, |trial| {
        differ += usize::from(combinations.take(&trial)?);
        Ok(differ >= to_usize(asked))
    });
    match is_whole {
        Ok(true) => Ok(Some(u32::saturating_from(differ)).filter(|differ| *differ < asked)),
        Ok(false) | Err(SearchError::TooMany | SearchError::TooManyCombinations { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
