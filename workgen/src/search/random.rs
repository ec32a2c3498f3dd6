//! Random combinations: each dimension has a stream of its own per trial, so that a dimension or a
//! trial that is added later leaves the others' values as they were.

use super::{SearchError, Trial, sample};
use sojourn_protocol::{seeds, spec::JobSpec};

pub(super) fn trials(spec: &JobSpec, count: u32) -> Result<Vec<Trial>, SearchError> {
    (0..count).map(|trial| sample::trial(spec, &mut Streams { seed: spec.seed, trial })).collect()
}

struct Streams {
    seed: u64,
    trial: u32,
}

impl Streams {
    fn stream(&self, name: &str) -> rand_chacha::ChaCha8Rng {
        seeds::stream(&format!("search/{name}"), &[self.seed, u64::from(self.trial)])
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
