//! Moves of trials from host to host: the world as SpeCon sees it.

use super::{
    Kind, Moved,
    host::micros,
    state::{Phase, State},
    world::World,
};
use sojourn_protocol::ids::HostId;
use sojourn_workgen::residency::{
    Balance, Category, Destination, HostLoad, Listing, Rebalancing, Resident, Scope, SpeCon,
    destination,
};

/// The rule for which trials move from host to host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Residency {
    /// Nobody: each trial stays where it was put.
    Stay,
    /// Trials that seem to have converged.
    SpeCon(SpeCon),
    /// The trial whose move makes the host with most left to do end sooner; so many seconds between two looks.
    ShortestRemaining(f64),
}

impl Residency {
    /// Seconds between two looks at all hosts.
    pub(super) fn interval(&self) -> Option<f64> {
        match self {
            Self::Stay => None,
            Self::SpeCon(rules) => Some(seconds(rules)),
            Self::ShortestRemaining(interval) => Some(*interval),
        }
    }

    /// Seconds between two looks at each trial.
    pub(super) fn look_interval(&self) -> Option<f64> {
        match self {
            Self::SpeCon(rules) => Some(seconds(rules)),
            Self::Stay | Self::ShortestRemaining(_) => None,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "intervals are far below 2^53 microseconds")]
const fn seconds(rules: &SpeCon) -> f64 {
    rules.interval.0 as f64 / 1e6
}

impl World<'_> {
    /// Looks at the trials whose time has come.
    pub(super) fn look(&mut self) {
        let Residency::SpeCon(rules) = self.world.residency else { return };
        for n in 0..self.states.len() {
            let Some(state) = self.states.get_mut(n) else { continue };
            if state.next_look > self.now {
                continue;
            }
            state.next_look += seconds(&rules);
            let Some(look) = state.look() else { continue };
            let asks = state.convergence.look(micros(self.now), &look, &rules);
            let Phase::Running(from) = state.phase else { continue };
            if asks && self.learning(from, rules.scope) > 1 {
                self.request(n, from, &rules);
            }
        }
    }

    /// Trials that haven't converged, on a host or everywhere.
    fn learning(&self, host: usize, scope: Scope) -> usize {
        let here = self.states.iter().filter(|state| match scope {
            Scope::Host => state.host() == Some(host),
            Scope::Cluster => state.host().is_some(),
        });
        here.filter(|state| state.convergence.category != Category::Converged).count()
    }

    fn request(&mut self, n: usize, from: usize, rules: &SpeCon) {
        let loads: Vec<HostLoad> = (0..self.hosts.len()).map(|host| self.load(host)).collect();
        match destination(id(from), &loads, rules) {
            Destination::Move { to, .. } => {
                if let Some(state) = self.states.get_mut(n) {
                    state.convergence.has_moved = true;
                }
                self.transfer(n, from, place(to), Kind::Speculative);
            }
            Destination::Stay => {
                if let Some(state) = self.states.get_mut(n) {
                    state.convergence.has_moved = rules.listing != Listing::Improved;
                }
            }
        }
    }

    fn load(&self, host: usize) -> HostLoad {
        let count = |category| {
            let here = self.states.iter().filter(|state| state.host() == Some(host));
            let of = here.filter(|state| state.convergence.category == category).count();
            u32::try_from(of).unwrap_or(u32::MAX)
        };
        let categories = [Category::Progressing, Category::Watching, Category::Converged];
        let busy = self.hosts.get(host).is_some_and(|host| !host.running.is_empty());
        HostLoad {
            host: id(host),
            trials: categories.map(count),
            capacity: 1.0,
            busy: if busy { 1.0 } else { 0.0 },
            takes: true,
        }
    }

    /// Rebalances the hosts, where nobody learns any more or what is left is known.
    pub(super) fn rebalance(&mut self) {
        let balance = match self.world.residency {
            Residency::Stay => return,
            Residency::SpeCon(rules) => {
                let learns = |state: &State| {
                    state.host().is_some() && state.convergence.category != Category::Converged
                };
                if self.states.iter().any(learns) {
                    return;
                }
                Balance::Trials(rules.listing)
            }
            Residency::ShortestRemaining(_) => {
                Balance::Work { overhead: micros(self.world.overhead) }
            }
        };
        let hosts = (0..self.hosts.len()).map(|host| (id(host), 1.0));
        let mut rebalancing =
            Rebalancing::new(balance, hosts, self.states.iter().filter_map(resident));
        while let Some(transfer) = rebalancing.next(|_, _| true) {
            let n = self.states.iter().position(|state| state.key == transfer.trial);
            let Some(n) = n else { return };
            if let Some(state) = self.states.get_mut(n) {
                state.convergence.is_rebalanced = true;
            }
            self.transfer(n, place(transfer.from), place(transfer.to), Kind::Rebalance);
        }
    }

    /// The trial stands still until it is there.
    fn transfer(&mut self, n: usize, from: usize, to: usize, kind: Kind) {
        let (Some(state), Some(host)) = (self.states.get_mut(n), self.hosts.get_mut(from)) else {
            return;
        };
        let carried = host.leave(self.now, state.key);
        let until = self.now + self.world.overhead;
        state.phase = Phase::Moving { to, until, carried };
        self.moves.push(Moved { at: self.now, trial: n, from, to, kind });
        self.count();
    }
}

/// A trial that is on its way counts where it goes to, and isn't moved.
fn resident(state: &State) -> Option<Resident> {
    Some(Resident {
        trial: state.key,
        host: id(state.host()?),
        converged_at: state.convergence.converged_at.unwrap_or_default(),
        remaining: micros(state.left()),
        is_rebalanced: state.convergence.is_rebalanced || !state.is_running(),
    })
}

fn id(host: usize) -> HostId {
    HostId(u64::try_from(host).unwrap_or(u64::MAX))
}

fn place(host: HostId) -> usize {
    usize::try_from(host.0).unwrap_or(usize::MAX)
}
