//! How the fields of a table are written.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Columns that hold dates, and the features that they become.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dates: BTreeMap<String, DateFeatures>,
    /// The encoding of text files.
    #[serde(default, skip_serializing_if = "TextEncoding::is_utf8")]
    pub encoding: TextEncoding,
}

/// The encoding of a text file. A byte order mark wins over one that isn't UTF-8.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TextEncoding {
    /// UTF-8.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// ISO 8859-1: each byte is the character of its number.
    #[serde(rename = "latin-1")]
    Latin1,
    /// The code page of Windows in western Europe and America.
    #[serde(rename = "windows-1252")]
    Windows1252,
    /// UTF-16, the little end first unless a byte order mark says otherwise.
    #[serde(rename = "utf-16")]
    Utf16,
}

impl TextEncoding {
    /// All of them.
    pub const ALL: [TextEncoding; 4] =
        [TextEncoding::Utf8, TextEncoding::Latin1, TextEncoding::Windows1252, TextEncoding::Utf16];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
    fn is_utf8(&self) -> bool {
        *self == TextEncoding::Utf8
    }

    /// The word, as job files write it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            TextEncoding::Utf8 => "utf-8",
            TextEncoding::Latin1 => "latin-1",
            TextEncoding::Windows1252 => "windows-1252",
            TextEncoding::Utf16 => "utf-16",
        }
    }
}

/// The features that a column of dates becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DateFeatures {
    /// One of the column's own name: the days since 1970-01-01 in UTC, with the fraction of the day.
    Days,
    /// One for each part of the date, as it is written.
    Parts,
}

impl DateFeatures {
    /// The parts of every date: the year, the month and the day from 1, and the day of the week from Monday, which is 0.
    pub const PARTS: [&str; 4] = ["year", "month", "day", "weekday"];
    /// The part of columns in which some date has a time other than midnight.
    pub const HOUR: &str = "hour";

    /// The names of the features of `column`.
    #[must_use]
    pub fn features(self, column: &str, has_hour: bool) -> Vec<String> {
        let hour = has_hour.then_some(Self::HOUR);
        match self {
            DateFeatures::Days => vec![column.to_owned()],
            DateFeatures::Parts => {
                Self::PARTS.into_iter().chain(hour).map(|part| format!("{column}.{part}")).collect()
            }
        }
    }
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
    fn dates_become_features_of_their_parts() {
        assert_eq!(DateFeatures::Days.features("on", true), ["on"]);
        let parts = ["on.year", "on.month", "on.day", "on.weekday", "on.hour"];
        assert_eq!(DateFeatures::Parts.features("on", true), parts);
        assert_eq!(DateFeatures::Parts.features("on", false), parts[..4]);
    }

    #[test]
    fn a_dialect_is_stored_as_far_as_it_says_something() {
        assert_eq!(serde_json::to_string(&Dialect::default()).unwrap(), "{}");
        let stored = r#"{"header":{"names":["a","y"]},"missing_values":["-"],"numbers":{"decimal":",","thousands":"."}}"#;
        let dialect: Dialect = serde_json::from_str(stored).unwrap();
        assert!(dialect.numbers.is_unambiguous() && !dialect.is_default());
        assert_eq!(serde_json::to_string(&dialect).unwrap(), stored);
        let stored = r#"{"dates":{"at":"days","on":"parts"}}"#;
        let dialect: Dialect = serde_json::from_str(stored).unwrap();
        assert_eq!(dialect.dates.get("at"), Some(&DateFeatures::Days));
        assert_eq!(serde_json::to_string(&dialect).unwrap(), stored);
        for encoding in TextEncoding::ALL {
            let stored = serde_json::to_string(&encoding).unwrap();
            assert_eq!(stored, format!("\"{}\"", encoding.text()));
        }
        let position = Dialect { header: Some(Header::Position), ..Dialect::default() };
        assert_eq!(serde_json::to_string(&position).unwrap(), r#"{"header":"position"}"#);
    }
}
