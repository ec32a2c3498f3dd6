//! Cells of CSV files that spreadsheets must not take for formulas.
//!
//! A cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return is a formula to most spreadsheets (OWASP, "CSV injection"). Names of
//! classes, trials and settings come from people and hosts, so such a text gets a `'` in front. Numbers stay as they are.

use std::borrow::Cow;

/// A cell with this content.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with([
        '=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]);
    // `-inf` and `-3e-12` are numbers too, and no spreadsheet computes anything of them.
    if is_formula && !is_number(text) {
        return Cow::Owned(format!("'{text}"));
    }
    Cow::Borrowed(text)
}

/// Is it a number as this program writes numbers?
fn is_number(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text.chars().all(is_plain) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formulas_are_texts_and_numbers_are_numbers() {
        for formula in [
            "=1+1",
            "=HYPERLINK(\"http://h\")",
            "+cmd|' /C calc'!A0",
            "-1+1",
            "-",
            "+",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "--1",
            "- 1",
            "\u{ff1d}1",
        ] {
            assert_eq!(cell(formula), format!("'{formula}"), "{formula}");
        }
        for plain in [
            "",
            "a",
            "-0.5",
            "+1",
            "-3e-12",
            "-inf",
            "1.5",
            "NaN",
            "a=b",
            "'=1",
            "2026-11-28T13:00:00Z",
            " =1",
        ] {
            assert_eq!(cell(plain), plain);
        }
    }

    proptest! {
        #[test]
        fn every_number_reads_as_itself(value: f64, single: f32, whole: i64) {
            for text in [value.to_string(), format!("{single:?}"), whole.to_string()] {
                let written = cell(&text);
                prop_assert_eq!(written.as_ref(), text.as_str());
            }
        }

        #[test]
        fn no_cell_is_a_formula(text: String) {
            let cell = cell(&text);
            prop_assert!(is_number(&cell) || !cell.starts_with(['=', '+', '-', '@', '\t', '\r']));
        }
    }
}
