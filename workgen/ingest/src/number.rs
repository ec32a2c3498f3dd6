//! Numbers from text.

use crate::error::Problem;

/// Whole numbers of up to this many digits are exact in an `f32`.
const EXACT_DIGITS: usize = 7;

/// Parses a finite number.
///
/// # Errors
/// An empty field, other text, or a number that isn't finite in single precision.
pub(crate) fn number(field: &[u8]) -> Result<f32, Problem> {
    // Most fields of most files are pixels and counts. This path is several times faster than the general one.
    if !field.is_empty() && field.len() <= EXACT_DIGITS {
        let digits = field.iter().try_fold(0u32, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0'))
        });
        if let Some(digits) = digits {
            #[expect(clippy::cast_precision_loss, reason = "below 2^24: exact")]
            return Ok(digits as f32);
        }
    }
    let field = field.trim_ascii();
    if field.is_empty() {
        return Err(Problem::Missing);
    }
    let text = std::str::from_utf8(field).map_err(|_| Problem::NotANumber(shown(field)))?;
    let number: f32 = text.parse().map_err(|_| no_number(text))?;
    if number.is_finite() {
        Ok(number)
    } else if text.bytes().any(|byte| byte.is_ascii_digit()) {
        Err(Problem::TooLarge(shown(field)))
    } else {
        Err(Problem::NotFinite(shown(field)))
    }
}

/// Parses a truth value as pandas, R and JSON write it: 1 or 0.
pub(crate) fn truth(field: &[u8]) -> Option<f32> {
    match field.trim_ascii() {
        b"true" | b"True" | b"TRUE" => Some(1.0),
        b"false" | b"False" | b"FALSE" => Some(0.0),
        _ => None,
    }
}

/// Is this a way to write that a value is missing?
pub(crate) fn is_missing(field: &[u8]) -> bool {
    const WORDS: [&str; 5] = ["na", "n/a", "nan", "null", "?"];
    let field = field.trim_ascii();
    field.is_empty() || WORDS.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()))
}

/// The problem of a text that is no number: maybe it has a decimal comma.
fn no_number(text: &str) -> Problem {
    let point = text.replace(['.', '\'', ' '], "").replace(',', ".");
    if text.contains(',') && text.len() < 40 && point.parse().is_ok_and(f32::is_finite) {
        return Problem::DecimalComma { text: text.to_owned(), point };
    }
    Problem::NotANumber(shown(text.as_bytes()))
}

/// A text for an error message: printable, and of limited length.
pub(crate) fn shown(field: &[u8]) -> String {
    const LIMIT: usize = 60;
    let text = String::from_utf8_lossy(field);
    let mut short: String = text.chars().take(LIMIT).flat_map(char::escape_debug).collect();
    if text.chars().count() > LIMIT {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_finite_numbers_are_accepted() {
        assert_eq!(number(b"16"), Ok(16.0));
        assert_eq!(number(b" -1.5e3 "), Ok(-1500.0));
        assert_eq!(number(b"16777217"), Ok(16_777_216.0));
        assert_eq!(number(b""), Err(Problem::Missing));
        assert_eq!(number(b"  "), Err(Problem::Missing));
        assert_eq!(number(b"x1"), Err(Problem::NotANumber("x1".into())));
        assert_eq!(number(b"\xff"), Err(Problem::NotANumber("\u{fffd}".into())));
        for text in ["nan", "NaN", "inf", "-Infinity"] {
            assert_eq!(number(text.as_bytes()), Err(Problem::NotFinite(text.into())));
        }
        assert_eq!(number(b"1e39"), Err(Problem::TooLarge("1e39".into())));
    }

    #[test]
    fn decimal_commas_are_told_from_other_text() {
        let comma = |text: &str, point: &str| {
            let problem = Problem::DecimalComma { text: text.into(), point: point.into() };
            assert_eq!(number(text.as_bytes()), Err(problem));
        };
        comma("1,5", "1.5");
        comma("-0,25e3", "-0.25e3");
        comma("1.234,5", "1234.5");
        for text in ["1,2,3", "a,b", ","] {
            assert_eq!(number(text.as_bytes()), Err(Problem::NotANumber(text.into())));
        }
    }

    #[test]
    fn missing_values_have_few_spellings() {
        for text in ["", " ", "NA", "n/a", "NaN", "NULL", "?"] {
            assert!(is_missing(text.as_bytes()), "{text}");
        }
        for text in ["0", "-", "none", "inf"] {
            assert!(!is_missing(text.as_bytes()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_fast_path_agrees_with_the_general_one(value in 0u32..100_000_000, width in 0usize..9) {
            let text = format!("{value:0width$}");
            prop_assert_eq!(number(text.as_bytes()), Ok(text.parse::<f32>().unwrap()));
        }
    }
}
