//! Strangers that lie, at default settings: how many of their lies are in the models that jobs release.
//!
//! `SOJOURN_SIM_SEEDS=1000 cargo test -p sojourn-sim --test liars -- --nocapture` runs more worlds of each kind.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "more seeds are asked for by a variable")]

use sojourn_protocol::spec::VerifyChoice;
use sojourn_sim::chaos::{Liar, Outcome, Scenario, VerifiedFleet, World};

/// Worlds of each kind.
const SEEDS: u64 = 15;

fn seeds() -> u64 {
    let asked = std::env::var("SOJOURN_SIM_SEEDS").ok();
    asked.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

/// All worlds of a kind of liar together.
fn all(liar: Liar) -> Outcome {
    let half = |first: u64| {
        let mut all = Outcome::default();
        for seed in (first..seeds()).step_by(2) {
            let outcome = World::new(Scenario::with_liar(seed, liar)).run();
            let outcome =
                outcome.unwrap_or_else(|broken| panic!("{liar:?}, seed {seed}: {broken}"));
            all.finished += outcome.finished;
            all.confirmed += outcome.confirmed;
            all.refuted += outcome.refuted;
            all.unverified += outcome.unverified;
            all.false_versions += outcome.false_versions;
            all.false_best += outcome.false_best;
            all.false_best_unsaid += outcome.false_best_unsaid;
            all.rolled_back += outcome.rolled_back;
            all.asked += outcome.asked;
        }
        all
    };
    let (mut all, odd) = std::thread::scope(|threads| {
        let odd = threads.spawn(|| half(1));
        (half(0), odd.join().unwrap())
    });
    all.finished += odd.finished;
    all.confirmed += odd.confirmed;
    all.refuted += odd.refuted;
    all.unverified += odd.unverified;
    all.false_versions += odd.false_versions;
    all.false_best += odd.false_best;
    all.false_best_unsaid += odd.false_best_unsaid;
    all.rolled_back += odd.rolled_back;
    all.asked += odd.asked;
    println!(
        "{liar:?}: {} worlds, {} trials finished, {} confirmed, {} refuted, {} false versions, {} taken back, {} asked, \
         {} released with a lie, {} of them unsaid",
        seeds(),
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
    assert_eq!((all.false_best, all.unverified), (0, 0), "{liar:?}: {all:?}");
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

/// The bounds that the page promises: of a fleet of one stranger in four, for a stranger's first job and once it is trusted.
#[test]
fn verification_costs_a_fleet_of_one_stranger_in_four_what_the_page_says() {
    let job = |fleet: &mut VerifiedFleet| fleet.run_job().unwrap();
    let fleet = |verify| VerifiedFleet::new(verify).unwrap();
    let believed = job(&mut fleet(VerifyChoice::NONE));
    let mut fleet = fleet(VerifyChoice::STRANGERS);
    let first = job(&mut fleet);
    assert!(first > believed && first * 10 <= believed * 13, "{first} beside {believed}");
    // A record of two hundred in a row takes some eight thousand hops.
    if seeds() == SEEDS {
        return;
    }
    let mut jobs = 1;
    while fleet.confirmed_in_row() < 200 {
        job(&mut fleet);
        jobs += 1;
    }
    let trusted = job(&mut fleet);
    println!("{believed} ms believed, {first} ms at first, {trusted} ms after {jobs} jobs");
    assert!(trusted > believed && trusted * 100 <= believed * 106, "{trusted} beside {believed}");
}
