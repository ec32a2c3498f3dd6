//! One step of the core: what is due, the command, what follows from both, answers to waiting hosts.

use crate::{
    blobs::next_collection,
    command::{Command, Envelope},
    core::Core,
    effect::{Answer, Effect},
    fault::CoreFault,
    query::Views,
    reply::{Refusal, Reply},
    submission::PreparedSubmission,
};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sojourn_protocol::{
    api::ExtendRequest,
    assimilation::AssimilationUnit,
    error::ApiError,
    ids::{JobId, LeaseId, TokenId},
    storage::Storage,
    time::UnixMillis,
    tokens::RevokedToken,
};
use sojourn_scheduling::waiters::{ReplyTo, Wake};
use sojourn_state::{Event, Job, JournalPosition};
use std::collections::BTreeSet;

/// Large results that a search for a small one passes over, so that a long queue of them doesn't make the step long.
const MAX_LARGE_RESULTS_PASSED: usize = 64;

impl Core {
    /// Takes one step: first expires all that is due, then carries out the command, then answers hosts that waited for
    /// what has changed.
    ///
    /// # Errors
    /// [`CoreFault`] where it can't go on: nothing of the step may be carried out, and each later step fails
    /// with the same fault.
    pub fn apply(&mut self, input: Envelope) -> Result<Vec<Effect>, CoreFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        self.clock.advance(input.at);
        self.rng = ChaCha8Rng::seed_from_u64(input.seed);
        let step = self
            .skip_unseen_time(&input.command)
            .and_then(|()| self.expire())
            .and_then(|()| self.execute(input.command))
            .and_then(|()| self.settle())
            .and_then(|()| self.dispatch());
        let effects = self.output.take();
        if let Err(fault) = step {
            self.fault = Some(fault.clone());
            return Err(fault);
        }
        debug_assert_eq!(self.check_cheap_invariants(), Ok(()));
        Ok(effects)
    }

    /// A server starts, or takes over: the time in which none is known to have been active counts for little. That is decided
    /// before anything expires.
    fn skip_unseen_time(&mut self, command: &Command) -> Result<(), CoreFault> {
        let skipped = self.clock.unseen_time();
        if !matches!(command, Command::Started) || skipped.0 == 0 {
            return Ok(());
        }
        self.blobs().ledger.record(Event::TimeSkipped { skipped })
    }

    /// Expires all that is due by the clock. In most steps nothing is, so each part is asked before its handler is built.
    fn expire(&mut self) -> Result<(), CoreFault> {
        let now = self.clock.now();
        let is_due = |at: Option<UnixMillis>| at.is_some_and(|at| at <= now);
        if is_due(self.leases.deadlines().next_end()) {
            self.leases().expire()?;
        }
        if is_due(self.index.wall_time()) {
            self.jobs().stop_overdue()?;
        }
        if is_due(self.hosts.fleet().next_check()) {
            self.hosts().check_presence();
        }
        if is_due(self.waiters.polls().first_until()) {
            self.dispatcher().expire_polls()?;
        }
        if is_due(self.queue.first_claim_end()) {
            self.assimilation().expire_claims();
        }
        if is_due(next_collection(&self.state.blobs, &self.config)) {
            self.blobs().collect()?;
        }
        if is_due(self.next_retention) {
            self.next_retention = Some(self.jobs().retain()?);
        }
        self.forget_silent_hosts()?;
        self.waiters.expire_delays(now);
        if is_due(self.hosts.first_cooldown_end()) {
            self.hosts().expire_cooldowns();
        }
        if is_due(self.hosts.strikes().next_end()) {
            self.hosts().expire_holds();
        }
        Ok(())
    }

    /// Now and then, forgets hosts that were silent for long, and finds cached blobs that nobody needs.
    fn forget_silent_hosts(&mut self) -> Result<(), CoreFault> {
        if !self.hosts.is_silent_sweep_due(self.clock.now()) {
            return Ok(());
        }
        // Before sessions are forgotten: a clock that jumps ahead must not make all hosts absent.
        self.hosts().forget_absent()?;
        let silent = self.hosts().forget_silent();
        self.data.forget_hosts(&silent);
        self.placement().find_unneeded_blobs();
        let past = &self.state.past;
        self.leases.forget_dropped_uploads(|lease| past.contains_key(&lease));
        Ok(())
    }

    /// Takes decisions that follow from others. Each has a cheap test, before its handler is built or at its beginning.
    fn settle(&mut self) -> Result<(), CoreFault> {
        if self.state.blobs.any_lost() {
            self.results().fail_lost_evaluations()?;
        }
        if self.state.jobs.values().any(Job::has_verifications) {
            self.results().settle_verifications()?;
        }
        // Only a job with a wall time has a grace, so most servers look at no job here.
        let has_limits = self.index.wall_time().is_some();
        if has_limits && self.state.jobs.values().any(Job::has_evaluated_all) {
            self.jobs().end_evaluated()?;
        }
        let slots = self.hosts.fleet().slots();
        if self.index.searches().are_due(slots) {
            self.jobs().decide_searches(slots)?;
        }
        self.merge_modes().switch()?;
        self.placement().prefer_classes();
        self.placement().reassign_replicas();
        let used_up = self.plans().count_budgets();
        if !used_up.is_empty() {
            self.jobs().end_costly(used_up)?;
        }
        self.plans().request_due();
        if !self.index.movable().is_empty() || self.looks.next().is_some() {
            self.residency().settle()?;
        }
        Ok(())
    }

    /// Answers waiting hosts for which something has changed.
    fn dispatch(&mut self) -> Result<(), CoreFault> {
        if self.data.was_reassigned() {
            self.dispatcher().announce_replicas()?;
        }
        if self.waiters.has_woken() {
            self.dispatcher().answer_waiting_hosts()?;
        }
        if self.planner.next_speculation().is_some_and(|at| at <= self.clock.now()) {
            self.dispatcher().speculate()?;
        }
        Ok(())
    }

    /// The server has started: live leases get a full term, and what was in flight is asked for again.
    fn start(&mut self) -> Result<(), CoreFault> {
        self.clock.start();
        let now = self.clock.now();
        // At the very first start nobody can have led before.
        if self.state.position > JournalPosition::default() {
            self.leaders.start(now);
        }
        self.index.update_all(&self.state, self.planner.estimates_mut(), now);
        self.index.update_wall_time(&self.state);
        for (id, job) in &self.state.jobs {
            self.index.job_changed(*id, Some(job));
        }
        let leases: Vec<LeaseId> = self.state.leases.keys().copied().collect();
        for lease in leases {
            let deadline = self.eligibility().occupancy.new_deadline(lease);
            self.leases.deadlines_mut().set(lease, deadline);
        }
        self.results().take_back_all()?;
        for (job, trial) in self.state.trials_with_results() {
            self.results().process_next(job, trial)?;
        }
        self.blobs().resume_deletions();
        self.next_retention = (!self.config.retention.keeps_all()).then_some(now);
        self.waiters.wake(Wake::All);
        Ok(())
    }

    /// Carries out a command.
    pub(crate) fn execute(&mut self, command: Command) -> Result<(), CoreFault> {
        match command {
            Command::Tick => Ok(()),
            Command::Started => self.start(),
            Command::OnBehalf { to, by, command } => self.execute_on_behalf(to, by, *command),
            Command::Enrol { to, name, token_sha256 } => {
                let reply = self.hosts().enrol(&name, token_sha256, None);
                self.answer(to, reply.map(Answer::Enrolled))
            }
            Command::EnrolWithToken { to, name, token_sha256, with } => {
                let reply = self.hosts().enrol(&name, token_sha256, Some(with));
                self.answer(to, reply.map(Answer::Enrolled))
            }
            Command::CreateToken { to, request, sha256, by } => {
                let reply = self.tokens().create(request, sha256, by);
                self.answer_token(to, reply)
            }
            Command::RotateToken { to, token, sha256 } => {
                let reply = self.tokens().rotate(token, sha256);
                self.answer_token(to, reply)
            }
            Command::SetQuotas { to, token, quotas, by } => {
                let reply = self.tokens().set_quotas(token, quotas, by);
                self.answer_token(to, reply)
            }
            Command::RevokeToken { to, token, of, by } => {
                let reply = self.tokens().revoke(token, of, by);
                self.answer_view(to, reply, |views, (token, hosts)| {
                    let token = views.token(token)?;
                    Ok(Answer::TokenRevoked(Box::new(RevokedToken { token, hosts })))
                })
            }
            Command::ReportMachines { to, machines } => {
                let reply = self.hosts().report_machines(machines);
                self.answer(to, reply.map(Answer::Machines))
            }
            Command::DrainMachines { to, request } => {
                let reply = self.hosts().drain_machines(request);
                self.answer(to, reply.map(Answer::Machines))
            }
            Command::Lead { to, request } => {
                let answer = self.leaders.ask(request, self.clock.now());
                self.answer(to, Ok(Answer::Leader(Box::new(answer))))
            }
            Command::RevokeHost { to, host } => {
                let reply = self.hosts().revoke(host);
                self.answer_view(to, reply, |views, ()| {
                    views.host(host).map(|host| Answer::Host(Box::new(host)))
                })
            }
            Command::BlockHost { to, host, blocked, by } => {
                let reply = self.hosts().block(host, blocked, by);
                self.answer_view(to, reply, |views, ()| {
                    views.host(host).map(|host| Answer::Host(Box::new(host)))
                })
            }
            Command::HearIncarnation { to, host, incarnation, rival } => {
                let reply = self.hosts().hear_incarnation(host, incarnation, rival);
                self.answer(to, reply.map(|()| Answer::IncarnationHeard))
            }
            Command::ForgetHost { to, host } => {
                let view = self.views().host(host);
                let reply = self.hosts().forget(host);
                if reply.is_ok() {
                    self.data.forget_hosts(&BTreeSet::from([host]));
                }
                self.answer(to, reply.and_then(|()| Ok(Answer::Host(Box::new(view?)))))
            }
            Command::Ask { to, host, request } => {
                match self.dispatcher().poll(to, host, request).transpose() {
                    Some(reply) => {
                        self.answer(to, reply.map(|answer| Answer::Work(Box::new(answer))))
                    }
                    None => Ok(()),
                }
            }
            Command::Hangup { to } => {
                self.dispatcher().hang_up(to);
                self.assimilation().hang_up(to);
                Ok(())
            }
            Command::Heartbeat { to, host, request } => {
                let reply = self.leases().heartbeat(host, &request);
                self.answer(to, reply.map(Answer::Heartbeat))
            }
            Command::Release { to, host, leases, reason } => {
                let reply = self.leases().release(host, &leases, &reason);
                self.answer(to, reply.map(Answer::Released))
            }
            Command::AuthorizeUpload { to, host, lease, bytes } => {
                let reply = self.leases().authorize_upload(host, lease, bytes);
                self.answer(to, reply.map(|()| Answer::UploadAuthorized))
            }
            Command::AuthorizeRead { to, host, blob } => {
                let prefetch = self.data.is_prefetch(host, blob);
                let reply = self.leases().authorize_read(host, blob, prefetch);
                self.answer(to, reply.map(|()| Answer::ReadAuthorized))
            }
            Command::Report { to, host, report, uploaded } => {
                let reply = self.results().report(host, report, uploaded);
                self.answer(to, reply.map(Answer::Report))
            }
            Command::TakeAssimilation { to, losses } => {
                // Losses are compared in merges alone.
                let compares = |unit: &AssimilationUnit| {
                    unit.merge.as_ref().is_some_and(|merge| merge.canary.is_some())
                };
                let unit =
                    self.assimilation().claim(to, usize::MAX, |unit| losses || !compares(unit));
                self.answer(to, Ok(Answer::Assimilation(unit)))
            }
            Command::TakeSmallAssimilation { to, max_bytes } => {
                let unit = self
                    .assimilation()
                    .claim(to, MAX_LARGE_RESULTS_PASSED, |unit| unit.is_small(max_bytes));
                self.answer(to, Ok(Answer::Assimilation(unit)))
            }
            Command::RenewAssimilation { to, lease, claim } => {
                let offered = self.assimilation().renew(lease, claim);
                self.answer(to, Ok(Answer::Offered(offered)))
            }
            Command::OfferAssimilated { to, lease, version, checkpoint, merged } => {
                let reply =
                    self.assimilation().offer_assimilated(lease, version, checkpoint, merged);
                self.answer(to, reply.map(Answer::Offered))
            }
            Command::OfferRejected { to, lease, reason, fault } => {
                let reply = self.assimilation().offer_rejected(lease, &reason, fault);
                self.answer(to, reply.map(Answer::Offered))
            }
            Command::Missing { to, blobs } => {
                let reply = self.blobs().missing(&blobs);
                self.answer(to, reply.map(Answer::Missing))
            }
            Command::AuthorizePublish { to, blob } => {
                let reply = self.blobs().authorize_publish(blob);
                self.answer(to, reply.map(|()| Answer::PublishAuthorized))
            }
            Command::Published { to, blob } => {
                let reply = self.blobs().published(blob);
                self.answer(to, reply.map(|()| Answer::Published))
            }
            Command::Deleted { blob } => self.blobs().deleted(blob),
            Command::Lost { blob } => self.blobs().lost(blob),
            Command::Submit { to, spec, data, again, nonce } => {
                let reply = PreparedSubmission::new(spec, data).map_err(Refusal::from);
                let reply =
                    reply.and_then(|prepared| self.jobs().submit(prepared, again, nonce, None));
                self.answer(to, reply.map(Answer::Submitted))
            }
            Command::SubmitPrepared { to, prepared, again, nonce } => {
                let reply = self.jobs().submit(*prepared, again, nonce, None);
                self.answer(to, reply.map(Answer::Submitted))
            }
            Command::Cancel { to, job } => {
                let reply = self.jobs().cancel(job);
                self.answer_job(to, job, reply)
            }
            Command::Evaluate { to, job, trial, split } => {
                let reply = self.jobs().evaluate(job, trial, split);
                self.answer_view(to, reply, |views, name| {
                    let view = views.requested_evaluation(job, &name);
                    view.map(|view| Answer::Evaluation(Box::new(view)))
                })
            }
            Command::Pause { to, job, now } => {
                let reply = self.jobs().pause(job, now);
                self.answer_job(to, job, reply)
            }
            Command::Resume { to, job } => {
                let reply = self.jobs().resume(job);
                self.answer_job(to, job, reply)
            }
            Command::Extend { to, job, epochs, trial, reopen } => {
                let reply = self.jobs().extend(job, ExtendRequest { epochs, trial, reopen }, None);
                self.answer_job(to, job, reply)
            }
            Command::ChangeSearch { to, job, request, by } => {
                let reply = self.jobs().change_search(job, *request, by);
                self.answer(to, reply.map(|answer| Answer::SearchChanged(Box::new(answer))))
            }
            Command::Place { to, job, placement } => {
                let reply = self.jobs().place(job, placement);
                self.answer_job(to, job, reply)
            }
            Command::Note { to, job, note } => {
                let reply = self.jobs().note(job, &note);
                self.answer_job(to, job, reply)
            }
            Command::Delete { to, jobs, preview } => {
                let reply = self.jobs().delete(&jobs, preview);
                self.answer(to, reply.map(|deleted| Answer::Deleted(Box::new(deleted))))
            }
            Command::Rollback { to, job, request } => {
                let reply = self.jobs().rollback(job, request);
                self.answer(to, reply.map(Answer::RolledBack))
            }
            Command::PlanReady { job, version, schedule } => {
                self.plans().ready(
                    job,
                    version,
                    &schedule.map(|schedule| *schedule).unwrap_or_default(),
                );
                Ok(())
            }
            Command::Storage(storage) => {
                self.note_storage(storage);
                Ok(())
            }
            Command::Query { to, query } => {
                let answer = self.views().answer(query);
                self.answer(to, answer.map_err(Refusal::from))
            }
        }
    }

    /// Takes in how much room the server's disk has. What waited for room goes on.
    fn note_storage(&mut self, storage: Storage) {
        let before = std::mem::replace(&mut self.storage, storage);
        if before.is_low() && !storage.is_low() {
            self.waiters.wake(Wake::All);
        }
        if before.is_full() && !storage.is_full() {
            self.output.push(Effect::Assimilate);
        }
    }

    /// Answers a command, once everything so far is durable.
    pub(crate) fn answer(&mut self, to: ReplyTo, reply: Reply<Answer>) -> Result<(), CoreFault> {
        let answer = match reply {
            Ok(answer) => Ok(Box::new(answer)),
            Err(Refusal::Declined(error)) => Err(error),
            Err(Refusal::Fault(fault)) => return Err(fault),
        };
        self.output.push(Effect::Reply { to, after: self.state.position, answer });
        Ok(())
    }

    /// Answers with what a reading command would see now.
    fn answer_view<T>(
        &mut self,
        to: ReplyTo,
        reply: Reply<T>,
        view: impl FnOnce(Views<'_>, T) -> Result<Answer, ApiError>,
    ) -> Result<(), CoreFault> {
        let reply = reply.and_then(|done| Ok(view(self.views(), done)?));
        self.answer(to, reply)
    }

    /// Answers with a token as it is now.
    fn answer_token(&mut self, to: ReplyTo, reply: Reply<TokenId>) -> Result<(), CoreFault> {
        self.answer_view(to, reply, |views, token| {
            views.token(token).map(|token| Answer::Token(Box::new(token)))
        })
    }

    /// Answers with a job as it is now.
    pub(crate) fn answer_job(
        &mut self,
        to: ReplyTo,
        job: JobId,
        reply: Reply<()>,
    ) -> Result<(), CoreFault> {
        self.answer_view(to, reply, |views, ()| {
            views.job_summary(job).map(|job| Answer::JobSummary(Box::new(job)))
        })
    }
}
