//! Hosts and trials in virtual time.

use super::{
    Ended, Moved, Residency, SharedTrial, SharingRun,
    host::Host,
    state::{DONE, Phase, State},
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::seeds;
use sojourn_shares::{Carried, CpuSharePolicy};

/// The hosts of a run, and the rules by which trials share them.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedHosts {
    /// How many hosts, each of capacity 1.
    pub hosts: u32,
    /// How a host's processor is divided.
    pub cpu_shares: CpuSharePolicy,
    /// Where a trial is put that comes.
    pub placement: Placement,
    /// The rule for which trials move later.
    pub residency: Residency,
    /// How long a trial that moves stands still, in seconds.
    pub overhead: f64,
    /// How much slower each trial goes for every other on its host, as a part: caches and memory are shared too.
    pub interference: f64,
    /// The standard deviation of what a trial reports around its loss.
    pub noise: f64,
}

/// Where a trial is put that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On any host, by chance.
    Random,
    /// Where the fewest are; of several such hosts the first.
    FewestResidents,
}

impl SharedHosts {
    /// One host, on which nobody disturbs another and trials report what they have with a noise of 0.01.
    #[must_use]
    pub const fn one(cpu_shares: CpuSharePolicy) -> Self {
        Self {
            hosts: 1,
            cpu_shares,
            placement: Placement::FewestResidents,
            residency: Residency::Stay,
            overhead: 5.0,
            interference: 0.0,
            noise: 0.01,
        }
    }

    /// Runs the trials to their ends. The seed decides the noise, and a random placement.
    #[must_use]
    pub fn run(&self, trials: &[SharedTrial], seed: u64) -> SharingRun {
        let mut world = World {
            world: self,
            hosts: (0..self.hosts.max(1))
                .map(|_| Host::new(self.cpu_shares, self.interference))
                .collect(),
            states: trials.iter().zip(0..).map(|(trial, n)| State::new(trial, n, seed)).collect(),
            chance: seeds::stream("sojourn/fluid-placement", &[seed]),
            now: 0.0,
            tick: 1,
            next_look: self.residency.interval(),
            wanted: 0.0,
            used: 0.0,
            moves: Vec::new(),
            residents: Vec::new(),
        };
        while world.step() {}
        world.result()
    }
}

pub(super) struct World<'a> {
    pub(super) world: &'a SharedHosts,
    pub(super) hosts: Vec<Host>,
    pub(super) states: Vec<State>,
    chance: ChaCha8Rng,
    pub(super) now: f64,
    /// The next whole second.
    tick: u32,
    /// At all hosts.
    next_look: Option<f64>,
    /// Seconds of capacity that somebody wanted, and that were used.
    wanted: f64,
    used: f64,
    pub(super) moves: Vec<Moved>,
    residents: Vec<(f64, Vec<usize>)>,
}

impl World<'_> {
    /// Goes to the next event. False when all have ended.
    fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        self.advance(next.max(self.now));
        let ended = self.end();
        if self.now >= f64::from(self.tick) {
            self.tick += 1;
            self.sample();
        }
        self.arrive();
        for host in &mut self.hosts {
            host.plan(self.now);
        }
        self.look();
        let is_due = self.next_look.is_some_and(|at| at <= self.now);
        if is_due {
            self.next_look = self.world.residency.interval().map(|interval| self.now + interval);
        }
        if ended || is_due {
            self.rebalance();
        }
        true
    }

    /// When something happens next.
    fn next(&self) -> Option<f64> {
        let mut next = f64::from(self.tick);
        let mut is_over = true;
        for state in &self.states {
            let at = match state.phase {
                Phase::Ended(_) => continue,
                Phase::Coming => state.trial.arrival,
                Phase::Moving { until, .. } => until,
                Phase::Running(host) => self.now + state.until_next() / self.speed(host, state),
            };
            is_over = false;
            next = next.min(at).min(state.next_look.max(self.now));
        }
        let due = self.hosts.iter().filter_map(Host::due).chain(self.next_look);
        (!is_over).then(|| due.fold(next, f64::min))
    }

    /// How much of its work a trial does in a second.
    fn speed(&self, host: usize, state: &State) -> f64 {
        let Some(host) = self.hosts.get(host) else { return 0.0 };
        host.running.get(&state.key).map_or(0.0, |of| of.rate) * host.efficiency()
    }

    fn advance(&mut self, to: f64) {
        let seconds = to - self.now;
        self.now = to;
        for n in 0..self.states.len() {
            let Some(state) = self.states.get(n) else { continue };
            let Phase::Running(host) = state.phase else { continue };
            let work = seconds * self.speed(host, state);
            if let Some(state) = self.states.get_mut(n) {
                state.advance(to, work);
            }
        }
        for host in self.hosts.iter_mut().filter(|host| !host.running.is_empty()) {
            self.wanted += seconds;
            self.used += seconds * host.running.values().map(|of| of.rate).sum::<f64>();
            host.advance(seconds);
        }
    }

    /// Has any trial ended?
    fn end(&mut self) -> bool {
        let mut ended = false;
        for state in &mut self.states {
            if let Phase::Running(host) = state.phase
                && state.left() <= DONE
            {
                state.phase = Phase::Ended(self.now);
                ended = true;
                if let Some(host) = self.hosts.get_mut(host) {
                    host.leave(self.now, state.key);
                }
            }
        }
        if ended {
            self.count();
        }
        ended
    }

    fn sample(&mut self) {
        for state in &mut self.states {
            if let Phase::Running(host) = state.phase {
                let loss = state.report(self.world.noise);
                if let Some(host) = self.hosts.get_mut(host) {
                    host.sample(state.key, loss, state.estimate());
                }
            }
        }
    }

    fn arrive(&mut self) {
        for n in 0..self.states.len() {
            let Some(state) = self.states.get(n) else { continue };
            let (host, carried) = match state.phase {
                Phase::Coming if state.trial.arrival <= self.now => {
                    (self.first_host(), Carried::default())
                }
                Phase::Moving { to, until, carried } if until <= self.now => (to, carried),
                _ => continue,
            };
            if let (Some(state), Some(on)) = (self.states.get_mut(n), self.hosts.get_mut(host)) {
                if matches!(state.phase, Phase::Coming)
                    && let Some(interval) = self.world.residency.look_interval()
                {
                    state.next_look = self.now + interval;
                }
                state.phase = Phase::Running(host);
                on.enter(self.now, state.key, carried);
            }
            self.count();
        }
    }

    fn first_host(&mut self) -> usize {
        match self.world.placement {
            Placement::Random => {
                let host = seeds::below(&mut self.chance, self.world.hosts.max(1));
                usize::try_from(host).unwrap_or(0)
            }
            Placement::FewestResidents => {
                (0..self.hosts.len()).min_by_key(|host| self.residents_of(*host)).unwrap_or(0)
            }
        }
    }

    fn residents_of(&self, host: usize) -> usize {
        self.states.iter().filter(|state| state.host() == Some(host)).count()
    }

    /// Notes how many trials each host has.
    pub(super) fn count(&mut self) {
        let counts = (0..self.hosts.len()).map(|host| self.residents_of(host)).collect();
        self.residents.push((self.now, counts));
    }

    fn result(self) -> SharingRun {
        let mut makespan: f64 = 0.0;
        let trials = self.states.iter().map(|state| {
            let ended = if let Phase::Ended(at) = state.phase { at } else { self.now };
            makespan = makespan.max(ended);
            let arrival = state.trial.arrival;
            let usable = state.usable.unwrap_or(ended) - arrival;
            Ended { completion: ended - arrival, usable }
        });
        let trials = trials.collect();
        let used = self.used / self.wanted.max(DONE);
        SharingRun { trials, makespan, used, moves: self.moves, residents: self.residents }
    }
}
