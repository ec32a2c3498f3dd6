//! How a table writes that a value is missing.

use crate::number::{number, number_in};
use sojourn_protocol::spec::Notation;
use std::collections::BTreeSet;

/// The usual words, in any case.
const USUAL: [&str; 6] = ["na", "n/a", "nan", "null", "?", "none"];

/// The ways to write that a value is missing, beside an empty field. They are the same for features, words and labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissingValues {
    /// The job's words; `None` is the usual ones.
    said: Option<Said>,
}

#[derive(Debug, Clone)]
struct Said {
    /// In small letters.
    words: BTreeSet<String>,
    /// The words that are numbers: `-999.0` is `-999` too. By their bits, without a sign of zero.
    numbers: BTreeSet<u32>,
    /// How the table's numbers are written.
    notation: Notation,
}

impl MissingValues {
    /// The words that a job says, or the usual ones, in a table whose numbers are written so.
    pub(crate) fn new(said: Option<&[String]>, notation: Notation) -> Self {
        let said = said.map(|words| {
            // A job file has numbers with a decimal point, and words as the table writes them.
            let numbers = words.iter().filter_map(|word| {
                let word = word.as_bytes();
                number(word).or_else(|_| number_in(notation, word)).ok()
            });
            Said {
                words: words.iter().map(|word| word.to_ascii_lowercase()).collect(),
                numbers: numbers.map(bits).collect(),
                notation,
            }
        });
        Self { said }
    }

    /// Is this field missing?
    pub(crate) fn contains(&self, field: &[u8]) -> bool {
        let field = field.trim_ascii();
        if field.is_empty() {
            return true;
        }
        match &self.said {
            None => USUAL.into_iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes())),
            Some(said) => said.has_word(field) || said.has_number(field),
        }
    }

    /// May a field be missing that reads as a number or a truth value?
    pub(crate) fn may_be_values(&self) -> bool {
        self.said.is_some()
    }
}

impl Said {
    fn has_word(&self, field: &[u8]) -> bool {
        std::str::from_utf8(field).is_ok_and(|field| {
            self.words.contains(field) || self.words.contains(&field.to_ascii_lowercase())
        })
    }

    fn has_number(&self, field: &[u8]) -> bool {
        !self.numbers.is_empty()
            && number_in(self.notation, field)
                .is_ok_and(|found| self.numbers.contains(&bits(found)))
    }
}

/// The bits of a number; zero has one way.
fn bits(number: f32) -> u32 {
    (number + 0.0).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::spec::{DecimalSign, ThousandsSign};

    #[test]
    fn missing_values_have_few_spellings() {
        let usual = MissingValues::default();
        for text in ["", " ", "NA", "n/a", "NaN", "NULL", "?", "None"] {
            assert!(usual.contains(text.as_bytes()), "{text}");
        }
        for text in ["0", "-", "nothing", "inf"] {
            assert!(!usual.contains(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn words_of_a_job_stand_instead_of_the_usual_ones_and_numbers_are_compared_as_such() {
        let said =
            MissingValues::new(Some(&["-".to_owned(), "-999".to_owned()]), Notation::default());
        for text in ["", "-", "-999", " -999.0", "-9.99e2"] {
            assert!(said.contains(text.as_bytes()), "{text}");
        }
        for text in ["NA", "nan", "?", "999"] {
            assert!(!said.contains(text.as_bytes()), "{text}");
        }
        let german =
            Notation { decimal: DecimalSign::Comma, thousands: Some(ThousandsSign::Point) };
        let said = MissingValues::new(Some(&["-9999".to_owned(), "-1,5".to_owned()]), german);
        for text in ["-9999", "-9.999", "-9999,0", "-1,5", "-1,50"] {
            assert!(said.contains(text.as_bytes()), "{text}");
        }
        let none = MissingValues::new(Some(&[]), Notation::default());
        assert!(none.contains(b"") && !none.contains(b"NA"));
    }
}
