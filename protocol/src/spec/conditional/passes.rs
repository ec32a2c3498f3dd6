//! A space is closed in passes: what a trial has of conditional dimensions follows from its other settings, wherever these stand in
//! the space.
//!
//! In the first pass all settings get their values but for those that hang on others: these are open. In each pass after it those are
//! decided whose settings were known in the pass before. The chooser is asked for each dimension once.

use super::{
    super::{
        Formula, TrialConfig,
        dimension::{Chooser, Normal, Range, Tied},
    },
    Presence, path_of,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The chooser of a space in passes, in front of the one that chooses.
pub(in crate::spec) struct Passes<'a> {
    chooser: &'a mut dyn Chooser,
    /// The chosen values, by dimension.
    answers: BTreeMap<String, Answer>,
    /// By conditional dimension, whether the trial has it.
    decided: BTreeMap<String, bool>,
    /// The paths of settings that are open in this pass.
    open: BTreeSet<String>,
    /// The configuration after the pass before, and the paths that were open in it.
    before: Option<(TrialConfig, BTreeSet<String>)>,
    /// How many dimensions were decided on before this pass.
    known: usize,
    /// The numbers of formulas, by setting, and whether the chooser has heard of each.
    computed: BTreeMap<String, (f64, bool)>,
    fault: Option<String>,
}

/// Why a space has no trial for what was chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclosed {
    /// A setting has no value to choose.
    #[error("a setting has no value")]
    Empty,
    /// A formula has no number, or one that the setting can't have.
    #[error("{0}")]
    Formula(String),
}

/// The answer for a dimension.
struct Answer {
    chosen: Chosen,
    /// Has the chooser heard of its value?
    is_told: bool,
}

#[derive(Clone, Copy)]
enum Chosen {
    Index(usize),
    Number(f64),
}

impl<'a> Passes<'a> {
    pub(in crate::spec) fn new(chooser: &'a mut dyn Chooser) -> Self {
        Self {
            chooser,
            answers: BTreeMap::new(),
            decided: BTreeMap::new(),
            open: BTreeSet::new(),
            before: None,
            known: 0,
            computed: BTreeMap::new(),
            fault: None,
        }
    }

    /// The configuration of a trial; `close` goes once over the space.
    ///
    /// # Errors
    /// A setting that has no value or hangs on itself, or one that can't have the value of its formula.
    pub(in crate::spec) fn run(
        mut self,
        mut close: impl FnMut(&mut Self) -> Option<TrialConfig>,
    ) -> Result<TrialConfig, Unclosed> {
        loop {
            let closed = close(&mut self);
            if let Some(fault) = self.fault {
                return Err(Unclosed::Formula(fault));
            }
            let config = closed.ok_or(Unclosed::Empty)?;
            if self.open.is_empty() {
                let is_tied = !self.computed.is_empty();
                let check = if is_tied { config.check_values() } else { Ok(()) };
                return check.map_err(Unclosed::Formula).map(|()| config);
            }
            let known = self.answers.len() + self.decided.len() + self.computed.len();
            if self.before.is_some() && known == self.known {
                return Err(Unclosed::Empty);
            }
            self.known = known;
            self.before = Some((config, std::mem::take(&mut self.open)));
        }
    }

    fn index_of(&mut self, name: &str, ask: impl FnOnce(&mut dyn Chooser) -> usize) -> usize {
        if let Some(Answer { chosen: Chosen::Index(index), .. }) = self.answers.get(name) {
            return *index;
        }
        let index = ask(self.chooser);
        self.keep(name, Chosen::Index(index));
        index
    }

    fn number_of(&mut self, name: &str, ask: impl FnOnce(&mut dyn Chooser) -> f64) -> f64 {
        if let Some(Answer { chosen: Chosen::Number(number), .. }) = self.answers.get(name) {
            return *number;
        }
        let number = ask(self.chooser);
        self.keep(name, Chosen::Number(number));
        number
    }

    fn keep(&mut self, name: &str, chosen: Chosen) {
        self.answers.insert(name.to_owned(), Answer { chosen, is_told: false });
    }
}

impl Chooser for Passes<'_> {
    fn index(&mut self, name: &str, count: usize) -> usize {
        self.index_of(name, |chooser| chooser.index(name, count))
    }

    fn one_of(&mut self, name: &str, values: &mut dyn ExactSizeIterator<Item = Value>) -> usize {
        self.index_of(name, |chooser| chooser.one_of(name, values))
    }

    fn number(&mut self, name: &str, range: &Range) -> f64 {
        self.number_of(name, |chooser| chooser.number(name, range))
    }

    fn normal(&mut self, name: &str, normal: &Normal) -> f64 {
        self.number_of(name, |chooser| chooser.normal(name, normal))
    }

    fn takes_unused(&self) -> bool {
        self.chooser.takes_unused()
    }

    fn takes_absent(&self) -> bool {
        self.chooser.takes_absent()
    }

    fn has(&mut self, name: &str, of: &dyn Presence) -> bool {
        if self.chooser.takes_absent() {
            return self.chooser.has(name, of);
        }
        if let Some(has) = self.decided.get(name) {
            return *has;
        }
        let before = self.before.as_ref();
        let is_met = before.and_then(|(config, open)| of.when().is_met(config, open));
        match is_met {
            Some(is_met) => {
                self.decided.insert(name.to_owned(), is_met);
                is_met
            }
            None => {
                self.open.insert(path_of(name));
                false
            }
        }
    }

    fn waits_for(&mut self, name: &str, decider: &str) -> bool {
        let is_open = !self.takes_unused() && self.open.contains(&path_of(decider));
        let waits = self.chooser.waits_for(name, decider) || is_open;
        if waits {
            self.open.insert(path_of(name));
        }
        waits
    }

    fn tied(&mut self, name: &str, formula: &Formula) -> Tied {
        if self.takes_absent() {
            return self.chooser.tied(name, formula);
        }
        if let Some((number, _)) = self.computed.get(name) {
            return Tied::Number(*number);
        }
        let before = self.before.as_ref();
        match before.map_or(Ok(None), |(config, open)| formula.value(config, open)) {
            Ok(Some(number)) => {
                self.computed.insert(name.to_owned(), (number, false));
                Tied::Number(number)
            }
            Ok(None) => {
                self.open.insert(path_of(name));
                Tied::Open
            }
            Err(why) => {
                self.refuse(name, why);
                Tied::Nothing
            }
        }
    }

    fn refuse(&mut self, name: &str, why: String) {
        self.fault.get_or_insert_with(|| format!("`{name}` {why}"));
    }

    fn computed(&mut self, name: &str, value: Value) {
        if let Some((_, is_told)) = self.computed.get_mut(name).filter(|(_, is_told)| !*is_told) {
            *is_told = true;
            self.chooser.computed(name, value);
        }
    }

    fn chosen(&mut self, name: &str, value: Value) {
        if let Some(answer) = self.answers.get_mut(name).filter(|answer| !answer.is_told) {
            answer.is_told = true;
            self.chooser.chosen(name, value);
        }
    }
}
