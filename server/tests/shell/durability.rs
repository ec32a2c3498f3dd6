//! Nothing acknowledged is lost, nothing shows before it is durable, and the shell goes on over a journal that fails.

use crate::support::{Gated, Opened, ask, enrol, hosts, opens, start, submit};
use sojourn_core::{Answer, JournalPosition, Record};
use sojourn_protocol::{
    digest::Digest,
    error::ErrorKind,
    ids::{HostId, JobId},
    names::OwnerName,
    time::UnixMillis,
};
use sojourn_server::{
    journal::{Fault, Journal, JournalError, MemoryJournal, OpenJournal, Snapshot},
    shell::{Clock, Shell, ShellConfig, SteadyClock},
};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
};

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_appends_fail() {
    let journal = MemoryJournal::default();
    let shell = start(opens(&journal), ShellConfig::default());
    let mut acknowledged = BTreeSet::new();
    let mut refused = 0;
    for number in 0..60 {
        if number % 4 == 3 {
            let faults = [Fault::Fails, Fault::Unknown, Fault::Torn];
            journal.inject(*faults.get(number / 4 % 3).unwrap());
        }
        match enrol(shell.handle(), number).await {
            Ok(host) => assert!(acknowledged.insert(host), "one id for two hosts"),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Unavailable);
                refused += 1;
            }
        }
    }
    assert!(refused >= 15, "{refused}");
    // It goes on, with all that it has promised.
    let there = loop {
        match hosts(shell.handle()).await {
            Ok(there) => break there,
            Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable),
        }
    };
    assert!(there.is_superset(&acknowledged));
    shell.stop().await;
    let shell = start(opens(&journal), ShellConfig::default());
    assert_eq!(hosts(shell.handle()).await.unwrap(), there);
    shell.stop().await;
}

#[tokio::test]
async fn many_at_once_over_a_failing_journal_each_get_one_answer() {
    let journal = MemoryJournal::default();
    let shell = start(opens(&journal), ShellConfig::default());
    for fault in [Fault::Torn, Fault::Unknown, Fault::Fails] {
        journal.inject(fault);
        let calls = (0..200).map(|number| enrol(shell.handle(), number));
        let answers = futures::future::join_all(calls).await;
        let there = hosts(shell.handle()).await;
        let there = match there {
            Ok(there) => there,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Unavailable);
                continue;
            }
        };
        for host in answers.into_iter().flatten() {
            assert!(there.contains(&host));
        }
    }
    shell.stop().await;
}

#[tokio::test]
async fn while_the_journal_cannot_be_opened_everyone_is_refused_and_then_it_goes_on() {
    let journal = MemoryJournal::default();
    let failing = Arc::new(AtomicU64::new(0));
    let open: Arc<dyn OpenJournal> = Arc::new({
        let (journal, failing) = (journal.clone(), Arc::clone(&failing));
        move || -> Opened {
            let left = failing.load(Ordering::SeqCst);
            if left > 0 {
                failing.store(left - 1, Ordering::SeqCst);
                return Err(JournalError::Storage("injected".into()));
            }
            Ok(Box::new(journal.clone()))
        }
    });
    let shell = start(open, ShellConfig::default());
    let first = enrol(shell.handle(), 1).await.unwrap();
    failing.store(2, Ordering::SeqCst);
    journal.inject(Fault::Fails);
    assert_eq!(enrol(shell.handle(), 2).await.unwrap_err().kind, ErrorKind::Unavailable);
    let mut refused = 0;
    let there = loop {
        match hosts(shell.handle()).await {
            Ok(there) => break there,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Unavailable);
                refused += 1;
            }
        }
    };
    assert!(refused > 0);
    assert_eq!(there, BTreeSet::from([first]));
    assert_eq!(failing.load(Ordering::SeqCst), 0);
    shell.stop().await;
}

/// Another server may have replaced tokens since they were let in.
#[tokio::test]
async fn callers_that_come_while_the_journal_is_opened_are_refused() {
    let journal = MemoryJournal::default();
    let (say_opening, opening) = mpsc::channel();
    let (let_through, gate) = mpsc::channel();
    let gate = std::sync::Mutex::new(gate);
    let is_first = AtomicBool::new(true);
    let open: Arc<dyn OpenJournal> = Arc::new({
        let journal = journal.clone();
        move || -> Opened {
            if !is_first.swap(false, Ordering::SeqCst) {
                say_opening.send(()).unwrap();
                gate.lock().unwrap().recv().unwrap();
            }
            Ok(Box::new(journal.clone()))
        }
    });
    let shell = start(open, ShellConfig::default());
    let first = enrol(shell.handle(), 1).await.unwrap();
    journal.inject(Fault::Fails);
    assert_eq!(enrol(shell.handle(), 2).await.unwrap_err().kind, ErrorKind::Unavailable);
    opening.recv().unwrap();
    let mut meanwhile = Box::pin(enrol(shell.handle(), 3));
    // The first poll gives the command.
    assert!(futures::poll!(&mut meanwhile).is_pending());
    let_through.send(()).unwrap();
    assert_eq!(meanwhile.await.unwrap_err().kind, ErrorKind::Unavailable);
    // Others that come before the last of these is refused are refused too.
    let there = loop {
        match hosts(shell.handle()).await {
            Ok(there) => break there,
            Err(error) => assert_eq!(error.kind, ErrorKind::Unavailable),
        }
    };
    assert_eq!(there, BTreeSet::from([first]));
    shell.stop().await;
}

/// Data that is read after a failed sync may be what the system has in memory, and no longer writes.
#[tokio::test]
async fn after_a_failed_sync_nothing_is_answered_and_the_core_ends() {
    let journal = MemoryJournal::default();
    let open: Arc<dyn OpenJournal> = Arc::new({
        let journal = journal.clone();
        move || -> Opened { Ok(Box::new(journal.clone())) }
    });
    let mut shell = start(open, ShellConfig::default());
    enrol(shell.handle(), 1).await.unwrap();
    journal.inject(Fault::Unsynced);
    assert_eq!(enrol(shell.handle(), 2).await.unwrap_err().kind, ErrorKind::Unavailable);
    shell.ended().await;
    assert_eq!(hosts(shell.handle()).await.unwrap_err().kind, ErrorKind::Unavailable);
}

#[tokio::test]
async fn replies_and_reads_wait_until_what_they_show_is_durable() {
    let (let_through, gate) = mpsc::channel();
    let appended = Arc::new(AtomicBool::new(false));
    let gated = Gated { journal: MemoryJournal::default(), gate, appended: Arc::clone(&appended) };
    let shell = start(gated.opens(), ShellConfig::default());
    // What was durable before can be seen at once.
    assert!(hosts(shell.handle()).await.unwrap().is_empty());

    let enrolled = async {
        let host = enrol(shell.handle(), 1).await.unwrap();
        assert!(appended.load(Ordering::SeqCst), "acknowledged before it was durable");
        host
    };
    let seen = async {
        let seen = hosts(shell.handle()).await.unwrap();
        assert!(appended.load(Ordering::SeqCst), "shown before it was durable");
        seen
    };
    // The gate opens only after both have been asked.
    let open_gate = async { let_through.send(()).unwrap() };
    let (host, seen, ()) = futures::join!(enrolled, seen, open_gate);
    assert_eq!(seen, BTreeSet::from([host]));
    shell.stop().await;
}

#[tokio::test]
async fn snapshots_spare_the_events_that_they_cover() {
    let journal = MemoryJournal::default();
    let config = ShellConfig { snapshot_every: 10, keep_events: 5, ..ShellConfig::default() };
    let shell = start(opens(&journal), config);
    for number in 0..47 {
        enrol(shell.handle(), number).await.unwrap();
    }
    shell.stop().await;
    let mut look = journal.clone();
    let tail = look.tail();
    assert_eq!(look.load_snapshot().unwrap().unwrap().position, tail);
    assert!(look.read(JournalPosition(0), 1).is_err(), "nothing was trimmed");
    assert_eq!(look.read(JournalPosition(tail.0 - 5), 100).unwrap().len(), 5);

    let shell = start(opens(&journal), config);
    assert_eq!(hosts(shell.handle()).await.unwrap().len(), 47);
    let next = enrol(shell.handle(), 99).await.unwrap();
    assert_eq!(hosts(shell.handle()).await.unwrap().last(), Some(&next));
    shell.stop().await;
}

#[tokio::test]
async fn an_unreadable_snapshot_is_passed_over_for_what_is_whole() {
    let unreadable = |journal: &MemoryJournal| {
        let mut journal = journal.clone();
        let position = journal.tail();
        journal.save_snapshot(&Snapshot { position, bytes: b"{}".to_vec() }).unwrap();
    };
    // The one before it, and the events since then, which no trim has dropped.
    let journal = MemoryJournal::default();
    let config = ShellConfig { snapshot_every: 10, keep_events: 0, ..ShellConfig::default() };
    let shell = start(opens(&journal), config);
    for number in 0..25 {
        enrol(shell.handle(), number).await.unwrap();
    }
    shell.stop().await;
    assert!(journal.clone().read(JournalPosition(0), 1).is_err(), "nothing was trimmed");
    unreadable(&journal);
    let shell = start(opens(&journal), config);
    assert_eq!(hosts(shell.handle()).await.unwrap().len(), 25);
    shell.stop().await;

    // The whole journal.
    let journal = MemoryJournal::default();
    let config = ShellConfig::default();
    let shell = start(opens(&journal), config);
    enrol(shell.handle(), 1).await.unwrap();
    shell.stop().await;
    unreadable(&journal);
    let shell = start(opens(&journal), config);
    assert_eq!(hosts(shell.handle()).await.unwrap().len(), 1);
    // And what is kept at the end can be read.
    shell.stop().await;
    let shell = start(opens(&journal), config);
    assert_eq!(hosts(shell.handle()).await.unwrap().len(), 1);
    shell.stop().await;

    // Nothing is whole: refused, and it says why.
    let mut look = journal.clone();
    unreadable(&journal);
    look.trim(JournalPosition(2)).unwrap();
    let clock = Arc::new(SteadyClock::machine());
    let refused = Shell::start(opens(&journal), config, clock).unwrap_err();
    assert!(refused.to_string().contains("snapshot"), "{refused}");
}

/// A clock that a test sets, back too.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::SeqCst))
    }
    fn at_least(&self, _: UnixMillis) {}
}

#[tokio::test]
async fn a_clock_that_jumps_back_never_stamps_an_earlier_time() {
    let journal = MemoryJournal::default();
    let clock = Arc::new(SetClock(AtomicU64::new(5_000_000)));
    let config = ShellConfig::default();
    let (shell, _errands) = Shell::start(opens(&journal), config, clock.clone()).unwrap();
    enrol(shell.handle(), 0).await.unwrap();
    clock.0.store(10, Ordering::SeqCst);
    enrol(shell.handle(), 1).await.unwrap();
    clock.0.store(6_000_000, Ordering::SeqCst);
    enrol(shell.handle(), 2).await.unwrap();
    shell.stop().await;
    // After a restart with the clock still back.
    clock.0.store(20, Ordering::SeqCst);
    let (shell, _errands) = Shell::start(opens(&journal), config, clock.clone()).unwrap();
    enrol(shell.handle(), 3).await.unwrap();
    shell.stop().await;
    let times: Vec<u64> = journal
        .clone()
        .read(JournalPosition(0), 100)
        .unwrap()
        .iter()
        .map(|record| record.at.0)
        .collect();
    assert_eq!(times, [5_000_000, 5_000_000, 6_000_000, 6_000_000]);
}

#[tokio::test]
async fn time_goes_on_after_a_clean_stop_though_the_clock_was_set_back() {
    let journal = MemoryJournal::default();
    let ahead = || Arc::new(SteadyClock::over(|| UnixMillis(9_000_000)));
    let (shell, _errands) = Shell::start(opens(&journal), ShellConfig::default(), ahead()).unwrap();
    enrol(shell.handle(), 0).await.unwrap();
    // All events are in the snapshot that it leaves.
    shell.stop().await;
    let corrected = Arc::new(SteadyClock::over(|| UnixMillis(5_000_000)));
    let clock = Arc::clone(&corrected);
    let (shell, _errands) = Shell::start(opens(&journal), ShellConfig::default(), clock).unwrap();
    let begun = corrected.now();
    assert!(begun >= UnixMillis(9_000_000), "it stands at {begun:?}");
    shell.stop().await;
}

#[tokio::test]
async fn after_the_end_everyone_is_refused() {
    let shell = start(opens(&MemoryJournal::default()), ShellConfig::default());
    let handle = shell.handle().clone();
    enrol(&handle, 1).await.unwrap();
    shell.stop().await;
    assert_eq!(enrol(&handle, 2).await.unwrap_err().kind, ErrorKind::Unavailable);
    assert_eq!(
        handle.events(JobId(1), JournalPosition(0), 1).await.unwrap_err().kind,
        ErrorKind::Unavailable
    );
}

#[test]
fn an_altered_journal_is_refused_at_the_start() {
    let mut journal = MemoryJournal::default();
    let event = sojourn_core::Event::HostEnrolled {
        host: HostId(1),
        name: "one".to_owned(),
        token_sha256: Digest::of(b"token"),
        owner: OwnerName::default(),
        token: None,
    };
    let position = JournalPosition(1);
    journal.append(&[Record { position, at: UnixMillis(1), event }]).unwrap();
    journal.alter(position, |payload| payload.reverse());
    let clock = Arc::new(SteadyClock::machine());
    let refused = Shell::start(opens(&journal), ShellConfig::default(), clock).unwrap_err();
    assert!(refused.to_string().contains("damaged at position 1"), "{refused}");
}

#[tokio::test]
async fn a_host_that_hangs_up_while_it_waits_gets_no_work() {
    for stays in [true, false] {
        let shell = start(opens(&MemoryJournal::default()), ShellConfig::default());
        let handle = shell.handle();
        let (first, second) = (enrol(handle, 1).await.unwrap(), enrol(handle, 2).await.unwrap());
        let mut asking = Box::pin(handle.call(|to| ask(to, first)));
        // The first poll gives the command; there is no work yet.
        assert!(futures::poll!(&mut asking).is_pending());
        // The job has one unit: whoever waits gets it.
        let answer = if stays {
            submit(handle).await;
            asking.await
        } else {
            drop(asking);
            submit(handle).await;
            handle.call(|to| ask(to, second)).await
        };
        match answer.unwrap() {
            Answer::Work(answer) => assert_eq!(answer.leases.len(), 1),
            other => panic!("{other:?}"),
        }
        shell.stop().await;
    }
}
