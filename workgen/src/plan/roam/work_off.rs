//! Places at work on their shares: each trains the most urgent of its trials that is there, or the next to come.
//! While a more urgent one is on its way, it trains another only as far as that fits in before.
//!
//! ```text
//!   place 0   [ trial 7, epoch 0 ][ trial 2 ][ trial 7, epoch 1 ][ trial 2, the rest ]
//!                                 '-- 7 sends --'
//! ```

use super::{block::Block, ground::Ground, share::Share};
use std::{cmp::Reverse, collections::BinaryHeap};

/// What a place does while somebody more urgent is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It trains others, an epoch at a time.
    None,
    /// It trains others, hops of which half fits in before.
    Short,
    /// It trains others, hops that wholly fit in before.
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

/// What comes of shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    /// When the last trial is done and sent.
    pub(super) ends: u64,
    /// The trial that ends last.
    pub(super) last: usize,
    /// By how much trials end after what is aimed at, all together.
    pub(super) late: u64,
    /// How often a trial changes places.
    pub(super) moves: u64,
}

/// Where a trial is.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Its next hop, and which of its shares has that.
    next: u64,
    share: usize,
    /// Where it is, and when it may go on there, or anywhere if it is nowhere.
    place: Option<usize>,
    here: u64,
    /// When it may go on elsewhere.
    elsewhere: u64,
    /// When its checkpoint is at the server.
    sent: u64,
}

/// What a place does next.
#[derive(Debug, Clone, Copy)]
struct Choice {
    start: u64,
    share: usize,
    /// When somebody more urgent comes.
    until: u64,
}

/// All places and trials, at work. Keeps its memory from one set of shares to the next.
pub(super) struct Floor<'a, 'b> {
    ground: &'b Ground<'a>,
    patience: Patience,
    shares: Vec<Share>,
    /// By trial: its shares, in the order of hops.
    of_trial: Vec<Vec<usize>>,
    /// By place: its shares that aren't done, the most urgent first.
    of_place: Vec<Vec<usize>>,
    /// By share: microseconds of its trial's shares after it, with the moves.
    after: Vec<u64>,
    /// By place: microseconds of all its shares that are left.
    load: Vec<u64>,
    ways: Vec<Way>,
    /// By place: when it is free.
    free: Vec<u64>,
    choices: Vec<Option<Choice>>,
    /// When which place goes on. An entry that isn't the place's choice holds no more.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    moves: u64,
}

impl<'a, 'b> Floor<'a, 'b> {
    pub(super) fn new(ground: &'b Ground<'a>) -> Self {
        let (trials, places) = (ground.problem.trials.len(), ground.problem.places.len());
        Self {
            ground,
            patience: Patience::None,
            shares: Vec::new(),
            of_trial: vec![Vec::new(); trials],
            of_place: vec![Vec::new(); places],
            after: Vec::new(),
            load: Vec::new(),
            ways: Vec::new(),
            free: Vec::new(),
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
        if self.begin(shares, patience) > limit || !self.run(limit, Block::takes_about, &mut |_| {})
        {
            return None;
        }
        let mut outcome = Outcome { ends: 0, last: 0, late: 0, moves: self.moves };
        for (trial, way) in self.ways.iter().enumerate().filter(|(_, way)| way.next > 0) {
            outcome.late += way.sent.saturating_sub(aim);
            if way.sent > outcome.ends {
                (outcome.ends, outcome.last) = (way.sent, trial);
            }
        }
        Some(outcome)
    }

    /// Works all shares off, block by block.
    pub(super) fn work_off(
        &mut self,
        shares: &[Share],
        patience: Patience,
        block: &mut dyn FnMut(Block),
    ) {
        self.begin(shares, patience);
        self.run(u64::MAX, Block::takes, block);
    }

    /// Begins anew; the last end can't come before what this says.
    fn begin(&mut self, shares: &[Share], patience: Patience) -> u64 {
        let problem = self.ground.problem;
        self.patience = patience;
        self.moves = 0;
        self.ways.clear();
        self.ways.extend(problem.trials.iter().map(|trial| Way {
            next: 0,
            share: 0,
            place: trial.at.map(|at| at as usize),
            here: trial.begins_at(),
            elsewhere: trial.free_at + if trial.at.is_some() { trial.fetch } else { 0 },
            sent: 0,
        }));
        self.free.clear();
        self.free.extend(problem.places.iter().map(|place| place.free_at));
        self.choices.clear();
        self.choices.resize(self.free.len(), None);
        self.next.clear();
        self.shares.clear();
        self.shares.extend_from_slice(shares);
        self.of_trial.iter_mut().chain(&mut self.of_place).for_each(Vec::clear);
        for (n, share) in shares.iter().enumerate() {
            self.of_trial[share.trial].push(n);
            self.of_place[share.place].push(n);
        }
        for list in &mut self.of_trial {
            list.sort_unstable_by_key(|n| shares[*n].first);
        }
        for list in &mut self.of_place {
            list.sort_unstable_by_key(|n| {
                (Reverse(shares[*n].urgency), shares[*n].trial, shares[*n].first)
            });
        }
        self.least()
    }

    /// What each trial and each place has to do, one after the other.
    fn least(&mut self) -> u64 {
        self.load.clear();
        self.load.resize(self.free.len(), 0);
        self.after.clear();
        self.after.resize(self.shares.len(), 0);
        let mut least = 0;
        for (trial, list) in self.of_trial.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let known = &self.ground.problem.trials[trial];
            let mut after = 0;
            for n in list.iter().rev() {
                let share = &self.shares[*n];
                let takes =
                    (share.end - share.first) * self.ground.hop_takes(share.trial, share.place);
                self.after[*n] = after;
                self.load[share.place] += takes;
                after += takes + known.send + known.fetch;
            }
            least = least.max(self.ways[trial].here + after - known.fetch);
        }
        let busy = self.load.iter().zip(&self.free).filter(|(load, _)| **load > 0);
        busy.map(|(load, free)| load + free).max().unwrap_or(0).max(least)
    }

    /// Works all off; false as soon as it can't end by `limit`.
    fn run(
        &mut self,
        limit: u64,
        takes: fn(&Block, &Ground<'a>) -> u64,
        block: &mut dyn FnMut(Block),
    ) -> bool {
        (0..self.free.len()).for_each(|place| self.choose(place));
        while let Some(Reverse((start, place))) = self.next.pop() {
            let choice = self.choices[place].take_if(|choice| choice.start == start);
            if choice.is_some_and(|choice| self.train(place, choice, takes, block) > limit) {
                return false;
            }
        }
        true
    }

    /// A place trains a block. The last end can't come before what this says.
    fn train(
        &mut self,
        place: usize,
        choice: Choice,
        takes: fn(&Block, &Ground<'a>) -> u64,
        block: &mut dyn FnMut(Block),
    ) -> u64 {
        let share = self.shares[choice.share];
        let trial = &self.ground.problem.trials[share.trial];
        let latency = self.ground.problem.places[place].latency;
        let way = &mut self.ways[share.trial];
        let hop = self.ground.hop_takes(share.trial, place) + latency;
        // Where it goes on at once, an epoch's end is nothing to stop at but for what comes then.
        let end = match (trial.stay, self.patience) {
            (0, Patience::Short | Patience::Long) => share.end,
            _ => self.ground.next_epoch(share.trial, way.next).min(share.end),
        };
        let room = (choice.until - choice.start).saturating_add(hop - self.patience.part(hop));
        let fits = match self.patience {
            Patience::None => u64::MAX,
            Patience::Short | Patience::Long => (room / hop.max(1)).max(1),
        };
        let end = end.min(way.next.saturating_add(fits));
        let train = Block { trial: share.trial, place, first: way.next, end, start: choice.start };
        block(train);
        let ends = choice.start + takes(&train, self.ground) + latency * (end - way.next - 1);
        let sent = ends + trial.send;
        self.moves += u64::from(way.place.is_some_and(|at| at != place));
        let done = end == share.end;
        *way = Way {
            next: end,
            share: way.share + usize::from(done),
            place: Some(place),
            here: ends + trial.stay,
            elsewhere: sent + trial.fetch,
            sent,
        };
        let next = way.share;
        self.free[place] = ends + latency;
        self.load[place] = self.load[place].saturating_sub(train.takes_about(self.ground));
        if done {
            self.of_place[place].retain(|other| *other != choice.share);
        }
        self.choose(place);
        if done && let Some(next) = self.of_trial[share.trial].get(next) {
            self.choose(self.shares[*next].place);
        }
        let rest = Block { first: end, end: share.end, ..train }.takes_about(self.ground);
        (sent + rest + self.after[choice.share]).max(self.free[place] + self.load[place])
    }

    /// What a place does next: the most urgent share that is there, or the first to come.
    fn choose(&mut self, place: usize) {
        let free = self.free[place];
        let mut best: Option<Choice> = None;
        let (mut until, mut sure) = (u64::MAX, u64::MAX);
        for &n in &self.of_place[place] {
            let share = &self.shares[n];
            let (arrives, known) = self.arrives(share);
            let start = free.max(arrives);
            if known && best.is_none_or(|best| start < best.start) {
                let hop = self.ground.hop_takes(share.trial, place);
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
        let before = std::mem::replace(&mut self.choices[place], best);
        if let Some(best) = best
            && before.is_none_or(|before| before.start != best.start)
        {
            self.next.push(Reverse((best.start, place)));
        }
    }

    /// When a trial can go on with a share, and whether that is known: it may have shares before.
    fn arrives(&self, share: &Share) -> (u64, bool) {
        let way = &self.ways[share.trial];
        let at = |place: usize| {
            if way.place.is_none_or(|at| at == place) { way.here } else { way.elsewhere }
        };
        if way.next >= share.first {
            return (at(share.place), true);
        }
        let known = &self.ground.problem.trials[share.trial];
        let place = self.shares[self.of_trial[share.trial][way.share]].place;
        let left = (share.first - way.next) * self.ground.hop_takes(share.trial, place);
        (at(place) + left + known.send + known.fetch, false)
    }
}
