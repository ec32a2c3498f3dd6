//! Times and states as text for people; sizes and counts as the daemon writes them.

pub(crate) use sojourn_daemon::terminal::figures::{bytes, count, counted, duration, shards};

use sojourn_protocol::{
    names::OwnerName,
    quantity::SaturatingFrom as _,
    spec::{Choices, Goal},
    time::UnixMillis,
    view::{HostState, JobState, JobView, TrialState, TrialView},
};
use std::{
    cmp::Ordering,
    time::{SystemTime, UNIX_EPOCH},
};

/// How long ago, by this machine's clock.
pub(crate) fn ago(at: UnixMillis) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis());
    let now = u64::saturating_from(now);
    format!("{} ago", duration(now.saturating_sub(at.0)))
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

/// A trial's values of the searched parameters: `hidden=[64] lr=0.001`.
pub(crate) fn choices(choices: &Choices) -> String {
    let pairs = choices.iter().map(|(name, value)| {
        // `model[1].channels` and `training.optimizer.lr` are told apart by their last word;
        // `training.optimizer.name` is the optimiser.
        let short = match name.strip_suffix(".name") {
            Some(owner) => owner.rsplit('.').next().unwrap_or(owner),
            None => name.rsplit('.').next().unwrap_or(name),
        };
        let value = match value {
            serde_json::Value::Number(number) => {
                number.as_f64().map_or_else(|| number.to_string(), number_text)
            }
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        format!("{short}={}", shortened(value))
    });
    pairs.collect::<Vec<_>>().join(" ")
}

/// A value of at most so many characters; of a longer one its beginning.
fn shortened(value: String) -> String {
    const MAX_CHARS: usize = 100;
    match value.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", value.get(..end).unwrap_or_default()),
        None => value,
    }
}

/// A number with up to four digits that count: `32`, `0.003162`, `1e-5`.
fn number_text(number: f64) -> String {
    if number == 0.0 || (number.fract() == 0.0 && number.abs() < 1e9) {
        return format!("{number}");
    }
    let short: f64 = format!("{number:.3e}").parse().unwrap_or(number);
    if (1e-4..1e6).contains(&short.abs()) { format!("{short}") } else { format!("{short:e}") }
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
            format!(
                "{} {} (trial {}, epoch {})",
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
    use serde_json::json;

    #[test]
    fn timestamps_are_civil_dates() {
        assert_eq!(timestamp(UnixMillis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(UnixMillis(951_827_696_789)), "2000-02-29T12:34:56.789Z");
        assert_eq!(timestamp(UnixMillis(1_795_223_834_000)), "2026-11-21T01:17:14.000Z");
    }

    #[test]
    fn choices_are_named_by_their_last_word() {
        let chosen = Choices::from([
            ("model[1].channels".to_owned(), json!([16, 32])),
            ("training.optimizer.name".to_owned(), json!("adam")),
            ("training.optimizer.lr".to_owned(), json!(0.003_162_277_660_168_379)),
            ("training.batch_size".to_owned(), json!(32)),
        ]);
        assert_eq!(choices(&chosen), "channels=[16,32] batch_size=32 lr=0.003162 optimizer=adam");
        let long = Choices::from([("model[0].hidden".to_owned(), json!(vec![4; 1_000_000]))]);
        assert_eq!(choices(&long).chars().count(), "hidden=".len() + 100 + "...".len());
        assert_eq!(number_text(0.000_01), "1e-5");
    }
}
