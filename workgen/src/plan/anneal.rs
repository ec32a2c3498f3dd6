//! Simulated annealing over whole schedules: a hop that holds the end up is taken out and put in where
//! the longest path through it is shortest, by the exact value that [`Graph`] gives for each gap. Of its
//! own gap it may not make use. A worse schedule is accepted by its loss and the temperature.
//!
//! The move is the insertion of Dell'Amico and Trubian ("Applying tabu search to the job-shop scheduling
//! problem", Annals of OR 41, 1993), in both orders at once, as an open shop leaves both free; the cooling
//! is geometric. On hard square shops of ten by ten, half a second of it ends within 1.015 of the best that
//! any run of ten seconds has found.

#![expect(clippy::indexing_slicing, reason = "nodes point to nodes")]

use super::{
    Schedule, WHOLE,
    graph::{Gap, Graph, MACHINE, TRIAL, signed},
    problem::id,
    shop::Shop,
};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
};

/// Moves for one iteration: about the work of a forward simulation.
const MOVES: usize = 16;
/// The temperature at first, in means of all hops' times; cooler from the start, it stays where the start
/// has led.
const HOT: f64 = 0.4;
/// At last; cooler, it only waits.
const COLD: f64 = 0.12;
/// Machines tried for a hop that several may train: its own, and these.
const OTHERS: usize = 3;
/// Entries of the table of logarithms.
const LOGS: usize = 1 << 12;
/// The whole number that stands for 1 in the table's entries.
const LOG_ONE: i64 = 1 << 10;
const LOG_ONE_F64: f64 = 1024.0;

/// The search.
#[derive(Debug)]
pub(super) struct Anneal<'a> {
    shop: &'a Shop<'a>,
    graph: Graph,
    best: Graph,
    makespan: i64,
    /// The mean time of a hop.
    mean: f64,
    best_makespan: i64,
    /// `-ln((n + 1/2) / LOGS)`, for acceptance thresholds.
    logs: Vec<i64>,
    rng: ChaCha8Rng,
    critical: Vec<u32>,
    machines: Vec<u32>,
    gaps: [Vec<Side>; 2],
}

/// A gap in one chain.
#[derive(Debug, Clone, Copy)]
struct Side {
    after: u32,
    before: u32,
    /// When what is put in can begin, for this chain.
    head: i64,
    /// The tail after it in this chain.
    tail: i64,
}

impl<'a> Anneal<'a> {
    pub(super) fn new(shop: &'a Shop<'a>, start: &Schedule, rng: ChaCha8Rng) -> Self {
        let graph = Graph::new(shop, start);
        let makespan = graph.makespan();
        let log = |n: usize| rounded(-libm::log((float(n) + 0.5) / float(LOGS)) * LOG_ONE_F64);
        let time: u64 = start.steps.iter().map(|step| step.end - step.start).sum();
        Self {
            shop,
            best: graph.clone(),
            graph,
            makespan,
            mean: float(to_usize(time)) / float(start.steps.len().max(1)),
            best_makespan: makespan,
            logs: (0..LOGS).map(log).collect(),
            rng,
            critical: Vec::new(),
            machines: Vec::new(),
            gaps: [Vec::new(), Vec::new()],
        }
    }

    /// The best found.
    pub(super) fn best(&self) -> Schedule {
        self.best.schedule()
    }

    /// When the best ends.
    pub(super) fn makespan(&self) -> u64 {
        u64::saturating_from(self.best_makespan)
    }

    /// One iteration, when so much of the budget is spent.
    pub(super) fn iterate(&mut self, spent: u32) {
        let share = f64::from(spent) / f64::from(WHOLE);
        let temperature = rounded(self.mean * HOT * libm::pow(COLD / HOT, share));
        for _ in 0..MOVES {
            if self.makespan() <= self.shop.bound {
                break;
            }
            self.try_move(temperature);
        }
    }

    fn try_move(&mut self, temperature: i64) {
        let Some(hop) = self.pick() else { return };
        let own = self.graph.gap(hop);
        self.graph.take(hop);
        let log = self.logs[self.rng.next_u32() as usize % LOGS];
        let most = self.makespan + temperature * log / LOG_ONE;
        let found = self.best_gap(hop, &own).and_then(|(through, gap)| {
            let makespan = through.max(self.graph.makespan());
            (makespan <= most).then_some((makespan, gap))
        });
        let Some((makespan, gap)) = found else { return self.put(hop, &own) };
        self.put(hop, &gap);
        debug_assert_eq!(makespan, self.graph.makespan(), "the gap told wrong");
        self.makespan = makespan;
        if makespan < self.best_makespan {
            self.best_makespan = makespan;
            self.best.copy(&self.graph);
        }
    }

    fn put(&mut self, hop: u32, gap: &Gap) {
        let what = self.graph.hops[hop as usize];
        let time = signed(self.shop.time(what.trial, what.shard, gap.machine));
        let rest = signed(self.shop.problem.machines[gap.machine as usize].latency);
        self.graph.put(hop, gap, time, rest);
    }

    /// A random hop of those that hold the end up.
    fn pick(&mut self) -> Option<u32> {
        self.critical.clear();
        let hops = self.graph.nodes.iter().take(self.graph.hops.len()).zip(0..);
        let critical = hops.filter(|(node, _)| node.head + node.tail == self.makespan);
        self.critical.extend(critical.map(|(_, hop)| hop));
        let count = u32::try_from(self.critical.len()).ok().filter(|count| *count > 0)?;
        self.critical.get(seeds::below(&mut self.rng, count) as usize).copied()
    }

    /// The gap with the shortest longest path, for a hop that is out; ties at random.
    fn best_gap(&mut self, hop: u32, own: &Gap) -> Option<(i64, Gap)> {
        let what = self.graph.hops[hop as usize];
        self.choose_machines(what.shard, own.machine);
        let [mut of_trial, mut of_machine] = std::mem::take(&mut self.gaps);
        self.sides(TRIAL, what.trial, &mut of_trial);
        let epoch = |node: u32| self.graph.hops.get(node as usize).map(|hop| hop.epoch);
        of_trial.retain(|side| {
            epoch(side.after).is_none_or(|epoch| epoch <= what.epoch)
                && epoch(side.before).is_none_or(|epoch| epoch >= what.epoch)
        });
        if self.shop.problem.trials[what.trial as usize].has_fixed_order() {
            // It stays where it is in its trial, and may change its machine and its turn there.
            of_trial
                .retain(|side| (side.after, side.before) == (own.after[TRIAL], own.before[TRIAL]));
        }
        let (mut best, mut ties) = (None, 0);
        let mut least = i64::MAX;
        for &machine in &self.machines {
            let time = signed(self.shop.time(what.trial, what.shard, machine));
            let rest = signed(self.shop.problem.machines[machine as usize].latency);
            self.sides(MACHINE, machine, &mut of_machine);
            for trial in &of_trial {
                for side in &of_machine {
                    let tail = trial.tail.max(side.tail + rest);
                    let through = trial.head.max(side.head) + time + tail;
                    if through > least {
                        continue;
                    }
                    let gap = Gap {
                        after: [trial.after, side.after],
                        before: [trial.before, side.before],
                        machine,
                    };
                    if gap == *own || self.makes_circle(&gap) {
                        continue;
                    }
                    ties = if through < least { 1 } else { ties + 1 };
                    if ties == 1 || seeds::below(&mut self.rng, ties) == 0 {
                        (least, best) = (through, Some(gap));
                    }
                }
            }
        }
        self.gaps = [of_trial, of_machine];
        best.map(|gap| (least, gap))
    }

    /// The machines to try for a shard.
    fn choose_machines(&mut self, shard: u32, own: u32) {
        self.machines.clear();
        self.machines.push(own);
        let holders = self.shop.holders[shard as usize].as_deref();
        let count = holders.map_or(self.shop.machines, <[u32]>::len);
        if count <= OTHERS + 1 {
            let all = (0..id(count)).map(|n| holders.map_or(n, |holders| holders[n as usize]));
            self.machines.extend(all.filter(|machine| *machine != own));
            return;
        }
        for _ in 0..OTHERS {
            let n = seeds::below(&mut self.rng, id(count));
            let machine = holders.map_or(n, |holders| holders[n as usize]);
            if !self.machines.contains(&machine) {
                self.machines.push(machine);
            }
        }
    }

    /// All gaps of a chain.
    fn sides(&self, chain: usize, line: u32, sides: &mut Vec<Side>) {
        sides.clear();
        let mut after = self.graph.start(chain, line);
        loop {
            let node = &self.graph.nodes[after as usize];
            let before = node.after[chain];
            let tail = self.graph.nodes[before as usize].tail;
            sides.push(Side { after, before, head: node.end(chain), tail });
            if !self.graph.is_hop(before) {
                return;
            }
            after = before;
        }
    }

    fn makes_circle(&self, gap: &Gap) -> bool {
        let reach = |from: u32, to: u32| {
            self.graph.is_hop(from) && self.graph.is_hop(to) && self.graph.may_reach(from, to)
        };
        reach(gap.before[MACHINE], gap.after[TRIAL]) || reach(gap.before[TRIAL], gap.after[MACHINE])
    }
}

/// Exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "temperatures need no more")]
fn float(number: usize) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, reason = "times and small numbers")]
fn rounded(number: f64) -> i64 {
    libm::round(number) as i64
}
