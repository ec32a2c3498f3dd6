//! A server that starts, or takes over, with a clock that is hours or years after the journal's last event: nobody knows
//! whether so much time has passed, so nothing ends by it.

use crate::support::{Bench, HOST, JOB, data, done};
use sojourn_core::{BlobStatus, Command, Core, Event, JournalPosition, LeaseEnd, Record, ReplyTo};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    time::{Millis, UnixMillis},
};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// The time in which no server was seen that counts, at most.
const COUNTED: u64 = 30 * SECOND;
/// Steps of the clock: two hours, and ten years.
const STEPS: [u64; 2] = [2 * HOUR, 10 * 366 * 24 * HOUR];

fn skipped(millis: u64) -> Event {
    Event::TimeSkipped { skipped: Millis(millis) }
}

/// The server ends, and one starts from its snapshot after so long; says the events of the start.
fn start_after(bench: &mut Bench, gap: u64) -> Vec<Event> {
    recover(bench);
    bench.now += gap;
    bench.events(Command::Started)
}

fn recover(bench: &mut Bench) {
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
}

/// Lets seconds pass until there is such an event; says how many did.
fn seconds_until(bench: &mut Bench, wanted: &Event) -> u64 {
    for second in 1..=100 * 3600 {
        bench.now += SECOND;
        if bench.events(Command::Tick).contains(wanted) {
            return second;
        }
    }
    panic!("no {wanted:?}");
}

#[test]
fn a_job_keeps_its_wall_time_and_ended_leases_are_remembered_over_a_start_whose_clock_is_ahead() {
    for step in STEPS {
        let more = "[search]\nwall_time = \"1h\"\n";
        let mut bench = Bench::with_job_on(data(), 2, 30, more);
        let late = bench.lease(HOST);
        bench.now += 20 * MINUTE;
        let silent = Event::LeaseEnded { lease: late.id, end: LeaseEnd::Silent };
        assert_eq!(bench.events(Command::Tick), [silent]);

        assert_eq!(start_after(&mut bench, step), [skipped(step - COUNTED)], "nothing was due");
        bench.report(HOST, done(&late)).unwrap();
        let grace = Millis(10 * MINUTE);
        let left =
            seconds_until(&mut bench, &Event::JobTrainingOver { job: JOB, grace, used_up: None });
        assert_eq!(
            left,
            40 * 60 - COUNTED / SECOND,
            "of the time in which no server was seen, little counts"
        );
        // Nobody takes the late result in.
        assert_eq!(seconds_until(&mut bench, &Event::JobTimeUp { job: JOB }), 10 * 60);
    }
}

#[test]
fn blobs_keep_their_grace_periods_over_a_start_whose_clock_is_ahead() {
    let named = |name: &str| BlobRef { sha256: Digest::of(name.as_bytes()), bytes: 5 };
    let (condemned, awaited) = (named("condemned"), named("awaited"));
    let publish = |bench: &mut Bench, blob| {
        bench.apply(Command::Published { to: ReplyTo(1), blob });
    };
    for step in STEPS {
        let mut bench = Bench::new();
        publish(&mut bench, condemned);
        let condemns = Event::BlobCondemned { blob: condemned.sha256 };
        assert_eq!(seconds_until(&mut bench, &condemns), 24 * 3600);
        publish(&mut bench, awaited);

        assert_eq!(start_after(&mut bench, step), [skipped(step - COUNTED)], "nothing was due");
        let status = |bench: &Bench, blob: BlobRef| bench.core.state().blobs.status(&blob.sha256);
        assert_eq!(status(&bench, condemned), Some(BlobStatus::Condemned));
        assert_eq!(status(&bench, awaited), Some(BlobStatus::Published));
        let condemns = Event::BlobCondemned { blob: awaited.sha256 };
        let left = seconds_until(&mut bench, &condemns);
        assert_eq!(left, 24 * 3600 - COUNTED / SECOND);
    }
}

/// A server whose journal was away for hours knows that they have passed.
#[test]
fn time_in_which_this_server_was_active_counts_whatever_it_journalled() {
    let more = "[search]\nwall_time = \"1h\"\n";
    let mut bench = Bench::with_job_on(data(), 2, 30, more);
    recover(&mut bench);
    bench.now += 20 * MINUTE;
    bench.core.was_active_until(UnixMillis(bench.now));
    assert!(bench.events(Command::Started).is_empty());
    assert_eq!(seconds_until(&mut bench, &Event::JobTimeUp { job: JOB }), 40 * 60);
}

#[test]
fn a_clock_that_is_behind_the_journal_stands_until_time_is_there() {
    let mut bench = Bench::with_job_on(data(), 2, 30, "[search]\nwall_time = \"1h\"\n");
    let before = bench.core.state().at;
    recover(&mut bench);
    bench.now = 1;
    assert!(bench.events(Command::Started).is_empty());
    bench.lease(HOST);
    assert_eq!(bench.core.state().at, before, "no stamp is before the last one");
    bench.now = before.0;
    assert_eq!(seconds_until(&mut bench, &Event::JobTimeUp { job: JOB }), 3600);
}

#[test]
fn a_paused_job_does_not_get_the_skipped_time_twice() {
    let mut bench = Bench::with_job_on(data(), 2, 30, "[search]\nwall_time = \"1h\"\n");
    bench.apply(Command::Pause { to: ReplyTo(1), job: JOB, now: false });
    start_after(&mut bench, 10 * HOUR);
    bench.apply(Command::Resume { to: ReplyTo(1), job: JOB });
    assert_eq!(seconds_until(&mut bench, &Event::JobTimeUp { job: JOB }), 3600);
}

#[test]
fn a_journal_with_skipped_time_leads_to_the_same_state_from_a_snapshot_and_from_its_events() {
    let mut bench = Bench::with_job_on(data(), 2, 30, "[search]\nwall_time = \"1h\"\n");
    bench.lease(HOST);
    bench.now += 20 * MINUTE;
    bench.events(Command::Tick);
    let config = *bench.core.config();
    let mut folded = Core::from_snapshot(&bench.core.snapshot().unwrap(), config).unwrap();
    let position = JournalPosition(folded.position().0 + 1);
    let at = UnixMillis(bench.now + 2 * HOUR);
    assert_eq!(start_after(&mut bench, 2 * HOUR), [skipped(2 * HOUR - COUNTED)]);
    folded.fold(&Record { position, at, event: skipped(2 * HOUR - COUNTED) }).unwrap();
    assert_eq!(folded.state(), bench.core.state());
    folded.check_invariants().unwrap();
    let read_back = Core::from_snapshot(&bench.core.snapshot().unwrap(), config).unwrap();
    assert_eq!(read_back.state(), bench.core.state());
}
