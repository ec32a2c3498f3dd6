//! The settings of a clone: those of the trial that it goes on from, changed a little or drawn anew.

use crate::search::{Combinations, MAX_DRAWS, Trial, draw, given::are_equal, normal};
use serde_json::Value;
use sojourn_protocol::{
    ids::TrialId,
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
    spec::{
        Choices, CombinationRule, JobSpec,
        dimension::{Chooser, Normal, Range},
    },
};
use std::collections::BTreeSet;

/// A number is multiplied by one of these, as in the paper.
const FACTORS: [f64; 2] = [0.8, 1.2];
/// The changes that are tried to see if a dimension may change in a clone at all.
const PROBES: [Change; 5] = [
    Change::Times(FACTORS[0]),
    Change::Times(FACTORS[1]),
    Change::Anew(0.0),
    Change::Anew(0.5),
    Change::Anew(0.999),
];

/// The settings with which a clone of `parent` takes the place of `replaced` after a generation.
///
/// Each dimension is drawn anew from its space with a probability of `resample`, as a random search draws it. Else a number is
/// multiplied by 0.8 or 1.2, kept in its range; one with steps moves by a step at least, but not over the range's end. Of choices that are
/// numbers the next higher or lower one is taken, and others stay.
///
/// A dimension that the parent makes no use of is drawn where the clone makes use of it. One stays as it is where no other value of
/// it `fits`: where another would need other tensors in the checkpoint. A combination that breaks a constraint or doesn't fit is drawn
/// again, at most [`MAX_DRAWS`] times; after that the settings are those of `parent`.
#[must_use]
pub fn explore(
    spec: &JobSpec,
    parent: &Trial,
    (replaced, generation): (TrialId, u32),
    resample: f64,
    fits: &mut dyn FnMut(&Trial) -> bool,
) -> Trial {
    let free: BTreeSet<&str> = parent
        .choices
        .keys()
        .map(String::as_str)
        .filter(|name| {
            PROBES.iter().any(|change| {
                let of = |asked: &str| match asked == *name {
                    true => *change,
                    false if parent.choices.contains_key(asked) => Change::Keep,
                    false => Change::Anew(0.5),
                };
                let probe = changed(spec, parent, &of);
                probe.is_some_and(|probe| probe.choices != parent.choices && fits(&probe))
            })
        })
        .collect();
    let Ok(combinations) = Combinations::new(spec) else { return parent.clone() };
    // Where a constraint can't be decided, the combination isn't known to satisfy it.
    let satisfies = |trial: &Trial| matches!(combinations.broken(trial), Ok(None));
    for attempt in 0..MAX_DRAWS {
        let parts = [spec.seed, replaced.0.into(), generation.into(), attempt.into()];
        let of = |name: &str| match parent.choices.contains_key(name) {
            true if free.contains(name) => Change::drawn(name, &parts, resample),
            true => Change::Keep,
            false => Change::drawn(name, &parts, 1.0),
        };
        let drawn = changed(spec, parent, &of).filter(satisfies);
        if let Some(trial) = drawn.filter(|trial| fits(trial)) {
            return trial;
        }
    }
    parent.clone()
}

/// The change of a dimension's value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    Keep,
    Times(f64),
    /// The value is drawn by this uniform number.
    Anew(f64),
}

impl Change {
    fn drawn(name: &str, parts: &[u64], resample: f64) -> Self {
        let mut stream = seeds::stream(&format!("pbt/explore/{name}"), parts);
        let (kind, uniform) = (seeds::unit_f64(&mut stream), seeds::unit_f64(&mut stream));
        let [less, more] = FACTORS;
        match kind < resample {
            true => Self::Anew(uniform),
            false => Self::Times(if uniform < 0.5 { less } else { more }),
        }
    }
}

/// The trial with its dimensions changed so; none where the space has no such trial.
fn changed(spec: &JobSpec, parent: &Trial, change: &dyn Fn(&str) -> Change) -> Option<Trial> {
    let (values, choices) = (&parent.choices, Choices::new());
    let rule = spec.search.combinations;
    let mut explorer = Explorer { values, rule, change, choices, is_lost: false };
    let mut config = spec.close(to_usize(parent.model), &mut explorer)?;
    if explorer.is_lost {
        return None;
    }
    // It may have been extended.
    config.training.epochs = parent.config.training.epochs;
    let mut choices = explorer.choices;
    let seed = values.get_key_value("seed").filter(|_| parent.seed.is_some());
    choices.extend(seed.map(|(name, seed)| (name.clone(), seed.clone())));
    Some(Trial { model: parent.model, config, choices, seed: parent.seed, fold: None })
}

struct Explorer<'a> {
    values: &'a Choices,
    rule: CombinationRule,
    change: &'a dyn Fn(&str) -> Change,
    choices: Choices,
    /// A dimension was asked for of which there is no value.
    is_lost: bool,
}

impl Explorer<'_> {
    /// The parent's number, with its change; nothing kept and nothing multiplied where the parent made no use of it.
    fn number_of(&mut self, name: &str) -> Option<(f64, Change)> {
        let (value, change) = (self.values.get(name).and_then(Value::as_f64), (self.change)(name));
        let is_drawn = self.is_drawn(name, change);
        self.is_lost |= value.is_none() && !is_drawn;
        value.or(is_drawn.then_some(f64::NAN)).map(|value| (value, change))
    }

    /// Is it a dimension that the parent made no use of, and that is drawn for the clone?
    fn is_drawn(&self, name: &str, change: Change) -> bool {
        let is_new = self.rule.is_distinct() && !self.values.contains_key(name);
        is_new && matches!(change, Change::Anew(_))
    }
}

impl Chooser for Explorer<'_> {
    fn index(&mut self, name: &str, count: usize) -> usize {
        self.one_of(name, &mut (0..count).map(Value::from))
    }

    fn one_of(&mut self, name: &str, values: &mut dyn ExactSizeIterator<Item = Value>) -> usize {
        let all: Vec<Value> = values.collect();
        let (own, change) = (self.values.get(name), (self.change)(name));
        let own = own.and_then(|own| all.iter().position(|one| are_equal(one, own)));
        let Some(at) = own.or(self.is_drawn(name, change).then_some(0)) else {
            self.is_lost = true;
            return 0;
        };
        match change {
            Change::Keep => at,
            Change::Times(factor) => neighbour(&all, at, factor > 1.0),
            Change::Anew(uniform) => {
                to_usize(draw::index(u32::saturating_from(all.len()), uniform))
            }
        }
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        let Some((own, change)) = self.number_of(name) else { return range.low };
        match change {
            Change::Keep => own,
            Change::Times(factor) => times(range, own, factor),
            Change::Anew(uniform) => match range.steps() {
                Some(steps) if range.spread.is_logarithmic() => draw::step(range, &steps, uniform),
                Some(steps) => steps.at(draw::index(steps.count(), uniform)),
                None => draw::at_share(range, uniform),
            },
        }
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        let Some((own, change)) = self.number_of(name) else { return normal.mean };
        match change {
            Change::Keep => own,
            Change::Times(factor) => match normal.truncate {
                Some([low, high]) => (own * factor).clamp(low, high),
                None => own * factor,
            },
            Change::Anew(uniform) => normal::number(normal, uniform),
        }
    }

    fn takes_unused(&self) -> bool {
        !self.rule.is_distinct()
    }

    fn computed(&mut self, name: &str, value: Value) {
        self.choices.insert(name.into(), value);
    }

    fn chosen(&mut self, name: &str, value: Value) {
        self.choices.insert(name.into(), value);
    }
}

/// A number of a range times a factor, in the range; of one with steps the nearest of them, but not the same where there is another
/// in that direction.
fn times(range: &Range, own: f64, factor: f64) -> f64 {
    let to = own * factor;
    let Some(steps) = range.steps() else { return to.clamp(range.low, range.high) };
    let last = steps.count().saturating_sub(1);
    let nearest =
        |number: f64| draw::floor(libm::round((number - range.low) / steps.step())).min(last);
    let (was, near) = (nearest(own), nearest(to));
    // Of negative numbers a multiple is lower, and 0 stays 0.
    let rises = if to == own { factor > 1.0 } else { to > own };
    steps.at(match (was == near, rises) {
        (false, _) => near,
        (true, true) => was.saturating_add(1).min(last),
        (true, false) => was.saturating_sub(1),
    })
}

/// Of choices that are numbers the next higher or lower one; else the same.
fn neighbour(all: &[Value], at: usize, rises: bool) -> usize {
    let numbers: Option<Vec<f64>> = all.iter().map(Value::as_f64).collect();
    let Some((numbers, own)) = numbers.and_then(|all| all.get(at).copied().map(|own| (all, own)))
    else {
        return at;
    };
    let others = numbers.iter().enumerate().filter(|(_, number)| match rises {
        true => **number > own,
        false => **number < own,
    });
    let nearest = others.min_by(|(_, a), (_, b)| (*a - own).abs().total_cmp(&(*b - own).abs()));
    nearest.map_or(at, |(index, _)| index)
}
