//! SpeCon's categories, scores and moves on the cases that the thesis describes.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    quantity::Micros,
};
use sojourn_workgen::residency::{
    Balance, Category, Convergence, Destination, Growth, HostLoad, Listing, Look, Rebalancing,
    Resident, SpeCon, Transfer, destination,
};

const fn load(host: u64, trials: [u32; 3]) -> HostLoad {
    HostLoad { host: HostId(host), trials, capacity: 1.0, busy: 1.0, takes: true }
}

fn look(loss: f64) -> Look {
    Look { loss, batches: 100, done: Some(0.1) }
}

/// Looks at a trial at each interval; gives the looks at which it asked to move.
fn looks(trial: &mut Convergence, losses: &[f64], rules: &SpeCon) -> Vec<usize> {
    let asked = losses.iter().enumerate().filter(|(n, loss)| {
        let now = Micros::from_secs(30 * u64::try_from(*n).unwrap());
        trial.look(now, &look(**loss), rules)
    });
    asked.map(|(n, _)| n).collect()
}

const SLOWING: [f64; 6] = [1.0, 0.5, 0.495, 0.4905, 0.4865, 0.483];

#[test]
fn a_trial_whose_growth_falls_converges_and_asks_to_move_when_that_is_confirmed() {
    for (confirm, asked) in [(0, vec![3, 4, 5]), (1, vec![4, 5]), (2, vec![5])] {
        let mut trial = Convergence::default();
        let rules = SpeCon { confirm, ..SpeCon::thesis() };
        assert_eq!(looks(&mut trial, &SLOWING, &rules), asked, "confirm = {confirm}");
        assert_eq!(trial.category, Category::Converged);
        assert_eq!(trial.converged_at, Some(Micros::from_secs(90)));
    }
}

#[test]
fn the_listing_as_printed_never_moves_anything() {
    let mut trial = Convergence::default();
    let rules = SpeCon { listing: Listing::Printed, ..SpeCon::thesis() };
    assert_eq!(looks(&mut trial, &SLOWING, &rules), [0; 0]);
    assert_eq!(trial.category, Category::Watching);
    assert_eq!(first(Listing::Printed, [(1, 1.0), (2, 1.0)], &residents(&[(1, 0), (1, 1)])), None);
}

#[test]
fn a_trial_that_learns_again_is_progressing() {
    let mut trial = Convergence::default();
    let mut losses = SLOWING.to_vec();
    losses.push(0.3);
    looks(&mut trial, &losses, &SpeCon::thesis());
    assert_eq!((trial.category, trial.converged_at), (Category::Progressing, None));
}

#[test]
fn a_flat_loss_converges_although_its_growth_no_longer_falls() {
    let mut trial = Convergence::default();
    assert_eq!(looks(&mut trial, &[1.0; 6], &SpeCon::thesis()), [4, 5]);
}

#[test]
fn too_few_batches_or_a_loss_that_is_no_number_are_no_look() {
    let mut trial = Convergence::default();
    let rules = SpeCon::thesis();
    for now in 0..10 {
        let now = Micros::from_secs(30 * now);
        trial.look(now, &Look { batches: 19, ..look(1.0) }, &rules);
        trial.look(now, &look(f64::NAN), &rules);
    }
    assert_eq!(trial, Convergence::default());
}

#[test]
fn growth_of_a_long_trial_counts_by_its_own_length() {
    // It falls by 0.0049, then by 0.0047.
    let losses = [1.0, 0.9951, 0.9904];
    let per_trial = SpeCon { alpha: 0.3, growth: Growth::PerTrial, ..SpeCon::thesis() };
    for (rules, done, category) in [
        (SpeCon::thesis(), 0.01, Category::Watching),
        // It sheds half of its loss over the whole of it.
        (per_trial, 0.01, Category::Progressing),
        (per_trial, 0.1, Category::Watching),
    ] {
        let mut trial = Convergence::default();
        for (n, loss) in (0..).zip(&losses) {
            let look = Look { done: Some(done), ..look(*loss) };
            trial.look(Micros::from_secs(n), &look, &rules);
        }
        assert_eq!(trial.category, category);
    }
}

#[test]
fn a_converged_trial_goes_to_the_host_with_the_least_score() {
    let hosts = [load(1, [3, 0, 0]), load(2, [1, 1, 0]), load(3, [2, 0, 0]), load(4, [5, 0, 1])];
    assert_eq!(hosts.map(|host| host.score()), [6.0, 3.5, 4.0, 11.0]);
    let moved = Destination::Move { to: HostId(2), from_score: 11.0, to_score: 3.5 };
    for rules in [SpeCon::thesis(), SpeCon::default()] {
        assert_eq!(destination(HostId(4), &hosts, &rules), moved);
    }
}

#[test]
fn a_converged_trial_stays_where_moving_it_would_not_help() {
    let on_least = [load(1, [1, 0, 1]), load(2, [2, 0, 0])];
    assert_eq!(destination(HostId(1), &on_least, &SpeCon::thesis()), Destination::Stay);
    // 4 and 3.5 would become 3 and 4.5.
    let worse = [load(1, [1, 0, 2]), load(2, [1, 1, 0])];
    assert_eq!(destination(HostId(1), &worse, &SpeCon::default()), Destination::Stay);
    let thesis = destination(HostId(1), &worse, &SpeCon::thesis());
    assert_eq!(thesis, Destination::Move { to: HostId(2), from_score: 4.0, to_score: 3.5 });
}

#[test]
fn a_host_that_cannot_take_a_trial_is_left_out_and_a_large_one_counts_for_more() {
    let full = [load(1, [5, 0, 1]), HostLoad { takes: false, ..load(2, [0, 0, 0]) }];
    assert_eq!(destination(HostId(1), &full, &SpeCon::default()), Destination::Stay);
    let large = HostLoad { capacity: 4.0, ..load(3, [3, 0, 0]) };
    let hosts = [load(1, [5, 0, 1]), load(2, [1, 0, 0]), large];
    let to = destination(HostId(1), &hosts, &SpeCon::default());
    assert!(matches!(to, Destination::Move { to: HostId(3), .. }), "{to:?}");
    let idle =
        [load(1, [5, 0, 1]), load(2, [1, 0, 0]), HostLoad { busy: 0.5, ..load(3, [1, 0, 0]) }];
    let to = destination(HostId(1), &idle, &SpeCon::default());
    assert!(matches!(to, Destination::Move { to: HostId(3), .. }), "{to:?}");
}

/// Trials by host and the time at which they converged.
fn residents(of: &[(u64, u64)]) -> Vec<Resident> {
    let trial = |(n, (host, at)): (u32, &(u64, u64))| Resident {
        trial: (JobId(1), TrialId(n)),
        host: HostId(*host),
        converged_at: Micros::from_secs(*at),
        remaining: Micros::from_secs(10),
        is_rebalanced: false,
    };
    (0..).zip(of).map(trial).collect()
}

/// The first move.
fn first(
    listing: Listing,
    hosts: impl IntoIterator<Item = (u64, f64)>,
    trials: &[Resident],
) -> Option<Transfer> {
    let hosts = hosts.into_iter().map(|(host, capacity)| (HostId(host), capacity));
    let balance = Balance::Trials(listing);
    Rebalancing::new(balance, hosts, trials.iter().copied()).next(|_, _| true)
}

/// Carries moves out until there is none; gives each host's count and the moves.
fn balance(hosts: u64, trials: &mut [Resident], listing: Listing) -> (Vec<usize>, usize) {
    let all: Vec<HostId> = (1..=hosts).map(HostId).collect();
    let mut moves = 0;
    let balance = Balance::Trials(listing);
    let mut rebalancing =
        Rebalancing::new(balance, all.iter().map(|host| (*host, 1.0)), trials.iter().copied());
    while let Some(transfer) = rebalancing.next(|_, _| true) {
        let moved = trials.iter_mut().find(|trial| trial.trial == transfer.trial).unwrap();
        assert_eq!((moved.host, moved.is_rebalanced), (transfer.from, false));
        (moved.host, moved.is_rebalanced) = (transfer.to, true);
        moves += 1;
    }
    let counts = all.iter().map(|of| trials.iter().filter(|trial| trial.host == *of).count());
    (counts.collect(), moves)
}

#[test]
fn an_empty_host_takes_the_trial_that_converged_last() {
    let mut trials = residents(&[(2, 100), (2, 200)]);
    assert_eq!(balance(2, &mut trials, Listing::Thesis), (vec![1, 1], 1));
    assert_eq!(trials[1].host, HostId(1));
}

#[test]
fn the_one_with_most_left_to_do_moves_first_by_default() {
    let mut trials = residents(&[(2, 100), (2, 200)]);
    trials[0].remaining = Micros::from_secs(500);
    balance(2, &mut trials, Listing::Improved);
    assert_eq!(trials[0].host, HostId(1));
}

#[test]
fn sixteen_trials_of_three_hosts_are_four_on_each_of_four() {
    let counts = [(1, 5), (2, 6), (3, 5)];
    let of = counts.iter().flat_map(|(host, trials)| (0..*trials).map(|at| (*host, at)));
    let mut trials = residents(&of.collect::<Vec<_>>());
    assert_eq!(balance(4, &mut trials, Listing::Thesis), (vec![4, 4, 4, 4], 4));
}

#[test]
fn a_trial_is_rebalanced_once() {
    let mut trials = residents(&[(1, 0), (1, 1), (1, 2), (1, 3)]);
    trials.iter_mut().for_each(|trial| trial.is_rebalanced = true);
    assert_eq!(balance(2, &mut trials, Listing::Improved), (vec![4, 0], 0));
}

#[test]
fn known_work_moves_what_shortens_the_last_end() {
    let mut trials = residents(&[(1, 0), (1, 0), (1, 0), (2, 0)]);
    for (trial, seconds) in trials.iter_mut().zip([100, 40, 10, 20]) {
        trial.remaining = Micros::from_secs(seconds);
    }
    let first = |overhead| {
        let hosts = [1, 2].map(|host| (HostId(host), 1.0));
        let balance = Balance::Work { overhead: Micros::from_secs(overhead) };
        Rebalancing::new(balance, hosts, trials.iter().copied()).next(|_, _| true)
    };
    let transfer = first(5).unwrap();
    assert_eq!((transfer.trial.1, transfer.to), (TrialId(1), HostId(2)));
    assert_eq!(transfer.loads, (150.0, 20.0));
    // Nothing is won where the move takes longer than it saves.
    assert_eq!(first(1_000), None);
}

#[test]
fn where_the_emptiest_host_takes_none_the_next_one_does() {
    let trials = residents(&[(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]);
    let hosts = [1, 2, 3].map(|host| (HostId(host), 1.0));
    for balance in
        [Balance::Trials(Listing::Improved), Balance::Work { overhead: Micros::from_secs(0) }]
    {
        let mut rebalancing = Rebalancing::new(balance, hosts, trials.iter().copied());
        let mut next = || rebalancing.next(|of, to| to == HostId(2) && of.trial.1 != TrialId(0));
        let moved = next().unwrap();
        assert_eq!((moved.trial.1, moved.from, moved.to), (TrialId(1), HostId(1), HostId(2)));
        assert_eq!(next(), None, "3 and 2");
    }
}

#[test]
fn losses_that_no_model_has_are_no_growth() {
    let rules = SpeCon::default();
    let mut trial = Convergence::default();
    looks(&mut trial, &[1.0, 1.0, 1.0], &rules);
    for loss in [-1.7e308, 1.7e308, -1.7e308] {
        trial.look(Micros::from_secs(1), &look(loss), &rules);
        assert!(trial.growth().is_none_or(f64::is_finite), "{trial:?}");
    }
}

#[test]
fn a_loss_that_is_negative_falls_too() {
    let rules = SpeCon { growth: Growth::PerLook, alpha: 0.01, ..SpeCon::default() };
    let mut trial = Convergence::default();
    looks(&mut trial, &[-1.0, -2.0, -3.0, -4.0], &rules);
    assert_eq!(trial.category, Category::Progressing);
    looks(&mut trial, &[-4.0, -4.0, -4.0], &rules);
    assert_ne!(trial.category, Category::Progressing, "it falls no more");
}

#[test]
fn no_host_gets_more_for_its_capacity_than_the_one_that_gives() {
    let hosts = [(1, 1.2), (2, 0.2)];
    let trials = residents(&[(1, 0), (1, 1), (1, 2)]);
    assert_eq!(first(Listing::Improved, hosts, &trials), None, "2.5 and 0; then 1.7 and 5");
    assert!(first(Listing::Thesis, hosts, &trials).is_some());
}
