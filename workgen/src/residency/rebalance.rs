//! The moves of trials once all have converged (SpeCon's algorithm 5), and the same by work that is known to be left.

use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    quantity::Micros,
    spec::Listing,
};
use std::{cmp::Reverse, collections::BTreeMap};

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
    /// Has it been moved by this before, or is it not to move?
    pub is_rebalanced: bool,
}

/// A trial goes from one host to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// Which trial.
    pub trial: (JobId, TrialId),
    /// Where it lived.
    pub from: HostId,
    /// Where it lives from now on.
    pub to: HostId,
    /// The loads of the two hosts before, divided by their capacity: trials, or seconds of work.
    pub loads: (f64, f64),
}

/// By what it is decided which trial moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// How many trials hosts have: from one with many to one with at least two fewer.
    Trials(Listing),
    /// How much work hosts have left, without any guess: away from the one that has most, where the later end of both hosts is sooner then.
    Work {
        /// How long a trial that moves stands still.
        overhead: Micros,
    },
}

/// Trials that a host is asked for before another host is tried.
const MAX_ASKED: usize = 64;

/// Hosts and the trials on them, of which one after another moves. Each moves at most once.
///
/// A move takes time in proportion to the number of hosts: thousands of trials may move at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebalancing {
    balance: Balance,
    hosts: BTreeMap<HostId, Balanced>,
}

/// A host and its trials.
#[derive(Debug, Clone, PartialEq)]
struct Balanced {
    host: HostId,
    /// Beside a host of capacity 1.
    capacity: f64,
    /// The load of the host, divided by its capacity: trials, or seconds of work.
    load: f64,
    /// In order.
    trials: BTreeMap<(JobId, TrialId), Resident>,
    /// Has it taken none of those that it was asked for?
    refuses: bool,
}

impl Rebalancing {
    /// Hosts with their capacities, beside that of a mean host, and all trials that live on them.
    #[must_use]
    pub fn new(
        balance: Balance,
        hosts: impl IntoIterator<Item = (HostId, f64)>,
        trials: impl IntoIterator<Item = Resident>,
    ) -> Self {
        let empty = |(host, capacity)| {
            let none = BTreeMap::new();
            (host, Balanced { host, capacity, load: 0.0, trials: none, refuses: false })
        };
        let mut hosts: BTreeMap<HostId, Balanced> = hosts.into_iter().map(empty).collect();
        for trial in trials {
            if let Some(host) = hosts.get_mut(&trial.host) {
                host.trials.insert(trial.trial, trial);
            }
        }
        hosts.values_mut().for_each(|host| host.weigh(balance));
        Self { balance, hosts }
    }

    /// The next trial that moves, which counts as moved from now on; none where no move is left that helps. `takes`: can a host take a trial?
    pub fn next(&mut self, mut takes: impl FnMut(&Resident, HostId) -> bool) -> Option<Transfer> {
        loop {
            let open = self.hosts.values().filter(|host| !host.refuses);
            let to = open.min_by(|a, b| a.load.total_cmp(&b.load).then(a.host.cmp(&b.host)))?;
            let mut candidates = self.candidates(to).peekable();
            // Hosts with more could even less take from another.
            candidates.peek()?;
            let found = candidates.take(MAX_ASKED).find(|(_, trial)| takes(trial, to.host));
            let found = found.map(|(from, trial)| (trial, (from.load, to.load)));
            let to = to.host;
            match found {
                Some((trial, loads)) => return Some(self.transfer(trial, to, loads)),
                None => self.hosts.get_mut(&to)?.refuses = true,
            }
        }
    }

    /// The trials that it would help to move to a host, the best first, with the hosts on which they are.
    fn candidates<'a>(
        &'a self,
        to: &'a Balanced,
    ) -> Box<dyn Iterator<Item = (&'a Balanced, Resident)> + 'a> {
        match self.balance {
            // The condition of the listing holds for no host that has trials to give.
            Balance::Trials(Listing::Printed) => Box::new(std::iter::empty()),
            Balance::Trials(listing) => Box::new(self.by_trials(to, listing)),
            Balance::Work { overhead } => Box::new(self.by_work(to, seconds(overhead))),
        }
    }

    fn by_trials<'a>(
        &'a self,
        to: &'a Balanced,
        listing: Listing,
    ) -> impl Iterator<Item = (&'a Balanced, Resident)> + 'a {
        // With a trial more the receiver mustn't have more than the donor had, whatever their capacities.
        let is_better = move |from: &Balanced| {
            listing != Listing::Improved || to.load + 1.0 / to.capacity < from.load
        };
        let gives = |from: &&Balanced| from.load - to.load >= 2.0 && is_better(from);
        let mut donors: Vec<&Balanced> = self.hosts.values().filter(gives).collect();
        donors.sort_by(|a, b| b.load.total_cmp(&a.load).then(a.host.cmp(&b.host)));
        donors.into_iter().flat_map(move |from| {
            let mut trials: Vec<Resident> = from.movable().collect();
            trials.sort_by_key(|trial| {
                let rank = match listing {
                    Listing::Improved => trial.remaining,
                    Listing::Printed | Listing::Thesis => trial.converged_at,
                };
                (Reverse(rank), trial.trial)
            });
            trials.into_iter().map(move |trial| (from, trial))
        })
    }

    fn by_work<'a>(
        &'a self,
        to: &'a Balanced,
        overhead: f64,
    ) -> impl Iterator<Item = (&'a Balanced, Resident)> + 'a {
        let most =
            |a: &&Balanced, b: &&Balanced| a.load.total_cmp(&b.load).then(b.host.cmp(&a.host));
        let from = self.hosts.values().max_by(most).filter(|from| from.host != to.host);
        from.into_iter().flat_map(move |from| {
            // Of the two hosts the one that ends last.
            let after = |trial: &Resident| {
                let work = seconds(trial.remaining);
                let with_it = to.load + (work + overhead) / to.capacity;
                with_it.max(from.load - work / from.capacity)
            };
            let helps = from.movable().map(|trial| (after(&trial), trial));
            let mut helps: Vec<_> = helps.filter(|(after, _)| *after < from.load).collect();
            helps.sort_by(|(a, of), (b, other)| a.total_cmp(b).then(of.trial.cmp(&other.trial)));
            helps.into_iter().map(move |(_, trial)| (from, trial))
        })
    }

    fn transfer(&mut self, trial: Resident, to: HostId, loads: (f64, f64)) -> Transfer {
        let balance = self.balance;
        if let Some(from) = self.hosts.get_mut(&trial.host) {
            from.trials.remove(&trial.trial);
            from.weigh(balance);
        }
        if let Some(host) = self.hosts.get_mut(&to) {
            let moved = Resident { host: to, is_rebalanced: true, ..trial };
            host.trials.insert(trial.trial, moved);
            host.weigh(balance);
        }
        Transfer { trial: trial.trial, from: trial.host, to, loads }
    }
}

impl Balanced {
    fn movable(&self) -> impl Iterator<Item = Resident> {
        self.trials.values().filter(|trial| !trial.is_rebalanced).copied()
    }

    fn weigh(&mut self, balance: Balance) {
        let weight = |trial: &Resident| match balance {
            Balance::Trials(_) => 1.0,
            Balance::Work { .. } => seconds(trial.remaining),
        };
        self.load = self.trials.values().map(weight).sum::<f64>() / self.capacity;
    }
}

#[expect(clippy::cast_precision_loss, reason = "times of running are far below 2^53 microseconds")]
const fn seconds(time: Micros) -> f64 {
    time.0 as f64 / 1e6
}
