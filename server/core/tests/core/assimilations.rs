//! Assimilation units are handed out, renewed, handed out again, and end once.

use crate::support::{Bench, HOST, OTHER, data, done, offer};
use sojourn_core::{
    Answer, AssimilationCounts, AssimilationUnit, Command, Core, Effect, Event, Offered, Query,
    ReplyTo,
};
use sojourn_protocol::time::{Millis, UnixMillis};

const TERM: u64 = 10_000;
const TO: ReplyTo = ReplyTo(1);

impl Bench {
    fn take(&mut self) -> Option<AssimilationUnit> {
        match self.answer(Command::TakeAssimilation { to: TO, losses: true }) {
            Ok(Answer::Assimilation(unit)) => unit.map(|unit| *unit),
            other => panic!("{other:?}"),
        }
    }

    fn renew(&mut self, unit: &AssimilationUnit) -> Offered {
        let (lease, claim) = (unit.lease, unit.claim);
        self.offered(Command::RenewAssimilation { to: TO, lease, claim })
    }

    fn offered(&mut self, command: Command) -> Offered {
        match self.answer(command) {
            Ok(Answer::Offered(offered)) => offered,
            other => panic!("{other:?}"),
        }
    }

    fn counts(&mut self) -> AssimilationCounts {
        match self.answer(Command::Query { to: TO, query: Query::Assimilations }) {
            Ok(Answer::Assimilations(counts)) => counts,
            other => panic!("{other:?}"),
        }
    }

    /// Results of so many trials wait.
    fn with_results(trials: u32) -> Self {
        let mut bench = Self::with_job(trials, 1);
        for host in [HOST, OTHER].into_iter().cycle().take(usize::try_from(trials).unwrap()) {
            let lease = bench.lease(host);
            bench.report(host, done(&lease)).unwrap();
        }
        bench
    }

    fn pass(&mut self, millis: u64) -> Vec<Effect> {
        self.now += millis;
        self.apply(Command::Tick)
    }
}

#[test]
fn whoever_renews_keeps_a_unit_and_whoever_does_not_loses_it() {
    let mut bench = Bench::with_results(1);
    let first = bench.take().unwrap();
    assert_eq!((bench.take(), first.term), (None, Millis(TERM)));
    for _ in 0..3 {
        assert_eq!(bench.pass(TERM - 1), []);
        assert_eq!(bench.renew(&first), Offered::Taken);
    }
    assert_eq!(bench.core.next_deadline(), Some(UnixMillis(bench.now + TERM)));
    assert_eq!(bench.pass(TERM), [Effect::Assimilate]);
    assert_eq!(bench.renew(&first), Offered::Stale, "its term is over");
    let second = bench.take().unwrap();
    assert_eq!((second.lease, second.version), (first.lease, first.version));
    assert!(second.claim > first.claim);
    assert_eq!(bench.renew(&first), Offered::Stale, "another has it");
    assert_eq!(bench.renew(&second), Offered::Taken);
}

/// An earlier job made the same bytes, and they are being deleted.
#[test]
fn a_unit_whose_blob_is_being_deleted_comes_again_at_once() {
    const DAY: u64 = 24 * 3600 * 1000;
    let mut bench = Bench::with_results(1);
    let blob = bench.take().unwrap().trained.checkpoint;
    bench.answer(Command::Published { to: TO, blob }).unwrap();
    let mut effects = bench.pass(2 * DAY);
    effects.extend(bench.pass(DAY));
    assert!(effects.contains(&Effect::Delete(blob.sha256)), "{effects:?}");
    let unit = bench.take().unwrap();
    let effects = bench.apply(offer(&unit));
    assert!(effects.contains(&Effect::Assimilate), "{effects:?}");
    let again = bench.take().expect("nobody waits for the claim to end");
    assert_eq!(again.lease, unit.lease);
    bench.apply(Command::Deleted { blob: blob.sha256 });
    assert_eq!(bench.offered(offer(&again)), Offered::Taken);
}

#[test]
fn of_several_offers_for_a_unit_one_is_taken_whosever_it_is() {
    for earlier in [false, true] {
        let mut bench = Bench::with_results(1);
        let first = bench.take().unwrap();
        bench.pass(TERM);
        let second = bench.take().unwrap();
        let (one, other) = if earlier { (&first, &second) } else { (&second, &first) };
        let events = bench.events(offer(one));
        assert!(
            events.iter().any(|event| matches!(event, Event::Assimilated { .. })),
            "{events:?}"
        );
        assert_eq!(bench.renew(other), Offered::Stale);
        assert_eq!(bench.offered(offer(other)), Offered::Stale);
        assert_eq!(bench.offered(offer(one)), Offered::Stale, "the answer may have been lost");
        assert_eq!(bench.take(), None);
    }
}

#[test]
fn what_nobody_heard_that_he_had_taken_is_handed_out_at_once() {
    let mut bench = Bench::with_results(2);
    let to = ReplyTo(70);
    let effects = bench.apply(Command::TakeAssimilation { to, losses: true });
    let [Effect::Reply { answer: Ok(answer), .. }] = &effects[..] else { panic!("{effects:?}") };
    let Answer::Assimilation(Some(lost)) = &**answer else { panic!("{answer:?}") };
    let other = bench.take().unwrap();
    assert_eq!(bench.apply(Command::Hangup { to }), [Effect::Assimilate]);
    let again = bench.take().unwrap();
    assert_eq!(again.lease, lost.lease);
    assert_eq!((bench.renew(&other), bench.take()), (Offered::Taken, None));
}

#[test]
fn small_results_are_claimed_apart_from_large_ones() {
    let larger = "[[model]]\narch = \"mlp\"\nhidden = [64]\n";
    let mut bench = Bench::with_job_on(data(), 3, 1, larger);
    let leases = [(); 6].map(|()| {
        let lease = bench.lease(HOST);
        bench.report(HOST, done(&lease)).unwrap();
        lease
    });
    let max_bytes = leases.iter().map(|lease| lease.upload_bytes).min().unwrap();
    let (small, large): (Vec<_>, Vec<_>) =
        leases.iter().partition(|lease| lease.upload_bytes == max_bytes);
    assert_eq!((small.len(), large.len()), (3, 3));
    let mut take_small =
        |max_bytes| match bench.answer(Command::TakeSmallAssimilation { to: TO, max_bytes }) {
            Ok(Answer::Assimilation(unit)) => unit.map(|unit| unit.lease),
            other => panic!("{other:?}"),
        };
    assert_eq!(take_small(max_bytes - 1), None);
    for lease in small {
        assert_eq!(take_small(max_bytes), Some(lease.id));
    }
    assert_eq!(take_small(max_bytes), None);
    for lease in large {
        assert_eq!(bench.take().map(|unit| unit.lease), Some(lease.id));
    }
}

#[test]
fn a_server_that_starts_hands_all_out_again_and_takes_what_was_taken_before() {
    let mut bench = Bench::with_results(2);
    let before = bench.take().unwrap();
    let snapshot = bench.core.snapshot().unwrap();
    bench.core = Core::from_snapshot(&snapshot, *bench.core.config()).unwrap();
    bench.now += 1;
    let effects = bench.apply(Command::Started);
    let woken = effects.iter().filter(|effect| **effect == Effect::Assimilate).count();
    assert_eq!(woken, 2);
    assert_eq!(bench.renew(&before), Offered::Stale, "nobody knows of it");
    let (again, other) = (bench.take().unwrap(), bench.take().unwrap());
    assert_eq!(again.lease, before.lease);
    assert!(again.claim > before.claim && other.claim > again.claim);
    assert_eq!(bench.offered(offer(&before)), Offered::Taken);
    assert_eq!(bench.offered(offer(&again)), Offered::Stale);
}

#[test]
fn what_waits_and_how_fast_it_ends_can_be_seen() {
    let mut bench = Bench::with_results(3);
    let counts = bench.counts();
    assert_eq!((counts.waiting, counts.taken, counts.behind, counts.ended), (3, 0, 0, 0));
    bench.now += 500;
    let one = bench.take().unwrap();
    bench.now += 500;
    let counts = bench.counts();
    assert_eq!((counts.waiting, counts.taken), (2, 1));
    assert!(counts.lag >= Millis(1000), "{counts:?}");
    bench.apply(offer(&one));
    let other = bench.take().unwrap();
    bench.apply(offer(&other));
    let counts = bench.counts();
    assert_eq!((counts.waiting, counts.taken, counts.ended), (1, 0, 2));
    assert!(counts.per_second > 0.0);
    bench.pass(60_000);
    let later = bench.counts();
    assert_eq!((later.ended, later.per_second), (2, 0.0), "of the last minute");
    assert_eq!(later.lag.0, counts.lag.0 + 60_000);
}
