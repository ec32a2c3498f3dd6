//! One spot machine for each trial, as a manager of spot jobs runs a search: a machine that is lost is replaced at once by
//! the cheapest there is, which fetches all data and starts again from the trial's last epoch.
//!
//! There is no server here. What is simulated is the best that such a manager does: it takes from all types and zones the
//! machine with one GPU that computes most for its money, loses no time but to boots, transfers and repeated work, and
//! ends each machine in the second in which its trial is trained.

use super::{
    market::dollars_per_exaflop,
    number::whole,
    setting::{Setting, TrialWork},
};
use sojourn_fake_cloud::{FakeCloud, Happens};
use sojourn_fleet::cloud::{NewMachine, Order, Pool};
use sojourn_protocol::{
    machines::{MachineName, Market},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use std::collections::{BTreeMap, BTreeSet};

/// Between two tries where no pool has a machine.
const RETRY: Millis = Millis::from_secs(60);

/// A trial and its machine.
#[derive(Debug)]
struct Trial {
    /// The work of it.
    work: TrialWork,
    /// Epochs to train.
    left: u32,
    machines: u64,
    /// The machine, with the cloud's id, and the time of an epoch on it.
    machine: Option<(String, Millis)>,
}

/// The event that is due for a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The trial needs a machine.
    Machine,
    /// The epoch that its machine trains is over: of so many machines so far.
    Epoch(u64),
}

/// All trials.
struct Search<'a> {
    setting: &'a Setting,
    cloud: FakeCloud,
    trials: Vec<Trial>,
    by_machine: BTreeMap<MachineName, usize>,
    due: BTreeSet<(UnixMillis, usize, Due)>,
    ended_at: UnixMillis,
}

/// Runs all trials to their end. Gives the cloud, and when the last one ended.
///
/// # Errors
/// Why that can't be.
pub(super) fn run(setting: &Setting) -> Result<(FakeCloud, UnixMillis), String> {
    let trials = setting.trials().into_iter();
    let trials = trials.map(|work| Trial { work, left: work.epochs, machines: 0, machine: None });
    let mut search = Search {
        setting,
        cloud: setting.cloud(),
        trials: trials.collect(),
        by_machine: BTreeMap::new(),
        due: BTreeSet::new(),
        ended_at: UnixMillis(0),
    };
    let submitted = search.trials.iter().map(|of| UnixMillis(of.work.submitted.0));
    search.due.extend((0..).zip(submitted).map(|(trial, at)| (at, trial, Due::Machine)));
    search.run()?;
    Ok((search.cloud, search.ended_at))
}

impl Search<'_> {
    fn run(&mut self) -> Result<(), String> {
        let horizon = UnixMillis(self.setting.file.market.length.0 / 1000 * 2);
        while self.trials.iter().any(|trial| trial.left > 0) {
            let due = self.due.first().copied();
            let next = due.map(|(at, ..)| at).into_iter().chain(self.cloud.next_at()).min();
            let now = next.filter(|at| *at <= horizon).ok_or("not all trials end in time")?;
            self.step(now);
            while let Some((at, trial, what)) = self.due.first().copied().filter(|of| of.0 <= now) {
                self.due.remove(&(at, trial, what));
                match what {
                    Due::Machine => self.buy(now, trial)?,
                    Due::Epoch(machine) => self.epoch_ends(now, trial, machine),
                }
            }
        }
        Ok(())
    }

    /// Machines start, and are lost.
    fn step(&mut self, now: UnixMillis) {
        for event in self.cloud.step(now) {
            let Some(number) = self.by_machine.get(&event.machine).copied() else { continue };
            let Some(trial) = self.trials.get_mut(number) else { continue };
            let is_own = trial.machine.as_ref().is_some_and(|(of, _)| *of == event.instance);
            match event.happens {
                Happens::Starts if is_own => {
                    let bytes = trial.work.data.saturating_add(trial.work.checkpoint);
                    let fetched = seconds(self.setting.download_seconds(bytes));
                    let epoch = trial.machine.as_ref().map_or(Millis(0), |(_, epoch)| *epoch);
                    let due = (event.at + fetched + epoch, number, Due::Epoch(trial.machines));
                    self.due.insert(due);
                }
                Happens::Ends(_) if is_own => {
                    trial.machine = None;
                    self.due.insert((event.at, number, Due::Machine));
                }
                Happens::Starts | Happens::Noticed(_) | Happens::Ends(_) => {}
            }
        }
    }

    fn epoch_ends(&mut self, now: UnixMillis, number: usize, machine: u64) {
        let Some(trial) = self.trials.get_mut(number) else { return };
        let Some((instance, epoch)) = trial.machine.clone() else { return };
        if trial.machines != machine {
            return;
        }
        trial.left = trial.left.saturating_sub(1);
        if trial.left > 0 {
            self.due.insert((now + epoch, number, Due::Epoch(machine)));
            return;
        }
        trial.machine = None;
        self.ended_at = self.ended_at.max(now);
        // The cloud of this simulation answers always.
        let _ended = self.cloud.end(now, &[instance]);
    }

    fn buy(&mut self, now: UnixMillis, number: usize) -> Result<(), String> {
        let pools = self.pools(now);
        let Some(trial) = self.trials.get_mut(number) else { return Ok(()) };
        trial.machines += 1;
        let name = format!("t-{number}-{}", trial.machines);
        let name: MachineName = name.parse().map_err(str::to_owned)?;
        let order = Order {
            machines: vec![NewMachine { name: name.clone(), enrolment_token: String::new() }],
            market: Market::Spot,
            pools,
            price_limit: MicroUsd(u64::MAX),
        };
        let filled = self.cloud.buy(now, &order).map_err(|error| error.to_string())?;
        let Some(bought) = filled.bought.into_iter().next() else {
            self.due.insert((now + RETRY, number, Due::Machine));
            return Ok(());
        };
        let of = self.setting.type_of(&bought.pool.instance_type).ok_or("an unknown type")?;
        let TrialWork { epoch, checkpoint, .. } = trial.work;
        let takes = epoch / (of.tflops * 1e12) + self.setting.upload_seconds(checkpoint);
        trial.machine = Some((bought.instance, seconds(takes)));
        self.by_machine.insert(name, number);
        Ok(())
    }

    /// The pools of machines with one GPU, the one that computes most for its money first.
    fn pools(&self, now: UnixMillis) -> Vec<Pool> {
        let offers = self.setting.world.offers(now);
        let pools = offers.quotes.iter().filter_map(|(pool, quote)| {
            let of = self.setting.type_of(&pool.instance_type).filter(|of| of.gpus == 1)?;
            Some((dollars_per_exaflop(quote.spot?, of), pool.clone()))
        });
        let mut pools: Vec<(f64, Pool)> = pools.collect();
        pools.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        pools.into_iter().map(|(_, pool)| pool).collect()
    }
}

fn seconds(seconds: f64) -> Millis {
    Millis(whole(seconds * 1000.0).max(1))
}
