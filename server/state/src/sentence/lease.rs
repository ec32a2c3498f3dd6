//! Leases in words: their units, outcomes and failures.

use super::text::{brief, epoch, means};
use crate::UnitKey;
use sojourn_protocol::{
    figures,
    ids::{LeaseId, ShardId},
    report::{Failure, FailureKind, Outcome},
};

/// The work that a lease is for, `then` with the shards that follow: `train trial 2, epoch 1, shards 3 and 5`.
pub(super) fn unit(unit: &UnitKey, then: &[ShardId]) -> String {
    match unit {
        UnitKey::Train { job: _, trial, epoch: of, shard, from } => {
            let shards = figures::shards(*shard, then);
            let from = match from {
                0 => String::new(),
                from => format!(" from batch {from} on"),
            };
            format!("train trial {trial}, epoch {}, {shards}{from}", epoch(*of))
        }
        UnitKey::Evaluate { job: _, trial, epoch: of } => {
            format!("evaluate trial {trial}, epoch {}", epoch(*of))
        }
        UnitKey::Extra { job: _, name } => format!(
            "evaluate trial {}, epoch {}, on the {} data",
            name.trial,
            epoch(name.epoch),
            name.split.name()
        ),
    }
}

pub(super) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Trained(trained) => format!("trained, {}", means(&trained.sums)),
        Outcome::Evaluated(_) => "evaluated".to_owned(),
        Outcome::Failed(of) => format!("failed: {}", failure(of)),
    }
}

pub(super) fn failure(Failure { kind, message }: &Failure) -> String {
    let message = brief(message);
    match kind {
        FailureKind::NonFinite => format!("the trial diverges: {message}"),
        FailureKind::OutOfMemory => format!("the memory wasn't enough: {message}"),
        FailureKind::Unsupported => format!("the machine's trainer doesn't support it: {message}"),
        FailureKind::WrongUnit => format!("the unit is wrong: {message}"),
        FailureKind::Trainer | FailureKind::Died | FailureKind::Stalled | FailureKind::Damaged => {
            message
        }
    }
}

/// `lease 3`, or `leases 3, 4`.
pub(super) fn named(leases: &[LeaseId]) -> String {
    let named: Vec<String> = leases.iter().map(LeaseId::to_string).collect();
    match leases {
        [_] => format!("lease {}", named.join("")),
        _ => format!("leases {}", named.join(", ")),
    }
}
