//! The driver at work in virtual time: the very process that buys real machines, over a fake cloud and the simulated server.
//!
//! The driver's future is polled here. Where it waits for the server, it is answered or, as a process that dies just then,
//! dropped.

use super::{ground::Ground, mailbox::Mailbox};
use sojourn_autoscaler::{
    driver::{Driver, Options, Round, World},
    metrics::Metrics,
};
use sojourn_core::{Answer, Command, Query};
use sojourn_fake_cloud::{Clock, FakeClient};
use sojourn_fleet::{
    limits::Limit,
    planner::{Note, Plan},
    settings::Settings,
};
use sojourn_protocol::{
    machines::{CostsView, MachineName},
    money::MicroUsd,
    quantity::to_u64,
    seeds,
    time::{Millis, UnixMillis},
    view::JobView,
};
use sojourn_sim::fleet::{Machines, Site};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

/// The pause after a round that failed, and where another process leads: as the program's.
const SOON: Millis = Millis::from_secs(5);
const STANDBY: Millis = Millis::from_secs(10);
/// A process that dies in a round does so before it hears one of so many answers.
const CALLS: u32 = 12;
/// After the end of all machines, so many rounds are waited for the ledger.
const MOST_AFTER: u64 = 50;

/// A fleet that could buy nothing for so long, for want of money, buys nothing more: prices don't fall that far.
const BROKE_FOR: Millis = Millis::from_secs(3600);

/// The faults around the driver, beside those of its cloud.
#[derive(Debug, Clone, Default)]
pub struct Trouble {
    /// The share of rounds in which the process dies while it waits for an answer.
    pub crashes: f64,
    /// From a crash until the next process begins.
    pub restart: Millis,
    /// When the server can't be reached.
    pub away: Vec<(UnixMillis, UnixMillis)>,
}

/// The most that there was of something at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Machines that hadn't ended.
    pub machines: u64,
    /// The virtual processors of those machines.
    pub vcpus: u64,
    /// The price of an hour of those machines.
    pub hourly: MicroUsd,
}

/// Virtual time, and chance.
#[derive(Debug, Clone)]
struct Virtual {
    now: Arc<AtomicU64>,
    seed: u64,
    drawn: Arc<AtomicU64>,
}

impl World for Virtual {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.now.load(Ordering::Relaxed))
    }

    fn seed(&self) -> u64 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        seeds::derive("sim-driver", &[self.seed, drawn])
    }
}

type Process = Driver<Mailbox, FakeClient, Virtual>;

/// The driver, and the machine that it runs on.
pub struct Buyer {
    /// The driver's machines.
    pub ground: Ground,
    settings: Settings,
    trouble: Trouble,
    world: Virtual,
    mailbox: Mailbox,
    /// The runtime that the driver's timeouts need. No time passes in it.
    runtime: tokio::runtime::Runtime,
    process: Option<Process>,
    processes: u64,
    rounds: u64,
    round_at: UnixMillis,
    /// Rounds after the end of all machines.
    after: u64,
    is_done: bool,
    /// The most that there was at a time.
    pub peaks: Peaks,
    /// The costs of all machines, as the server says them once all have ended.
    pub ledger: Option<CostsView>,
    /// Since when there is no machine, and no money for one.
    broke_since: Option<UnixMillis>,
    /// The hops that were done when the money was used up, and all of them.
    pub out_of_money: Option<(u64, u64)>,
}

impl Buyer {
    /// A driver that has bought nothing yet.
    ///
    /// # Errors
    /// Where the system has no room for a runtime.
    pub fn new(
        ground: Ground,
        settings: Settings,
        trouble: Trouble,
        seed: u64,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let world = Virtual { now: Arc::default(), seed, drawn: Arc::default() };
        Ok(Self {
            ground,
            settings,
            trouble,
            world,
            mailbox: Mailbox::default(),
            runtime,
            process: None,
            processes: 0,
            rounds: 0,
            round_at: UnixMillis(0),
            after: 0,
            is_done: false,
            peaks: Peaks::default(),
            ledger: None,
            broke_since: None,
            out_of_money: None,
        })
    }

    /// How many processes there were, one after the other.
    #[must_use]
    pub const fn processes(&self) -> u64 {
        self.processes
    }

    fn start(&mut self) -> Process {
        self.processes += 1;
        let options = Options {
            fleet: "simulated".to_owned(),
            holder: format!("process {}", self.processes),
            settings: self.settings.clone(),
            prices: Millis(0),
            dry_run: false,
        };
        let world = self.world.clone();
        let clock: Clock = Arc::new(move || world.now());
        let client = FakeClient::new(Arc::clone(&self.ground.cloud), clock);
        let (mailbox, world) = (self.mailbox.clone(), self.world.clone());
        Driver::new(mailbox, client, options, world, Arc::new(Metrics::default()))
    }

    /// One round of the process, which may die in it.
    fn round(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String> {
        self.rounds += 1;
        let mut process = self.process.take().unwrap_or_else(|| self.start());
        let mut chance = seeds::stream("sim-crash", &[self.world.seed, self.rounds]);
        let dies = seeds::unit_f64(&mut chance) < self.trouble.crashes;
        let mut calls = dies.then(|| seeds::below(&mut chance, CALLS));
        let ended = {
            let _entered = self.runtime.enter();
            let mut round = pin!(process.round());
            let mut context = Context::from_waker(Waker::noop());
            loop {
                if let Poll::Ready(round) = round.as_mut().poll(&mut context) {
                    break Some(round);
                }
                let question = self.mailbox.question().ok_or("the driver waits for nothing")?;
                match &mut calls {
                    Some(0) => break None,
                    Some(left) => *left -= 1,
                    None => {}
                }
                let answer = site.ask(question)?;
                self.mailbox.answer(answer);
            }
        };
        self.note_peaks();
        let Some(ended) = ended else {
            self.mailbox.clear();
            self.round_at = now + self.trouble.restart;
            return Ok(());
        };
        let is_broke = matches!(&ended, Round::Planned(plan) if lacks_money(plan));
        self.broke_since = is_broke.then(|| self.broke_since.unwrap_or(now));
        if self.broke_since.is_some_and(|since| now >= since + BROKE_FOR) {
            self.give_up(site)?;
        }
        let interval = self.settings.times.interval;
        self.round_at = now
            + match ended {
                Round::Planned(_) if process.is_urgent() => SOON.min(interval),
                Round::Planned(_) => interval,
                Round::Standby { .. } => STANDBY.min(interval),
                Round::Failed => SOON.min(interval),
            };
        self.process = Some(process);
        self.look_for_the_end(site)
    }

    /// Cancels the jobs that nothing can be bought for any more.
    fn give_up(&mut self, site: &mut dyn Site) -> Result<(), String> {
        let query = Command::Query { to: super::mailbox::NOBODY, query: Query::Jobs };
        let Ok(Answer::Jobs(jobs)) = site.ask(query)? else { return Ok(()) };
        let all = |hops: fn(&JobView) -> u64| jobs.iter().map(hops).sum();
        self.out_of_money = Some((all(|job| job.hops), all(|job| job.hops_expected)));
        for job in jobs.iter().filter(|job| job.ended_at.is_none()) {
            // Where the server refuses, the run goes on to its horizon.
            let _cancelled =
                site.ask(Command::Cancel { to: super::mailbox::NOBODY, job: job.job })?;
        }
        Ok(())
    }

    /// Once all jobs have ended and no machine is left, the ledger is read when it knows of all ends.
    fn look_for_the_end(&mut self, site: &mut dyn Site) -> Result<(), String> {
        if !site.all_ended() || self.ground.lock().alive() > 0 {
            return Ok(());
        }
        if let Ok(Answer::Costs(costs)) =
            site.ask(Command::Query { to: super::mailbox::NOBODY, query: Query::Costs })?
        {
            // The ends of the last machines are told with the next rounds. Where the ledger never comes to the bill, that
            // is for whoever compares them.
            self.after += 1;
            let billed = self.ground.lock().cost(UnixMillis(u64::MAX / 2));
            self.is_done = costs.cost == billed || self.after > MOST_AFTER;
            self.ledger = Some(*costs);
        }
        Ok(())
    }

    fn note_peaks(&mut self) {
        let cloud = self.ground.lock();
        let (machines, vcpus, hourly) = (to_u64(cloud.alive()), cloud.vcpus(), cloud.rate());
        drop(cloud);
        self.peaks.machines = self.peaks.machines.max(machines);
        self.peaks.vcpus = self.peaks.vcpus.max(vcpus);
        self.peaks.hourly = self.peaks.hourly.max(hourly);
    }
}

/// Is there no machine, and would all that would be of use cost more than is left?
fn lacks_money(plan: &Plan) -> bool {
    let no_machine = plan.outlook.machines == 0 && plan.outlook.ordered == 0;
    let is_money =
        |note: &Note| matches!(note, Note::LimitReached { limit: Limit::Total | Limit::Job, .. });
    let is_else = |note: &Note| !is_money(note) && !matches!(note, Note::Late { .. });
    no_machine && plan.notes.iter().any(is_money) && !plan.notes.iter().any(is_else)
}

impl Machines for Buyer {
    fn next_at(&self) -> Option<UnixMillis> {
        self.ground.next_at().into_iter().chain([self.round_at]).min()
    }

    fn act(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String> {
        self.world.now.store(now.0, Ordering::Relaxed);
        self.ground.pump(now, site)?;
        if now >= self.round_at {
            self.round(now, site)?;
            self.ground.pump(now, site)?;
        }
        Ok(())
    }

    fn exited(&mut self, now: UnixMillis, machine: &MachineName) {
        self.ground.exited(now, machine);
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn server_is_away(&self, now: UnixMillis) -> bool {
        self.trouble.away.iter().any(|(from, to)| (*from..*to).contains(&now))
    }
}
