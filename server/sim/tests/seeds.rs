//! Seeded worlds: invariants after each step, then faults off, and everything must finish.

use sojourn_protocol::spec::{Halving, Pbt, Stopping};
use sojourn_sim::{
    Corruption,
    chaos::{Faults, Hostile, Outcome, Scenario, World},
};

fn run(seed: u64) -> Outcome {
    match World::new(Scenario::of_seed(seed)).run() {
        Ok(outcome) => outcome,
        Err(broken) => panic!("{broken}"),
    }
}

/// Seeds that once failed stay here.
const ONCE_BROKEN: &[u64] = &[];

#[test]
fn two_hundred_worlds_keep_all_promises() {
    let every_other =
        |first: u64| -> Vec<Outcome> { (0..100).map(|n| run(2 * n + first)).collect() };
    let mut outcomes: Vec<Outcome> = ONCE_BROKEN.iter().copied().map(run).collect();
    std::thread::scope(|threads| {
        let odd = threads.spawn(|| every_other(1));
        outcomes.extend(every_other(0));
        outcomes.extend(odd.join().expect("a world that is broken says so itself"));
    });
    let mut all = Outcome::default();
    for outcome in outcomes {
        all.expired += outcome.expired;
        all.superseded += outcome.superseded;
        all.rejected += outcome.rejected;
        all.copies += outcome.copies;
        all.server_crashes += outcome.server_crashes;
        all.host_faults += outcome.host_faults;
        all.finished += outcome.finished;
        all.extras += outcome.extras;
        all.pauses += outcome.pauses;
        all.extensions += outcome.extensions;
        all.several += outcome.several;
        all.several_cut += outcome.several_cut;
        all.went_on += outcome.went_on;
        all.merged += outcome.merged;
        all.stale += outcome.stale;
        all.confirmed += outcome.confirmed;
        all.refuted += outcome.refuted;
        all.moved += outcome.moved;
        assert_eq!(outcome.unverified, 0, "{outcome:?}");
    }
    // The worlds are as hard as they are meant to be.
    assert!(all.expired > 100, "{all:?}");
    assert!(all.superseded > 20, "{all:?}");
    assert!(all.rejected > 100, "{all:?}");
    assert!(all.copies > 100, "{all:?}");
    assert!(all.server_crashes > 100, "{all:?}");
    assert!(all.host_faults > 100, "{all:?}");
    assert!(all.finished > 400, "{all:?}");
    assert!(all.extras > 200, "{all:?}");
    assert!(all.pauses > 50, "{all:?}");
    assert!(all.extensions > 20, "{all:?}");
    assert!(all.several > 1000, "{all:?}");
    assert!(all.several_cut > 25, "{all:?}");
    assert!(all.went_on > 50, "{all:?}");
    assert!(all.merged > 1000, "{all:?}");
    assert!(all.stale > 300, "{all:?}");
    assert!(all.confirmed > 300, "{all:?}");
    assert!(all.refuted > 10, "{all:?}");
    assert!(all.moved > 10, "{all:?}");
}

/// No trial of a fold trains on a batch of it, nor misses one of another fold, and each evaluation is of the fold: see `outcome::check`.
#[test]
fn sixty_worlds_with_folds_keep_all_promises() {
    let mut finished = 0;
    for seed in 0..60 {
        let outcome = World::new(Scenario::with_folds(seed)).run();
        let outcome = outcome.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        assert_eq!(outcome.unverified, 0, "seed {seed}");
        finished += outcome.finished;
    }
    assert!(finished > 240, "{finished}");
}

#[test]
fn worlds_with_folds_and_early_stopping_end_whatever_happens() {
    let halving = Halving { reduction: 3, min_epochs: 1 };
    for seed in 0..12 {
        for rule in [Stopping::Asha(halving), Stopping::Sha(halving)] {
            let outcome = World::new(Scenario::with_folds_and_stopping(seed, rule)).run();
            let outcome = outcome.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
            assert!(outcome.finished > 0, "seed {seed}");
        }
    }
}

/// Each finished trial's checkpoint is the one that its job decides, whatever hosts and servers do: see `outcome::check`.
#[test]
fn two_hundred_worlds_with_fixed_visits_make_what_their_jobs_decide() {
    let every_other = |first: u64| -> Outcome {
        let mut all = Outcome::default();
        for seed in (0..100).map(|n| 2 * n + first) {
            let outcome = World::new(Scenario::with_fixed_visits(seed)).run();
            let outcome = outcome.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
            assert_eq!(outcome.fixed, outcome.finished, "seed {seed}");
            assert_eq!(outcome.merged, 0, "seed {seed}");
            all.finished += outcome.finished;
            all.several += outcome.several;
            all.several_cut += outcome.several_cut;
            all.superseded += outcome.superseded;
            all.copies += outcome.copies;
            all.went_on += outcome.went_on;
        }
        all
    };
    let worlds = std::thread::scope(|threads| {
        let odd = threads.spawn(|| every_other(1));
        [every_other(0), odd.join().expect("a world that is broken says so itself")]
    });
    // The worlds are as hard as they are meant to be.
    for all in worlds {
        assert!(all.finished > 200, "{all:?}");
        assert!(all.several > 500, "{all:?}");
        assert!(all.several_cut > 10, "{all:?}");
        assert!(all.superseded > 10, "{all:?}");
        assert!(all.copies > 50, "{all:?}");
        assert!(all.went_on > 20, "{all:?}");
    }
}

/// Rules that wait for whole rungs stop the same trials whatever hosts and servers do, and every rule comes to an end.
#[test]
fn searches_that_stop_trials_early_end_in_every_world_and_alike_where_rungs_are_whole() {
    let halving = Halving { reduction: 3, min_epochs: 1 };
    let rules = [
        Stopping::Asha(halving),
        Stopping::Sha(halving),
        Stopping::Hyperband { reduction: 3 },
        Stopping::Median { min_epochs: 1, min_trials: 2 },
        Stopping::Patience { epochs: 2, min_delta: 0.0 },
    ];
    let run = |rule: Stopping, seed: u64, world: u64| {
        let outcome = World::new(Scenario::with_stopping(seed, rule, world)).run();
        outcome.unwrap_or_else(|broken| panic!("{rule:?}, {seed} in {world}: {broken}"))
    };
    for rule in rules {
        let (mut stopped, mut alike) = (0, 0);
        for seed in 0..4 {
            let outcomes: Vec<Outcome> = (0..5).map(|world| run(rule, seed, world)).collect();
            stopped += outcomes.iter().map(|outcome| outcome.stopped).sum::<u64>();
            let whole: Vec<&Outcome> = outcomes.iter().filter(|of| of.failed == 0).collect();
            for pair in whole.windows(2).filter(|_| !rule.depends_on_arrival()) {
                assert_eq!(pair[0].lengths, pair[1].lengths, "{rule:?}, {seed}");
                alike += 1;
            }
        }
        assert!(stopped > 20, "{rule:?} has stopped {stopped}");
        assert!(rule.depends_on_arrival() || alike > 5, "{rule:?}: {alike}");
    }
}

/// A population comes to the same clones, with the same settings and ids, whatever hosts and servers do.
#[test]
fn populations_are_alike_in_every_world() {
    let run = |pbt: Pbt, seed: u64, world: u64| {
        let outcome = World::new(Scenario::with_population(seed, pbt, world)).run();
        outcome.unwrap_or_else(|broken| panic!("{pbt:?}, {seed} in {world}: {broken}"))
    };
    for pbt in [Pbt { interval: 2, ..Pbt::default() }, Pbt { quantile: 0.34, ..Pbt::default() }] {
        let (mut stopped, mut alike) = (0, 0);
        for seed in 0..4 {
            let outcomes: Vec<Outcome> = (0..5).map(|world| run(pbt, seed, world)).collect();
            stopped += outcomes.iter().map(|outcome| outcome.stopped).sum::<u64>();
            let whole: Vec<&Outcome> = outcomes.iter().filter(|of| of.failed == 0).collect();
            for pair in whole.windows(2) {
                let of = |outcome: &Outcome| (outcome.lengths.clone(), outcome.lineage.clone());
                assert_eq!(of(pair[0]), of(pair[1]), "{pbt:?}, {seed}");
                alike += 1;
            }
        }
        assert!(stopped > 20 && alike > 5, "{pbt:?}: {stopped} {alike}");
    }
}

/// With a quorum of two and a rate of one: see `outcome::check`, by which every world is judged.
#[test]
fn no_kind_of_lie_is_in_any_version() {
    for lie in Corruption::ALL {
        let with_liars = (0..).map(Scenario::of_seed).filter(|scenario| scenario.liars > 0);
        let mut refuted = 0;
        for scenario in with_liars.take(2) {
            let outcome = World::new(Scenario { lie, ..scenario }).run();
            refuted += outcome.unwrap_or_else(|broken| panic!("{lie:?}: {broken}")).refuted;
        }
        assert!(refuted > 0, "nobody was caught: {lie:?}");
    }
}

fn run_hostile(seed: u64, hostile: Hostile) -> Outcome {
    let world = World::new(Scenario::with_hostile_owner(seed, hostile));
    let outcome = world.run().unwrap_or_else(|broken| panic!("seed {seed}, {hostile:?}: {broken}"));
    assert_eq!(outcome.failed, 0, "seed {seed}, {hostile:?}: one owner has ended a trial");
    outcome
}

/// One owner's hosts claim what can't be, or lie, fail and trickle as well; those of two others do no harm.
fn hold_nobody_up(hostile: Hostile) -> Vec<Outcome> {
    (0..2).map(|seed| run_hostile(seed, hostile)).collect()
}

#[test]
fn hosts_that_claim_what_can_not_be_hold_nobody_up() {
    hold_nobody_up(Hostile { claiming: 2, ..Hostile::default() });
}

#[test]
fn hosts_of_one_owner_that_do_all_of_it_hold_nobody_up() {
    hold_nobody_up(Hostile { lying: 3, failing: 2, trickling: 1, claiming: 1, inventing: 1 });
}

/// Ten hosts of one owner come to the same wrong results. Where nothing else goes wrong, every version has been confirmed
/// by another owner, and is what the replay makes: see `outcome::check`.
#[test]
fn an_owner_with_ten_hosts_that_lie_alike_gets_nothing_into_any_version() {
    for seed in 0..8 {
        let lying = Hostile { lying: 10, ..Hostile::default() };
        let scenario = Scenario::with_hostile_owner(seed, lying);
        let quiet = Scenario { faults: Faults::NONE, ..scenario };
        let outcome = World::new(quiet).run().unwrap_or_else(|broken| panic!("{broken}"));
        assert_eq!((outcome.failed, outcome.unverified), (0, 0), "seed {seed}: {outcome:?}");
        assert!(outcome.confirmed > 0 && outcome.refuted > 0, "seed {seed}: {outcome:?}");
    }
}

/// Hosts of one owner claim a numeric class that nobody else is of. They are given nothing to lie about, and hold nobody up.
#[test]
fn hosts_that_invent_a_numeric_class_get_nothing_into_any_version() {
    for seed in 0..8 {
        let inventing = Hostile { inventing: 3, ..Hostile::default() };
        let scenario = Scenario::with_hostile_owner(seed, inventing);
        for faults in [Faults::NONE, scenario.faults] {
            let world = World::new(Scenario { faults, ..scenario.clone() });
            let outcome = world.run().unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
            assert_eq!((outcome.failed, outcome.unverified), (0, 0), "seed {seed}: {outcome:?}");
            assert!(outcome.confirmed > 0 && outcome.finished > 0, "seed {seed}: {outcome:?}");
        }
    }
}

#[test]
fn a_quiet_world_loses_nothing() {
    let mut scenario = Scenario::of_seed(7);
    scenario.faults = Faults::NONE;
    let outcome = World::new(scenario.clone()).run().unwrap();
    assert_eq!((outcome.expired, outcome.superseded, outcome.rejected), (0, 0, 0));
    assert_eq!(World::new(scenario).run().unwrap(), outcome, "the same seed, another world");
}

/// Runs the seed in `SOJOURN_SIM_SEED`, as the message of a failure asks; else a fixed one.
#[test]
fn one_seed() {
    #[expect(clippy::disallowed_methods, reason = "a failure names its seed to the next run")]
    let seed = std::env::var("SOJOURN_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    run(seed.unwrap_or(1));
}

/// Units that every trainer refuses end their own jobs, and take little of the others' time.
#[test]
fn a_job_beside_six_wrong_ones_keeps_most_of_its_hops() {
    let run = |seed, wrong| {
        let outcome = World::new(Scenario::with_wrong_jobs(seed, wrong)).run();
        outcome.unwrap_or_else(|broken| panic!("{broken}"))
    };
    let (mut alone, mut beside) = (0, 0);
    for seed in 0..40 {
        let (without, with) = (run(seed, 0), run(seed, 6));
        assert_eq!((with.failed, with.finished), (6, without.finished), "seed {seed}");
        alone += without.took.0;
        beside += with.took.0;
    }
    assert!(beside * 4 <= alone * 5, "{beside} ms beside wrong jobs, {alone} ms without");
}
