//! The value of a setting as an expression over other settings of its trial.

use super::{
    super::TrialConfig,
    ConstraintError,
    expression::Expression,
    keys::{self, Key},
    parse,
    value::Kind,
};
use crate::spec::CombinationRule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A number that follows from other settings: `0.1 * batch_size / 256`. It is a text on the wire and in the journal, and is computed in
/// IEEE 754 double precision, in the order of its signs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String))]
#[serde(into = "String", try_from = "String")]
pub struct Formula(Parsed);

/// A text, and what it says.
#[derive(Debug, Clone)]
struct Parsed {
    text: String,
    expression: Expression<String>,
}

impl Formula {
    /// Reads a formula. Whether there are such settings isn't known here.
    ///
    /// # Errors
    /// Where it isn't one, and why.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        Ok(Self(Parsed { text: text.to_owned(), expression: parse::expression(text)? }))
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Does it name a setting at all?
    #[must_use]
    pub fn names_settings(&self) -> bool {
        !self.names().is_empty()
    }

    /// The names of its settings.
    pub(in crate::spec) fn names(&self) -> BTreeSet<&str> {
        self.0.expression.names()
    }

    /// Has it a number in trials like this one?
    ///
    /// # Errors
    /// A setting that they don't have, or that is no number where one is wanted.
    pub(in crate::spec) fn check(&self, config: &TrialConfig) -> Result<(), String> {
        match self.bind(config)?.kind(config)? {
            Kind::Number => Ok(()),
            kind => Err(format!("is {kind} where a number is wanted")),
        }
    }

    /// The number in a trial; `None` while a setting is open: of these paths the configuration doesn't have the values yet.
    ///
    /// # Errors
    /// Why it has none, such as a division by 0.
    pub(in crate::spec) fn value(
        &self,
        config: &TrialConfig,
        open: &BTreeSet<String>,
    ) -> Result<Option<f64>, String> {
        for name in self.names() {
            if keys::find_path(config, name)?.is_some_and(|path| open.contains(&path)) {
                return Ok(None);
            }
        }
        self.bind(config)?.number(config)
    }

    fn bind(&self, config: &TrialConfig) -> Result<Expression<Key>, String> {
        // A setting that a trial makes no use of has its default there.
        let rule = CombinationRule::All;
        let mut unknown = None;
        let bound = self.0.expression.bind(&mut |name: &String| {
            let key = Key::find(config, name, rule)?;
            if key.is_none() {
                unknown.get_or_insert_with(|| name.clone());
            }
            Ok(key)
        })?;
        bound.ok_or_else(|| {
            let name = unknown.unwrap_or_default();
            let arch = config.model.name();
            format!("names `{name}`, which is no setting of trials with `arch = \"{arch}\"`")
        })
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl From<Formula> for String {
    fn from(formula: Formula) -> Self {
        formula.0.text
    }
}

impl TryFrom<String> for Formula {
    type Error = ConstraintError;
    fn try_from(text: String) -> Result<Self, ConstraintError> {
        Self::parse(&text)
    }
}
