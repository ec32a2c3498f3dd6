//! Numbers with another decimal sign than a point, or with signs between thousands.

use crate::error::Way;
use sojourn_protocol::spec::{DecimalSign, Notation, ThousandsSign};

/// Longest text that is taken for a number in another notation, in bytes.
const MAX_TEXT: usize = 40;
/// Digits between two signs of thousands.
const GROUP: usize = 3;

/// The number with a decimal point and nothing between its digits; `None` where the text is no number in this notation.
pub(crate) fn plain(notation: Notation, text: &str) -> Option<String> {
    let text = text.trim();
    let (sign, unsigned) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.get(..1)?, rest),
        None => ("", text),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => unsigned.split_at_checked(at)?,
        None => (unsigned, ""),
    };
    let decimal = notation.decimal.text();
    let (whole, fraction) = mantissa.split_once(decimal).unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(fraction) || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let groups: Vec<&str> = match notation.thousands {
        Some(thousands) => whole.split(|sign| thousands.is(sign)).collect(),
        None => vec![whole],
    };
    let is_grouped = match groups.as_slice() {
        [_] => true,
        [first, others @ ..] => {
            // A number in groups is a thousand or more.
            (1..=GROUP).contains(&first.len())
                && !first.starts_with('0')
                && others.iter().all(|group| group.len() == GROUP)
        }
        [] => false,
    };
    if !is_grouped || !groups.iter().all(|group| is_digits(group)) {
        return None;
    }
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{}{point}{fraction}{exponent}", groups.concat()))
        .filter(|plain| plain.parse::<f64>().is_ok())
}

/// The notations in which a text that is no number with a decimal point would be one, simple ones first; each number once.
pub(crate) fn ways(text: &str) -> Vec<Way> {
    if text.len() > MAX_TEXT {
        return Vec::new();
    }
    let point = DecimalSign::Point;
    let comma = DecimalSign::Comma;
    let none = std::iter::once(None);
    let thousands = || ThousandsSign::ALL.into_iter().map(Some);
    let candidates = none
        .map(|thousands| (comma, thousands))
        .chain(thousands().map(|thousands| (point, thousands)))
        .chain(thousands().map(|thousands| (comma, thousands)));
    let mut ways: Vec<Way> = Vec::new();
    for (decimal, thousands) in candidates {
        let notation = Notation { decimal, thousands };
        if notation.is_plain() || !notation.is_unambiguous() {
            continue;
        }
        let Some(value) = plain(notation, text) else { continue };
        let is_finite = value.parse::<f32>().is_ok_and(f32::is_finite);
        if is_finite && ways.iter().all(|way| way.value != value) {
            ways.push(Way { notation, value });
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_in_another_notation_has_one_or_two_meanings() {
        let values = |text: &str| ways(text).into_iter().map(|way| way.value).collect::<Vec<_>>();
        assert_eq!(values("1,5"), ["1.5"]);
        assert_eq!(values("1,234"), ["1.234", "1234"]);
        assert_eq!(values("1,234.5"), ["1234.5"]);
        assert_eq!(values("1.234,5"), ["1234.5"]);
        assert_eq!(values("1.234.567"), ["1234567"]);
        assert_eq!(values("1 234"), ["1234"]);
        for text in ["a,b", ",", "1,2,3", "", "1.5", "2020-01-01"] {
            assert!(ways(text).iter().all(|way| way.value == text), "{text}");
        }
    }

    proptest! {
        /// A number in groups is among the ways to read it, as it is.
        #[test]
        fn a_written_number_is_among_the_ways_to_read_it(
            whole in 1000u32..100_000_000,
            fraction in 0u32..1000,
            sign in 0usize..5,
        ) {
            let digits = whole.to_string();
            let thousands = ThousandsSign::ALL[sign];
            let separator = if thousands == ThousandsSign::NoBreakSpace { "\u{a0}" } else { thousands.text() };
            let decimal = if thousands == ThousandsSign::Comma { "." } else { "," };
            let mut text = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at) % 3 == 0 {
                    text.push_str(separator);
                }
                text.push(digit);
            }
            let text = format!("{text}{decimal}{fraction:03}");
            let value = format!("{whole}.{fraction:03}");
            prop_assert!(ways(&text).iter().any(|way| way.value == value), "{}", text);
        }
    }
}
