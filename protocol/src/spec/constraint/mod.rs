//! `search.constraints`: which combinations of values a search leaves out.
//!
//! ```text
//!   text --parse--> Constraint --names of one model table--> Bound --TrialConfig--> does it hold?
//! ```
//!
//! A constraint is a text on the wire and in the journal. So what is parsed here once must always mean the same.

mod expression;
mod formula;
mod keys;
mod parse;
mod value;

use super::{JobSpec, TrialConfig, dimension::FirstValues};
use expression::Expression;
use keys::Key;
pub(super) use keys::{find_path, names, setting_at};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use value::Kind;

pub use formula::Formula;
pub use parse::ConstraintError;

/// The most constraints of a search.
pub const MAX_CONSTRAINTS: usize = 32;
/// The most characters of one.
pub const MAX_CONSTRAINT_CHARS: usize = 400;

/// A comparison that every trial must satisfy, such as `width <= 64 or batch_size < 128`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Constraint {
    text: String,
    expression: Expression<String>,
}

impl Constraint {
    /// Reads a constraint. Whether there are such keys isn't known here: see [`Constraints::new`].
    ///
    /// # Errors
    /// Where it isn't one, and why.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        Ok(Self { text: text.to_owned(), expression: parse::expression(text)? })
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does it name the key at this path?
    pub(super) fn names(&self, path: &str) -> bool {
        self.expression.names().iter().any(|name| keys::means(path, name))
    }
}

impl PartialEq for Constraint {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl From<Constraint> for String {
    fn from(constraint: Constraint) -> Self {
        constraint.text
    }
}

impl TryFrom<String> for Constraint {
    type Error = ConstraintError;
    fn try_from(text: String) -> Result<Self, ConstraintError> {
        Self::parse(&text)
    }
}

/// Why a constraint of a job can't be decided; constraints are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum ConstraintFault {
    /// `known`: the names that there are.
    #[error("constraint {constraint} names `{name}`, which is no key of this job's trials")]
    Unknown { constraint: usize, name: String, known: BTreeSet<String> },
    #[error("constraint {constraint} {why}")]
    Undecided { constraint: usize, why: String },
}

/// The constraints of a job, ready for its trials.
#[derive(Debug)]
pub struct Constraints {
    /// By model table: its constraints with their numbers. A constraint that names a key of another table isn't among them.
    tables: Vec<Vec<(usize, Expression<Key>)>>,
}

impl Constraints {
    /// Finds the keys that a job's constraints name.
    ///
    /// # Errors
    /// A name that no model table has or that means two keys, a list, or values that can't be compared.
    pub fn new(spec: &JobSpec) -> Result<Self, ConstraintFault> {
        let first = |table| spec.close(table, &mut FirstValues::default());
        // A table without a value is reported when its trials are made.
        let configs: Vec<Option<TrialConfig>> = (0..spec.models.len()).map(first).collect();
        let mut tables = vec![Vec::new(); configs.len()];
        for (constraint, Constraint { expression, .. }) in
            spec.search.constraints.iter().enumerate()
        {
            let fault = |why| ConstraintFault::Undecided { constraint, why };
            let mut unknown = expression.names();
            for (config, bound) in configs.iter().zip(&mut tables) {
                let Some(config) = config else { continue };
                let found = expression.bind(&mut |name| {
                    let key = Key::find(config, name, spec.search.combinations)?;
                    if key.is_some() {
                        unknown.remove(name.as_str());
                    }
                    Ok(key)
                });
                let Some(found) = found.map_err(fault)? else { continue };
                match found.kind(config).map_err(fault)? {
                    Kind::Truth => bound.push((constraint, found)),
                    kind => {
                        let why = format!("is {kind}; a comparison is wanted, e.g. `width <= 64`");
                        return Err(fault(why));
                    }
                }
            }
            if let Some(name) = unknown.first() {
                let known = configs.iter().flatten().flat_map(keys::names).collect();
                let name = (*name).to_owned();
                return Err(ConstraintFault::Unknown { constraint, name, known });
            }
        }
        Ok(Self { tables })
    }

    /// The first constraint that a trial of a model table breaks, counted from 0. Where combinations are to differ, one that hangs on a
    /// setting of which the trial makes no use is broken by no trial.
    ///
    /// # Errors
    /// A constraint that can't be decided for these values, such as a division by 0.
    pub fn broken(
        &self,
        table: usize,
        config: &TrialConfig,
    ) -> Result<Option<usize>, ConstraintFault> {
        for (constraint, expression) in self.tables.get(table).into_iter().flatten() {
            let fault = |why| ConstraintFault::Undecided { constraint: *constraint, why };
            if expression.holds(config).map_err(fault)? == Some(false) {
                return Ok(Some(*constraint));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
