//! Strangers that lie, at default settings: how many of their lies are in the models that jobs release.
//!
//! `SOJOURN_SIM_SEEDS=1000 cargo test -p sojourn-sim --test liars -- --nocapture` runs more worlds of each kind.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "more seeds are asked for by a variable")]

use sojourn_protocol::spec::VerifyChoice;
use sojourn_sim::chaos::{Liar, Outcome, Scenario, VerifiedFleet, World};

/// Worlds of each kind.
const SEEDS: u64 = 15;
/// The same of liars whose lies few worlds take in.
const SEEDS_OF_SELDOM: u64 = 60;
/// The same of liars whose lies are so seldom taken in that few are taken back.
const SEEDS_OF_TAKEN_BACK: u64 = 120;

fn seeds() -> u64 {
    let asked = std::env::var("SOJOURN_SIM_SEEDS").ok();
    asked.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

/// Adds what a world counted.
fn add(all: &mut Outcome, of: &Outcome) {
    all.finished += of.finished;
    all.confirmed += of.confirmed;
    all.refuted += of.refuted;
    all.unverified += of.unverified;
    all.false_versions += of.false_versions;
    all.false_best += of.false_best;
    all.false_best_unsaid += of.false_best_unsaid;
    all.rolled_back += of.rolled_back;
    all.asked += of.asked;
}

/// All worlds of a kind of liar together.
fn all(liar: Liar) -> Outcome {
    worlds(&format!("{liar:?}"), seeds(), |seed| Scenario::with_liar(seed, liar))
}

/// So many worlds together.
fn worlds(kind: &str, seeds: u64, scenario: impl Fn(u64) -> Scenario + Sync) -> Outcome {
    let half = |first: u64| {
        let mut all = Outcome::default();
        for seed in (first..seeds).step_by(2) {
            let outcome = World::new(scenario(seed)).run();
            let outcome = outcome.unwrap_or_else(|broken| panic!("{kind}, seed {seed}: {broken}"));
            if outcome.false_versions + outcome.false_best + outcome.rolled_back > 0 {
                println!(
                    "{kind}, seed {seed}: {} false versions, {} taken back, {} released with a lie",
                    outcome.false_versions, outcome.rolled_back, outcome.false_best
                );
            }
            add(&mut all, &outcome);
        }
        all
    };
    let (mut all, odd) = std::thread::scope(|threads| {
        let odd = threads.spawn(|| half(1));
        (half(0), odd.join().unwrap())
    });
    add(&mut all, &odd);
    println!(
        "{kind}: {seeds} worlds, {} trials finished, {} confirmed, {} refuted, {} false versions, {} taken back, {} asked, \
         {} released with a lie, {} of them unsaid",
        all.finished,
        all.confirmed,
        all.refuted,
        all.false_versions,
        all.rolled_back,
        all.asked,
        all.false_best,
        all.false_best_unsaid
    );
    all
}

/// Of a party that nobody trusts yet every result is verified: nothing false is taken in.
fn lets_nothing_in(liar: Liar) {
    let all = all(liar);
    assert!(all.refuted > 0 && all.finished > 0, "{liar:?}: {all:?}");
    let taken_in = (all.false_versions, all.false_best, all.unverified);
    assert_eq!(taken_in, (0, 0, 0), "{liar:?}: {all:?}");
}

#[test]
fn two_hosts_of_one_owner_that_lie_alike_let_nothing_in() {
    lets_nothing_in(Liar::PairOfOneOwner);
}

#[test]
fn a_host_that_lies_in_evaluations_alone_lets_nothing_in() {
    lets_nothing_in(Liar::Evaluations);
}

#[test]
fn a_host_that_lies_in_one_class_alone_lets_nothing_in() {
    lets_nothing_in(Liar::OneClass);
}

#[test]
fn a_host_that_copies_what_it_has_seen_lets_nothing_in() {
    lets_nothing_in(Liar::Copier);
}

#[test]
fn a_host_that_lies_late_lets_nothing_in_while_its_owner_is_not_trusted() {
    lets_nothing_in(Liar::Late);
}

/// Your own hosts are asked, not the other one of the two. While none of these could be asked, the two confirm each
/// other's lies.
#[test]
fn two_owners_in_league_seldom_get_a_lie_in_beside_hosts_of_the_operator() {
    let seeds = seeds().max(SEEDS_OF_SELDOM);
    let all = worlds("PairOfOwners", seeds, |seed| Scenario::with_liar(seed, Liar::PairOfOwners));
    assert!(all.refuted > 0 && all.finished > 0, "{all:?}");
    assert_eq!(all.unverified, 0, "{all:?}");
    assert!(all.false_best * 10 <= seeds, "{all:?}");
}

/// A lie that isn't in the sample passes. The next ones are found, and those that passed are taken back while the job runs.
#[test]
fn a_host_that_lies_once_its_owner_is_trusted_is_found() {
    let seeds = seeds().max(SEEDS_OF_TAKEN_BACK);
    let all = worlds("OnceTrusted", seeds, |seed| Scenario::with_liar(seed, Liar::OnceTrusted));
    assert!(all.refuted > 0 && all.rolled_back > 0, "{all:?}");
    assert_eq!(all.unverified, 0, "{all:?}");
    assert!(all.false_best * 200 <= seeds, "{all:?}");
}

/// The bounds that the page promises: of a fleet of one stranger in four, for a stranger's first job and once it is trusted.
#[test]
fn verification_costs_a_fleet_of_one_stranger_in_four_what_the_page_says() {
    let job = |fleet: &mut VerifiedFleet| fleet.run_job().unwrap();
    let fleet = |verify| VerifiedFleet::new(verify).unwrap();
    let believed = job(&mut fleet(VerifyChoice::NONE));
    let mut fleet = fleet(VerifyChoice::STRANGERS);
    let first = job(&mut fleet);
    assert!(first > believed && first * 10 <= believed * 13, "{first} beside {believed}");
    let mut jobs = 1;
    while fleet.confirmed_in_row() < 200 {
        job(&mut fleet);
        jobs += 1;
    }
    let trusted = job(&mut fleet);
    println!("{believed} ms believed, {first} ms at first, {trusted} ms after {jobs} jobs");
    assert!(trusted > believed && trusted * 100 <= believed * 106, "{trusted} beside {believed}");
}
