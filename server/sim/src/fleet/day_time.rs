//! Times of the day as a scenario file writes them.

/// `22:00` in microseconds of the day.
pub(crate) fn day_time(text: &str) -> Result<u64, String> {
    let read = || {
        let (hours, minutes) = text.trim().split_once(':')?;
        let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
        (hours < 24 && minutes < 60).then_some((hours * 60 + minutes) * 60_000_000)
    };
    read().ok_or_else(|| format!("is \"{text}\"; a time of day is wanted, like \"22:00\""))
}

/// `22:00-07:00` in microseconds of the day.
pub(crate) fn hours(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("is \"{text}\"; hours are wanted, like \"22:00-07:00\"");
    let (from, to) = text.split_once('-').ok_or_else(wrong)?;
    let hours = day_time(from).and_then(|from| Ok((from, day_time(to)?)));
    let hours = hours.map_err(|_| wrong())?;
    if hours.0 == hours.1 {
        return Err(format!("is \"{text}\"; leave it out for hosts that are always there"));
    }
    Ok(hours)
}
