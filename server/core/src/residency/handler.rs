//! ConvergenceChecks, moves by speculation, and moves to rebalance the hosts.

use super::{
    hosts::{Loads, Moves, as_micros},
    looks::{ConvergenceChecks, interval_of},
};
use crate::{fault::CoreFault, leases::LeaseHandler};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, TrialId},
    quantity::Micros,
    residency::MoveKind,
    spec::{Listing, ResidencyPolicy, Scope, SpeCon},
};
use sojourn_scheduling::data::DataPlacement;
use sojourn_state::Event;
use sojourn_workgen::{
    Policy,
    residency::{Destination, Look, Transfer},
};

/// Decides which trials move.
pub(crate) struct ResidencyHandler<'a> {
    pub(crate) leases: LeaseHandler<'a>,
    pub(crate) data: &'a DataPlacement,
    pub(crate) policy: &'a dyn Policy,
    pub(crate) looks: &'a mut ConvergenceChecks,
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
    /// Checks the trials whose time has come, and moves those that are to move. Where a trial has ended the hosts are
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

    fn moves(&self) -> Moves<'_> {
        Moves::of(&self.leases.ledger.scheduler(self.leases.hosts, self.data, self.policy))
    }

    /// Checks the trials of a job: each in turn, so that a request sees what came of those before it.
    fn look(&mut self, job: JobId, rules: &SpeCon) -> Result<(), CoreFault> {
        let trials: Vec<TrialId> =
            self.leases.ledger.index.residents().of(job).map(|(trial, ..)| trial).collect();
        let now = self.leases.ledger.clock.now();
        let mut loads = Loads::default();
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
            seen.converged_at = residence.converged_at.map(as_micros);
            (seen.has_moved, seen.is_rebalanced) = (residence.has_moved, residence.is_rebalanced);
            let asks = seen.look(as_micros(now), &look, rules);
            let (category, growth) = (seen.category, seen.growth().unwrap_or_default());
            let Some(host) = residence.host else { continue };
            if category != residence.category {
                ledger.record(Event::TrialCategorized { job, trial, category, growth })?;
                loads.update(&self.moves(), host);
            }
            if asks {
                self.request((job, trial), host, rules, &mut loads)?;
            }
        }
        let residents = self.leases.ledger.index.residents();
        let looks = self.looks.of(job, now, rules.interval);
        looks.trials.retain(|trial, _| residents.contains(job, *trial));
        Ok(())
    }

    /// A converged trial asks to move out of the way of those that still learn (SpeCon's algorithm 4).
    fn request(
        &mut self,
        (job, trial): (JobId, TrialId),
        from: HostId,
        rules: &SpeCon,
        loads: &mut Loads,
    ) -> Result<(), CoreFault> {
        let here = (rules.scope == Scope::Host).then_some(from);
        if self.leases.ledger.index.residents().learning(job, here) <= 1 {
            return Ok(());
        }
        let decided = self.moves().destination((job, trial), from, rules, loads);
        let (to, scores) = match decided {
            Destination::Move { to, from_score, to_score } => (to, (from_score, to_score)),
            // As the thesis has it, a stay counts as the move.
            Destination::Stay if rules.listing != Listing::Improved => {
                let own = self.moves().homes.load_of(from).score();
                (from, (own, own))
            }
            Destination::Stay => return Ok(()),
        };
        let kind = MoveKind::Speculative;
        self.carry_out(&Move { trial: (job, trial), from, to, kind, loads: scores })?;
        [from, to].into_iter().for_each(|host| loads.update(&self.moves(), host));
        Ok(())
    }

    /// Moves trials from hosts with many to hosts with few, where none learns any more (SpeCon's algorithm 5); or from the host that has
    /// most left to do.
    fn rebalance(&mut self, job: JobId, policy: &ResidencyPolicy) -> Result<(), CoreFault> {
        let Some((mut rebalancing, kind)) = self.moves().rebalancing(job, policy) else {
            return Ok(());
        };
        loop {
            let moves = self.moves();
            let Some(known) = moves.state.jobs.get(&job) else { return Ok(()) };
            let next = rebalancing.next(|resident, to| {
                known.trial(resident.trial.1).is_some_and(|trial| moves.takes(known, trial, to))
            });
            let Some(Transfer { trial, from, to, loads }) = next else { return Ok(()) };
            self.carry_out(&Move { trial, from, to, kind, loads })?;
        }
    }

    /// A trial stays on another host from now on. Its hop comes back as far as it is, unless it ends sooner than it would move.
    fn carry_out(&mut self, of: &Move) -> Result<(), CoreFault> {
        let Move { trial: (job, trial), from, to, kind, loads: (from_load, to_load) } = *of;
        let event = Event::TrialMoved { job, trial, from, to, kind, from_load, to_load };
        self.leases.ledger.record(event)?;
        let Some(known) = self.leases.ledger.state.trial(job, trial).filter(|_| from != to) else {
            return Ok(());
        };
        let overhead = self.moves().move_time(known, from, to);
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

#[expect(clippy::cast_precision_loss, reason = "times and batches are far below 2^53")]
const fn float(number: u64) -> f64 {
    number as f64
}
