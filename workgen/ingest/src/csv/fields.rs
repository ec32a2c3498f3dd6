//! One line of CSV: its fields, and numbers out of them.
//!
//! A record is one line: a quote must close where it opened, so that a stray one is reported in its
//! own line instead of swallowing the rest of the file.

use crate::error::Problem;

/// Calls `take` with each field and its index; returns how many there were.
///
/// # Errors
/// What `take` returns, or a broken quote, with the index of the field.
pub(crate) fn visit(
    line: &[u8],
    mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
) -> Result<usize, (usize, Problem)> {
    if line.contains(&b'"') {
        return visit_quoted(line, &mut take);
    }
    let mut rest = line;
    let mut index = 0;
    loop {
        match rest.iter().position(|byte| *byte == b',') {
            Some(end) => {
                let (field, tail) = rest.split_at(end);
                take(index, field).map_err(|problem| (index, problem))?;
                rest = tail.split_first().map_or(&[][..], |(_, tail)| tail);
                index += 1;
            }
            None => {
                take(index, rest).map_err(|problem| (index, problem))?;
                return Ok(index + 1);
            }
        }
    }
}

fn visit_quoted(
    line: &[u8],
    take: &mut impl FnMut(usize, &[u8]) -> Result<(), Problem>,
) -> Result<usize, (usize, Problem)> {
    enum State {
        Start,
        Plain,
        Quoted,
        /// After a quote inside quotes: the end, or the first half of a doubled one.
        Quote,
    }
    let mut field = Vec::new();
    let mut index = 0;
    let mut state = State::Start;
    for byte in line {
        state = match (state, *byte) {
            (State::Start | State::Plain | State::Quote, b',') => {
                take(index, &field).map_err(|problem| (index, problem))?;
                field.clear();
                index += 1;
                State::Start
            }
            (State::Start, b'"') => State::Quoted,
            (State::Quoted, b'"') => State::Quote,
            (State::Quote, b'"') => {
                field.push(b'"');
                State::Quoted
            }
            (State::Quote, _) => return Err((index, Problem::AfterQuote)),
            (State::Start | State::Plain, byte) => {
                field.push(byte);
                State::Plain
            }
            (State::Quoted, byte) => {
                field.push(byte);
                State::Quoted
            }
        };
    }
    if matches!(state, State::Quoted) {
        return Err((index, Problem::OpenQuote));
    }
    take(index, &field).map_err(|problem| (index, problem))?;
    Ok(index + 1)
}

/// Whole numbers of up to this many digits are exact in an `f32`.
const EXACT_DIGITS: usize = 7;

/// The finite number that a field says.
///
/// # Errors
/// An empty field, no number, or one that isn't finite in single precision.
pub(crate) fn number(field: &[u8]) -> Result<f32, Problem> {
    // Pixels and counts: most fields of most files, and several times faster than the general way.
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

/// A field as a message shows it: printable, and not too long.
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

    fn fields(line: &str) -> Result<Vec<String>, (usize, Problem)> {
        let mut fields = Vec::new();
        let count = visit(line.as_bytes(), |index, field| {
            assert_eq!(index, fields.len());
            fields.push(String::from_utf8(field.to_vec()).unwrap());
            Ok(())
        })?;
        assert_eq!(count, fields.len());
        Ok(fields)
    }

    #[test]
    fn fields_are_split_at_commas_outside_quotes() {
        assert_eq!(fields("a,b,,c").unwrap(), ["a", "b", "", "c"]);
        assert_eq!(fields("").unwrap(), [""]);
        assert_eq!(fields("a,").unwrap(), ["a", ""]);
        assert_eq!(
            fields(r#""a,b","say ""hi""","",x"y"#).unwrap(),
            ["a,b", "say \"hi\"", "", "x\"y"]
        );
        assert_eq!(fields(r#"1,"open"#), Err((1, Problem::OpenQuote)));
        assert_eq!(fields(r#""a"b,1"#), Err((0, Problem::AfterQuote)));
    }

    #[test]
    fn only_finite_numbers_are_numbers() {
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
        fn the_short_way_agrees_with_the_general_one(value in 0u32..100_000_000, width in 0usize..9) {
            let text = format!("{value:0width$}");
            prop_assert_eq!(number(text.as_bytes()), Ok(text.parse::<f32>().unwrap()));
        }

        #[test]
        fn quoting_any_text_gives_it_back(texts in prop::collection::vec("[^\r\n]{0,8}", 1..6)) {
            let quoted: Vec<String> =
                texts.iter().map(|text| format!("\"{}\"", text.replace('"', "\"\""))).collect();
            prop_assert_eq!(fields(&quoted.join(",")).unwrap(), texts);
        }
    }
}
