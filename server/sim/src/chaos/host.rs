//! A virtual client: holds leases, runs units in its slots, keeps results until they have ended.

use super::training;
use crate::Lie;
use sojourn_protocol::{
    api::{HeartbeatAnswer, Held, HeldState, WorkAnswer, WorkRequest},
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId, TrialId},
    inventory::{CPU, Demand, Device, Inventory, Links},
    quantity::SaturatingFrom as _,
    report::{Failure, FailureKind, Outcome, Report, ReportState, Trained},
    time::{Millis, UnixMillis},
    unit::{Lease, Unit},
};
use std::collections::{BTreeMap, BTreeSet};

/// How a unit is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    Part,
    Fails,
    Explodes,
    Lies,
}

/// A unit in a slot.
#[derive(Debug)]
struct Running {
    lease: Lease,
    batches: u32,
    since: UnixMillis,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) class: Digest,
    pub(crate) slots: u32,
    pub(crate) millis_per_batch: u64,
    /// Bytes per second of its line, as it says.
    pub(crate) line: Option<u64>,
    /// What it says of whatever it trains.
    pub(crate) lie: Option<Lie>,
    /// What it came to first with each trial.
    first: BTreeMap<TrialId, Digest>,
    /// Counts its starts; what was scheduled for an earlier one is void.
    pub(crate) boot: u64,
    /// Says and hears nothing until then.
    pub(crate) silent_until: UnixMillis,
    /// When its open ask is given up.
    pub(crate) ask_until: Option<UnixMillis>,
    send_inventory: bool,
    waiting: BTreeMap<LeaseId, Lease>,
    running: BTreeMap<LeaseId, Running>,
    cached: BTreeSet<Digest>,
    /// On its disk: survives a crash.
    outbox: BTreeMap<LeaseId, (Report, bool)>,
    /// Units that it got while the result that they go on from was on its way.
    pub(crate) went_on: u64,
}

impl Host {
    pub(crate) fn new(id: HostId, class: Digest, slots: u32, millis_per_batch: u64) -> Self {
        Self {
            id,
            class,
            slots,
            millis_per_batch,
            line: None,
            lie: None,
            first: BTreeMap::new(),
            boot: 0,
            silent_until: UnixMillis(0),
            ask_until: None,
            send_inventory: true,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            cached: BTreeSet::new(),
            outbox: BTreeMap::new(),
            went_on: 0,
        }
    }

    /// Power is cut; what is on disk stays. It is back at `until`.
    pub(crate) fn crash(&mut self, until: UnixMillis) {
        self.boot += 1;
        self.silent_until = until;
        self.ask_until = None;
        self.send_inventory = true;
        self.waiting.clear();
        self.running.clear();
    }

    pub(crate) fn request(&self, now: UnixMillis) -> WorkRequest {
        let running = u32::saturating_from(self.running.len());
        let waiting = u32::saturating_from(self.waiting.len());
        let idle = self.slots.saturating_sub(running + waiting);
        let inventory = self.send_inventory.then(|| Inventory {
            cached: self.cached.iter().copied().collect(),
            devices: vec![Device::new(CPU, self.class, 1e9)],
            client: "sim".into(),
            links: Links { download: self.line, upload: self.line },
            cache: None,
        });
        WorkRequest {
            demand: vec![Demand {
                device: CPU.into(),
                slots: self.slots,
                idle,
                wanted: (2 * self.slots).saturating_sub(running + waiting),
            }],
            holding: self.holding(now),
            reported: self.reported(),
            wait: Millis::from_secs(5),
            inventory,
        }
    }

    pub(crate) fn holding(&self, now: UnixMillis) -> Vec<Held> {
        let held = |state: HeldState| move |lease: &LeaseId| Held::new(*lease, state);
        let finished = self.outbox.iter().filter(|(_, (_, acknowledged))| !acknowledged);
        let running = self.running.iter().map(|(lease, running)| {
            let of = running.batches;
            let done = (now - running.since).0.checked_div(self.millis_per_batch).unwrap_or(0);
            let done = u32::saturating_from(done).min(of);
            Held::new(*lease, HeldState::Running { done, of })
        });
        self.waiting
            .keys()
            .map(held(HeldState::Waiting))
            .chain(running)
            .chain(finished.map(|(lease, (report, _))| Held {
                made: made_by(report),
                ..Held::new(*lease, HeldState::Finished)
            }))
            .collect()
    }

    pub(crate) fn reported(&self) -> Vec<LeaseId> {
        let acknowledged = self.outbox.iter().filter(|(_, (_, acknowledged))| *acknowledged);
        acknowledged.map(|(lease, _)| *lease).collect()
    }

    pub(crate) fn is_busy(&self) -> bool {
        !(self.waiting.is_empty() && self.running.is_empty() && self.outbox.is_empty())
    }

    pub(crate) fn heard_work(&mut self, answer: &WorkAnswer) {
        self.ask_until = None;
        self.send_inventory = answer.send_inventory;
        for lease in &answer.leases {
            let known = self.running.contains_key(&lease.id) || self.outbox.contains_key(&lease.id);
            if !known {
                self.went_on += u64::from(self.goes_on(lease));
                self.cached.extend(lease.unit.blobs().iter().map(|blob| blob.sha256));
                self.waiting.insert(lease.id, lease.clone());
            }
        }
        self.drop_leases(&answer.drop);
        for report in &answer.reports {
            self.heard_state(report.lease, &report.state);
        }
    }

    /// Does a lease begin with what isn't acknowledged yet?
    fn goes_on(&self, lease: &Lease) -> bool {
        let Unit::Train(hop) = &lease.unit else { return false };
        let made = self.outbox.values().filter(|(_, acknowledged)| !acknowledged);
        hop.base.blob().is_some_and(|base| {
            made.filter_map(|(report, _)| made_by(report)).any(|made| made == base)
        })
    }

    pub(crate) fn heard_heartbeat(&mut self, answer: &HeartbeatAnswer) {
        self.drop_leases(&answer.drop);
        for report in &answer.reports {
            self.heard_state(report.lease, &report.state);
        }
    }

    pub(crate) fn heard_state(&mut self, lease: LeaseId, state: &ReportState) {
        match state {
            ReportState::Ended(_) => {
                self.outbox.remove(&lease);
            }
            ReportState::Acknowledged => {
                if let Some((_, acknowledged)) = self.outbox.get_mut(&lease) {
                    *acknowledged = true;
                }
            }
        }
    }

    pub(crate) fn forget(&mut self, lease: LeaseId) {
        self.drop_leases(&[lease]);
    }

    fn drop_leases(&mut self, leases: &[LeaseId]) {
        for lease in leases {
            self.waiting.remove(lease);
            self.running.remove(lease);
            self.outbox.remove(lease);
        }
    }

    /// Starts what fits; says what was started and how long it takes.
    pub(crate) fn start_units(&mut self, now: UnixMillis) -> Vec<(LeaseId, Millis)> {
        let mut started = Vec::new();
        while u32::try_from(self.running.len()).is_ok_and(|running| running < self.slots)
            && let Some((id, lease)) = self.waiting.pop_first()
        {
            let batches = match &lease.unit {
                Unit::Train(hop) => hop.to_train(),
                Unit::Evaluate(_) => 1,
            };
            started.push((id, Millis(u64::from(batches) * self.millis_per_batch)));
            self.running.insert(id, Running { lease, batches, since: now });
        }
        started
    }

    /// A unit ends; its report is on disk from now on.
    pub(crate) fn finish(&mut self, id: LeaseId, fate: Fate) {
        let Some(Running { lease, .. }) = self.running.remove(&id) else { return };
        let failed =
            |kind, message: &str| Outcome::Failed(Failure { kind, message: message.into() });
        let outcome = match (fate, &lease.unit) {
            (Fate::Fails, _) => failed(FailureKind::Trainer, "the trainer failed"),
            (Fate::Explodes, Unit::Train(_)) => failed(FailureKind::NonFinite, "the loss is NaN"),
            (_, Unit::Evaluate(evaluation)) => Outcome::Evaluated(training::evaluated(evaluation)),
            (Fate::Done | Fate::Part | Fate::Lies, Unit::Train(hop)) => {
                // On any of its shards.
                let some = 1 + u32::saturating_from(id.0 % u64::from(hop.to_train()));
                let done = if fate == Fate::Part { some } else { hop.to_train() };
                let end = hop.position_after(done);
                let rows = u32::saturating_from(hop.rows_to(end).unwrap_or(0));
                let mut trained = Trained {
                    base: hop.base.version(),
                    checkpoint: training::train(hop, end, lease.upload_bytes),
                    end,
                    sums: training::sums(&Digest::of(b"sums"), rows),
                    train_micros: u64::from(done) * self.millis_per_batch * 1000,
                };
                if fate == Fate::Lies {
                    match id.0 % 5 {
                        0 => trained.base = trained.base.next(),
                        1 => trained.end.step += 1,
                        2 => trained.end.shard = trained.end.shard.next(),
                        3 => trained.sums.rows += 1,
                        _ => trained.checkpoint.bytes += 1,
                    }
                }
                trained.checkpoint.sha256 = self.said(hop.trial, trained.checkpoint.sha256);
                self.cached.insert(trained.checkpoint.sha256);
                Outcome::Trained(trained)
            }
        };
        self.outbox.insert(id, (Report { lease: id, outcome }, false));
    }

    /// What it says that it has come to.
    fn said(&mut self, trial: TrialId, made: Digest) -> Digest {
        let Some(lie) = self.lie else { return made };
        let first = self.first.get(&trial).copied();
        let other = self.first.iter().find(|(other, _)| **other != trial);
        let other = other.map(|(_, made)| *made);
        self.first.entry(trial).or_insert(made);
        // As wrong each time: two of its kind would agree.
        let altered = Digest(made.0.map(|byte| byte ^ 0xff));
        match lie {
            Lie::Old => first.unwrap_or(altered),
            Lie::Foreign => other.unwrap_or(altered),
            Lie::Nan | Lie::SignFlip | Lie::Scaled | Lie::Noise => altered,
        }
    }

    /// Results that the server hasn't acknowledged.
    pub(crate) fn to_report(&self) -> Vec<Report> {
        let open = self.outbox.values().filter(|(_, acknowledged)| !acknowledged);
        open.map(|(report, _)| report.clone()).collect()
    }
}

/// What a hop's result is, as far as the trial goes on from that: a part is said to be one, too.
fn made_by(report: &Report) -> Option<BlobRef> {
    match &report.outcome {
        Outcome::Trained(trained) => Some(trained.checkpoint),
        Outcome::Evaluated(_) | Outcome::Failed(_) => None,
    }
}
