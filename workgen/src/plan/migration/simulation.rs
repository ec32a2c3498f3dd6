//! Machines at work on their shares: each trains the most urgent of its trials that is there, or the next to come.
//! While a more urgent one is on its way, it trains another only as far as that fits in before.
//!
//! ```text
//!   machine 0   [ trial 7, epoch 0 ][ trial 2 ][ trial 7, epoch 1 ][ trial 2, the rest ]
//!                                 '-- 7 sends --'
//! ```

use super::{block::Block, instance::Instance, share::Share};
use crate::plan::Step;
use std::{cmp::Reverse, collections::BinaryHeap};

/// The hops that a machine may train while a more urgent trial is being moved to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// The machine trains other trials, an epoch at a time.
    None,
    /// The machine trains other trials, hops of which half fits in before.
    Short,
    /// The machine trains other trials, hops that wholly fit in before.
    Long,
}

impl Patience {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Short, Self::Long];

    /// How much of a hop must fit in.
    const fn part(self, hop: u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Short => hop / 2,
            Self::Long => hop,
        }
    }
}

/// The trials of a machine that take turns: of those that are there, the one whose epoch is the earliest goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turns {
    /// None: the most urgent goes on.
    None,
    /// The trials that stay at their machines; the others go first.
    Staying,
    /// All trials.
    All,
}

/// The outcome of a set of shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    /// When the last trial is done and sent.
    pub(super) ends: u64,
    /// The trial that ends last.
    pub(super) last: usize,
    /// By how much trials end after what is aimed at, all together.
    pub(super) late: u64,
    /// How often a trial changes machines.
    pub(super) moves: u64,
}

/// Where a trial is.
#[derive(Debug, Clone, Copy)]
struct TrialProgress {
    /// The trial's next hop, and which of its shares has that.
    next: u64,
    share: usize,
    /// Where it is, and when it may go on there, or anywhere if it is nowhere.
    machine: Option<usize>,
    here: u64,
    /// When its checkpoint is at the server.
    sent: u64,
}

/// The next share of a machine.
#[derive(Debug, Clone, Copy)]
struct Choice {
    start: u64,
    share: usize,
    /// When somebody more urgent comes.
    until: u64,
}

/// All machines and trials, at work. Keeps its memory from one set of shares to the next.
pub(super) struct Simulation<'a, 'b> {
    instance: &'b Instance<'a>,
    patience: Patience,
    turns: Turns,
    shares: Vec<Share>,
    /// By trial: its shares, in the order of hops.
    of_trial: Vec<Vec<usize>>,
    /// By machine: its shares that aren't done, the most urgent first.
    of_machine: Vec<Vec<usize>>,
    /// By share: microseconds of its trial's shares after it, with the moves.
    after: Vec<u64>,
    /// By machine: microseconds of all its shares that are left.
    load: Vec<u64>,
    progress: Vec<TrialProgress>,
    /// By machine: when it is free, and when its line has sent what it had to.
    free: Vec<u64>,
    line_free: Vec<u64>,
    choices: Vec<Option<Choice>>,
    /// When which machine goes on. An entry that isn't the machine's choice holds no more.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    moves: u64,
}

impl<'a, 'b> Simulation<'a, 'b> {
    pub(super) fn new(instance: &'b Instance<'a>) -> Self {
        let (trials, machines) = (instance.problem.trials.len(), instance.problem.machines.len());
        Self {
            instance,
            patience: Patience::None,
            turns: Turns::None,
            shares: Vec::new(),
            of_trial: vec![Vec::new(); trials],
            of_machine: vec![Vec::new(); machines],
            after: Vec::new(),
            load: Vec::new(),
            progress: Vec::new(),
            free: Vec::new(),
            line_free: Vec::new(),
            choices: Vec::new(),
            next: BinaryHeap::new(),
            moves: 0,
        }
    }

    /// About what comes of shares, of which trials should end by `aim`; `None` where one ends after `limit`.
    pub(super) fn outcome(
        &mut self,
        shares: &[Share],
        patience: Patience,
        aim: u64,
        limit: u64,
    ) -> Option<Outcome> {
        if self.begin(shares, patience, Turns::None) > limit
            || !self.run(limit, Block::ends_about, &mut |_| {})
        {
            return None;
        }
        let mut outcome = Outcome { ends: 0, last: 0, late: 0, moves: self.moves };
        for (trial, trial_at) in
            self.progress.iter().enumerate().filter(|(_, trial_at)| trial_at.next > 0)
        {
            outcome.late += trial_at.sent.saturating_sub(aim);
            if trial_at.sent > outcome.ends {
                (outcome.ends, outcome.last) = (trial_at.sent, trial);
            }
        }
        Some(outcome)
    }

    /// Works all shares off. Their hops, and when the last trial is done and sent.
    pub(super) fn steps(
        &mut self,
        shares: &[Share],
        patience: Patience,
        turns: Turns,
    ) -> (Vec<Step>, u64) {
        let instance = self.instance;
        let mut steps = Vec::new();
        let patience = if turns == Turns::None { patience } else { Patience::None };
        self.begin(shares, patience, turns);
        self.run(u64::MAX, Block::ends, &mut |block| block.steps(instance, &mut steps));
        let sent = self.progress.iter().filter(|trial_at| trial_at.next > 0);
        (steps, sent.map(|trial_at| trial_at.sent).max().unwrap_or(0))
    }

    /// Begins anew; the last end can't come before what this says.
    fn begin(&mut self, shares: &[Share], patience: Patience, turns: Turns) -> u64 {
        let problem = self.instance.problem;
        (self.patience, self.turns) = (patience, turns);
        self.moves = 0;
        self.progress.clear();
        self.progress.extend(problem.trials.iter().map(|trial| TrialProgress {
            next: 0,
            share: 0,
            machine: trial.at.map(|(at, _)| at as usize),
            here: trial.begins_at(),
            sent: trial.free_at,
        }));
        self.free.clear();
        self.free.extend(problem.machines.iter().map(|machine| machine.free_at));
        self.line_free.clear();
        self.line_free.extend(problem.machines.iter().map(|machine| machine.line_free_at));
        self.choices.clear();
        self.choices.resize(self.free.len(), None);
        self.next.clear();
        self.shares.clear();
        self.shares.extend_from_slice(shares);
        self.of_trial.iter_mut().chain(&mut self.of_machine).for_each(Vec::clear);
        for (n, share) in shares.iter().enumerate() {
            self.of_trial[share.trial].push(n);
            self.of_machine[share.machine].push(n);
        }
        for list in &mut self.of_trial {
            list.sort_unstable_by_key(|n| shares[*n].first);
        }
        for list in &mut self.of_machine {
            list.sort_unstable_by_key(|n| {
                (Reverse(shares[*n].urgency), shares[*n].trial, shares[*n].first)
            });
        }
        self.least()
    }

    /// A lower bound of the end: each trial's work in a row, each machine's, and each line's.
    fn least(&mut self) -> u64 {
        self.load.clear();
        self.load.resize(self.free.len(), 0);
        self.after.clear();
        self.after.resize(self.shares.len(), 0);
        let mut least = 0;
        for (trial, list) in self.of_trial.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let (mut after, mut fetch) = (0, 0);
            for n in list.iter().rev() {
                let share = &self.shares[*n];
                let takes =
                    (share.end - share.first) * self.instance.hop_takes(share.trial, share.machine);
                self.after[*n] = after;
                self.load[share.machine] += takes;
                let transfer = self.instance.transfer(trial, share.machine);
                fetch = transfer.fetch;
                after += takes + transfer.send + fetch;
            }
            least = least.max(self.progress[trial].here + after - fetch);
        }
        let busy = self.load.iter().zip(&self.free).filter(|(load, _)| **load > 0);
        busy.map(|(load, free)| load + free).max().unwrap_or(0).max(least)
    }

    /// Works all off; false as soon as it can't end by `limit`.
    fn run(
        &mut self,
        limit: u64,
        ends: fn(&Block, &Instance<'a>) -> u64,
        block: &mut dyn FnMut(Block),
    ) -> bool {
        (0..self.free.len()).for_each(|machine| self.choose(machine));
        while let Some(Reverse((start, machine))) = self.next.pop() {
            let choice = self.choices[machine].take_if(|choice| choice.start == start);
            if choice.is_some_and(|choice| self.train(machine, choice, ends, block) > limit) {
                return false;
            }
        }
        true
    }

    /// A machine trains a block. The last end can't come before what this says.
    fn train(
        &mut self,
        machine: usize,
        choice: Choice,
        ends: fn(&Block, &Instance<'a>) -> u64,
        block: &mut dyn FnMut(Block),
    ) -> u64 {
        let share = self.shares[choice.share];
        let transfer = self.instance.transfer(share.trial, machine);
        let latency = self.instance.problem.machines[machine].latency;
        let trial_at = &mut self.progress[share.trial];
        let hop = self.instance.hop_takes(share.trial, machine) + latency;
        // It goes on at once, so an epoch's end is nothing to stop at but for what comes then.
        let end = match self.patience {
            Patience::Short | Patience::Long => share.end,
            Patience::None => self.instance.next_epoch(share.trial, trial_at.next).min(share.end),
        };
        let room = (choice.until - choice.start).saturating_add(hop - self.patience.part(hop));
        let fits = match self.patience {
            Patience::None => u64::MAX,
            Patience::Short | Patience::Long => (room / hop.max(1)).max(1),
        };
        let end = end.min(trial_at.next.saturating_add(fits));
        let train = Block {
            trial: share.trial,
            machine,
            first: trial_at.next,
            end,
            start: choice.start,
            line_free: self.line_free[machine],
        };
        block(train);
        let ends = ends(&train, self.instance);
        let sent = ends + transfer.send;
        let trained = (end - trial_at.next) * self.instance.hop_takes(share.trial, machine);
        self.moves += u64::from(trial_at.machine.is_some_and(|at| at != machine));
        let done = end == share.end;
        *trial_at = TrialProgress {
            next: end,
            share: trial_at.share + usize::from(done),
            machine: Some(machine),
            here: ends,
            sent,
        };
        let next = trial_at.share;
        self.free[machine] = ends + latency;
        self.line_free[machine] = ends + transfer.interval;
        self.load[machine] = self.load[machine].saturating_sub(trained);
        if done {
            self.of_machine[machine].retain(|other| *other != choice.share);
        }
        self.choose(machine);
        if done && let Some(next) = self.of_trial[share.trial].get(next) {
            self.choose(self.shares[*next].machine);
        }
        let rest = (share.end - end) * self.instance.hop_takes(share.trial, machine);
        (sent + rest + self.after[choice.share]).max(self.free[machine] + self.load[machine])
    }

    /// Chooses the next share of a machine: of those that are there the most urgent, or the one whose turn it is; or the
    /// first to arrive.
    fn choose(&mut self, machine: usize) {
        let best = match self.turns {
            Turns::None => self.most_urgent(machine),
            Turns::Staying | Turns::All => self.next_in_turn(machine),
        };
        let before = std::mem::replace(&mut self.choices[machine], best);
        if let Some(best) = best
            && before.is_none_or(|before| before.start != best.start)
        {
            self.next.push(Reverse((best.start, machine)));
        }
    }

    fn next_in_turn(&self, machine: usize) -> Option<Choice> {
        let shares = self.of_machine[machine].iter().filter_map(|n| {
            let share = &self.shares[*n];
            let (arrives, known) = self.arrives(share);
            let moves = self.of_trial[share.trial].len() > 1;
            let epoch = match self.turns {
                Turns::Staying if moves => 0,
                _ => self.instance.epoch(share.trial, self.progress[share.trial].next),
            };
            known.then_some((self.free[machine].max(arrives), epoch, *n))
        });
        let ordered =
            shares.enumerate().min_by_key(|(order, (start, epoch, _))| (*start, *epoch, *order));
        ordered.map(|(_, (start, _, share))| Choice { start, share, until: u64::MAX })
    }

    fn most_urgent(&self, machine: usize) -> Option<Choice> {
        let free = self.free[machine];
        let mut best: Option<Choice> = None;
        let (mut until, mut sure) = (u64::MAX, u64::MAX);
        for &n in &self.of_machine[machine] {
            let share = &self.shares[n];
            let (arrives, known) = self.arrives(share);
            let start = free.max(arrives);
            if known && best.is_none_or(|best| start < best.start) {
                let hop = self.instance.hop_takes(share.trial, machine);
                if start.saturating_add(self.patience.part(hop)) <= sure {
                    best = Some(Choice { start, share: n, until: until.max(start) });
                    if start == free {
                        break;
                    }
                }
                sure = sure.min(start);
            }
            until = until.min(start);
        }
        best
    }

    /// When a trial can go on with a share, and whether that is known: it may have shares before.
    fn arrives(&self, share: &Share) -> (u64, bool) {
        let trial_at = &self.progress[share.trial];
        let transfer = |machine| self.instance.transfer(share.trial, machine);
        let at = |machine: usize| {
            if trial_at.machine.is_none_or(|at| at == machine) {
                trial_at.here
            } else {
                trial_at.sent + transfer(machine).fetch
            }
        };
        if trial_at.next >= share.first {
            return (at(share.machine), true);
        }
        let machine = self.shares[self.of_trial[share.trial][trial_at.share]].machine;
        let left = (share.first - trial_at.next) * self.instance.hop_takes(share.trial, machine);
        (at(machine) + left + transfer(machine).send + transfer(share.machine).fetch, false)
    }
}
