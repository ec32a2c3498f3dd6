//! How sizes, counts, times and shards are written for people.

use crate::time::UnixMillis;
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

/// `2026-11-21T01:17:14.000Z`.
#[must_use]
pub fn timestamp(at: UnixMillis) -> String {
    let (days, millis) = (at.0 / 86_400_000, at.0 % 86_400_000);
    // Days to a civil date: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (millis / 3_600_000, millis / 60_000 % 60);
    let (second, milli) = (millis / 1000 % 60, millis % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
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
    }
}
