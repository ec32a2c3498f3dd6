//! Which hop of a job a device gets: what the policy sees, and what it chooses.

use super::{
    assignment::Assignment, batching::batch_hops, explain::GrantReason, residency::Residency,
    scheduler::Scheduler,
};
use crate::{
    cost::DeviceKey,
    event::UnitKey,
    hosts::{DeviceRef, SPEED_ONE, reliable_speed, training_time},
    index::RemainingWorkIndex,
    state::{Job, Trial},
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    ids::{ShardId, TrialId},
    position::Position,
    spec::{LocalSteps, Replicas},
    unit::shard_index,
};
use sojourn_workgen::{Board, Candidate, Choice, Decision, Outlook, Shards, Sooner};

/// Hops of one lease, where their number follows from the size of the checkpoint.
const MAX_HOPS: u32 = 1024;

/// What a job has for a device.
pub(crate) enum HopPick {
    /// This hop.
    Assign(Box<Assignment>),
    /// Hops that it had better leave to others, for so many microseconds.
    Defer(u64),
    /// None.
    Nothing,
}

/// One job's runnable hops as a device sees them: the policy chooses among them.
struct JobCandidates<'a> {
    scheduler: Scheduler<'a>,
    job: &'a Job,
    remaining: &'a RemainingWorkIndex,
    at: DeviceRef<'a>,
    residency: Residency<'a>,
    outlook: Outlook,
    /// A plan says who trains which trial.
    planned: bool,
}

impl Board for JobCandidates<'_> {
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_> {
        let open = self.remaining.open().filter_map(|(trial, work, since)| {
            let known = self.job.trial(trial)?;
            // A hop that waits in a busy slot becomes stale, while others go on.
            let ages = self.at.ahead && known.merging.is_some();
            let fits = !ages
                && self.scheduler.may_train(self.job, known, self.at)
                && self.scheduler.fits_memory(self.at.slots, known);
            let waited = (self.scheduler.now - since).0.saturating_mul(1000);
            fits.then(|| {
                let way = if self.planned {
                    self.scheduler.round_trip_time(known, self.at.host)
                } else {
                    0
                };
                Candidate { trial, chain: known.open_chain(), work, waited, way }
            })
        });
        Box::new(open)
    }

    fn shards(&self) -> Shards<'_> {
        self.residency.shards()
    }

    fn outlook(&self) -> Outlook {
        self.outlook
    }

    fn fetch(&self, shard: ShardId) -> u64 {
        self.scheduler.fetch_cost(self.job, self.at.host, shard)
    }

    fn sooner(&self, trial: TrialId, work: u64, within: u64, enough: u32) -> Option<Sooner> {
        let trial = self.job.trial(trial)?;
        self.scheduler.sooner(self.job, trial, self.at, (work, within), enough)
    }
}

impl<'a> Scheduler<'a> {
    /// Hops of a trial that one lease of a device should cover.
    pub(crate) fn hops_per_lease(
        &self,
        job: &Job,
        trial: &Trial,
        shard: ShardId,
        at: DeviceRef<'_>,
    ) -> u32 {
        if let Some(most) = self.config.most_hops {
            return most;
        }
        let device = &at.slots.device;
        let name = DeviceKey { host: at.host, device: &device.name, flops: device.flops };
        let rows = job.data.train.get(shard_index(shard)).map_or(0, |shard| u64::from(shard.rows));
        let hop = self.estimates.micros(name, job.id, trial.id, rows);
        self.transfer_time(trial, at.host).hops(hop, MAX_HOPS)
    }

    /// The hop of a job that a device gets, if any.
    pub(crate) fn hop_for(&self, job: &'a Job, at: DeviceRef<'_>, rng: &mut ChaCha8Rng) -> HopPick {
        let Some(remaining) = self.index.remaining(job.id) else { return HopPick::Nothing };
        if let Some(planned) = self.planned_for(job, at) {
            return planned;
        }
        let board = JobCandidates {
            scheduler: *self,
            job,
            remaining,
            at,
            residency: self.residency(job, at),
            outlook: self.outlook(job, remaining, at),
            planned: self.planner.pins_trials(job.id),
        };
        match self.policy.choose(&board, rng) {
            Decision::Take(choice) => match self.chosen(&board, choice) {
                Some(chosen) => HopPick::Assign(Box::new(chosen)),
                None => HopPick::Nothing,
            },
            Decision::Wait(micros) => HopPick::Defer(micros),
            Decision::Nothing => HopPick::Nothing,
        }
    }

    fn chosen(&self, board: &JobCandidates<'_>, choice: Choice) -> Option<Assignment> {
        let trial = board.job.trial(choice.trial)?;
        let chain = trial.open_chain();
        let start = chain.next(choice.shard)?;
        let unit = UnitKey::Train {
            job: board.job.id,
            trial: choice.trial,
            epoch: start.epoch,
            shard: choice.shard,
            from: start.batch,
        };
        let locality = |shard| board.residency.standing(shard);
        let most = match trial.merging {
            None => self.hops_per_lease(board.job, trial, choice.shard, board.at),
            Some(_) => 1,
        };
        let then = batch_hops(chain, choice.shard, locality, most);
        let why = GrantReason::Policy(choice.why);
        let base = trial.version;
        let until = self.local_steps(board, trial, start);
        Some(Assignment { unit, then, until, base, why, planned: None, copy_of: None, after: None })
    }

    /// Where a hop ends whose result is merged, if not with its shard. With local steps in proportion to speed it ends
    /// after as many batches as the device trains while the fastest one trains the shard. A small rest is included.
    fn local_steps(
        &self,
        board: &JobCandidates<'_>,
        trial: &Trial,
        start: Position,
    ) -> Option<u32> {
        let by_speed = board.job.spec.placement.local_steps == LocalSteps::BySpeed;
        trial.merging.as_ref().filter(|_| by_speed)?;
        let (speed, fastest) = (self.speed(board.at), board.outlook.fastest);
        let left = trial.chain.left_of(start.shard);
        let all = u128::from(start.batch.saturating_add(left));
        let steps = all * u128::from(speed) / u128::from(fastest.max(1));
        let steps = u32::try_from(steps.max(1)).unwrap_or(u32::MAX);
        (steps < left && left - steps > steps / 2).then(|| start.batch.saturating_add(steps))
    }

    /// When a job is expected to end, if it had all devices to itself.
    fn outlook(&self, job: &Job, remaining: &RemainingWorkIndex, at: DeviceRef<'_>) -> Outlook {
        let fleet = &self.hosts.fleet();
        let speed = self.speed(at);
        let fastest = match job.spec.placement.replicas {
            Replicas::Demand => fleet.fastest(job.spec.placement.reproducible.then(|| at.class())),
            Replicas::Fixed(_) => speed,
        };
        let fastest = fastest.max(speed);
        let longest = training_time(remaining.longest(), fastest);
        let ends_in = longest.max(training_time(remaining.total(), fleet.capacity()));
        Outlook { speed, fastest, unit: SPEED_ONE, ends_in }
    }

    fn speed(&self, at: DeviceRef<'_>) -> u64 {
        let device = &at.slots.device;
        let name = DeviceKey { host: at.host, device: &device.name, flops: device.flops };
        let pace = self.estimates.pace(name);
        reliable_speed(pace, self.reliability(at.host))
    }
}
