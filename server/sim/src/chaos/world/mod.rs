//! The queue of virtual time, and who does what when.

mod assimilating;
mod hosts;
mod network;
mod strangers;

use super::{
    host::Host,
    outcome::{self, Broken, Liars, Outcome},
    scenario::{Faults, Scenario},
    server::Server,
};
use crate::liveness::Liveness;
use hosts::OpenCall;
use rand_chacha::ChaCha8Rng;
use sojourn_client_core::Event as AgentEvent;
use sojourn_core::{
    Answer, Command, CoreConfig, Event, Record, ReplyTo,
    state::{Stopped, Trial, TrialEnd},
};
use sojourn_protocol::{
    digest::Digest,
    error::ApiError,
    ids::{HostId, JobId, LeaseId, TokenId, TrialId},
    names::TokenLabel,
    quantity::{SaturatingFrom as _, to_u64},
    quotas::TokenQuotas,
    seeds,
    time::{Millis, UnixMillis},
    tokens::{MAX_TOKEN_HOSTS, TokenGrant, TokenRequest},
    view::Verification,
};
use std::collections::{BTreeMap, BTreeSet};

/// Time goes by on virtual hosts in steps of this length, besides when they hear something.
const HOST_BEAT: Millis = Millis(400);
/// The journal syncs this often.
const SYNC: Millis = Millis(5);
/// The job's user comes by this often.
const USER: Millis = Millis::from_secs(4);
/// Epochs that a user asks for at most.
const MAX_EPOCHS: u32 = 6;
/// The tokens of two owners whose hosts do no harm, and of the one whose hosts do.
const FIRST: TokenId = TokenId(1);
/// See [`FIRST`].
const SECOND: TokenId = TokenId(2);
/// See [`FIRST`].
const HOSTILE: TokenId = TokenId(3);
/// Bytes of memory that hosts say they have, where hostile ones claim what units take.
const MEMORY: u64 = 1 << 30;
/// All must be done this long after the faults end.
const PATIENCE: Millis = Millis::from_secs(48 * 3600);

#[derive(Debug, Clone)]
enum WorldEvent {
    /// A host's program starts.
    Boots { host: usize, boot: u64 },
    /// Time goes by on a host.
    Beat { host: usize, boot: u64 },
    /// An agent is told of an event.
    Told { host: usize, boot: u64, event: Box<AgentEvent> },
    /// A unit ends.
    UnitEnds { host: usize, boot: u64, lease: LeaseId },
    /// A command reaches the server.
    Arrives(Box<Command>),
    /// A reply reaches whoever called.
    Heard { to: ReplyTo, answer: Result<Box<Answer>, ApiError> },
    /// A call is given up.
    CallTimesOut { to: ReplyTo },
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
    queue: BTreeMap<(UnixMillis, u64), WorldEvent>,
    now: UnixMillis,
    count: u64,
    chance: ChaCha8Rng,
    /// The calls of those who wait, by the reply for which each waits.
    calls: BTreeMap<ReplyTo, OpenCall>,
    acknowledged: BTreeSet<LeaseId>,
    liveness: Liveness,
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
            calls: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            liveness: Liveness::default(),
            outcome: Outcome::default(),
            scenario,
        }
    }

    /// Runs the world to its end.
    ///
    /// # Errors
    /// [`Broken`]: an invariant, determinism, liveness or the final proof doesn't hold.
    pub fn run(self) -> Result<Outcome, Broken> {
        self.run_with_journal().map(|(outcome, _)| outcome)
    }

    /// Runs the world to its end, and returns all records of its journal beside the outcome.
    ///
    /// # Errors
    /// As [`World::run`].
    pub fn run_with_journal(mut self) -> Result<(Outcome, Vec<Record>), Broken> {
        let reproduce = self.scenario.reproduce();
        let outcome = self.live().map_err(|what| Broken { what, reproduce })?;
        Ok((outcome, self.server.durable().to_vec()))
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
        let liars = self.hosts.iter().filter(|host| host.lie.is_some()).map(|host| host.id);
        let liars = Liars { hosts: liars.collect(), are_counted: self.scenario.liar.is_some() };
        outcome::check(core, self.server.durable(), &self.acknowledged, &liars)?;
        let state = core.state();
        if self.scenario.liar.is_some() {
            for job in state.jobs.values() {
                outcome::count_lies(state, job, &mut self.outcome);
            }
        }
        for record in self.server.durable() {
            let is_back = matches!(record.event, Event::TrialRolledBack { why: Some(_), .. });
            self.outcome.rolled_back += u64::from(is_back);
            let is_asked = matches!(record.event, Event::RollbackAsked { .. });
            self.outcome.asked += u64::from(is_asked);
        }
        let jobs = state.jobs.values();
        let finished = jobs
            .clone()
            .flat_map(|job| &job.trials)
            .filter(|trial| trial.end == Some(TrialEnd::Finished));
        self.outcome.finished = to_u64(finished.count());
        let fixed = jobs.clone().flat_map(|job| {
            let of_job = job.trials.iter().filter(|trial| trial.end == Some(TrialEnd::Finished));
            of_job.filter(|trial| outcome::follows_from_job(job, trial))
        });
        self.outcome.fixed = to_u64(fixed.count());
        let failed = |trial: &&Trial| matches!(trial.end, Some(TrialEnd::Failed(_)));
        let all = jobs.clone().flat_map(|job| &job.trials);
        self.outcome.failed = to_u64(all.filter(failed).count());
        let all = jobs.clone().flat_map(|job| &job.trials);
        let stopped = |of: &&Trial| matches!(of.stopped, Some(Stopped::Search { .. }));
        self.outcome.stopped = to_u64(all.clone().filter(stopped).count());
        let lineage = |of: &Trial| {
            let from = of.origin.map(|origin| (origin.trial.0, origin.epochs));
            format!("{from:?} {:?}", of.choices)
        };
        self.outcome.lineage = all.clone().map(lineage).collect();
        self.outcome.lengths = all.map(|of| of.chain.epoch().0).collect();
        for job in jobs {
            self.outcome.expired += job.counters.leases_expired;
            self.outcome.superseded += job.counters.superseded;
            self.outcome.rejected += job.counters.rejected;
            self.outcome.copies += job.counters.speculative_leases;
            for (several, cut) in job.trials.iter().map(|trial| outcome::several(job, trial)) {
                self.outcome.several += several;
                self.outcome.several_cut += cut;
            }
            let extras = job.trials.iter().map(|trial| trial.extras.len()).sum::<usize>();
            self.outcome.extras += to_u64(extras);
        }
        let hops = state.jobs.values().flat_map(|job| &job.trials).flat_map(|trial| &trial.history);
        for merged in hops.filter_map(|hop| hop.merged) {
            self.outcome.merged += 1;
            self.outcome.stale += u64::from(merged.staleness > 0);
        }
        let hops = state.jobs.values().flat_map(|job| &job.trials).flat_map(|trial| &trial.history);
        let unverified = hops.filter(|hop| hop.verified == Some(Verification::Unverified));
        self.outcome.unverified = to_u64(unverified.count());
        let trials = state.jobs.values().flat_map(|job| &job.trials);
        for residence in trials.filter_map(|trial| trial.residence) {
            self.outcome.moved += u64::from(residence.has_moved);
            self.outcome.moved += u64::from(residence.is_rebalanced);
        }
        for host in state.hosts.values() {
            self.outcome.confirmed += host.trust.confirmed;
            self.outcome.refuted += host.trust.refuted;
        }
        self.outcome.went_on = self.hosts.iter().map(|host| host.went_on).sum();
        self.outcome.events = state.position.0;
        let first = state.jobs.get(&JobId(1));
        let took = first.and_then(|job| job.end.as_ref().map(|(_, at)| *at - job.submitted_at));
        self.outcome.took = took.unwrap_or_default();
        Ok(std::mem::take(&mut self.outcome))
    }

    /// Done when every trial has ended, nothing that was asked for is open, and no host has anything left to say.
    fn is_done(&self) -> bool {
        let Some(core) = self.server.core() else { return false };
        let state = core.state();
        state.jobs.values().all(|job| !job.is_running() && job.extras.is_empty())
            && self.hosts.iter().all(|host| !host.is_busy())
    }

    /// Issues the token with which an owner's machines enrol.
    fn create_token(&mut self, owner: &str) -> Result<(), String> {
        let named = owner.parse().map_err(|error| format!("{error}"))?;
        let grant = TokenGrant::Enrol {
            owner: named,
            hosts: MAX_TOKEN_HOSTS,
            machine: None,
            trusted: false,
        };
        let request = TokenRequest {
            label: TokenLabel::default(),
            grant,
            lifetime: None,
            quotas: TokenQuotas::default(),
        };
        let sha256 = Digest::of(owner.as_bytes());
        self.apply(Command::CreateToken { to: ReplyTo(0), request, sha256, by: None })
    }

    /// A machine becomes a host, of an owner where a token names one.
    fn enrol(&mut self, n: u32, host: Host, owner: Option<TokenId>) -> Result<(), String> {
        let token_sha256 = Digest::of(&n.to_le_bytes());
        let (to, name) = (ReplyTo(0), format!("host-{n}"));
        self.apply(match owner {
            Some(with) => Command::EnrolWithToken { to, name, token_sha256, with },
            None => Command::Enrol { to, name, token_sha256 },
        })?;
        let index = self.hosts.len();
        self.hosts.push(host);
        self.later(Millis(u64::from(n)), WorldEvent::Boots { host: index, boot: 0 });
        Ok(())
    }

    /// Enrols the hosts and submits the job.
    fn begin(&mut self) -> Result<(), String> {
        let hostile = self.scenario.hostile;
        let owned = hostile.hosts() > 0;
        let strangers = owned || self.scenario.liar.is_some();
        for owner in ["first", "second", "hostile", "accomplice"].into_iter().filter(|_| strangers)
        {
            self.create_token(owner)?;
        }
        for n in 1..=self.scenario.hosts {
            let class = Digest::of(&[u8::saturating_from(n % self.scenario.classes)]);
            let (slots, millis) = (1 + self.below(2), u64::from(5 + self.below(400)));
            let mut host = Host::new(HostId(u64::from(n)), class, slots, millis);
            host.bandwidth = self.scenario.line;
            let lies = n > self.scenario.hosts - self.scenario.liars;
            host.lie = lies.then_some(self.scenario.lie);
            host.memory = owned.then_some(MEMORY);
            self.enrol(n, host, owned.then_some(if n % 2 == 0 { FIRST } else { SECOND }))?;
        }
        for n in 0..hostile.hosts() {
            let number = self.scenario.hosts + 1 + n;
            let (class, millis) = (hostile.class(n), u64::from(5 + self.below(400)));
            let mut host = Host::new(HostId(u64::from(number)), class, 1, millis);
            (host.memory, host.trick) = (Some(MEMORY), hostile.trick(n));
            host.lie = hostile.lies(n).then_some(self.scenario.lie);
            self.enrol(number, host, Some(HOSTILE))?;
        }
        self.enrol_strangers()?;
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
        for n in 0..self.scenario.wrong_jobs {
            let (to, spec) = (ReplyTo(0), Box::new(self.scenario.wrong_job(n)));
            let data = Box::new(self.scenario.data.clone());
            self.apply(Command::Submit { to, spec, data, again: true, nonce: None })?;
        }
        let submitted =
            self.server.core().is_some_and(|core| core.state().jobs.contains_key(&JobId(1)));
        if !submitted {
            return Err("the job was refused".into());
        }
        self.server.sync();
        self.later(SYNC, WorldEvent::Sync);
        self.later(Millis(1), WorldEvent::Assimilator);
        self.later(USER, WorldEvent::User);
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
            WorldEvent::Boots { host, boot } => self.boots(host, boot),
            WorldEvent::Beat { host, boot } => self.beat(host, boot),
            WorldEvent::Told { host, boot, event } => self.told(host, boot, *event),
            WorldEvent::UnitEnds { host, boot, lease } => self.unit_ends(host, boot, lease),
            WorldEvent::Arrives(command) => return self.apply(*command),
            WorldEvent::Heard { to, answer } => self.heard(to, answer),
            WorldEvent::CallTimesOut { to } => self.call_times_out(to),
            WorldEvent::User => return self.user(),
            WorldEvent::Assimilator => return self.assimilator(),
            WorldEvent::Sync => self.sync()?,
            WorldEvent::ServerStarts => {
                let seed = u64::from(self.below(u32::MAX));
                self.server.start(self.now, seed)?;
                self.check()?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, command: Command) -> Result<(), String> {
        let seed = u64::from(self.below(u32::MAX));
        self.server.apply(self.now, seed, command)?;
        self.outcome.steps += 1;
        self.check()
    }

    fn check(&mut self) -> Result<(), String> {
        let Some(core) = self.server.core() else {
            self.liveness.restarted();
            return Ok(());
        };
        let checked = core.check_invariants().map_err(|violation| violation.to_string());
        let checked = checked.and_then(|()| self.liveness.check(core, self.now));
        checked.map_err(|violation| format!("at {:?}: {violation}", self.now))
    }

    /// Pauses, resumes and extends as it comes; the job is left running when the faults end.
    fn user(&mut self) -> Result<(), String> {
        let (to, job) = (ReplyTo(0), JobId(1));
        let (what, trial, epochs) = (self.below(6), self.below(4), 1 + self.below(MAX_EPOCHS));
        self.answer_asked()?;
        if !self.faulty() && self.server.core().is_some() {
            if self.scenario.liar.is_some() {
                self.later(USER, WorldEvent::User);
            }
            return self.apply(Command::Resume { to, job });
        }
        self.later(USER, WorldEvent::User);
        if self.faults() == Faults::NONE {
            return Ok(());
        }
        let trial = (trial > 0).then_some(TrialId(trial));
        let before = self.server.core().map_or(0, |core| core.position().0);
        self.apply(match what {
            0 => Command::Pause { to, job, now: true },
            1 => Command::Pause { to, job, now: false },
            2 | 3 if self.scenario.extends => {
                Command::Extend { to, job, epochs, trial, reopen: false }
            }
            _ => Command::Resume { to, job },
        })?;
        let changed = self.server.core().is_some_and(|core| core.position().0 > before);
        self.outcome.pauses += u64::from(changed && what < 2);
        self.outcome.extensions += u64::from(changed && (2..4).contains(&what));
        Ok(())
    }
}
