//! Numbers from text.

use crate::{
    error::Problem,
    notation::{plain, ways},
};
use sojourn_protocol::spec::{Notation, ThousandsSign};

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

/// Parses a finite number in this notation.
///
/// # Errors
/// As [`number`]; a number in another notation.
pub(crate) fn number_in(notation: Notation, field: &[u8]) -> Result<f32, Problem> {
    if notation.is_plain() {
        return number(field);
    }
    let field = field.trim_ascii();
    if field.is_empty() {
        return Err(Problem::Missing);
    }
    let text = std::str::from_utf8(field).map_err(|_| Problem::NotANumber(shown(field)))?;
    if let Some(plain) = plain(notation, text) {
        return number(plain.as_bytes());
    }
    match number(field) {
        // Such as `1.5`, where the decimal sign is a comma.
        Ok(_) | Err(Problem::OtherNotation { .. }) => {
            Err(Problem::NotInNotation { text: shown(field), notation })
        }
        // Such as `12.34,5`, where the thousands are set apart by points.
        Err(Problem::NotANumber(_)) if is_of_signs(text) => {
            Err(Problem::NotInNotation { text: shown(field), notation })
        }
        Err(problem) => Err(problem),
    }
}

/// Are there digits, and beside them only signs that numbers are written with?
fn is_of_signs(text: &str) -> bool {
    let is_sign = |c: char| {
        matches!(c, '+' | '-' | '.' | ',') || ThousandsSign::ALL.iter().any(|sign| sign.is(c))
    };
    text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || is_sign(c))
}

/// Parses a truth value as pandas, R and JSON write it: 1 or 0.
pub(crate) fn truth(field: &[u8]) -> Option<f32> {
    match field.trim_ascii() {
        b"true" | b"True" | b"TRUE" => Some(1.0),
        b"false" | b"False" | b"FALSE" => Some(0.0),
        _ => None,
    }
}

/// The problem of a text that is no number: maybe it is one in another notation.
fn no_number(text: &str) -> Problem {
    let ways = ways(text);
    if ways.is_empty() {
        return Problem::NotANumber(shown(text.as_bytes()));
    }
    Problem::OtherNotation { text: text.to_owned(), ways }
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
    use crate::error::Way;
    use proptest::prelude::*;
    use sojourn_protocol::spec::DecimalSign;

    const COMMA: Notation = Notation { decimal: DecimalSign::Comma, thousands: None };

    fn grouped(decimal: DecimalSign, thousands: ThousandsSign) -> Notation {
        Notation { decimal, thousands: Some(thousands) }
    }

    #[test]
    fn numbers_are_read_by_their_signs_and_in_groups_of_three() {
        let german = grouped(DecimalSign::Comma, ThousandsSign::Point);
        for (notation, text, expected) in [
            (COMMA, "1,5", Ok(1.5)),
            (COMMA, " -0,25e3 ", Ok(-250.0)),
            (COMMA, ",5", Ok(0.5)),
            (COMMA, "7", Ok(7.0)),
            (german, "1.234,5", Ok(1234.5)),
            (german, "1234,5", Ok(1234.5)),
            (german, "1.234.567", Ok(1_234_567.0)),
            (grouped(DecimalSign::Point, ThousandsSign::Comma), "1,234.5", Ok(1234.5)),
            (grouped(DecimalSign::Point, ThousandsSign::Apostrophe), "1\u{2019}234", Ok(1234.0)),
            (
                grouped(DecimalSign::Comma, ThousandsSign::NoBreakSpace),
                "1\u{202f}234,5",
                Ok(1234.5),
            ),
            (grouped(DecimalSign::Comma, ThousandsSign::Space), "12 345", Ok(12_345.0)),
        ] {
            assert_eq!(number_in(notation, text.as_bytes()), expected, "{text}");
        }
        for (notation, text) in [(COMMA, "1.5"), (german, "1.5"), (german, "12.34,5")] {
            let problem = Problem::NotInNotation { text: text.to_owned(), notation };
            assert_eq!(number_in(notation, text.as_bytes()), Err(problem), "{text}");
        }
        assert_eq!(number_in(COMMA, b""), Err(Problem::Missing));
        assert_eq!(number_in(COMMA, b"x"), Err(Problem::NotANumber("x".into())));
        assert_eq!(number_in(COMMA, b"nan"), Err(Problem::NotFinite("nan".into())));
    }

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
    fn numbers_in_another_notation_are_told_from_other_text() {
        let values = |text: &str| match number(text.as_bytes()) {
            Err(Problem::OtherNotation { ways, .. }) => {
                ways.into_iter().map(|way| way.value).collect::<Vec<_>>()
            }
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(values("1,5"), ["1.5"]);
        assert_eq!(values("-0,25e3"), ["-0.25e3"]);
        assert_eq!(values("1.234,5"), ["1234.5"]);
        assert_eq!(values("1,234.5"), ["1234.5"]);
        for text in ["1,2,3", "a,b", ","] {
            assert_eq!(number(text.as_bytes()), Err(Problem::NotANumber(text.into())));
        }
    }

    proptest! {
        /// Advice that changed a number would spoil data in silence.
        #[test]
        fn a_way_reads_the_text_as_the_number_that_it_says(text in "[-+]?[0-9.,' ]{1,12}(e[0-9])?") {
            for Way { notation, value } in ways(&text) {
                let expected = number(value.as_bytes());
                prop_assert!(expected.is_ok());
                prop_assert_eq!(number_in(notation, text.as_bytes()), expected);
            }
        }

        #[test]
        fn the_fast_path_agrees_with_the_general_one(value in 0u32..100_000_000, width in 0usize..9) {
            let text = format!("{value:0width$}");
            prop_assert_eq!(number(text.as_bytes()), Ok(text.parse::<f32>().unwrap()));
        }
    }
}
