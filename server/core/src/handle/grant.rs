//! Which unit a host gets: jobs in fair shares, hops by the policy, evaluations where they fit.

use super::fit::Place;
use crate::{
    contact::Contact,
    core::Core,
    event::{Event, UnitKey},
    state::Job,
};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, JobId, ShardId, TrialId, Version},
    inventory::{Demand, Workload},
    unit,
};
use sojourn_workgen::{Candidate, HostCache};

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
    /// Grants units for each device, up to as many as are wanted there. Those for idle slots come first; the
    /// others are handed out ahead, and only while other hosts' idle slots don't need them.
    pub(crate) fn grant(&mut self, host: HostId, demand: &[Demand]) -> Vec<unit::Lease> {
        let mut leases = Vec::new();
        let mut filled = Vec::new();
        for Demand { device, idle, wanted, .. } in demand {
            let idle = *idle.min(wanted);
            let given = (0..idle).map_while(|_| self.grant_one(host, device)).collect::<Vec<_>>();
            filled.push(u32::try_from(given.len()) == Ok(idle));
            leases.extend(given);
        }
        for (Demand { device, idle, wanted, .. }, filled) in demand.iter().zip(filled) {
            let ahead = if filled { wanted.saturating_sub(*idle) } else { 0 };
            for _ in 0..ahead {
                if self.supply() <= self.soft.parked.idle_beside(host) {
                    return leases;
                }
                let Some(lease) = self.grant_one(host, device) else { break };
                leases.push(lease);
            }
        }
        leases
    }

    fn grant_one(&mut self, host: HostId, device: &str) -> Option<unit::Lease> {
        let chosen = self.choose(host, device)?;
        let lease = self.state.last_lease.next();
        let contact = self.soft.contacts.get_mut(&host)?;
        let class = contact.device(device).map(|device| device.numeric_class);
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
            device: device.to_owned(),
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

    fn choose(&mut self, host: HostId, device: &str) -> Option<Chosen> {
        if self.soft.is_resting(host, self.now) {
            return None;
        }
        let contact = self.soft.contacts.get(&host)?;
        let place = Place { host, slots: contact.devices.get(device)? };
        let open = self.state.jobs.values().filter(|job| job.is_open() || job.has_open_extras());
        let mut jobs: Vec<&Job> = open.collect();
        jobs.sort_by_key(|job| (self.soft.shares.tag(job.id), job.id));
        for job in jobs {
            if self.lost_data(job).is_some() {
                continue;
            }
            if let Some(chosen) = self.extra_for(job, place) {
                return Some(chosen);
            }
            if !job.is_running() {
                continue;
            }
            let evaluation = self.evaluation_for(job, place);
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
                .filter(|trial| self.may_train(job, trial, place))
                .filter_map(|trial| {
                    let workload = Workload::of(&trial.context);
                    self.has_room(place.slots, trial, &workload).then(|| Candidate {
                        trial: trial.id,
                        chain: &trial.chain,
                        remaining: self.soft.estimates.remaining_micros(trial, &workload),
                    })
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
    fn extra_for(&self, job: &Job, place: Place<'_>) -> Option<Chosen> {
        let mut open = job.extras.iter().filter(|extra| extra.live.is_empty());
        let extra = open.find(|extra| {
            self.may_retry(None, &extra.failures, place.host)
                && job.trial(extra.name.trial).is_some_and(|trial| {
                    self.has_room(place.slots, trial, &Workload::of(&trial.context))
                })
        })?;
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
        place: Place<'_>,
    ) -> Option<((TrialId, Epoch, Version), usize)> {
        let open = job.open.evaluations();
        let count = open.len();
        let first = open.filter_map(|(epoch, trial)| {
            let known = job.trial(trial)?;
            let evaluation = known.evaluations.get(&epoch)?;
            let may = !self.state.blobs.is_lost(&evaluation.checkpoint.sha256)
                && self.may_retry(None, &evaluation.failures, place.host)
                && self.has_room(place.slots, known, &Workload::of(&known.context));
            may.then_some((trial, epoch, evaluation.version))
        });
        first.take(1).next().map(|first| (first, count))
    }

    /// A blob of the job's data, or one that its trials start from, that the store has lost.
    pub(crate) fn lost_data(&self, job: &Job) -> Option<Digest> {
        if !self.state.blobs.any_lost() {
            return None;
        }
        self.state.blobs.first_lost(job.blobs().map(|blob| blob.sha256))
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
}

fn evaluate(job: JobId, (trial, epoch, base): (TrialId, Epoch, Version), why: &str) -> Chosen {
    let unit = UnitKey::Evaluate { job, trial, epoch };
    Chosen { unit, base, why: format!("evaluation: {why}") }
}
