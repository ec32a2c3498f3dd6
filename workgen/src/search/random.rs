//! Random combinations: each dimension has a stream of its own per trial, so that a dimension or a
//! trial that is added later leaves the others' values as they were.

use super::{MAX_TRIALS, SearchError, Trial, close, draw, normal};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
    spec::{
        Choices, JobSpec,
        dimension::{Chooser, Normal, Range},
    },
};

pub(super) fn trials(spec: &JobSpec, count: u32) -> Result<Vec<Trial>, SearchError> {
    if usize::try_from(count).is_ok_and(|count| count > MAX_TRIALS) {
        return Err(SearchError::TooMany);
    }
    (0..count).map(|trial| one(spec, trial)).collect()
}

fn one(spec: &JobSpec, trial: u32) -> Result<Trial, SearchError> {
    let mut chooser = Streams { seed: spec.seed, trial, choices: Choices::new(), error: None };
    let model = chooser.index("model", spec.models.len());
    let config = close(spec, model, &mut chooser);
    if let Some(error) = chooser.error {
        return Err(error);
    }
    let config =
        config.ok_or_else(|| SearchError::Empty { dimension: format!("model[{model}]") })?;
    let model = u32::saturating_from(model);
    Ok(Trial { model, config, choices: chooser.choices, seed: None })
}

struct Streams {
    seed: u64,
    trial: u32,
    choices: Choices,
    error: Option<SearchError>,
}

impl Streams {
    fn stream(&self, name: &str) -> rand_chacha::ChaCha8Rng {
        seeds::stream(&format!("search/{name}"), &[self.seed, u64::from(self.trial)])
    }
}

impl Chooser for Streams {
    fn index(&mut self, name: &str, count: usize) -> usize {
        let bound = u32::saturating_from(count);
        to_usize(seeds::below(&mut self.stream(name), bound))
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        if !range.is_sound() {
            self.error.get_or_insert(SearchError::BadRange { dimension: name.into() });
            return range.low;
        }
        let mut stream = self.stream(name);
        match range.steps() {
            // Every value with the same chance, the ends too.
            Some(steps) if !range.spread.is_logarithmic() => {
                steps.at(seeds::below(&mut stream, steps.count()))
            }
            _ => draw::number(range, seeds::unit_f64(&mut stream)),
        }
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        if !normal.is_sound() {
            self.error.get_or_insert(SearchError::BadNormal { dimension: name.into() });
            return normal.mean;
        }
        normal::number(normal, seeds::unit_f64(&mut self.stream(name)))
    }

    fn chosen(&mut self, name: &str, value: serde_json::Value) {
        self.choices.insert(name.into(), value);
    }
}
