//! One record of CSV as its fields.
//!
//! Quotes that stay open, and text behind a closing one, are reported where they are. The crate `csv-core` 0.1 reports neither.

use crate::error::Problem;

/// Where in a record the text so far ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum QuoteState {
    /// At the beginning of a field.
    #[default]
    Start,
    /// In a field without quotes around it.
    Plain,
    /// In quotes.
    Quoted,
    /// After a quote inside quotes: the end, or the first half of a doubled one.
    Quote,
    /// Behind text that follows a closing quote: nobody knows where fields end.
    Broken,
}

impl QuoteState {
    /// Goes over more text of a record.
    pub(super) fn pass(&mut self, text: &[u8], separator: u8) {
        if !self.is_open() && !text.contains(&b'"') {
            return;
        }
        for byte in text {
            *self = match (*self, *byte) {
                (QuoteState::Broken, _) => QuoteState::Broken,
                (QuoteState::Start, b'"') | (QuoteState::Quote, b'"') => QuoteState::Quoted,
                (QuoteState::Quoted, b'"') => QuoteState::Quote,
                (QuoteState::Quoted, _) => QuoteState::Quoted,
                (_, byte) if byte == separator => QuoteState::Start,
                (QuoteState::Quote, _) => QuoteState::Broken,
                _ => QuoteState::Plain,
            };
        }
    }

    /// Is it in quotes that aren't closed yet?
    pub(super) fn is_open(self) -> bool {
        self == QuoteState::Quoted
    }
}

/// Calls `take` with each field of a record between `separator`s and its index; returns how many there were.
///
/// # Errors
/// The error of `take`, or a broken quote, with the index of the field.
pub(crate) fn visit(
    line: &[u8],
    separator: u8,
    mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
) -> Result<usize, (usize, Problem)> {
    if line.contains(&b'"') {
        return visit_quoted(line, separator, &mut take);
    }
    let mut rest = line;
    let mut index = 0;
    loop {
        match rest.iter().position(|byte| *byte == separator) {
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
    separator: u8,
    take: &mut impl FnMut(usize, &[u8]) -> Result<(), Problem>,
) -> Result<usize, (usize, Problem)> {
    use QuoteState as State;
    let mut field = Vec::new();
    let mut index = 0;
    let mut state = State::Start;
    for byte in line {
        state = match (state, *byte) {
            (State::Start | State::Plain | State::Quote, byte) if byte == separator => {
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
            (State::Quote | State::Broken, _) => return Err((index, Problem::AfterQuote)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(line: &str) -> Result<Vec<String>, (usize, Problem)> {
        fields_by(line, b',')
    }

    fn fields_by(line: &str, separator: u8) -> Result<Vec<String>, (usize, Problem)> {
        let mut fields = Vec::new();
        let count = visit(line.as_bytes(), separator, |index, field| {
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
        assert_eq!(fields_by(r#"1,5;"a;b";c,"#, b';').unwrap(), ["1,5", "a;b", "c,"]);
        assert_eq!(fields(r#"1,"open"#), Err((1, Problem::OpenQuote)));
        assert_eq!(fields(r#""a"b,1"#), Err((0, Problem::AfterQuote)));
    }

    #[test]
    fn a_quote_is_open_at_the_end_of_a_line_that_a_field_goes_on_behind() {
        for (line, is_open) in [
            ("a,\"b", true),
            ("a,\"b\"", false),
            ("a,\"b\"\"", true),
            ("a\"b", false),
            ("\"a;b\";\"", true),
            ("", false),
        ] {
            let mut state = QuoteState::default();
            state.pass(line.as_bytes(), if line.contains(';') { b';' } else { b',' });
            assert_eq!(state.is_open(), is_open, "{line}");
        }
    }

    proptest! {
        #[test]
        fn quoting_any_text_gives_it_back(texts in prop::collection::vec("[^\r\n]{0,8}", 1..6)) {
            let quoted: Vec<String> =
                texts.iter().map(|text| format!("\"{}\"", text.replace('"', "\"\""))).collect();
            prop_assert_eq!(fields(&quoted.join(",")).unwrap(), texts);
        }
    }
}
