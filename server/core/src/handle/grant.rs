//! Which unit a host gets: jobs in fair shares, hops by the policy, evaluations where they fit.

use crate::{
    core::Core,
    event::{Event, UnitKey},
    soft::Contact,
    state::{FailedBy, Job, Lease, Trial},
};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TrialId, Version},
    manifest::DataSplit,
    position::Position,
    seeds,
    time::Millis,
    unit::{self, Evaluation, Hop, Unit},
};
use sojourn_workgen::{Candidate, HostCache};
use std::collections::BTreeMap;

/// A unit that was chosen for a host.
struct Chosen {
    unit: UnitKey,
    base: Version,
    why: String,
}

/// What the policy may know of one job's shards and of the asking host.
struct JobCache<'a> {
    job: &'a Job,
    /// By shard: does the host hold it? A policy asks again for each trial.
    held: Vec<bool>,
}

impl<'a> JobCache<'a> {
    fn new(job: &'a Job, contact: &Contact) -> Self {
        let shards = job.data.train.iter();
        Self { job, held: shards.map(|s| contact.cached.contains(&s.blob.sha256)).collect() }
    }
}

impl HostCache for JobCache<'_> {
    fn holds(&self, shard: ShardId) -> bool {
        self.held.get(unit::shard_index(shard)).copied().unwrap_or(false)
    }

    fn load(&self, shard: ShardId) -> u64 {
        self.job.load_of(shard)
    }
}

impl Core {
    /// Grants up to `wanted` units. The first `idle` fill slots; those beyond are handed out ahead,
    /// and only while other hosts' idle slots don't need them.
    pub(crate) fn grant(&mut self, host: HostId, idle: u32, wanted: u32) -> Vec<unit::Lease> {
        let mut leases = Vec::new();
        for n in 0..wanted {
            if n >= idle && self.supply() <= self.soft.parked.idle_beside(host) {
                break;
            }
            let Some(chosen) = self.choose(host) else { break };
            leases.extend(self.grant_one(host, chosen));
        }
        leases
    }

    fn grant_one(&mut self, host: HostId, chosen: Chosen) -> Option<unit::Lease> {
        let lease = self.state.last_lease.next();
        let contact = self.soft.contacts.get_mut(&host)?;
        let class = contact.numeric_class;
        if let UnitKey::Train { job, shard, .. } = chosen.unit {
            // The host will hold the shard by the time that it trains on it.
            let shards = self.state.jobs.get(&job).map(|job| &job.data.train);
            let shard = shards.and_then(|shards| shards.get(unit::shard_index(shard)));
            contact.cached.extend(shard.map(|shard| shard.blob.sha256));
        }
        let job = chosen.unit.job();
        self.pass_over_before(job);
        self.emit(Event::LeaseGranted {
            lease,
            host,
            unit: chosen.unit,
            base: chosen.base,
            class,
            why: chosen.why,
        });
        self.soft.set_term(lease, self.fresh_term(lease));
        self.soft.shares.give(job, lease, self.estimate(lease).0.saturating_mul(1000));
        self.wire_lease(lease)
    }

    /// Jobs whose turn was before that of the job that gets the slot could not use it.
    fn pass_over_before(&mut self, chosen: JobId) {
        let tag = self.soft.shares.tag(chosen);
        let open = self.state.jobs.values().filter(|job| job.is_open() || job.has_open_extras());
        let before = open.filter(|job| self.soft.shares.tag(job.id) < tag);
        let before: Vec<(JobId, bool)> = before.map(|job| (job.id, job.supply() > 0)).collect();
        for (job, has_units) in before {
            self.soft.shares.pass_over(job, tag, has_units);
        }
    }

    /// Units that could be granted to somebody.
    pub(crate) fn supply(&self) -> usize {
        self.state.jobs.values().map(Job::supply).sum()
    }

    fn choose(&mut self, host: HostId) -> Option<Chosen> {
        if self.soft.is_resting(host, self.now) {
            return None;
        }
        let contact = self.soft.contacts.get(&host)?;
        let class = contact.numeric_class?;
        let open = self.state.jobs.values().filter(|job| job.is_open() || job.has_open_extras());
        let mut jobs: Vec<&Job> = open.collect();
        jobs.sort_by_key(|job| (self.soft.shares.tag(job.id), job.id));
        for job in jobs {
            if self.lost_data(job).is_some() {
                continue;
            }
            if let Some(chosen) = self.extra_for(job, host) {
                return Some(chosen);
            }
            if !job.is_running() {
                continue;
            }
            let evaluation = self.evaluation_for(job, host);
            if let Some((_, backlog)) = evaluation
                && self.is_backlog(backlog)
            {
                return evaluation
                    .map(|(chosen, _)| evaluate(job.id, chosen, "a backlog of evaluations"));
            }
            let candidates: Vec<Candidate<'_>> = job
                .open
                .hops()
                .filter_map(|trial| job.trial(trial))
                .filter(|trial| self.may_train(job, trial, host, class))
                .map(|trial| Candidate {
                    trial: trial.id,
                    chain: &trial.chain,
                    remaining: self.soft.estimates.remaining_micros(trial),
                })
                .collect();
            let cache = JobCache::new(job, contact);
            if let Some(choice) = self.policy.choose(&candidates, &cache, &mut self.chance) {
                let trial = job.trial(choice.trial)?;
                let start = trial.chain.next(choice.shard)?;
                let unit = UnitKey::Train {
                    job: job.id,
                    trial: choice.trial,
                    epoch: start.epoch,
                    shard: choice.shard,
                    from: start.batch,
                };
                return Some(Chosen { unit, base: trial.version, why: choice.why });
            }
            if let Some((chosen, _)) = evaluation {
                return Some(evaluate(job.id, chosen, "no hop is runnable here"));
            }
        }
        None
    }

    /// The first evaluation outside the search that the host may do: somebody waits for it.
    fn extra_for(&self, job: &Job, host: HostId) -> Option<Chosen> {
        let mut open = job.extras.iter().filter(|extra| extra.live.is_empty());
        let extra = open.find(|extra| self.may_retry(None, &extra.failures, host))?;
        Some(Chosen {
            unit: UnitKey::Extra { job: job.id, name: extra.name },
            base: extra.version,
            why: format!("evaluation on the {} data, outside the search", extra.name.split.name()),
        })
    }

    /// The oldest evaluation that the host may do, and how many there are for all.
    fn evaluation_for(
        &self,
        job: &Job,
        host: HostId,
    ) -> Option<((TrialId, Epoch, Version), usize)> {
        let open = job.open.evaluations();
        let count = open.len();
        let first = open.filter_map(|(epoch, trial)| {
            let evaluation = job.trial(trial)?.evaluations.get(&epoch)?;
            let may = !self.state.blobs.is_lost(&evaluation.checkpoint.sha256)
                && self.may_retry(None, &evaluation.failures, host);
            may.then_some((trial, epoch, evaluation.version))
        });
        first.take(1).next().map(|first| (first, count))
    }

    fn may_train(&self, job: &Job, trial: &Trial, host: HostId, class: Digest) -> bool {
        let kept = self.kept_class(job, trial);
        kept.is_none_or(|kept| kept == class)
            && !trial.blobs().any(|blob| self.state.blobs.is_lost(&blob))
            && self.may_retry(kept, &trial.failures, host)
    }

    /// The numeric class that the trial must stay in.
    pub(crate) fn kept_class(&self, job: &Job, trial: &Trial) -> Option<Digest> {
        trial.class.filter(|_| job.spec.placement.reproducible)
    }

    /// A host that failed a unit gets it again only when every other live host has failed it as often.
    fn may_retry(
        &self,
        class: Option<Digest>,
        failures: &BTreeMap<HostId, FailedBy>,
        host: HostId,
    ) -> bool {
        let count = |host: HostId| failures.get(&host).map_or(0, |failed| failed.count);
        let own = count(host);
        let mut others = self
            .hosts_in_contact(class)
            .filter(|other| *other != host && !self.soft.is_resting(*other, self.now));
        own == 0 || others.all(|other| count(other) >= own)
    }

    /// A blob of the job's data, or one that its trials start from, that the store has lost.
    pub(crate) fn lost_data(&self, job: &Job) -> Option<Digest> {
        if !self.state.blobs.any_lost() {
            return None;
        }
        self.state.blobs.first_lost(job.blobs().map(|blob| blob.sha256))
    }

    /// Hosts in contact, of the class where one is asked for; resting ones too.
    pub(crate) fn hosts_in_contact(
        &self,
        class: Option<Digest>,
    ) -> impl Iterator<Item = HostId> + '_ {
        let contacts = self.soft.contacts.iter();
        contacts
            .filter(move |(host, contact)| {
                contact.numeric_class.is_some()
                    && (class.is_none() || contact.numeric_class == class)
                    && self.soft.is_live(**host, self.now, self.config.lease_term)
                    && self.state.hosts.get(host).is_some_and(|host| !host.revoked)
            })
            .map(|(host, _)| *host)
    }

    /// Are these more evaluations than twice the slots in contact?
    fn is_backlog(&self, evaluations: usize) -> bool {
        let contacts = self.soft.contacts.iter();
        let mut live = contacts
            .filter(|(host, _)| self.soft.is_live(**host, self.now, self.config.lease_term));
        // A few evaluations are settled by the first few hosts.
        let enough = live.try_fold(evaluations, |left, (_, contact)| {
            let twice = usize::try_from(contact.slots).unwrap_or(usize::MAX).saturating_mul(2);
            left.checked_sub(twice).filter(|left| *left > 0)
        });
        enough.is_some()
    }

    /// A live lease as it goes over the wire.
    pub(crate) fn wire_lease(&self, lease: LeaseId) -> Option<unit::Lease> {
        let known = self.state.leases.get(&lease)?;
        let term = self.soft.terms.get(&lease);
        Some(unit::Lease {
            id: lease,
            unit: self.wire_unit(known)?,
            renew_by: term.map_or(self.now + self.config.lease_term, |term| term.renew_by),
            heartbeat_every: self.config.heartbeat_every,
            upload_bytes: match known.unit {
                UnitKey::Train { job, trial, .. } => self.state.trial(job, trial)?.checkpoint_bytes,
                UnitKey::Evaluate { .. } | UnitKey::Extra { .. } => 0,
            },
        })
    }

    fn wire_unit(&self, lease: &Lease) -> Option<Unit> {
        let job = self.state.jobs.get(&lease.unit.job())?;
        let trial = job.trial(lease.unit.trial())?;
        Some(match lease.unit {
            UnitKey::Train { .. } => Unit::Train(self.wire_hop(lease)?),
            UnitKey::Evaluate { epoch, .. } => {
                let evaluation = trial.evaluations.get(&epoch)?;
                Unit::Evaluate(Evaluation {
                    job: job.id,
                    trial: trial.id,
                    epoch,
                    version: evaluation.version,
                    checkpoint: evaluation.checkpoint,
                    shards: job.data.valid.clone(),
                    split: DataSplit::Valid,
                    counting: job.spec.search.counting(&job.data.labels),
                    context: trial.context_of(lease.id),
                })
            }
            UnitKey::Extra { name, .. } => {
                let extra = job.extra(&name)?;
                Unit::Evaluate(Evaluation {
                    job: job.id,
                    trial: trial.id,
                    epoch: name.epoch,
                    version: extra.version,
                    checkpoint: extra.checkpoint,
                    shards: job.data.split(name.split).to_vec(),
                    split: name.split,
                    counting: job.spec.search.full_counting(&job.data.labels),
                    context: trial.context_of(lease.id),
                })
            }
        })
    }

    /// The hop of a lease on its trial's current version.
    pub(crate) fn wire_hop(&self, lease: &Lease) -> Option<Hop> {
        let UnitKey::Train { job, trial, epoch, shard, from } = lease.unit else { return None };
        let job = self.state.jobs.get(&job)?;
        let trial = job.trial(trial)?;
        Some(Hop {
            job: job.id,
            trial: trial.id,
            base: trial.base(),
            start: Position { epoch, shard, batch: from, step: trial.chain.step() },
            shard: *job.data.train.get(unit::shard_index(shard))?,
            seed: seeds::hop(job.spec.seed, trial.id, epoch, shard),
            context: trial.context_of(lease.id),
        })
    }

    /// How long a lease's unit should take on its host.
    pub(crate) fn estimate(&self, lease: LeaseId) -> Millis {
        let Some(lease) = self.state.leases.get(&lease) else { return Millis(0) };
        let Some(job) = self.state.jobs.get(&lease.unit.job()) else { return Millis(0) };
        let Some(trial) = job.trial(lease.unit.trial()) else { return Millis(0) };
        let evaluated =
            |split| job.data.split(split).iter().map(|shard| u64::from(shard.rows)).sum();
        let rows = match lease.unit {
            UnitKey::Train { shard, .. } => job
                .data
                .train
                .get(unit::shard_index(shard))
                .map_or(0, |shard| u64::from(shard.rows)),
            UnitKey::Evaluate { .. } => evaluated(DataSplit::Valid),
            UnitKey::Extra { name, .. } => evaluated(name.split),
        };
        let flops = self.soft.contacts.get(&lease.host).map_or(0.0, |contact| contact.flops);
        self.soft.estimates.training(lease.host, flops, trial, rows)
    }

    /// How long to wait for progress on work that should take `estimate`.
    pub(crate) fn patience(&self, estimate: Millis) -> Millis {
        Millis(estimate.0.saturating_mul(10).max(self.config.least_due.0))
    }
}

fn evaluate(job: JobId, (trial, epoch, base): (TrialId, Epoch, Version), why: &str) -> Chosen {
    let unit = UnitKey::Evaluate { job, trial, epoch };
    Chosen { unit, base, why: format!("evaluation: {why}") }
}
