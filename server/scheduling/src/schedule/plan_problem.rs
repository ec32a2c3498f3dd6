//! A job's remaining work as a problem for the planner.

use super::{
    job_plan::JobPlan,
    plan_machines::{PlanProblems, Slot},
    plan_request::{NO_CONTENTION, PlanRequest},
};
use crate::{
    cost::{Cost, WorkloadId},
    hosts::{DeviceKey, reliable_speed},
    index::RemainingWorkIndex,
};
use sojourn_protocol::{
    digest::Digest,
    ids::{Epoch, HostId, JobId, ShardId, TrialId},
    quantity::{SaturatingFrom as _, mul_div, to_u64},
    seeds,
    spec::Replicas,
};
use sojourn_state::{Job, Trial};
use sojourn_workgen::{
    Chain,
    plan::{PACE_ONE, PlanTrial, Problem},
};
use std::{cmp::Ordering, collections::BTreeMap};

/// Hops of one plan. Of longer jobs the next epochs are planned.
const MAX_HOPS: u64 = 50_000;
/// Trials times slots of one plan, which has as many paces. In larger fleets the policy is as good, and a plan would come too
/// late.
const MAX_PACES: u64 = 1 << 23;
/// Microseconds that a problem's hop over a shard takes that its trial doesn't visit.
const UNVISITED_WORK: u64 = 1;
/// Thousandths of the speed of the slowest slot, up to which slots are alike.
const MAX_ALIKE: u64 = 1250;
/// A plan rests on guesses where more than this part of the slots' devices were never measured.
const MANY_PART: usize = 8;
/// Rows by which the times of devices are compared.
const SAMPLE_ROWS: u64 = 1_000_000;
/// The most that planned hops of jobs of higher priority slow a device down, as a factor.
const MAX_PRIORITY_CONTENTION: u64 = 64;

/// A trial that hasn't begun is planned on a device whose numeric class isn't proved as if that were so many times slower: never
/// where another device is there.
const UNPROVED_SLOWDOWN: u64 = 1000;

/// Microseconds over which the hops of a fleet are compared.
const LONG_TIME: u64 = 1 << 40;
/// Where hosts keep shards, a hop takes at least so many times as long as its checkpoint's moves, or no hops are planned.
const MIN_TRAINING_RATIO: u64 = 20;
/// Thousandths of the hops that a fleet could train, which it must train where hosts wait for shards.
const MIN_TRAINED: u64 = 850;

impl PlanProblems<'_> {
    /// A job's remaining work on the hosts in contact, as a planner sees it.
    ///
    /// `None` where there is nothing to plan: any device may train any shard, transfers are negligible, and there are
    /// more slots, all alike, than trials of one class; or trials come one after the other, in depth; or they stay on hosts. Nor for a fleet
    /// that is too large.
    pub fn plan_problem(&self, job: &Job) -> Option<(Problem, PlanRequest)> {
        let placement = &job.spec.placement;
        if placement.residency.keeps_trials()
            || self.depth.is_in_depth(job, || self.cost.slowest_links())
        {
            return None;
        }
        // Each trial would be led past the keepers of shards that it doesn't visit.
        if job.spec.search.folds.is_some() && placement.replicas != Replicas::Demand {
            return None;
        }
        let trials = to_u64(self.planned_trials(job).count());
        // A job that limits its hosts is planned on few of a large fleet's.
        let fleet = self.hosts.fleet().slots();
        let slots = placement.max_hosts.map_or(fleet, |most| fleet.min(most.into()));
        if trials.saturating_mul(slots) > MAX_PACES {
            return None;
        }
        let (slots, machines, classes) = self.plan_machines(job);
        let is_choice = placement.reproducible && classes.len() > 1;
        if placement.replicas == Replicas::Demand
            && !is_choice
            && self.has_slot_for_each(job, &slots)
        {
            return None;
        }
        let shards = (0u32..).map(ShardId).take(job.data.train.len());
        let rows: Vec<u64> = shards.clone().map(|shard| job.rows_of_hop(shard)).collect();
        let (trials, of) = self.plan_trials(job, &slots, &classes, &rows);
        let holders = match placement.replicas {
            Replicas::Demand => vec![None; rows.len()],
            Replicas::Fixed(_) => {
                shards.map(|shard| Some(self.holders(job, shard, &slots))).collect()
            }
        };
        let stays_in_class = placement.reproducible;
        let spread = job.spec.search.spread;
        let mut alone = Problem { trials, machines, holders, stays_in_class, spread };
        if placement.replicas == Replicas::Demand {
            let fetches = self.fetches_per_hop(job, &slots);
            if is_bound_by_fetches(&alone, &fetches) {
                return None;
            }
            slow_down(&mut alone, &fetches);
            wait_for_shards(&mut alone, &self.first_fetches(job, &slots));
        }
        if alone.trials.is_empty() || alone.check().is_err() {
            return None;
        }
        if placement.replicas != Replicas::Demand && is_bound_by_moves(&alone) {
            return None;
        }
        leave_out_unvisited(&mut alone, job, &of);
        let contention = self.contention(job, &slots, &alone);
        let (problem, contention) = match contended(&alone, &contention) {
            Some(contended) => (contended, contention),
            None => (alone, vec![NO_CONTENTION; slots.len()]),
        };
        let mut free = BTreeMap::new();
        for (((host, _), _), machine) in slots.iter().zip(&problem.machines) {
            let at = self.now.0.saturating_mul(1000).saturating_add(machine.free_at);
            let first = free.entry(*host).or_insert(at);
            *first = at.min(*first);
        }
        let asked = PlanRequest {
            at: self.now,
            free,
            fleet: self.hosts.fleet().version() + self.planner.sharing_version(),
            // A trial goes to the hosts of its shards, where these are kept by some.
            migrates: placement.replicas == Replicas::Demand
                && problem.trials.iter().any(PlanTrial::migrates),
            folds: of.iter().filter_map(|(id, _)| Some((*id, job.trial(*id)?.fold?))).collect(),
            trials: of,
            is_guessed: self.are_guessed(&slots),
            devices: slots.into_iter().map(|(device, _)| device).collect(),
            contention,
        };
        Some((problem, asked))
    }

    /// By slot: how much slower it is for this job, relative to [`NO_CONTENTION`], as other jobs have planned hops there.
    ///
    /// While two jobs have hops for a slot, each gets its slot share of it. So the hops of another job count as the part of
    /// this job's length that they take, up to that job's slot share.
    fn contention(&self, job: &Job, slots: &[Slot], problem: &Problem) -> Vec<u64> {
        let mut contention = vec![NO_CONTENTION; slots.len()];
        let planner = self.planner;
        let others = planner.active_jobs().iter().filter(|other| **other != job.id);
        let planned =
            others.filter_map(|other| Some((self.state.jobs.get(other)?, planner.plan(*other)?)));
        let planned: Vec<(&Job, &JobPlan)> = planned.collect();
        if planned.is_empty() {
            return contention;
        }
        let length = problem.lower_bound();
        let mut counts: BTreeMap<(HostId, &str), u64> = BTreeMap::new();
        for ((host, device), _) in slots {
            *counts.entry((*host, device)).or_default() += 1;
        }
        for (other, planning) in planned {
            let (own, theirs) = (&job.spec.placement, &other.spec.placement);
            let most = match theirs.priority.cmp(&own.priority) {
                Ordering::Less => continue,
                Ordering::Equal => {
                    scaled(NO_CONTENTION, theirs.slot_share.into(), own.slot_share.into())
                }
                Ordering::Greater => MAX_PRIORITY_CONTENTION * NO_CONTENTION,
            };
            let loads: BTreeMap<(HostId, &str), u64> = planning.loads().collect();
            for (slowdown, ((host, device), _)) in contention.iter_mut().zip(slots) {
                let key = (*host, device.as_str());
                let count = counts.get(&key).copied().unwrap_or(1);
                let load = loads.get(&key).copied().unwrap_or(0) / count;
                *slowdown += scaled(load, NO_CONTENTION, length).min(most);
            }
        }
        contention
    }

    /// Are there more of these slots than running trials, are the slots alike, and are all transfers negligible? Of slots that aren't, the
    /// longest trials need the fastest.
    fn has_slot_for_each(&self, job: &Job, slots: &[Slot]) -> bool {
        let mut running = self.planned_trials(job);
        let links = self.cost.slowest_links();
        slots.len() > running.clone().count()
            && self.are_alike(slots)
            && running.all(|trial| Cost::transfer_time_over(trial, links).is_negligible())
    }

    /// Were many of these slots' devices never measured?
    fn are_guessed(&self, slots: &[Slot]) -> bool {
        let unmeasured = slots.iter().filter(|((host, device), (flops, speed))| {
            let key = DeviceKey { host: *host, device, flops: *flops, speed: *speed };
            !self.cost.estimates.is_measured(key)
        });
        unmeasured.count() > slots.len() / MANY_PART
    }

    fn are_alike(&self, slots: &[Slot]) -> bool {
        let speeds = slots.iter().map(|((host, device), (flops, speed))| {
            let key = DeviceKey { host: *host, device, flops: *flops, speed: *speed };
            reliable_speed(self.cost.estimates.pace(key), self.cost.reliability(*host))
        });
        let (slowest, fastest) = speeds.fold((u64::MAX, 0), |(slowest, fastest), speed| {
            (speed.min(slowest), speed.max(fastest))
        });
        fastest <= scaled(slowest, MAX_ALIKE, 1000)
    }

    /// The trials that have hops in a row to plan, by id. Of a search with a rule of early stopping that may be few of very many.
    pub(super) fn planned_trials<'a>(
        &'a self,
        job: &'a Job,
    ) -> impl Iterator<Item = &'a Trial> + Clone {
        let running = self.index.remaining(job.id).into_iter().flat_map(RemainingWorkIndex::trials);
        running.filter_map(|trial| job.trial(trial)).filter(|trial| has_planned_work(trial))
    }

    fn plan_trials(
        &self,
        job: &Job,
        slots: &[Slot],
        classes: &[Digest],
        rows: &[u64],
    ) -> (Vec<PlanTrial>, Vec<(TrialId, Epoch)>) {
        let class_of = |trial: &Trial| {
            let required = self.state.expected_class(job, trial);
            required.map(|required| classes.iter().position(|class| *class == required))
        };
        let unproved = self.unproved_slots(job, slots);
        let may_begin = unproved.is_empty() || unproved.contains(&false);
        // A trial whose class nobody is of waits, and one that may begin nowhere.
        let can_go_on = |trial: &&Trial| class_of(trial).map_or(may_begin, |of| of.is_some());
        let running: Vec<&Trial> = self.planned_trials(job).filter(can_go_on).collect();
        let per_epoch = to_u64(running.len() * rows.len()).max(1);
        let most_after = u32::saturating_from(MAX_HOPS / per_epoch);
        let links = self.cost.slowest_links();
        let mut known: BTreeMap<Option<WorkloadId>, PlanTrial> = BTreeMap::new();
        let (mut trials, mut of) = (Vec::new(), Vec::new());
        for trial in running {
            let chain = self.occupancy.expected_chain(trial);
            let open: Vec<u32> = chain.open().map(|shard| shard.0).collect();
            if open.is_empty() {
                continue;
            }
            let epoch = chain.epoch();
            let after = chain.epochs().saturating_sub(epoch.0 + 1);
            let is_negligible = Cost::transfer_time_over(trial, links).is_negligible();
            let last = trial.history.last().map(|hop| hop.host);
            let holder = self.state.in_hand(trial).map(|lease| lease.host).last().or(last);
            let at = holder.and_then(|host| slots.iter().position(|((of, _), _)| *of == host));
            let send = match holder.filter(|_| !is_negligible) {
                Some(host) => self.cost.transfer_time(trial, host).send,
                None => 0,
            };
            let epochs_after = after.min(most_after);
            let class = class_of(trial).flatten().map(u32::saturating_from);
            // Trials of one workload take the same times, and there may be many of them.
            let times = known
                .entry(self.cost.estimates.workload_of(job.id, trial.id))
                .or_insert_with(|| self.plan_times(job.id, trial.id, slots, rows));
            let mut times = times.clone();
            if class.is_none() {
                for (pace, _) in times.pace.iter_mut().zip(&unproved).filter(|(_, is)| **is) {
                    *pace = pace.saturating_mul(UNPROVED_SLOWDOWN);
                }
            }
            trials.push(PlanTrial {
                free_at: self.occupancy.next_version_in(trial, send),
                // The host goes on while the checkpoint is uploaded.
                at: at.map(|slot| (u32::saturating_from(slot), self.occupancy.next_hop_in(trial))),
                epoch: epoch.0,
                checkpoint_bytes: if is_negligible { 0 } else { trial.checkpoint_bytes },
                order: planned_order(job, trial, &chain, epochs_after),
                open,
                epochs_after,
                class,
                ..times
            });
            of.push((trial.id, epoch));
        }
        (trials, of)
    }

    /// A trial's times: by shard on its fastest slot, and how much slower each slot is.
    fn plan_times(&self, job: JobId, trial: TrialId, slots: &[Slot], rows: &[u64]) -> PlanTrial {
        let estimates = self.cost.estimates;
        let mut known: BTreeMap<(HostId, &str), u64> = BTreeMap::new();
        let times = slots.iter().map(|((host, device), (flops, speed))| {
            *known.entry((*host, device)).or_insert_with(|| {
                let key = DeviceKey { host: *host, device, flops: *flops, speed: *speed };
                let micros = estimates.micros(key, job, trial, SAMPLE_ROWS).max(1);
                micros.saturating_mul(1000) / self.cost.reliability(*host).max(1)
            })
        });
        let times: Vec<u64> = times.collect();
        let best = times.iter().copied().min().unwrap_or(1);
        PlanTrial {
            work: rows.iter().map(|rows| scaled(best, *rows, SAMPLE_ROWS).max(1)).collect(),
            pace: times.iter().map(|time| scaled(*time, PACE_ONE, best)).collect(),
            ..PlanTrial::default()
        }
    }
}

/// Would slots that train whole trials wait for shards, so that the fleet trains less than a part of what it could? A
/// plan isn't worth that: the policy has trials go to the shards. `fetches`: by slot, microseconds for each hop.
fn is_bound_by_fetches(problem: &Problem, fetches: &[u64]) -> bool {
    let trials = problem.trials.len();
    // Hops in a time that is long beside all of them.
    let (mut trained, mut possible) = (0_u64, 0_u64);
    for (machine, fetch) in (0..).zip(fetches) {
        let hops = (0..).take(trials).map(|trial| problem.time(trial, 0, machine));
        let hop = hops.fold(0, u64::saturating_add) / to_u64(trials).max(1);
        possible = possible.saturating_add(LONG_TIME / hop.max(1));
        trained = trained.saturating_add(LONG_TIME / hop.max(*fetch).max(1));
    }
    trained < scaled(possible, MIN_TRAINED, 1000)
}

/// Where hosts keep shards, would their checkpoints be on their way for more than a part of the time that hops take? A plan of single
/// hops counts no bytes and isn't worth them: the policy trains several of a host's shards under one lease.
fn is_bound_by_moves(problem: &Problem) -> bool {
    let (mut training, mut moving) = (0_u64, 0_u64);
    for (id, trial) in (0..).zip(&problem.trials) {
        for (number, machine) in (0..).zip(&problem.machines) {
            // Nothing, where that is negligible.
            let bytes = trial.checkpoint_bytes;
            moving = moving.saturating_add(machine.line.send(bytes) + machine.line.fetch(bytes));
            training = training.saturating_add(problem.time(id, 0, number));
        }
    }
    moving > training / MIN_TRAINING_RATIO
}

/// Later epochs of a problem have all shards: hops over those that a trial doesn't visit take no time.
fn leave_out_unvisited(problem: &mut Problem, job: &Job, of: &[(TrialId, Epoch)]) {
    for (trial, (id, _)) in problem.trials.iter_mut().zip(of) {
        let Some(fold) = job.trial(*id).and_then(|trial| trial.fold) else { continue };
        let work = (0..).map(ShardId).zip(&mut trial.work);
        let unvisited = work.filter(|(shard, _)| fold.holds_out(*shard));
        unvisited.for_each(|(_, work)| *work = UNVISITED_WORK);
    }
}

/// No slot trains faster than it gets shards.
fn slow_down(problem: &mut Problem, fetches: &[u64]) {
    for trial in &mut problem.trials {
        let mean = trial.work.iter().sum::<u64>() / to_u64(trial.work.len()).max(1);
        for (pace, fetch) in trial.pace.iter_mut().zip(fetches) {
            *pace = (*pace).max(scaled(*fetch, PACE_ONE, mean));
        }
    }
}

/// A slot ends no trial's first epoch before its host has fetched the shards: it begins so much later. `fetches`: by slot,
/// microseconds.
fn wait_for_shards(problem: &mut Problem, fetches: &[u64]) {
    let trials = to_u64(problem.trials.len()).max(1);
    let epochs = (0..).zip(&problem.machines).map(|(machine, _)| {
        let epochs = problem.trials.iter().map(|trial| {
            let pace = trial.pace.get(machine).copied().unwrap_or(PACE_ONE);
            scaled(trial.work.iter().sum(), pace, PACE_ONE)
        });
        epochs.fold(0, u64::saturating_add) / trials
    });
    let epochs: Vec<u64> = epochs.collect();
    for ((machine, fetch), epoch) in problem.machines.iter_mut().zip(fetches).zip(epochs) {
        machine.free_at = machine.free_at.max(fetch.saturating_sub(epoch));
    }
}

/// The problem with slots slowed down by contention; `None` where none is, or where it becomes too long. Without
/// contention it is still of use then.
fn contended(alone: &Problem, contention: &[u64]) -> Option<Problem> {
    if contention.iter().all(|slowdown| *slowdown == NO_CONTENTION) {
        return None;
    }
    let mut problem = alone.clone();
    for trial in &mut problem.trials {
        for (pace, slowdown) in trial.pace.iter_mut().zip(contention) {
            *pace = scaled(*pace, *slowdown, NO_CONTENTION);
        }
    }
    problem.check().is_ok().then_some(problem)
}

/// A trial's visits in the epoch of its chain and in so many after it; none where their order is free.
fn planned_order(job: &Job, trial: &Trial, chain: &Chain, epochs_after: u32) -> Vec<u32> {
    if !chain.has_fixed_visits() {
        return Vec::new();
    }
    let shards = u32::saturating_from(job.data.train.len());
    let epoch = chain.epoch().0;
    let later = (1..=epochs_after).flat_map(|after| {
        let epoch = Epoch(epoch.saturating_add(after));
        seeds::visit_order(job.spec.seed, trial.id, epoch, shards)
    });
    chain.open().chain(later).map(|shard| shard.0).collect()
}

/// Has a trial hops in a row to plan? The hops of a trial whose results are merged go to any idle device.
pub(super) fn has_planned_work(trial: &Trial) -> bool {
    trial.trains() && trial.merging.is_none()
}

fn scaled(value: u64, by: u64, over: u64) -> u64 {
    mul_div(value, by, over.max(1))
}
