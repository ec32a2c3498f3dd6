//! Signs of percentages and money beside numbers. No such text is a number: a message says how the sign is left out.

use crate::{notation::ways, number::number};

/// The signs that are known.
const SIGNS: [char; 7] = ['%', '$', '€', '£', '¥', '₹', '₩'];

/// The sign before or behind a number, where a text is one beside it; in whatever notation the number is.
pub(crate) fn sign_of(text: &str) -> Option<char> {
    let text = text.trim();
    let (unsigned, minus) = match text.strip_prefix('-') {
        Some(rest) => (rest.trim_start(), "-"),
        None => (text, ""),
    };
    let sign =
        SIGNS.into_iter().find(|sign| unsigned.starts_with(*sign) || unsigned.ends_with(*sign))?;
    let rest = unsigned.strip_prefix(sign).or_else(|| unsigned.strip_suffix(sign))?;
    let plain = format!("{minus}{}", rest.trim_ascii());
    let is_number = number(plain.as_bytes()).is_ok() || !ways(&plain).is_empty();
    is_number.then_some(sign)
}

/// The command that leaves a sign out of a text file.
#[must_use]
pub fn without_sign(sign: char) -> String {
    // Alone it would be the end of a line.
    let pattern = if sign == '$' { "[$]".to_owned() } else { sign.to_string() };
    format!("sed 's/{pattern}//g' FILE > NEW_FILE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sign_beside_a_number_is_known() {
        for (text, sign) in [
            ("12%", Some('%')),
            ("12.5 %", Some('%')),
            ("$1,200.50", Some('$')),
            ("-$5", Some('$')),
            ("€ 3,50", Some('€')),
            ("3.500 €", Some('€')),
            ("12", None),
            ("%", None),
            ("100% cotton", None),
            ("$$5", None),
            ("US$5", None),
            ("", None),
        ] {
            assert_eq!(sign_of(text), sign, "{text}");
        }
    }

    proptest! {
        /// Advice that changed a number would spoil data in silence.
        #[test]
        fn a_number_is_the_same_without_its_sign(value in -1e6..1e6f32, sign in 0..SIGNS.len(), before: bool) {
            let sign = SIGNS[sign];
            let text = if before { format!("{sign}{value}") } else { format!("{value} {sign}") };
            prop_assert_eq!(sign_of(&text), Some(sign));
            let left = text.replace(sign, "");
            prop_assert_eq!(number(left.as_bytes()), Ok(value));
        }
    }
}
