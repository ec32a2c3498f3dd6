//! Events as sentences for people, which answers carry beside the events themselves. A new event has its sentence here, or has none.

mod decision;
mod lease;
mod search;
mod text;

use crate::{By, Event, LeaseEnd, MergeFault, MergeMode, RequestedEvaluation};
use sojourn_protocol::{
    figures,
    residency::{Category, MoveKind},
    spec::SearchBudget,
    tokens::TokenGrant,
};
use text::{brief, epoch, means, shown};

impl Event {
    /// The event in words. None of those that concern no job's history, which only the journal has.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        Some(match self {
            Self::HostEnrolled { .. }
            | Self::HostRevoked { .. }
            | Self::HostBlocked { .. }
            | Self::HostUnblocked { .. }
            | Self::HostsSeen { .. }
            | Self::HostForgotten { .. }
            | Self::TokenQuotasSet { .. }
            | Self::TokenRotated { .. }
            | Self::TokenForgotten { .. }
            | Self::MachinesReported { .. }
            | Self::BlobPublished { .. }
            | Self::BlobCondemned { .. }
            | Self::BlobDoomed { .. }
            | Self::BlobDeleted { .. }
            | Self::TimeSkipped { .. } => return None,
            Self::TokenCreated { token, grant, by, .. } => match **grant {
                TokenGrant::PageLink { job } => {
                    format!("{} made link {token} to the page of job {job}", user(*by))
                }
                TokenGrant::Enrol { .. } | TokenGrant::Access { .. } => return None,
            },
            Self::TokenRevoked { token, job, by } => {
                let job = (*job)?;
                format!("{} revoked link {token} to the page of job {job}", user(*by))
            }
            Self::BlobLost { blob } => format!("the store has lost blob {blob}"),
            Self::JobSubmitted { job, spec, .. } => {
                format!("job {job} `{}` was submitted", brief(&spec.name))
            }
            Self::JobCancelled { job } => format!("job {job} was cancelled"),
            Self::JobPaused { job } => format!("job {job} was paused"),
            Self::JobResumed { job } => format!("job {job} was resumed"),
            Self::JobTrainingOver { job, grace, used_up } => {
                let what = match used_up {
                    Some(SearchBudget::Epochs(_)) => "its epochs",
                    Some(SearchBudget::Cost(_)) => "what it may cost",
                    None => "its time",
                };
                format!(
                    "job {job} has used up {what}: nothing more is trained, what is trained is evaluated for up to {grace}"
                )
            }
            Self::JobTimeUp { job } => {
                format!("the search of job {job} ends with what is evaluated")
            }
            Self::JobExtended { job, trials, epochs, named: _, by } => {
                search::extended(*job, trials, *epochs, *by)
            }
            Self::JobPlaced { job, priority, slot_share, max_hosts, budget, deadline } => {
                let most = shown(max_hosts.as_ref(), |most| format!(", at most {most} hosts"));
                let budget = shown(budget.as_ref(), |budget| format!(", a budget of {budget}"));
                let end = shown(deadline.as_ref(), |time| format!(", {time} to its end"));
                format!("job {job} has priority {priority}, share {slot_share}{most}{budget}{end}")
            }
            Self::JobNoted { job, note } if note.is_empty() => {
                format!("the note of job {job} was taken away")
            }
            Self::JobNoted { job, note } => format!("job {job} has the note: {}", brief(note)),
            Self::JobThinned { job } => format!(
                "job {job} lost its data and all checkpoints but the best model: the server keeps no more of old jobs"
            ),
            Self::JobDeleted { job } => format!("job {job} was deleted"),
            Self::LeaseGranted { lease, host, unit, then, speculative_for, why, .. } => {
                let first = speculative_for.as_ref();
                let second = shown(first, |first| format!(", beside lease {first}"));
                let unit = lease::unit(unit, then);
                format!("host {host} gets lease {lease}{second}: {unit} ({})", brief(why))
            }
            Self::LeaseEnded { lease, end } => format!("lease {lease} ended: {}", ended(end)),
            Self::ReportAcknowledged { report, host } => {
                let outcome = lease::outcome(&report.outcome);
                format!("host {host} reports lease {}: {outcome}", report.lease)
            }
            Self::Assimilated { lease, version, merged: None, .. } => {
                format!("the result of lease {lease} became version {version}")
            }
            Self::Assimilated { lease, version, merged: Some(merged), .. } => format!(
                "the result of lease {lease} was merged into version {version}: {} versions old, {} units in flight",
                merged.staleness, merged.in_flight
            ),
            Self::Evaluated { lease, epoch: of, valid, .. } => {
                format!("epoch {} was evaluated under lease {lease}: {}", epoch(*of), means(valid))
            }
            Self::Rejected { lease, reason, .. } => {
                format!("the result of lease {lease} was refused: {}", brief(reason))
            }
            Self::Superseded { lease } => {
                format!("the result of lease {lease} came too late to be used")
            }
            Self::UnitFailed { lease, failure } => {
                format!("lease {lease} failed: {}", lease::failure(failure))
            }
            Self::Challenged { lease } => {
                format!("the result of lease {lease} waits for other hosts to repeat it")
            }
            Self::Verified { confirmed, refuted } => {
                let refuted = match refuted.is_empty() {
                    true => String::new(),
                    false => format!("; refuted: {}", lease::named(refuted)),
                };
                format!("hosts came to the same result under {}{refuted}", lease::named(confirmed))
            }
            Self::Unverified { lease } => format!(
                "the result of lease {lease} was taken in unchecked: no other host of its numeric class is there"
            ),
            Self::TrialRolledBack { job: _, trial, epochs, why } => {
                let epochs = figures::counted(u64::from(*epochs), "epoch");
                let why = shown(why.as_deref(), |why| format!(": {}", brief(why)));
                format!("trial {trial} went back to where it had trained {epochs}{why}")
            }
            Self::RollbackAsked { job: _, host, lost } => format!(
                "host {host} was refuted; to take back what nobody confirmed of its party would lose {} % of the work, \
                 and waits for your word: `sojourn rollback`",
                lost.div_ceil(10)
            ),
            Self::TrialContinued { trial, epochs, why, by, .. } => {
                search::continued(*trial, *epochs, why, *by)
            }
            Self::TrialStopped { trial, why, by, .. } => search::stopped(*trial, why, *by),
            Self::TrialsAdded { job, trials, why, by, .. } => search::added(*job, trials, why, *by),
            Self::SearchExtended { job, trials, by } => {
                search::more_combinations(*job, *trials, *by)
            }
            Self::SearchEnded { job, why, by } => search::ended(*job, why, *by),
            Self::SpaceChanged { job, models, training, changed, why, by } => {
                let change = search::SpaceChange { models, training, changed };
                search::space_changed(*job, &change, why.as_deref(), *by)
            }
            Self::TrialPlaced { trial, priority, by, .. } => search::placed(*trial, *priority, *by),
            Self::TrialCategorized { job: _, trial, category, growth } => {
                let grows = figures::metric(*growth);
                match category {
                    Category::Progressing => format!("trial {trial} learns: growth {grows}"),
                    Category::Watching => format!("trial {trial} hardly learns: growth {grows}"),
                    Category::Converged => {
                        format!("trial {trial} seems to have converged: growth {grows}")
                    }
                }
            }
            Self::TrialMoved { job: _, trial, from, to, kind, from_load, to_load } => {
                let rounded = |load: f64| (load * 100.0).round() / 100.0;
                let (from_load, to_load) = (rounded(*from_load), rounded(*to_load));
                let moves = format!("trial {trial} moves from host {from} to host {to}");
                match kind {
                    _ if from == to => format!(
                        "trial {trial} stays on host {from}, which counts as its move: no host has a score below {from_load}"
                    ),
                    MoveKind::Speculative => format!(
                        "{moves}: it seems to have converged, others there learn, and the scores are {from_load} and {to_load}"
                    ),
                    MoveKind::Rebalance => format!(
                        "{moves}: all trials seem to have converged, and the hosts have {from_load} and {to_load} for their capacity"
                    ),
                    MoveKind::Remaining => {
                        format!("{moves}: there {from_load} s are left to do, and here {to_load} s")
                    }
                }
            }
            Self::TrialOrdered { job: _, trial, order, reason } => {
                let how = match order {
                    MergeMode::Hop => "trains one hop at a time",
                    MergeMode::Merging => "merges results as they arrive",
                    MergeMode::Draining => "stops merging: what is out is awaited",
                };
                let why = shown(reason.as_ref(), |MergeFault::LossRose { epoch, loss, best }| {
                    let (loss, best) = (figures::metric(*loss), figures::metric(*best));
                    format!(
                        ": after epoch {epoch} the validation loss was {loss}, and {best} before"
                    )
                });
                format!("trial {trial} {how}{why}")
            }
            Self::TrialFailed { job: _, trial, error } => {
                format!("trial {trial} failed: {}", brief(error))
            }
            Self::TrialRetried { job: _, trial, why, by } => search::retried(*trial, why, *by),
            Self::ExtraAsked { job: _, name } => format!("{} was asked for", evaluation(*name)),
            Self::ExtraEvaluated { lease, sums } => {
                format!("the evaluation of lease {lease} is done: {}", means(sums))
            }
            Self::ExtraFailed { job: _, name, error } => {
                format!("{} failed: {}", evaluation(*name), brief(error))
            }
        })
    }
}

/// The user who did it, by the token.
fn user(by: Option<By>) -> String {
    by.map_or_else(|| "a user".to_owned(), token)
}

/// The token of a user.
fn token(by: By) -> String {
    match by {
        By::Server => "the server's own token".to_owned(),
        By::Token(token) => format!("token {token}"),
    }
}

/// An evaluation outside the search.
fn evaluation(RequestedEvaluation { trial, split, epoch: of }: RequestedEvaluation) -> String {
    let (epoch, split) = (epoch(of), split.name());
    format!("an evaluation of trial {trial}, epoch {epoch}, on the {split} data")
}

fn ended(end: &LeaseEnd) -> String {
    match end {
        LeaseEnd::Silent => "its host was not heard of in time".to_owned(),
        LeaseEnd::Overdue => "it made no progress in time".to_owned(),
        LeaseEnd::Revoked => "it isn't needed any more, or its host was revoked".to_owned(),
        LeaseEnd::GivenBack { reason } => format!("its host gave it back: {}", brief(reason)),
    }
}

#[cfg(test)]
mod tests;
