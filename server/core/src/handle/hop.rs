//! Which hop of a job an idle place gets: what the policy sees, and what it says.

use super::{choose::Chosen, fit::Place, legs::legs};
use crate::{
    core::Core,
    event::UnitKey,
    schedule::{PlaceName, Ranks, SPEED_ONE, takes},
    state::Job,
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{ids::ShardId, spec::Replicas, unit::shard_index};
use sojourn_workgen::{Board, Candidate, Choice, Decision, Outlook, Standing};

/// What a job has for a place.
pub(crate) enum Hop {
    /// This hop.
    Chosen(Chosen),
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
    /// By shard. A policy asks again for each trial.
    standing: Vec<Standing>,
    outlook: Outlook,
}

impl Board for JobBoard<'_> {
    fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_> {
        let open = self.ranks.open().filter_map(|(trial, work)| {
            let known = self.job.trial(trial)?;
            let fits = self.core.may_train(self.job, known, self.place)
                && self.core.has_room(self.place.slots, known);
            let since = self.ranks.open_since(trial).unwrap_or(self.core.now);
            let waited = (self.core.now - since).0.saturating_mul(1000);
            fits.then_some(Candidate { trial, chain: &known.chain, work, waited })
        });
        Box::new(open)
    }

    fn standing(&self, shard: ShardId) -> Standing {
        self.standing.get(shard_index(shard)).copied().unwrap_or(Standing::Elsewhere)
    }

    fn load(&self, shard: ShardId) -> u64 {
        self.job.load_of(shard)
    }

    fn outlook(&self) -> Outlook {
        self.outlook
    }
}

impl Core {
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
            standing: self.standing(job, place),
            outlook: self.outlook(job, ranks, place),
        };
        match self.policy.choose(&board, chance) {
            Decision::Take(choice) => self.chosen(&board, choice).map_or(Hop::Nothing, Hop::Chosen),
            Decision::Wait(micros) => Hop::Wait(micros),
            Decision::Nothing => Hop::Nothing,
        }
    }

    fn chosen(&self, board: &JobBoard<'_>, choice: Choice) -> Option<Chosen> {
        let trial = board.job.trial(choice.trial)?;
        let start = trial.chain.next(choice.shard)?;
        let unit = UnitKey::Train {
            job: board.job.id,
            trial: choice.trial,
            epoch: start.epoch,
            shard: choice.shard,
            from: start.batch,
        };
        let standing = |shard| board.standing(shard);
        let then = legs(&trial.chain, choice.shard, standing, self.config.most_hops);
        Some(Chosen { unit, then, base: trial.version, why: choice.why, planned: None })
    }

    fn standing(&self, job: &Job, place: Place<'_>) -> Vec<Standing> {
        let contact = self.soft.contacts.get(&place.host);
        let holds = |blob| contact.is_some_and(|contact| contact.cached.contains(blob));
        let class = place.class();
        let each = job.data.train.iter().zip((0u32..).map(ShardId));
        let standing = each.map(|(shard, id)| {
            if !self.is_home(job, class, id, place.host) {
                Standing::Elsewhere
            } else if holds(&shard.blob.sha256) {
                Standing::Cached
            } else {
                Standing::ToFetch
            }
        });
        standing.collect()
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
        super::fleet::speed_of(self.soft.schedule.estimates.pace(name))
    }
}
