//! Hours of the day by weekday: `22:00-06:00`, or `mon-fri 22:00-06:00, sat-sun 00:00-24:00`.

use jiff::{
    ToSpan as _,
    civil::{DateTime, Weekday},
};
use std::{fmt, str::FromStr};

/// When a machine may compute. Pure in the local time, so that a clock that jumps is right at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hours(Vec<Window>);

/// From one time of the day to another on some days. One that ends before it begins ends on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    days: Days,
    /// Minutes of the day.
    from: u16,
    /// Up to 24:00.
    to: u16,
}

/// From one weekday to another, over the weekend where that is shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Days {
    first: Weekday,
    last: Weekday,
}

const NAMES: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

const MIDNIGHT: u16 = 24 * 60;
const DAYS_OF_A_WEEK: i32 = 7;

impl Hours {
    /// May the machine compute at this local time?
    #[must_use]
    pub fn contain(&self, at: DateTime) -> bool {
        let minute =
            u16::from(at.hour().unsigned_abs()) * 60 + u16::from(at.minute().unsigned_abs());
        self.0.iter().any(|window| window.contains(at.weekday(), minute))
    }

    /// The first local time from `at` on that is one of the hours. `at` itself where it is one.
    #[must_use]
    pub fn next(&self, at: DateTime) -> Option<DateTime> {
        if self.contain(at) {
            return Some(at);
        }
        let days = (0..=DAYS_OF_A_WEEK).filter_map(|days| at.date().checked_add(days.days()).ok());
        let begins = days.flat_map(|day| {
            let windows = self.0.iter().filter(move |window| window.days.contain(day.weekday()));
            windows.map(move |window| day.at(window.hour(), window.minute(), 0, 0))
        });
        begins.filter(|begin| *begin > at).min()
    }
}

impl Window {
    /// The hour that it begins in.
    fn hour(self) -> i8 {
        i8::try_from(self.from / 60).unwrap_or(0)
    }

    /// The minute of that hour.
    fn minute(self) -> i8 {
        i8::try_from(self.from % 60).unwrap_or(0)
    }

    fn contains(self, day: Weekday, minute: u16) -> bool {
        if self.from < self.to {
            return self.days.contain(day) && (self.from..self.to).contains(&minute);
        }
        let began_today = self.days.contain(day) && minute >= self.from;
        began_today || (self.days.contain(day.previous()) && minute < self.to)
    }
}

impl Days {
    const ALL: Self = Self { first: Weekday::Monday, last: Weekday::Sunday };

    fn contain(self, day: Weekday) -> bool {
        self.first.until(day) <= self.first.until(self.last)
    }
}

impl FromStr for Hours {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let windows: Option<Vec<Window>> =
            text.split(',').map(|part| window(part.trim())).collect();
        windows.map(Self).ok_or_else(|| {
            "hours are wanted, e.g. `22:00-06:00` or `mon-fri 22:00-06:00, sat-sun 00:00-24:00`"
                .to_owned()
        })
    }
}

fn window(text: &str) -> Option<Window> {
    let (days, times) = match text.split_once(char::is_whitespace) {
        Some((days, times)) => (self::days(days)?, times.trim()),
        None => (Days::ALL, text),
    };
    let (from, to) = times.split_once('-')?;
    let (from, to) = (minute(from.trim())?, minute(to.trim())?);
    (from != to && from < MIDNIGHT).then_some(Window { days, from, to })
}

fn days(text: &str) -> Option<Days> {
    let day = |name: &str| {
        let named = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, day)| *day)
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(Days { first: day(first)?, last: day(last)? })
}

/// `HH:MM` or `H:MM`, up to 24:00.
fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = matches!(hour.len(), 1 | 2) && minute.len() == 2;
    if !is_time || !is_number(hour) || !is_number(minute) {
        return None;
    }
    let (hour, minute) = (hour.parse::<u16>().ok()?, minute.parse::<u16>().ok()?);
    let all = hour * 60 + minute;
    (minute < 60 && all <= MIDNIGHT).then_some(all)
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Window { days, from, to }) in self.0.iter().enumerate() {
            let gap = if index > 0 { ", " } else { "" };
            write!(
                f,
                "{gap}{days}{:02}:{:02}-{:02}:{:02}",
                from / 60,
                from % 60,
                to / 60,
                to % 60
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |day| NAMES.iter().find(|(_, named)| *named == day).map_or("", |(name, _)| name);
        match (self.first, self.last) {
            (Weekday::Monday, Weekday::Sunday) => Ok(()),
            (first, last) if first == last => write!(f, "{} ", name(first)),
            (first, last) => write!(f, "{}-{} ", name(first), name(last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    /// A time of the week of Monday, 5 January 2026.
    fn at(day: i8, hour: i8, minute: i8) -> DateTime {
        date(2026, 1, 4 + day).at(hour, minute, 0, 0)
    }

    fn hours(text: &str) -> Hours {
        text.parse().unwrap()
    }

    #[test]
    fn hours_hold_from_their_first_minute_to_before_their_last() {
        let day = hours("08:30-17:00");
        let times = [(8, 29), (8, 30), (16, 59), (17, 0)];
        assert_eq!(
            times.map(|(hour, minute)| day.contain(at(3, hour, minute))),
            [false, true, true, false]
        );
        let all = hours("00:00-24:00");
        assert!(all.contain(at(1, 0, 0)) && all.contain(at(1, 23, 59)));
    }

    #[test]
    fn nights_belong_to_the_day_that_they_begin_on() {
        let nights = hours("mon-fri 22:00-06:00");
        for (day, hour, within) in [
            (1, 21, false),
            (1, 22, true),
            (2, 5, true),
            (2, 6, false),
            (1, 5, false),
            (6, 5, true),
            (6, 22, false),
            (7, 5, false),
        ] {
            assert_eq!(nights.contain(at(day, hour, 0)), within, "{day} {hour}");
        }
        let sunday = hours("sun 22:00-06:00");
        assert!(
            sunday.contain(at(8, 5, 59))
                && sunday.contain(at(1, 5, 59))
                && !sunday.contain(at(7, 5, 0))
        );
    }

    #[test]
    fn days_may_run_over_the_weekend_and_hours_may_be_several() {
        let hours = hours("fri-mon 10:00-12:00, wed 20:00-24:00");
        let within: Vec<i8> = (1..=7).filter(|day| hours.contain(at(*day, 11, 0))).collect();
        assert_eq!(within, [1, 5, 6, 7]);
        assert!(hours.contain(at(3, 23, 59)) && !hours.contain(at(4, 0, 0)));
    }

    #[test]
    fn the_next_of_the_hours_may_be_now_tonight_or_in_a_week() {
        let nights = hours("mon-fri 22:00-06:00, sat 12:30-13:00");
        for (from, next) in [
            (at(1, 12, 0), at(1, 22, 0)),
            (at(1, 22, 0), at(1, 22, 0)),
            (at(2, 6, 0), at(2, 22, 0)),
            (at(6, 6, 0), at(6, 12, 30)),
            (at(6, 13, 0), at(8, 22, 0)),
            (at(7, 5, 0), at(8, 22, 0)),
        ] {
            assert_eq!(nights.next(from), Some(next), "{from}");
        }
        let weekly = hours("wed 08:00-09:00");
        assert_eq!(weekly.next(at(3, 9, 0)), Some(at(10, 8, 0)));
    }

    #[test]
    fn they_are_shown_as_they_are_written() {
        for text in ["22:00-06:00", "mon-fri 22:00-06:00, sat-sun 00:00-24:00", "wed 00:00-12:30"] {
            assert_eq!(hours(text).to_string(), text);
        }
        assert_eq!(
            hours(" Mon-Sun  8:00".replace("8:00", "08:00-09:00").as_str()).to_string(),
            "08:00-09:00"
        );
        for (written, shown) in [
            ("8:00-9:30", "08:00-09:30"),
            ("mon-fri 9:00-17:00, sat 0:00-24:00", "mon-fri 09:00-17:00, sat 00:00-24:00"),
        ] {
            assert_eq!(hours(written).to_string(), shown);
        }
        for wrong in [
            "",
            "22-06",
            "22:00",
            "25:00-26:00",
            "08:60-09:00",
            "8:0-9:00",
            "008:00-09:00",
            "+8:00-09:00",
            ":00-09:00",
            "8-9",
            "8am-9am",
            "08:00-08:00",
            "24:00-06:00",
            "day 08:00-09:00",
            "mon",
            "08:00-09:00,",
        ] {
            assert!(wrong.parse::<Hours>().is_err(), "{wrong}");
        }
    }
}
