//! The policy LTRP: the trial with the longest total remaining processing time goes first.

use super::{Candidate, Choice, DataLocality, Decision, Policy, PolicyReason, PolicyView, Shards};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    ids::ShardId,
    quantity::{Micros, Work},
};
use std::cmp::Reverse;

/// A trial waits for the machine that is planned for it for at most so many times its transfer time.
const MAX_PATIENCE: u64 = 20;
/// A shard that is fetched within this time is fetched without looking for a machine that holds it.
const MIN_FETCH_TIME: Micros = Micros::from_millis(200);
/// Trials for which machines that hold their shards are looked up. For trials behind them the shard is fetched.
const MAX_HOLDER_QUERIES: u32 = 4;
/// Trials that are considered for one machine. Where so many are left to others, those behind them, with less work
/// left, are too. So a decision takes no longer in a job of a hundred thousand trials.
const MAX_CANDIDATES: usize = 256;

/// Longest total remaining processing time first: the trial with the most work left goes first, because it can hold
/// up the job's end. Among trials within a tenth of it, one whose shard the machine holds is preferred. Of a trial's
/// open shards, a held one goes first, then the one that most visits still wait for.
///
/// Three kinds of hops are left to other machines, for a limited time:
///
/// - A slow machine leaves a trial to a faster one where a hop on it would delay the job's end. It waits no longer
///   than the hop would have taken it.
/// - A trial that takes time to move is left to the machine that is planned for it, for many times its transfer time.
/// - A machine that would have to fetch the shard leaves the hop to one that holds it and would end it earlier.
///   There must be enough of those for all trials that come before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ltrp;

impl Policy for Ltrp {
    fn choose(&self, view: &dyn PolicyView, _: &mut ChaCha8Rng) -> Decision {
        let (forecast, shards) = (view.forecast(), view.shards());
        let holds_any = shards.holds_any();
        let mut longest: Option<Work> = None;
        let mut best = None;
        let mut wait: Option<Micros> = None;
        for (before, candidate) in (0u32..).zip(view.candidates().take(MAX_CANDIDATES)) {
            let near = longest.is_none_or(|longest| candidate.work >= longest - longest / 10);
            if !near {
                break;
            }
            let Some((held, load, shard)) = best_shard(&candidate, shards) else { continue };
            let to_faster = leave_to_faster(&candidate, shard.0, view);
            let to_holder = || leave_to_holder(&candidate, shard.0, before, view);
            if let Some(time) = to_faster.or_else(|| if held { None } else { to_holder() }) {
                wait = Some(wait.map_or(time, |before| before.min(time)));
                continue;
            }
            longest.get_or_insert(candidate.work);
            let is_fixed = candidate.chain.has_fixed_visits();
            let choice =
                (held, candidate.work, Reverse(candidate.trial), load, shard, (before, is_fixed));
            best = best.max(Some(choice));
            if held || !holds_any {
                // The trials behind have less work left.
                break;
            }
        }
        let Some((held, work, Reverse(trial), visits, Reverse(shard), (before, is_fixed))) = best
        else {
            return wait.map_or(Decision::Nothing, Decision::Defer);
        };
        let reason = PolicyReason::Longest {
            before,
            work: work / forecast.speed,
            longest: longest.unwrap_or(work) / forecast.speed,
            locality: if held { DataLocality::Local } else { DataLocality::Remote },
            visits: (!is_fixed).then_some(visits),
        };
        Decision::Assign(Choice { trial, shard, reason })
    }
}

/// The best open shard of a trial: is it held, its load and its id; ties to the lower id.
fn best_shard(
    candidate: &Candidate<'_>,
    shards: Shards<'_>,
) -> Option<(bool, u64, Reverse<ShardId>)> {
    let open = shards.open(candidate.chain);
    open.map(|(shard, held)| (held, shards.load(shard), Reverse(shard))).max()
}

/// How long the hop is left to a faster machine, if it is: a hop here would have the trial end after the job could.
fn leave_to_faster(
    candidate: &Candidate<'_>,
    shard: ShardId,
    view: &dyn PolicyView,
) -> Option<Micros> {
    let forecast = view.forecast();
    if !candidate.transfer_time.is_zero() {
        return remaining(candidate.transfer_time * MAX_PATIENCE, candidate.waited);
    }
    if forecast.fastest <= forecast.speed {
        return None;
    }
    let fastest = view.fastest_for(shard);
    if fastest <= forecast.speed {
        return None;
    }
    let hop = hop_work(candidate, shard);
    let (here, there) = (hop / forecast.speed, hop / fastest);
    let after = (candidate.work - hop) / forecast.fastest;
    let latest = forecast.ends_in + there / 2;
    let patience = remaining(here, candidate.waited)?;
    (here + after > latest).then_some(patience)
}

/// How long the hop is left to a machine that holds its shard, if it is: that one would end it earlier, though it is
/// still busy. The wait ends when that machine is free, and is no longer than the hop would take here.
fn leave_to_holder(
    candidate: &Candidate<'_>,
    shard: ShardId,
    before: u32,
    view: &dyn PolicyView,
) -> Option<Micros> {
    let (fetch, forecast) = (view.fetch_time(shard), view.forecast());
    let hop = hop_work(candidate, shard);
    let training = hop / forecast.speed;
    // A fetch that is short beside the hop is not worth a wait.
    if before >= MAX_HOLDER_QUERIES || fetch <= MIN_FETCH_TIME || fetch <= training / 4 {
        return None;
    }
    let here = fetch + training;
    let patience = remaining(here, candidate.waited)?;
    let others = view.earlier_finish(candidate.trial, hop, here, before + 1)?;
    // A machine that is free takes the hop unasked, or has a reason not to.
    let free_in = Some(others.free_in).filter(|free_in| !free_in.is_zero());
    (others.slots > before).then(|| free_in.map_or(patience, |free_in| free_in.min(patience)))
}

/// The rest of a patience after a time that has passed; `None` where it has run out.
fn remaining(patience: Micros, waited: Micros) -> Option<Micros> {
    patience.checked_sub(waited).filter(|rest| !rest.is_zero())
}

/// The part of a trial's work that a visit to a shard is.
fn hop_work(candidate: &Candidate<'_>, shard: ShardId) -> Work {
    let batches = candidate.chain.remaining_in(shard).into();
    candidate.work.mul_div(batches, candidate.chain.remaining().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chain;
    use crate::policy::{EarlierFinish, Forecast};
    use rand_core::SeedableRng;
    use sojourn_protocol::{
        digest::{BlobRef, Digest},
        ids::TrialId,
        manifest::Shard,
        minibatches::Minibatches,
        quantity::Speed,
    };

    struct Two {
        chain: Chain,
        works: [u64; 2],
        cached: [bool; 2],
        forecast: Forecast,
        waited: u64,
        transfer_time: u64,
        fetch_time: Micros,
        earlier: Option<EarlierFinish>,
        fastest_holder: Option<Speed>,
    }

    impl PolicyView for Two {
        fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_> {
            let each = (0u32..).zip(self.works).map(|(trial, work)| Candidate {
                trial: TrialId(trial),
                chain: &self.chain,
                work: Work(work),
                waited: Micros(self.waited),
                transfer_time: Micros(self.transfer_time),
            });
            Box::new(each)
        }
        fn shards(&self) -> Shards<'_> {
            Shards { own: None, cached: &self.cached, load: &[0, 1] }
        }
        fn forecast(&self) -> Forecast {
            self.forecast
        }
        fn fastest_for(&self, _: ShardId) -> Speed {
            self.fastest_holder.unwrap_or(self.forecast.fastest)
        }
        fn fetch_time(&self, _: ShardId) -> Micros {
            self.fetch_time
        }
        fn earlier_finish(&self, _: TrialId, _: Work, _: Micros, _: u32) -> Option<EarlierFinish> {
            self.earlier
        }
    }

    fn two(works: [u64; 2]) -> Two {
        let shard =
            |n: u8| Shard { blob: BlobRef { sha256: Digest::of(&[n]), bytes: 1 }, rows: 10 };
        let chain = Chain::new(1, Minibatches::new(1, 1), &[shard(0), shard(1)]);
        let speed = Speed::REFERENCE;
        let forecast = Forecast { speed, fastest: speed, ends_in: Micros(1000) };
        let (cached, fetch_time) = ([false; 2], Micros::ZERO);
        Two {
            chain,
            works,
            cached,
            forecast,
            waited: 0,
            transfer_time: 0,
            fetch_time,
            earlier: None,
            fastest_holder: None,
        }
    }

    fn choice(view: &Two) -> Option<(u32, u32)> {
        let choice = Ltrp.choose(view, &mut ChaCha8Rng::seed_from_u64(0)).choice()?;
        Some((choice.trial.0, choice.shard.0))
    }

    #[test]
    fn the_longest_trial_goes_first_to_a_held_shard_or_the_most_loaded_one() {
        let mut view = two([1000, 500]);
        assert_eq!(choice(&view), Some((0, 1)));
        view.cached = [true, false];
        assert_eq!(choice(&view), Some((0, 0)));
    }

    #[test]
    fn a_slow_machine_leaves_the_longest_trial_to_a_fast_one_for_a_limited_time() {
        let mut view = two([10_000, 4_000]);
        let speed = |times| Speed::REFERENCE * times;
        view.forecast = Forecast { speed: speed(4), fastest: speed(10), ends_in: Micros(1000) };
        // A hop takes the fast machine 500 and it 1250; with 500 more the trial would end at 1750.
        assert_eq!(choice(&view), Some((1, 1)), "400 would end at 500 + 200");
        view.works = [10_000, 10_000];
        assert_eq!(choice(&view), None);
        // A machine that may have the shard too isn't as fast as the fastest one: the hop takes it 1000.
        view.fastest_holder = Some(speed(5));
        assert_eq!(choice(&view), None);
        view.fastest_holder = Some(speed(4));
        assert_eq!(choice(&view), Some((0, 1)), "no machine that may have it is faster");
        view.fastest_holder = None;
        view.waited = 1250;
        assert_eq!(choice(&view), Some((0, 1)));
    }

    #[test]
    fn a_trial_that_takes_time_to_move_is_left_to_its_plan_for_a_limited_time() {
        let mut view = two([1000, 500]);
        (view.transfer_time, view.waited) = (16, 319);
        assert_eq!(
            Ltrp.choose(&view, &mut ChaCha8Rng::seed_from_u64(0)),
            Decision::Defer(Micros(1))
        );
        view.waited = 320;
        assert_eq!(choice(&view), Some((0, 1)));
    }

    #[test]
    fn a_hop_is_left_to_a_machine_that_holds_its_shard_for_a_limited_time() {
        let mut view = two([1000, 950]);
        view.earlier = Some(EarlierFinish { slots: 1, free_in: Micros(5_000_000) });
        view.fetch_time = MIN_FETCH_TIME;
        assert_eq!(choice(&view), Some((0, 1)), "a short fetch");
        view.fetch_time = Micros(10_000_000);
        assert_eq!(choice(&view), Some((1, 1)), "one holder is for the first");
        view.earlier = Some(EarlierFinish { slots: 2, free_in: Micros(5_000_000) });
        let decision = Ltrp.choose(&view, &mut ChaCha8Rng::seed_from_u64(0));
        assert_eq!(decision, Decision::Defer(Micros(5_000_000)));
        view.earlier = Some(EarlierFinish { slots: 2, free_in: Micros::ZERO });
        let decision = Ltrp.choose(&view, &mut ChaCha8Rng::seed_from_u64(0));
        assert!(
            matches!(decision, Decision::Defer(Micros(10_000_000..))),
            "it takes it unasked: {decision:?}"
        );
        view.waited = 10_001_000;
        assert_eq!(choice(&view), Some((0, 1)));
        view.waited = 0;
        view.cached = [true, false];
        assert_eq!(choice(&view), Some((0, 0)), "it holds one itself");
        view.cached = [false; 2];
        view.earlier = None;
        assert_eq!(choice(&view), Some((0, 1)), "nobody has it sooner");
    }
}
