//! Hosts that have one trial at a time, from one queue.

use super::{Ended, SharedTrial, SharingRun};

/// Hosts of capacity 1 that take trials from one queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exclusive {
    /// How many.
    pub hosts: u32,
    /// The rule for whose turn it is.
    pub queue: Queue,
}

/// The rule for whose turn it is when a host is free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Queue {
    /// The trial that came first, to its end.
    FirstCome,
    /// The trial with most left to do; after so many seconds of work it goes back into the queue, as a trial does after a hop.
    LongestRemaining(f64),
    /// The same with who has least left to do.
    ShortestRemaining(f64),
}

impl Exclusive {
    /// Runs the trials to their ends.
    #[must_use]
    pub fn run(&self, trials: &[SharedTrial]) -> SharingRun {
        let hosts = usize::try_from(self.hosts).unwrap_or(usize::MAX).max(1);
        let mut coming: Vec<usize> = (0..trials.len()).rev().collect();
        let arrival = |n: &usize| trials.get(*n).map_or(0.0, |trial| trial.arrival);
        coming.sort_by(|a, b| arrival(b).total_cmp(&arrival(a)));
        let mut run = Run {
            queue: self.queue,
            trials,
            done: vec![0.0; trials.len()],
            ended: trials.iter().map(|_| None).collect(),
            usable: trials.iter().map(|_| None).collect(),
            waiting: Vec::new(),
            coming,
            hosts: vec![None; hosts],
            now: 0.0,
        };
        while run.step() {}
        run.result()
    }
}

/// Work of one trial on one host, without a break.
#[derive(Debug, Clone, Copy)]
struct Stint {
    trial: usize,
    until: f64,
    work: f64,
}

struct Run<'a> {
    queue: Queue,
    trials: &'a [SharedTrial],
    done: Vec<f64>,
    ended: Vec<Option<f64>>,
    usable: Vec<Option<f64>>,
    /// In the order in which they came or came back.
    waiting: Vec<usize>,
    /// By arrival, the next one last.
    coming: Vec<usize>,
    hosts: Vec<Option<Stint>>,
    now: f64,
}

impl Run<'_> {
    fn arrival(&self, trial: usize) -> f64 {
        self.trials.get(trial).map_or(0.0, |trial| trial.arrival)
    }

    fn left(&self, trial: usize) -> f64 {
        let work = self.trials.get(trial).map_or(0.0, |trial| trial.work);
        work - self.done.get(trial).copied().unwrap_or(0.0)
    }

    /// Goes to the next event. False when there is none.
    fn step(&mut self) -> bool {
        let arrival = self.coming.last().map(|trial| self.arrival(*trial));
        let stint = self.hosts.iter().flatten().map(|stint| stint.until);
        let next = stint.chain(arrival).fold(f64::INFINITY, f64::min);
        if next == f64::INFINITY {
            return false;
        }
        self.now = next;
        for n in 0..self.hosts.len() {
            let Some(Some(stint)) = self.hosts.get(n).copied() else { continue };
            if stint.until <= self.now {
                self.finish(stint);
                if let Some(host) = self.hosts.get_mut(n) {
                    *host = None;
                }
            }
        }
        while let Some(trial) = self.coming.last().copied()
            && self.arrival(trial) <= self.now
        {
            self.coming.pop();
            self.waiting.push(trial);
        }
        for n in 0..self.hosts.len() {
            if matches!(self.hosts.get(n), Some(None)) {
                let stint = self.next();
                if let Some(host) = self.hosts.get_mut(n) {
                    *host = stint;
                }
            }
        }
        true
    }

    fn finish(&mut self, stint: Stint) {
        let begun = stint.until - stint.work;
        let (Some(trial), Some(done)) =
            (self.trials.get(stint.trial), self.done.get_mut(stint.trial))
        else {
            return;
        };
        let usable = trial.curve.usable() * trial.work;
        if *done < usable
            && *done + stint.work >= usable
            && let Some(at) = self.usable.get_mut(stint.trial)
        {
            *at = Some(begun + usable - *done);
        }
        *done += stint.work;
        if self.left(stint.trial) > 1e-9 {
            self.waiting.push(stint.trial);
        } else if let Some(ended) = self.ended.get_mut(stint.trial) {
            *ended = Some(stint.until);
        }
    }

    fn next(&mut self) -> Option<Stint> {
        let by_left = |a: &usize, b: &usize| {
            let (a, b) = (self.waiting.get(*a), self.waiting.get(*b));
            let left = |trial: Option<&usize>| trial.map_or(0.0, |trial| self.left(*trial));
            left(a).total_cmp(&left(b))
        };
        let all = 0..self.waiting.len();
        let (place, most) = match self.queue {
            Queue::FirstCome => (all.min(), f64::INFINITY),
            // The first of those that are alike, which is the last of them in reverse.
            Queue::LongestRemaining(hop) => (all.rev().max_by(by_left), hop),
            Queue::ShortestRemaining(hop) => (all.min_by(by_left), hop),
        };
        let trial = self.waiting.remove(place?);
        let work = self.left(trial).min(most);
        Some(Stint { trial, until: self.now + work, work })
    }

    fn result(self) -> SharingRun {
        let trials = self.trials.iter().zip(self.ended.iter().zip(&self.usable));
        let ended = trials.map(|(trial, (ended, usable))| {
            let ended = ended.unwrap_or(self.now);
            let usable = usable.unwrap_or(ended) - trial.arrival;
            Ended { completion: ended - trial.arrival, usable }
        });
        SharingRun {
            trials: ended.collect(),
            makespan: self.ended.iter().flatten().copied().fold(0.0, f64::max),
            used: 1.0,
            moves: Vec::new(),
            residents: Vec::new(),
        }
    }
}
