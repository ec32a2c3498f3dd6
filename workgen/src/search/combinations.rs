//! The combinations of a search: which satisfy its constraints, and how many were tried.

use super::{MAX_COMBINATIONS, MAX_DRAWS, SearchError, Trial};
use sojourn_protocol::{
    quantity::to_usize,
    spec::{Constraint, ConstraintFault, Constraints, JobSpec},
};
use std::iter;

pub(super) struct Combinations<'a> {
    texts: &'a [Constraint],
    constraints: Constraints,
    tried: usize,
    /// By constraint, what it was the first to leave out.
    left_out: Vec<usize>,
}

impl<'a> Combinations<'a> {
    pub(super) fn new(spec: &'a JobSpec) -> Result<Self, SearchError> {
        let texts = spec.search.constraints.as_slice();
        let constraints = Constraints::new(spec).map_err(|fault| failure(texts, fault))?;
        Ok(Self { texts, constraints, tried: 0, left_out: vec![0; texts.len()] })
    }

    /// Does a combination satisfy all constraints? It counts as tried.
    pub(super) fn take(&mut self, trial: &Trial) -> Result<bool, SearchError> {
        self.tried += 1;
        let Some(broken) = self.index_broken(trial)? else { return Ok(true) };
        if let Some(count) = self.left_out.get_mut(broken) {
            *count += 1;
        }
        if self.tried >= MAX_COMBINATIONS {
            let constraint = self.strictest(&[]);
            return Err(SearchError::TooManyCombinations { constraint });
        }
        Ok(false)
    }

    /// The first constraint that a combination breaks.
    pub(super) fn broken(&self, trial: &Trial) -> Result<Option<String>, SearchError> {
        let index = self.index_broken(trial)?;
        Ok(index.and_then(|index| self.texts.get(index)).map(|broken| broken.text().to_owned()))
    }

    fn index_broken(&self, trial: &Trial) -> Result<Option<usize>, SearchError> {
        let broken = self.constraints.broken(to_usize(trial.model), &trial.config);
        broken.map_err(|fault| failure(self.texts, fault))
    }

    /// The first of a trial's combinations that satisfies all constraints; `draw` gives one after the other.
    pub(super) fn first(
        &mut self,
        trial: u32,
        draw: impl FnMut(u32) -> Result<Trial, SearchError>,
    ) -> Result<Trial, SearchError> {
        self.first_accepted(trial, draw, &mut |_| true)
    }

    /// The first that satisfies all constraints and is accepted.
    pub(super) fn first_accepted(
        &mut self,
        trial: u32,
        mut draw: impl FnMut(u32) -> Result<Trial, SearchError>,
        accept: &mut dyn FnMut(&Trial) -> bool,
    ) -> Result<Trial, SearchError> {
        let before = self.left_out.clone();
        for attempt in 0..MAX_DRAWS {
            let drawn = draw(attempt)?;
            if self.take(&drawn)? && accept(&drawn) {
                return Ok(drawn);
            }
        }
        if self.left_out == before {
            return Err(SearchError::NoneAccepted { trial });
        }
        Err(SearchError::TooRare { trial, constraint: self.strictest(&before) })
    }

    /// How many combinations were left out.
    pub(super) fn left_out(&self) -> usize {
        self.left_out.iter().sum()
    }

    /// Why there is no trial.
    pub(super) fn nothing_left(&self) -> SearchError {
        match self.left_out() {
            0 => SearchError::Empty { dimension: "model".into() },
            _ => SearchError::NothingLeft { constraint: self.strictest(&[]) },
        }
    }

    /// The constraint that left out most, not counting these; the last of equals.
    fn strictest(&self, before: &[usize]) -> String {
        let before = before.iter().chain(iter::repeat(&0));
        let counts = self.left_out.iter().zip(before).map(|(now, before)| now - before);
        let most = counts.zip(self.texts).max_by_key(|(count, _)| *count);
        most.map_or_else(String::new, |(_, constraint)| constraint.text().to_owned())
    }
}

fn failure(texts: &[Constraint], fault: ConstraintFault) -> SearchError {
    let (constraint, why) = match fault {
        ConstraintFault::Undecided { constraint, why } => (constraint, why),
        ConstraintFault::Unknown { constraint, name, .. } => {
            (constraint, format!("names `{name}`, which is no key of this job's trials"))
        }
    };
    let text = texts.get(constraint).map_or_else(String::new, |text| text.text().to_owned());
    SearchError::Constraint { constraint: text, why }
}
