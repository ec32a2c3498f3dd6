//! Every combination that satisfies the constraints, the last dimension fastest.

use super::{
    Combinations, MAX_TRIALS, SearchError, Trial,
    odometer::{Odometer, Part, Taken},
};
use sojourn_protocol::{
    quantity::SaturatingFrom as _,
    spec::{Architecture, JobSpec},
};

pub(super) fn trials(
    spec: &JobSpec,
    combinations: &mut Combinations<'_>,
) -> Result<Vec<Trial>, SearchError> {
    let mut trials = Vec::new();
    for model in 0..u32::saturating_from(spec.models.len()) {
        let mut odometer = Odometer::new(Taken::Points, spec.search.combinations);
        loop {
            let trial = odometer.trial(spec, model)?;
            if combinations.take(&trial)? {
                if trials.len() == MAX_TRIALS {
                    return Err(SearchError::TooMany);
                }
                trials.push(trial);
            }
            if !odometer.advance() {
                break;
            }
        }
    }
    Ok(trials)
}

/// Every model of a table that the values of its dimensions make, and of those that decide which of them it has. A model may come
/// several times.
///
/// # Errors
/// [`SearchError`] where a dimension has no values that can be counted, or there are too many of them.
pub fn models(spec: &JobSpec, table: usize) -> Result<Vec<Architecture>, SearchError> {
    let mut models = Vec::new();
    let mut odometer = Odometer::new(Taken::Points, spec.search.combinations);
    let of_model = |name: &str| name.starts_with("model[");
    let deciding = spec.deciding_dimensions(table, &of_model);
    let varies = |name: &str| of_model(name) || deciding.contains(name);
    loop {
        let close =
            |wheels: &mut Odometer| spec.try_close(table, &mut Part { wheels, varies: &varies });
        let (config, _) = odometer.read(table, close)?;
        if models.len() == MAX_TRIALS {
            return Err(SearchError::TooMany);
        }
        models.push(config.model);
        if !odometer.advance() {
            return Ok(models);
        }
    }
}
