//! Loads of hosts, and the hosts to which a trial could move.

use sojourn_protocol::{
    ids::{HostId, JobId, ShardId, TrialId},
    quantity::{Micros, to_u64},
    residency::MoveKind,
    spec::{ResidencyPolicy, SpeCon},
    time::{Millis, UnixMillis},
    unit::shard_index,
};
use sojourn_scheduling::{
    cost::Cost,
    hosts::{Hosts, training_time},
    index::DerivedIndex,
    schedule::{Eligibility, Homes, Locality, Scheduler},
};
use sojourn_state::{Job, State, Trial};
use sojourn_workgen::residency::{
    Balance, Destination, HostLoad, Rebalancing, Resident, destination,
};
use std::collections::BTreeMap;

/// The time for which a trial that moves stands still beside the transfer of its checkpoint, until somebody measures it.
const RESTORE: Micros = Micros::from_secs(1);

/// Hosts that are asked whether they take a trial.
const MAX_ASKED: usize = 64;

/// The loads of the hosts in contact, at one look at a job. They are gone through once the first trial asks to move.
#[derive(Debug, Default)]
pub(super) struct Loads {
    hosts: Option<BTreeMap<HostId, HostLoad>>,
}

impl Loads {
    /// A host has another trial, or another category of one.
    pub(super) fn update(&mut self, moves: &Moves<'_>, host: HostId) {
        let known = self.hosts.as_mut().and_then(|hosts| hosts.get_mut(&host));
        if let Some(load) = known {
            *load = Self::of(moves, host);
        }
    }

    /// The hosts with a score below this one, the best to move to first.
    fn lighter(&mut self, moves: &Moves<'_>, than: f64) -> Vec<HostLoad> {
        let all = || moves.eligible.live_hosts(None).map(|host| (host, Self::of(moves, host)));
        let hosts = self.hosts.get_or_insert_with(|| all().collect());
        let scored = hosts.values().map(|load| (load.score(), *load));
        let mut lighter: Vec<(f64, HostLoad)> = scored.filter(|(score, _)| *score < than).collect();
        lighter.sort_by(|(a, of), (b, other)| {
            let by_score = a.total_cmp(b).then(of.busy.total_cmp(&other.busy));
            by_score.then(of.host.cmp(&other.host))
        });
        lighter.into_iter().map(|(_, load)| load).collect()
    }

    fn of(moves: &Moves<'_>, host: HostId) -> HostLoad {
        HostLoad { busy: moves.homes.busy_of(host), ..moves.homes.load_of(host) }
    }
}

/// The hosts to which trials could move. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Moves<'a> {
    pub(crate) state: &'a State,
    pub(crate) hosts: &'a Hosts,
    pub(crate) index: &'a DerivedIndex,
    pub(crate) cost: Cost<'a>,
    pub(crate) eligible: Eligibility<'a>,
    pub(crate) local: Locality<'a>,
    pub(crate) homes: Homes<'a>,
}

impl<'a> Moves<'a> {
    pub(crate) fn of(from: &Scheduler<'a>) -> Self {
        Self {
            state: from.state,
            hosts: from.hosts,
            index: from.index,
            cost: from.cost,
            eligible: from.eligible,
            local: from.local,
            homes: Homes::of(from),
        }
    }
}

impl Moves<'_> {
    /// Could a trial move to a host: is there room, could the host train it, and would its data be there before the trial ends anyway?
    pub(super) fn takes(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        if !self.homes.has_room(job, trial, host) || !self.homes.may_stay(job, trial, host) {
            return false;
        }
        let shards = (0..).map(ShardId).take(job.data.train.len());
        let shards = shards.filter(|shard| trial.chain.visits(*shard));
        let session = self.hosts.session(host);
        let lacks = shards.filter(|shard| {
            let blob = job.data.train.get(shard_index(*shard)).map(|shard| shard.blob.sha256);
            !session.zip(blob).is_some_and(|(session, blob)| session.has_blob(&blob))
        });
        let checkpoint = self.cost.transfer_time(trial, host).fetch;
        let fetch = lacks.fold(checkpoint, |all, shard| {
            all.saturating_add(self.local.fetch_cost(job, host, shard))
        });
        let work = self.cost.estimates.work_left(job.id, trial);
        fetch <= training_time(work, self.hosts.fleet().speed(host))
    }

    /// How long a trial that moves to a host stands still.
    pub(super) fn move_time(&self, trial: &Trial, from: HostId, to: HostId) -> Micros {
        let send = self.cost.transfer_time(trial, from).send;
        let fetch = self.cost.transfer_time(trial, to).fetch;
        RESTORE + Micros(send.saturating_add(fetch))
    }

    /// Where a converged trial goes from its host.
    pub(super) fn destination(
        &self,
        (job, trial): (JobId, TrialId),
        from: HostId,
        rules: &SpeCon,
        loads: &mut Loads,
    ) -> Destination {
        let known = self.state.jobs.get(&job).and_then(|job| Some((job, job.trial(trial)?)));
        let Some((job, trial)) = known else { return Destination::Stay };
        let own = self.homes.load_of(from);
        let lighter = loads.lighter(self, own.score()).into_iter().take(MAX_ASKED);
        let taker = lighter
            .map(|load| HostLoad { takes: self.takes(job, trial, load.host), ..load })
            .find(|load| load.takes);
        let hosts: Vec<HostLoad> = [own].into_iter().chain(taker).collect();
        destination(from, &hosts, rules)
    }

    /// The hosts and trials that a job's trials can be moved between where it isn't by speculation; none where it isn't time to.
    pub(super) fn rebalancing(
        &self,
        job: JobId,
        policy: &ResidencyPolicy,
    ) -> Option<(Rebalancing, MoveKind)> {
        let known = self.state.jobs.get(&job)?;
        let residents = self.index.residents();
        let stays = |of: &Trial| of.residence.is_none_or(|of| of.is_rebalanced);
        let mut movable = residents.of(job).filter_map(|(trial, ..)| known.trial(trial));
        let first = movable.find(|trial| !stays(trial))?;
        let (balance, kind) = match policy {
            ResidencyPolicy::None | ResidencyPolicy::LeastLoaded => return None,
            ResidencyPolicy::SpeCon(rules) => {
                let to_begin = self.index.remaining(job).map_or(0, |left| left.to_begin());
                if to_begin > 0 || residents.learning(job, None) > 0 {
                    return None;
                }
                (Balance::Trials(rules.listing), MoveKind::Rebalance)
            }
            ResidencyPolicy::ShortestRemaining(_) => {
                let transfer = Cost::transfer_time_over(first, self.cost.slowest_links());
                let moves = Micros(transfer.send.saturating_add(transfer.fetch));
                (Balance::Work { overhead: RESTORE + moves }, MoveKind::Remaining)
            }
        };
        let hosts = self.eligible.live_hosts(None).map(|host| (host, self.homes.capacity_of(host)));
        let trials = residents.all().filter_map(|(trial, host)| {
            let resident = self.resident(trial, host)?;
            // Other jobs' trials count, and stay.
            Some(Resident { is_rebalanced: resident.is_rebalanced || trial.0 != job, ..resident })
        });
        Some((Rebalancing::new(balance, hosts, trials), kind))
    }

    fn resident(&self, (job, trial): (JobId, TrialId), host: HostId) -> Option<Resident> {
        let known = self.state.trial(job, trial)?;
        let residence = known.residence?;
        let fleet = self.hosts.fleet();
        let mean = fleet.capacity() / to_u64(fleet.count()).max(1);
        let work = self.cost.estimates.work_left(job, known);
        Some(Resident {
            trial: (job, trial),
            host,
            converged_at: residence.converged_at.map(as_micros).unwrap_or_default(),
            remaining: Micros(training_time(work, mean)),
            is_rebalanced: residence.is_rebalanced,
        })
    }
}

/// As looks count time.
pub(super) fn as_micros(at: UnixMillis) -> Micros {
    Micros::from(Millis(at.0))
}
