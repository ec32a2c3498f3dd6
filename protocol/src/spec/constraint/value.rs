//! The value of an expression or of a key, and its kind.

use std::{borrow::Cow, fmt};

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Text,
    Truth,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Number => "a number",
            Kind::Text => "a text",
            Kind::Truth => "true or false",
        })
    }
}

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Truth(bool),
}

impl Value<'_> {
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Value::Number(_) => Kind::Number,
            Value::Text(_) => Kind::Text,
            Value::Truth(_) => Kind::Truth,
        }
    }

    /// The words for the value where another kind is wanted.
    pub(super) fn instead_of(&self, wanted: Kind) -> String {
        format!("comes to {} where {wanted} is wanted", self.kind())
    }
}
