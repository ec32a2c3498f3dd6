//! Longest total remaining processing time first (DESIGN section 6).

use super::{Board, Candidate, Choice, DataLocality, Decision, Outlook, Policy, Shards, Why};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::ids::ShardId;
use std::cmp::Reverse;

/// A trial waits for the place that is planned for it so many times as long as its checkpoint's way.
const MOST_WAYS: u64 = 20;
/// Shards that are there sooner are fetched without another thought. Microseconds.
const LITTLE: u64 = 200_000;
/// Trials for which a place asks after holders of their shards; what comes behind them it fetches for.
const ASKED_FOR: u32 = 4;
/// Trials that are looked at for one place. Where so many are left to others, those behind them, which have less
/// left, are too; and a decision takes no longer in a job of a hundred thousand trials.
const LOOKED_AT: usize = 256;

/// The trial with the most work left goes first: it is the one that can hold the job up. Among trials
/// within a tenth of it, one whose shard the place holds is taken before; of a trial's open shards, a
/// held one before others, then the one that most visits still wait for.
///
/// A slow place leaves a trial to a faster one where a hop on it would make the job end later than it
/// could; not for longer than the hop would have taken it, though. A trial that takes time to move is left to the
/// place that is planned for it, for many times its way.
///
/// Nor does a place fetch a shard for a hop that another, which holds one and is soon free, would be through with
/// sooner, where there are enough of those for all that comes before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ltrp;

impl Policy for Ltrp {
    fn choose(&self, board: &dyn Board, _: &mut ChaCha8Rng) -> Decision {
        let (outlook, shards) = (board.outlook(), board.shards());
        let holds_any = shards.holds_any();
        let mut longest = None;
        let mut best = None;
        let mut wait: Option<u64> = None;
        for (before, candidate) in (0u32..).zip(board.candidates().take(LOOKED_AT)) {
            let near = longest.is_none_or(|longest| candidate.work >= longest - longest / 10);
            if !near {
                break;
            }
            let Some((held, load, shard)) = best_shard(&candidate, shards) else { continue };
            let to_faster = left_to_faster(&candidate, shard.0, outlook);
            let to_holder = || left_to_holder(&candidate, shard.0, before, board);
            if let Some(micros) = to_faster.or_else(|| if held { None } else { to_holder() }) {
                wait = Some(wait.map_or(micros, |before| before.min(micros)));
                continue;
            }
            longest.get_or_insert(candidate.work);
            let choice = (held, candidate.work, Reverse(candidate.trial), load, shard, before);
            best = best.max(Some(choice));
            if held || !holds_any {
                // Those that follow have less left.
                break;
            }
        }
        let Some((held, work, Reverse(trial), visits, Reverse(shard), before)) = best else {
            return wait.map_or(Decision::Nothing, Decision::Wait);
        };
        let here = |work: u64| outlook.takes(work, outlook.speed);
        let why = Why::Longest {
            before,
            work: here(work),
            longest: here(longest.unwrap_or(work)),
            standing: if held { DataLocality::Local } else { DataLocality::Remote },
            visits,
        };
        Decision::Take(Choice { trial, shard, why })
    }
}

/// (held, load, shard) of the best open shard; ties to the lower id.
fn best_shard(
    candidate: &Candidate<'_>,
    shards: Shards<'_>,
) -> Option<(bool, u64, Reverse<ShardId>)> {
    let open = shards.open(candidate.chain);
    open.map(|(shard, held)| (held, shards.load(shard), Reverse(shard))).max()
}

/// Would a hop here have the trial end after the job could, though a faster place may take it soon? Then for so
/// many microseconds it is left to that.
fn left_to_faster(candidate: &Candidate<'_>, shard: ShardId, outlook: Outlook) -> Option<u64> {
    if candidate.way > 0 {
        let patience = candidate.way.saturating_mul(MOST_WAYS);
        return patience.checked_sub(candidate.waited).filter(|patience| *patience > 0);
    }
    if outlook.fastest <= outlook.speed {
        return None;
    }
    let hop = work_of(candidate, shard);
    let (here, there) = (outlook.takes(hop, outlook.speed), outlook.takes(hop, outlook.fastest));
    let after = outlook.takes(candidate.work.saturating_sub(hop), outlook.fastest);
    let latest = outlook.ends_in.saturating_add(there / 2);
    let patience = here.checked_sub(candidate.waited).filter(|patience| *patience > 0)?;
    (here.saturating_add(after) > latest).then_some(patience)
}

/// Would the hop be done sooner where its shard needn't be fetched, though that place has something else to end?
/// Then for so many microseconds it is left to that: until it is free, and no longer than the hop would take here.
fn left_to_holder(
    candidate: &Candidate<'_>,
    shard: ShardId,
    before: u32,
    board: &dyn Board,
) -> Option<u64> {
    let (fetch, outlook) = (board.fetch(shard), board.outlook());
    let hop = work_of(candidate, shard);
    let trains = outlook.takes(hop, outlook.speed);
    // What is little beside the hop is fetched.
    if before >= ASKED_FOR || fetch <= LITTLE || fetch <= trains / 4 {
        return None;
    }
    let here = fetch.saturating_add(trains);
    let patience = here.checked_sub(candidate.waited).filter(|patience| *patience > 0)?;
    let others = board.sooner(candidate.trial, hop, here, before + 1)?;
    // One that is free takes it unasked, or has a reason not to.
    let free_in = Some(others.free_in).filter(|free_in| *free_in > 0);
    (others.places > before).then(|| free_in.map_or(patience, |free_in| free_in.min(patience)))
}

/// Of the trial's work, what a visit to a shard is.
fn work_of(candidate: &Candidate<'_>, shard: ShardId) -> u64 {
    let batches = u64::from(candidate.chain.left_of(shard));
    let left = candidate.chain.left().max(1);
    match candidate.work.checked_mul(batches) {
        Some(scaled) => scaled / left,
        None => {
            let scaled = u128::from(candidate.work) * u128::from(batches) / u128::from(left);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chain;
    use crate::policy::Sooner;
    use rand_core::SeedableRng;
    use sojourn_protocol::{
        digest::{BlobRef, Digest},
        ids::TrialId,
        manifest::Shard,
    };

    struct Two {
        chain: Chain,
        works: [u64; 2],
        cached: [bool; 2],
        outlook: Outlook,
        waited: u64,
        way: u64,
        fetch: u64,
        sooner: Option<Sooner>,
    }

    impl Board for Two {
        fn candidates(&self) -> Box<dyn Iterator<Item = Candidate<'_>> + '_> {
            let each = (0u32..).zip(self.works).map(|(trial, work)| Candidate {
                trial: TrialId(trial),
                chain: &self.chain,
                work,
                waited: self.waited,
                way: self.way,
            });
            Box::new(each)
        }
        fn shards(&self) -> Shards<'_> {
            Shards { own: None, cached: &self.cached, load: &[0, 1] }
        }
        fn outlook(&self) -> Outlook {
            self.outlook
        }
        fn fetch(&self, _: ShardId) -> u64 {
            self.fetch
        }
        fn sooner(&self, _: TrialId, _: u64, _: u64, _: u32) -> Option<Sooner> {
            self.sooner
        }
    }

    fn two(works: [u64; 2]) -> Two {
        let shard =
            |n: u8| Shard { blob: BlobRef { sha256: Digest::of(&[n]), bytes: 1 }, rows: 10 };
        let chain = Chain::new(1, 1, &[shard(0), shard(1)]);
        let outlook = Outlook { speed: 10, fastest: 10, unit: 10, ends_in: 1000 };
        Two { chain, works, cached: [false; 2], outlook, waited: 0, way: 0, fetch: 0, sooner: None }
    }

    fn choice(board: &Two) -> Option<(u32, u32)> {
        let choice = Ltrp.choose(board, &mut ChaCha8Rng::seed_from_u64(0)).choice()?;
        Some((choice.trial.0, choice.shard.0))
    }

    #[test]
    fn the_longest_goes_first_to_the_most_wanted_shard_or_to_a_held_one() {
        let mut board = two([1000, 500]);
        assert_eq!(choice(&board), Some((0, 1)));
        board.cached = [true, false];
        assert_eq!(choice(&board), Some((0, 0)));
    }

    #[test]
    fn a_slow_place_leaves_the_trial_that_all_wait_for_to_a_fast_one_for_a_while() {
        let mut board = two([1000, 400]);
        board.outlook = Outlook { speed: 4, fastest: 10, unit: 10, ends_in: 1000 };
        // A hop of 500 takes it 1250; with 500 more the trial would end at 1750.
        assert_eq!(choice(&board), Some((1, 1)), "400 would end at 500 + 200");
        board.works = [1000, 1000];
        assert_eq!(choice(&board), None);
        board.waited = 1250;
        assert_eq!(choice(&board), Some((0, 1)));
    }

    #[test]
    fn what_takes_time_to_move_is_left_to_its_plan_for_many_ways() {
        let mut board = two([1000, 500]);
        (board.way, board.waited) = (16, 319);
        assert_eq!(Ltrp.choose(&board, &mut ChaCha8Rng::seed_from_u64(0)), Decision::Wait(1));
        board.waited = 320;
        assert_eq!(choice(&board), Some((0, 1)));
    }

    #[test]
    fn a_hop_is_left_to_who_holds_its_shard_and_is_soon_free_but_not_for_ever() {
        let mut board = two([1000, 950]);
        board.sooner = Some(Sooner { places: 1, free_in: 5_000_000 });
        board.fetch = LITTLE;
        assert_eq!(choice(&board), Some((0, 1)), "a short way");
        board.fetch = 10_000_000;
        assert_eq!(choice(&board), Some((1, 1)), "one holder is for the first");
        board.sooner = Some(Sooner { places: 2, free_in: 5_000_000 });
        let decision = Ltrp.choose(&board, &mut ChaCha8Rng::seed_from_u64(0));
        assert_eq!(decision, Decision::Wait(5_000_000));
        board.sooner = Some(Sooner { places: 2, free_in: 0 });
        let decision = Ltrp.choose(&board, &mut ChaCha8Rng::seed_from_u64(0));
        assert!(
            matches!(decision, Decision::Wait(10_000_000..)),
            "it takes it unasked: {decision:?}"
        );
        board.waited = 10_001_000;
        assert_eq!(choice(&board), Some((0, 1)));
        board.waited = 0;
        board.cached = [true, false];
        assert_eq!(choice(&board), Some((0, 0)), "it holds one itself");
        board.cached = [false; 2];
        board.sooner = None;
        assert_eq!(choice(&board), Some((0, 1)), "nobody has it sooner");
    }
}
