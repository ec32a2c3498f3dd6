//! The invariants of DESIGN section 5, each with its id and one definition; property tests, the
//! simulator and debug builds share them. (D1, determinism, is a property of runs: its test is in
//! `tests/`.)

use crate::{
    core::Core,
    event::UnitKey,
    index::RemainingWorkIndex,
    state::{BlobStatus, Job, Lease, Open, PastState, Trial},
};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, LeaseId, ShardId, TrialId},
    position::Position,
    quantity::{SaturatingFrom as _, to_usize},
};
use std::collections::{BTreeMap, BTreeSet};

/// An invariant that doesn't hold, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invariant {id} is violated: {what}")]
pub struct Violation {
    /// `H1`, `H2`, ...
    pub id: &'static str,
    /// What is wrong.
    pub what: String,
}

fn holds(id: &'static str, true_: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if true_ { Ok(()) } else { Err(Violation { id, what: what() }) }
}

impl Core {
    /// All invariants, over the whole state.
    ///
    /// # Errors
    /// The first [`Violation`].
    pub fn check_invariants(&self) -> Result<(), Violation> {
        for job in self.state.jobs.values() {
            for trial in &job.trials {
                completeness(job, trial)?;
                self.isolation(trial)?;
            }
            holds("L3", job.open == Open::of(&job.trials), || {
                format!("the index of job {}'s open units differs from a recount", job.id)
            })?;
            holds("L3", self.ranks_agree(job), || {
                format!("the ranks of job {}'s trials differ from a recount", job.id)
            })?;
            let mut hosts: BTreeMap<HostId, u32> = BTreeMap::new();
            for lease in self.state.leases.values().filter(|lease| lease.unit.job() == job.id) {
                *hosts.entry(lease.host).or_default() += 1;
            }
            holds("L3", job.hosts == hosts, || {
                format!("the index of job {}'s hosts differs from a recount", job.id)
            })?;
            let live =
                self.state.leases.values().filter(|lease| lease.unit.job() == job.id).count();
            let counted = job.counters.leases_live;
            holds("L1", u64::try_from(live) == Ok(counted), || {
                format!("job {} counts {counted} live leases, has {live}", job.id)
            })?;
        }
        let first = self.state.jobs.values().filter_map(Job::time_up_at).min();
        let known = self.clock.is_recovering()
            || first.is_none_or(|first| self.index.wall_time().is_some_and(|at| at <= first));
        holds("L3", known, || format!("the first wall time is over at {first:?}, unnoticed"))?;
        self.exclusive()?;
        self.promises()?;
        self.lease_counts()?;
        self.accounted()?;
        self.handed_out()?;
        self.blobs_referenced()?;
        self.check_cheap_invariants()
    }

    /// Those that cost no more than the leases: for debug builds, after each step.
    pub(crate) fn check_cheap_invariants(&self) -> Result<(), Violation> {
        if self.clock.is_recovering() {
            return Ok(());
        }
        let deadlines = self.leases.deadlines();
        holds("L2", deadlines.is_indexed(), || "deadlines and their index by time differ".into())?;
        let live = self.state.leases.keys().copied();
        holds("L2", live.eq(deadlines.all().map(|(lease, _)| lease)), || {
            "live leases and deadlines differ".into()
        })?;
        for (lease, term) in deadlines.all() {
            let granted = self.state.leases.get(&lease).map(|lease| lease.granted_at);
            let after = granted.is_some_and(|at| term.renew_by > at && term.due > at);
            holds("L2", after, || format!("lease {lease} is due before its grant"))?;
        }
        Ok(())
    }

    /// A2: whatever could be assimilated now waits for an assimilator, or one has it.
    fn handed_out(&self) -> Result<(), Violation> {
        let assimilations = &self.queue;
        holds("A2", assimilations.agree(), || "the assimilators' line differs".into())?;
        if self.clock.is_recovering() {
            return Ok(());
        }
        let trials = self.state.jobs.values().flat_map(|job| &job.trials);
        for lease in trials.filter_map(|trial| trial.awaiting.front().copied()) {
            let known = !self.state.is_to_assimilate(lease) || assimilations.since(lease).is_some();
            holds("A2", known, || format!("no assimilator will ever be given lease {lease}"))?;
        }
        Ok(())
    }

    /// H2: one current version; granted and awaited results are on it, or will be superseded.
    fn isolation(&self, trial: &Trial) -> Result<(), Violation> {
        let versions = u32::saturating_from(trial.history.len());
        let numbered = (1u32..).zip(&trial.history).all(|(n, record)| record.version.0 == n);
        holds("H2", versions == trial.version.0 && numbered, || {
            format!("trial {} is at version {} after {versions} hops", trial.id, trial.version)
        })?;
        let last = trial.history.last().map(|record| record.checkpoint);
        holds("H2", last == trial.checkpoint, || {
            format!("trial {}'s checkpoint isn't the one that its last hop made", trial.id)
        })?;
        for lease in &trial.live {
            let lease_of = self.state.leases.get(lease);
            let on_current = lease_of.is_some_and(|lease| lease.base == trial.version);
            holds("H2", on_current, || {
                format!("live lease {lease} of trial {} isn't on its version", trial.id)
            })?;
            let then = lease_of.map_or(&[][..], |lease| &lease.then);
            let mut all = BTreeSet::new();
            let fresh = |shard: &ShardId| {
                all.insert(*shard) && trial.chain.next(*shard).is_some_and(|next| next.batch == 0)
            };
            holds("H2", then.iter().all(fresh), || {
                format!("live lease {lease} of trial {} goes on over {then:?}", trial.id)
            })?;
        }
        for lease in trial.waiting() {
            let past = self.state.past.get(&lease);
            let fits = past.is_some_and(|past| match trial.merging {
                None => past.lease.base == trial.version,
                Some(_) => self.state.is_wanted(&past.lease),
            });
            holds("H2", fits && trial.is_running(), || {
                format!("result {lease} waits for trial {} and can't be taken in", trial.id)
            })?;
        }
        self.merging(trial)
    }

    /// M1: while results are merged, what is out of a trial are live leases, late ones and results that wait, each once
    /// and each on a version that is kept for it; and nothing is free that is in flight.
    fn merging(&self, trial: &Trial) -> Result<(), Violation> {
        let Some(merging) = &trial.merging else { return Ok(()) };
        let mut out = BTreeSet::new();
        for (shard, unit) in &merging.units {
            let live = unit.live.iter().map(|lease| self.state.leases.get(lease));
            let past = unit.late.iter().chain(&unit.reported);
            let past = past.map(|lease| self.state.past.get(lease).map(|past| &past.lease));
            for lease in live.chain(past) {
                let sound = lease.is_some_and(|lease| {
                    let base = merging.bases.get(&lease.base);
                    lease.visits().eq([*shard])
                        && out.insert(lease.id)
                        && base.is_some_and(|base| base.leases.contains(&lease.id))
                        && self.state.is_wanted(lease)
                });
                holds("M1", sound, || format!("trial {}, shard {shard}: {lease:?}", trial.id))?;
            }
            let free = merging.free.next(*shard).is_some();
            holds("M1", !(free && unit.is_in_flight()), || {
                format!("shard {shard} of trial {} is free and in flight", trial.id)
            })?;
        }
        let referring = merging.bases.values().flat_map(|base| &base.leases).copied();
        holds("M1", out == referring.collect(), || {
            format!("other leases than those of its shards refer to trial {}'s bases", trial.id)
        })?;
        let waiting: BTreeSet<LeaseId> = trial.waiting().collect();
        let reported = merging.units.values().flat_map(|unit| &unit.reported).copied();
        holds("M1", waiting == reported.collect() && trial.live.is_empty(), || {
            format!("the results of trial {} that wait aren't those of its shards", trial.id)
        })
    }

    /// Are the trials that are ranked as open those whose next hop could be granted?
    fn ranks_agree(&self, job: &Job) -> bool {
        let ranked = self.index.remaining(job.id);
        let ranked: BTreeSet<TrialId> = ranked
            .into_iter()
            .flat_map(RemainingWorkIndex::open)
            .map(|(trial, ..)| trial)
            .collect();
        self.clock.is_recovering() || job.open.hops().eq(ranked)
    }

    /// H3: no more started leases than slots.
    fn exclusive(&self) -> Result<(), Violation> {
        for (host, session) in self.hosts.sessions() {
            let started = self.eligibility().running_leases(host);
            let slots = to_usize(session.slots);
            holds("H3", started <= slots, || {
                format!("host {host} runs {started} units in {slots} slots")
            })?;
        }
        Ok(())
    }

    /// L4: what is promised goes on from a lease that its trial has in hand, of the same host and device, and has an
    /// id that no lease has.
    fn promises(&self) -> Result<(), Violation> {
        let promises = &self.leases.provisional();
        holds("L4", promises.all().count() == promises.len(), || {
            "promises and the leases that they go on from differ in number".into()
        })?;
        for (after, promise) in promises.all() {
            let sound = promise.is_some_and(|promise| {
                let lease = &promise.lease;
                let before = self.state.lease(after);
                let trial = self.state.trial(lease.unit.job(), lease.unit.trial());
                trial.is_some_and(|trial| trial.in_hand().any(|lease| lease == after))
                    && before.is_some_and(|before| {
                        before.host == lease.host && before.device == lease.device
                    })
                    && !self.state.leases.contains_key(&lease.id)
                    && !self.state.past.contains_key(&lease.id)
            });
            holds("L4", sound, || format!("what is promised after lease {after}: {promise:?}"))?;
        }
        Ok(())
    }

    /// L1: one live lease per unit, or two on two hosts of which one was granted as a copy.
    fn lease_counts(&self) -> Result<(), Violation> {
        let mut units: BTreeMap<UnitKey, Vec<&Lease>> = BTreeMap::new();
        for lease in self.state.leases.values() {
            units.entry(self.unit_name(lease)).or_default().push(lease);
            let live = self.state.jobs.get(&lease.unit.job()).and_then(|j| j.live_of(&lease.unit));
            let known = live.is_some_and(|live| live.contains(&lease.id));
            holds("L1", known, || format!("live lease {} isn't its unit's", lease.id))?;
            let host = self.state.hosts.get(&lease.host);
            let of_host = host.is_some_and(|host| host.live.contains(&lease.id) && !host.revoked);
            holds("L1", of_host, || format!("live lease {} isn't its host's", lease.id))?;
        }
        let one_too_many = |leases: &&Vec<&Lease>| match leases[..] {
            [_] => false,
            [first, second] => {
                let copies = [first, second].iter().any(|lease| lease.copy_of.is_some());
                !copies || first.host == second.host || first.unit != second.unit
            }
            _ => true,
        };
        let wrong = units.values().find(one_too_many);
        holds("L1", wrong.is_none(), || format!("too many live leases of one unit: {wrong:?}"))
    }

    /// What no two live leases are for, but copies.
    fn unit_name(&self, lease: &Lease) -> UnitKey {
        let UnitKey::Train { job, trial, .. } = lease.unit else { return lease.unit };
        let known = self.state.trial(job, trial);
        if known.is_some_and(|trial| trial.merging.is_some()) {
            return lease.unit;
        }
        // In hop order a trial has one next hop, whatever the shard.
        UnitKey::Train { job, trial, epoch: Epoch(0), shard: ShardId(0), from: 0 }
    }

    /// A1: an acknowledged report has ended, or waits in its trial's line.
    fn accounted(&self) -> Result<(), Violation> {
        for (id, past) in &self.state.past {
            holds("A1", !self.state.leases.contains_key(id), || {
                format!("lease {id} is live and past")
            })?;
            let waits = matches!(past.state, PastState::Acknowledged(_));
            let unit = past.lease.unit;
            let trial = self.state.trial(unit.job(), unit.trial());
            let in_line = trial.is_some_and(|trial| trial.waiting().any(|waiting| waiting == *id));
            holds("A1", waits == in_line, || {
                format!("report {id}: acknowledged and open {waits}, in line {in_line}")
            })?;
        }
        Ok(())
    }

    /// B1: what is referred to is in the store, and the counts are those of a recount.
    fn blobs_referenced(&self) -> Result<(), Violation> {
        let mut counts: BTreeMap<Digest, u32> = BTreeMap::new();
        for job in self.state.jobs.values() {
            let data = job.blobs().map(|blob| blob.sha256);
            let extras = job.extras.iter().map(|extra| extra.checkpoint.sha256);
            for digest in data.chain(job.trials.iter().flat_map(Trial::blobs)).chain(extras) {
                *counts.entry(digest).or_default() += 1;
            }
        }
        for digest in counts.keys() {
            let status = self.state.blobs.status(digest);
            // A store may lose a blob; nobody may delete it.
            let kept = matches!(status, Some(BlobStatus::Published | BlobStatus::Lost));
            holds("B1", kept, || format!("blob {digest:?} is referred to and not kept"))?;
        }
        let kept: BTreeMap<Digest, u32> = self.state.blobs.referenced().collect();
        holds("B1", kept == counts, || "reference counts differ from a recount".into())
    }
}

/// H1: by the history, every batch of every shard once per ended epoch, none twice in the current one.
fn completeness(job: &Job, trial: &Trial) -> Result<(), Violation> {
    let batch_size = trial.context.config.training.batch_size;
    let sizes: Vec<u32> = job
        .data
        .train
        .iter()
        .map(|shard| sojourn_protocol::position::batches(u64::from(shard.rows), batch_size))
        .collect();
    let mut done: BTreeMap<(Epoch, ShardId), u32> = BTreeMap::new();
    let mut step = 0;
    for record in &trial.history {
        let epoch = record.epoch();
        let mut start = record.start;
        for shard in record.shards() {
            let size = sizes.get(sojourn_protocol::unit::shard_index(shard)).copied().unwrap_or(0);
            let last = shard == record.end.shard;
            let end = if last { record.end.batch } else { size };
            let at = done.entry((epoch, shard)).or_default();
            let first = shard == record.start.shard;
            start = if first { start } else { Position { shard, batch: 0, ..start } };
            let follows = start.batch == *at && start.step == step && end > start.batch;
            holds("H1", follows, || {
                format!("trial {}: {record:?} doesn't follow batch {at}, step {step}", trial.id)
            })?;
            step += u64::from(end - start.batch);
            start.step = step;
            *at = end;
        }
        let ends = record.end.epoch == epoch
            && record.shards().last() == Some(record.end.shard)
            && record.end.step == step;
        holds("H1", ends, || format!("trial {}: {record:?} doesn't end there", trial.id))?;
    }
    for ((epoch, shard), at) in &done {
        let size = sizes.get(sojourn_protocol::unit::shard_index(*shard)).copied().unwrap_or(0);
        let ended = *epoch < trial.chain.epoch();
        holds("H1", *at <= size && (!ended || *at == size), || {
            format!("trial {}: {at} of {size} batches of shard {shard} in epoch {epoch}", trial.id)
        })?;
    }
    let ended = (0..trial.chain.epoch().0).map(Epoch);
    let whole =
        ended.flat_map(|epoch| (0u32..).map(ShardId).zip(&sizes).map(move |(s, _)| (epoch, s)));
    for key in whole {
        holds("H1", done.contains_key(&key), || {
            format!("trial {}: shard {} was left out of epoch {}", trial.id, key.1, key.0)
        })?;
    }
    Ok(())
}
