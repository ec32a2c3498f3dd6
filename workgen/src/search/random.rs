//! Random combinations: each dimension has a stream of its own per trial, so that a dimension or a
//! trial that is added later leaves the others' values as they were.

use super::{Combinations, SearchError, Trial, sample};
use sojourn_protocol::{seeds, spec::JobSpec};
use std::ops::Range;

pub(super) fn trials(
    spec: &JobSpec,
    numbers: Range<u32>,
    combinations: &mut Combinations<'_>,
) -> Result<Vec<Trial>, SearchError> {
    let one = |trial| {
        combinations.first(trial, |attempt| {
            sample::trial(spec, &mut Streams { seed: spec.seed, trial, attempt })
        })
    };
    numbers.map(one).collect()
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
