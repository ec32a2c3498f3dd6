//! The core itself: takes envelopes, decides events, folds them, says effects.

use crate::{
    command::{Command, Envelope, Query, ReplyTo},
    config::CoreConfig,
    effect::{Answer, Effect, JournalPosition},
    event::{EVENT_VERSION, Event, READ_VERSIONS, Record},
    fault::{CoreFault, SnapshotError},
    soft::Soft,
    state::{FoldError, State},
};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    time::UnixMillis,
};
use sojourn_workgen::Policy;

/// The state machine. See the crate's text.
#[derive(Debug)]
pub struct Core {
    pub(crate) config: CoreConfig,
    pub(crate) state: State,
    pub(crate) soft: Soft,
    pub(crate) now: UnixMillis,
    pub(crate) chance: ChaCha8Rng,
    pub(crate) policy: Box<dyn Policy>,
    effects: Vec<Effect>,
    /// The first fault, after which it answers nothing more.
    fault: Option<CoreFault>,
}

/// Why recovery can't go on.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The snapshot's bytes are no snapshot.
    #[error("the snapshot can't be read")]
    Snapshot(#[source] serde_json::Error),
    /// The snapshot was made by another version.
    #[error("the snapshot has version {found}, this program reads versions {} to {}", READ_VERSIONS.start(), READ_VERSIONS.end())]
    Version {
        /// Its version.
        found: u32,
    },
    /// An event is missing or comes twice.
    #[error("event {found} follows event {last}")]
    Gap {
        /// The last event in the state.
        last: u64,
        /// The event that came.
        found: u64,
    },
    /// An event doesn't fit the state.
    #[error("the journal can't be replayed")]
    Fold(#[from] FoldError),
}

#[derive(Serialize)]
struct SnapshotRef<'a> {
    version: u32,
    state: &'a State,
}

#[derive(Deserialize)]
struct SnapshotVersion {
    version: u32,
}

#[derive(Deserialize)]
struct Snapshot {
    version: u32,
    state: State,
}

/// A state as [`Core::snapshot`] writes it.
///
/// # Errors
/// [`SnapshotError`] where it holds what JSON can't.
pub fn snapshot_of(state: &State) -> Result<Vec<u8>, SnapshotError> {
    serde_json::to_vec(&SnapshotRef { version: EVENT_VERSION, state }).map_err(SnapshotError)
}

impl Core {
    /// A core to which nothing has happened.
    #[must_use]
    pub fn new(config: CoreConfig) -> Self {
        Self::with_state(State::new(config.remember_leases), config)
    }

    /// A core from a snapshot; events after it are to be folded in, then [`Command::Started`] sent.
    ///
    /// # Errors
    /// [`RecoverError`] where the bytes are no snapshot of a version that is read.
    pub fn from_snapshot(bytes: &[u8], config: CoreConfig) -> Result<Self, RecoverError> {
        let is_read = |found| match READ_VERSIONS.contains(&found) {
            true => Ok(()),
            false => Err(RecoverError::Version { found }),
        };
        let Snapshot { version, mut state } = serde_json::from_slice(bytes).or_else(|error| {
            // Of another version it may be anything else. Else it isn't gone through twice: it may be large.
            let SnapshotVersion { version } =
                serde_json::from_slice(bytes).map_err(RecoverError::Snapshot)?;
            is_read(version)?;
            Err(RecoverError::Snapshot(error))
        })?;
        is_read(version)?;
        state.index();
        let mut core = Self::with_state(state, config);
        core.soft.recovering = true;
        Ok(core)
    }

    fn with_state(state: State, config: CoreConfig) -> Self {
        Self {
            now: state.at,
            state,
            soft: Soft::default(),
            chance: ChaCha8Rng::seed_from_u64(0),
            policy: config.policy.policy(),
            config,
            effects: Vec::new(),
            fault: None,
        }
    }

    /// The durable state, as bytes for [`Core::from_snapshot`].
    ///
    /// # Errors
    /// [`SnapshotError`] where it can't be written.
    pub fn snapshot(&self) -> Result<Vec<u8>, SnapshotError> {
        snapshot_of(&self.state)
    }

    /// Takes a journalled event in, at recovery.
    ///
    /// # Errors
    /// [`RecoverError::Gap`] where it isn't the next one, [`RecoverError::Fold`] where it doesn't fit the state.
    pub fn fold(&mut self, record: &Record) -> Result<(), RecoverError> {
        let (last, found) = (self.state.position.0, record.position.0);
        if found != last + 1 {
            return Err(RecoverError::Gap { last, found });
        }
        self.state.fold(record)?;
        self.soft.recovering = true;
        self.now = self.now.max(self.state.at);
        Ok(())
    }

    /// The number of the last event.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        self.state.position
    }

    /// The durable state, to look at.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &CoreConfig {
        &self.config
    }

    /// Takes one step: first expires all that is due, then does as the command says, then answers
    /// hosts that waited for what has changed.
    ///
    /// # Errors
    /// [`CoreFault`] where it can't go on: nothing of the step may be carried out, and each later step fails
    /// with the same fault.
    pub fn apply(&mut self, input: Envelope) -> Result<Vec<Effect>, CoreFault> {
        self.usable()?;
        self.now = self.now.max(input.at);
        self.chance = ChaCha8Rng::seed_from_u64(input.seed);
        self.expire();
        self.handle(input.command);
        self.fail_lost_extras();
        self.renew_checks();
        self.renew_orders();
        self.renew_homes();
        self.renew_plans();
        self.tell_new_homes();
        self.answer_parked();
        self.give_copies();
        let effects = std::mem::take(&mut self.effects);
        self.usable()?;
        debug_assert_eq!(self.check_cheap_invariants(), Ok(()));
        Ok(effects)
    }

    /// Fails where the core has had a fault.
    fn usable(&self) -> Result<(), CoreFault> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Has the step under way met a fault? Then whoever repeats something until it is done stops.
    pub(crate) fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Tick => {}
            Command::Started => self.started(),
            Command::Enrol { to, name, token_sha256 } => self.enrol(to, name, token_sha256),
            Command::RevokeHost { to, host } => self.revoke_host(to, host),
            Command::Ask { to, host, request } => self.ask(to, host, request),
            Command::Hangup { to } => self.hang_up(to),
            Command::Heartbeat { to, host, holding, reported } => {
                self.heartbeat(to, host, &holding, &reported);
            }
            Command::Release { to, host, leases, reason } => {
                self.release(to, host, &leases, &reason);
            }
            Command::AuthorizeUpload { to, host, lease, bytes } => {
                self.authorize_upload(to, host, lease, bytes);
            }
            Command::AuthorizeRead { to, host, blob } => self.authorize_read(to, host, blob),
            Command::Report { to, host, report, uploaded } => {
                self.report(to, host, report, uploaded);
            }
            Command::TakeAssimilation { to, losses } => self.take_assimilation(to, losses),
            Command::RenewAssimilation { to, lease, taking } => {
                self.renew_assimilation(to, lease, taking);
            }
            Command::OfferAssimilated { to, lease, version, checkpoint, merged } => {
                self.offer_assimilated(to, lease, version, checkpoint, merged);
            }
            Command::OfferRejected { to, lease, reason, fault } => {
                self.offer_rejected(to, lease, &reason, fault);
            }
            Command::Missing { to, blobs } => self.missing(to, &blobs),
            Command::AuthorizePublish { to, blob } => self.authorize_publish(to, blob),
            Command::Published { to, blob } => self.published(to, blob),
            Command::Deleted { blob } => self.deleted(blob),
            Command::Lost { blob } => self.lost(blob),
            Command::Submit { to, spec, data, again, nonce } => {
                self.submit(to, spec, data, again, nonce);
            }
            Command::Cancel { to, job } => self.cancel(to, job),
            Command::Evaluate { to, job, trial, split } => self.evaluate(to, job, trial, split),
            Command::Pause { to, job, now } => self.pause(to, job, now),
            Command::Resume { to, job } => self.resume(to, job),
            Command::Extend { to, job, epochs, trial } => self.extend(to, job, epochs, trial),
            Command::Place { to, job, placement } => self.place(to, job, placement),
            Command::Rollback { to, job, request } => self.rollback(to, job, request),
            Command::PlanReady { job, version, schedule } => {
                self.plan_ready(job, version, schedule.as_deref());
            }
            Command::Query { to, query } => self.query(to, query),
        }
    }

    fn query(&mut self, to: ReplyTo, query: Query) {
        let answer = match query {
            Query::Jobs => Ok(Answer::Jobs(self.jobs_view())),
            Query::Job { job } => self.job_detail(job).map(|job| Answer::Job(Box::new(job))),
            Query::Trials { job } => self.trials_view(job).map(Answer::Trials),
            Query::History { job, trial } => {
                self.history(job, trial).map(|history| Answer::History(Box::new(history)))
            }
            Query::Evaluations { job, trial } => {
                self.evaluations_view(job, trial).map(Answer::Evaluations)
            }
            Query::Hosts => Ok(Answer::Hosts(self.hosts_view())),
            Query::HostByToken { token_sha256 } => {
                Ok(Answer::HostByToken(self.state.tokens.get(&token_sha256).copied()))
            }
            Query::BlobStatus { blob } => Ok(Answer::BlobStatus(self.state.blobs.status(&blob))),
            Query::Assimilations => Ok(Answer::Assimilations(self.assimilations_view())),
            Query::Position => Ok(Answer::Position(self.state.position)),
        };
        self.reply(to, answer);
    }

    /// The next time at which something is due without a command.
    #[must_use]
    pub fn next_deadline(&self) -> Option<UnixMillis> {
        let lease = self.soft.expiry.first().map(|(at, _)| *at);
        let parked = self.soft.parked.first_until();
        let assimilating = self.soft.assimilations.first_until();
        let resting = self.soft.resting.values().copied().min();
        let (look_again, copies) =
            (self.soft.schedule.look_again.first(), self.soft.schedule.copies_at);
        let round = self.soft.round.next_piece();
        let plan = self.next_plan();
        let presence = self.soft.schedule.fleet.next_look();
        let idle = self.state.blobs.oldest_idle().map(|(at, _)| at + self.config.condemn_after);
        let awaited = self.state.blobs.oldest_awaited().map(|(at, _)| at + self.config.awaited_for);
        let condemned =
            self.state.blobs.oldest_condemned().map(|(at, _)| at + self.config.delete_after);
        [
            lease,
            self.soft.time_up,
            parked,
            assimilating,
            resting,
            look_again,
            copies,
            round,
            plan,
            presence,
            idle,
            awaited,
            condemned,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Decides an event: folds it and has it journalled. Where that fails, and after it has, nothing more
    /// comes of the step.
    pub(crate) fn emit(&mut self, event: Event) {
        if self.has_failed() {
            return;
        }
        let position = JournalPosition(self.state.position.0 + 1);
        let record = Record { position, at: self.now, event };
        let changes = match self.state.fold(&record) {
            Ok(changes) => changes,
            Err(fault) => return self.fault = Some(fault.into()),
        };
        self.break_promises(&record.event);
        self.renew_wall_times(&record.event);
        self.renew_schedule(&changes);
        self.effects.push(Effect::Persist(record));
    }

    /// Answers, once everything so far is durable.
    pub(crate) fn reply(&mut self, to: ReplyTo, answer: Result<Answer, ApiError>) {
        let after = self.state.position;
        self.effects.push(Effect::Reply { to, after, answer: answer.map(Box::new) });
    }

    pub(crate) fn refuse(&mut self, to: ReplyTo, kind: ErrorKind, message: impl Into<String>) {
        self.reply(to, Err(ApiError::new(kind, message)));
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}
