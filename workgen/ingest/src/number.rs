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
    let number: f32 = text.parse().map_err(|_| Problem::NotANumber(shown(field)))?;
    if number.is_finite() {
        Ok(number)
    } else if text.bytes().any(|byte| byte.is_ascii_digit()) {
        Err(Problem::TooLarge(shown(field)))
    } else {
        Err(Problem::NotFinite(shown(field)))
    }
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

    proptest! {
        #[test]
        fn the_fast_path_agrees_with_the_general_one(value in 0u32..100_000_000, width in 0usize..9) {
            let text = format!("{value:0width$}");
            prop_assert_eq!(number(text.as_bytes()), Ok(text.parse::<f32>().unwrap()));
        }
    }
}
