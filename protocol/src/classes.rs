//! The classes of labels, by their names. Labels that are equal as numbers (`0`, `0.0`, `1e0`) are one class.

use std::collections::BTreeMap;

/// Digits of the longest number that is taken as one: longer ones are words.
const MAX_DIGITS: usize = 400;
/// Greatest exponent of a number that is taken as one.
const MAX_EXPONENT: i64 = 1_000_000;
/// Zeros that a number is written with at most, behind or before its digits.
const MAX_ZEROS: i64 = 20;

/// The shortest decimal that is equal to the number that `text` is, exactly; `None` where it is none.
///
/// ```
/// use sojourn_protocol::classes::plain_decimal;
///
/// assert_eq!(plain_decimal("1e0").as_deref(), Some("1"));
/// assert_eq!(plain_decimal("-00.50").as_deref(), Some("-0.5"));
/// assert_eq!(plain_decimal("setosa"), None);
/// ```
#[must_use]
pub fn plain_decimal(text: &str) -> Option<String> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = whole.bytes().chain(fraction.bytes());
    let is_number =
        !mantissa.is_empty() && mantissa != "." && digits.all(|byte| byte.is_ascii_digit());
    if !is_number || mantissa.len() > MAX_DIGITS {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    // The number is 0.SIGNIFICANT times ten to the power of `point`.
    let zeros = digits.len() - digits.trim_start_matches('0').len();
    let point =
        i64::from(exponent) + i64::try_from(whole.len()).ok()? - i64::try_from(zeros).ok()?;
    let length = i64::try_from(significant.len()).ok()?;
    // What comes of it is to be a number again.
    if point.abs() > MAX_EXPONENT || length > i64::try_from(MAX_DIGITS).ok()? - MAX_ZEROS - 2 {
        return None;
    }
    Some(if point > length + MAX_ZEROS || point < -MAX_ZEROS {
        format!("{sign}0.{significant}e{point}")
    } else if point >= length {
        let zeros = "0".repeat(usize::try_from(point - length).ok()?);
        format!("{sign}{significant}{zeros}")
    } else if point <= 0 {
        let zeros = "0".repeat(usize::try_from(-point).ok()?);
        format!("{sign}0.{zeros}{significant}")
    } else {
        let (whole, fraction) = significant.split_at_checked(usize::try_from(point).ok()?)?;
        format!("{sign}{whole}.{fraction}")
    })
}

/// Finds the class of a label.
#[derive(Debug, Clone, Default)]
pub struct ClassIndex<'a> {
    names: BTreeMap<&'a str, usize>,
    /// The names that are numbers, by the shortest decimal of each.
    numbers: BTreeMap<String, usize>,
}

impl<'a> ClassIndex<'a> {
    /// An index of classes in their order.
    #[must_use]
    pub fn new(names: &'a [String]) -> Self {
        let mut index = Self::default();
        for (place, name) in names.iter().enumerate() {
            index.names.insert(name, place);
            if let Some(number) = plain_decimal(name) {
                index.numbers.entry(number).or_insert(place);
            }
        }
        index
    }

    /// The place of the class that `label` names: by its text, else by its number.
    #[must_use]
    pub fn place(&self, label: &str) -> Option<usize> {
        self.names.get(label).or_else(|| self.numbers.get(&plain_decimal(label)?)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_numbers_have_one_decimal_and_words_have_none() {
        for (text, decimal) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("1e0", "1"),
            ("+1.", "1"),
            (".5", "0.5"),
            ("007", "7"),
            ("12.340e1", "123.4"),
            ("1200", "1200"),
            ("1.2E3", "1200"),
            ("1e-3", "0.001"),
            ("9007199254740993", "9007199254740993"),
            ("1e30", "0.1e31"),
            ("1e-30", "0.1e-29"),
        ] {
            assert_eq!(plain_decimal(text).as_deref(), Some(decimal), "{text}");
        }
        for text in [
            "",
            ".",
            "-",
            "e1",
            "1e",
            "1_0",
            "nan",
            "inf",
            "0x1",
            "1,5",
            " 1",
            "--1",
            "1e99999999999",
        ] {
            assert_eq!(plain_decimal(text), None, "{text}");
        }
    }

    #[test]
    fn a_label_is_the_class_of_its_text_or_else_of_its_number() {
        let names = ["0", "1.50", "b"].map(str::to_owned);
        let index = ClassIndex::new(&names);
        let places = ["0", "0.0", "1.5", "1.50", "b", "2", "B"].map(|label| index.place(label));
        assert_eq!(places, [Some(0), Some(0), Some(1), Some(1), Some(2), None, None]);
        // As jobs of before had them.
        let apart = ["0", "0.0"].map(str::to_owned);
        let index = ClassIndex::new(&apart);
        assert_eq!(
            ["0", "0.0", "0e0"].map(|label| index.place(label)),
            [Some(0), Some(1), Some(0)]
        );
    }

    proptest! {
        #[test]
        fn a_decimal_is_the_number_itself(number in prop::num::f64::NORMAL | prop::num::f64::ZERO) {
            for text in [format!("{number}"), format!("{number:e}")] {
                let decimal = plain_decimal(&text);
                // The longest numbers are words.
                if let Some(decimal) = decimal {
                    prop_assert_eq!(decimal.parse::<f64>(), Ok(number));
                    prop_assert_eq!(plain_decimal(&decimal), Some(decimal));
                }
            }
        }
    }
}
