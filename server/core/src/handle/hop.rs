//! Which hop of a job an idle place gets: what the policy sees, and what it says.

use super::{choose::Chosen, fit::Place, legs::legs, reason::Reason, shelf::Shelf};
use crate::{
    core::Core,
    event::UnitKey,
    schedule::{PlaceName, Ranks, SPEED_ONE, takes},
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

/// Hops of one lease, where their number goes by bytes.
const MOST_HOPS: u32 = 1024;

/// What a job has for a place.
pub(crate) enum Hop {
    /// This hop.
    Chosen(Box<Chosen>),
    /// Hops that it had better leave to others, for so many microseconds.
    Wait(u64),
    /// None.
    Nothing,
}

/// One job's open hops as a place sees them.
struct JobBoard<'a> {
    core: &'a Core,
    job: &'a Job,
    ranks: &'a Ranks,
    place: Place<'a>,
    shelf: Shelf<'a>,
    outlook: Outlook,
    /// A plan says who trains which trial.
    planned: bool,
}

impl Board for JobBoard<'_> {
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_> {
        let open = self.ranks.open().filter_map(|(trial, work, since)| {
            let known = self.job.trial(trial)?;
            // What waits for its turn grows old there, where others go on meanwhile.
            let ages = self.place.ahead && known.merging.is_some();
            let fits = !ages
                && self.core.may_train(self.job, known, self.place)
                && self.core.has_room(self.place.slots, known);
            let waited = (self.core.now - since).0.saturating_mul(1000);
            fits.then(|| {
                let way = if self.planned { self.core.way(known, self.place.host) } else { 0 };
                Candidate { trial, chain: known.open_chain(), work, waited, way }
            })
        });
        Box::new(open)
    }

    fn shards(&self) -> Shards<'_> {
        self.shelf.shards()
    }

    fn outlook(&self) -> Outlook {
        self.outlook
    }

    fn fetch(&self, shard: ShardId) -> u64 {
        self.core.fetch_of(self.job, self.place.host, shard)
    }

    fn sooner(&self, trial: TrialId, work: u64, within: u64, enough: u32) -> Option<Sooner> {
        let trial = self.job.trial(trial)?;
        self.core.sooner(self.job, trial, self.place, (work, within), enough)
    }
}

impl Core {
    /// Hops of a trial that one lease of a place should be of.
    pub(crate) fn hops_worth(
        &self,
        job: &Job,
        trial: &Trial,
        shard: ShardId,
        place: Place<'_>,
    ) -> u32 {
        if let Some(most) = self.config.most_hops {
            return most;
        }
        let device = &place.slots.device;
        let name = PlaceName { host: place.host, device: &device.name, flops: device.flops };
        let rows = job.data.train.get(shard_index(shard)).map_or(0, |shard| u64::from(shard.rows));
        let hop = self.soft.schedule.estimates.micros(name, job.id, trial.id, rows);
        self.moves_of(trial, place.host).hops(hop, MOST_HOPS)
    }

    /// The hop that a place gets of a job, if any.
    pub(crate) fn hop_for(&self, job: &Job, place: Place<'_>, chance: &mut ChaCha8Rng) -> Hop {
        let Some(ranks) = self.soft.schedule.ranks.get(&job.id) else { return Hop::Nothing };
        if let Some(planned) = self.planned_for(job, place) {
            return planned;
        }
        let board = JobBoard {
            core: self,
            job,
            ranks,
            place,
            shelf: self.shelf(job, place),
            outlook: self.outlook(job, ranks, place),
            planned: self.is_planned(job.id),
        };
        match self.policy.choose(&board, chance) {
            Decision::Take(choice) => match self.chosen(&board, choice) {
                Some(chosen) => Hop::Chosen(Box::new(chosen)),
                None => Hop::Nothing,
            },
            Decision::Wait(micros) => Hop::Wait(micros),
            Decision::Nothing => Hop::Nothing,
        }
    }

    fn chosen(&self, board: &JobBoard<'_>, choice: Choice) -> Option<Chosen> {
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
        let standing = |shard| board.shelf.standing(shard);
        let most = match trial.merging {
            None => self.hops_worth(board.job, trial, choice.shard, board.place),
            Some(_) => 1,
        };
        let then = legs(chain, choice.shard, standing, most);
        let why = Reason::Policy(choice.why);
        let base = trial.version;
        let until = self.local_steps(board, trial, start);
        Some(Chosen { unit, then, until, base, why, planned: None, copy_of: None, after: None })
    }

    /// Where a hop ends whose result is merged, if not with its shard: with local steps in proportion to speed, after
    /// as many batches as the place trains while the fastest trains the shard. A small rest goes with them.
    fn local_steps(&self, board: &JobBoard<'_>, trial: &Trial, start: Position) -> Option<u32> {
        let by_speed = board.job.spec.placement.local_steps == LocalSteps::BySpeed;
        trial.merging.as_ref().filter(|_| by_speed)?;
        let (speed, fastest) = (self.speed(board.place), board.outlook.fastest);
        let left = trial.chain.left_of(start.shard);
        let all = u128::from(start.batch.saturating_add(left));
        let steps = all * u128::from(speed) / u128::from(fastest.max(1));
        let steps = u32::try_from(steps.max(1)).unwrap_or(u32::MAX);
        (steps < left && left - steps > steps / 2).then(|| start.batch.saturating_add(steps))
    }

    /// What is expected of a job's end, if it had all places to itself.
    fn outlook(&self, job: &Job, ranks: &Ranks, place: Place<'_>) -> Outlook {
        let fleet = &self.soft.schedule.fleet;
        let speed = self.speed(place);
        let fastest = match job.spec.placement.replicas {
            Replicas::Demand => {
                fleet.fastest(job.spec.placement.reproducible.then(|| place.class()))
            }
            Replicas::Fixed(_) => speed,
        };
        let fastest = fastest.max(speed);
        let longest = takes(ranks.longest(), fastest);
        let ends_in = longest.max(takes(ranks.total(), fleet.capacity()));
        Outlook { speed, fastest, unit: SPEED_ONE, ends_in }
    }

    fn speed(&self, place: Place<'_>) -> u64 {
        let device = &place.slots.device;
        let name = PlaceName { host: place.host, device: &device.name, flops: device.flops };
        let pace = self.soft.schedule.estimates.pace(name);
        super::fleet::reliable_speed(pace, self.reliability(place.host))
    }
}
