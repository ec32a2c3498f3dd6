//! The combinations of a search: which satisfy its constraints, which were there before, and how many were looked at.

use super::{MAX_COMBINATIONS, MAX_DRAWS, SearchError, Trial, Tried, every};
use sojourn_protocol::{
    digest::Digest,
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
    spec::{Constraint, ConstraintFault, Constraints, JobSpec},
};
use std::{iter, ops::Range};

/// Draws for one trial that were all there before, after which the space is counted: in one that is all but used up, others would be
/// found by luck alone.
const MAX_KNOWN_DRAWS: u32 = 32;

pub(super) struct Combinations<'a> {
    spec: &'a JobSpec,
    texts: &'a [Constraint],
    constraints: Constraints,
    /// Combinations that are trials. Where they are to differ, none comes again.
    tried: Tried,
    rest: Rest,
    looked_at: usize,
    /// By constraint, what it was the first to leave out.
    left_out: Vec<usize>,
}

/// The combinations of the space that were not tried.
enum Rest {
    Uncounted,
    /// There are too many of them, or numbers that can't be counted.
    Uncountable,
    /// All of them, in the order of the space.
    Counted(Vec<Untried>),
}

struct Untried {
    /// As of [`Tried::key_of`].
    key: Digest,
    trial: Box<Trial>,
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
        Ok(Self { spec, texts, constraints, tried, rest: Rest::Uncounted, looked_at: 0, left_out })
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
            if self.left_out() >= MAX_COMBINATIONS {
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
        if !self.must_differ() {
            return;
        }
        let key = Tried::key_of(trial);
        if let Rest::Counted(rest) = &mut self.rest
            && let Some(at) = rest.iter().position(|one| one.key == key)
        {
            rest.remove(at);
        }
        self.tried.insert(key);
    }

    /// Others were tried besides.
    pub(super) fn also_tried(&mut self, others: &Tried) {
        self.tried.join(others);
        if let Rest::Counted(rest) = &mut self.rest {
            rest.retain(|one| !self.tried.has_key(&one.key));
        }
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
        mut draw: impl FnMut(u32) -> Result<Trial, SearchError>,
    ) -> Result<Trial, SearchError> {
        self.first_accepted(trial, |attempt| draw(attempt).map(Some), &mut |_| true)
    }

    /// The first that satisfies all constraints and is accepted; of some draws there is no trial.
    pub(super) fn first_accepted(
        &mut self,
        trial: u32,
        mut draw: impl FnMut(u32) -> Result<Option<Trial>, SearchError>,
        accept: &mut dyn FnMut(&Trial) -> bool,
    ) -> Result<Trial, SearchError> {
        let before = self.left_out.clone();
        let mut known = 0;
        for attempt in 0..MAX_DRAWS {
            let Some(drawn) = draw(attempt)? else { continue };
            match self.look_at(&drawn)? {
                Verdict::New if accept(&drawn) => {
                    self.keep(&drawn);
                    return Ok(drawn);
                }
                Verdict::New | Verdict::LeftOut => {}
                Verdict::Known => known += 1,
            }
            if known == MAX_KNOWN_DRAWS
                && let Some(one) = self.one_of_rest(trial, accept)?
            {
                return Ok(one);
            }
        }
        if known > 0 {
            let one = self.one_of_rest(trial, accept)?;
            return one.ok_or(SearchError::NoneNew { trial });
        }
        if self.left_out == before {
            return Err(SearchError::NoneAccepted { trial });
        }
        Err(SearchError::TooRare { trial, constraint: self.strictest(&before) })
    }

    /// One of the combinations that are left, drawn by chance; `None` where these can't be counted.
    fn one_of_rest(
        &mut self,
        trial: u32,
        accept: &mut dyn FnMut(&Trial) -> bool,
    ) -> Result<Option<Trial>, SearchError> {
        if matches!(self.rest, Rest::Uncounted) {
            self.rest = self.counted()?;
        }
        let Rest::Counted(rest) = &mut self.rest else { return Ok(None) };
        let mut stream = seeds::stream("search/rest", &[self.spec.seed, u64::from(trial)]);
        while !rest.is_empty() {
            let at = seeds::below(&mut stream, u32::saturating_from(rest.len()));
            // The others stay in the order of the space, whether they were counted for this trial or for one before.
            let taken = rest.remove(to_usize(at).min(rest.len() - 1));
            if accept(&taken.trial) {
                self.tried.insert(taken.key);
                return Ok(Some(*taken.trial));
            }
        }
        let asked = self.spec.search.method.trials().unwrap_or(0);
        Err(SearchError::UsedUp { differ: self.tried.count(), asked })
    }

    /// Counts the combinations that were not tried.
    fn counted(&self) -> Result<Rest, SearchError> {
        let (mut seen, mut rest) = (self.tried.clone(), Vec::new());
        let is_whole = every::each(self.spec, |trial| {
            if matches!(self.index_broken(&trial), Ok(None)) {
                let key = Tried::key_of(&trial);
                if seen.insert(key) {
                    rest.push(Untried { key, trial: Box::new(trial) });
                }
            }
            Ok(false)
        })?;
        Ok(if is_whole { Rest::Counted(rest) } else { Rest::Uncountable })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials;
    use sojourn_protocol::jobfile;

    fn job(search: &str) -> JobSpec {
        let text = format!(
            "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [8]\n[training]\nepochs = 2\noptimizer = {{ name = {{ choice = [\"sgd\", \"adam\"] }}, momentum = {{ choice = [0.0, 0.5] }} }}\n[search]\n{search}\n"
        );
        jobfile::parse(&text).unwrap()
    }

    #[test]
    fn a_space_is_counted_after_a_few_draws_that_were_there_before() {
        let spec = job("method = \"random\"\ntrials = 9");
        let first = trials(&spec).unwrap().swap_remove(0);
        let mut combinations = Combinations::new(&spec).unwrap();
        let mut taken = Vec::new();
        for (trial, most) in [(0, 1), (1, MAX_KNOWN_DRAWS), (2, MAX_KNOWN_DRAWS)] {
            let mut draws = 0;
            let one = combinations.first(trial, |_| {
                draws += 1;
                Ok(first.clone())
            });
            taken.push(Tried::key_of(&one.unwrap()));
            assert_eq!(draws, most, "{trial}");
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 3, "all that there are");
        let none = combinations.first(3, |_| Ok(first.clone())).unwrap_err();
        assert_eq!(none, SearchError::UsedUp { differ: 3, asked: 9 });
    }

    #[test]
    fn constraints_are_not_blamed_for_draws_that_were_there_before() {
        let spec = job("constraints = [\"optimizer == 'adam'\"]");
        let mut all = job("");
        all.search.constraints.clear();
        let sgd = trials(&all).unwrap().swap_remove(0);
        let mut combinations = Combinations::new(&spec).unwrap();
        combinations.looked_at = MAX_COMBINATIONS;
        assert_eq!(combinations.take(&sgd), Ok(false), "one was left out, the others were known");
        combinations.left_out = vec![MAX_COMBINATIONS - 1];
        let constraint = "optimizer == 'adam'".to_owned();
        let error = SearchError::TooManyCombinations { constraint };
        assert_eq!(combinations.take(&sgd), Err(error));
    }
}
