//! Dates, as tables write them.

/// Is this a date, with or without a time: `2024-03-31`, `31.3.2024`, `3/31/24 13:05`?
pub(super) fn is_date(text: &str) -> bool {
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
}
