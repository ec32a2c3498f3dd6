//! Which evaluation a device gets.
//!
//! The host that produced a checkpoint still holds it, as a rule, and needn't fetch it. So it gets evaluations of that
//! checkpoint first. Other hosts leave them to it where it would be free before they had fetched what they lack. They do so
//! for no longer than half of that fetch, from when the first of them did.
//!
//! A host that would have the result only after the job's hops could be done leaves an evaluation to a host that would have it
//! in less than half of that time: no host makes a search longer.
//!
//! Where results are verified, an evaluation is done in a numeric class that enough parties offer: its trial's, where that is one,
//! else any. Where there is none, it is done in its trial's class, and waits there for another party.

use super::{
    assignment::Assignment,
    deferred::Deferred,
    depth::Depth,
    eligibility::{Eligibility, may_retry_beside},
    explain::GrantReason,
    scheduler::Scheduler,
};
use crate::{
    cost::Cost,
    hosts::{DeviceRef, DeviceSlots, Hosts},
    index::DerivedIndex,
    leases::Occupancy,
    waiters::Waiters,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, Version},
    manifest::DataSplit,
    time::UnixMillis,
};
use sojourn_state::{FailedBy, Job, State, Trial, UnitKey};
use std::collections::BTreeMap;

/// Evaluations that are looked at for a device: so many of the oldest that it could do.
const MAX_CANDIDATES: usize = 64;
/// Microseconds. Where a fetch takes no longer, the evaluation is not left to another host.
const MIN_DEFERRED_FETCH: u64 = 200_000;
/// Microseconds. Where an evaluation takes no longer, it doesn't hold the job up.
const MIN_HOLD_UP: u64 = 1_000_000;
/// Hosts to which an evaluation that would hold up the job may be left: the one that produced the checkpoint, and the fastest.
const MAX_QUICKER_HOSTS: usize = 8;

/// An evaluation that could be granted.
#[derive(Clone, Copy)]
struct OpenEvaluation<'a> {
    unit: UnitKey,
    trial: &'a Trial,
    version: Version,
    checkpoint: BlobRef,
    split: DataSplit,
    failures: &'a BTreeMap<HostId, FailedBy>,
}

/// The devices that may do an evaluation, by numeric class.
#[derive(Debug, Clone, Copy)]
enum EvaluatedIn {
    /// Any device.
    Any,
    /// The devices that offer this class.
    Class(Digest),
    /// The devices that offer a class which is proved for the job.
    Proved,
}

impl OpenEvaluation<'_> {
    /// The host that produced the checkpoint.
    fn producer(&self) -> Option<HostId> {
        let history = &self.trial.history;
        let at = history.binary_search_by_key(&self.version, |hop| hop.version).ok()?;
        history.get(at).map(|hop| hop.host)
    }

    fn assignment(&self, why: GrantReason) -> Assignment {
        Assignment {
            unit: self.unit,
            then: Vec::new(),
            until: None,
            base: self.version,
            why,
            planned: None,
            speculative_for: None,
            after: None,
        }
    }
}

/// The choice of evaluations. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub(super) struct Evaluations<'a> {
    pub state: &'a State,
    pub hosts: &'a Hosts,
    pub waiters: &'a Waiters,
    pub now: UnixMillis,
    pub cost: Cost<'a>,
    pub occupancy: Occupancy<'a>,
    pub eligible: Eligibility<'a>,
    pub depth: Depth<'a>,
    pub index: &'a DerivedIndex,
}

impl<'a> Evaluations<'a> {
    pub(super) fn of(from: &Scheduler<'a>) -> Self {
        Self {
            state: from.state,
            hosts: from.hosts,
            waiters: from.waiters,
            now: from.now,
            cost: from.cost,
            occupancy: from.occupancy,
            eligible: from.eligible,
            depth: Depth::of(from),
            index: from.index,
        }
    }
}

impl Evaluations<'_> {
    /// An evaluation outside the search that the host may do: somebody waits for it.
    pub(super) fn requested_evaluation_for(
        &self,
        job: &Job,
        at: DeviceRef<'_>,
        deferred: &mut Deferred,
    ) -> Option<Assignment> {
        let open = job.extras.iter().filter(|extra| extra.is_open());
        let wanted = open.filter_map(|extra| {
            Some(OpenEvaluation {
                unit: UnitKey::Extra { job: job.id, name: extra.name },
                trial: job.trial(extra.name.trial)?,
                version: extra.version,
                checkpoint: extra.checkpoint,
                split: extra.name.split,
                failures: &extra.failures,
            })
        });
        let best = self.best_of(job, wanted, at, Some(deferred))?;
        Some(best.assignment(GrantReason::Requested(best.split)))
    }

    /// An evaluation of the search, where more of them wait than twice the slots.
    pub(super) fn backlog_for(&self, job: &Job, at: DeviceRef<'_>) -> Option<Assignment> {
        let waiting = job.open.evaluations().len();
        if waiting == 0 || !self.is_backlog(waiting) {
            return None;
        }
        let best = self.best_of(job, self.wanted(job), at, None)?;
        Some(best.assignment(GrantReason::Backlog(waiting)))
    }

    /// An evaluation that comes before the next hop: of a job in depth, of what the device's host has trained. So the search knows
    /// of an epoch before its trial has trained another, as rules of early stopping and suggestions need it.
    pub(super) fn own_evaluation_for(&self, job: &Job, at: DeviceRef<'_>) -> Option<Assignment> {
        let links = || self.hosts.session(at.host).map(|session| session.links).unwrap_or_default();
        let any = job.open.evaluations().next().is_some();
        if at.ahead || !any || !self.depth.may_go_in_depth(job, links) {
            return None;
        }
        let own = self.wanted(job).filter(|wanted| wanted.producer() == Some(at.host));
        let best = self.best_of(job, own.take(MAX_CANDIDATES), at, None)?;
        Some(best.assignment(GrantReason::Own))
    }

    /// An evaluation of the search, for a device that gets no hop.
    pub(super) fn evaluation_for(
        &self,
        job: &Job,
        at: DeviceRef<'_>,
        deferred: &mut Deferred,
    ) -> Option<Assignment> {
        let best = self.best_of(job, self.wanted(job), at, Some(deferred))?;
        Some(best.assignment(GrantReason::NoHop))
    }

    /// The search's open evaluations, the oldest first.
    fn wanted<'j>(&self, job: &'j Job) -> impl Iterator<Item = OpenEvaluation<'j>> {
        job.open.evaluations().filter_map(|(epoch, id)| {
            let trial = job.trial(id)?;
            let evaluation = trial.evaluations.get(&epoch)?;
            let lost = self.state.blobs.is_lost(&evaluation.checkpoint.sha256);
            (!lost).then_some(OpenEvaluation {
                unit: UnitKey::Evaluate { job: job.id, trial: id, epoch },
                trial,
                version: evaluation.version,
                checkpoint: evaluation.checkpoint,
                split: DataSplit::Valid,
                failures: &evaluation.failures,
            })
        })
    }

    /// The first whose checkpoint the device's host produced; else the first of all. Where some may be left to others,
    /// those are passed over.
    fn best_of<'a>(
        &self,
        job: &Job,
        wanted: impl Iterator<Item = OpenEvaluation<'a>>,
        at: DeviceRef<'_>,
        mut deferred: Option<&mut Deferred>,
    ) -> Option<OpenEvaluation<'a>> {
        let may = |wanted: &OpenEvaluation<'_>| self.may_evaluate(job, wanted, at);
        let mut first = None;
        for wanted in wanted.filter(may).take(MAX_CANDIDATES) {
            let is_own = wanted.producer() == Some(at.host);
            if first.is_some() && !is_own {
                continue;
            }
            let left = self.left_to_quicker(job, &wanted, at);
            if is_own && left.is_none() {
                return Some(wanted);
            }
            if first.is_some() || (left.is_some() && deferred.is_none()) {
                continue;
            }
            match (&mut deferred, left.or_else(|| self.deferral(job, wanted, at))) {
                (Some(deferred), Some(micros)) => deferred.leave_evaluation(wanted.unit, micros),
                _ => first = Some(wanted),
            }
        }
        first
    }

    /// In which numeric classes an evaluation is to be done.
    fn evaluated_in(&self, job: &Job, wanted: &OpenEvaluation<'_>) -> EvaluatedIn {
        if job.verified_quorum().is_none() {
            return EvaluatedIn::Any;
        }
        let Some(class) = wanted.trial.class else { return EvaluatedIn::Proved };
        let is_there = |within: EvaluatedIn| {
            self.eligible.live_hosts(None).any(|host| {
                !self.state.has_lost_trust(host) && self.could_evaluate(job, wanted, host, within)
            })
        };
        let own = EvaluatedIn::Class(class);
        if (self.cost.is_proved(job, class) || !is_there(EvaluatedIn::Proved)) && is_there(own) {
            return own;
        }
        EvaluatedIn::Proved
    }

    /// Is a device of those that may do an evaluation?
    fn is_within(&self, job: &Job, within: EvaluatedIn, slots: &DeviceSlots) -> bool {
        match within {
            EvaluatedIn::Any => true,
            EvaluatedIn::Class(class) => slots.classes.offers(class),
            EvaluatedIn::Proved => self.cost.may_begin(job, &slots.classes),
        }
    }

    /// Could a host do an evaluation, on a device of these classes?
    fn could_evaluate(
        &self,
        job: &Job,
        wanted: &OpenEvaluation<'_>,
        host: HostId,
        within: EvaluatedIn,
    ) -> bool {
        !self.hosts.is_cooling_down(host, self.now)
            && self.state.admits_host(job, host)
            && self.eligible.lends_disk_for(job, wanted.split, wanted.checkpoint, host)
            && self
                .eligible
                .has_device(wanted.trial, host, |slots| self.is_within(job, within, slots))
    }

    /// May a device do an evaluation?
    fn may_evaluate(&self, job: &Job, wanted: &OpenEvaluation<'_>, at: DeviceRef<'_>) -> bool {
        let within = self.evaluated_in(job, wanted);
        let others = self
            .eligible
            .live_hosts(None)
            .filter(|other| *other != at.host && self.could_evaluate(job, wanted, *other, within));
        let own = self.state.required_class(job, wanted.trial);
        let computed = own.filter(|own| at.slots.classes.offers(*own));
        let computed = computed.unwrap_or_else(|| self.cost.class_for(job, &at.slots.classes));
        self.is_within(job, within, at.slots)
            && self.eligible.is_confirmable(job, at.host, computed)
            && self.eligible.is_capable(at.slots, wanted.trial)
            && self.eligible.lends_disk_for(job, wanted.split, wanted.checkpoint, at.host)
            && (matches!(wanted.unit, UnitKey::Extra { .. })
                || self.eligible.may_try(job, wanted.trial, at.host))
            && may_retry_beside(wanted.failures, at.host, others)
    }

    /// Would the host that produced the checkpoint begin before this one had fetched what it lacks? Then for so many
    /// microseconds the evaluation is left to it.
    fn deferral(&self, job: &Job, wanted: OpenEvaluation<'_>, at: DeviceRef<'_>) -> Option<u64> {
        let producer = wanted.producer()?;
        let here = self.cost.fetch_time(at.host, self.missing_bytes(job, wanted, at.host));
        if here <= MIN_DEFERRED_FETCH
            || self.hosts.is_cooling_down(producer, self.now)
            || !self.state.admits_host(job, producer)
        {
            return None;
        }
        let session = self.hosts.session(producer)?;
        let has_room = |device: &str| {
            let slots = session.devices.get(device);
            slots.is_some_and(|slots| self.eligible.is_capable(slots, wanted.trial))
        };
        let pools = self.hosts.fleet().pools(producer).iter();
        let priority = job.spec.placement.priority;
        let free = pools.filter(|of| has_room(&of.device)).flat_map(|of| {
            self.occupancy.slots_free_at((producer, &of.device), of.slots, priority)
        });
        let others = self.eligible.live_hosts(None).filter(|of| {
            *of != producer && self.could_evaluate(job, &wanted, *of, EvaluatedIn::Any)
        });
        let free_in = free.min().filter(|_| may_retry_beside(wanted.failures, producer, others))?;
        let there = self
            .cost
            .fetch_time(producer, self.missing_bytes(job, wanted, producer))
            .saturating_add(free_in);
        let patience = (here / 2).checked_sub(self.deferred_for(wanted.unit));
        let patience = patience.filter(|patience| *patience > 0)?;
        // A host that is free takes it at once, or has a reason not to.
        let look_in = if free_in > 0 { free_in.min(patience) } else { patience };
        (there < here).then_some(look_in)
    }

    /// Microseconds for which an evaluation has been left to others.
    fn deferred_for(&self, unit: UnitKey) -> u64 {
        let since = self.waiters.deferred_since(unit).unwrap_or(self.now);
        (self.now - since).0.saturating_mul(1000)
    }

    /// Would the job wait for this host, and would another one in contact be done much sooner? Then the evaluation is left to such
    /// hosts, and this one looks again in so many microseconds. They take it when the hops are done, at the latest; it isn't left to
    /// them for much longer, whatever keeps them from it.
    fn left_to_quicker(
        &self,
        job: &Job,
        wanted: &OpenEvaluation<'_>,
        at: DeviceRef<'_>,
    ) -> Option<u64> {
        let here = self.evaluation_time(job, wanted, at);
        let remaining = self.index.remaining(job.id);
        let fleet = self.hosts.fleet();
        let ends = remaining.map_or(0, |of| fleet.time_for(of.total(), of.longest()));
        if here <= ends.max(MIN_HOLD_UP) {
            return None;
        }
        let longest = ends.saturating_add(here.saturating_mul(2));
        let patience = longest.checked_sub(self.deferred_for(wanted.unit));
        let look_in = patience.filter(|patience| *patience > 0)?.min(here / 2);
        let within = self.evaluated_in(job, wanted);
        let fastest = fleet.by_speed(None, MAX_QUICKER_HOSTS);
        let mut others = wanted.producer().into_iter().chain(fastest);
        let is_quicker = |host: HostId| {
            let Some(session) = self.hosts.session(host) else { return false };
            host != at.host
                && self.eligible.is_live(host)
                && !self.hosts.is_cooling_down(host, self.now)
                && self.could_evaluate(job, wanted, host, within)
                && session.devices.values().any(|slots| {
                    let at = DeviceRef { host, slots, ahead: true };
                    self.evaluation_time(job, wanted, at) < here / 2
                })
        };
        others.any(is_quicker).then_some(look_in)
    }

    /// Microseconds until a device would have done an evaluation. It begins when its slot is free, and its host has what it
    /// lacks.
    fn evaluation_time(&self, job: &Job, wanted: &OpenEvaluation<'_>, at: DeviceRef<'_>) -> u64 {
        let fetch = self.cost.fetch_time(at.host, self.missing_bytes(job, *wanted, at.host));
        let fetched = self.occupancy.all_fetched_in(at.host).saturating_add(fetch);
        let priority = job.spec.placement.priority;
        let device = &at.slots.device.name;
        let free = match at.ahead {
            true => self.occupancy.slots_free_at((at.host, device), at.slots.count, priority),
            false => Vec::new(),
        };
        let begins = free.into_iter().min().unwrap_or(0).max(fetched);
        let class = self.cost.class_for(job, &at.slots.classes);
        begins.saturating_add(self.cost.unit_time(at.key(class), wanted.unit, &[]))
    }

    /// Bytes that a host would have to fetch for an evaluation.
    fn missing_bytes(&self, job: &Job, wanted: OpenEvaluation<'_>, host: HostId) -> u64 {
        let session = self.hosts.session(host);
        let has = |digest: &Digest| session.is_some_and(|session| session.cached.contains(digest));
        let shards = job.evaluated_shards(wanted.trial, wanted.split);
        let blobs = shards.iter().map(|shard| shard.blob);
        let lacking = blobs.filter(|blob| !has(&blob.sha256)).map(|blob| blob.bytes);
        let checkpoint = if wanted.producer() == Some(host) { 0 } else { wanted.checkpoint.bytes };
        lacking.fold(checkpoint, u64::saturating_add)
    }

    /// Are these more evaluations than twice the slots of the fleet?
    fn is_backlog(&self, evaluations: usize) -> bool {
        let twice = self.hosts.fleet().slots().saturating_mul(2);
        u64::try_from(evaluations).is_ok_and(|evaluations| evaluations > twice)
    }
}
