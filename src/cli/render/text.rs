//! Times and states as text for people; sizes and counts as the daemon writes them.

pub(crate) use sojourn_daemon::terminal::figures::{bytes, count, counted, duration, shards};
pub(crate) use sojourn_protocol::trial_name::choices_text as choices;

use serde_json::Value;
use sojourn_protocol::{
    names::OwnerName,
    quantity::SaturatingFrom as _,
    spec::Goal,
    time::UnixMillis,
    trial_name,
    view::{HostState, JobState, JobView, TrialState, TrialView},
};
use std::{
    cmp::Ordering,
    time::{SystemTime, UNIX_EPOCH},
};

/// `1 class`, `10 classes`.
pub(crate) fn classes(number: u64) -> String {
    format!("{} class{}", count(number), if number == 1 { "" } else { "es" })
}

/// How long ago, by this machine's clock.
pub(crate) fn ago(at: UnixMillis) -> String {
    format!("{} ago", duration(now().0.saturating_sub(at.0)))
}

/// The time by this machine's clock.
pub(crate) fn now() -> UnixMillis {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis());
    UnixMillis(u64::saturating_from(now))
}

/// `2026-11-21T01:17:14.000Z`.
pub(crate) fn timestamp(at: UnixMillis) -> String {
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

/// A metric's value.
pub(crate) fn metric(value: f64) -> String {
    format!("{value:.4}")
}

/// A trial's name. A server of before says none.
pub(crate) fn trial_name(trial: &TrialView) -> String {
    if trial.name.is_empty() {
        return trial_name::trial_name(&trial.arch, &trial.choices);
    }
    trial.name.clone()
}

pub(crate) fn job_state(state: JobState) -> &'static str {
    match state {
        JobState::Running => "running",
        JobState::Paused => "paused",
        JobState::Finished => "finished",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    }
}

/// A trial's state in one word, for tables that programs read.
pub(crate) const fn trial_state_word(state: &TrialState) -> &'static str {
    match state {
        TrialState::Running => "running",
        TrialState::Finished => "finished",
        TrialState::Failed { .. } => "failed",
        TrialState::Cancelled => "cancelled",
    }
}

/// A setting's value; a text without quotes.
pub(crate) fn value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(crate) fn trial_state(trial: &TrialView) -> String {
    match &trial.state {
        TrialState::Running => match &trial.waiting {
            Some(reason) => format!("waiting: {reason}"),
            None => "running".to_owned(),
        },
        TrialState::Finished => match &trial.stopped {
            Some(why) => format!("finished: {why}"),
            None => "finished".to_owned(),
        },
        TrialState::Failed { error } => format!("failed: {error}"),
        TrialState::Cancelled => "cancelled".to_owned(),
    }
}

pub(crate) fn host_state(state: HostState) -> &'static str {
    match state {
        HostState::Live => "live",
        HostState::Away => "away",
        HostState::Resting { .. } => "resting",
        HostState::Revoked => "revoked",
    }
}

/// The name of an owner; `-` for the deployment itself.
pub(crate) fn owner(owner: &OwnerName) -> String {
    if owner.is_default() { "-".to_owned() } else { owner.to_string() }
}

/// The first line of a text, cut where it is long: what a table has room for.
pub(crate) fn first_line(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let line = text.lines().next().unwrap_or_default();
    let cut = line.chars().count() > MAX_CHARS || line.len() < text.trim_end().len();
    let mut line: String = line.chars().take(MAX_CHARS).collect();
    if cut {
        line.push_str(" ...");
    }
    line
}

/// The best trial of a job in a few words.
pub(crate) fn best(job: &JobView) -> String {
    match &job.best {
        Some(best) => {
            let name = match best.name.as_str() {
                "" => String::new(),
                name => format!(" `{name}`"),
            };
            format!(
                "{} {} (trial {}{name}, epoch {})",
                job.metric,
                metric(best.value),
                best.trial,
                best.epoch.0 + 1
            )
        }
        None => "none yet".to_owned(),
    }
}

/// The order of a leader board: best first, trials without a value last.
pub(crate) fn leader_board(goal: Goal, a: &TrialView, b: &TrialView) -> Ordering {
    let value = |trial: &TrialView| trial.best.as_ref().map(|best| best.value);
    let order = match (value(a), value(b)) {
        (Some(a), Some(b)) => match goal {
            Goal::Max => b.total_cmp(&a),
            Goal::Min => a.total_cmp(&b),
        },
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    };
    order.then(a.trial.cmp(&b.trial))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_class_is_no_classes() {
        assert_eq!([classes(1), classes(1000)], ["1 class", "1,000 classes"]);
    }

    #[test]
    fn timestamps_are_civil_dates() {
        assert_eq!(timestamp(UnixMillis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(UnixMillis(951_827_696_789)), "2000-02-29T12:34:56.789Z");
        assert_eq!(timestamp(UnixMillis(1_795_223_834_000)), "2026-11-21T01:17:14.000Z");
    }
}
