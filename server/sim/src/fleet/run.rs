//! The loop of events: hosts, the very core that the server runs, and virtual time between them.
//!
//! ```text
//!   Queue --> Host --> Command --> Core::apply --> Effects --> carry_out: answers to hosts,
//!     ^                                                        records to whoever watches
//!     '------- what follows, and when -------------------------'
//! ```

use super::{
    arrival::{Back, Stays},
    host::{Around, Host, There},
    job::{count, index},
    plan::Plan,
    queue::{Event, Queue},
    result::RunResult,
    tally::{Bar, Tally},
};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use sojourn_core::{
    Answer, Command, Core, Effect, Envelope, Event as Decided, Offered, Record, ReplyTo,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{HostId, LeaseId},
    report::{Report, ReportEnd, ReportState},
    seeds,
    time::UnixMillis,
};
use sojourn_workgen::{
    PolicyName,
    plan::{Iterations, Planner as _, Rollout},
};

/// Whoever looks on.
pub trait Watch {
    /// The core has decided something.
    fn record(&mut self, record: &Record) {
        let _ = record;
    }

    /// So many hops are done.
    fn progress(&mut self, done: u64, of: u64) {
        let _ = (done, of);
    }

    /// Nanoseconds of a clock, for what deciding takes.
    fn clock(&mut self) -> u64 {
        0
    }
}

/// Nobody looks on.
impl Watch for () {}

/// The caller whose answer nobody waits for.
const NOBODY: ReplyTo = ReplyTo(0);
/// How much of a notice the client keeps for delivering, at the most.
const LONGEST_RESERVE: u64 = 30_000_000;
/// Hops between two words on progress.
const PROGRESS_EVERY: u64 = 256;

/// A fleet at work.
pub(crate) struct Run<'a> {
    plan: &'a Plan,
    watch: &'a mut dyn Watch,
    core: Core,
    chance: ChaCha8Rng,
    now: u64,
    queue: Queue,
    hosts: Vec<Host>,
    stays: Vec<Stays>,
    tally: Tally,
    pub(crate) bars: Option<Vec<Bar>>,
    /// What the last command was answered, where no host waits for it.
    answer: Option<Answer>,
    deleted: Vec<Digest>,
    planned: Vec<Command>,
    /// Assimilation is on its way.
    assimilating: bool,
    submitted: usize,
    ended: usize,
    first_at: u64,
    /// Counts asks, so that an answer to an older one is known.
    asks: u32,
    /// Checks all invariants every so many commands.
    pub(crate) check_every: Option<u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(plan: &'a Plan, policy: PolicyName, watch: &'a mut dyn Watch) -> Self {
        let hosts = (0u32..).zip(&plan.hosts).filter_map(|(n, place)| {
            let group = plan.groups.get(plan.kinds.get(place.kind)?.group)?;
            Some(Host::new(n, place.kind, group))
        });
        Self {
            plan,
            watch,
            core: Core::new(plan.config(policy)),
            chance: seeds::stream("sim-core", &[plan.seed]),
            now: 0,
            queue: Queue::default(),
            hosts: hosts.collect(),
            stays: (0..plan.hosts.len()).filter_map(|host| plan.stays(host)).collect(),
            tally: Tally::default(),
            bars: None,
            answer: None,
            deleted: Vec::new(),
            planned: Vec::new(),
            assimilating: false,
            submitted: 0,
            ended: 0,
            first_at: u64::MAX,
            asks: 0,
            check_every: None,
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
        for host in 0..self.hosts.len() {
            self.come_next(host);
        }
        while self.ended < self.plan.jobs.len() {
            self.step()?;
            if self.now > self.plan.horizon {
                return Err(format!(
                    "after {:.1} days of virtual time {} of {} hops are trained: more or longer \
                     stays of hosts are needed, or a later `horizon`",
                    super::quantity::float(self.now) / 86_400e6,
                    self.tally.assimilated,
                    self.plan.jobs.iter().map(super::job::SimJob::hops).sum::<u64>(),
                ));
            }
        }
        for host in 0..self.hosts.len() {
            self.with(host, Host::count_time);
        }
        self.core.check_invariants().map_err(|violation| violation.to_string())?;
        let makespan = self.now - self.first_at.min(self.now);
        Ok((RunResult::new(self.plan, &self.tally, makespan), self.bars))
    }

    fn step(&mut self) -> Result<(), String> {
        let next = self.queue.next_at();
        // What the core has to do by itself comes first.
        let millis = next.map_or(u64::MAX, |next| next / 1000);
        if let Some(due) = self.core.next_deadline()
            && due.0 < millis
        {
            self.now = self.now.max(due.0.saturating_mul(1000));
            if next.is_none() && self.is_deserted() {
                return Err("no host is left that could go on with what is to be trained".into());
            }
            return self.apply(Command::Tick);
        }
        let Some((at, event)) = self.queue.pop() else {
            return Err("nothing more can happen, and not all jobs have ended".into());
        };
        self.now = self.now.max(at);
        self.happen(event)
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
            Event::Heard { host, boot, answer } => {
                self.if_booted(host, boot, |host, around| host.hear(*answer, around));
            }
            Event::Report { host, report, uploaded } => {
                return self.report(index(host), *report, uploaded);
            }
            Event::Comes { host } => return self.comes(index(host)),
            Event::Warned { host, boot } => return self.warned(index(host), boot),
            Event::Closes { host, boot } => self.if_booted(host, boot, Host::close),
            Event::Goes { host, boot } => return self.goes(index(host), boot),
            Event::Submit { job } => return self.submit(index(job)),
            Event::Assimilate => return self.assimilate(),
            Event::Ask { host, boot } => return self.ask(index(host), boot),
            Event::Beat { host, boot } => return self.beat(index(host), boot),
        }
        Ok(())
    }

    // --- machines ------------------------------------------------------------------------------

    /// Makes the next stay of a host known to the queue.
    fn come_next(&mut self, index: usize) {
        let Some(stays) = self.stays.get_mut(index) else { return };
        let (notice, Some(stay)) = (stays.notice, stays.next()) else { return };
        let host = u32::try_from(index).unwrap_or(u32::MAX);
        let boot = self.hosts.get(index).map_or(0, |host| host.boot);
        self.queue.add(stay.from, Event::Comes { host });
        if stay.to < u64::MAX {
            self.queue.add(stay.to, Event::Goes { host, boot });
            if let Some(notice) = notice {
                let at = stay.to.saturating_sub(notice).max(stay.from);
                self.queue.add(at, Event::Warned { host, boot });
                let reserve = (notice / 2).min(LONGEST_RESERVE);
                let at = stay.to.saturating_sub(reserve).max(stay.from);
                self.queue.add(at, Event::Closes { host, boot });
            }
        }
    }

    fn comes(&mut self, index: usize) -> Result<(), String> {
        let another = self.stays.get(index).is_some_and(|stays| stays.back == Back::Another);
        let known = self.hosts.get(index).is_some_and(|host| host.id != HostId(0));
        if another || !known {
            let name = format!("host {index}");
            let boot = self.hosts.get(index).map_or(0, |host| host.boot);
            let token_sha256 = Digest::of(format!("token {index} {boot}").as_bytes());
            self.apply(Command::Enrol { to: NOBODY, name, token_sha256 })?;
            let Some(Answer::Enrolled(id)) = self.answer.take() else {
                return Err("a host can't enrol".into());
            };
            if let Some(host) = self.hosts.get_mut(index) {
                host.id = id;
            }
        }
        self.with(index, Host::come);
        Ok(())
    }

    fn warned(&mut self, index: usize, boot: u32) -> Result<(), String> {
        if self.hosts.get(index).is_none_or(|host| host.boot != boot) {
            return Ok(());
        }
        let mut back = Vec::new();
        self.with(index, |host, around| back = host.wind_down(around));
        let Some(host) = self.hosts.get(index) else { return Ok(()) };
        let (id, request) = (host.id, host.last_request(self.now));
        self.release(id, back)?;
        self.apply(Command::Ask { to: NOBODY, host: id, request })?;
        match self.answer.take() {
            // What was granted in an answer that it didn't wait for any more.
            Some(Answer::Work(answer)) => {
                self.release(id, answer.leases.iter().map(|lease| lease.id).collect())
            }
            _ => Ok(()),
        }
    }

    fn goes(&mut self, index: usize, boot: u32) -> Result<(), String> {
        let Some(host) = self.hosts.get(index).filter(|host| host.boot == boot) else {
            return Ok(());
        };
        let (id, leaving) = (host.id, host.there == There::Leaving);
        let another = self.stays.get(index).is_some_and(|stays| stays.back == Back::Another);
        let mut held = Vec::new();
        self.with(index, |host, around| held = host.go(another, around));
        self.tally.departures += 1;
        self.come_next(index);
        // Without notice nobody says anything: its leases run out, its ask stays open.
        if leaving { self.release(id, held) } else { Ok(()) }
    }

    fn release(&mut self, host: HostId, leases: Vec<LeaseId>) -> Result<(), String> {
        if leases.is_empty() {
            return Ok(());
        }
        let reason = sojourn_protocol::api::ReleaseRequest::STOPPING.to_owned();
        self.apply(Command::Release { to: NOBODY, host, leases, reason })
    }

    /// Is nobody there, and nobody to come?
    fn is_deserted(&self) -> bool {
        self.hosts.iter().all(|host| host.there == There::Away)
    }

    // --- what hosts say ------------------------------------------------------------------------

    fn ask(&mut self, index: usize, boot: u32) -> Result<(), String> {
        self.asks = self.asks.wrapping_add(1);
        let to = ReplyTo((count(index) + 1) << 32 | u64::from(self.asks));
        let mut asked = None;
        self.if_booted_at(index, boot, |host, around| {
            host.ask_due = false;
            if host.there == There::Here {
                asked = Some((host.id, host.request(around, to)));
            }
        });
        let Some((host, request)) = asked else { return Ok(()) };
        self.apply(Command::Ask { to, host, request })
    }

    fn beat(&mut self, index: usize, boot: u32) -> Result<(), String> {
        let (now, every) = (self.now, self.plan.heartbeat);
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else {
            return Ok(());
        };
        let due = host.said_at + every;
        host.beat_due = host.is_busy();
        if !host.is_busy() {
            return Ok(());
        }
        let number = host.index;
        if due > now {
            self.queue.add(due, Event::Beat { host: number, boot });
            return Ok(());
        }
        host.said_at = now;
        self.queue.add(now + every, Event::Beat { host: number, boot });
        let (host, holding) = (host.id, host.holding(now));
        self.apply(Command::Heartbeat { to: NOBODY, host, holding, reported: Vec::new() })?;
        if let Some(Answer::Heartbeat(answer)) = self.answer.take() {
            self.with(index, |host, around| {
                host.drop_leases(&answer.drop, around);
                host.stop(&answer.stop, around);
                host.want(around);
            });
        }
        Ok(())
    }

    fn report(
        &mut self,
        index: usize,
        report: Report,
        uploaded: Option<BlobRef>,
    ) -> Result<(), String> {
        let Some(host) = self.hosts.get(index).map(|host| host.id) else { return Ok(()) };
        let micros = match &report.outcome {
            sojourn_protocol::report::Outcome::Trained(trained) => trained.train_micros,
            sojourn_protocol::report::Outcome::Evaluated(evaluated) => evaluated.train_micros,
            sojourn_protocol::report::Outcome::Failed(_) => 0,
        };
        self.apply(Command::Report { to: NOBODY, host, report, uploaded })?;
        let state = match self.answer.take() {
            Some(Answer::Report(answer)) => Some(answer.state),
            _ => None,
        };
        match state {
            Some(ReportState::Acknowledged) => {}
            Some(ReportState::Ended(ReportEnd::Assimilated { .. })) => {
                self.tally.evaluated += 1;
                self.tally.useful += micros;
            }
            Some(ReportState::Ended(ReportEnd::Superseded)) => {
                self.tally.wasted += 1;
                self.tally.twice += micros;
            }
            Some(ReportState::Ended(ReportEnd::Rejected { .. })) | None => self.tally.wasted += 1,
        }
        Ok(())
    }

    // --- the server ----------------------------------------------------------------------------

    fn submit(&mut self, job: usize) -> Result<(), String> {
        let Some(of) = self.plan.jobs.get(job) else { return Ok(()) };
        self.first_at = self.first_at.min(self.now);
        for blob in of.data.blobs().chain(of.spec.blobs()) {
            self.apply(Command::Published { to: NOBODY, blob })?;
        }
        let (spec, data) = (Box::new(of.spec.clone()), Box::new(of.data.clone()));
        self.apply(Command::Submit { to: NOBODY, spec, data, again: true, nonce: None })?;
        match self.answer.take() {
            Some(Answer::Submitted(_)) => self.submitted += 1,
            _ => return Err(format!("the job `{}` was refused", of.name)),
        }
        Ok(())
    }

    fn assimilate(&mut self) -> Result<(), String> {
        self.assimilating = false;
        loop {
            self.apply(Command::TakeAssimilation { to: NOBODY })?;
            let Some(Answer::Assimilation(Some(unit))) = self.answer.take() else { return Ok(()) };
            let (lease, version) = (unit.lease, unit.version);
            let checkpoint = unit.trained.checkpoint;
            self.apply(Command::OfferAssimilated { to: NOBODY, lease, version, checkpoint })?;
            if let Some(Answer::Offered(Offered::Taken)) = self.answer.take() {
                self.tally.assimilated += 1;
                self.tally.useful += unit.trained.train_micros;
                self.tell();
            } else {
                self.tally.wasted += 1;
                self.tally.twice += unit.trained.train_micros;
            }
        }
    }

    fn tell(&mut self) {
        if self.tally.assimilated.is_multiple_of(PROGRESS_EVERY) {
            let hops = self.plan.jobs.iter().map(super::job::SimJob::hops).sum();
            self.watch.progress(self.tally.assimilated, hops);
        }
    }

    /// Has the core take a command in, and carries out what it wants done.
    fn apply(&mut self, command: Command) -> Result<(), String> {
        let (at, seed) = (UnixMillis(self.now / 1000), self.chance.next_u64());
        let before = self.watch.clock();
        let effects = self.core.apply(Envelope { at, seed, command });
        self.tally.in_core += self.watch.clock() - before;
        self.tally.commands += 1;
        self.answer = None;
        for effect in effects {
            self.carry_out(effect);
        }
        while let Some(blob) = self.deleted.pop() {
            self.apply(Command::Deleted { blob })?;
        }
        // A plan is made in no time: it is for the next instant as much as for this one.
        while let Some(plan) = self.planned.pop() {
            let answer = self.answer.take();
            self.apply(plan)?;
            self.answer = answer;
        }
        match self.check_every {
            Some(every) if self.tally.commands.is_multiple_of(every) => {
                self.core.check_invariants().map_err(|violation| violation.to_string())
            }
            _ => Ok(()),
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Persist(record) => self.decided(&record),
            Effect::Reply { to, answer, .. } => self.answered(to, answer.ok()),
            Effect::Assimilate => {
                if !std::mem::replace(&mut self.assimilating, true) {
                    self.queue.add(self.now + self.plan.assimilation, Event::Assimilate);
                }
            }
            Effect::Delete(blob) => self.deleted.push(blob),
            Effect::Plan { job, version, problem, seed, iterations } => {
                let before = self.watch.clock();
                let mut budget = Iterations::new(iterations);
                let schedule = Rollout.plan(&problem, seed, &mut budget).map(Box::new);
                self.tally.planning += self.watch.clock() - before;
                self.tally.plans += 1;
                self.planned.push(Command::PlanReady { job, version, schedule });
            }
            // What was uploaded is nowhere.
            Effect::DropUpload(_) => {}
        }
    }

    fn decided(&mut self, record: &Record) {
        self.watch.record(record);
        match &record.event {
            Decided::LeaseGranted { .. } => self.tally.granted += 1,
            Decided::LeaseEnded { .. } => self.tally.ended += 1,
            // With one of these a job may have ended.
            Decided::Evaluated { .. }
            | Decided::TrialFailed { .. }
            | Decided::Assimilated { .. } => {
                let jobs = self.core.state().jobs.values();
                self.ended = jobs.filter(|job| job.end.is_some()).count();
            }
            _ => {}
        }
    }

    fn answered(&mut self, to: ReplyTo, answer: Option<Box<Answer>>) {
        let Some(host) = (to.0 >> 32).checked_sub(1) else {
            self.answer = answer.map(|answer| *answer);
            return;
        };
        let host = usize::try_from(host).unwrap_or(usize::MAX);
        let Some(Answer::Work(answer)) = answer.map(|answer| *answer) else { return };
        let (now, every) = (self.now, self.plan.heartbeat);
        let Some(of) = self.hosts.get_mut(host).filter(|of| of.asked == Some(to)) else { return };
        let latency = of.latency(self.plan);
        if !answer.leases.is_empty() && !std::mem::replace(&mut of.beat_due, true) {
            let (host, boot) = (of.index, of.boot);
            self.queue.add(now + every, Event::Beat { host, boot });
        }
        if latency > 0 {
            let (host, boot) = (of.index, of.boot);
            self.queue.add(now + latency, Event::Heard { host, boot, answer });
        } else {
            self.with(host, |host, around| host.hear(*answer, around));
        }
    }

    // --- hosts by number -----------------------------------------------------------------------

    fn if_booted(&mut self, host: u32, boot: u32, act: impl FnOnce(&mut Host, &mut Around<'_>)) {
        self.if_booted_at(index(host), boot, act);
    }

    fn if_booted_at(
        &mut self,
        index: usize,
        boot: u32,
        act: impl FnOnce(&mut Host, &mut Around<'_>),
    ) {
        if self.hosts.get(index).is_some_and(|host| host.boot == boot) {
            self.with(index, act);
        }
    }

    fn with(&mut self, index: usize, act: impl FnOnce(&mut Host, &mut Around<'_>)) {
        let Some(host) = self.hosts.get_mut(index) else { return };
        let mut around = Around {
            now: self.now,
            plan: self.plan,
            queue: &mut self.queue,
            tally: &mut self.tally,
            bars: self.bars.as_mut(),
        };
        act(host, &mut around);
    }
}
