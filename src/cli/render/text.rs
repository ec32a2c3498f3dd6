//! Times and states as text for people; sizes and counts as the daemon writes them.

pub(crate) use sojourn_protocol::figures::{
    bytes, count, counted, duration, metric, shards, timestamp,
};
pub(crate) use sojourn_protocol::trial_name::choices_text as choices;

use serde::Serializer;
use serde_json::Value;
use sojourn_protocol::{
    names::OwnerName,
    quantity::SaturatingFrom as _,
    time::UnixMillis,
    trial_name,
    view::{JobView, TrialPhase, TrialState, TrialView},
};
use std::{
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// Characters of a trial's name beside its metric.
const MAX_BEST_CHARS: usize = 60;

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

/// A trial's name. A server of before says none.
pub(crate) fn trial_name(trial: &TrialView) -> String {
    if trial.name.is_empty() {
        return trial_name::trial_name(&trial.arch, &trial.choices);
    }
    trial.name.clone()
}

/// A setting's value; a text without quotes.
pub(crate) fn value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A path in JSON. Of one that isn't UTF-8 the other bytes are shown as `\u{fffd}`.
pub(crate) fn path_in_json<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// As [`path_in_json`], of several.
pub(crate) fn paths_in_json<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// How a trial stands, and whether results in its lineage are unverified.
pub(crate) fn trial_state(trial: &TrialView) -> String {
    let state = state_of(trial);
    match trial.unverified {
        0 => state,
        1 => format!("{state}; 1 result unverified"),
        results => format!("{state}; {results} results unverified"),
    }
}

fn state_of(trial: &TrialView) -> String {
    let phase = trial.phase.filter(|of| matches!(of, TrialPhase::NotStarted | TrialPhase::Pruned));
    let said = |usual: &'static str| phase.map_or(usual, TrialPhase::words);
    match &trial.state {
        TrialState::Running => match &trial.waiting {
            Some(reason) => format!("{}: {reason}", said("waiting")),
            None => said("running").to_owned(),
        },
        TrialState::Finished => match &trial.stopped {
            Some(why) => format!("{}: {why}", said("finished")),
            None if trial.refit.is_some() => "finished: trained on all folds".to_owned(),
            None => "finished".to_owned(),
        },
        TrialState::Failed { error } => format!("{}: {error}", said("failed")),
        TrialState::Cancelled => said("cancelled").to_owned(),
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

/// A text of at most so many characters: a longer one has `…` for a part of its middle, since names often differ at their ends.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (begin, end) = (kept - kept / 3, kept / 3);
    let begin: String = text.chars().take(begin).collect();
    let end: String = text.chars().skip(count - end).collect();
    format!("{begin}…{end}")
}

/// How long a job has run, and how long it has to go: `45 s elapsed, about 2 min left`. Nothing of one that has ended.
pub(crate) fn times(job: &JobView) -> Option<String> {
    if job.state.has_ended() {
        return None;
    }
    let elapsed = duration(now().0.saturating_sub(job.submitted_at.0));
    let left = time_left(job).map_or_else(String::new, |left| format!(", {left}"));
    Some(format!("{elapsed} elapsed{left}"))
}

/// How long a job has to go: `about 2 min left`.
pub(crate) fn time_left(job: &JobView) -> Option<String> {
    let left = job.time_left?;
    Some(match left.expected {
        Some(expected) => format!("about {} left", duration(expected.0)),
        None => format!("at least {} left", duration(left.at_least.0)),
    })
}

/// The best trial of a job in a few words.
pub(crate) fn best(job: &JobView) -> String {
    match &job.best {
        Some(best) => {
            let name = match best.name.as_str() {
                "" => String::new(),
                name => format!(" `{}`", shortened(name, MAX_BEST_CHARS)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_job_has_an_elapsed_time_and_one_that_is_left() {
        let mut view = serde_json::json!({
            "job": 1, "name": "t", "state": "running", "submitted_at": now().0.saturating_sub(600_000), "ended_at": null,
            "metric": "valid/accuracy", "best": null, "waiting": null, "trials": 1, "trials_finished": 0, "trials_failed": 0,
            "hops": 0, "hops_expected": 1, "evaluations": 0, "evaluations_expected": 1, "leases_live": 0, "leases_expired": 0,
            "leases_returned": 0, "superseded": 0, "rejected": 0, "train_micros": 0,
            "time_left": {"at_least": 30_000, "expected": 120_000}
        });
        let of = |view: &Value| times(&serde_json::from_value(view.clone()).unwrap());
        assert_eq!(of(&view).unwrap(), "10 min elapsed, about 2 min left");
        view["time_left"] = serde_json::json!({"at_least": 30_000});
        assert_eq!(of(&view).unwrap(), "10 min elapsed, at least 30 s left");
        view["time_left"] = Value::Null;
        assert_eq!(of(&view).unwrap(), "10 min elapsed");
        view["state"] = "finished".into();
        assert_eq!(of(&view), None);
    }

    #[test]
    fn a_long_name_is_cut_in_its_middle() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("äbcdefghij", 7), "äbcd…ij");
        assert_eq!([shortened("ab", 1), shortened("ab", 0)], ["…", "…"]);
    }

    #[test]
    fn one_class_is_no_classes() {
        assert_eq!([classes(1), classes(1000)], ["1 class", "1,000 classes"]);
    }
}
