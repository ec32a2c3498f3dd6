//! How the fields of a table are written.

use serde::{Deserialize, Serialize};

/// Most words that a job gives for missing values.
pub const MAX_MISSING_WORDS: usize = 1 << 10;

/// How the fields of a table are written, as far as the file doesn't show it. Job files say it by keys of `[data]`; models keep it, so
/// that rows to predict are read as those were that they were trained on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Dialect {
    /// The names of the columns; `None`: those of the first line, unless it looks like a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Header>,
    /// The words that say that a value is missing, beside an empty field; `None`: the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_values: Option<Vec<String>>,
    /// How numbers are written.
    #[serde(default, skip_serializing_if = "Notation::is_plain")]
    pub numbers: Notation,
}

impl Dialect {
    /// Does it say nothing?
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The names of a table's columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Header {
    /// The first line of each file, even where all of it are numbers.
    First,
    /// No line has them: a column is named by its position, from `1`.
    Position,
    /// No line has them: these.
    Names(Vec<String>),
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Notation {
    /// The sign between the whole part and the fraction.
    #[serde(default, skip_serializing_if = "DecimalSign::is_point")]
    pub decimal: DecimalSign,
    /// The sign between groups of three digits of the whole part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<ThousandsSign>,
}

impl Notation {
    /// Are numbers written with a decimal point, and with nothing between digits?
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Has each of its signs one meaning?
    #[must_use]
    pub fn is_unambiguous(&self) -> bool {
        let thousands = self.thousands.map(ThousandsSign::text);
        thousands != Some(self.decimal.text())
    }
}

/// The sign between the whole part of a number and its fraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DecimalSign {
    /// `1.5`
    #[default]
    #[serde(rename = ".")]
    Point,
    /// `1,5`
    #[serde(rename = ",")]
    Comma,
}

impl DecimalSign {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    fn is_point(&self) -> bool {
        *self == DecimalSign::Point
    }

    /// The sign, as job files write it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            DecimalSign::Point => ".",
            DecimalSign::Comma => ",",
        }
    }
}

/// The sign between groups of three digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ThousandsSign {
    /// `1.000.000`
    #[serde(rename = ".")]
    Point,
    /// `1,000,000`
    #[serde(rename = ",")]
    Comma,
    /// `1'000'000`
    #[serde(rename = "'")]
    Apostrophe,
    /// `1 000 000`
    #[serde(rename = " ")]
    Space,
    /// The same with spaces at which no line is broken, as French spreadsheets write it.
    #[serde(rename = "no-break space")]
    NoBreakSpace,
}

impl ThousandsSign {
    /// All of them.
    pub const ALL: [ThousandsSign; 5] = [
        ThousandsSign::Comma,
        ThousandsSign::Point,
        ThousandsSign::Apostrophe,
        ThousandsSign::Space,
        ThousandsSign::NoBreakSpace,
    ];

    /// The sign, as job files write it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            ThousandsSign::Point => ".",
            ThousandsSign::Comma => ",",
            ThousandsSign::Apostrophe => "'",
            ThousandsSign::Space => " ",
            ThousandsSign::NoBreakSpace => "no-break space",
        }
    }

    /// Is it this character?
    #[must_use]
    pub const fn is(self, sign: char) -> bool {
        match self {
            ThousandsSign::Point => sign == '.',
            ThousandsSign::Comma => sign == ',',
            ThousandsSign::Apostrophe => matches!(sign, '\'' | '\u{2019}'),
            ThousandsSign::Space => sign == ' ',
            ThousandsSign::NoBreakSpace => matches!(sign, '\u{a0}' | '\u{202f}'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_stored_as_far_as_it_says_something() {
        assert_eq!(serde_json::to_string(&Dialect::default()).unwrap(), "{}");
        let stored = r#"{"header":{"names":["a","y"]},"missing_values":["-"],"numbers":{"decimal":",","thousands":"."}}"#;
        let dialect: Dialect = serde_json::from_str(stored).unwrap();
        assert!(dialect.numbers.is_unambiguous() && !dialect.is_default());
        assert_eq!(serde_json::to_string(&dialect).unwrap(), stored);
        let position = Dialect { header: Some(Header::Position), ..Dialect::default() };
        assert_eq!(serde_json::to_string(&position).unwrap(), r#"{"header":"position"}"#);
    }
}
