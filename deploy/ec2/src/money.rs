//! Prices as EC2 writes them: decimal dollars of an hour.

use sojourn_protocol::money::MicroUsd;

/// Decimals that are kept.
const DECIMALS: usize = 6;

/// A price, rounded up to the millionth; none where the text is no price.
pub(crate) fn parse(text: &str) -> Option<MicroUsd> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let kept = fraction.get(..DECIMALS.min(fraction.len()))?;
    let cut = fraction.get(kept.len()..)?;
    if !cut.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let price: MicroUsd = format!("{whole}.{kept} usd").parse().ok()?;
    Some(price + MicroUsd(u64::from(cut.bytes().any(|byte| byte != b'0'))))
}

/// As EC2 reads it.
pub(crate) fn write(price: MicroUsd) -> String {
    format!("{}.{:06}", price.0 / 1_000_000, price.0 % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prices_of_ec2_are_read_and_never_too_low() {
        for (text, expected) in [
            ("0.034500", Some(34_500)),
            ("0.00001", Some(10)),
            ("3", Some(3_000_000)),
            ("0.0000001", Some(1)),
            ("0.1234560000", Some(123_456)),
            ("", None),
            ("0.1234567x", None),
            ("-1.0", None),
            ("1e3", None),
            ("0.12345\u{e4}", None),
        ] {
            assert_eq!(parse(text), expected.map(MicroUsd), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_price_reads_the_same(micros in 0..1_000_000_000_000_u64) {
            prop_assert_eq!(parse(&write(MicroUsd(micros))), Some(MicroUsd(micros)));
        }
    }
}
