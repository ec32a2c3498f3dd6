//! Events as sentences. They are read as JSON, so that events of a newer server are shown too, in general words.

use super::{fields::Fields, residency, search};
use crate::{
    figures,
    money::MicroUsd,
    report::FailureKind,
    spec::{SearchBudget, SharePolicy},
    time::Millis,
    view::EventView,
};
use serde_json::Value;

/// The event in words; `None` where there are none for it.
pub(super) fn sentence(event: &EventView) -> Option<String> {
    let of = Fields(&event.event);
    Some(match event.kind.as_str() {
        "job-submitted" => {
            let spec = Fields(of.0.get("spec")?);
            format!("job {} `{}` was submitted", of.number("job")?, spec.text("name")?)
        }
        "job-cancelled" => format!("job {} was cancelled", of.number("job")?),
        "job-paused" => format!("job {} was paused", of.number("job")?),
        "job-resumed" => format!("job {} was resumed", of.number("job")?),
        "job-training-over" => {
            let (job, grace) = (of.number("job")?, Millis(of.number("grace")?));
            let used_up =
                of.0.get("used_up").cloned().and_then(|of| serde_json::from_value(of).ok());
            let what = match used_up {
                Some(SearchBudget::Epochs(_)) => "its epochs",
                Some(SearchBudget::Cost(_)) => "what it may cost",
                None => "its time",
            };
            format!(
                "job {job} has used up {what}: nothing more is trained, what is trained is evaluated for up to {grace}"
            )
        }
        "job-time-up" => {
            format!("the search of job {} ends with what is evaluated", of.number("job")?)
        }
        "job-placed" => format!(
            "job {} has priority {}, share {}{}",
            of.number("job")?,
            of.0.get("priority")?.as_i64()?,
            of.number("share")?,
            of.number("max_hosts")
                .map(|most| format!(", at most {most} hosts"))
                .unwrap_or_default()
                + &of
                    .number("budget")
                    .map(|budget| format!(", a budget of {}", MicroUsd(budget)))
                    .unwrap_or_default()
                + &of
                    .number("deadline")
                    .map(|time| format!(", {} to its end", Millis(time)))
                    .unwrap_or_default()
        ),
        "job-noted" => match of.text("note")?.as_str() {
            "" => format!("the note of job {} was taken away", of.number("job")?),
            note => format!("job {} has the note: {note}", of.number("job")?),
        },
        "job-thinned" => format!(
            "job {} lost its data and all checkpoints but the best model: the server keeps no more of old jobs",
            of.number("job")?
        ),
        "token-created" => {
            let job = Fields(of.0.get("grant")?.get("share")?).number("job")?;
            format!("{} made link {} to the page of job {job}", user(of), of.number("token")?)
        }
        "token-revoked" => {
            let job = of.number("job")?;
            format!("{} revoked link {} to the page of job {job}", user(of), of.number("token")?)
        }
        "job-deleted" => format!("job {} was deleted", of.number("job")?),
        "lease-granted" => {
            let (host, lease, unit) = (of.number("host")?, of.number("lease")?, unit(of)?);
            let second = of.number("copy_of");
            let second = second.map(|first| format!(", beside lease {first}")).unwrap_or_default();
            format!("host {host} gets lease {lease}{second}: {unit} ({})", of.text("why")?)
        }
        "lease-ended" => format!("lease {} ended: {}", of.number("lease")?, end(of.0.get("end")?)?),
        "report-acknowledged" => {
            let report = Fields(of.0.get("report")?);
            let (kind, outcome) = report.0.get("outcome")?.as_object()?.iter().next()?;
            let outcome = outcome_text(kind, Fields(outcome))?;
            format!(
                "host {} reports lease {}: {outcome}",
                of.number("host")?,
                report.number("lease")?
            )
        }
        "assimilated" => {
            let (lease, version) = (of.number("lease")?, of.number("version")?);
            match of.0.get("merged").map(Fields) {
                None => format!("the result of lease {lease} became version {version}"),
                Some(merged) => format!(
                    "the result of lease {lease} was merged into version {version}: {} versions old, {} units in flight",
                    merged.number("staleness")?,
                    merged.number("in_flight")?
                ),
            }
        }
        "evaluated" => {
            let (epoch, lease) = (of.epoch("epoch")?, of.number("lease")?);
            format!("epoch {epoch} was evaluated under lease {lease}: {}", of.means("valid")?)
        }
        "rejected" => {
            format!(
                "the result of lease {} was refused: {}",
                of.number("lease")?,
                of.text("reason")?
            )
        }
        "superseded" => {
            format!("the result of lease {} came too late to be used", of.number("lease")?)
        }
        "unit-failed" => {
            let failure = Fields(of.0.get("failure")?);
            format!("lease {} failed: {}", of.number("lease")?, failure_text(failure)?)
        }
        "challenged" => {
            format!(
                "the result of lease {} waits for other hosts to repeat it",
                of.number("lease")?
            )
        }
        "verified" => {
            let (confirmed, refuted) = (of.numbers("confirmed")?, of.numbers("refuted")?);
            let refuted = match refuted.is_empty() {
                true => String::new(),
                false => format!("; refuted: {}", leases(&refuted)),
            };
            format!("hosts came to the same result under {}{refuted}", leases(&confirmed))
        }
        "unverified" => format!(
            "the result of lease {} was taken in unchecked: no other host of its numeric class is there",
            of.number("lease")?
        ),
        "trial-rolled-back" => {
            let epochs = figures::counted(of.number("epochs")?, "epoch");
            let why = of.text("why").map(|why| format!(": {why}")).unwrap_or_default();
            let trial = of.number("trial")?;
            format!("trial {trial} went back to where it had trained {epochs}{why}")
        }
        "rollback-asked" => {
            let (host, lost) = (of.number("host")?, of.number("lost")?.div_ceil(10));
            format!(
                "host {host} was refuted; to take back what nobody confirmed of its party would lose {lost} % of the work, \
                 and waits for your word: `sojourn rollback`"
            )
        }
        "trial-ordered" => {
            let how = match of.text("order")?.as_str() {
                "hop" => "trains one hop at a time",
                "merging" => "merges results as they arrive",
                "draining" => "stops merging: what is out is awaited",
                _ => return None,
            };
            let rose = of.0.get("reason").and_then(|reason| reason.get("loss_rose")).map(Fields);
            let why = rose.and_then(|rose| {
                let (epoch, loss) = (rose.number("epoch")?, rose.0.get("loss")?.as_f64()?);
                let best = rose.0.get("best")?.as_f64()?;
                let (loss, best) = (figures::metric(loss), figures::metric(best));
                Some(format!(
                    ": after epoch {epoch} the validation loss was {loss}, and {best} before"
                ))
            });
            format!("trial {} {how}{}", of.number("trial")?, why.unwrap_or_default())
        }
        "trial-failed" => format!("trial {} failed: {}", of.number("trial")?, of.text("error")?),
        "extra-asked" => format!("{} was asked for", extra(of)?),
        "extra-evaluated" => {
            format!(
                "the evaluation of lease {} is done: {}",
                of.number("lease")?,
                of.means("sums")?
            )
        }
        "extra-failed" => format!("{} failed: {}", extra(of)?, of.text("error")?),
        "blob-lost" => format!("the store has lost blob {}", of.text("blob")?),
        kind => return search::sentence(kind, of).or_else(|| residency::sentence(kind, of)),
    })
}

/// The user who did it, by the token.
fn user(of: Fields<'_>) -> String {
    of.token().unwrap_or_else(|| "a user".to_owned())
}

/// The work that a lease is for: `trains trial 2, epoch 1, shards 3, 5`.
fn unit(lease: Fields<'_>) -> Option<String> {
    let (kind, unit) = lease.0.get("unit")?.as_object()?.iter().next()?;
    let unit = Fields(unit);
    match kind.as_str() {
        "train" => {
            let then = lease.numbers("then").unwrap_or_default();
            let shards: Vec<String> = std::iter::once(unit.number("shard")?)
                .chain(then)
                .map(|shard| shard.to_string())
                .collect();
            let shards = match shards.as_slice() {
                [one] => format!("shard {one}"),
                several => format!("shards {}", several.join(", ")),
            };
            let from = unit.number("from").filter(|from| *from > 0);
            let from = from.map(|from| format!(" from batch {from} on")).unwrap_or_default();
            let (trial, epoch) = (unit.number("trial")?, unit.epoch("epoch")?);
            Some(format!("train trial {trial}, epoch {epoch}, {shards}{from}"))
        }
        "evaluate" => {
            let (trial, epoch) = (unit.number("trial")?, unit.epoch("epoch")?);
            Some(format!("evaluate trial {trial}, epoch {epoch}"))
        }
        "extra" => {
            let name = Fields(unit.0.get("name")?);
            let (trial, epoch) = (name.number("trial")?, name.epoch("epoch")?);
            Some(format!(
                "evaluate trial {trial}, epoch {epoch}, on the {} data",
                name.text("split")?
            ))
        }
        _ => None,
    }
}

/// An evaluation outside the search.
fn extra(of: Fields<'_>) -> Option<String> {
    let name = Fields(of.0.get("name")?);
    let (trial, epoch) = (name.number("trial")?, name.epoch("epoch")?);
    let split = name.text("split")?;
    Some(format!("an evaluation of trial {trial}, epoch {epoch}, on the {split} data"))
}

fn end(end: &Value) -> Option<String> {
    Some(match end.as_str() {
        Some("silent") => "its host was not heard of in time".to_owned(),
        Some("overdue") => "it made no progress in time".to_owned(),
        Some("revoked") => "it isn't needed any more, or its host was revoked".to_owned(),
        Some(_) => return None,
        None => {
            format!("its host gave it back: {}", Fields(end.get("given_back")?).text("reason")?)
        }
    })
}

fn outcome_text(kind: &str, outcome: Fields<'_>) -> Option<String> {
    match kind {
        "trained" => Some(format!("trained, {}", outcome.means("sums")?)),
        "evaluated" => Some("evaluated".to_owned()),
        "failed" => Some(format!("failed: {}", failure_text(outcome)?)),
        _ => None,
    }
}

fn failure_text(failure: Fields<'_>) -> Option<String> {
    let kind: FailureKind = serde_json::from_value(failure.0.get("kind")?.clone()).ok()?;
    let message = failure.text("message")?;
    Some(match kind {
        FailureKind::NonFinite => format!("the trial diverges: {message}"),
        FailureKind::OutOfMemory => format!("the memory wasn't enough: {message}"),
        FailureKind::Unsupported => format!("the machine's trainer doesn't support it: {message}"),
        FailureKind::WrongUnit => format!("the unit is wrong: {message}"),
        FailureKind::Trainer | FailureKind::Died | FailureKind::Stalled | FailureKind::Damaged => {
            message
        }
    })
}

fn leases(leases: &[u64]) -> String {
    let named: Vec<String> = leases.iter().map(u64::to_string).collect();
    match leases {
        [_] => format!("lease {}", named.join("")),
        _ => format!("leases {}", named.join(", ")),
    }
}

/// The text of an event that is a decision with its reason: a grant of a lease, or one of the search. `shares`: by which policy of the
/// job hosts divide their processors among its trials.
#[must_use]
pub fn decision(event: &EventView, shares: SharePolicy) -> Option<String> {
    if search::is_decision(&event.kind) || residency::is_decision(&event.kind) {
        return sentence(event);
    }
    let lease = Fields(&event.event);
    let (id, host, unit) = (lease.number("lease")?, lease.number("host")?, unit(lease)?);
    let why = lease.0.get("why")?.as_str()?;
    // Evaluations have an equal share.
    let has_policy = shares != SharePolicy::Equal && lease.0.get("unit")?.get("train").is_some();
    let shares = if has_policy { format!("; shares: {}", shares.name()) } else { String::new() };
    Some(format!("lease {id} to host {host}: {unit}: {why}{shares}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        spec::{First, Order},
        time::UnixMillis,
    };
    use serde_json::json;

    fn event(kind: &str, event: Value) -> EventView {
        EventView { position: 9, at: UnixMillis(0), kind: kind.into(), event }
    }

    #[test]
    fn a_grant_names_the_unit_the_host_and_the_reason() {
        let unit = json!({"train": {"job": 1, "trial": 2, "epoch": 0, "shard": 3, "from": 0}});
        let granted = json!({
            "lease": 7, "host": 4, "device": "cpu", "unit": unit, "then": [5], "base": 0, "why": "it is the first"
        });
        let granted = event("lease-granted", granted);
        let text = decision(&granted, SharePolicy::Equal).unwrap();
        assert_eq!(text, "lease 7 to host 4: train trial 2, epoch 1, shards 3, 5: it is the first");
        assert_eq!(
            sentence(&granted).unwrap(),
            "host 4 gets lease 7: train trial 2, epoch 1, shards 3, 5 (it is the first)"
        );
        let first = SharePolicy::First(First::new(Order::ShortestRemaining));
        assert_eq!(decision(&granted, first).unwrap(), format!("{text}; shares: srpt"));
        let name = json!({"trial": 1, "split": "test", "epoch": 2});
        let extra = json!({
            "lease": 8, "host": 4, "unit": {"extra": {"job": 1, "name": name}}, "base": 0, "why": "asked"
        });
        let text = decision(&event("lease-granted", extra), first).unwrap();
        assert_eq!(text, "lease 8 to host 4: evaluate trial 1, epoch 3, on the test data: asked");
        let ended = event("lease-ended", json!({"lease": 8, "end": "silent"}));
        assert_eq!(decision(&ended, first), None);
    }

    #[test]
    fn events_are_sentences_with_means_and_epochs_from_1() {
        let sums = json!({"rows": 40, "loss": 20.0, "correct": 30});
        let trained = json!({"base": 0, "sums": sums, "train_micros": 5});
        let failure = json!({"kind": "non-finite", "message": "the loss is NaN\nmore"});
        for (kind, fields, expected) in [
            (
                "evaluated",
                json!({"lease": 8, "epoch": 0, "valid": sums}),
                "epoch 1 was evaluated under lease 8: mean loss 0.5000, accuracy 0.7500",
            ),
            (
                "report-acknowledged",
                json!({"report": {"lease": 8, "outcome": {"trained": trained}}, "host": 2}),
                "host 2 reports lease 8: trained, mean loss 0.5000, accuracy 0.7500",
            ),
            (
                "unit-failed",
                json!({"lease": 8, "failure": failure}),
                "lease 8 failed: the trial diverges: the loss is NaN ...",
            ),
            (
                "lease-ended",
                json!({"lease": 8, "end": {"given_back": {"reason": "the client is stopping"}}}),
                "lease 8 ended: its host gave it back: the client is stopping",
            ),
            (
                "verified",
                json!({"confirmed": [1, 2], "refuted": [3]}),
                "hosts came to the same result under leases 1, 2; refuted: lease 3",
            ),
            (
                "trial-rolled-back",
                json!({"trial": 4, "epochs": 2, "why": "host 3 was refuted"}),
                "trial 4 went back to where it had trained 2 epochs: host 3 was refuted",
            ),
            (
                "rollback-asked",
                json!({"host": 3, "lost": 402}),
                "host 3 was refuted; to take back what nobody confirmed of its party would lose 41 % of the work, \
                 and waits for your word: `sojourn rollback`",
            ),
        ] {
            assert_eq!(sentence(&event(kind, fields)).unwrap(), expected);
        }
        let share =
            json!({"token": 4, "sha256": "", "grant": {"share": {"job": 1}}, "by": {"token": 2}});
        assert_eq!(
            sentence(&event("token-created", share)).unwrap(),
            "token 2 made link 4 to the page of job 1"
        );
        let revoked = json!({"token": 4, "job": 1, "by": "server"});
        assert_eq!(
            sentence(&event("token-revoked", revoked)).unwrap(),
            "the server's own token revoked link 4 to the page of job 1"
        );
        assert_eq!(sentence(&event("of-a-newer-server", json!({}))), None);
    }
}
