//! How a table writes that a value is missing.

use crate::number::number;

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
    words: Vec<String>,
    /// The words that are numbers: `-999.0` is `-999` too.
    numbers: Vec<f32>,
}

impl MissingValues {
    /// The words that a job says, or the usual ones.
    pub(crate) fn new(said: Option<&[String]>) -> Self {
        let said = said.map(|words| Said {
            words: words.to_vec(),
            numbers: words.iter().filter_map(|word| number(word.as_bytes()).ok()).collect(),
        });
        Self { said }
    }

    /// Is this field missing?
    pub(crate) fn contains(&self, field: &[u8]) -> bool {
        let field = field.trim_ascii();
        let is = |word: &str| field.eq_ignore_ascii_case(word.as_bytes());
        field.is_empty()
            || match &self.said {
                None => USUAL.into_iter().any(is),
                Some(said) => said.words.iter().any(|word| is(word)) || said.has_number(field),
            }
    }

    /// May a field be missing that reads as a number or a truth value?
    pub(crate) fn may_be_values(&self) -> bool {
        self.said.is_some()
    }
}

impl Said {
    fn has_number(&self, field: &[u8]) -> bool {
        !self.numbers.is_empty() && number(field).is_ok_and(|found| self.numbers.contains(&found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let said = MissingValues::new(Some(&["-".to_owned(), "-999".to_owned()]));
        for text in ["", "-", "-999", " -999.0", "-9.99e2"] {
            assert!(said.contains(text.as_bytes()), "{text}");
        }
        for text in ["NA", "nan", "?", "999"] {
            assert!(!said.contains(text.as_bytes()), "{text}");
        }
        let none = MissingValues::new(Some(&[]));
        assert!(none.contains(b"") && !none.contains(b"NA"));
    }
}
