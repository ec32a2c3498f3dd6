//! Events that don't fit the state are refused with what doesn't fit, and change nothing.

use crate::support::{Bench, HOST, JOB, done, hop, trained};
use sojourn_core::{
    By, Command, Core, CoreFault, Envelope, Event, FoldError, FoldFault, Folded, JournalPosition,
    LeaseEnd, MergeMode, Record, ReplyTo, RequestedEvaluation, State, UnitKey,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, HostId, JobId, LeaseId, ShardId, TokenId, TrialId, Version},
    manifest::{DataManifest, DataSplit},
    report::{Failure, FailureKind, Outcome, Report, Sums},
    residency::{Category, MoveKind},
    spec::JobSpec,
    time::UnixMillis,
    unit::{Flush, Lease},
    view::MergeRecord,
};
use sojourn_workgen::{ChainError, SearchError};

const NO_JOB: JobId = JobId(99);
const NO_TRIAL: TrialId = TrialId(9);
const NO_HOST: HostId = HostId(99);
const NO_LEASE: LeaseId = LeaseId(99);
const NO_TOKEN: TokenId = TokenId(99);
const TRIAL: TrialId = TrialId(0);

fn next(state: &State, event: Event) -> Record {
    let position = JournalPosition(state.position.0 + 1);
    Record { position, at: UnixMillis(state.at.0 + 1), event }
}

fn fold(state: &mut Folded, event: Event) {
    let record = next(state, event);
    state.fold(&record).unwrap();
}

/// The fault of an event that doesn't fit. The error names its position and kind, and the state stays as it was.
fn fault(state: &Folded, event: Event) -> FoldFault {
    let record = next(state, event);
    let mut after = state.clone();
    let FoldError { position, event, source } = after.fold(&record).unwrap_err();
    assert_eq!((position, event), (record.position, record.event.name()));
    assert_eq!(&after, state, "{source}");
    source
}

/// A host has a live lease of the job's only trial.
fn leased() -> (Bench, Lease) {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    (bench, lease)
}

/// A state in which a lease's result was acknowledged and waits; the checkpoint is in the store.
fn reported() -> (Folded, LeaseId, BlobRef) {
    let (mut bench, lease) = leased();
    let report = done(&lease);
    let Outcome::Trained(trained) = &report.outcome else { panic!("{report:?}") };
    let checkpoint = trained.checkpoint;
    bench.report(HOST, report).unwrap();
    let mut state = bench.core.state().clone();
    fold(&mut state, Event::BlobPublished { blob: checkpoint });
    (state, lease.id, checkpoint)
}

fn assimilated(lease: LeaseId, checkpoint: BlobRef) -> Event {
    Event::Assimilated { lease, version: Version(1), checkpoint, merged: None }
}

fn granted(host: HostId, unit: UnitKey) -> Event {
    Event::LeaseGranted {
        lease: LeaseId(50),
        host,
        device: "cpu".into(),
        unit,
        then: Vec::new(),
        until: None,
        base: Version(0),
        class: None,
        speculative_for: None,
        why: String::new(),
    }
}

/// A state in whose snapshot one text was replaced by another, as only a fault of the program would.
fn altered(state: &State, was: &str, is: &str) -> Core {
    let text = String::from_utf8(sojourn_core::snapshot_of(state).unwrap()).unwrap();
    assert!(text.contains(was), "{text}");
    let config = *Bench::new().core.config();
    Core::from_snapshot(text.replacen(was, is, 1).as_bytes(), config).unwrap()
}

#[test]
fn an_unknown_job_is_named() {
    let (bench, _) = leased();
    let job = NO_JOB;
    let name = RequestedEvaluation { trial: TRIAL, split: DataSplit::Valid, epoch: Epoch(0) };
    let unit = UnitKey::Evaluate { job, trial: TRIAL, epoch: Epoch(0) };
    for event in [
        Event::JobCancelled { job },
        Event::JobPaused { job },
        Event::JobResumed { job },
        Event::JobTimeUp { job },
        Event::JobExtended { job, trials: vec![TRIAL], epochs: 3, named: false, by: None },
        Event::JobExtended { job, trials: Vec::new(), epochs: 3, named: false, by: None },
        Event::JobPlaced {
            job,
            priority: 0,
            slot_share: 1,
            max_hosts: None,
            budget: None,
            deadline: None,
        },
        Event::JobNoted { job, note: "n".into() },
        Event::TrialFailed { job, trial: TRIAL, error: "e".into() },
        Event::TrialOrdered { job, trial: TRIAL, order: MergeMode::Merging, reason: None },
        Event::TrialRolledBack { job, trial: TRIAL, epochs: 0, why: None },
        Event::TrialContinued { job, trial: TRIAL, epochs: 1, why: "w".into(), by: None },
        Event::TrialPlaced { job, trial: TRIAL, priority: 1, by: By::Server },
        categorized(job, TRIAL),
        moved(job, TRIAL, HOST),
        Event::TrialStopped { job, trial: TRIAL, why: "w".into(), by: None },
        Event::SearchExtended { job, trials: 9, by: By::Server },
        Event::SearchEnded { job, why: "w".into(), by: None },
        Event::TrialsAdded {
            job,
            trials: Vec::new(),
            suggested: 0,
            why: "w".into(),
            nonce: None,
            by: None,
        },
        Event::ExtraAsked { job, name },
        Event::ExtraFailed { job, name, error: "e".into() },
        granted(HOST, unit),
    ] {
        assert_eq!(fault(bench.core.state(), event), FoldFault::UnknownJob(job));
    }
}

#[test]
fn an_unknown_trial_is_named() {
    let (bench, _) = leased();
    let (job, trial) = (JOB, NO_TRIAL);
    let unit = UnitKey::Train { job, trial, epoch: Epoch(0), shard: ShardId(0), from: 0 };
    for event in [
        Event::JobExtended { job, trials: vec![TRIAL, trial], epochs: 3, named: false, by: None },
        Event::TrialFailed { job, trial, error: "e".into() },
        Event::TrialOrdered { job, trial, order: MergeMode::Merging, reason: None },
        Event::TrialRolledBack { job, trial, epochs: 0, why: None },
        Event::TrialContinued { job, trial, epochs: 1, why: "w".into(), by: None },
        Event::TrialPlaced { job, trial, priority: 1, by: By::Server },
        categorized(job, trial),
        moved(job, trial, HOST),
        Event::TrialStopped { job, trial, why: "w".into(), by: None },
        granted(HOST, unit),
    ] {
        let unknown = FoldFault::UnknownTrial { job, trial };
        assert_eq!(fault(bench.core.state(), event), unknown);
    }
}

fn categorized(job: JobId, trial: TrialId) -> Event {
    Event::TrialCategorized { job, trial, category: Category::Watching, growth: 0.1 }
}

fn moved(job: JobId, trial: TrialId, to: HostId) -> Event {
    let kind = MoveKind::Speculative;
    Event::TrialMoved { job, trial, from: HOST, to, kind, from_load: 11.0, to_load: 3.5 }
}

#[test]
fn an_unknown_host_is_named() {
    let (bench, _) = leased();
    let unit =
        UnitKey::Train { job: JOB, trial: TRIAL, epoch: Epoch(0), shard: ShardId(0), from: 0 };
    let moved = moved(JOB, TRIAL, NO_HOST);
    for event in [Event::HostRevoked { host: NO_HOST }, granted(NO_HOST, unit), moved] {
        assert_eq!(fault(bench.core.state(), event), FoldFault::UnknownHost(NO_HOST));
    }
}

/// Every event that is about one lease, or about several.
fn of_lease(lease: LeaseId) -> Vec<Event> {
    let failure = Failure { kind: FailureKind::Trainer, message: "e".into() };
    let blob = BlobRef { sha256: Digest::of(b"checkpoint"), bytes: 1 };
    let (valid, sums) = (Sums::default(), Sums::default());
    vec![
        assimilated(lease, blob),
        Event::Evaluated { lease, epoch: Epoch(0), valid, f1: None, own: [].into() },
        Event::ExtraEvaluated { lease, sums },
        Event::Rejected { lease, reason: "r".into(), fault: sojourn_core::Fault::Host },
        Event::Superseded { lease },
        Event::UnitFailed { lease, failure },
        Event::Challenged { lease },
    ]
}

#[test]
fn an_unknown_lease_is_named() {
    let (bench, _) = leased();
    let lease = NO_LEASE;
    let failure = Failure { kind: FailureKind::Trainer, message: "e".into() };
    let report = Box::new(Report { lease, outcome: Outcome::Failed(failure) });
    let mut events = of_lease(lease);
    events.extend([
        Event::LeaseEnded { lease, end: LeaseEnd::Silent },
        Event::ReportAcknowledged { report, host: HOST },
        Event::Unverified { lease },
        Event::Verified { confirmed: vec![lease], refuted: Vec::new() },
        Event::Verified { confirmed: Vec::new(), refuted: vec![lease] },
    ]);
    for event in events {
        assert_eq!(fault(bench.core.state(), event), FoldFault::UnknownLease(lease));
    }
}

#[test]
fn a_lease_that_has_ended_does_not_end_again() {
    let (state, lease, _) = reported();
    let end = Event::LeaseEnded { lease, end: LeaseEnd::Silent };
    assert_eq!(fault(&state, end), FoldFault::NotLive(lease));
    let failure = Failure { kind: FailureKind::Trainer, message: "e".into() };
    let report = Box::new(Report { lease, outcome: Outcome::Failed(failure) });
    let again = Event::ReportAcknowledged { report, host: HOST };
    assert_eq!(fault(&state, again), FoldFault::NotLive(lease));
}

#[test]
fn a_report_that_was_not_acknowledged_has_no_end() {
    let (bench, live) = leased();
    let mut lapsed = bench.core.state().clone();
    fold(&mut lapsed, Event::LeaseEnded { lease: live.id, end: LeaseEnd::Silent });
    let (mut ended, lease, _) = reported();
    fold(&mut ended, Event::Superseded { lease });
    let states: [(&Folded, _); 3] =
        [(bench.core.state(), live.id), (&lapsed, live.id), (&ended, lease)];
    for (state, lease) in states {
        for event in of_lease(lease) {
            assert_eq!(fault(state, event), FoldFault::NotAcknowledged(lease));
        }
        let unverified = Event::Unverified { lease };
        assert_eq!(fault(state, unverified), FoldFault::NotAcknowledged(lease));
    }
}

#[test]
fn an_evaluation_that_is_not_open_is_named() {
    let (bench, _) = leased();
    let (job, trial, epoch) = (JOB, TRIAL, Epoch(0));
    let unit = UnitKey::Evaluate { job, trial, epoch };
    let unknown = fault(bench.core.state(), granted(HOST, unit));
    assert_eq!(unknown, FoldFault::UnknownEvaluation(unit));
    let name = RequestedEvaluation { trial, split: DataSplit::Valid, epoch };
    let unit = UnitKey::Extra { job, name };
    for event in [
        granted(HOST, unit),
        Event::ExtraAsked { job, name },
        Event::ExtraFailed { job, name, error: "e".into() },
    ] {
        assert_eq!(fault(bench.core.state(), event), FoldFault::UnknownEvaluation(unit));
    }
}

#[test]
fn a_blob_that_the_store_has_not_is_named() {
    let (state, lease, _) = reported();
    let blob = Digest::of(b"elsewhere");
    for event in [
        Event::BlobCondemned { blob },
        Event::BlobDoomed { blob },
        Event::BlobDeleted { blob },
        Event::BlobLost { blob },
        assimilated(lease, BlobRef { sha256: blob, bytes: 1 }),
    ] {
        assert_eq!(fault(&state, event), FoldFault::UnknownBlob(blob));
    }
    let first = state.jobs[&JOB].blobs().next().unwrap().sha256;
    let empty = Core::new(*Bench::new().core.config());
    assert_eq!(fault(empty.state(), submitted(&state, |_, _| {})), FoldFault::UnknownBlob(first));
}

/// A second job, like the first but for what is changed.
fn submitted(state: &State, change: impl FnOnce(&mut JobSpec, &mut DataManifest)) -> Event {
    let known = &state.jobs[&JOB];
    let (mut spec, mut data) = (Box::new(known.spec.clone()), Box::new(known.data.clone()));
    change(&mut spec, &mut data);
    let (key, at_end) = (Digest::of(b"another"), known.at_end);
    Event::JobSubmitted { job: JobId(2), spec, data, key, nonce: None, at_end, by: None }
}

#[test]
fn a_job_whose_spec_describes_no_trials_is_refused() {
    let (state, ..) = reported();
    let source = SearchError::Empty { dimension: "model".into() };
    let without_models = submitted(&state, |spec, _| spec.models.clear());
    let fault = fault(&state, without_models);
    assert_eq!(fault, FoldFault::InvalidSpec { job: JobId(2), source });
}

#[test]
fn a_job_whose_model_does_not_fit_its_data_is_refused() {
    let (state, ..) = reported();
    let without_values = submitted(&state, |_, data| data.shape.clear());
    let fault = fault(&state, without_values);
    assert!(matches!(fault, FoldFault::InvalidModel { trial: TRIAL, .. }), "{fault:?}");
}

#[test]
fn a_trial_goes_back_to_kept_epochs_alone() {
    let (bench, _) = leased();
    let back = Event::TrialRolledBack { job: JOB, trial: TRIAL, epochs: 2, why: None };
    let not_kept = FoldFault::NotKept { job: JOB, trial: TRIAL, epoch: Epoch(1) };
    assert_eq!(fault(bench.core.state(), back), not_kept);
}

#[test]
fn a_hop_is_no_evaluation_and_an_evaluation_no_hop() {
    let (state, lease, checkpoint) = reported();
    let none = Sums::default;
    for event in [
        Event::Evaluated { lease, epoch: Epoch(0), valid: none(), f1: None, own: [].into() },
        Event::ExtraEvaluated { lease, sums: none() },
    ] {
        assert_eq!(fault(&state, event), FoldFault::WrongUnit(lease));
    }
    let mut bench = Bench::with_job(1, 1);
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let evaluation = bench.lease(HOST);
    let lease = evaluation.id;
    let mut state = bench.core.state().clone();
    fold(&mut state, Event::BlobPublished { blob: checkpoint });
    let report = Box::new(done(&evaluation));
    fold(&mut state, Event::ReportAcknowledged { report, host: HOST });
    for event in [
        assimilated(lease, checkpoint),
        Event::ExtraEvaluated { lease, sums: none() },
        Event::Evaluated { lease, epoch: Epoch(1), valid: none(), f1: None, own: [].into() },
    ] {
        assert_eq!(fault(&state, event), FoldFault::WrongUnit(lease));
    }
}

#[test]
fn a_result_is_not_merged_in_hop_order() {
    let (state, lease, checkpoint) = reported();
    let (base, staleness, in_flight) = (Version(0), 0, 1);
    let flush = Flush::Now;
    let record = MergeRecord { base, staleness, in_flight, flush, from: None, state: checkpoint };
    let merged = Some(record);
    let event = Event::Assimilated { lease, version: Version(1), checkpoint, merged };
    assert_eq!(fault(&state, event), FoldFault::NotMerging(lease));
}

/// A report is marked as assimilated only after its part was taken into the chain.
#[test]
fn a_part_that_does_not_continue_the_chain_is_refused() {
    let (bench, lease) = leased();
    let mut trained = trained(&lease, 1);
    let checkpoint = trained.checkpoint;
    trained.end.batch += 1;
    let (start, end) = (hop(&lease).start, trained.end);
    let report = Box::new(Report { lease: lease.id, outcome: Outcome::Trained(trained) });
    let mut state = bench.core.state().clone();
    fold(&mut state, Event::ReportAcknowledged { report, host: HOST });
    fold(&mut state, Event::BlobPublished { blob: checkpoint });
    let bad_end = FoldFault::Chain(ChainError::BadEnd { start, end });
    assert_eq!(fault(&state, assimilated(lease.id, checkpoint)), bad_end);
    // It can still be refused.
    fold(&mut state, Event::Superseded { lease: lease.id });
}

#[test]
fn a_count_never_falls_below_zero() {
    let (bench, lease) = leased();
    let end = || Event::LeaseEnded { lease: lease.id, end: LeaseEnd::Silent };
    let none_live = altered(bench.core.state(), "\"leases_live\":1", "\"leases_live\":0");
    let below_zero = FoldFault::CountBelowZero("live leases");
    assert_eq!(fault(none_live.state(), end()), below_zero);
    let (state, lease, checkpoint) = reported();
    let no_visits = altered(&state, "\"load\":[1,1]", "\"load\":[0,0]");
    let below_zero = FoldFault::CountBelowZero("visits to a shard");
    assert_eq!(fault(no_visits.state(), assimilated(lease, checkpoint)), below_zero);
}

#[test]
fn after_a_fault_the_core_answers_no_more() {
    let (bench, lease) = leased();
    let mut core = altered(bench.core.state(), "\"leases_live\":1", "\"leases_live\":0");
    let apply = |core: &mut Core, command| {
        core.apply(Envelope { at: UnixMillis(bench.now), seed: 1, command })
    };
    apply(&mut core, Command::Started).unwrap();
    let position = JournalPosition(core.position().0 + 1);
    let (to, leases, reason) = (ReplyTo(1), vec![lease.id], "stopping".into());
    let release = Command::Release { to, host: HOST, leases, reason };
    let source = FoldFault::CountBelowZero("live leases");
    let fault = CoreFault::Fold(FoldError { position, event: "lease-ended", source });
    assert_eq!(apply(&mut core, release), Err(fault.clone()));
    assert_eq!(apply(&mut core, Command::Tick), Err(fault));
}

/// Where an event of a journal names something, it names something that isn't there; and the fault that must come.
pub(crate) fn naming_nothing(event: &Event) -> Option<(Event, FoldFault)> {
    let mut event = event.clone();
    let blob_of_none = Digest::of(b"nowhere");
    let fault = match &mut event {
        Event::HostEnrolled { .. }
        | Event::TokenCreated { .. }
        | Event::MachinesReported { .. }
        | Event::BlobPublished { .. }
        | Event::TimeSkipped { .. }
        | Event::JobSubmitted { .. } => {
            return None;
        }
        Event::TokenRotated { token, .. }
        | Event::TokenRevoked { token, .. }
        | Event::TokenQuotasSet { token, .. }
        | Event::TokenForgotten { token } => {
            *token = NO_TOKEN;
            FoldFault::UnknownToken(NO_TOKEN)
        }
        Event::HostsSeen { hosts } => {
            hosts.push(NO_HOST);
            FoldFault::UnknownHost(NO_HOST)
        }
        Event::HostRevoked { host }
        | Event::HostBlocked { host, .. }
        | Event::HostUnblocked { host, .. }
        | Event::HostForgotten { host }
        | Event::LeaseGranted { host, .. } => {
            *host = NO_HOST;
            FoldFault::UnknownHost(NO_HOST)
        }
        Event::BlobCondemned { blob }
        | Event::BlobDoomed { blob }
        | Event::BlobDeleted { blob }
        | Event::BlobLost { blob } => {
            *blob = blob_of_none;
            FoldFault::UnknownBlob(blob_of_none)
        }
        Event::JobCancelled { job }
        | Event::JobPaused { job }
        | Event::JobResumed { job }
        | Event::JobTrainingOver { job, .. }
        | Event::JobTimeUp { job }
        | Event::JobExtended { job, .. }
        | Event::JobPlaced { job, .. }
        | Event::JobNoted { job, .. }
        | Event::JobThinned { job }
        | Event::JobDeleted { job }
        | Event::RollbackAsked { job, .. }
        | Event::TrialsAdded { job, .. }
        | Event::SearchExtended { job, .. }
        | Event::SearchEnded { job, .. }
        | Event::SpaceChanged { job, .. }
        | Event::ExtraAsked { job, .. }
        | Event::ExtraFailed { job, .. } => {
            *job = NO_JOB;
            FoldFault::UnknownJob(NO_JOB)
        }
        Event::TrialRolledBack { job, trial, .. }
        | Event::TrialContinued { job, trial, .. }
        | Event::TrialRetried { job, trial, .. }
        | Event::TrialStopped { job, trial, .. }
        | Event::TrialPlaced { job, trial, .. }
        | Event::TrialCategorized { job, trial, .. }
        | Event::TrialMoved { job, trial, .. }
        | Event::TrialOrdered { job, trial, .. }
        | Event::TrialFailed { job, trial, .. } => {
            *trial = NO_TRIAL;
            FoldFault::UnknownTrial { job: *job, trial: NO_TRIAL }
        }
        Event::ReportAcknowledged { report, .. } => {
            report.lease = LeaseId(u64::MAX);
            FoldFault::UnknownLease(LeaseId(u64::MAX))
        }
        Event::Verified { confirmed, .. } => {
            *confirmed = vec![LeaseId(u64::MAX)];
            FoldFault::UnknownLease(LeaseId(u64::MAX))
        }
        Event::LeaseEnded { lease, .. }
        | Event::Assimilated { lease, .. }
        | Event::Evaluated { lease, .. }
        | Event::Rejected { lease, .. }
        | Event::Superseded { lease }
        | Event::UnitFailed { lease, .. }
        | Event::Challenged { lease }
        | Event::Unverified { lease }
        | Event::ExtraEvaluated { lease, .. } => {
            *lease = LeaseId(u64::MAX);
            FoldFault::UnknownLease(LeaseId(u64::MAX))
        }
    };
    Some((event, fault))
}
