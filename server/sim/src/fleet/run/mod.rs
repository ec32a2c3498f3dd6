//! The loop of events: hosts, the very core that the server runs, and virtual time between them.
//!
//! ```text
//!   Queue --> Host --> Command --> Core::apply --> Effects --> carry_out: answers to hosts,
//!     ^                                                        records to whoever watches
//!     '------- what follows, and when -------------------------'
//! ```
//!
//! Here: time and the order of events. `hosts.rs`: machines, and what they say. `carry_out.rs`: what is
//! asked of the core, and its effects. `assimilate.rs`: what becomes of results. `machines.rs`: machines that are bought.

mod assimilate;
mod carry_out;
mod hosts;
mod machines;

use super::{
    arrival::Stays,
    host::{Host, HostContext, agent_config},
    job::index,
    machines::Machines,
    plan::Plan,
    policy::Policy,
    quantity::float,
    queue::{Event, HostCall, Queue},
    result::{JobResult, Metrics, RunResult},
    tally::{Bar, Tally},
    training::{Point, Score, Trains},
};
use crate::liveness::Liveness;
use rand_chacha::ChaCha8Rng;
use sojourn_client_core::{self as client, AskId};
use sojourn_core::{Answer, Command, Core, Record, ReplyTo, State};
use sojourn_protocol::{
    digest::Digest,
    error::ApiError,
    ids::{Epoch, JobId},
    machines::MachineName,
    reason::WaitReason,
    seeds,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// An observer of a run.
pub trait Watch {
    /// The core has decided something.
    fn record(&mut self, record: &Record) {
        let _ = record;
    }

    /// So many hops are done.
    fn progress(&mut self, done: u64, of: u64) {
        let _ = (done, of);
    }

    /// Half of all hops are done: the server's state, as large as it gets.
    fn halfway(&mut self, state: &State) {
        let _ = state;
    }

    /// Time passes, and nothing happens meanwhile.
    fn passes(&mut self, interval: &Interval<'_>) {
        let _ = interval;
    }

    /// Something can be simulated, and is hardly meant so.
    fn remark(&mut self, text: &str) {
        let _ = text;
    }

    /// Nanoseconds of a clock, for what deciding takes.
    fn clock(&mut self) -> u64 {
        0
    }
}

/// A time in which nothing happens.
pub struct Interval<'a> {
    /// How long, in microseconds.
    pub micros: u64,
    /// The server's state.
    pub state: &'a State,
    hosts: &'a [Host],
}

impl Interval<'_> {
    /// Slots of hosts that are there, and those of them in which a unit runs.
    #[must_use]
    pub fn slots(&self) -> (u64, u64) {
        let slots = self.hosts.iter().map(Host::slots_and_busy);
        slots.fold((0, 0), |(all, busy), (slots, of)| (all + slots, busy + of))
    }
}

/// Nobody looks on.
impl Watch for () {}

/// The caller whose answer nobody waits for.
const NOBODY: ReplyTo = ReplyTo(0);
/// Hops between two words on progress.
const PROGRESS_EVERY: u64 = 256;

/// A fleet at work.
pub(crate) struct Run<'a> {
    plan: &'a Plan,
    policy: Policy,
    watch: &'a mut dyn Watch,
    /// The implementation that really trains; `None` where nothing is trained.
    pub(crate) trains: Option<&'a mut dyn Trains>,
    /// Why nobody could.
    broken: Option<String>,
    /// The buyer of machines; `None` where nobody buys any.
    pub(crate) machines: Option<&'a mut dyn Machines>,
    /// Bought machines that are there, and where among the hosts.
    bought: BTreeMap<MachineName, usize>,
    /// When whoever buys machines is asked next, as the queue knows it.
    asked_at: Option<u64>,
    /// Hosts whose clients have ended at this instant.
    exits: Vec<u32>,
    /// The server couldn't be reached when whoever buys machines was asked last.
    is_away: bool,
    scores: Vec<Score>,
    curve: Vec<Point>,
    /// When the last result of a job's epoch was taken.
    epoch_ends: BTreeMap<(JobId, Epoch), u64>,
    core: Core,
    chance: ChaCha8Rng,
    now: u64,
    queue: Queue,
    /// Calls of hosts that reach the server at this instant, before anything else happens.
    calls: VecDeque<HostCall>,
    pending: VecDeque<client::Event>,
    hosts: Vec<Host>,
    stays: Vec<Stays>,
    tally: Tally,
    pub(crate) bars: Option<Vec<Bar>>,
    /// The answer to the last command, where no host waits for it.
    answer: Option<Result<Answer, ApiError>>,
    deleted: Vec<Digest>,
    planned: Vec<Command>,
    /// Assimilators have heard that there is work.
    woken: bool,
    /// Assimilators without any.
    idle: u32,
    submitted: usize,
    ended: usize,
    first_at: u64,
    /// Asks that wait for the next round, of hosts that have started so many times.
    next_round: Vec<(usize, u32, AskId)>,
    /// Counts asks, so that an answer to an older one is known.
    asks: u32,
    /// Checks all invariants every so many commands, and liveness after each.
    pub(crate) check_every: Option<u64>,
    liveness: Liveness,
}

impl<'a> Run<'a> {
    pub(crate) fn new(plan: &'a Plan, policy: Policy, watch: &'a mut dyn Watch) -> Self {
        let group = |kind: usize| plan.groups.get(plan.kinds.get(kind)?.group);
        let config = |kind| Some(Arc::new(agent_config(plan, kind, group(kind)?)));
        let configs: Vec<_> = (0..plan.kinds.len()).map(config).collect();
        let hosts = (0u32..).zip(&plan.hosts).filter_map(|(n, place)| {
            let config = configs.get(place.kind)?.as_ref()?;
            Some(Host::new(n, place.kind, group(place.kind)?, Arc::clone(config)))
        });
        Self {
            plan,
            policy,
            watch,
            trains: None,
            broken: None,
            machines: None,
            bought: BTreeMap::new(),
            asked_at: None,
            exits: Vec::new(),
            is_away: false,
            scores: Vec::new(),
            curve: Vec::new(),
            epoch_ends: BTreeMap::new(),
            core: Core::new(plan.config(policy.in_core())),
            chance: seeds::stream("sim-core", &[plan.seed]),
            now: 0,
            queue: Queue::default(),
            calls: VecDeque::new(),
            pending: VecDeque::new(),
            hosts: hosts.collect(),
            stays: (0..plan.hosts.len()).filter_map(|host| plan.stays(host)).collect(),
            tally: Tally::default(),
            bars: None,
            answer: None,
            deleted: Vec::new(),
            planned: Vec::new(),
            woken: false,
            idle: plan.assimilators,
            submitted: 0,
            ended: 0,
            first_at: u64::MAX,
            next_round: Vec::new(),
            asks: 0,
            check_every: None,
            liveness: Liveness::default(),
        }
    }

    /// Runs to the end of all jobs.
    ///
    /// # Errors
    /// Why they don't end.
    pub(crate) fn run(mut self) -> Result<(RunResult, Option<Vec<Bar>>), String> {
        for (n, job) in (0u32..).zip(&self.plan.jobs) {
            self.queue.add(job.at, Event::Submit { job: n });
        }
        match self.machines {
            // Each machine that is there was bought.
            Some(_) => self.hosts.clear(),
            None => (0..self.hosts.len()).for_each(|host| self.come_next(host)),
        }
        self.ask_machines()?;
        let mut ended_at = None;
        while ended_at.is_none() || !self.machines_are_done() {
            self.begin_round()?;
            self.step()?;
            while let Some(call) = self.calls.pop_front() {
                self.call(call)?;
            }
            self.tell_exits()?;
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            if ended_at.is_none() && self.ended >= self.plan.jobs.len() {
                ended_at = Some(self.now);
            }
            if self.now > self.plan.horizon {
                return Err(self.too_late());
            }
        }
        for host in 0..self.hosts.len() {
            self.with(host, Host::close_books);
        }
        self.core.check_invariants().map_err(|violation| violation.to_string())?;
        for job in self.core.state().jobs.values() {
            self.tally.copies += job.counters.speculative_leases;
            self.tally.copied = self.tally.copied.saturating_add(job.counters.speculative_work);
            self.tally.work = self.tally.work.saturating_add(job.work());
        }
        let ended_at = ended_at.unwrap_or(self.now);
        let makespan = ended_at - self.first_at.min(ended_at);
        let metrics = Metrics { jobs: self.jobs(), scores: self.scores, curve: self.curve };
        Ok((RunResult::new(self.plan, &self.tally, makespan, metrics), self.bars))
    }

    /// Why it is given up.
    fn too_late(&self) -> String {
        let days = float(self.now) / 86_400e6;
        let done = self.tally.assimilated;
        let hops: u64 = self.plan.jobs.iter().map(super::job::SimJob::hops).sum();
        let waiting = self.waiting_job();
        let remedy = match waiting {
            Some((_, WaitReason::NoReplicaSpace(_))) => {
                "say more `cache` of hosts, or more `shards`"
            }
            _ => "more or longer stays of hosts are needed, or a later `horizon`",
        };
        let waits = |(name, why)| format!(", and `{name}` waits, as the server says: {why}");
        let waits = waiting.map(waits).unwrap_or_default();
        format!(
            "after {days:.1} days of virtual time {done} results of {hops} hops are there{waits}: {remedy}"
        )
    }

    /// The name of the first job that doesn't go on, and why.
    fn waiting_job(&self) -> Option<(&str, WaitReason)> {
        let mut jobs = self.core.state().jobs.values();
        jobs.find_map(|job| Some((job.spec.name.as_str(), self.core.wait_reason(job.id)?)))
    }

    /// When each job came and ended.
    fn jobs(&self) -> Vec<JobResult> {
        let jobs = self.plan.jobs.iter().zip(self.core.state().jobs.values());
        let after = |at: u64| float(at.saturating_sub(self.first_at)) / 1e6;
        let jobs = jobs.map(|(of, job)| JobResult {
            name: of.name.clone(),
            submitted: after(of.at),
            ended: job.end.map_or(0.0, |(_, at)| after(at.0.saturating_mul(1000))),
            epochs: self.epochs(job.id).map(after).collect(),
        });
        jobs.collect()
    }

    /// When the last result of each epoch of a job was taken, epoch by epoch.
    fn epochs(&self, job: JobId) -> impl Iterator<Item = u64> {
        let all = (job, Epoch(0))..=(job, Epoch(u32::MAX));
        self.epoch_ends.range(all).map(|(_, at)| *at)
    }

    fn step(&mut self) -> Result<(), String> {
        let next = self.queue.next_at();
        // What the core has to do by itself comes first.
        let millis = next.map_or(u64::MAX, |next| next / 1000);
        if let Some(due) = self.core.next_deadline()
            && due.0 < millis
        {
            self.pass_until(due.0.saturating_mul(1000));
            if next.is_none() && self.is_deserted() && self.ended < self.plan.jobs.len() {
                return Err("no host is left that could go on with what is to be trained".into());
            }
            return self.apply(Command::Tick);
        }
        let Some((at, event)) = self.queue.pop() else {
            return Err("nothing more can happen, and not all jobs have ended".into());
        };
        self.pass_until(at);
        self.happen(event)
    }

    /// Nothing happens before.
    fn pass_until(&mut self, at: u64) {
        if at > self.now {
            let (state, hosts) = (self.core.state(), self.hosts.as_slice());
            self.watch.passes(&Interval { micros: at - self.now, state, hosts });
            self.now = at;
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Ends { host, boot, slot, serial } => {
                self.if_booted(host, boot, |host, around| host.ended(slot, serial, around));
            }
            Event::Fetched { host, boot, serial } => {
                self.if_booted(host, boot, |host, around| host.fetched(serial, around));
            }
            Event::Sent { host, boot, serial } => {
                self.if_booted(host, boot, |host, around| host.sent(serial, around));
            }
            Event::Heard { host, boot, event } => {
                self.if_booted(host, boot, |host, around| host.tell(*event, around));
            }
            Event::Reconnected { host, boot } => self.if_booted(host, boot, Host::reconnected),
            Event::Tick { host, boot } => self.if_booted(host, boot, Host::tick),
            Event::Call(call) => return self.call(call),
            Event::Comes { host } => return self.comes(index(host)),
            Event::Preempted { host, boot, left } => {
                self.if_booted(host, boot, |host, around| host.preempted(left, around));
            }
            Event::Goes { host, boot } => self.goes(index(host), boot),
            Event::Machines => return self.machines_event(),
            Event::Submit { job } => return self.submit(index(job)),
            Event::Assimilate => return self.assimilate(),
            Event::Assimilated(result) => return self.assimilated(*result),
        }
        Ok(())
    }

    fn if_booted(
        &mut self,
        host: u32,
        boot: u32,
        act: impl FnOnce(&mut Host, &mut HostContext<'_>),
    ) {
        self.if_booted_at(index(host), boot, act);
    }

    fn if_booted_at(
        &mut self,
        index: usize,
        boot: u32,
        act: impl FnOnce(&mut Host, &mut HostContext<'_>),
    ) {
        if self.hosts.get(index).is_some_and(|host| host.boot == boot) {
            self.with(index, act);
        }
    }

    fn with(&mut self, index: usize, act: impl FnOnce(&mut Host, &mut HostContext<'_>)) {
        let Some(host) = self.hosts.get_mut(index) else { return };
        let mut around = HostContext {
            now: self.now,
            plan: self.plan,
            queue: &mut self.queue,
            calls: &mut self.calls,
            pending: &mut self.pending,
            tally: &mut self.tally,
            bars: self.bars.as_mut(),
            trains: match &mut self.trains {
                Some(trains) => Some(&mut **trains),
                None => None,
            },
            broken: &mut self.broken,
            exits: &mut self.exits,
        };
        act(host, &mut around);
    }
}
