//! The queue of virtual time, and who does what when.

use super::{
    host::{Fate, Host},
    outcome::{self, Broken, Outcome},
    scenario::{Faults, Scenario},
    server::{Reply, Server},
    training::{self, With},
};
use rand_chacha::ChaCha8Rng;
use sojourn_core::{Answer, AssimilationUnit, Command, CoreConfig, Fault, MergeOffer, ReplyTo};
use sojourn_protocol::{
    digest::Digest,
    ids::{HostId, JobId, LeaseId, TrialId},
    manifest::DataSplit,
    report::{Outcome as UnitOutcome, Report, ReportState},
    seeds,
    time::{Millis, UnixMillis},
    unit::Merge,
};
use std::collections::{BTreeMap, BTreeSet};

/// Virtual hosts look around this often, besides when they hear something.
const HOST_BEAT: Millis = Millis(400);
/// The journal syncs this often.
const SYNC: Millis = Millis(5);
/// The job's user comes by this often.
const USER: Millis = Millis::from_secs(4);
/// Epochs that a user asks for at most.
const MOST_EPOCHS: u32 = 6;
/// All must be done this long after the faults end.
const PATIENCE: Millis = Millis::from_secs(48 * 3600);

#[derive(Debug, Clone)]
enum Happening {
    /// A host looks around: starts units, asks, reports, shows that it lives.
    Beat { host: usize, boot: u64 },
    /// A unit ends.
    UnitEnds { host: usize, boot: u64, lease: LeaseId },
    /// A command reaches the server.
    Arrives(Box<Command>),
    /// A reply reaches a host.
    Heard { host: usize, boot: u64, answer: Box<Answer> },
    /// A host hears that the server knows nothing of its lease.
    Unknown { host: usize, lease: LeaseId },
    /// The job's user comes by, while faults are on.
    User,
    /// An assimilator looks for work.
    Assimilator,
    /// The journal syncs.
    Sync,
    /// The server starts again.
    ServerStarts,
}

/// One seed's world.
#[derive(Debug)]
pub struct World {
    scenario: Scenario,
    server: Server,
    hosts: Vec<Host>,
    queue: BTreeMap<(UnixMillis, u64), Happening>,
    now: UnixMillis,
    count: u64,
    chance: ChaCha8Rng,
    /// Who waits for which reply.
    callers: BTreeMap<ReplyTo, (usize, u64, Option<LeaseId>)>,
    acknowledged: BTreeSet<LeaseId>,
    outcome: Outcome,
}

impl World {
    /// The world of a scenario, before anything has happened.
    #[must_use]
    pub fn new(scenario: Scenario) -> Self {
        let mut config = CoreConfig::with_lease_term(scenario.lease_term);
        config.condemn_after = Millis::from_secs(20);
        config.delete_after = Millis::from_secs(5);
        config.assimilation_term = Millis::from_secs(3);
        config.most_hops = Some(scenario.most_hops);
        config.most_copied = scenario.most_copied;
        config.policy = scenario.policy;
        Self {
            server: Server::new(config),
            hosts: Vec::new(),
            queue: BTreeMap::new(),
            now: UnixMillis(1_000_000),
            count: 0,
            chance: seeds::stream("world", &[scenario.seed]),
            callers: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            outcome: Outcome::default(),
            scenario,
        }
    }

    /// Runs the world to its end.
    ///
    /// # Errors
    /// [`Broken`]: an invariant, determinism, liveness or the final proof doesn't hold.
    pub fn run(mut self) -> Result<Outcome, Broken> {
        let reproduce = self.scenario.reproduce();
        self.live().map_err(|what| Broken { what, reproduce })
    }

    fn live(&mut self) -> Result<Outcome, String> {
        self.begin()?;
        let deadline = UnixMillis(1_000_000) + self.scenario.faults_end + PATIENCE;
        while !self.is_done() {
            self.step()?;
            if self.now > deadline {
                let jobs = self.server.core().map(|core| core.state().jobs.clone());
                return Err(format!("liveness: not done after {PATIENCE:?}: {jobs:?}"));
            }
        }
        self.server.check_determinism()?;
        self.server.sync();
        let core = self.server.core().ok_or("the server is down at the end")?;
        let liars =
            self.hosts.iter().filter(|host| host.lie.is_some()).map(|host| host.id).collect();
        outcome::check(core, self.server.durable(), &self.acknowledged, &liars)?;
        let state = core.state();
        let jobs = state.jobs.values();
        let finished = jobs
            .clone()
            .flat_map(|job| &job.trials)
            .filter(|trial| trial.end == Some(sojourn_core::state::TrialEnd::Finished));
        self.outcome.finished = u64::try_from(finished.count()).unwrap_or(u64::MAX);
        for job in jobs {
            self.outcome.expired += job.counters.leases_expired;
            self.outcome.superseded += job.counters.superseded;
            self.outcome.rejected += job.counters.rejected;
            self.outcome.copies += job.counters.copies;
            for (several, cut) in job.trials.iter().map(|trial| outcome::several(job, trial)) {
                self.outcome.several += several;
                self.outcome.several_cut += cut;
            }
            let extras = job.trials.iter().map(|trial| trial.extras.len()).sum::<usize>();
            self.outcome.extras += u64::try_from(extras).unwrap_or(u64::MAX);
        }
        let hops = state.jobs.values().flat_map(|job| &job.trials).flat_map(|trial| &trial.history);
        for merged in hops.filter_map(|hop| hop.merged) {
            self.outcome.merged += 1;
            self.outcome.stale += u64::from(merged.staleness > 0);
        }
        for host in state.hosts.values() {
            self.outcome.confirmed += host.trust.confirmed;
            self.outcome.refuted += host.trust.refuted;
        }
        self.outcome.went_on = self.hosts.iter().map(|host| host.went_on).sum();
        self.outcome.events = state.position.0;
        Ok(self.outcome)
    }

    /// Done when every trial has ended, nothing that was asked for is open, and no host has anything left to say.
    fn is_done(&self) -> bool {
        let Some(core) = self.server.core() else { return false };
        let state = core.state();
        state.jobs.values().all(|job| !job.is_running() && job.extras.is_empty())
            && self.hosts.iter().all(|host| !host.is_busy())
    }

    /// Enrols the hosts and submits the job.
    fn begin(&mut self) -> Result<(), String> {
        for n in 1..=self.scenario.hosts {
            let class = Digest::of(&[u8::try_from(n % self.scenario.classes).unwrap_or(0)]);
            let (slots, millis) = (1 + self.below(2), u64::from(5 + self.below(400)));
            let mut host = Host::new(HostId(u64::from(n)), class, slots, millis);
            host.line = self.scenario.line;
            let lies = n > self.scenario.hosts - self.scenario.liars;
            host.lie = lies.then_some(self.scenario.lie);
            self.hosts.push(host);
            let token_sha256 = Digest::of(&n.to_le_bytes());
            let name = format!("host-{n}");
            self.apply(Command::Enrol { to: ReplyTo(0), name, token_sha256 })?;
            let host = self.hosts.len() - 1;
            self.later(Millis(u64::from(n)), Happening::Beat { host, boot: 0 });
        }
        let blobs: Vec<_> = self.scenario.data.blobs().collect();
        for blob in blobs {
            self.apply(Command::Published { to: ReplyTo(0), blob })?;
        }
        self.apply(Command::Submit {
            to: ReplyTo(0),
            spec: Box::new(self.scenario.spec.clone()),
            data: Box::new(self.scenario.data.clone()),
            again: false,
            nonce: None,
        })?;
        let submitted =
            self.server.core().is_some_and(|core| core.state().jobs.contains_key(&JobId(1)));
        if !submitted {
            return Err("the job was refused".into());
        }
        self.server.sync();
        self.later(SYNC, Happening::Sync);
        self.later(Millis(1), Happening::Assimilator);
        self.later(USER, Happening::User);
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let deadline = self.server.core().and_then(|core| core.next_deadline());
        let next = self.queue.first_key_value().map(|((at, _), _)| *at);
        if let Some(deadline) = deadline
            && next.is_none_or(|next| deadline < next)
        {
            self.now = self.now.max(deadline);
            return self.apply(Command::Tick);
        }
        let Some(((at, _), happening)) = self.queue.pop_first() else {
            return Err("the world stands still".into());
        };
        self.now = self.now.max(at);
        match happening {
            Happening::Beat { host, boot } => self.beat(host, boot),
            Happening::UnitEnds { host, boot, lease } => self.unit_ends(host, boot, lease),
            Happening::Arrives(command) => return self.apply(*command),
            Happening::Heard { host, boot, answer } => self.heard(host, boot, *answer),
            Happening::Unknown { host, lease } => {
                if let Some(host) = self.hosts.get_mut(host) {
                    host.forget(lease);
                }
            }
            Happening::User => return self.user(),
            Happening::Assimilator => return self.assimilator(),
            Happening::Sync => self.sync()?,
            Happening::ServerStarts => {
                let seed = u64::from(self.below(u32::MAX));
                self.server.start(self.now, seed)?;
                self.check()?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, command: Command) -> Result<(), String> {
        let seed = u64::from(self.below(u32::MAX));
        self.server.apply(self.now, seed, command);
        self.outcome.steps += 1;
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        let checked = self.server.core().map(|core| core.check_invariants());
        checked.unwrap_or(Ok(())).map_err(|violation| format!("at {:?}: {violation}", self.now))
    }

    // --- hosts ---------------------------------------------------------------------------------

    fn beat(&mut self, index: usize, boot: u64) {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        if host.silent_until > now {
            let rest = host.silent_until - now;
            return self.later(rest, Happening::Beat { host: index, boot });
        }
        let started = host.start_units(now);
        let (id, reports) = (host.id, host.to_report());
        let ask = host.ask_until.is_none_or(|until| until <= now).then(|| host.request(now));
        let (holding, reported) = (host.holding(now), host.reported());
        if ask.is_some() {
            host.ask_until = Some(now + Millis::from_secs(8));
        }
        for (lease, takes) in started {
            self.later(takes, Happening::UnitEnds { host: index, boot, lease });
        }
        if let Some(request) = ask {
            let to = self.caller(index, None);
            self.send(Command::Ask { to, host: id, request });
        }
        for report in reports {
            self.send_report(index, id, report);
        }
        if self.faulty() && self.happens(self.scenario.curious) {
            let trial = TrialId(self.below(8));
            let split = if self.below(2) == 0 { DataSplit::Valid } else { DataSplit::Test };
            self.send(Command::Evaluate { to: ReplyTo(0), job: JobId(1), trial, split });
        }
        let to = self.caller(index, None);
        self.send(Command::Heartbeat { to, host: id, holding, reported });
        self.later(HOST_BEAT, Happening::Beat { host: index, boot });
    }

    fn send_report(&mut self, index: usize, host: HostId, report: Report) {
        let uploaded = match &report.outcome {
            UnitOutcome::Trained(trained) => Some(trained.checkpoint),
            UnitOutcome::Evaluated(_) | UnitOutcome::Failed(_) => None,
        };
        let to = self.caller(index, Some(report.lease));
        self.send(Command::Report { to, host, report, uploaded });
    }

    fn unit_ends(&mut self, index: usize, boot: u64, lease: LeaseId) {
        let faults = self.faults();
        let (crash, vanish) = (self.happens(faults.crash), self.happens(faults.vanish));
        let fate = if self.happens(faults.fail) {
            if self.below(2) == 0 { Fate::Fails } else { Fate::Explodes }
        } else if self.happens(faults.lie) {
            Fate::Lies
        } else if self.happens(faults.part) {
            Fate::Part
        } else {
            Fate::Done
        };
        let away = Millis(u64::from(self.below(60_000)));
        let kept = self.below(2) == 0;
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        if !crash || kept {
            host.finish(lease, fate);
        }
        self.outcome.host_faults += u64::from(crash || vanish);
        if crash {
            host.crash(now + away);
            let boot = host.boot;
            self.later(away, Happening::Beat { host: index, boot });
        } else if vanish {
            host.silent_until = now + away;
        } else {
            self.later(Millis(0), Happening::Beat { host: index, boot });
        }
    }

    fn heard(&mut self, index: usize, boot: u64, answer: Answer) {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        if host.silent_until > now {
            return;
        }
        match answer {
            Answer::Work(answer) => host.heard_work(&answer),
            Answer::Heartbeat(answer) => host.heard_heartbeat(&answer),
            Answer::Report(answer) => {
                if answer.state == ReportState::Acknowledged {
                    self.acknowledged.insert(answer.lease);
                }
                host.heard_state(answer.lease, &answer.state);
            }
            _ => {}
        }
    }

    // --- the user ------------------------------------------------------------------------------

    /// Pauses, resumes and extends as it comes; the job is left running when the faults end.
    fn user(&mut self) -> Result<(), String> {
        let (to, job) = (ReplyTo(0), JobId(1));
        let (what, trial, epochs) = (self.below(6), self.below(4), 1 + self.below(MOST_EPOCHS));
        if !self.faulty() && self.server.core().is_some() {
            return self.apply(Command::Resume { to, job });
        }
        self.later(USER, Happening::User);
        if self.faults() == Faults::NONE {
            return Ok(());
        }
        let trial = (trial > 0).then_some(TrialId(trial));
        let before = self.server.core().map_or(0, |core| core.position().0);
        self.apply(match what {
            0 => Command::Pause { to, job, now: true },
            1 => Command::Pause { to, job, now: false },
            2 | 3 => Command::Extend { to, job, epochs, trial },
            _ => Command::Resume { to, job },
        })?;
        let changed = self.server.core().is_some_and(|core| core.position().0 > before);
        self.outcome.pauses += u64::from(changed && what < 2);
        self.outcome.extensions += u64::from(changed && (2..4).contains(&what));
        Ok(())
    }

    // --- server --------------------------------------------------------------------------------

    fn assimilator(&mut self) -> Result<(), String> {
        let faults = self.faults();
        self.later(Millis(10), Happening::Assimilator);
        if self.server.core().is_none() {
            return Ok(());
        }
        let to = ReplyTo(u64::MAX);
        self.apply(Command::TakeAssimilation { to })?;
        let (replies, deletes) = self.server.sync();
        let taken = replies.iter().find_map(|(caller, answer)| match answer.as_deref() {
            Ok(Answer::Assimilation(Some(unit))) if *caller == to => Some(unit.clone()),
            _ => None,
        });
        self.deliver(replies, &deletes)?;
        let Some(unit) = taken else { return Ok(()) };
        if self.happens(faults.forget) {
            return Ok(());
        }
        let offer = if self.happens(faults.forget / 4) {
            let reason = "the assimilator didn't like it".into();
            Command::OfferRejected { to: ReplyTo(0), lease: unit.lease, reason, fault: Fault::Host }
        } else {
            offer(&unit)
        };
        self.apply(offer.clone())?;
        if self.happens(faults.duplicate) {
            self.apply(offer)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), String> {
        self.later(SYNC, Happening::Sync);
        if self.server.core().is_none() {
            return Ok(());
        }
        let faults = self.faults();
        if self.happens(faults.server) {
            self.server.check_determinism()?;
            self.server.crash();
            self.outcome.server_crashes += 1;
            let away = Millis(u64::from(self.below(30_000)));
            self.later(away, Happening::ServerStarts);
            return Ok(());
        }
        let (replies, deletes) = self.server.sync();
        for plan in self.server.plans() {
            // One that comes late, or never, harms nothing.
            self.send(plan);
        }
        self.deliver(replies, &deletes)
    }

    fn deliver(&mut self, replies: Vec<Reply>, deletes: &[Digest]) -> Result<(), String> {
        for (to, answer) in replies {
            let Some((host, boot, lease)) = self.callers.remove(&to) else { continue };
            match (answer, lease) {
                (Ok(answer), _) => {
                    self.travel(Happening::Heard { host, boot, answer });
                }
                (Err(_), Some(lease)) => self.travel(Happening::Unknown { host, lease }),
                (Err(_), None) => {}
            }
        }
        for blob in deletes {
            self.apply(Command::Deleted { blob: *blob })?;
        }
        Ok(())
    }

    // --- the network and time ------------------------------------------------------------------

    fn send(&mut self, command: Command) {
        let faults = self.faults();
        if self.happens(faults.duplicate) {
            self.travel(Happening::Arrives(Box::new(command.clone())));
        }
        self.travel(Happening::Arrives(Box::new(command)));
    }

    fn travel(&mut self, happening: Happening) {
        let faults = self.faults();
        if self.happens(faults.lose) {
            return;
        }
        let slow = self.happens(faults.lag);
        let takes = if slow { self.below(20_000) } else { 1 + self.below(30) };
        self.later(Millis(u64::from(takes)), happening);
    }

    fn later(&mut self, after: Millis, happening: Happening) {
        self.count += 1;
        self.queue.insert((self.now + after, self.count), happening);
    }

    fn caller(&mut self, host: usize, lease: Option<LeaseId>) -> ReplyTo {
        self.count += 1;
        let to = ReplyTo(self.count);
        let boot = self.hosts.get(host).map_or(0, |host| host.boot);
        self.callers.insert(to, (host, boot, lease));
        to
    }

    fn faulty(&self) -> bool {
        self.now < UnixMillis(1_000_000) + self.scenario.faults_end
    }

    fn faults(&self) -> Faults {
        if self.faulty() { self.scenario.faults } else { Faults::NONE }
    }

    fn happens(&mut self, thousandths: u32) -> bool {
        self.below(1000) < thousandths
    }

    fn below(&mut self, bound: u32) -> u32 {
        seeds::below(&mut self.chance, bound)
    }
}

/// What an assimilator offers that has done its work.
fn offer(unit: &AssimilationUnit) -> Command {
    let AssimilationUnit { lease, version, trained, hop, merge, .. } = unit;
    let made = merge.as_ref().map(|merge| {
        let Merge { current, state, staleness, in_flight, flush, .. } = *merge;
        let with = With { base: hop.base, current, state, staleness, in_flight, flush };
        let (checkpoint, state) = training::merge(trained.checkpoint, &with);
        (checkpoint, MergeOffer { state, flush, in_flight })
    });
    let (checkpoint, merged) = match made {
        Some((checkpoint, merged)) => (checkpoint, Some(merged)),
        None => (trained.checkpoint, None),
    };
    let (lease, version) = (*lease, *version);
    Command::OfferAssimilated { to: ReplyTo(0), lease, version, checkpoint, merged }
}
