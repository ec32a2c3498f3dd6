//! The way without hops: each slot takes a trial, has all data, and trains whole epochs of it until the rule stops or holds it.
//!
//! This is how search libraries run on a cluster: a worker trains a trial, reports after each epoch, and takes another one when
//! that has ended or waits. Everything that could slow it is left out: data and checkpoints are anywhere in no time,
//! a lost host is noticed at once, and its trial goes on from its last epoch on the next free slot, before all others. Of free
//! slots the fastest is taken first.

use super::{KnownLoss, SearchRun, slot_time::SlotTime, tried::Tried};
use crate::fleet::{
    arrival::Stays,
    error::ScenarioError,
    files::Files,
    job::count,
    make_plan,
    plan::Plan,
    quantity::{float, whole},
    scenario::Scenario,
};
use sojourn_protocol::quantity::to_usize;
use sojourn_workgen::search::stopping::{Decision, Search, TrialProgress};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Runs a scenario's search with one seed. `target`: the loss of a good trial.
///
/// # Errors
/// Why it can't be run, or doesn't end.
pub fn one_per_slot(
    scenario: &Scenario,
    seed: u64,
    target: f64,
    files: &mut Files<'_>,
) -> Result<SearchRun, ScenarioError> {
    let plan = make_plan::make(scenario, seed, files, None).map_err(ScenarioError::Wrong)?;
    let cluster = Cluster::new(&plan).map_err(ScenarioError::Wrong)?;
    let cluster = cluster.run().map_err(ScenarioError::Endless)?;
    Ok(SearchRun::of(&cluster.losses, target, float(cluster.now) / 1e6, &cluster.time))
}

/// Events, in the order in which they happen where they are at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An epoch has been trained and evaluated, unless its slot has done something else since.
    EpochEnds {
        slot: usize,
        serial: u64,
    },
    Goes {
        host: usize,
    },
    Comes {
        host: usize,
    },
}

/// A slot of a host.
#[derive(Debug)]
struct Slot {
    host: usize,
    kind: usize,
    /// Operations a second.
    flops: f64,
    is_here: bool,
    trial: Option<usize>,
    /// Counts what it has begun.
    serial: u64,
}

/// All slots, and the search that they work on.
struct Cluster<'a> {
    plan: &'a Plan,
    tried: Tried<'a>,
    /// How far each of them is.
    trials: Vec<TrialProgress>,
    slots: Vec<Slot>,
    stays: Vec<Stays>,
    /// Trials that may go on and are on no slot.
    ready: VecDeque<usize>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    now: u64,
    losses: Vec<KnownLoss>,
    time: SlotTime,
}

impl<'a> Cluster<'a> {
    fn new(plan: &'a Plan) -> Result<Self, String> {
        let tried = Tried::new(plan)?;
        let trials: Vec<TrialProgress> = (0..tried.len()).map(|n| tried.begun(n)).collect();
        let slots = plan.hosts.iter().enumerate().flat_map(|(host, place)| {
            let flops = plan.kinds.get(place.kind).map_or(0.0, |kind| kind.flops);
            (0..plan.slots(*place)).map(move |_| Slot {
                host,
                kind: place.kind,
                flops,
                is_here: false,
                trial: None,
                serial: 0,
            })
        });
        let mut slots: Vec<Slot> = slots.collect();
        // The fastest first: they are the first to be given a trial.
        slots.sort_by(|a, b| b.flops.total_cmp(&a.flops));
        Ok(Self {
            plan,
            tried,
            ready: (0..trials.len()).filter(|n| can_train(trials.get(*n))).collect(),
            trials,
            slots,
            stays: (0..plan.hosts.len()).filter_map(|host| plan.stays(host)).collect(),
            events: BinaryHeap::new(),
            now: 0,
            losses: Vec::new(),
            time: SlotTime::default(),
        })
    }

    /// To the end of the search.
    fn run(mut self) -> Result<Self, String> {
        (0..self.stays.len()).for_each(|host| self.come_next(host));
        while self.tried.has_more() || self.trials.iter().any(|trial| !trial.has_ended) {
            let Some(Reverse((at, event))) = self.events.pop() else {
                return Err("nothing more can happen, and not all trials have ended".into());
            };
            if at > self.plan.horizon {
                return Err("it isn't done by the `horizon`".into());
            }
            self.pass_until(at);
            match event {
                Event::EpochEnds { slot, serial } => self.epoch_ends(slot, serial),
                Event::Comes { host } => self.comes_or_goes(host, true),
                Event::Goes { host } => {
                    self.comes_or_goes(host, false);
                    self.come_next(host);
                }
            }
            self.decide();
            self.suggest()?;
            self.hand_out();
        }
        Ok(self)
    }

    fn come_next(&mut self, host: usize) {
        let Some(stay) = self.stays.get_mut(host).and_then(Stays::next) else { return };
        self.events.push(Reverse((stay.from, Event::Comes { host })));
        if stay.to < u64::MAX {
            self.events.push(Reverse((stay.to, Event::Goes { host })));
        }
    }

    fn pass_until(&mut self, at: u64) {
        let here = self.slots.iter().filter(|slot| slot.is_here);
        let busy = here.clone().filter(|slot| slot.trial.is_some()).count();
        let runnable = self.trials.iter().filter(|trial| can_train(Some(trial))).count();
        let passed = at.saturating_sub(self.now);
        self.time.add(passed, count(here.count()), count(busy), count(runnable));
        self.now = at;
    }

    fn comes_or_goes(&mut self, host: usize, is_here: bool) {
        for slot in self.slots.iter_mut().filter(|slot| slot.host == host) {
            slot.is_here = is_here;
            slot.serial += 1;
            // Its running epoch is lost.
            if let Some(trial) = slot.trial.take() {
                self.ready.push_front(trial);
            }
        }
    }

    fn epoch_ends(&mut self, slot: usize, serial: u64) {
        let of = self.slots.get(slot).filter(|slot| slot.serial == serial);
        let Some(trial) = of.and_then(|slot| slot.trial) else { return };
        let Some(progress) = self.trials.get_mut(trial) else { return };
        progress.trained += 1;
        let loss = self.tried.loss(trial, progress.trained);
        progress.values.push(loss);
        progress.has_ended = progress.trained >= self.tried.job().epochs;
        self.losses.push(KnownLoss { at: float(self.now) / 1e6, loss });
        self.decide();
        // It goes on with its trial, if that may.
        match can_train(self.trials.get(trial)) {
            true => self.begin(slot, trial),
            false => self.release(trial),
        }
    }

    /// Carries out what the rule decides by what is known.
    fn decide(&mut self) {
        let job = self.tried.job();
        let Some(rule) = job.spec.search.stopping else { return };
        let (epochs, goal) = (job.epochs, job.spec.search.goal);
        let mut search = Search::from_trials(&rule, epochs, goal, self.trials.iter().cloned());
        search.expect_more(self.tried.has_more());
        for decision in search.decide(self.room()) {
            match decision {
                Decision::Continue { trial, epochs, .. } => {
                    let trial = to_usize(trial.0);
                    if let Some(progress) = self.trials.get_mut(trial) {
                        progress.allowed = epochs;
                    }
                    if !self.slots.iter().any(|slot| slot.trial == Some(trial)) {
                        self.ready.push_back(trial);
                    }
                }
                Decision::Stop { trial, .. } => {
                    let trial = to_usize(trial.0);
                    if let Some(progress) = self.trials.get_mut(trial) {
                        progress.has_ended = true;
                    }
                    self.release(trial);
                }
            }
        }
    }

    /// Slots that are free, and for which no trial is ready.
    fn room(&self) -> usize {
        let free = self.slots.iter().filter(|slot| slot.is_here && slot.trial.is_none()).count();
        free.saturating_sub(self.ready.len())
    }

    /// Has another trial suggested for each slot that is free.
    fn suggest(&mut self) -> Result<(), String> {
        while self.tried.has_more()
            && self.room() > 0
            && !self.trials.iter().any(|trial| trial.allowed == 0)
        {
            self.tried.suggest(&self.trials)?;
            let trial = self.trials.len();
            self.trials.push(self.tried.begun(trial));
            if can_train(self.trials.last()) {
                self.ready.push_back(trial);
            }
            self.decide();
        }
        Ok(())
    }

    /// No slot has the trial any more.
    fn release(&mut self, trial: usize) {
        self.ready.retain(|ready| *ready != trial);
        for slot in self.slots.iter_mut().filter(|slot| slot.trial == Some(trial)) {
            slot.trial = None;
            slot.serial += 1;
        }
    }

    fn hand_out(&mut self) {
        let is_free = |slot: &Slot| slot.is_here && slot.trial.is_none();
        while !self.ready.is_empty()
            && let Some(slot) = self.slots.iter().position(is_free)
            && let Some(trial) = self.ready.pop_front()
        {
            self.begin(slot, trial);
        }
    }

    /// A slot begins the trial's next epoch.
    fn begin(&mut self, slot: usize, trial: usize) {
        let (job, flops) = (self.tried.job(), self.tried.flops(trial));
        // Evaluating takes a forward pass, a third of training.
        let trained = float(job.data.train_rows()) * f64::from(job.spec.training.local_epochs);
        let work = flops * (trained + float(job.valid_rows) / 3.0);
        let Some(of) = self.slots.get_mut(slot) else { return };
        of.trial = Some(trial);
        of.serial += 1;
        let took = whole(self.plan.micros(of.kind, 0, trial, work)).unwrap_or(u64::MAX / 4);
        let ends = Event::EpochEnds { slot, serial: of.serial };
        self.events.push(Reverse((self.now.saturating_add(took.max(1)), ends)));
    }
}

/// Whether a trial has begun, and has epochs to train that it is allowed.
fn can_train(trial: Option<&TrialProgress>) -> bool {
    trial.is_some_and(|trial| !trial.has_ended && trial.trained < trial.allowed)
}
