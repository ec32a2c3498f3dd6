//! Refusals of what doesn't fit: a journal or a state at the start, a step of a core that fails while it runs.

use crate::support::{Gated, ask, enrol, hosts, opens, submit};
use sojourn_core::{
    Answer, Command, Core, Event, Invariant, InvariantSet, JournalPosition, LeaseEnd, Record,
};
use sojourn_protocol::{
    digest::Digest,
    error::ErrorKind,
    ids::{HostId, LeaseId},
    names::OwnerName,
    time::UnixMillis,
};
use sojourn_server::{
    journal::{Fault, Journal, MemoryJournal, Snapshot},
    shell::{Shell, ShellConfig, ShellError, SteadyClock},
};
use std::{
    error::Error,
    sync::{Arc, mpsc},
};

fn start(journal: &MemoryJournal, accept: &[Invariant]) -> Result<Shell, ShellError> {
    let accept: InvariantSet = accept.iter().copied().collect();
    let config = ShellConfig { accept, ..ShellConfig::default() };
    let clock = Arc::new(SteadyClock::machine());
    Shell::start(opens(journal), config, clock).map(|(shell, _)| shell)
}

/// An error and all that it came from.
fn chain(error: &dyn Error) -> String {
    let source = error.source().map(chain);
    std::iter::once(error.to_string()).chain(source).collect::<Vec<_>>().join(": ")
}

fn enrolled(position: u64) -> Record {
    let name = format!("host {position}");
    let (token_sha256, owner) = (Digest::of(name.as_bytes()), OwnerName::default());
    let event =
        Event::HostEnrolled { host: HostId(position), name, token_sha256, owner, token: None };
    Record { position: JournalPosition(position), at: UnixMillis(position), event }
}

#[test]
fn a_start_names_the_position_of_an_event_that_does_not_fit() {
    let mut journal = MemoryJournal::default();
    let event = Event::LeaseEnded { lease: LeaseId(7), end: LeaseEnd::Silent };
    let damaged = Record { event, ..enrolled(2) };
    journal.append(&[enrolled(1), damaged, enrolled(3)]).unwrap();
    let refused = chain(&start(&journal, &Invariant::ALL).unwrap_err());
    let expected = "the journal can't be replayed: event 2 (`lease-ended`) doesn't fit the state: there is no lease 7";
    assert_eq!(refused, expected);
}

/// A journal in whose snapshot a job counts no live lease, though host 1 holds lease 1. Events of it fit; but where
/// that lease ends, its job would count fewer than none.
async fn with_a_wrong_count() -> MemoryJournal {
    let mut journal = MemoryJournal::default();
    let shell = start(&journal, &[]).unwrap();
    let host = enrol(shell.handle(), 1).await.unwrap();
    enrol(shell.handle(), 2).await.unwrap();
    submit(shell.handle()).await;
    match shell.handle().call(|to| ask(to, host)).await.unwrap() {
        Answer::Work(answer) => assert_eq!(answer.leases.len(), 1),
        other => panic!("{other:?}"),
    }
    shell.stop().await;
    let mut core = Core::new(ShellConfig::default().core);
    for record in journal.read(JournalPosition(0), 1_000).unwrap() {
        core.fold(&record).unwrap();
    }
    let text = String::from_utf8(core.snapshot().unwrap()).unwrap();
    let wrong = text.replacen("\"leases_live\":1", "\"leases_live\":0", 1);
    assert_ne!(wrong, text);
    let position = core.position();
    journal.save_snapshot(&Snapshot { position, bytes: wrong.into_bytes() }).unwrap();
    journal
}

#[tokio::test]
async fn a_state_that_breaks_an_invariant_is_served_only_where_that_is_accepted() {
    let journal = with_a_wrong_count().await;
    for accept in [&[][..], &[Invariant::L2, Invariant::B1]] {
        let refused = start(&journal, accept).unwrap_err().to_string();
        let expected = "invariant L1 is violated: job 1 counts 0 live leases, has 1; to serve this state nevertheless, \
                        name what to accept: `--accept-violation L1`";
        assert_eq!(refused, expected);
    }
    let shell = start(&journal, &[Invariant::L1]).unwrap();
    assert_eq!(hosts(shell.handle()).await.unwrap().len(), 2);
    shell.stop().await;
}

#[tokio::test]
async fn a_core_that_fails_answers_with_an_error_reloads_and_goes_on() {
    let journal = with_a_wrong_count().await;
    let shell = start(&journal, &[Invariant::L1]).unwrap();
    let handle = shell.handle();
    let kept = journal.tail();
    // Somebody else waits for work meanwhile.
    let mut asking = Box::pin(handle.call(|to| ask(to, HostId(2))));
    assert!(futures::poll!(&mut asking).is_pending());
    for _ in 0..2 {
        let (host, leases) = (HostId(1), vec![LeaseId(1)]);
        let reason = "stopping".into();
        let release = handle.call(|to| Command::Release { to, host, leases, reason });
        let failed = release.await.unwrap_err();
        assert_eq!(failed.kind, ErrorKind::Internal, "{failed}");
        // It is away for a moment, in which everyone is told to try again; then it knows all that it knew.
        loop {
            match hosts(handle).await {
                Ok(hosts) => break assert_eq!(hosts.len(), 2),
                Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable),
            }
        }
        assert_eq!(journal.tail(), kept, "nothing of the step was journalled");
    }
    assert_eq!(asking.await.unwrap_err().kind, ErrorKind::Internal);
    assert_eq!(enrol(handle, 3).await.unwrap(), HostId(3));
    shell.stop().await;
}

/// The core fails while an append of before it is under way, whose sync fails.
#[tokio::test]
async fn a_failed_sync_ends_a_core_that_is_about_to_reload() {
    let journal = with_a_wrong_count().await;
    let (let_through, gate) = mpsc::channel();
    let gated = Gated { journal: journal.clone(), gate, appended: Arc::default() };
    let accept: InvariantSet = [Invariant::L1].into_iter().collect();
    let config = ShellConfig { accept, ..ShellConfig::default() };
    let mut shell = crate::support::start(gated.opens(), config);
    journal.inject(Fault::Unsynced);
    let handle = shell.handle().clone();
    let mut enrolled = Box::pin(enrol(&handle, 3));
    assert!(futures::poll!(&mut enrolled).is_pending());
    let (host, leases, reason) = (HostId(1), vec![LeaseId(1)], "stopping".into());
    let mut failed = Box::pin(handle.call(|to| Command::Release { to, host, leases, reason }));
    assert!(futures::poll!(&mut failed).is_pending());
    let_through.send(()).unwrap();
    assert_eq!(failed.await.unwrap_err().kind, ErrorKind::Internal);
    shell.ended().await;
    assert!(enrolled.await.is_err());
}
