//! Random combinations: each dimension has a stream of its own per trial, so that a dimension or a
//! trial that is added later leaves the others' values as they were.

use super::{Combinations, SearchError, Trial, combinations::as_many_as_differ, sample};
use sojourn_protocol::{quantity::to_usize, seeds, spec::JobSpec};
use std::ops::Range;

pub(super) fn trials(
    spec: &JobSpec,
    numbers: Range<u32>,
    combinations: &mut Combinations<'_>,
) -> Result<Vec<Trial>, SearchError> {
    as_many_as_differ(numbers, |trial| first(spec, trial, combinations))
}

/// A population: where its space has fewer combinations, each of them several times.
pub(super) fn population(
    spec: &JobSpec,
    trials: u32,
    combinations: &mut Combinations<'_>,
) -> Result<Vec<Trial>, SearchError> {
    let differ = self::trials(spec, 0..trials, combinations)?;
    Ok(differ.iter().cycle().take(to_usize(trials)).cloned().collect())
}

fn first(
    spec: &JobSpec,
    trial: u32,
    combinations: &mut Combinations<'_>,
) -> Result<Trial, SearchError> {
    combinations.first(trial, |attempt| {
        sample::trial(spec, &mut Streams { seed: spec.seed, trial, attempt })
    })
}

struct Streams {
    seed: u64,
    trial: u32,
    /// How many combinations of this trial were left out before.
    attempt: u32,
}

impl Streams {
    fn stream(&self, name: &str) -> rand_chacha::ChaCha8Rng {
        let Self { seed, trial, attempt } = *self;
        let parts = [seed, u64::from(trial), u64::from(attempt)];
        // The first attempt has the stream of searches without constraints.
        let parts = if attempt == 0 { &parts[..2] } else { &parts[..] };
        seeds::stream(&format!("search/{name}"), parts)
    }
}

impl sample::Source for Streams {
    fn index(&mut self, name: &str, count: u32) -> Result<u32, SearchError> {
        Ok(seeds::below(&mut self.stream(name), count))
    }

    fn uniform(&mut self, name: &str) -> Result<f64, SearchError> {
        Ok(seeds::unit_f64(&mut self.stream(name)))
    }
}
