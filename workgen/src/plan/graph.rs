//! A schedule as a graph: each hop points to the next of its trial and to the next at its machine.
//!
//! ```text
//!            trial 0:  start ---> hop ----> hop ----> end
//!                                  | \         machine 3: start -> ... -> end
//!   head: when a hop begins at the soonest      tail: from its begin to the end of the whole
//! ```
//!
//! Of a hop that is taken out, the longest path through any machine where it could be put in follows from
//! the heads and tails around it, exactly. Trials and machines begin and end in nodes that are no hops, so
//! that no chain is empty.

#![expect(clippy::indexing_slicing, reason = "nodes point to nodes")]

use super::{
    problem::id,
    schedule::{Schedule, Step},
    shop::Shop,
};
use sojourn_protocol::quantity::SaturatingFrom as _;

/// The chain of the trial.
pub(super) const TRIAL: usize = 0;
/// The chain of the machine.
pub(super) const MACHINE: usize = 1;

/// Later than anything in a plan, and small enough to add to.
const MAX_TIME: i64 = i64::MAX / 4;
/// So far behind that it never counts.
const NEVER: i64 = i64::MIN / 4;

/// A hop, or where a chain begins or ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// Before it in its trial, and at its machine.
    pub(super) before: [u32; 2],
    /// Behind it.
    pub(super) after: [u32; 2],
    /// When it begins.
    pub(super) head: i64,
    /// From its begin to the end of all that depends on it.
    pub(super) tail: i64,
    pub(super) time: i64,
    /// How long its machine rests then.
    rest: i64,
}

impl Node {
    /// When what is behind it in this chain can begin.
    pub(super) fn end(&self, chain: usize) -> i64 {
        self.head + self.time + if chain == MACHINE { self.rest } else { 0 }
    }
}

/// A hop of the graph.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    pub(super) trial: u32,
    pub(super) epoch: u32,
    pub(super) shard: u32,
    pub(super) machine: u32,
}

/// Where a hop can be put in: behind `after`, before `before`, by chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) after: [u32; 2],
    pub(super) before: [u32; 2],
    pub(super) machine: u32,
}

/// A schedule.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    /// Hops; then starts of trials and machines, ends of trials and machines.
    pub(super) nodes: Vec<Node>,
    pub(super) hops: Vec<Hop>,
    trials: usize,
    /// All hops that are in, each behind all that it depends on.
    order: Vec<u32>,
    /// By hop: its index in `order`.
    position: Vec<u32>,
    degrees: Vec<u8>,
}

impl Graph {
    pub(super) fn new(shop: &Shop<'_>, schedule: &Schedule) -> Self {
        let (count, trials, machines) = (schedule.steps.len(), shop.trials, shop.machines);
        let edge = Node { before: [0; 2], after: [0; 2], head: 0, tail: 0, time: 0, rest: 0 };
        let mut nodes = Vec::with_capacity(count + 2 * (trials + machines));
        let mut hops = Vec::with_capacity(count);
        for step in &schedule.steps {
            let Step { trial, epoch, shard, machine, .. } = *step;
            let rest = signed(shop.problem.machines[machine as usize].latency);
            nodes.push(Node { time: signed(step.end - step.start), rest, ..edge });
            hops.push(Hop { trial, epoch, shard, machine });
        }
        let free = shop.problem.trials.iter().map(|trial| trial.free_at);
        let free = free.chain(shop.problem.machines.iter().map(|machine| machine.free_at));
        nodes.extend(free.map(|free| Node { head: signed(free), ..edge }));
        nodes.extend((0..trials).map(|_| Node { head: MAX_TIME, ..edge }));
        nodes.extend((0..machines).map(|_| Node { head: MAX_TIME, tail: NEVER, ..edge }));
        let mut graph = Self {
            nodes,
            trials,
            order: Vec::with_capacity(count),
            position: vec![0; count],
            degrees: vec![0; count],
            hops,
        };
        let mut last: Vec<u32> = (count..count + trials + machines).map(id).collect();
        for (hop, _) in schedule.in_turn(shop.problem) {
            let chains =
                [graph.hops[hop].trial as usize, trials + graph.hops[hop].machine as usize];
            for (chain, line) in chains.into_iter().enumerate() {
                graph.link(chain, last[line], id(hop));
                last[line] = id(hop);
            }
        }
        for (line, last) in last.into_iter().enumerate() {
            graph.link(usize::from(line >= trials), last, id(count + trials + machines + line));
        }
        graph.sort();
        graph
    }

    /// The hops with their times, as a schedule.
    pub(super) fn schedule(&self) -> Schedule {
        let step = |(hop, node): (&Hop, &Node)| {
            let start = u64::saturating_from(node.head);
            let end = u64::saturating_from(node.end(TRIAL));
            let Hop { trial, epoch, shard, machine } = *hop;
            Step { trial, epoch, shard, machine, start, end }
        };
        Schedule::new(self.hops.iter().zip(&self.nodes).map(step).collect())
    }

    /// Where the chain of a trial or machine begins: a node that is no hop.
    pub(super) fn start(&self, chain: usize, line: u32) -> u32 {
        let first = if chain == MACHINE { self.trials } else { 0 };
        id(self.hops.len() + first) + line
    }

    /// Is it a hop?
    pub(super) fn is_hop(&self, node: u32) -> bool {
        (node as usize) < self.hops.len()
    }

    /// When the last trial ends.
    pub(super) fn makespan(&self) -> i64 {
        let ends = (self.nodes.len() + self.hops.len()) / 2;
        let last = |node: &Node| self.nodes[node.before[TRIAL] as usize].end(TRIAL);
        let hops = |node: &&Node| self.is_hop(node.before[TRIAL]);
        self.nodes[ends..ends + self.trials].iter().filter(hops).map(last).max().unwrap_or(0)
    }

    /// The gap that a hop is in.
    pub(super) fn gap(&self, hop: u32) -> Gap {
        let node = &self.nodes[hop as usize];
        Gap { after: node.before, before: node.after, machine: self.hops[hop as usize].machine }
    }

    /// Could there be a way from `from` to `to`? Never wrongly no: heads and tails rise along each way.
    pub(super) fn may_reach(&self, from: u32, to: u32) -> bool {
        let (a, b) = (&self.nodes[from as usize], &self.nodes[to as usize]);
        from == to || (a.end(TRIAL) <= b.head && b.tail + a.time <= a.tail)
    }

    /// Takes a hop out.
    pub(super) fn take(&mut self, hop: u32) {
        let node = self.nodes[hop as usize];
        for chain in [TRIAL, MACHINE] {
            self.link(chain, node.before[chain], node.after[chain]);
        }
        let at = self.position[hop as usize] as usize;
        self.order.remove(at);
        self.renumber(at);
        self.heads(at);
        self.tails(at);
    }

    /// Puts a hop in that is out, for this time.
    pub(super) fn put(&mut self, hop: u32, gap: &Gap, time: i64, rest: i64) {
        for chain in [TRIAL, MACHINE] {
            self.link(chain, gap.after[chain], hop);
            self.link(chain, hop, gap.before[chain]);
        }
        let node = &mut self.nodes[hop as usize];
        (node.time, node.rest) = (time, rest);
        self.hops[hop as usize].machine = gap.machine;
        let behind =
            |node: &u32| self.position.get(*node as usize).map_or(0, |at| *at as usize + 1);
        let ahead = |node: &u32| {
            self.position.get(*node as usize).map_or(self.order.len(), |at| *at as usize)
        };
        let low = gap.after.iter().map(behind).max().unwrap_or(0);
        let high = gap.before.iter().map(ahead).min().unwrap_or(0);
        if low <= high {
            self.order.insert(low, hop);
            self.renumber(low);
            self.heads(low);
            self.tails(low + 1);
        } else {
            self.sort();
        }
    }

    /// Becomes as another graph of the same problem is.
    pub(super) fn copy(&mut self, other: &Self) {
        self.nodes.copy_from_slice(&other.nodes);
        self.hops.copy_from_slice(&other.hops);
        self.order.clear();
        self.order.extend_from_slice(&other.order);
        self.position.copy_from_slice(&other.position);
    }

    fn link(&mut self, chain: usize, before: u32, after: u32) {
        self.nodes[before as usize].after[chain] = after;
        self.nodes[after as usize].before[chain] = before;
    }

    fn renumber(&mut self, from: usize) {
        for (index, hop) in self.order.iter().enumerate().skip(from) {
            self.position[*hop as usize] = id(index);
        }
    }

    /// Heads of all hops from an index of the order on.
    fn heads(&mut self, from: usize) {
        for &hop in &self.order[from..] {
            let before = self.nodes[hop as usize].before;
            let trial = self.nodes[before[TRIAL] as usize].end(TRIAL);
            let machine = self.nodes[before[MACHINE] as usize].end(MACHINE);
            self.nodes[hop as usize].head = trial.max(machine);
        }
    }

    /// Tails of all hops before an index of the order.
    fn tails(&mut self, to: usize) {
        for &hop in self.order[..to].iter().rev() {
            let node = self.nodes[hop as usize];
            let trial = self.nodes[node.after[TRIAL] as usize].tail;
            let machine = self.nodes[node.after[MACHINE] as usize].tail + node.rest;
            self.nodes[hop as usize].tail = node.time + trial.max(machine);
        }
    }

    /// Puts all hops in an order anew.
    fn sort(&mut self) {
        self.order.clear();
        let count = id(self.hops.len());
        for hop in 0..self.hops.len() {
            let hops = self.nodes[hop].before.iter().filter(|before| **before < count).count();
            self.degrees[hop] = u8::saturating_from(hops);
            if hops == 0 {
                self.order.push(id(hop));
            }
        }
        let mut index = 0;
        while let Some(&hop) = self.order.get(index) {
            self.position[hop as usize] = id(index);
            index += 1;
            for after in self.nodes[hop as usize].after {
                if let Some(degree) = self.degrees.get_mut(after as usize) {
                    *degree -= 1;
                    if *degree == 0 {
                        self.order.push(after);
                    }
                }
            }
        }
        debug_assert_eq!(self.order.len(), self.hops.len(), "a circle");
        self.heads(0);
        self.tails(self.order.len());
    }
}

/// A time of a plan as a signed number.
pub(super) fn signed(time: u64) -> i64 {
    i64::saturating_from(time).min(MAX_TIME)
}
