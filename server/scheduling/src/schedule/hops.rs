//! Which hop of a job a device gets: what the policy sees, and what it chooses.

use super::{
    assignment::Assignment,
    batching::batch_hops,
    depth::Depth,
    device_shards::DeviceShards,
    explain::GrantReason,
    homes::{Homes, MAX_LEFT},
    scheduler::Scheduler,
};
use crate::{
    hosts::{DeviceRef, DeviceSlots, reliable_speed, training_time},
    index::RemainingWorkIndex,
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    ids::{HostId, ShardId, TrialId, Version},
    position::Position,
    quantity::{Micros, SaturatingFrom as _, Speed, Work, mul_div},
    spec::{LocalSteps, Replicas},
    time::{Millis, UnixMillis},
};
use sojourn_state::{Job, Trial, UnitKey};
use sojourn_workgen::{Candidate, Choice, Decision, EarlierFinish, Forecast, PolicyView, Shards};
use std::{cell::Cell, cmp::Reverse, collections::BTreeSet};

/// Trials that are looked at for ones that are left to other hosts.
const MAX_LEFT_TRIALS: usize = 64;

/// The choice among the hops of one job, for a device.
pub enum HopPick {
    /// This hop.
    Assign(Box<Assignment>),
    /// Hops that it had better leave to others, for so many microseconds.
    Defer(u64),
    /// None yet. The plan has one for it in so many microseconds.
    Expect(u64),
    /// No hop.
    Nothing,
}

/// One job's runnable hops as a device sees them: the policy chooses among them.
struct JobCandidates<'a> {
    scheduler: Scheduler<'a>,
    depth: Depth<'a>,
    homes: Homes<'a>,
    job: &'a Job,
    remaining: &'a RemainingWorkIndex,
    at: DeviceRef<'a>,
    shards: DeviceShards<'a>,
    forecast: Forecast,
    /// Hosts that are loaded less, where trials stay on hosts.
    lighter: Vec<HostId>,
    /// A plan says who trains which trial.
    planned: bool,
    /// A plan says which hop is trained where, one by one.
    ordered: bool,
    /// Microseconds for which a trial is left to the plan, of those that were looked at.
    left: Cell<Option<u64>>,
    /// A trial may begin another epoch.
    may_begin: bool,
    /// A trial may begin here, in the class that the device trains new trials in.
    may_begin_trial: bool,
    /// In depth: the remaining work from which a trial is critical.
    critical: u64,
    turn: Turn,
}

/// The trials that a policy chooses among.
#[derive(Debug, Clone, Copy)]
enum Turn {
    /// All that are runnable.
    All,
    /// The runnable trials of this priority.
    Priority(i32),
    /// This one.
    Trial(TrialId),
}

impl Turn {
    fn is_of(self, job: &Job, trial: TrialId) -> bool {
        match self {
            Self::All => true,
            Self::Priority(turn) => job.priority_of(trial) == turn,
            Self::Trial(only) => only == trial,
        }
    }
}

impl JobCandidates<'_> {
    /// The runnable trials that a turn may be of, as the index has them. The one of [`Turn::Trial`] is looked up: it may be the
    /// last one of many.
    fn open(&self) -> Box<dyn Iterator<Item = (TrialId, u64, UnixMillis)> + '_> {
        match self.turn {
            Turn::Trial(only) => Box::new(self.remaining.open_trial(only).into_iter()),
            Turn::All | Turn::Priority(_) => Box::new(self.remaining.open()),
        }
    }

    /// Is a trial that doesn't stay here left to a host that is loaded less?
    fn is_left_to_lighter(&self, trial: &Trial, waited: Millis) -> bool {
        trial.home() != Some(self.at.host)
            && waited < MAX_LEFT
            && self.lighter.iter().any(|host| self.homes.may_stay(self.job, trial, *host))
    }

    /// Is a trial, which has waited so long, left to the host on which the plan has its next hop? For how long is noted.
    fn is_left_to_plan(&self, trial: &Trial, waited: Millis) -> bool {
        let left = || self.scheduler.left_to_plan(self.job, trial, self.at, waited);
        let Some(left) = self.ordered.then(left).flatten() else { return false };
        self.left.set(Some(self.left.get().map_or(left, |before| before.min(left))));
        true
    }

    /// Is any trial left to hosts that are loaded less?
    fn leaves_any(&self) -> bool {
        let is_left = |(trial, _, since)| {
            let known = self.job.trial(trial);
            known.is_some_and(|of| self.is_left_to_lighter(of, self.scheduler.now - since))
        };
        !self.lighter.is_empty() && self.remaining.open().take(MAX_LEFT_TRIALS).any(is_left)
    }

    /// Does the trial come before those that are further, since it would end last?
    fn is_critical(&self, trial: TrialId) -> bool {
        self.remaining.open_trial(trial).is_some_and(|(_, work, _)| work >= self.critical)
    }
}

impl PolicyView for JobCandidates<'_> {
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_> {
        let open = self.open().filter_map(|(trial, work, since)| {
            let known = self.job.trial(trial).filter(|_| self.turn.is_of(self.job, trial))?;
            // A hop that waits in a busy slot becomes stale, while others go on.
            let ages = self.at.ahead && known.merging.is_some();
            let is_left = matches!(self.turn, Turn::Trial(_))
                && self.depth.is_kept_by_its_host(known, self.at.host);
            let waited = self.scheduler.now - since;
            let fits = !ages
                && !is_left
                && !self.is_left_to_lighter(known, waited)
                && !self.homes.is_kept_at_home(self.job, known, self.at.host, waited)
                && (known.class.is_some() || self.may_begin_trial)
                && (self.may_begin || !known.open_chain().is_between_epochs())
                && !self.scheduler.is_left_to_other_class(self.job, known, self.at)
                && self.scheduler.eligible.may_train(self.job, known, self.at)
                && self.scheduler.eligible.is_capable(self.at.slots, known)
                && !self.is_left_to_plan(known, waited);
            fits.then(|| {
                let transfer_time = match self.planned {
                    true => self.scheduler.cost.round_trip_time(known, self.at.host),
                    false => 0,
                };
                // Nobody is waited for whom the plan names in vain.
                let is_planned =
                    transfer_time > 0 && self.scheduler.is_planned_elsewhere(self.job, known);
                let transfer_time = if is_planned { Micros(transfer_time) } else { Micros::ZERO };
                let (chain, work) = (known.open_chain(), Work(work));
                let waited = Micros::from(waited);
                Candidate { trial, chain, work, waited, transfer_time }
            })
        });
        Box::new(open)
    }

    fn shards(&self) -> Shards<'_> {
        self.shards.shards()
    }

    fn forecast(&self) -> Forecast {
        self.forecast
    }

    fn fastest_for(&self, shard: ShardId) -> Speed {
        match self.job.spec.placement.replicas {
            Replicas::Demand => self.forecast.fastest,
            Replicas::Fixed(_) => {
                self.scheduler.fastest_holder(self.job, shard).max(self.forecast.speed)
            }
        }
    }

    fn fetch_time(&self, shard: ShardId) -> Micros {
        Micros(self.scheduler.local.fetch_cost(self.job, self.at.host, shard))
    }

    fn earlier_finish(
        &self,
        trial: TrialId,
        work: Work,
        within: Micros,
        enough: u32,
    ) -> Option<EarlierFinish> {
        let trial = self.job.trial(trial)?;
        if self.job.spec.placement.residency.keeps_trials() {
            // It is no other host's.
            return None;
        }
        self.scheduler.local.earlier_finish(self.job, trial, self.at, (work, within), enough)
    }
}

impl<'a> Scheduler<'a> {
    /// The hop of a job that a device gets, if any.
    pub fn hop_for(&self, job: &'a Job, at: DeviceRef<'_>, rng: &mut ChaCha8Rng) -> HopPick {
        let Some(remaining) = self.index.remaining(job.id) else { return HopPick::Nothing };
        let links = || self.hosts.session(at.host).map(|session| session.links).unwrap_or_default();
        let depth = Depth::of(self);
        let in_depth = depth.is_in_depth(job, links);
        if in_depth && at.ahead {
            // The slot goes on with its trial, rather than take turns with another one.
            return HopPick::Nothing;
        }
        // A plan knows no turns of trials.
        let has_turns = in_depth || !job.priorities.is_empty();
        if let Some(planned) = self.planned_for(job, at).filter(|_| !has_turns) {
            return planned;
        }
        if self.is_left_out(job, at.host) {
            return HopPick::Nothing;
        }
        let homes = Homes::of(self);
        let mut candidates = JobCandidates {
            scheduler: *self,
            job,
            remaining,
            at,
            shards: self.local.device_shards(job, at),
            forecast: self.forecast(job, remaining, at),
            lighter: homes.lighter_hosts(job, at.host),
            depth,
            homes,
            planned: self.planner.pins_trials(job.id),
            ordered: self.planner.orders_hops(job.id) && !has_turns,
            left: Cell::new(None),
            may_begin: self.occupancy.may_begin_epoch(job),
            may_begin_trial: self.eligible.may_begin_in(
                job,
                at.host,
                self.cost.class_for(job, &at.slots.classes),
            ),
            critical: if in_depth { depth.critical_work(job, remaining) } else { u64::MAX },
            turn: Turn::All,
        };
        let turns: Vec<Turn> = match has_turns {
            false => vec![Turn::All],
            true if in_depth => {
                let deepest = depth.deepest_first(job, remaining, candidates.critical, at.host);
                // None of these may be one for this host.
                deepest.into_iter().map(Turn::Trial).chain([Turn::All]).collect()
            }
            true => {
                let open = remaining.open().map(|(trial, ..)| Reverse(job.priority_of(trial)));
                let priorities: BTreeSet<Reverse<i32>> = open.collect();
                priorities.into_iter().map(|Reverse(turn)| Turn::Priority(turn)).collect()
            }
        };
        let mut pick = HopPick::Nothing;
        for turn in turns {
            candidates.turn = turn;
            match self.policy.choose(&candidates, rng) {
                Decision::Assign(choice) => match self.chosen(&candidates, choice) {
                    Some(chosen) => return HopPick::Assign(Box::new(chosen)),
                    None => return HopPick::Nothing,
                },
                // What comes first is left to another machine: this one does what comes later.
                Decision::Defer(time) => {
                    if matches!(pick, HopPick::Nothing) {
                        pick = HopPick::Defer(time.0);
                    }
                }
                Decision::Nothing => {}
            }
        }
        if let Some(left) = candidates.left.get() {
            pick = match pick {
                HopPick::Defer(micros) => HopPick::Defer(micros.min(left)),
                _ => HopPick::Defer(left),
            };
        }
        if matches!(pick, HopPick::Nothing) && candidates.leaves_any() {
            // It takes it itself where they don't.
            return HopPick::Defer(Micros::from(MAX_LEFT).0);
        }
        pick
    }

    fn chosen(&self, candidates: &JobCandidates<'_>, choice: Choice) -> Option<Assignment> {
        let trial = candidates.job.trial(choice.trial)?;
        let chain = trial.open_chain();
        let start = chain.next(choice.shard)?;
        let unit = UnitKey::Train {
            job: candidates.job.id,
            trial: choice.trial,
            epoch: start.epoch,
            shard: choice.shard,
            from: start.batch,
        };
        let then = match trial.merging {
            None => {
                let extent = self.lease_extent(candidates.job, trial, choice.shard, candidates.at);
                let standing = |shard| extent.standing(&candidates.shards, shard);
                batch_hops(chain, choice.shard, standing, extent.hops)
            }
            Some(_) => Vec::new(),
        };
        let why = match candidates.turn {
            Turn::Trial(_) if candidates.is_critical(trial.id) => GrantReason::Critical,
            Turn::Trial(_) => GrantReason::Depth { begins: trial.version == Version::default() },
            Turn::All | Turn::Priority(_) => GrantReason::Policy(choice.reason),
        };
        let base = trial.version;
        let until = self.local_steps(candidates, trial, start);
        Some(Assignment {
            unit,
            then,
            until,
            base,
            why,
            planned: None,
            speculative_for: None,
            after: None,
        })
    }

    /// Where a hop ends whose result is merged, if not with its shard. With local steps in proportion to speed it ends
    /// after as many batches as the device trains while the fastest one trains the shard. A small rest is included.
    fn local_steps(
        &self,
        candidates: &JobCandidates<'_>,
        trial: &Trial,
        start: Position,
    ) -> Option<u32> {
        let by_speed = candidates.job.spec.placement.local_steps == LocalSteps::BySpeed;
        trial.merging.as_ref().filter(|_| by_speed)?;
        let speed = self.speed(candidates.job, candidates.at);
        let fastest = candidates.fastest_for(start.shard).0;
        let remaining = trial.chain.remaining_in(start.shard);
        let all = u64::from(start.batch.saturating_add(remaining));
        let steps = mul_div(all, speed, fastest.max(1));
        let steps = u32::saturating_from(steps.max(1));
        (steps < remaining && remaining - steps > steps / 2)
            .then(|| start.batch.saturating_add(steps))
    }

    /// When a job is expected to end, if it had all devices to itself.
    fn forecast(&self, job: &Job, remaining: &RemainingWorkIndex, at: DeviceRef<'_>) -> Forecast {
        let fleet = &self.hosts.fleet();
        let speed = self.speed(job, at);
        let class = self.cost.class_for(job, &at.slots.classes);
        let fastest = fleet.fastest(job.spec.placement.reproducible.then_some(class)).max(speed);
        let longest = training_time(remaining.longest(), fastest);
        let ends_in = longest.max(training_time(remaining.total(), fleet.capacity()));
        Forecast { speed: Speed(speed), fastest: Speed(fastest), ends_in: Micros(ends_in) }
    }

    /// The speed of the fastest host in contact that keeps a shard, where each is kept by some.
    fn fastest_holder(&self, job: &Job, shard: ShardId) -> Speed {
        let replicas = self.data.replicas(job.id).into_iter();
        let keepers = replicas.flat_map(|replicas| replicas.all(shard));
        let live = keepers.filter(|host| {
            self.eligible.is_live(*host) && !self.hosts.is_cooling_down(*host, self.now)
        });
        let speeds = live.flat_map(|host| {
            let devices = self.hosts.session(host).into_iter().flat_map(|of| of.devices.values());
            let keeps = move |slots: &&DeviceSlots| {
                slots.count > 0 && self.eligible.keeps_replica(job, &slots.classes, shard, host)
            };
            let at = move |slots| DeviceRef { host, slots, ahead: false };
            devices.filter(keeps).map(move |slots| self.speed(job, at(slots)))
        });
        Speed(speeds.max().unwrap_or(0))
    }

    fn speed(&self, job: &Job, at: DeviceRef<'_>) -> u64 {
        let name = at.key(self.cost.class_for(job, &at.slots.classes));
        let pace = self.cost.estimates.pace(name);
        reliable_speed(pace, self.cost.reliability(at.host))
    }
}
