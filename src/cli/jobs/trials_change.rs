//! The changes of `sojourn trials`: trials that are stopped, revived, run again, cloned or put first.

use crate::{
    api_client::ApiClient,
    cli::{
        render::text,
        submit::command::nonce,
        terminal::{exit::Failure, output},
    },
};
use serde_json::Value;
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::{GoOn, MAX_WHY_CHARS, NewTrial, Retry, SearchRequest, TrialPriority},
    ids::{JobId, TrialId},
    spec::Choices,
    text::is_plain_line,
    unit::Origin,
    view::{TrialState, TrialView},
};
use std::collections::{BTreeMap, BTreeSet};

// Flags that change trials instead of listing them. No doc comment: it would become the help of the command.
#[derive(Debug, Default, clap::Args)]
#[command(
    group = clap::ArgGroup::new("change")
        .multiple(true)
        .args(["stop", "revive", "retry", "clone", "priority"]),
    group = clap::ArgGroup::new("changed").multiple(true).args(["retry", "clone"])
)]
pub(crate) struct Changes {
    /// Stop this trial: it ends with what it has. May be repeated.
    #[arg(long, value_name = "N")]
    stop: Vec<TrialId>,
    /// Let this trial go on to its last epoch: one that was stopped, or that the search holds back. May be repeated.
    #[arg(long, value_name = "N")]
    revive: Vec<TrialId>,
    /// Run a failed trial again, from its beginning; `failed` stands for all that have failed, but for those that would lose what they
    /// have. With `--set` a new trial with other settings is run instead. May be repeated.
    #[arg(long, value_name = "N|failed", value_parser = retry, conflicts_with = "clone")]
    retry: Vec<Retried>,
    /// Add a trial that goes on from this one's weights and optimiser state, with the settings that `--set` changes.
    #[arg(long, value_name = "N")]
    clone: Option<TrialId>,
    /// A setting of the clone, or of a trial that is run again: `lr=1e-4`. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", requires = "changed", value_parser = setting)]
    set: Vec<(String, Value)>,
    /// Put this trial before the others of its job; with `=P` from -100 to 100, where the others have 0. May be repeated.
    #[arg(long, value_name = "N[=P]", value_parser = priority)]
    priority: Vec<TrialPriority>,
    /// Why, for the journal: one line.
    #[arg(long, value_name = "TEXT", value_parser = why, requires = "change")]
    why: Option<String>,
}

/// The trials that one `--retry` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retried {
    One(TrialId),
    AllFailed,
}

impl Changes {
    /// Is anything to be changed?
    pub(crate) fn any(&self) -> bool {
        let Self { stop, revive, retry, clone, priority, .. } = self;
        let are_named = !(stop.is_empty() && revive.is_empty() && retry.is_empty());
        are_named || clone.is_some() || !priority.is_empty()
    }

    /// The request, for which it may have to be known how many epochs trials are to have.
    pub(crate) async fn request(
        &self,
        client: &ApiClient,
        job: JobId,
    ) -> Result<SearchRequest, Failure> {
        let mut go_on = Vec::new();
        let values: Choices = self.set.iter().cloned().collect();
        let mut retry = BTreeSet::new();
        if !(self.revive.is_empty() && self.retry.is_empty()) {
            let trials = client.call(endpoints::Trials::request(job)).await?;
            for id in &self.revive {
                let known = trials.iter().find(|of| of.trial == *id);
                let known =
                    known.ok_or_else(|| Failure::work(format!("job {job} has no trial {id}")))?;
                go_on.push(GoOn { trial: *id, epochs: known.epochs });
            }
            for retried in &self.retry {
                match retried {
                    Retried::One(trial) => _ = retry.insert(*trial),
                    Retried::AllFailed if values.is_empty() => {
                        let best = client.call(endpoints::Job::request(job)).await?.summary.best;
                        let best = best.map(|best| best.trial);
                        let left_out = left_out(job, &trials, best);
                        left_out.values().for_each(|why| output::remark(why));
                        let failed = failed(job, &trials)?.into_iter();
                        retry.extend(failed.filter(|trial| !left_out.contains_key(trial)));
                        if retry.is_empty() {
                            let message = format!("no failed trial of job {job} is run again");
                            return Err(Failure::work(message));
                        }
                    }
                    Retried::AllFailed => retry.extend(failed(job, &trials)?),
                }
            }
        }
        let again = |trial| Retry { trial, values: values.clone() };
        let retry: Vec<Retry> = retry.into_iter().map(again).collect();
        let add = self.clone.map(|from| NewTrial { values, from: Some(from) });
        Ok(SearchRequest {
            add: add.into_iter().collect(),
            go_on,
            retry,
            stop: self.stop.clone(),
            priorities: self.priority.clone(),
            why: self.why.clone(),
            nonce: nonce()?,
            ..SearchRequest::default()
        })
    }

    /// The changes that were made, a line each. `retried`: failed trials that begin anew. `added`: the trials that were added, and where they
    /// go on from.
    pub(crate) fn said(&self, retried: &[TrialId], added: &[(TrialId, Option<Origin>)]) -> String {
        let stopped = self.stop.iter().map(|trial| format!("trial {trial} is stopped"));
        let revived = self.revive.iter().map(|trial| format!("trial {trial} goes on"));
        let retried = retried.iter().map(|trial| format!("trial {trial} begins anew"));
        let added = added.iter().map(|(trial, origin)| match origin {
            None => format!("trial {trial} begins, with the other settings"),
            Some(origin) => {
                let epochs = text::counted(u64::from(origin.epochs), "epoch");
                format!("trial {trial} goes on from trial {} after {epochs}", origin.trial)
            }
        });
        let placed = self.priority.iter().map(|TrialPriority { trial, priority }| {
            format!("trial {trial} has priority {priority}")
        });
        stopped
            .chain(revived)
            .chain(retried)
            .chain(added)
            .chain(placed)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The failed trials of a job, one at least.
fn failed(job: JobId, trials: &[TrialView]) -> Result<BTreeSet<TrialId>, Failure> {
    let has_failed = |of: &&TrialView| matches!(of.state, TrialState::Failed { .. });
    let failed: BTreeSet<TrialId> = trials.iter().filter(has_failed).map(|of| of.trial).collect();
    match failed.is_empty() {
        true => Err(Failure::work(format!("no trial of job {job} has failed"))),
        false => Ok(failed),
    }
}

/// The failed trials that aren't run again unless they are named, and why: what they have trained would be lost.
fn left_out(job: JobId, trials: &[TrialView], best: Option<TrialId>) -> BTreeMap<TrialId, String> {
    let has_failed = |of: &&TrialView| matches!(of.state, TrialState::Failed { .. });
    let why = |of: &TrialView| {
        let (id, epochs) = (of.trial, of.epochs);
        // Of a failed trial it says that its time was up.
        let why = match of.stopped.is_some() {
            true => format!(
                "ended for want of time, and goes on with `sojourn extend {job} --trial {id} --epochs {epochs}`"
            ),
            false if best == Some(id) => "has the job's best model, which would be lost".to_owned(),
            false => return None,
        };
        Some((id, format!("trial {id} is left out: it {why}")))
    };
    trials.iter().filter(has_failed).filter_map(why).collect()
}

/// `3`, or `failed`.
fn retry(text: &str) -> Result<Retried, String> {
    match text.parse() {
        Ok(number) => Ok(Retried::One(TrialId(number))),
        Err(_) if text == "failed" => Ok(Retried::AllFailed),
        Err(_) => Err(format!("`{text}` is neither the number of a trial nor `failed`")),
    }
}

/// `lr=1e-4`: a value as JSON has it, or a word.
fn setting(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("a key and its value are wanted: lr=1e-4")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((key.trim().to_owned(), value))
}

/// `3`, or `3=5`.
fn priority(text: &str) -> Result<TrialPriority, String> {
    let (trial, priority) = text.split_once('=').unwrap_or((text, "1"));
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number of a trial"));
    let priority = priority.parse().map_err(|_| format!("`{priority}` is no priority"))?;
    Ok(TrialPriority { trial: TrialId(number(trial)?), priority })
}

/// A reason: one line.
pub(crate) fn why(text: &str) -> Result<String, String> {
    if is_plain_line(text, MAX_WHY_CHARS) {
        return Ok(text.to_owned());
    }
    Err(format!("a reason is one line of at most {MAX_WHY_CHARS} characters"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_numbers_lists_or_words() {
        assert_eq!(setting("lr=1e-4"), Ok(("lr".into(), json!(1e-4))));
        assert_eq!(setting("hidden=[8, 4]"), Ok(("hidden".into(), json!([8, 4]))));
        assert_eq!(setting("optimizer=adam"), Ok(("optimizer".into(), json!("adam"))));
        assert!(setting("lr").is_err());
    }

    #[test]
    fn trials_that_would_lose_what_they_have_are_left_out_of_the_failed_ones() {
        let trial = |number: u32, state: Value, stopped: Option<&str>| -> TrialView {
            let view = json!({
                "trial": number, "name": "mlp", "state": state, "arch": "mlp", "choices": {},
                "epoch": 1, "epochs": 5, "hops": 2, "version": 2, "checkpoint": null,
                "numeric_class": null, "curve": [], "stopped": stopped, "best": null,
            });
            serde_json::from_value(view).unwrap()
        };
        let finished = serde_json::to_value(TrialState::Finished).unwrap();
        let failed_by = TrialState::Failed { error: "NaN".to_owned() };
        let failed_by = serde_json::to_value(failed_by).unwrap();
        let trials = [
            trial(0, finished, Some("stopped after 2h")),
            trial(1, failed_by.clone(), Some("stopped after 2h")),
            trial(2, failed_by.clone(), None),
            trial(3, failed_by, None),
        ];
        let left_out = left_out(JobId(7), &trials, Some(TrialId(2)));
        let said: Vec<&str> = left_out.values().map(String::as_str).collect();
        assert_eq!(
            said,
            [
                "trial 1 is left out: it ended for want of time, and goes on with `sojourn extend 7 --trial 1 --epochs 5`",
                "trial 2 is left out: it has the job's best model, which would be lost",
            ]
        );
        assert_eq!(failed(JobId(7), &trials).unwrap().len(), 3);
    }

    #[test]
    fn a_failed_trial_is_named_or_all_are() {
        assert_eq!(retry("3"), Ok(Retried::One(TrialId(3))));
        assert_eq!(retry("failed"), Ok(Retried::AllFailed));
        assert!(retry("all").is_err());
    }

    #[test]
    fn a_priority_is_a_trials_and_1_where_none_is_said() {
        let of = |trial, priority| TrialPriority { trial: TrialId(trial), priority };
        assert_eq!(priority("3"), Ok(of(3, 1)));
        assert_eq!(priority("3=-5"), Ok(of(3, -5)));
        assert!(priority("x").is_err() && priority("3=x").is_err());
    }
}
