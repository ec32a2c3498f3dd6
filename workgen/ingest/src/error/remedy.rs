//! Remedies for problems of rows, and the values that the problems are about.

use super::{Problem, RaggedHint, Way, line};
use crate::signs::{sign_of, without_sign};
use sojourn_protocol::spec::{DecimalSign, Notation};

pub(super) const MISSING: &str = "`data.missing` says what to do about it: `\"drop-row\"` leaves such rows out, `\"zero\"` takes 0, \
                                  `\"mean\"` the column's mean";

pub(super) const TRUTH: &str = "a column has either such words or numbers";

impl Problem {
    /// The remedy, where several of its kind have one.
    pub(crate) fn remedy(&self) -> Option<String> {
        Some(match self {
            Problem::MissingFeature(_) => MISSING.to_owned(),
            Problem::WordFeature { word, column } => words(word, column),
            Problem::DateFeature { column, .. } => dates(column),
            Problem::OtherDate { column, .. } => other_dates(column),
            Problem::OtherNotation { text, ways: all } => {
                format!("`{}` is {}", line(text), ways(all))
            }
            Problem::NoTruth(_) => TRUTH.to_owned(),
            Problem::Ragged { hint: RaggedHint::Lines(_), .. } => return None,
            Problem::Ragged { hint, .. } => {
                return hint.text().strip_prefix("; ").map(str::to_owned);
            }
            _ => return None,
        })
    }

    /// The value that is wrong.
    pub(crate) fn value(&self) -> Option<String> {
        let text = match self {
            Problem::Ragged { actual, .. } | Problem::NamedWidth { actual, .. } => {
                return Some(format!("({actual} values)"));
            }
            Problem::MissingFeature(text) if text.is_empty() => return None,
            Problem::MissingFeature(text)
            | Problem::NotANumber(text)
            | Problem::LabelNotANumber(text)
            | Problem::NoDate(text)
            | Problem::NotFinite(text)
            | Problem::TooLarge(text)
            | Problem::NoTruth(text)
            | Problem::UnseenWord(text)
            | Problem::WordFeature { word: text, .. }
            | Problem::DateFeature { date: text, .. }
            | Problem::OtherDate { date: text, .. }
            | Problem::OtherNotation { text, .. }
            | Problem::NotInNotation { text, .. } => text,
            Problem::NoExample(reason) => return Some(format!("({reason})")),
            Problem::Sparse(problem) => &problem.value(),
            _ => return None,
        };
        Some(format!("`{}`", line(text)))
    }
}

pub(super) fn words(word: &str, column: &str) -> String {
    if let Some(sign) = sign_of(word) {
        let command = without_sign(sign);
        return format!("numbers must be without `{sign}`, of a text file by `{command}`");
    }
    format!(
        "if `{}` holds words, name it in `data.categories` (`{{ {} = \"one-hot\" }}`), or leave it out by `data.columns`",
        line(column),
        key(column)
    )
}

pub(super) fn dates(column: &str) -> String {
    format!(
        "`data.dates` (`{{ {} = \"parts\" }}`, or \"days\") makes features of it, and `data.columns` leaves it out",
        key(column)
    )
}

pub(super) fn other_dates(column: &str) -> String {
    format!(
        "dates as ISO 8601 writes them (`2024-03-31`) are made features by `data.dates` (`{{ {} = \"parts\" }}`), and \
         `data.columns` leaves the column out",
        key(column)
    )
}

/// The command that writes each object of a list, which an object has under this key, in a line of its own.
pub(super) fn list(key: Option<&str>) -> String {
    let Some(key) = key else { return String::new() };
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_so = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    // In quotes of a shell there can't be another one.
    let is_quotable = |c: char| !c.is_control() && !matches!(c, '\'' | '"' | '\\');
    if begins_so && key.chars().all(is_bare) {
        format!(": `jq -c '.{key}[]' FILE > NEW_FILE.jsonl`")
    } else if key.chars().all(is_quotable) {
        format!(": `jq -c '.[\"{key}\"][]' FILE > NEW_FILE.jsonl`")
    } else {
        String::new()
    }
}

/// The numbers that a text may be, and the keys of the job by which it is read so.
pub(super) fn ways(ways: &[Way]) -> String {
    let ways: Vec<String> = ways
        .iter()
        .map(|Way { notation, value }| format!("{} by {}", line(value), keys(*notation)))
        .collect();
    ways.join(", or ")
}

fn keys(notation: Notation) -> String {
    let decimal =
        (notation.decimal == DecimalSign::Comma).then(|| "`data.decimal = \",\"`".to_owned());
    let thousands =
        notation.thousands.map(|sign| format!("`data.thousands = \"{}\"`", sign.text()));
    decimal.into_iter().chain(thousands).collect::<Vec<_>>().join(" and ")
}

/// A column's name as a key of TOML.
fn key(column: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !column.is_empty() && column.chars().all(is_bare) {
        line(column)
    } else {
        format!("\"{}\"", line(column))
    }
}
