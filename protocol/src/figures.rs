//! How sizes, counts, times and shards are written for people.

use crate::{quantity::SaturatingFrom as _, time::UnixMillis};
use jiff::Timestamp;
use std::fmt::Display;

/// Shards of one unit that are shown by number.
const SHOWN: usize = 4;

/// `1.2 MB` and the like, in powers of 1000.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
#[must_use]
pub fn bytes(count: u64) -> String {
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "B";
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    if value < 9.95 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// `1.2 MB/s`.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "two digits are shown of what is above zero"
)]
pub fn bytes_per_second(rate: f64) -> String {
    format!("{}/s", bytes(rate as u64))
}

/// `1,797`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A metric's value: `0.9876`.
#[must_use]
pub fn metric(value: f64) -> String {
    format!("{value:.4}")
}

/// `1 trial`, `2 trials`.
#[must_use]
pub fn counted(number: u64, word: &str) -> String {
    format!("{} {word}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `45 s`, `12 min`, `3.5 h`, `2.0 d`.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
#[must_use]
pub fn duration(millis: u64) -> String {
    let seconds = millis as f64 / 1000.0;
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 99.5 * 60.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}

/// The shards of a unit, in the order of their visits: `shard 3`, `shards 3, 0, 7 and 1`.
#[must_use]
pub fn shards<T: Display>(first: T, then: &[T]) -> String {
    let Some((last, between)) = then.split_last() else { return format!("shard {first}") };
    let mut text = format!("shards {first}");
    for shard in between.iter().take(SHOWN - 2) {
        text = format!("{text}, {shard}");
    }
    match then.len() {
        further if further < SHOWN => format!("{text} and {last}"),
        further => format!("{text} and {} more", further + 2 - SHOWN),
    }
}

/// `2026-11-21T01:17:14.000Z`. A later time than a [`Timestamp`] can be is shown as its last, at the end of 9999.
#[must_use]
pub fn timestamp(at: UnixMillis) -> String {
    let at = Timestamp::from_millisecond(i64::saturating_from(at.0));
    format!("{:.3}", at.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_two_digits() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1234), "1.2 kB");
        assert_eq!(bytes(999_600), "1.0 MB");
        assert_eq!(bytes(64_000_000), "64 MB");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "trial"), "1 trial");
        assert_eq!(duration(1500), "1.5 s");
        assert_eq!(duration(90_000), "90 s");
        assert_eq!(duration(600_000), "10 min");
    }

    #[test]
    fn up_to_four_shards_are_listed() {
        let of = |further: &[u32]| shards(3, further);
        assert_eq!(of(&[]), "shard 3");
        assert_eq!(of(&[0]), "shards 3 and 0");
        assert_eq!(of(&[0, 7, 1]), "shards 3, 0, 7 and 1");
        assert_eq!(of(&[0, 7, 1, 2]), "shards 3, 0, 7 and 2 more");
        assert_eq!(of(&[0, 7, 1, 2, 9]), "shards 3, 0, 7 and 3 more");
    }

    #[test]
    fn timestamps_are_civil_dates() {
        assert_eq!(timestamp(UnixMillis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(UnixMillis(951_827_696_789)), "2000-02-29T12:34:56.789Z");
        assert_eq!(timestamp(UnixMillis(1_795_223_834_000)), "2026-11-21T01:17:14.000Z");
        assert_eq!(timestamp(UnixMillis(u64::MAX)), "9999-12-30T22:00:00.999Z");
    }
}
