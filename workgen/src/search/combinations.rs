//! The combinations of a search: which satisfy its constraints, which were there before, and how many were looked at.

use super::{MAX_COMBINATIONS, MAX_DRAWS, SearchError, Trial, Tried, every};
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
    spec::{Constraint, ConstraintFault, Constraints, JobSpec},
};
use std::{iter, ops::Range};

pub(super) struct Combinations<'a> {
    spec: &'a JobSpec,
    texts: &'a [Constraint],
    constraints: Constraints,
    /// Combinations that are trials. Where they are to differ, none comes again.
    tried: Tried,
    /// Combinations of the space that are left, where they were counted.
    rest: Option<Vec<Trial>>,
    looked_at: usize,
    /// By constraint, what it was the first to leave out.
    left_out: Vec<usize>,
}

/// Whether a combination may be a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    New,
    /// The combination was there before.
    Known,
    /// The combination breaks a constraint.
    LeftOut,
}

impl<'a> Combinations<'a> {
    pub(super) fn new(spec: &'a JobSpec) -> Result<Self, SearchError> {
        Self::after(spec, Tried::default())
    }

    /// Combinations that come after others.
    pub(super) fn after(spec: &'a JobSpec, tried: Tried) -> Result<Self, SearchError> {
        let texts = spec.search.constraints.as_slice();
        let constraints = Constraints::new(spec).map_err(|fault| failure(texts, fault))?;
        let left_out = vec![0; texts.len()];
        Ok(Self { spec, texts, constraints, tried, rest: None, looked_at: 0, left_out })
    }

    /// Is a combination a trial: does it satisfy all constraints, and wasn't it there before where combinations are to differ?
    pub(super) fn take(&mut self, trial: &Trial) -> Result<bool, SearchError> {
        match self.look_at(trial)? {
            Verdict::New => {
                self.keep(trial);
                Ok(true)
            }
            Verdict::Known if self.looked_at >= MAX_COMBINATIONS => Err(SearchError::TooMany),
            Verdict::Known | Verdict::LeftOut => Ok(false),
        }
    }

    fn look_at(&mut self, trial: &Trial) -> Result<Verdict, SearchError> {
        self.looked_at += 1;
        if let Some(broken) = self.index_broken(trial)? {
            if let Some(count) = self.left_out.get_mut(broken) {
                *count += 1;
            }
            if self.looked_at >= MAX_COMBINATIONS {
                let constraint = self.strictest(&[]);
                return Err(SearchError::TooManyCombinations { constraint });
            }
            return Ok(Verdict::LeftOut);
        }
        let is_known = self.must_differ() && self.tried.has(trial.model, &trial.config);
        Ok(if is_known { Verdict::Known } else { Verdict::New })
    }

    const fn must_differ(&self) -> bool {
        self.spec.search.combinations.is_distinct()
    }

    fn keep(&mut self, trial: &Trial) {
        if self.must_differ() {
            self.tried.add(trial);
        }
    }

    /// Others were tried besides.
    pub(super) fn also_tried(&mut self, others: &Tried) {
        self.tried.join(others);
    }

    /// Lets all combinations come once more.
    pub(super) fn begin_anew(&mut self) {
        (self.tried, self.rest) = (Tried::default(), None);
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
        let mut is_known = false;
        for attempt in 0..MAX_DRAWS {
            let drawn = draw(attempt)?;
            let verdict = self.look_at(&drawn)?;
            is_known |= verdict == Verdict::Known;
            if verdict == Verdict::New && accept(&drawn) {
                self.keep(&drawn);
                return Ok(drawn);
            }
        }
        if is_known {
            return self.one_of_rest(trial, accept);
        }
        if self.left_out == before {
            return Err(SearchError::NoneAccepted { trial });
        }
        Err(SearchError::TooRare { trial, constraint: self.strictest(&before) })
    }

    /// One of the combinations that are left, where so many draws gave none but those that were there before.
    fn one_of_rest(
        &mut self,
        trial: u32,
        accept: &mut dyn FnMut(&Trial) -> bool,
    ) -> Result<Trial, SearchError> {
        let all = match self.rest.take() {
            Some(rest) => Some(rest),
            None => every::combinations(self.spec)?,
        };
        let mut rest = all.ok_or(SearchError::NoneNew { trial })?;
        rest.retain(|one| {
            let is_there = matches!(self.index_broken(one), Ok(None));
            is_there && !self.tried.has(one.model, &one.config) && accept(one)
        });
        if rest.is_empty() {
            let asked = self.spec.search.method.trials().unwrap_or(0);
            return Err(SearchError::UsedUp { differ: self.tried.count(), asked });
        }
        let mut stream = seeds::stream("search/rest", &[self.spec.seed, u64::from(trial)]);
        let at = seeds::below(&mut stream, u32::saturating_from(rest.len()));
        // The others stay in the order of the space, whether they were counted for this trial or for one before.
        let taken = rest.remove(to_usize(at).min(rest.len() - 1));
        self.rest = Some(rest);
        self.keep(&taken);
        Ok(taken)
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

/// The combinations of these numbers, one at least: fewer where no others differ from all before.
pub(super) fn as_many_as_differ(
    numbers: Range<u32>,
    mut one: impl FnMut(u32) -> Result<Trial, SearchError>,
) -> Result<Vec<Trial>, SearchError> {
    let mut trials = Vec::new();
    for number in numbers {
        match one(number) {
            Ok(trial) => trials.push(trial),
            Err(SearchError::UsedUp { .. }) if !trials.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(trials)
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
