//! Features beyond the first version of the API: the client's own, and those of the server as its last answer named them. A
//! server may be replaced by an older or a newer one at any time.

use reqwest::header::HeaderMap;
use sojourn_protocol::{
    PROTOCOL_HEADER,
    api::{
        AWAITING_SHARDS, DELTA_UPLOADS, DISK_RESERVES, ENGINES, FEATURES_HEADER, HOST_SHARES, Held,
        HeldState, PRODUCED_CHECKPOINTS, SEVERAL_CLASSES, TRAIN_LOSSES, UNIT_USAGE,
        UNSUPPORTED_UNITS, UPLOAD_PROGRESS, WRONG_UNITS,
    },
    direct::DIRECT_UPLOADS,
    inventory::Inventory,
    report::{Failure, FailureKind, Outcome, Report},
};

/// The features that the client says that it has.
pub(super) const OWN: &[&str] = &[ENGINES, HOST_SHARES];

/// The features that this client can use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Features {
    awaiting_shards: bool,
    disk_reserves: bool,
    engines: bool,
    produced_checkpoints: bool,
    several_classes: bool,
    train_losses: bool,
    unit_usage: bool,
    unsupported_units: bool,
    upload_progress: bool,
    wrong_units: bool,
    /// The server accepts checkpoints as deltas.
    pub(super) delta_uploads: bool,
    /// The server lets hosts put checkpoints in its store themselves.
    pub(super) direct_uploads: bool,
}

impl Features {
    /// The features that an answer names; `None` if the answer is a proxy's and not the server's own.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        headers.get(PROTOCOL_HEADER)?;
        let names = headers.get(FEATURES_HEADER).and_then(|value| value.to_str().ok());
        let has = |wanted| names.unwrap_or_default().split(',').any(|name| name.trim() == wanted);
        Some(Self {
            awaiting_shards: has(AWAITING_SHARDS),
            disk_reserves: has(DISK_RESERVES),
            engines: has(ENGINES),
            produced_checkpoints: has(PRODUCED_CHECKPOINTS),
            several_classes: has(SEVERAL_CLASSES),
            train_losses: has(TRAIN_LOSSES),
            unit_usage: has(UNIT_USAGE),
            unsupported_units: has(UNSUPPORTED_UNITS),
            upload_progress: has(UPLOAD_PROGRESS),
            wrong_units: has(WRONG_UNITS),
            delta_uploads: has(DELTA_UPLOADS),
            direct_uploads: has(DIRECT_UPLOADS),
        })
    }

    /// Held leases, reduced to what the server understands.
    pub(super) fn reduce(self, holding: &[Held]) -> Vec<Held> {
        let reduce = |state| match state {
            HeldState::Sending { .. } if !self.upload_progress => HeldState::Finished,
            HeldState::Awaiting { done, of, .. } if !self.awaiting_shards => {
                HeldState::Running { done, of }
            }
            _ => state,
        };
        let reduced = holding.iter().map(|held| Held {
            result: held.result.filter(|_| self.produced_checkpoints),
            // Only where its lease says so: the server knows of CPU shares.
            cpu_share: held.cpu_share,
            losses: held.losses.filter(|_| self.train_losses),
            usage: held.usage.filter(|_| self.unit_usage),
            ..Held::new(held.lease, reduce(held.state))
        });
        reduced.collect()
    }

    /// An inventory, reduced to what the server understands.
    pub(super) fn reduce_inventory(self, inventory: &Inventory) -> Inventory {
        let mut reduced = inventory.clone();
        reduced.disk_is_low &= self.disk_reserves;
        for device in &mut reduced.devices {
            if !self.several_classes {
                device.classes = Vec::new();
            }
            if !self.engines {
                device.engines = Vec::new();
            }
            if !self.unsupported_units {
                device.unsupported = Vec::new();
            }
        }
        reduced
    }

    /// A report, reduced to what the server understands.
    pub(super) fn reduce_report(self, report: &Report) -> Report {
        let mut reduced = report.clone();
        if let Outcome::Failed(Failure { kind, .. }) = &mut reduced.outcome {
            let is_known = match kind {
                FailureKind::Unsupported => self.unsupported_units,
                FailureKind::WrongUnit => self.wrong_units,
                _ => true,
            };
            if !is_known {
                *kind = FailureKind::Trainer;
            }
        }
        reduced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::ids::LeaseId;

    #[test]
    fn a_server_hears_of_no_failure_that_it_does_not_know() {
        let reduced = |features: Features, kind| {
            let failure = Failure { kind, message: "why".into() };
            let report = Report { lease: LeaseId(1), outcome: Outcome::Failed(failure) };
            match features.reduce_report(&report).outcome {
                Outcome::Failed(failure) => failure.kind,
                other => panic!("{other:?}"),
            }
        };
        let old = Features::default();
        let new = Features { unsupported_units: true, wrong_units: true, ..old };
        for kind in [FailureKind::WrongUnit, FailureKind::Unsupported] {
            assert_eq!(reduced(old, kind), FailureKind::Trainer);
            assert_eq!(reduced(new, kind), kind);
        }
        assert_eq!(reduced(old, FailureKind::Died), FailureKind::Died);
    }
}
