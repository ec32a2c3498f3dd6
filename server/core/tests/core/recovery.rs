//! Starts, snapshots, blobs that nobody needs, submissions.

use crate::support::{Bench, HOST, OTHER, data, done, hop};
use sojourn_core::{
    Answer, Command, Core, CoreConfig, EVENT_VERSION, Effect, Event, JournalPosition, Record,
    RecoverError, ReplyTo,
};
use sojourn_protocol::{
    api::{SubmitAnswer, Submitted},
    digest::{BlobRef, Digest},
    error::ErrorKind,
    ids::JobId,
    time::{Millis, UnixMillis},
};

#[test]
fn a_start_gives_live_leases_a_full_term_and_says_open_work_again() {
    let mut bench = Bench::with_job(2, 1);
    let reported = bench.lease(HOST);
    bench.report(HOST, done(&reported)).unwrap();
    let live = bench.lease(OTHER);
    let mut core =
        Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config()).unwrap();
    assert_eq!(core.state(), bench.core.state());
    // Hours later: nothing is thrown away.
    std::mem::swap(&mut bench.core, &mut core);
    bench.now += 8 * 3600 * 1000;
    let started = bench.apply(Command::Started);
    let [Effect::Persist(Record { event: Event::TimeSkipped { .. }, .. }), Effect::Assimilate] =
        started.as_slice()
    else {
        panic!("{started:?}")
    };
    assert_eq!(bench.core.next_deadline(), Some(UnixMillis(bench.now + 10_000)));
    bench.now += 9_000;
    bench.report(OTHER, done(&live)).unwrap();
    assert_eq!(bench.job().leases_expired, 0);
    bench.assimilate();
    bench.assimilate();
    assert_eq!(bench.job().hops, 2);
}

#[test]
fn a_snapshot_of_another_version_and_a_gap_in_the_journal_are_refused() {
    let config = CoreConfig::default();
    let snapshot = String::from_utf8(Core::new(config).snapshot().unwrap()).unwrap();
    let of_version = |n: u32| {
        let written = format!("\"version\":{EVENT_VERSION}");
        let text = snapshot.replacen(&written, &format!("\"version\":{n}"), 1);
        Core::from_snapshot(text.as_bytes(), config)
    };
    assert!(of_version(1).is_ok(), "what an older program wrote is read");
    let refused = of_version(10).unwrap_err();
    assert!(matches!(refused, RecoverError::Version { found: 10 }), "{refused}");
    assert!(refused.to_string().ends_with(&format!("versions 1 to {EVENT_VERSION}")), "{refused}");
    assert!(matches!(Core::from_snapshot(b"{", config), Err(RecoverError::Snapshot(_))));
    let event = Event::BlobDeleted { blob: Digest::of(b"") };
    let record = Record { position: JournalPosition(2), at: UnixMillis(0), event };
    let gap = Core::new(config).fold(&record).unwrap_err();
    assert!(matches!(gap, RecoverError::Gap { last: 0, found: 2 }));
}

#[test]
fn a_blob_that_nobody_needs_is_condemned_then_deleted_and_can_be_saved_in_between() {
    let mut bench = Bench::with_job(1, 1);
    let first = bench.lease(HOST);
    let version_1 = match done(&first).outcome {
        sojourn_protocol::report::Outcome::Trained(trained) => trained.checkpoint,
        other => panic!("{other:?}"),
    };
    bench.finish(HOST, &first);
    let second = bench.lease(HOST);
    assert_eq!(hop(&second).base.blob(), Some(version_1));
    bench.finish(HOST, &second);
    // Version 2 has taken its place; data and version 2 are referred to.
    bench.now += 120_000;
    let condemned = Event::BlobCondemned { blob: version_1.sha256 };
    assert_eq!(bench.events(Command::Tick), std::slice::from_ref(&condemned));
    let missing = |blob| Command::Missing { to: ReplyTo(1), blobs: vec![blob] };
    let lacks = Answer::Missing(vec![version_1.sha256]);
    assert_eq!(bench.answer(missing(version_1)), Ok(lacks), "it must be sent again");
    let published = Command::Published { to: ReplyTo(1), blob: version_1 };
    bench.apply(published.clone());
    assert_eq!(bench.answer(missing(version_1)), Ok(Answer::Missing(Vec::new())));
    bench.now += 120_000;
    assert!(bench.events(Command::Tick).is_empty(), "what is sent for a job to come waits longer");
    bench.now += 24 * 3600 * 1000;
    assert_eq!(bench.events(Command::Tick), [condemned]);
    bench.now += 60_000;
    let effects = bench.apply(Command::Tick);
    assert!(effects.contains(&Effect::Delete(version_1.sha256)), "{effects:?}");
    let refused = bench.answer(published.clone()).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable, "its deletion is under way");
    bench.apply(Command::Deleted { blob: version_1.sha256 });
    assert_eq!(bench.answer(published), Ok(Answer::Published));
}

#[test]
fn a_submission_needs_its_blobs_and_the_same_job_is_not_made_twice() {
    let mut bench = Bench::new();
    assert_eq!(bench.submit(2, 1, false).unwrap_err().kind, ErrorKind::Conflict);
    for blob in data().blobs() {
        bench.apply(Command::Published { to: ReplyTo(1), blob });
    }
    let answer = |job, submitted| {
        Ok(Answer::Submitted(SubmitAnswer { job: JobId(job), trials: 2, submitted }))
    };
    assert_eq!(bench.submit(2, 1, false), answer(1, Submitted::New));
    assert_eq!(bench.submit(2, 1, false), answer(1, Submitted::Existing));
    assert_eq!(bench.submit(2, 1, true), answer(2, Submitted::New));
    bench.apply(Command::Cancel { to: ReplyTo(1), job: JobId(2) });
    assert_eq!(bench.submit(2, 1, false), answer(3, Submitted::New), "the last one was cancelled");
}

#[test]
fn a_job_that_no_job_file_could_make_is_refused() {
    use sojourn_protocol::spec::Dimension;
    let mut bench = Bench::with_job(1, 1);
    let spec = bench.core.state().jobs[&JobId(1)].spec.clone();
    let mut refused = |change: &dyn Fn(&mut sojourn_protocol::spec::JobSpec)| {
        let mut spec = Box::new(spec.clone());
        change(&mut spec);
        let (to, data) = (ReplyTo(1), Box::new(data()));
        let submit = Command::Submit { to, spec, data, again: true, nonce: None };
        let error = bench.answer(submit).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        error.message
    };
    let lr = |value: f64| {
        move |spec: &mut sojourn_protocol::spec::JobSpec| {
            spec.training.optimizer.lr = Dimension::Fixed(value);
        }
    };
    for value in [0.0, -1.0, f64::INFINITY] {
        assert!(refused(&lr(value)).contains("training.optimizer.lr"));
    }
    assert!(refused(&|spec| spec.training.epochs = 0).contains("training.epochs"));
    assert!(refused(&|spec| spec.training.epochs = u32::MAX).contains("training.epochs"));
    assert!(refused(&|spec| spec.placement.threads = u32::MAX).contains("placement.threads"));
    assert!(refused(&|spec| spec.placement.max_hosts = Some(0)).contains("placement.max_hosts"));
    assert!(refused(&|spec| spec.training.batch_size = 0.into()).contains("training.batch_size"));
    assert!(refused(&|spec| spec.models.clear()).contains("empty"));
    assert!(refused(&|spec| spec.placement.threads = 0).contains("placement.threads"));
}

#[test]
fn a_submission_that_takes_hours_keeps_its_blobs_and_a_lost_answer_makes_no_second_job() {
    let mut bench = Bench::new();
    for blob in data().blobs() {
        bench.apply(Command::Published { to: ReplyTo(1), blob });
        bench.now += 3600 * 1000;
        bench.apply(Command::Tick);
    }
    assert!(bench.submit(1, 1, false).is_ok());
    let spec = Box::new(bench.core.state().jobs[&JobId(1)].spec.clone());
    let call = |bench: &mut Bench, nonce: &str| {
        let (to, spec, data) = (ReplyTo(1), spec.clone(), Box::new(data()));
        let nonce = Some(nonce.into());
        match bench.answer(Command::Submit { to, spec, data, again: true, nonce }) {
            Ok(Answer::Submitted(answer)) => answer.job,
            other => panic!("{other:?}"),
        }
    };
    let first = call(&mut bench, "one call");
    assert_eq!(call(&mut bench, "one call"), first);
    assert_ne!(call(&mut bench, "another"), first);
}

#[test]
fn what_the_store_lost_is_waited_for_and_sent_again() {
    let mut bench = Bench::with_job(1, 1);
    let shard = data().train[0].blob;
    let lost = bench.events(Command::Lost { blob: shard.sha256 });
    assert_eq!(lost, [Event::BlobLost { blob: shard.sha256 }]);
    assert!(bench.ask(HOST, crate::support::request(1, Vec::new())).leases.is_empty());
    assert!(bench.job().waiting.is_some_and(|why| why.contains("lost")));
    let missing = Command::Missing { to: ReplyTo(1), blobs: vec![shard] };
    assert_eq!(bench.answer(missing), Ok(Answer::Missing(vec![shard.sha256])));
    bench.apply(Command::Published { to: ReplyTo(1), blob: shard });
    bench.lease(HOST);
    let unknown = Command::Lost { blob: Digest::of(b"never heard of") };
    assert!(bench.events(unknown).is_empty());
}

#[test]
fn a_revoked_host_gets_nothing_and_loses_what_it_has() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.apply(Command::RevokeHost { to: ReplyTo(1), host: HOST });
    assert_eq!(bench.job().leases_live, 0);
    assert_eq!(bench.report(HOST, done(&lease)).unwrap_err().kind, ErrorKind::Unauthorized);
    assert_eq!(hop(&bench.lease(OTHER)).start, hop(&lease).start);
}

#[test]
fn a_host_reads_what_its_leases_name_and_uploads_what_they_declare() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let read = |host, blob| Command::AuthorizeRead { to: ReplyTo(1), host, blob };
    let shard = hop(&lease).shard.blob.sha256;
    assert_eq!(bench.answer(read(HOST, shard)), Ok(Answer::ReadAuthorized));
    assert_eq!(bench.answer(read(OTHER, shard)).unwrap_err().kind, ErrorKind::Forbidden);
    let another = data().train.iter().map(|shard| shard.blob.sha256).find(|blob| *blob != shard);
    let refused = bench.answer(read(HOST, another.unwrap())).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden);
    let upload =
        |host, bytes| Command::AuthorizeUpload { to: ReplyTo(1), host, lease: lease.id, bytes };
    assert_eq!(bench.answer(upload(HOST, lease.upload_bytes)), Ok(Answer::UploadAuthorized));
    let kind = |answer: Result<Answer, sojourn_protocol::error::ApiError>| answer.unwrap_err().kind;
    assert_eq!(kind(bench.answer(upload(HOST, lease.upload_bytes + 1))), ErrorKind::TooLarge);
    assert_eq!(kind(bench.answer(upload(OTHER, lease.upload_bytes))), ErrorKind::Forbidden);
    bench.finish(HOST, &lease);
    assert_eq!(kind(bench.answer(upload(HOST, lease.upload_bytes))), ErrorKind::Conflict);
}

#[test]
fn nothing_is_uploaded_for_a_lease_whose_report_waits_to_be_assimilated() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let (host, bytes) = (HOST, lease.upload_bytes);
    let upload = Command::AuthorizeUpload { to: ReplyTo(1), host, lease: lease.id, bytes };
    assert_eq!(bench.answer(upload.clone()), Ok(Answer::UploadAuthorized));
    bench.report(HOST, done(&lease)).unwrap();
    let refused = bench.answer(upload).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(refused.message.contains("is reported"), "{refused}");
}

#[test]
fn an_assimilator_that_says_nothing_is_forgotten() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    bench.report(HOST, done(&lease)).unwrap();
    let take = Command::TakeAssimilation { to: ReplyTo(1), losses: true };
    assert!(matches!(bench.answer(take.clone()), Ok(Answer::Assimilation(Some(_)))));
    assert_eq!(bench.answer(take.clone()), Ok(Answer::Assimilation(None)));
    bench.now += Millis::from_secs(60).0;
    assert_eq!(bench.apply(Command::Tick), [Effect::Assimilate]);
    assert!(matches!(bench.answer(take), Ok(Answer::Assimilation(Some(_)))));
    let offer = |blob| Command::OfferAssimilated {
        to: ReplyTo(1),
        lease: lease.id,
        version: crate::support::version(1),
        checkpoint: blob,
        merged: None,
    };
    let wrong = BlobRef { sha256: Digest::of(b"another"), bytes: 1 };
    assert_eq!(bench.answer(offer(wrong)).unwrap_err().kind, ErrorKind::Invalid);
}
