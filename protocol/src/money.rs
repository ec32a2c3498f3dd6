//! Amounts of money, in whole millionths of a US dollar: sums are exact on any machine.

use crate::{quantity::mul_div, time::Millis};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign},
    str::FromStr,
};

/// Millionths of a US dollar.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

/// Millionths in a dollar.
const DOLLAR: u64 = 1_000_000;
/// Millionths in a cent.
const CENT: u64 = 10_000;
/// Digits after the point that are kept.
const DECIMALS: usize = 6;
/// Milliseconds in an hour, the time that prices are for.
const HOUR: u64 = 3_600_000;
/// The largest amount that people may write: a billion dollars.
pub const MAX_USD: u64 = 1_000_000_000;

impl MicroUsd {
    /// The cost of so much time at this price for an hour, to the nearest millionth.
    #[must_use]
    pub fn for_time(self, time: Millis) -> MicroUsd {
        // Twice as much, with one more half: the division rounds down.
        let twice = mul_div(self.0.saturating_mul(2), time.0, HOUR);
        MicroUsd(twice.saturating_add(1) / 2)
    }

    /// Whole cents, rounded to the nearest.
    #[must_use]
    pub const fn cents(self) -> u64 {
        self.0.saturating_add(CENT / 2) / CENT
    }

    /// The difference; 0 where the other amount is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: MicroUsd) -> MicroUsd {
        MicroUsd(self.0.saturating_sub(other.0))
    }
}

impl Add for MicroUsd {
    type Output = MicroUsd;
    fn add(self, other: MicroUsd) -> MicroUsd {
        MicroUsd(self.0.saturating_add(other.0))
    }
}

impl AddAssign for MicroUsd {
    fn add_assign(&mut self, other: MicroUsd) {
        *self = *self + other;
    }
}

impl Sum for MicroUsd {
    fn sum<I: Iterator<Item = MicroUsd>>(amounts: I) -> MicroUsd {
        amounts.fold(MicroUsd(0), Add::add)
    }
}

impl fmt::Display for MicroUsd {
    /// In dollars and cents; with all digits where it is less than a dollar and no whole number of cents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < DOLLAR && !self.0.is_multiple_of(CENT) {
            let digits = format!("{:06}", self.0);
            return write!(f, "$0.{}", digits.trim_end_matches('0'));
        }
        let cents = self.cents();
        write!(f, "${}.{:02}", cents / 100, cents % 100)
    }
}

impl FromStr for MicroUsd {
    type Err = &'static str;

    /// A number with its currency: `20 usd`, `0.35usd`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "an amount of dollars is wanted, e.g. `20 usd` or `0.35 usd`, with six decimals at most";
        let text = text.trim();
        let number = text.strip_suffix("usd").or_else(|| text.strip_suffix("USD"));
        let number = number.ok_or(WANTED)?.trim_end();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > DECIMALS {
            return Err(WANTED);
        }
        let whole: u64 = whole.parse().map_err(|_| WANTED)?;
        if whole >= MAX_USD {
            return Err("at most a billion dollars are wanted");
        }
        let fraction: u64 = format!("{fraction:0<DECIMALS$}").parse().map_err(|_| WANTED)?;
        Ok(MicroUsd(whole * DOLLAR + fraction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_and_read_to_the_millionth() {
        for (text, micros, shown) in [
            ("20 usd", 20_000_000, "$20.00"),
            ("0.35usd", 350_000, "$0.35"),
            (" 0.034500 USD ", 34_500, "$0.0345"),
            ("1.006 usd", 1_006_000, "$1.01"),
            ("0 usd", 0, "$0.00"),
        ] {
            let amount: MicroUsd = text.parse().unwrap();
            assert_eq!((amount, amount.to_string().as_str()), (MicroUsd(micros), shown), "{text}");
        }
        for wrong in
            ["", "20", "$20", "-1 usd", "1.0000001 usd", ". usd", "1000000000 usd", "1e3 usd"]
        {
            wrong.parse::<MicroUsd>().unwrap_err();
        }
    }

    #[test]
    fn time_costs_its_part_of_the_hour() {
        let price = MicroUsd(36_000);
        assert_eq!(price.for_time(Millis(HOUR)), price);
        assert_eq!(price.for_time(Millis(1000)), MicroUsd(10));
        assert_eq!(price.for_time(Millis(50)), MicroUsd(1), "half a millionth is rounded up");
        assert_eq!(price.for_time(Millis(49)), MicroUsd(0));
    }
}
