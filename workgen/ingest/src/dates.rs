//! Dates and times: as ISO 8601 writes them, with what they are as numbers, and as people write them.

#[cfg(any(test, feature = "parquet"))]
use std::io::Write as _;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Longest fraction of a second that is read, in digits.
const MAX_FRACTION: usize = 9;
/// Days from 0000-03-01, where years of the calendar begin for the sake of leap days, to 1970-01-01.
const EPOCH: i64 = 719_468;
/// Days of 400 years.
const ERA: i64 = 146_097;

/// A date, with a time where it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Date {
    pub(crate) year: u16,
    pub(crate) month: u8,
    pub(crate) day: u8,
    /// Seconds since midnight, as it is written.
    seconds: f64,
    /// Seconds by which the clock is ahead of UTC.
    offset: i32,
}

impl Date {
    /// Parses `2024-03-31`, `2024-03-31T13:05`, `2024-03-31 13:05:00.25`, each with `Z` or an offset such as `+01:00` behind the time.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, rest) = text.split_at_checked("2024-03-31".len())?;
        let (year, rest_of_date) = date.split_at_checked(4)?;
        let (month, day) = rest_of_date.strip_prefix('-')?.split_once('-')?;
        let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
        if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
            return None;
        }
        let (seconds, offset) = match rest.strip_prefix(['T', 't', ' ']) {
            Some(time) => parse_time(time.trim_start())?,
            None if rest.is_empty() => (0.0, 0),
            None => return None,
        };
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        Some(Self { year, month, day, seconds, offset })
    }

    /// Days since 1970-01-01 in UTC, with the fraction of the day.
    #[expect(clippy::cast_precision_loss, reason = "years have four digits")]
    pub(crate) fn days(self) -> f64 {
        let seconds = self.seconds - f64::from(self.offset);
        self.whole_days() as f64 + seconds / DAY as f64
    }

    /// The day of the week, from Monday, which is 0.
    pub(crate) fn weekday(self) -> u8 {
        // 1970-01-01 was a Thursday.
        u8::try_from((self.whole_days() + 3).rem_euclid(7)).unwrap_or(0)
    }

    /// The hour, from 0 to 23.
    pub(crate) fn hour(self) -> u8 {
        (0..24).rev().find(|hour| f64::from(*hour) * 3600.0 <= self.seconds).unwrap_or(0)
    }

    /// Is it another time than midnight?
    pub(crate) fn has_time(self) -> bool {
        self.seconds > 0.0
    }

    /// Days from 1970-01-01 to its day, as it is written (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    fn whole_days(self) -> i64 {
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let of_era = year.rem_euclid(400);
        let month = (month + 9) % 12;
        let of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH
    }
}

/// Writes the day that is so many after 1970-01-01; nothing where its year hasn't four digits.
#[cfg(any(test, feature = "parquet"))]
pub(crate) fn write_day(days: i64, into: &mut Vec<u8>) -> Option<()> {
    let days = days.checked_add(EPOCH)?;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    if !(0..=9999).contains(&year) {
        return None;
    }
    // Writing to memory doesn't fail.
    let _ = write!(into, "{year:04}-{month:02}-{day:02}");
    Some(())
}

/// Writes the moment that is so many units after 1970-01-01, of which a second has `per_second`.
#[cfg(any(test, feature = "parquet"))]
pub(crate) fn write_moment(
    units: i64,
    per_second: i64,
    is_utc: bool,
    into: &mut Vec<u8>,
) -> Option<()> {
    let (seconds, fraction) = (units.div_euclid(per_second), units.rem_euclid(per_second));
    write_day(seconds.div_euclid(DAY), into)?;
    let clock = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let _ = write!(into, "T{hour:02}:{minute:02}:{second:02}");
    if fraction > 0 {
        let digits = per_second.checked_ilog10().unwrap_or(0) as usize;
        let fraction = format!("{fraction:0digits$}");
        let _ = write!(into, ".{}", fraction.trim_end_matches('0'));
    }
    if is_utc {
        into.push(b'Z');
    }
    Some(())
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<u16> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn days_of(year: u16, month: u16) -> u16 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u16::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Seconds since midnight, and those by which the clock is ahead of UTC.
fn parse_time(text: &str) -> Option<(f64, i32)> {
    let (clock, offset) = match text.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0),
        None => match text.rfind(['+', '-']) {
            Some(at) => {
                let (clock, offset) = text.split_at_checked(at)?;
                (clock, parse_offset(offset)?)
            }
            None => (text, 0),
        },
    };
    let mut parts = clock.trim_end().split(':');
    let (hour, minute) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let (second, fraction) = match parts.next() {
        None => (0, 0.0),
        Some(second) => match second.split_once('.') {
            None => (number(second, 2)?, 0.0),
            Some((second, fraction)) => {
                let is_fraction = (1..=MAX_FRACTION).contains(&fraction.len())
                    && fraction.bytes().all(|byte| byte.is_ascii_digit());
                let fraction = is_fraction.then(|| format!("0.{fraction}").parse().ok());
                (number(second, 2)?, fraction.flatten()?)
            }
        },
    };
    // A leap second is the 60th.
    if hour > 23 || minute > 59 || second > 60 || parts.next().is_some() {
        return None;
    }
    let whole = f64::from(hour) * 3600.0 + f64::from(minute) * 60.0 + f64::from(second);
    Some((whole + fraction, offset))
}

/// The seconds of `+01:00`, `+0100` or `+01`.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = text.split_at_checked(1)?;
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let minutes = if digits.len() == 2 { 0 } else { number(minutes, 2)? };
    let hours = number(hours, 2)?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    let seconds = i32::from(hours) * 3600 + i32::from(minutes) * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}

/// Is this a date, with or without a time: `2024-03-31`, `31.3.2024`, `3/31/24 13:05`?
pub(crate) fn is_date(text: &str) -> bool {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    is_day(date) && time.is_none_or(is_time)
}

/// Year, month and day, in one of the usual orders.
fn is_day(text: &str) -> bool {
    const SIGNS: [char; 3] = ['-', '.', '/'];
    let Some(sign) = text.chars().find(|sign| SIGNS.contains(sign)) else { return false };
    let numbers: Option<Vec<(usize, u32)>> = text
        .split(sign)
        .map(|part| {
            let is_number =
                (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| part.parse().ok()).flatten().map(|number| (part.len(), number))
        })
        .collect();
    let Some([(a_digits, a), (b_digits, b), (c_digits, c)]) = numbers.as_deref() else {
        return false;
    };
    let is_month = |digits: &usize, number: &u32| *digits <= 2 && (1..=12).contains(number);
    let is_day = |digits: &usize, number: &u32| *digits <= 2 && (1..=31).contains(number);
    let is_year = |digits: &usize| matches!(digits, 2 | 4);
    let year_first = *a_digits == 4 && is_month(b_digits, b) && is_day(c_digits, c);
    let day_first = is_day(a_digits, a) && is_month(b_digits, b) && is_year(c_digits);
    let month_first = is_month(a_digits, a) && is_day(b_digits, b) && is_year(c_digits);
    year_first || day_first || month_first
}

/// `13:05`, `13:05:00.25`, `13:05:00Z`, `13:05:00+01:00`
fn is_time(text: &str) -> bool {
    let text = text.trim().trim_end_matches('Z');
    let clock = text.split(['+', '-']).next().unwrap_or_default();
    let parts: Vec<&str> = clock.split(':').collect();
    let is_part = |part: &&str| {
        !part.is_empty()
            && part.len() <= 12
            && part.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    };
    matches!(parts.len(), 2 | 3) && parts.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(text: &str) -> Option<(u16, u8, u8, u8, u8)> {
        let date = Date::parse(text)?;
        Some((date.year, date.month, date.day, date.weekday(), date.hour()))
    }

    #[test]
    fn dates_of_iso_8601_are_read_with_their_times() {
        assert_eq!(parts("2024-03-31"), Some((2024, 3, 31, 6, 0)));
        assert_eq!(parts("1970-01-01"), Some((1970, 1, 1, 3, 0)));
        assert_eq!(parts(" 2024-02-29T23:59:60Z "), Some((2024, 2, 29, 3, 23)));
        for text in [
            "2024-03-31T13:05:00",
            "2024-03-31 13:05",
            "2024-03-31 13:05:00.25",
            "2024-03-31T13:05:00+01:00",
            "2024-03-31t13:05:00.123456789-0530",
            "2024-03-31 13:05:00 +02",
        ] {
            assert_eq!(parts(text), Some((2024, 3, 31, 6, 13)), "{text}");
        }
        for text in [
            "",
            "2024",
            "2024-3-1",
            "2024-13-01",
            "2023-02-29",
            "1900-02-29",
            "2024-04-31",
            "2024-03-31T",
            "2024-03-31T24:00",
            "2024-03-31T13",
            "2024-03-31T13:60",
            "2024-03-31T13:05:00.",
            "2024-03-31T13:05:00:00",
            "2024-03-31T13:05+1",
            "2024-03-31x",
            "31.03.2024",
            "+024-03-31",
            "2024-03-3é",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_counted_in_utc_with_their_fraction() {
        let days = |text: &str| Date::parse(text).unwrap().days();
        assert_eq!(days("1970-01-02"), 1.0);
        assert_eq!(days("1969-12-31T12:00"), -0.5);
        assert_eq!(days("2000-03-01"), 11_017.0);
        assert_eq!(days("2024-03-31T12:00:00Z"), 19_813.5);
        assert_eq!(days("2024-03-31T13:00:00+01:00"), 19_813.5);
        assert_eq!(days("2024-03-31T06:30:00-05:30"), 19_813.5);
    }

    #[test]
    fn moments_are_written_as_iso_8601_writes_them() {
        let moment = |units, per_second, is_utc| {
            let mut text = Vec::new();
            write_moment(units, per_second, is_utc, &mut text)
                .map(|()| String::from_utf8(text).unwrap())
        };
        assert_eq!(moment(0, 1000, true).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(moment(-1, 1000, false).unwrap(), "1969-12-31T23:59:59.999");
        let nanos = 1_711_890_300_250_000_000;
        assert_eq!(moment(nanos, 1_000_000_000, false).unwrap(), "2024-03-31T13:05:00.25");
        assert_eq!(moment(i64::MAX, 1000, false), None);
    }

    #[test]
    fn dates_of_several_countries_are_known_and_other_numbers_are_none() {
        for text in [
            "2024-03-31",
            "2024/3/1",
            "31.03.2024",
            "31.3.24",
            "3/31/2024",
            "2024-03-31T13:05:00Z",
            "2024-03-31 13:05:00.123+01:00",
            "3/31/24 1:05",
        ] {
            assert!(is_date(text), "{text}");
        }
        for text in
            ["2024", "1.5", "2024-13-01", "192.168.0.1", "1-2", "a-b-c", "2024-03-31 noon", ""]
        {
            assert!(!is_date(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_day_is_read_as_the_same(days in -719_528i64..2_932_896) {
            let mut text = Vec::new();
            write_day(days, &mut text).unwrap();
            let date = Date::parse(std::str::from_utf8(&text).unwrap()).unwrap();
            prop_assert_eq!(date.whole_days(), days);
        }

        #[test]
        fn no_text_is_left_without_an_answer(text in "[0-9TZ:+. é-]{0,30}") {
            let _ = Date::parse(&text);
        }
    }
}
