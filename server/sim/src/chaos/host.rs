//! A virtual host: the agent that a daemon runs, on a machine with a disk, slots and an outbox.
//!
//! [`Agent`] decides what the host does with its leases. Here is what a daemon has beside it: blobs and results on the
//! disk, units in slots, and what a unit comes to. The world carries the agent's actions out.

use super::{fate::UnitFate, hostile::Trick, liar::Lies, scenario::WRONG_WIDTH, training};
use crate::Corruption;
use sojourn_client_core::{
    Agent, AgentConfig, DeviceSlots, Event, Micros, ResultFacts, StoredResult, TransferView,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId, TrialId},
    inventory::{CPU, Device, Inventory, Links},
    metrics::{ByClass, Confusion},
    quantity::SaturatingFrom as _,
    report::{Evaluated, Failure, FailureKind, Outcome, Report, Trained},
    spec::Architecture,
    time::{Millis, UnixMillis},
    trainer::{Progress, UsageSample},
    unit::{Lease, Unit},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How long the server may hold a request for work.
const ASK_WAIT: Micros = Micros::from_secs(5);
/// The longest pause between two attempts.
const MAX_RETRY_PAUSE: Micros = Micros::from_secs(5);
/// The shortest pause after a fault, and how long work waits for results of an earlier run.
const SHORT_PAUSE: Micros = Micros::from_secs(1);

/// A unit in a slot.
#[derive(Debug)]
struct Running {
    lease: Box<Lease>,
    /// The number of batches after which the unit ends.
    batches: u32,
    since: UnixMillis,
    /// A shard of a later hop that it can't go on without.
    awaits: Option<Digest>,
}

/// The part of a host that a crash leaves.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// Whole blobs.
    cached: BTreeSet<Digest>,
    /// Results whose reports the server may not have, or whose end isn't known.
    outbox: BTreeMap<LeaseId, Report>,
}

impl TransferView for Disk {
    fn has(&self, blob: &Digest) -> bool {
        self.cached.contains(blob)
    }

    fn fetched(&self, _: &Digest) -> u64 {
        0
    }

    fn sent(&self, _: LeaseId) -> u64 {
        0
    }

    fn has_room(&self, _: u64) -> bool {
        true
    }

    fn capacity(&self) -> u64 {
        u64::MAX
    }
}

/// A machine with the agent that runs on it.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    class: Digest,
    millis_per_batch: u64,
    /// Bytes per second of its network, as it says.
    pub(crate) bandwidth: Option<u64>,
    /// The way in which the host lies about whatever it trains; `None` where it is honest.
    pub(crate) lie: Option<Corruption>,
    /// When it lies, where it does.
    pub(crate) lies: Lies,
    /// Hops that it has reported.
    hops: u32,
    /// The way in which the host holds others up; `None` where it doesn't.
    pub(crate) trick: Option<Trick>,
    /// Bytes of memory that a unit may take, where it says so.
    pub(crate) memory: Option<u64>,
    /// The first checkpoint of each trial that the host made in a hop about which it lies.
    first: BTreeMap<TrialId, Digest>,
    /// Counts its starts. What was scheduled for an earlier one is void.
    pub(crate) boot: u64,
    /// The time until which the host's network is cut.
    pub(crate) silent_until: UnixMillis,
    config: Arc<AgentConfig>,
    pub(crate) agent: Agent,
    pub(crate) disk: Disk,
    running: BTreeMap<LeaseId, Running>,
    /// The number of units received whose base is a result of this host that isn't acknowledged yet.
    pub(crate) went_on: u64,
}

impl Host {
    pub(crate) fn new(id: HostId, class: Digest, slots: u32, millis_per_batch: u64) -> Self {
        let config = Arc::new(AgentConfig {
            ask_wait: ASK_WAIT,
            max_retry_pause: MAX_RETRY_PAUSE,
            min_cooldown: SHORT_PAUSE,
            head_start: SHORT_PAUSE,
            ..AgentConfig::new(vec![DeviceSlots { name: CPU.into(), slots }])
        });
        Self {
            id,
            class,
            millis_per_batch,
            bandwidth: None,
            lie: None,
            lies: Lies::default(),
            hops: 0,
            trick: None,
            memory: None,
            first: BTreeMap::new(),
            boot: 0,
            silent_until: UnixMillis(0),
            agent: Agent::new(Arc::clone(&config), id.0, Vec::new()),
            config,
            disk: Disk::default(),
            running: BTreeMap::new(),
            went_on: 0,
        }
    }

    /// Power is cut. What is on the disk stays; a new agent finds it there.
    pub(crate) fn crash(&mut self) {
        self.boot += 1;
        self.running.clear();
        let stored = |report: &Report| StoredResult {
            lease: report.lease,
            heartbeat_interval: SHORT_PAUSE,
            has_checkpoint: checkpoint_of(report).is_some(),
        };
        let restored = self.disk.outbox.values().map(stored).collect();
        // Another start has other pauses.
        let seed = self.id.0 ^ (self.boot << 32);
        self.agent = Agent::new(Arc::clone(&self.config), seed, restored);
    }

    pub(crate) fn is_busy(&self) -> bool {
        !(self.agent.leases().is_empty() && self.disk.outbox.is_empty())
    }

    /// The inventory of what the host lends, where the server wants one.
    pub(crate) fn inventory(&self) -> Option<Inventory> {
        self.agent.sends_inventory().then(|| {
            let device = Device { memory: self.memory, ..Device::new(CPU, self.class, 1e9) };
            let honest = Inventory {
                cached: self.disk.cached.iter().copied().collect(),
                devices: vec![device],
                client: "sim".into(),
                links: Links { download: self.bandwidth, upload: self.bandwidth },
                cache: None,
                disk_is_low: false,
            };
            match self.trick {
                Some(trick) => trick.inventory(self.id, honest),
                None => honest,
            }
        })
    }

    /// Counts leases that begin with a result that isn't acknowledged yet.
    pub(crate) fn count_leases(&mut self, leases: &[Lease]) {
        let acknowledged = self.agent.acknowledged();
        let open = self.disk.outbox.values().filter(|report| !acknowledged.contains(&report.lease));
        let made: Vec<BlobRef> = open.filter_map(checkpoint_of).collect();
        let new = leases.iter().filter(|lease| self.agent.lease(lease.id).is_none());
        let goes_on = |lease: &Lease| match &lease.unit {
            Unit::Train(hop) => hop.base.blob().is_some_and(|base| made.contains(&base)),
            Unit::Evaluate(_) => false,
        };
        self.went_on += new.map(|lease| u64::from(goes_on(lease))).sum::<u64>();
    }

    pub(crate) fn report(&self, lease: LeaseId) -> Option<&Report> {
        self.disk.outbox.get(&lease)
    }

    pub(crate) fn delete_result(&mut self, lease: LeaseId) {
        self.disk.outbox.remove(&lease);
    }

    pub(crate) fn cache(&mut self, blob: Digest) {
        self.disk.cached.insert(blob);
    }

    pub(crate) fn evict(&mut self, blob: &Digest) {
        self.disk.cached.remove(blob);
    }

    /// Begins a unit; how long it takes.
    pub(crate) fn start(&mut self, lease: Box<Lease>, now: UnixMillis) -> Millis {
        let batches = match &lease.unit {
            unit if is_wrong(unit) => 1,
            Unit::Train(hop) => hop.to_train(),
            Unit::Evaluate(_) => 1,
        };
        let takes = self.trick.and_then(Trick::takes).unwrap_or(self.time(batches));
        self.running.insert(lease.id, Running { lease, batches, since: now, awaits: None });
        takes
    }

    fn time(&self, batches: u32) -> Millis {
        Millis(u64::from(batches) * self.millis_per_batch)
    }

    pub(crate) fn kill(&mut self, lease: LeaseId) {
        self.running.remove(&lease);
    }

    /// A unit is to end after the batch that it is at; in how long that is.
    pub(crate) fn stop_after_batch(&mut self, lease: LeaseId, now: UnixMillis) -> Option<Millis> {
        if self.trick == Some(Trick::Trickles) {
            return None;
        }
        let (millis_per_batch, unit) = (self.millis_per_batch, self.running.get_mut(&lease)?);
        // Without the shard that it waits for, its first batch is what it is sure to have.
        let begun = match unit.awaits.take() {
            Some(_) => 1,
            None => batches_in(now - unit.since, millis_per_batch).saturating_add(1),
        };
        unit.batches = unit.batches.min(begun);
        let ends = unit.since + Millis(u64::from(unit.batches) * millis_per_batch);
        Some(if ends > now { ends - now } else { Millis(0) })
    }

    /// The first missing blob of a unit that is due to end, if any; the unit then waits for it.
    pub(crate) fn missing_shard(&mut self, lease: LeaseId) -> Option<Digest> {
        let unit = self.running.get_mut(&lease)?;
        let blobs = unit.lease.unit.blobs();
        let missing = blobs.iter().find(|blob| !self.disk.cached.contains(&blob.sha256))?;
        unit.awaits = Some(missing.sha256);
        Some(missing.sha256)
    }

    /// Did a unit wait for this shard?
    pub(crate) fn hand_over(&mut self, lease: LeaseId, shard: Digest) -> bool {
        let unit = self.running.get_mut(&lease);
        unit.is_some_and(|unit| unit.awaits.take_if(|awaited| *awaited == shard).is_some())
    }

    /// The reported progress of each unit and, for hops, a made-up loss.
    pub(crate) fn progress(&self, now: UnixMillis) -> Vec<Event> {
        let progress = |(lease, unit): (&LeaseId, &Running)| {
            let done = batches_in(now - unit.since, self.millis_per_batch).min(unit.batches);
            let honest = Progress { done, of: unit.batches };
            let said = self.trick.map(|trick| trick.progress(now - unit.since, honest));
            let loss =
                matches!(unit.lease.unit, Unit::Train(_)).then(|| training::loss(*lease, done));
            let sample = UsageSample { loss, ..UsageSample::default() };
            let usage = Event::Usage(*lease, sample, 1.0);
            [Event::Progress(*lease, said.unwrap_or(honest)), usage]
        };
        self.running.iter().flat_map(progress).collect()
    }

    /// A unit ends. Its result is on the disk from now on; none where it isn't in a slot any more.
    pub(crate) fn finish(&mut self, id: LeaseId, fate: UnitFate) -> Option<ResultFacts> {
        let Running { lease, batches, .. } = self.running.remove(&id)?;
        let failed =
            |kind, message: &str| Outcome::Failed(Failure { kind, message: message.into() });
        let outcome = match (fate, &lease.unit) {
            (_, unit) if is_wrong(unit) => failed(FailureKind::WrongUnit, "no such operator"),
            (UnitFate::Fails, _) => failed(FailureKind::Trainer, "the trainer failed"),
            (UnitFate::Diverges, Unit::Train(_)) => {
                failed(FailureKind::NonFinite, "the loss is NaN")
            }
            (_, Unit::Evaluate(evaluation)) => {
                let honest = training::evaluated(evaluation);
                let lies = self.lie.is_some() && self.lies.in_evaluation(self.hops);
                Outcome::Evaluated(if lies { flattered(honest) } else { honest })
            }
            (UnitFate::Done | UnitFate::Part | UnitFate::Lies, Unit::Train(hop)) => {
                // On any of its shards.
                let some = 1 + u32::saturating_from(id.0 % u64::from(batches));
                let done = if fate == UnitFate::Part { some } else { batches };
                let end = hop.position_after(done);
                let rows = u32::saturating_from(hop.rows_to(end).unwrap_or(0));
                let mut trained = Trained {
                    base: hop.base.version(),
                    checkpoint: training::train(hop, end, lease.upload_bytes),
                    end,
                    sums: training::sums(&Digest::of(b"sums"), rows),
                    train_micros: u64::from(done) * self.millis_per_batch * 1000,
                };
                if fate == UnitFate::Lies {
                    match id.0 % 5 {
                        0 => trained.base = trained.base.next(),
                        1 => trained.end.step += 1,
                        2 => trained.end.shard = trained.end.shard.next(),
                        3 => trained.sums.rows += 1,
                        _ => trained.checkpoint.bytes += 1,
                    }
                }
                let given = hop.base.blob().filter(|_| self.lies == Lies::Copies);
                trained.checkpoint.sha256 = match given.filter(|_| self.lie.is_some()) {
                    Some(given) => given.sha256,
                    None => self.claimed(hop.trial, trained.checkpoint.sha256),
                };
                self.hops += 1;
                self.disk.cached.insert(trained.checkpoint.sha256);
                Outcome::Trained(trained)
            }
        };
        let report = Report { lease: id, outcome };
        let checkpoint = checkpoint_of(&report);
        self.disk.outbox.insert(id, report);
        // A partial result sets `continues_from` too, unlike in the real client.
        Some(ResultFacts { has_checkpoint: checkpoint.is_some(), continues_from: checkpoint })
    }

    /// The checkpoint that the host says it has made.
    fn claimed(&mut self, trial: TrialId, made: Digest) -> Digest {
        let Some(lie) = self.lie.filter(|_| self.lies.in_hop(self.hops)) else { return made };
        let first = self.first.get(&trial).copied();
        let other = self.first.iter().find(|(other, _)| **other != trial);
        let other = other.map(|(_, made)| *made);
        self.first.entry(trial).or_insert(made);
        // As wrong each time: two of its kind would agree.
        let altered = Digest(made.0.map(|byte| byte ^ 0xff));
        match lie {
            Corruption::Old => first.unwrap_or(altered),
            Corruption::Foreign => other.unwrap_or(altered),
            Corruption::Nan | Corruption::SignFlip | Corruption::Scaled | Corruption::Noise => {
                altered
            }
        }
    }
}

/// A lie about an evaluation: every row was right.
fn flattered(mut evaluated: Evaluated) -> Evaluated {
    for sums in &mut evaluated.shards {
        sums.correct = Some(sums.rows);
    }
    let rows = evaluated.sums().rows;
    let matrix = Confusion(vec![vec![rows, 0], vec![0, 0]]);
    evaluated.by_class = evaluated.by_class.map(|by_class| match by_class {
        ByClass::Totals(_) => ByClass::Totals(matrix.totals()),
        ByClass::Confusion(_) => ByClass::Confusion(matrix),
    });
    evaluated
}

/// Whole batches in a time.
fn batches_in(time: Millis, millis_per_batch: u64) -> u32 {
    u32::saturating_from(time.0.checked_div(millis_per_batch).unwrap_or(0))
}

/// The checkpoint that goes with a report.
pub(crate) fn checkpoint_of(report: &Report) -> Option<BlobRef> {
    match &report.outcome {
        Outcome::Trained(trained) => Some(trained.checkpoint),
        Outcome::Evaluated(_) | Outcome::Failed(_) => None,
    }
}

/// Is a unit one of those that every trainer refuses?
fn is_wrong(unit: &Unit) -> bool {
    unit.context().config.model == Architecture::mlp([WRONG_WIDTH])
}
