//! What moves when all trials have converged (SpeCon's algorithm 5), and the same by work that is known to be left.

use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    quantity::Micros,
    spec::Listing,
};
use std::collections::BTreeMap;

/// A trial that lives on a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resident {
    /// Which trial.
    pub trial: (JobId, TrialId),
    /// Where it lives.
    pub host: HostId,
    /// Since when it counts as converged.
    pub converged_at: Micros,
    /// How long it takes from now on with the whole processor of a host of capacity 1.
    pub remaining: Micros,
    /// Has it been moved by this before?
    pub is_rebalanced: bool,
}

/// A host that may give and take trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResidentHost {
    /// Which host.
    pub host: HostId,
    /// Beside a host of capacity 1.
    pub capacity: f64,
    /// May trials come to it?
    pub takes: bool,
}

/// A trial goes from one host to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Which trial.
    pub trial: (JobId, TrialId),
    /// Where it lived.
    pub from: HostId,
    /// Where it lives from now on.
    pub to: HostId,
}

/// The next trial to move when all have converged: from a host with many to one with at least two fewer. `None` when nothing is to move.
#[must_use]
pub fn rebalance(
    hosts: &[ResidentHost],
    trials: &[Resident],
    listing: Listing,
) -> Option<Transfer> {
    if listing == Listing::Printed {
        // Its condition holds for no host that has trials to give.
        return None;
    }
    let mut counts: BTreeMap<HostId, f64> = BTreeMap::new();
    for trial in trials {
        *counts.entry(trial.host).or_default() += 1.0;
    }
    let count = |of: &ResidentHost| counts.get(&of.host).copied().unwrap_or(0.0) / of.capacity;
    let takers = hosts.iter().filter(|host| host.takes);
    let to = takers.min_by(|a, b| count(a).total_cmp(&count(b)).then(a.host.cmp(&b.host)))?;
    // With a trial more the receiver mustn't have more than the donor had, whatever their capacities.
    let is_better = |from: &ResidentHost| {
        listing != Listing::Improved || count(to) + 1.0 / to.capacity < count(from)
    };
    let gives = |host: &&ResidentHost| count(host) - count(to) >= 2.0 && is_better(host);
    let mut donors: Vec<&ResidentHost> = hosts.iter().filter(gives).collect();
    donors.sort_by(|a, b| count(b).total_cmp(&count(a)).then(a.host.cmp(&b.host)));
    donors.into_iter().find_map(|from| {
        let here = trials.iter().filter(|trial| trial.host == from.host && !trial.is_rebalanced);
        let next = here.max_by_key(|trial| {
            let rank = match listing {
                Listing::Improved => trial.remaining,
                Listing::Printed | Listing::Thesis => trial.converged_at,
            };
            (rank, std::cmp::Reverse(trial.trial))
        })?;
        Some(Transfer { trial: next.trial, from: from.host, to: to.host })
    })
}

/// The next trial to move so that the host that has most left to do has less: by known remaining work, without any guess. `overhead`: how
/// long a trial that moves stands still. `None` when no move shortens that.
#[must_use]
pub fn shortest_remaining(
    hosts: &[ResidentHost],
    trials: &[Resident],
    overhead: Micros,
) -> Option<Transfer> {
    let mut loads: BTreeMap<HostId, f64> = BTreeMap::new();
    for trial in trials {
        *loads.entry(trial.host).or_default() += seconds(trial.remaining);
    }
    let left = |of: &ResidentHost| loads.get(&of.host).copied().unwrap_or(0.0) / of.capacity;
    let most = |a: &&ResidentHost, b: &&ResidentHost| {
        left(a).total_cmp(&left(b)).then(b.host.cmp(&a.host))
    };
    let from = hosts.iter().max_by(most)?;
    let to = hosts.iter().filter(|host| host.takes).min_by(most)?;
    let here = trials.iter().filter(|trial| trial.host == from.host && !trial.is_rebalanced);
    // Of the two hosts the one that ends last ends earliest.
    let after = |trial: &Resident| {
        let work = seconds(trial.remaining);
        let with_it = left(to) + (work + seconds(overhead)) / to.capacity;
        with_it.max(left(from) - work / from.capacity)
    };
    let best = here.min_by(|a, b| after(a).total_cmp(&after(b)).then(a.trial.cmp(&b.trial)))?;
    let is_better = after(best) < left(from) && from.host != to.host;
    is_better.then_some(Transfer { trial: best.trial, from: from.host, to: to.host })
}

#[expect(clippy::cast_precision_loss, reason = "times of running are far below 2^53 microseconds")]
const fn seconds(time: Micros) -> f64 {
    time.0 as f64 / 1e6
}
