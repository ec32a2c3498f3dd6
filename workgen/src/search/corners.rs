//! The corners of a space: the ends of the dimensions on which formulas hang, in which these have numbers that settings can have.
//!
//! All trials of a grid, and those that a random search begins with, are made when a job is submitted. Those that are suggested later come
//! from between the corners.

use super::{
    SearchError,
    odometer::{Odometer, Part, Taken},
};
use sojourn_protocol::spec::JobSpec;

/// The most corners of a model table that are looked at.
const MAX_CORNERS: usize = 1 << 16;

/// Can the settings of a space that hang on others be decided on and computed?
///
/// # Errors
/// The setting that can't be, or the combination in which a formula has no number that its setting can have.
pub(super) fn check(spec: &JobSpec) -> Result<(), SearchError> {
    spec.check_space()?;
    for table in 0..spec.models.len() {
        let tied = spec.tied_settings(table);
        if tied.is_empty() {
            continue;
        }
        let deciding = spec.deciding_dimensions(table, &|name| tied.contains(name));
        let varies = |name: &str| deciding.contains(name);
        let mut odometer = Odometer::new(Taken::Ends, spec.search.combinations);
        for _ in 0..MAX_CORNERS {
            odometer.read(table, |wheels| {
                spec.try_close(table, &mut Part { wheels, varies: &varies })
            })?;
            if !odometer.advance() {
                break;
            }
        }
    }
    Ok(())
}
