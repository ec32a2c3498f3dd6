//! A calendar month, as it is kept in files.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A month of a year. It is shown, and kept, as `2026-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Month {
    year: i16,
    /// From 1.
    month: i8,
}

impl Month {
    /// The month of a day.
    #[must_use]
    pub fn of(day: Date) -> Self {
        Self { year: day.year(), month: day.month() }
    }

    /// Numbers months without a gap.
    pub(crate) fn number(self) -> u32 {
        let months = i32::from(self.year) * 12 + i32::from(self.month);
        u32::try_from(months).unwrap_or(0)
    }

    /// The first day of the next.
    #[must_use]
    pub fn end(self) -> Date {
        let first = Date::new(self.year, self.month, 1).unwrap_or(Date::MIN);
        // After the last month of all time nothing comes.
        first.last_of_month().tomorrow().unwrap_or(Date::MAX)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl FromStr for Month {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("`{text}` is no month, as `2026-01` is one");
        let day: Date = format!("{text}-01").parse().map_err(|_| wanted())?;
        let month = Self::of(day);
        if month.to_string() == text { Ok(month) } else { Err(wanted()) }
    }
}

impl From<Month> for String {
    fn from(month: Month) -> Self {
        month.to_string()
    }
}

impl TryFrom<String> for Month {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn months_are_read_shown_and_ordered_and_end() {
        let month: Month = "2026-12".parse().unwrap();
        assert_eq!(month, Month::of(date(2026, 12, 31)));
        assert_eq!((month.to_string().as_str(), month.end()), ("2026-12", date(2027, 1, 1)));
        assert!(month > "2026-02".parse().unwrap() && month < "2027-01".parse().unwrap());
        for wrong in ["", "2026", "2026-13", "2026-1", "26-01", "2026-01-01"] {
            assert!(wrong.parse::<Month>().is_err(), "{wrong}");
        }
    }
}
