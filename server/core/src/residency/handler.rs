//! Looks, moves by speculation, and moves to rebalance the hosts.

use super::looks::{Looks, interval_of};
use crate::{
    cost::Cost,
    data::DataPlacement,
    event::Event,
    fault::CoreFault,
    hosts::training_time,
    leases::LeaseHandler,
    schedule::Scheduler,
    state::{Job, Trial},
};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, ShardId, TrialId},
    quantity::{Micros, to_u64},
    residency::{Category, MoveKind},
    spec::{Listing, ResidencyPolicy, Scope, SpeCon},
    time::{Millis, UnixMillis},
    unit::shard_index,
};
use sojourn_workgen::{
    Policy,
    residency::{
        Destination, HostLoad, Look, Resident, ResidentHost, destination, rebalance,
        shortest_remaining,
    },
};

/// What a trial that moves stands still beside the transfer of its checkpoint, until somebody measures it.
const RESTORE: Micros = Micros::from_secs(1);

/// Decides which trials move.
pub(crate) struct ResidencyHandler<'a> {
    pub(crate) leases: LeaseHandler<'a>,
    pub(crate) data: &'a DataPlacement,
    pub(crate) policy: &'a dyn Policy,
    pub(crate) looks: &'a mut Looks,
}

/// A trial is to move.
struct Move {
    trial: (JobId, TrialId),
    from: HostId,
    to: HostId,
    kind: MoveKind,
    loads: (f64, f64),
}

impl ResidencyHandler<'_> {
    /// Looks at the trials whose time has come, and moves those that are to move. Where a trial has ended the hosts are
    /// compared at once.
    pub(crate) fn settle(&mut self) -> Result<(), CoreFault> {
        let now = self.leases.ledger.clock.now();
        let index = &*self.leases.ledger.index;
        self.looks.keep(index.movable());
        let wants = |job: &JobId| self.looks.is_due(*job, index.residents().count_of(*job), now);
        let jobs: Vec<JobId> = index.movable().iter().copied().filter(wants).collect();
        for id in jobs {
            let Some(job) = self.leases.ledger.state.jobs.get(&id) else { continue };
            let (policy, is_paused) = (job.spec.placement.residency, job.paused_at.is_some());
            let Some(interval) = policy.interval() else { continue };
            let residents = self.leases.ledger.index.residents().count_of(id);
            let looks = self.looks.of(id, now, interval);
            let (is_due, has_ended) = (looks.due <= now, residents < looks.residents);
            looks.residents = residents;
            if is_due {
                looks.due = now + interval_of(interval);
            }
            if is_paused {
                continue;
            }
            if let (true, ResidencyPolicy::SpeCon(rules)) = (is_due, policy) {
                self.look(id, &rules)?;
            }
            if is_due || has_ended {
                self.rebalance(id, &policy)?;
            }
        }
        Ok(())
    }

    fn scheduler(&self) -> Scheduler<'_> {
        Scheduler::new(&self.leases.ledger, self.leases.hosts, self.data, self.policy)
    }

    /// Looks at the trials of a job: each in turn, so that a request sees what came of those before it.
    fn look(&mut self, job: JobId, rules: &SpeCon) -> Result<(), CoreFault> {
        let trials: Vec<TrialId> =
            self.leases.ledger.index.residents().of(job).map(|(trial, ..)| trial).collect();
        let now = self.leases.ledger.clock.now();
        for trial in trials {
            let ledger = &mut self.leases.ledger;
            let heard = ledger.leases.losses_mut().take((job, trial), rules.least_batches);
            let Some(heard) = heard else { continue };
            let Some(known) = ledger.state.trial(job, trial) else { continue };
            let Some(residence) = known.residence else { continue };
            let batches = f64::from(heard.batches);
            let whole = known.context.total_steps;
            let look = Look {
                loss: heard.sum / batches,
                batches: heard.batches,
                done: (whole > 0).then(|| batches / float(whole)),
            };
            let looks = self.looks.of(job, now, rules.interval);
            let seen = looks.trials.entry(trial).or_default();
            // What is journalled counts; after a restart the rest is new.
            seen.category = residence.category;
            seen.converged_at = residence.converged_at.map(micros);
            (seen.has_moved, seen.is_rebalanced) = (residence.has_moved, residence.is_rebalanced);
            let asks = seen.look(micros(now), &look, rules);
            let (category, growth) = (seen.category, seen.growth().unwrap_or_default());
            if category != residence.category {
                ledger.record(Event::TrialCategorized { job, trial, category, growth })?;
            }
            if let Some(from) = residence.host.filter(|_| asks) {
                self.request((job, trial), from, rules)?;
            }
        }
        let residents: Vec<TrialId> =
            self.leases.ledger.index.residents().of(job).map(|(trial, ..)| trial).collect();
        let looks = self.looks.of(job, now, rules.interval);
        looks.trials.retain(|trial, _| residents.binary_search(trial).is_ok());
        Ok(())
    }

    /// A converged trial asks to move out of the way of those that still learn (SpeCon's algorithm 4).
    fn request(
        &mut self,
        (job, trial): (JobId, TrialId),
        from: HostId,
        rules: &SpeCon,
    ) -> Result<(), CoreFault> {
        let residents = self.leases.ledger.index.residents();
        let learning = residents.of(job).filter(|(_, host, category)| {
            let counts = rules.scope == Scope::Cluster || *host == from;
            counts && *category != Category::Converged
        });
        if learning.count() <= 1 {
            return Ok(());
        }
        let scheduler = self.scheduler();
        let known = scheduler.state.jobs.get(&job).and_then(|job| Some((job, job.trial(trial)?)));
        let Some((of_job, of)) = known else { return Ok(()) };
        let own = scheduler.load_of(from).score();
        let loads = scheduler.live_hosts(None).map(|host| {
            let load = scheduler.load_of(host);
            let takes = load.score() < own && scheduler.takes(of_job, of, host);
            HostLoad { busy: scheduler.busy_of(host), takes, ..load }
        });
        let loads: Vec<HostLoad> = loads.collect();
        let (to, loads) = match destination(from, &loads, rules) {
            Destination::Move { to, from_score, to_score } => (to, (from_score, to_score)),
            // As the thesis has it, a stay counts as the move.
            Destination::Stay if rules.listing != Listing::Improved => (from, (own, own)),
            Destination::Stay => return Ok(()),
        };
        let kind = MoveKind::Speculative;
        self.carry_out(&Move { trial: (job, trial), from, to, kind, loads })
    }

    /// Moves trials from hosts with many to hosts with few, where none learns any more (SpeCon's algorithm 5); or from the host that has
    /// most left to do.
    fn rebalance(&mut self, job: JobId, policy: &ResidencyPolicy) -> Result<(), CoreFault> {
        let mut immovable = Vec::new();
        while let Some((of, can)) = self.scheduler().next_rebalancing(job, policy, &immovable) {
            match can {
                true => self.carry_out(&of)?,
                false => immovable.push(of.trial.1),
            }
        }
        Ok(())
    }

    /// A trial stays on another host from now on. Its hop comes back as far as it is, unless it ends sooner than it would move.
    fn carry_out(&mut self, of: &Move) -> Result<(), CoreFault> {
        let Move { trial: (job, trial), from, to, kind, loads: (from_load, to_load) } = *of;
        let event = Event::TrialMoved { job, trial, from, to, kind, from_load, to_load };
        self.leases.ledger.record(event)?;
        let Some(known) = self.leases.ledger.state.trial(job, trial).filter(|_| from != to) else {
            return Ok(());
        };
        let overhead = self.scheduler().move_time(known, from, to);
        let live: Vec<LeaseId> = known.live.iter().copied().collect();
        for lease in live {
            let ledger = &mut self.leases.ledger;
            if let Some(provisional) = ledger.leases.provisional_mut().take_after(lease) {
                ledger.withdrawn(&provisional);
            }
            // A part of a unit that is verified is of no use.
            let leaves = ledger.state.leases.get(&lease).is_some_and(|lease| {
                lease.host != to && !ledger.state.is_being_verified(&lease.unit)
            });
            if leaves && Micros(self.leases.occupancy().remaining_time(lease)) > overhead {
                self.leases.stop(lease)?;
            }
        }
        Ok(())
    }
}

impl Scheduler<'_> {
    /// Could a trial move to a host: is there room, could the host train it, and would its data be there before the trial ends anyway?
    fn takes(&self, job: &Job, trial: &Trial, host: HostId) -> bool {
        if !self.has_room(job, trial, host) || !self.may_stay(job, trial, host) {
            return false;
        }
        let shards = (0..).map(ShardId).take(job.data.train.len());
        let session = self.hosts.session(host);
        let lacks = shards.filter(|shard| {
            let blob = job.data.train.get(shard_index(*shard)).map(|shard| shard.blob.sha256);
            !session.zip(blob).is_some_and(|(session, blob)| session.has_blob(&blob))
        });
        let checkpoint = self.transfer_time(trial, host).fetch;
        let fetch = lacks
            .fold(checkpoint, |all, shard| all.saturating_add(self.fetch_cost(job, host, shard)));
        let work = self.estimates.work_left(job.id, trial);
        fetch <= training_time(work, self.hosts.fleet().speed(host))
    }

    /// How long a trial that moves to a host stands still.
    fn move_time(&self, trial: &Trial, from: HostId, to: HostId) -> Micros {
        let send = self.transfer_time(trial, from).send;
        let fetch = self.transfer_time(trial, to).fetch;
        RESTORE + Micros(send.saturating_add(fetch))
    }

    /// The next move of a job that isn't by speculation, and whether the host can take the trial.
    fn next_rebalancing(
        &self,
        job: JobId,
        policy: &ResidencyPolicy,
        immovable: &[TrialId],
    ) -> Option<(Move, bool)> {
        let known = self.state.jobs.get(&job)?;
        let residents = self.index.residents();
        let mut of_job = residents.of(job);
        let to_begin = self.index.remaining(job).map_or(0, |remaining| remaining.to_begin());
        match policy {
            ResidencyPolicy::SpeCon(_)
                if to_begin > 0 || of_job.any(|(.., category)| category != Category::Converged) =>
            {
                return None;
            }
            ResidencyPolicy::None | ResidencyPolicy::LeastLoaded => return None,
            ResidencyPolicy::SpeCon(_) | ResidencyPolicy::ShortestRemaining(_) => {}
        }
        let movable: Vec<&Trial> = residents
            .of(job)
            .filter(|(trial, ..)| !immovable.contains(trial))
            .filter_map(|(trial, ..)| known.trial(trial))
            .filter(|trial| trial.residence.is_some_and(|of| !of.is_rebalanced))
            .collect();
        // A host that could take none of them is no receiver.
        let hosts: Vec<ResidentHost> = self
            .live_hosts(None)
            .map(|host| ResidentHost {
                host,
                capacity: self.capacity_of(host),
                takes: !self.is_full(host)
                    && movable.iter().any(|trial| self.takes(known, trial, host)),
            })
            .collect();
        let trials: Vec<Resident> = residents
            .all()
            .filter_map(|(trial, host)| {
                let resident = self.resident(trial, host)?;
                // Other jobs' trials count, and stay.
                let stays = trial.0 != job || immovable.contains(&trial.1);
                Some(Resident { is_rebalanced: resident.is_rebalanced || stays, ..resident })
            })
            .collect();
        let loads_of = |host: HostId, weigh: &dyn Fn(&Resident) -> f64| {
            let of = hosts.iter().find(|of| of.host == host).map_or(1.0, |of| of.capacity);
            trials.iter().filter(|trial| trial.host == host).map(weigh).sum::<f64>() / of
        };
        let (transfer, kind, weigh): (_, _, &dyn Fn(&Resident) -> f64) = match policy {
            ResidencyPolicy::SpeCon(rules) => {
                (rebalance(&hosts, &trials, rules.listing)?, MoveKind::Rebalance, &|_| 1.0)
            }
            _ => {
                let first = movable.first()?;
                let links = self.slowest_links();
                let transfer = Cost::transfer_time_over(first, links);
                let moves = transfer.send.saturating_add(transfer.fetch);
                let overhead = RESTORE + Micros(moves);
                let transfer = shortest_remaining(&hosts, &trials, overhead)?;
                (transfer, MoveKind::Remaining, &|trial| float(trial.remaining.0) / 1e6)
            }
        };
        let can = self.takes(known, known.trial(transfer.trial.1)?, transfer.to);
        let loads = (loads_of(transfer.from, weigh), loads_of(transfer.to, weigh));
        let (trial, from, to) = (transfer.trial, transfer.from, transfer.to);
        Some((Move { trial, from, to, kind, loads }, can))
    }

    fn resident(&self, (job, trial): (JobId, TrialId), host: HostId) -> Option<Resident> {
        let known = self.state.trial(job, trial)?;
        let residence = known.residence?;
        let fleet = self.hosts.fleet();
        let mean = fleet.capacity() / to_u64(fleet.len()).max(1);
        let work = self.estimates.work_left(job, known);
        Some(Resident {
            trial: (job, trial),
            host,
            converged_at: residence.converged_at.map(micros).unwrap_or_default(),
            remaining: Micros(training_time(work, mean)),
            is_rebalanced: residence.is_rebalanced,
        })
    }
}

/// As looks count time.
fn micros(at: UnixMillis) -> Micros {
    Micros::from(Millis(at.0))
}

#[expect(clippy::cast_precision_loss, reason = "times and batches are far below 2^53")]
const fn float(number: u64) -> f64 {
    number as f64
}
