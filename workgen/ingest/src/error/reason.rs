//! The reasons for which a row or an image can't be read, by which they are counted.

use super::Problem;

/// The reason for which a row, or an image, can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Reason {
    NumberOfValues,
    Quotes,
    NoObject,
    NoSparseRow,
    NoExample,
    NoNumber,
    OtherNotation,
    DateForNumber,
    NoDate,
    NoText,
    NotFinite,
    NoTruthValue,
    UnknownWord,
    TooLong,
    WithoutName,
    Missing,
    Empty,
    Damaged,
    OtherFormat,
    TooLarge,
}

impl Reason {
    /// The reason of a problem; none of one that isn't about a single row.
    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        Some(match problem {
            Problem::Ragged { .. } | Problem::NamedWidth { .. } => Reason::NumberOfValues,
            Problem::OpenQuote | Problem::AfterQuote => Reason::Quotes,
            Problem::NoObject { .. } | Problem::KeyTwice(_) => Reason::NoObject,
            Problem::Sparse(_) => Reason::NoSparseRow,
            Problem::NoExample(_) => Reason::NoExample,
            Problem::NotANumber(_) | Problem::LabelNotANumber(_) | Problem::WordFeature { .. } => {
                Reason::NoNumber
            }
            Problem::OtherNotation { .. } | Problem::NotInNotation { .. } => Reason::OtherNotation,
            Problem::DateFeature { .. } | Problem::OtherDate { .. } => Reason::DateForNumber,
            Problem::NoDate(_) => Reason::NoDate,
            Problem::UnknownEncoding | Problem::NotUtf8 => Reason::NoText,
            Problem::NotFinite(_) | Problem::TooLarge(_) => Reason::NotFinite,
            Problem::NoTruth(_) => Reason::NoTruthValue,
            Problem::UnseenWord(_) => Reason::UnknownWord,
            Problem::LongWord { .. } | Problem::LongLabel { .. } => Reason::TooLong,
            Problem::ValueWithoutName { .. } => Reason::WithoutName,
            Problem::Missing | Problem::MissingFeature(_) => Reason::Missing,
            Problem::Empty => Reason::Empty,
            Problem::BadImage { .. } | Problem::NoPixels => Reason::Damaged,
            Problem::NoImage | Problem::OtherImage => Reason::OtherFormat,
            Problem::LargeImage { .. } | Problem::LargeImageFile { .. } => Reason::TooLarge,
            _ => return None,
        })
    }

    /// Are rows left out for it? About missing values `data.missing` decides.
    pub(crate) fn is_skipped(self) -> bool {
        self != Reason::Missing
    }

    /// The word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Reason::NumberOfValues => "number_of_values",
            Reason::Quotes => "quotes",
            Reason::NoObject => "no_object",
            Reason::NoSparseRow => "no_sparse_row",
            Reason::NoExample => "no_example",
            Reason::NoNumber => "no_number",
            Reason::OtherNotation => "other_notation",
            Reason::DateForNumber => "date_for_number",
            Reason::NoDate => "no_date",
            Reason::NoText => "no_text",
            Reason::NotFinite => "not_finite",
            Reason::NoTruthValue => "no_truth_value",
            Reason::UnknownWord => "unknown_word",
            Reason::TooLong => "too_long",
            Reason::WithoutName => "without_name",
            Reason::Missing => "missing",
            Reason::Empty => "empty",
            Reason::Damaged => "damaged",
            Reason::OtherFormat => "other_format",
            Reason::TooLarge => "too_large",
        }
    }

    /// The words for people, behind which a count stands.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Reason::NumberOfValues => "another number of values",
            Reason::Quotes => "broken quotes",
            Reason::NoObject => "no JSON object",
            Reason::NoSparseRow => "no row of libsvm's format",
            Reason::NoExample => "no `tf.train.Example`",
            Reason::NoNumber => "no number",
            Reason::OtherNotation => "a number in another notation",
            Reason::DateForNumber => "a date in place of a number",
            Reason::NoDate => "no date",
            Reason::NoText => "no text in the encoding",
            Reason::NotFinite => "not finite in single precision",
            Reason::NoTruthValue => "no truth value",
            Reason::UnknownWord => "none of the column's words",
            Reason::TooLong => "too long",
            Reason::WithoutName => "a value in a column without a name",
            Reason::Missing => "a missing value",
            Reason::Empty => "empty",
            Reason::Damaged => "damaged",
            Reason::OtherFormat => "another format",
            Reason::TooLarge => "too large",
        }
    }

    /// The end of a sentence about several values, rows or images, before which their number stands.
    pub(super) const fn of_several(self) -> &'static str {
        match self {
            Reason::NumberOfValues => "rows have another number of values than there are columns",
            Reason::Quotes => "rows have quotes that aren't closed, or text behind them",
            Reason::NoObject => "lines are no JSON object with each key once",
            Reason::NoSparseRow => "lines are no label with pairs `index:value` of growing indices",
            Reason::NoExample => "records are no `tf.train.Example`",
            Reason::NoNumber => "values are no numbers",
            Reason::OtherNotation => "values are numbers in another notation",
            Reason::DateForNumber => "values are dates, no numbers",
            Reason::NoDate => "values are no dates as ISO 8601 writes them",
            Reason::NoText => "values are no text in the encoding of the file",
            Reason::NotFinite => "values aren't finite in single precision",
            Reason::NoTruthValue => "values are no truth values, as those above them are",
            Reason::UnknownWord => "values are none of the column's words",
            Reason::TooLong => "values are too long",
            Reason::WithoutName => "rows have a value in a column without a name",
            Reason::Missing => "values are missing",
            Reason::Empty => "files are empty",
            Reason::Damaged => "images are damaged, cut off, or of a kind that isn't read",
            Reason::OtherFormat => "files are no images that are read",
            Reason::TooLarge => "images are too large",
        }
    }
}
