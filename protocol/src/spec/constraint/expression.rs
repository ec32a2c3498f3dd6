//! An expression over the keys of a trial: its kind, and its value.

use super::{
    super::TrialConfig,
    keys::Key,
    value::{Kind, Value},
};
use std::{borrow::Cow, cmp::Ordering, collections::BTreeSet};

/// An expression whose keys are known by `N`.
#[derive(Debug, Clone)]
pub(super) enum Expression<N> {
    Number(f64),
    Text(String),
    Truth(bool),
    Key(N),
    Negative(Box<Self>),
    Not(Box<Self>),
    /// `left sign right`.
    Pair(Box<Self>, Sign, Box<Self>),
}

/// The sign between two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Or,
    And,
    Less,
    AtMost,
    More,
    AtLeast,
    Same,
    Different,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
}

impl Sign {
    pub(super) const ALL: [(&str, Sign); 13] = [
        ("or", Sign::Or),
        ("and", Sign::And),
        ("<=", Sign::AtMost),
        ("<", Sign::Less),
        (">=", Sign::AtLeast),
        (">", Sign::More),
        ("==", Sign::Same),
        ("!=", Sign::Different),
        ("+", Sign::Plus),
        ("-", Sign::Minus),
        ("*", Sign::Times),
        ("/", Sign::Over),
        ("%", Sign::Modulo),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, sign)| *sign == self).map_or("", |(word, _)| word)
    }

    /// The kind of what it takes; of any kind, if both are of the same.
    const fn takes(self) -> Option<Kind> {
        match self {
            Sign::Or | Sign::And => Some(Kind::Truth),
            Sign::Same | Sign::Different => None,
            _ => Some(Kind::Number),
        }
    }

    const fn gives(self) -> Kind {
        match self {
            Sign::Plus | Sign::Minus | Sign::Times | Sign::Over | Sign::Modulo => Kind::Number,
            _ => Kind::Truth,
        }
    }
}

impl<N> Expression<N> {
    /// The same with other names of its keys; `None` if one of them has none. All are asked for.
    pub(super) fn bind<M>(
        &self,
        find: &mut impl FnMut(&N) -> Result<Option<M>, String>,
    ) -> Result<Option<Expression<M>>, String> {
        Ok(Some(match self {
            Expression::Number(number) => Expression::Number(*number),
            Expression::Text(text) => Expression::Text(text.clone()),
            Expression::Truth(truth) => Expression::Truth(*truth),
            Expression::Key(name) => return Ok(find(name)?.map(Expression::Key)),
            Expression::Negative(of) => {
                return Ok(of.bind(find)?.map(|of| Expression::Negative(Box::new(of))));
            }
            Expression::Not(of) => {
                return Ok(of.bind(find)?.map(|of| Expression::Not(Box::new(of))));
            }
            Expression::Pair(left, sign, right) => {
                let (left, right) = (left.bind(find)?, right.bind(find)?);
                return Ok(left.zip(right).map(|(left, right)| {
                    Expression::Pair(Box::new(left), *sign, Box::new(right))
                }));
            }
        }))
    }
}

impl Expression<String> {
    /// The names of its keys.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        match self {
            Expression::Number(_) | Expression::Text(_) | Expression::Truth(_) => BTreeSet::new(),
            Expression::Key(name) => BTreeSet::from([name.as_str()]),
            Expression::Negative(of) | Expression::Not(of) => of.names(),
            Expression::Pair(left, _, right) => {
                left.names().into_iter().chain(right.names()).collect()
            }
        }
    }
}

impl Expression<Key> {
    /// The expression's kind with the kinds that values have in `config`; why it has none.
    pub(super) fn kind(&self, config: &TrialConfig) -> Result<Kind, String> {
        let only = |of: &Self, sign: &str, wanted: Kind| match of.kind(config)? {
            kind if kind == wanted => Ok(kind),
            kind => Err(format!("gives `{sign}` {kind}; {wanted} is wanted")),
        };
        match self {
            Expression::Number(_) => Ok(Kind::Number),
            Expression::Text(_) => Ok(Kind::Text),
            Expression::Truth(_) => Ok(Kind::Truth),
            Expression::Key(key) => Ok(key.value(config)?.kind()),
            Expression::Negative(of) => only(of, "-", Kind::Number),
            Expression::Not(of) => only(of, "not", Kind::Truth),
            Expression::Pair(left, sign, right) => {
                if let Some(wanted) = sign.takes() {
                    only(left, sign.word(), wanted)?;
                    only(right, sign.word(), wanted)?;
                    return Ok(sign.gives());
                }
                match (left.kind(config)?, right.kind(config)?) {
                    (left, right) if left == right => Ok(sign.gives()),
                    (left, right) => Err(format!("compares {left} with {right}")),
                }
            }
        }
    }

    /// Does a constraint hold for a trial? `None` where that hangs on a setting of which the trial makes no use: the logic is Kleene's,
    /// of three values. Why that can't be said.
    pub(super) fn holds(&self, config: &TrialConfig) -> Result<Option<bool>, String> {
        match self {
            Expression::Not(of) => Ok(of.holds(config)?.map(|holds| !holds)),
            // The right side may only make sense where the left one holds.
            Expression::Pair(left, sign @ (Sign::And | Sign::Or), right) => {
                let decides = Some(*sign == Sign::Or);
                let left = left.holds(config)?;
                if left == decides {
                    return Ok(decides);
                }
                let right = right.holds(config)?;
                Ok(if right == decides { decides } else { left.and(right) })
            }
            Expression::Pair(left, Sign::Same, right) => {
                Ok(both(left.value(config)?, right.value(config)?, |left, right| left == right))
            }
            Expression::Pair(left, Sign::Different, right) => {
                Ok(both(left.value(config)?, right.value(config)?, |left, right| left != right))
            }
            Expression::Pair(left, sign, right) if sign.gives() == Kind::Truth => {
                let (left, right) = (left.number(config)?, right.number(config)?);
                Ok(both(left, right, |left, right| {
                    let order = left.partial_cmp(&right);
                    match sign {
                        Sign::Less => order == Some(Ordering::Less),
                        Sign::AtMost => order.is_some_and(Ordering::is_le),
                        Sign::More => order == Some(Ordering::Greater),
                        _ => order.is_some_and(Ordering::is_ge),
                    }
                }))
            }
            other => match other.value(config)? {
                None => Ok(None),
                Some(Value::Truth(truth)) => Ok(Some(truth)),
                Some(value) => Err(value.instead_of(Kind::Truth)),
            },
        }
    }

    pub(super) fn number(&self, config: &TrialConfig) -> Result<Option<f64>, String> {
        match self.value(config)? {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(value) => Err(value.instead_of(Kind::Number)),
        }
    }

    fn value<'a>(&'a self, config: &'a TrialConfig) -> Result<Option<Value<'a>>, String> {
        match self {
            Expression::Number(number) => Ok(Some(Value::Number(*number))),
            Expression::Text(text) => Ok(Some(Value::Text(Cow::Borrowed(text)))),
            Expression::Truth(truth) => Ok(Some(Value::Truth(*truth))),
            Expression::Key(key) => key.used_value(config),
            Expression::Negative(of) => Ok(of.number(config)?.map(|number| Value::Number(-number))),
            Expression::Pair(left, sign, right) if sign.gives() == Kind::Number => {
                let numbers = left.number(config)?.zip(right.number(config)?);
                let number = numbers.map(|(left, right)| calculate(left, *sign, right));
                Ok(number.transpose()?.map(Value::Number))
            }
            Expression::Not(_) | Expression::Pair(..) => Ok(self.holds(config)?.map(Value::Truth)),
        }
    }
}

/// A comparison of two values, if both are known.
fn both<T>(left: Option<T>, right: Option<T>, compare: impl FnOnce(T, T) -> bool) -> Option<bool> {
    left.zip(right).map(|(left, right)| compare(left, right))
}

/// Python's arithmetic.
fn calculate(left: f64, sign: Sign, right: f64) -> Result<f64, String> {
    let number = match sign {
        Sign::Plus => left + right,
        Sign::Minus => left - right,
        Sign::Times => left * right,
        _ if right == 0.0 => return Err("divides by 0".into()),
        Sign::Over => left / right,
        _ => {
            let rest = left % right;
            if rest != 0.0 && (rest < 0.0) != (right < 0.0) { rest + right } else { rest }
        }
    };
    if number.is_finite() { Ok(number) } else { Err("goes beyond the largest number".into()) }
}
