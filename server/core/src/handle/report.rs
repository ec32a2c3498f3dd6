//! A host reports: acknowledged once, ended once, answered alike each time.

use crate::{
    command::ReplyTo,
    core::Core,
    effect::{Answer, Effect},
    event::{Event, Fault, LeaseEnd, UnitKey},
    state::{Job, Lease, Past, PastState, Trial},
};
use sojourn_protocol::{
    api::ReportAnswer,
    digest::BlobRef,
    error::ErrorKind,
    ids::{HostId, JobId, LeaseId, ShardId, TrialId},
    inventory::Workload,
    manifest::{DataSplit, Labels},
    metrics::{ByClass, ClassDetail, Counting},
    position::Position,
    report::{Evaluated, Failure, FailureKind, Outcome, Report, ReportState, Sums, Trained},
    time::{Millis, UnixMillis},
    unit::shard_index,
};

/// Trainer errors at one unit that count against the host (on one) or the job (on as many hosts).
const MOST_FAILURES: u32 = 3;
/// A slot's clock and ours may differ by this much over one unit.
const CLOCK_SLACK: Millis = Millis(1000);
/// The largest sum of losses that is believed.
const LARGEST_LOSS: f64 = 1e100;
/// The longest error message that is kept, in characters.
const LONGEST_MESSAGE: usize = 8_000;
/// The longest rest of a host.
const LONGEST_REST: Millis = Millis::from_secs(3600);

impl Core {
    pub(crate) fn report(
        &mut self,
        to: ReplyTo,
        host: HostId,
        report: Report,
        uploaded: Option<BlobRef>,
    ) {
        if self.refuse_stranger(to, host) {
            return;
        }
        let id = report.lease;
        let (lease, state) = match (self.state.leases.get(&id), self.state.past.get(&id)) {
            (Some(lease), _) => (lease.clone(), None),
            (None, Some(past)) => (past.lease.clone(), past.report_state()),
            (None, None) => return self.refuse_unknown(to, host, id),
        };
        if lease.host != host {
            return self.refuse(to, ErrorKind::Forbidden, format!("lease {id} is another host's"));
        }
        if let Some(state) = state {
            return self.reply(to, Ok(Answer::Report(ReportAnswer { lease: id, state })));
        }
        let wanted = self.state.is_wanted(&lease)
            && !self.was_dropped(id)
            && !self.is_outrun(&lease, &report.outcome);
        let refusal = if wanted { self.mismatch(&lease, &report.outcome) } else { None };
        if let Outcome::Trained(trained) = &report.outcome
            && wanted
            && refusal.is_none()
            && uploaded != Some(trained.checkpoint)
        {
            let message = format!("upload the checkpoint of lease {id} first");
            return self.refuse(to, ErrorKind::Conflict, message);
        }
        let told = self.soft.terms.get(&id).map_or(lease.granted_at, |term| term.told);
        self.soft.clear_term(id);
        self.soft.late.remove(&id);
        self.soft.dropped.remove(&id);
        self.soft.returns.remove(&host);
        let mut report = report;
        self.credit(told, &mut report.outcome);
        trim(&mut report.outcome, wanted);
        if self.state.leases.contains_key(&id) {
            self.settle_share(&lease, &report.outcome);
        }
        let outcome = report.outcome.clone();
        self.emit(Event::ReportAcknowledged { report: Box::new(report), host });
        let job = lease.unit.job();
        let trained = wanted && refusal.is_none() && matches!(outcome, Outcome::Trained(_));
        if let Some(reason) = refusal {
            self.emit(Event::Rejected { lease: id, reason, fault: Fault::Host });
            self.effect(Effect::DropUpload(id));
            self.rest_if_failing(host);
        } else {
            self.end_or_queue(&lease, outcome, wanted);
        }
        let job = self.state.jobs.get(&job);
        let capped = job.is_some_and(|job| job.spec.placement.max_hosts.is_some());
        // A trained hop opens nothing before it is taken in, unless the job's hosts are counted.
        self.soft.work_changed |= !trained || capped;
        let state = self.state.past.get(&id).and_then(|past| past.report_state());
        let state = state.unwrap_or(ReportState::Acknowledged);
        self.reply(to, Ok(Answer::Report(ReportAnswer { lease: id, state })));
    }

    /// Was what came under this lease thrown away? Then whoever reports it may have seen its upload a
    /// moment before.
    fn was_dropped(&self, lease: LeaseId) -> bool {
        let taken_back = |past: &Past| {
            let end = &past.state;
            matches!(end, PastState::Lapsed(LeaseEnd::Revoked | LeaseEnd::GivenBack { .. }))
        };
        self.soft.dropped.contains(&lease) || self.state.past.get(&lease).is_some_and(taken_back)
    }

    /// Is it a mere part of hops that another host is at? To use it would end the other's attempt: however far
    /// that is, where this host had lost its lease; else where the other is further.
    fn is_outrun(&self, lease: &Lease, outcome: &Outcome) -> bool {
        let (Outcome::Trained(trained), UnitKey::Train { shard, .. }) = (outcome, lease.unit)
        else {
            return false;
        };
        let job = self.state.jobs.get(&lease.unit.job());
        let Some(trial) = job.and_then(|job| job.trial(lease.unit.trial())) else { return false };
        let way = std::iter::once(shard).chain(lease.then.iter().copied());
        let whole: u64 = way.map(|shard| u64::from(trial.chain.left_of(shard))).sum();
        let done = trained.end.step.saturating_sub(trial.chain.step());
        let is_part = done < whole;
        let is_live = self.state.leases.contains_key(&lease.id);
        let is_further = |live: LeaseId| {
            let other = self.state.leases.get(&live).is_some_and(|live| live.host != lease.host);
            let theirs = self.soft.terms.get(&live).map_or(0, |term| u64::from(term.done));
            other && (!is_live || theirs >= done)
        };
        is_part && self.live_attempts(&lease.unit).into_iter().any(is_further)
    }

    /// What the job's unit took of a slot counts towards its share.
    fn settle_share(&mut self, lease: &Lease, outcome: &Outcome) {
        match outcome {
            Outcome::Trained(Trained { train_micros, .. })
            | Outcome::Evaluated(Evaluated { train_micros, .. }) => {
                let job = lease.unit.job();
                let micros = self.weighed(job, *train_micros);
                self.shares_of(job).settle(job, lease.id, micros);
            }
            Outcome::Failed(_) => self.settle_held(lease),
        }
    }

    fn end_or_queue(&mut self, lease: &Lease, outcome: Outcome, wanted: bool) {
        match outcome {
            Outcome::Failed(failure) if wanted => self.unit_failed(lease, failure),
            Outcome::Evaluated(evaluated) if wanted => match lease.unit {
                UnitKey::Extra { .. } => self.extra_evaluated(lease, &evaluated),
                _ => self.evaluated(lease, &evaluated),
            },
            Outcome::Trained(trained) if wanted => {
                self.measure(lease, trained.sums.rows, trained.train_micros);
                self.queue_assimilation(lease.id);
            }
            Outcome::Failed(_) | Outcome::Evaluated(_) | Outcome::Trained(_) => {
                self.emit(Event::Superseded { lease: lease.id });
                self.effect(Effect::DropUpload(lease.id));
            }
        }
    }

    /// Why an outcome can't be one of this wanted lease.
    fn mismatch(&self, lease: &Lease, outcome: &Outcome) -> Option<String> {
        let job = self.state.jobs.get(&lease.unit.job())?;
        let trial = job.trial(lease.unit.trial())?;
        match (outcome, lease.unit) {
            (Outcome::Failed(_), _) => None,
            (Outcome::Trained(trained), UnitKey::Train { .. }) => wrong_base(lease, trained)
                .or_else(|| wrong_position(lease, trial, trained))
                .or_else(|| wrong_rows(job, lease, trial, trained))
                .or_else(|| wrong_sums(job, &[trained.sums], None)),
            (Outcome::Evaluated(evaluated), UnitKey::Evaluate { .. }) => {
                let counting = job.spec.search.counting(&job.data.labels);
                wrong_evaluation(job, lease, evaluated, DataSplit::Valid, counting)
            }
            (Outcome::Evaluated(evaluated), UnitKey::Extra { name, .. }) => {
                let counting = job.spec.search.full_counting(&job.data.labels);
                wrong_evaluation(job, lease, evaluated, name.split, counting)
            }
            (Outcome::Trained(_), UnitKey::Evaluate { .. } | UnitKey::Extra { .. }) => {
                Some("a hop was reported for an evaluation".into())
            }
            (Outcome::Evaluated(_), UnitKey::Train { .. }) => {
                Some("an evaluation was reported for a hop".into())
            }
        }
    }

    /// Nobody is credited with more training than the time that they have had the unit.
    fn credit(&self, told: UnixMillis, outcome: &mut Outcome) {
        let had = (self.now - told).0.saturating_add(CLOCK_SLACK.0);
        let micros = match outcome {
            Outcome::Trained(trained) => &mut trained.train_micros,
            Outcome::Evaluated(evaluated) => &mut evaluated.train_micros,
            Outcome::Failed(_) => return,
        };
        *micros = (*micros).min(had.saturating_mul(1000));
    }

    fn evaluated(&mut self, lease: &Lease, evaluated: &Evaluated) {
        let UnitKey::Evaluate { epoch, .. } = lease.unit else { return };
        let others = self.live_attempts(&lease.unit);
        let valid = evaluated.sums();
        let f1 = evaluated.by_class.as_ref().map(ByClass::macro_f1);
        self.emit(Event::Evaluated { lease: lease.id, epoch, valid, f1 });
        self.revoke(others);
    }

    fn measure(&mut self, lease: &Lease, rows: u64, micros: u64) {
        let place = self.place_of(lease);
        let of = (lease.unit.job(), lease.unit.trial());
        self.soft.schedule.estimates.measured(place, of, rows, micros);
        if self.soft.schedule.estimates.have_changed() {
            self.rank_all();
            self.plans_outdated();
        }
        self.renew_fleet(lease.host);
    }

    /// The three-failures rule (DESIGN section 4).
    fn unit_failed(&mut self, lease: &Lease, failure: Failure) {
        let (job, trial) = (lease.unit.job(), lease.unit.trial());
        self.emit(Event::UnitFailed { lease: lease.id, failure: failure.clone() });
        self.effect(Effect::DropUpload(lease.id));
        if failure.kind == FailureKind::OutOfMemory {
            self.ran_out_of_memory(lease);
        }
        let failures = self.state.jobs.get(&job).and_then(|job| job.failures_of(&lease.unit));
        let hosts = failures.map_or(0, |failures| failures.len());
        let count = failures.map_or(0, |failures| failures.values().map(|f| f.count).sum());
        let non_finite = failures.map_or(0, |failures| {
            let finals = failures.values().filter(|f| f.last.kind == FailureKind::NonFinite);
            finals.count()
        });
        let ends = match failure.kind {
            FailureKind::NonFinite => non_finite >= 2 || !self.has_other_host(lease),
            // It waits for a host with more memory; where one after the other had too little, it is the job.
            FailureKind::OutOfMemory => {
                u32::try_from(hosts).is_ok_and(|hosts| hosts >= MOST_FAILURES)
                    && self.unit_fits_nowhere(lease)
            }
            FailureKind::Trainer
            | FailureKind::Died
            | FailureKind::Stalled
            | FailureKind::Damaged => match lease.unit {
                // Nothing is lost with it, and somebody waits: so whoever's fault it is.
                UnitKey::Extra { .. } => count >= MOST_FAILURES,
                UnitKey::Train { .. } | UnitKey::Evaluate { .. } => {
                    u32::try_from(hosts).is_ok_and(|hosts| hosts >= MOST_FAILURES)
                }
            },
        };
        match lease.unit {
            UnitKey::Extra { name, .. } if ends => self.fail_extra(job, name, failure.message),
            _ if ends => self.fail_trial(job, trial, failure.message),
            _ => self.rest_if_failing(lease.host),
        }
    }

    /// The unit's workload isn't given to that device again.
    fn ran_out_of_memory(&mut self, lease: &Lease) {
        let Some(trial) = self.state.trial(lease.unit.job(), lease.unit.trial()) else { return };
        let workload = Workload::of(&trial.context);
        let contact = self.soft.contacts.get_mut(&lease.host);
        if let Some(slots) = contact.and_then(|contact| contact.devices.get_mut(&lease.device)) {
            slots.ran_out.insert(workload);
            // Its shards may need another home.
            self.soft.schedule.housed.0 = u64::MAX;
        }
    }

    fn unit_fits_nowhere(&self, lease: &Lease) -> bool {
        let Some(job) = self.state.jobs.get(&lease.unit.job()) else { return false };
        job.trial(lease.unit.trial()).is_some_and(|trial| self.fits_nowhere(job, trial))
    }

    fn has_other_host(&self, lease: &Lease) -> bool {
        let Some(job) = self.state.jobs.get(&lease.unit.job()) else { return false };
        let class = job.trial(lease.unit.trial()).and_then(|trial| self.kept_class(job, trial));
        if self.hosts_in_contact(class).any(|host| host != lease.host) {
            return true;
        }
        // Right after a start the others have not had the time to show themselves.
        let early = self.now < self.soft.started_at + self.config.lease_term;
        early && self.state.hosts.values().any(|host| host.id != lease.host && !host.revoked)
    }

    fn fail_trial(&mut self, job: JobId, trial: TrialId, error: String) {
        let failures = self.state.trial(job, trial).map(Trial::all_failures);
        for host in failures.unwrap_or_default().keys() {
            self.soft.resting.remove(host);
        }
        let cleanup = self.state.trial(job, trial).map(cleanup_of).unwrap_or_default();
        self.emit(Event::TrialFailed { job, trial, error });
        self.clean_up(cleanup);
    }

    /// Ends what was under way for a trial that has ended.
    pub(crate) fn clean_up(&mut self, (live, awaiting): (Vec<LeaseId>, Vec<LeaseId>)) {
        for lease in live {
            self.end_lease(lease, LeaseEnd::Revoked);
        }
        for lease in awaiting {
            self.supersede(lease);
        }
    }

    /// Ends an acknowledged report that isn't wanted any more.
    pub(crate) fn supersede(&mut self, lease: LeaseId) {
        self.soft.assimilating.remove(&lease);
        let host = self.state.past.get(&lease).map(|past| past.lease.host);
        self.soft.notify.extend(host);
        self.emit(Event::Superseded { lease });
        self.effect(Effect::DropUpload(lease));
    }

    /// A host that fails again and again is given nothing for a while, longer each time.
    pub(crate) fn rest_if_failing(&mut self, host: HostId) {
        let in_a_row = self.state.hosts.get(&host).map_or(0, |host| host.failures_in_a_row);
        if in_a_row == 0 || !in_a_row.is_multiple_of(MOST_FAILURES) {
            return;
        }
        let doublings = (in_a_row / MOST_FAILURES - 1).min(20);
        let rest = self.config.first_rest.0.saturating_mul(1 << doublings).min(LONGEST_REST.0);
        self.soft.resting.insert(host, self.now + Millis(rest));
    }
}

/// What is under way for a trial: its live leases, and its results that wait.
pub(crate) fn cleanup_of(trial: &Trial) -> (Vec<LeaseId>, Vec<LeaseId>) {
    (trial.live_leases(), trial.awaiting.iter().copied().collect())
}

/// What a host says, as text that a terminal shows and doesn't obey, of at most `most` characters.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(shown).take(most).collect()
}

/// Cuts what nobody reads, so that no host can fill the journal with it.
fn trim(outcome: &mut Outcome, wanted: bool) {
    match outcome {
        Outcome::Failed(failure) => failure.message = plain(&failure.message, LONGEST_MESSAGE),
        Outcome::Evaluated(evaluated) if !wanted => {
            evaluated.shards.clear();
            evaluated.by_class = None;
        }
        Outcome::Evaluated(_) | Outcome::Trained(_) => {}
    }
}

fn wrong_base(lease: &Lease, trained: &Trained) -> Option<String> {
    (trained.base != lease.base)
        .then(|| format!("trained on version {} instead of {}", trained.base, lease.base))
}

fn wrong_position(lease: &Lease, trial: &Trial, trained: &Trained) -> Option<String> {
    let UnitKey::Train { shard, from, .. } = lease.unit else { return None };
    let start = trial.chain.next(shard)?;
    let mut chain = trial.chain.clone();
    if start.batch != from {
        return Some(format!("batch {from} of shard {shard} is trained already"));
    }
    if trained.checkpoint.bytes != trial.checkpoint_bytes {
        let (is, wanted) = (trained.checkpoint.bytes, trial.checkpoint_bytes);
        return Some(format!("the checkpoint has {is} bytes instead of {wanted}"));
    }
    chain.advance_through(start, &lease.then, trained.end).err().map(|error| error.to_string())
}

/// The rows that were trained are those of the batches that were.
fn wrong_rows(job: &Job, lease: &Lease, trial: &Trial, trained: &Trained) -> Option<String> {
    let UnitKey::Train { shard, from, .. } = lease.unit else { return None };
    let batch_size = trial.context.config.training.batch_size;
    let Position { shard: last, batch, .. } = trained.end;
    let rows = |shard: ShardId, until| {
        let of = job.data.train.get(shard_index(shard));
        of.map_or(0, |of| of.rows_before(until, batch_size))
    };
    let way = std::iter::once(shard).chain(lease.then.iter().copied());
    let whole: u64 = way.take_while(|on| *on != last).map(|on| rows(on, u32::MAX)).sum();
    let wanted = (whole + rows(last, batch)).saturating_sub(rows(shard, from));
    let is = trained.sums.rows;
    (is != wanted).then(|| format!("{is} rows were trained instead of {wanted}"))
}

/// The version, the rows and the counts are those that were asked for.
fn wrong_evaluation(
    job: &Job,
    lease: &Lease,
    evaluated: &Evaluated,
    split: DataSplit,
    counting: Counting,
) -> Option<String> {
    let shards = job.data.split(split);
    let rows: Vec<u64> = shards.iter().map(|shard| u64::from(shard.rows)).collect();
    let counted: Vec<u64> = evaluated.shards.iter().map(|sums| sums.rows).collect();
    if evaluated.version != lease.base {
        let (is, wanted) = (evaluated.version, lease.base);
        Some(format!("version {is} was evaluated instead of {wanted}"))
    } else if rows != counted {
        Some(format!("rows {counted:?} were evaluated instead of {rows:?}"))
    } else {
        wrong_sums(job, &evaluated.shards, counting.top_k)
            .or_else(|| wrong_classes(job, evaluated, counting.by_class))
    }
}

/// Losses that sums over a whole job can hold, and no more hits than rows. `top_k`: the k of hits
/// among the largest outputs, where they were to be counted.
fn wrong_sums(job: &Job, sums: &[Sums], top_k: Option<u32>) -> Option<String> {
    let classes = matches!(job.data.labels, Labels::Classes(_));
    sums.iter().find_map(|sums| {
        if !(0.0..=LARGEST_LOSS).contains(&sums.loss) {
            Some(format!("a loss can't be {}", sums.loss))
        } else if sums.correct.is_some() != classes {
            Some("hits are counted for classes, and for nothing else".into())
        } else if sums.correct.is_some_and(|correct| correct > sums.rows) {
            Some("more rows are correct than there are".into())
        } else if sums.top_k.is_some() != top_k.is_some() {
            Some("hits among the largest outputs are counted where that is asked for".into())
        } else if sums.top_k.is_some_and(|hits| hits > sums.rows || Some(hits) < sums.correct) {
            Some("the hits among the largest outputs can't be so many".into())
        } else {
            None
        }
    })
}

/// What was counted by class is what was to be counted, over the rows of the sums.
fn wrong_classes(job: &Job, evaluated: &Evaluated, asked: ClassDetail) -> Option<String> {
    let Some(by_class) = &evaluated.by_class else {
        return (asked != ClassDetail::Nothing).then(|| "nothing was counted by class".into());
    };
    if by_class.detail() != asked {
        return Some("something else was counted by class than what was asked for".into());
    }
    by_class.fault(job.data.labels.outputs(), &evaluated.sums())
}
