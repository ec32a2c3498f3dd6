//! By default the results of strangers' hosts are verified, and those of the operator's hosts are believed.

use crate::{
    owners::{came_to, enrol},
    support::{Bench, HOST, JOB, OTHER, done, request},
};
use sojourn_core::{Answer, Command, Event, JournalPosition, Query, Record, ReplyTo, Trust};
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest, WorkRequest},
    digest::Digest,
    ids::{HostId, LeaseId, TrialId},
    spec::{OrderChoice, PlacementSpec, Verify, VerifyChoice},
    time::UnixMillis,
    tokens::{TokenGrant, TokenRequest},
    unit::Unit,
    view::{HostView, Verification},
};

const TO: ReplyTo = ReplyTo(1);

/// A job whose placement says this of verification.
fn bench(verify: Option<VerifyChoice>) -> Bench {
    let placement = PlacementSpec { verify, ..PlacementSpec::new(OrderChoice::Hop, true, 1) };
    Bench::with_order(&placement, 1, 1)
}

fn is_challenge(event: &Event) -> bool {
    matches!(event, Event::Challenged { .. })
}

fn host(bench: &mut Bench, host: HostId) -> HostView {
    match bench.answer(Command::Query { to: TO, query: Query::Host { host } }) {
        Ok(Answer::HostDetail(detail)) => detail.host,
        other => panic!("{other:?}"),
    }
}

#[test]
fn submission_writes_down_that_strangers_are_verified() {
    let of = |bench: &Bench| bench.core.state().jobs[&JOB].spec.placement.verify;
    assert_eq!(of(&bench(None)), Some(VerifyChoice::STRANGERS));
    assert_eq!(of(&bench(Some(VerifyChoice::NONE))), Some(VerifyChoice::NONE));
    let free = PlacementSpec::new(OrderChoice::Hop, false, 1);
    assert_eq!(of(&Bench::with_order(&free, 1, 1)), None, "nobody could come to the same");
}

#[test]
fn a_job_that_says_the_default_is_the_same_job() {
    let mut bench = bench(None);
    let mut placement = PlacementSpec::new(OrderChoice::Hop, true, 1);
    placement.verify = Some(VerifyChoice::NONE);
    let submitted = |bench: &mut Bench, placement: &PlacementSpec| {
        let Ok(Answer::Submitted(answer)) = bench.submit_placed(placement) else { panic!() };
        answer.job
    };
    let other = submitted(&mut bench, &placement);
    placement.verify = Some(VerifyChoice::STRANGERS);
    let said = submitted(&mut bench, &placement);
    placement.verify = None;
    assert_eq!(submitted(&mut bench, &placement), said);
    assert_ne!(other, said);
}

#[test]
fn a_strangers_result_counts_once_another_party_has_come_to_the_same() {
    let mut bench = bench(None);
    let lab = enrol(&mut bench, "lab-3", 2);
    let first = bench.lease(lab[0]);
    let events = came_to(&mut bench, lab[0], &first, "right");
    assert_eq!(events.last(), Some(&Event::Challenged { lease: first.id }), "{events:?}");
    assert_eq!(bench.ask(lab[1], request(1, Vec::new())).leases, [], "not by the same owner");
    assert_eq!(bench.assimilate(), [], "it waits");
    let second = bench.lease(HOST);
    let events = came_to(&mut bench, HOST, &second, "right");
    let confirmed = vec![first.id, second.id];
    assert!(events.contains(&Event::Verified { confirmed, refuted: Vec::new() }), "{events:?}");
    bench.assimilate();
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    assert_eq!(trial.history[0].verified, Some(Verification::Confirmed));
}

#[test]
fn the_operators_hosts_and_those_that_are_vouched_for_are_believed() {
    let mut bench = bench(None);
    enrol(&mut bench, "lab-3", 1);
    let lease = bench.lease(HOST);
    assert!(!came_to(&mut bench, HOST, &lease, "right").iter().any(is_challenge));
    bench.assimilate();
    let owner = "colleagues".parse().unwrap();
    let grant = TokenGrant::Enrol { owner, hosts: 1, machine: None, trusted: true };
    let request_of = TokenRequest {
        label: Default::default(),
        grant,
        lifetime: None,
        quotas: Default::default(),
    };
    let sha256 = Digest::of(b"colleagues");
    let create = Command::CreateToken { to: TO, request: request_of, sha256, by: None };
    let Ok(Answer::Token(token)) = bench.answer(create) else { panic!("no token") };
    let (name, token_sha256) = ("c".to_owned(), Digest::of(b"of theirs"));
    let enrol = Command::EnrolWithToken { to: TO, name, token_sha256, with: token.token };
    let Ok(Answer::Enrolled(theirs)) = bench.answer(enrol) else { panic!("refused") };
    bench.ask(theirs, request(0, Vec::new()));
    assert!(!host(&mut bench, theirs).stranger);
    let lease = bench.lease(theirs);
    assert!(!came_to(&mut bench, theirs, &lease, "right").iter().any(is_challenge));
}

#[test]
fn a_job_may_believe_everybody() {
    let mut bench = bench(Some(VerifyChoice::NONE));
    let lab = enrol(&mut bench, "lab-3", 1);
    let lease = bench.lease(lab[0]);
    assert!(!came_to(&mut bench, lab[0], &lease, "right").iter().any(is_challenge));
}

#[test]
fn the_word_of_a_host_that_is_believed_decides() {
    let mut bench = bench(None);
    let lab = enrol(&mut bench, "lab-3", 1);
    let first = bench.lease(lab[0]);
    came_to(&mut bench, lab[0], &first, "wrong");
    let second = bench.lease(OTHER);
    let events = came_to(&mut bench, OTHER, &second, "right");
    let (confirmed, refuted) = (vec![second.id], vec![first.id]);
    assert!(events.contains(&Event::Verified { confirmed, refuted }), "{events:?}");
    assert_eq!(host(&mut bench, lab[0]).verified_rate, Some(1000));
    let events = bench.assimilate();
    assert!(matches!(events[1], Event::Assimilated { lease, .. } if lease == second.id));
}

/// Else two owners in league would confirm each other's lies.
#[test]
fn strangers_without_a_record_confirm_nothing_for_each_other_while_your_own_host_could() {
    let mut bench = bench(None);
    let [first, second] = ["lab-3", "lab-4"].map(|owner| enrol(&mut bench, owner, 1)[0]);
    let lie = bench.lease(first);
    came_to(&mut bench, first, &lie, "wrong");
    assert_eq!(bench.ask(second, request(1, Vec::new())).leases, []);
    let own = bench.lease(HOST);
    let events = came_to(&mut bench, HOST, &own, "right");
    let (confirmed, refuted) = (vec![own.id], vec![lie.id]);
    assert!(events.contains(&Event::Verified { confirmed, refuted }), "{events:?}");
}

/// Nothing of it is taken in unverified, whoever leaves.
#[test]
fn where_nobody_could_confirm_a_stranger_the_trial_waits_and_says_so() {
    let mut bench = bench(None);
    let lab = enrol(&mut bench, "lab-3", 2);
    let lease = bench.lease(lab[0]);
    for operators in [HOST, OTHER] {
        bench.events(Command::RevokeHost { to: TO, host: operators });
    }
    let mut events = came_to(&mut bench, lab[0], &lease, "right");
    bench.now += bench.core.config().lease_term.0 + 1;
    for host in &lab {
        assert_eq!(bench.ask(*host, request(0, Vec::new())).leases, []);
        events.extend(bench.events(Command::Tick));
    }
    let taken = |event: &Event| matches!(event, Event::Unverified { .. });
    assert!(!events.iter().any(taken), "{events:?}");
    assert_eq!(bench.assimilate(), []);
    let waits = bench.trials()[0].waiting.clone().expect("it says why");
    assert!(waits.contains("another party") && waits.contains("`verify = \"none\"`"), "{waits}");
    // Another owner's host is enough.
    let second = enrol(&mut bench, "lab-4", 1)[0];
    let repeated = bench.lease(second);
    let events = came_to(&mut bench, second, &repeated, "right");
    let confirmed = vec![lease.id, repeated.id];
    assert!(events.contains(&Event::Verified { confirmed, refuted: Vec::new() }), "{events:?}");
}

#[test]
fn no_trial_begins_with_a_stranger_whom_nobody_could_confirm() {
    let mut bench = bench(None);
    let lab = enrol(&mut bench, "lab-3", 2);
    let alone = |class: &str| {
        let inventory = Some(crate::support::inventory(class));
        WorkRequest { inventory, ..request(1, Vec::new()) }
    };
    assert_eq!(bench.ask(lab[0], alone("invented")).leases, []);
    assert_eq!(bench.ask(lab[1], alone("invented")).leases, [], "its own owner's doesn't count");
    for operators in [HOST, OTHER] {
        bench.events(Command::RevokeHost { to: TO, host: operators });
    }
    let waits = bench.trials()[0].waiting.clone().expect("it says why");
    assert!(waits.contains("another party"), "{waits}");
}

/// Two hosts of one owner work in turn, and the operator confirms them.
#[test]
fn trust_is_the_partys_and_a_new_host_shows_a_few_results_of_its_own() {
    let placement = PlacementSpec::new(OrderChoice::Hop, true, 1);
    let mut bench = Bench::with_order(&placement, 1, 8);
    let lab = enrol(&mut bench, "lab-3", 1);
    let mut challenged = 0;
    for _ in 0..200 {
        bench.now += 100;
        if bench.core.state().jobs[&JOB].end.is_some() {
            break;
        }
        for host in [lab[0], HOST] {
            for lease in bench.ask(host, request(1, Vec::new())).leases {
                match lease.unit {
                    Unit::Train(_) => {
                        let events = came_to(&mut bench, host, &lease, "right");
                        challenged += events.iter().filter(|event| is_challenge(event)).count();
                        bench.assimilate();
                    }
                    Unit::Evaluate(_) => drop(bench.report(host, done(&lease)).unwrap()),
                }
            }
        }
    }
    let record = bench.core.state().records[&"lab-3".parse().unwrap()];
    assert!(record.in_row >= 10 && record.is_earned(), "{record:?}");
    assert!(challenged >= 10, "{challenged}");
    let rate = host(&mut bench, lab[0]).verified_rate.unwrap();
    assert_eq!(rate, 10_000 / record.in_row);
    let new = enrol_again(&mut bench);
    assert_eq!(host(&mut bench, new).verified_rate, Some(1000), "it has shown nothing yet");
}

/// Another machine of the same owner.
fn enrol_again(bench: &mut Bench) -> HostId {
    let grant = TokenGrant::Enrol {
        owner: "lab-3".parse().unwrap(),
        hosts: 1,
        machine: None,
        trusted: false,
    };
    let request_of = TokenRequest {
        label: Default::default(),
        grant,
        lifetime: None,
        quotas: Default::default(),
    };
    let sha256 = Digest::of(b"another token");
    let create = Command::CreateToken { to: TO, request: request_of, sha256, by: None };
    let Ok(Answer::Token(token)) = bench.answer(create) else { panic!("no token") };
    let (name, token_sha256) = ("new".to_owned(), Digest::of(b"another host"));
    let enrol = Command::EnrolWithToken { to: TO, name, token_sha256, with: token.token };
    let Ok(Answer::Enrolled(host)) = bench.answer(enrol) else { panic!("refused") };
    host
}

/// `poisoned` trials of eight have results of a host that is refuted then, and a server starts.
fn refute_after(poisoned: u32) -> (Bench, Vec<Event>) {
    let mut bench = poisoned_trials(poisoned);
    refute(&mut bench);
    let events = bench.events(Command::Started);
    (bench, events)
}

/// `poisoned` trials of eight have a result of a host that is to be refuted.
fn poisoned_trials(poisoned: u32) -> Bench {
    let verify = Some(Verify { quorum: 2, rate: 1 }.into());
    let placement = PlacementSpec { verify, ..PlacementSpec::new(OrderChoice::Hop, true, 1) };
    let mut bench = Bench::with_order(&placement, 8, 2);
    for n in 0..8 {
        let host = if n < poisoned { OTHER } else { HOST };
        let lease = bench.lease(host);
        came_to(&mut bench, host, &lease, "some");
        bench.assimilate();
    }
    bench
}

/// Another host's first result turns out to be right, and that of `OTHER` to be false.
fn refute(bench: &mut Bench) {
    let of = |host: HostId| {
        let trials = bench.core.state().jobs[&JOB].trials.iter();
        trials.flat_map(|trial| &trial.history).find(|hop| hop.host == host).unwrap().lease
    };
    let (confirmed, refuted) = (vec![of(HOST)], vec![of(OTHER)]);
    let event = Event::Verified { confirmed, refuted };
    let (position, at) = (JournalPosition(bench.core.position().0 + 1), UnixMillis(bench.now));
    bench.core.fold(&Record { position, at, event }).unwrap();
}

/// The result was queued when nobody doubted its party.
#[test]
fn a_result_of_a_refuted_party_that_is_taken_in_late_is_asked_about_or_taken_back() {
    let mut bench = poisoned_trials(1);
    let late = bench.lease(OTHER);
    assert!(!came_to(&mut bench, OTHER, &late, "some").iter().any(is_challenge));
    refute(&mut bench);
    let events = bench.assimilate();
    let taken =
        |event: &Event| matches!(event, Event::Assimilated { lease, .. } if *lease == late.id);
    assert!(events.iter().any(taken), "{events:?}");
    let asked = |event: &Event| matches!(event, Event::RollbackAsked { host: OTHER, .. });
    assert!(events.iter().any(asked), "{events:?}");
    let doubts = bench.job().doubts;
    assert_eq!((doubts.len(), doubts[0].results), (1, 2), "the first, and the late one");
}

#[test]
fn what_a_refuted_party_left_is_taken_back_by_itself_where_little_is_lost() {
    let (mut bench, events) = refute_after(1);
    let back = |event: &&Event| matches!(event, Event::TrialRolledBack { .. });
    let back: Vec<&Event> = events.iter().filter(back).collect();
    let [Event::TrialRolledBack { epochs: 0, why: Some(why), .. }] = back[..] else {
        panic!("{events:?}")
    };
    assert_eq!(why, "host 2 was refuted");
    assert!(bench.job().doubts.is_empty());
    let again = bench.events(Command::Started);
    assert!(!again.iter().any(|event| matches!(event, Event::TrialRolledBack { .. })));
}

#[test]
fn the_user_is_asked_once_where_much_would_be_lost() {
    let (mut bench, events) = refute_after(4);
    let asked = |event: &&Event| matches!(event, Event::RollbackAsked { .. });
    let asked: Vec<&Event> = events.iter().filter(asked).collect();
    let [Event::RollbackAsked { host: OTHER, lost, .. }] = asked[..] else { panic!("{events:?}") };
    // All that was trained into a trial since that host's first result is lost with it.
    let (mut doubtful, mut all) = (0, 0);
    for trial in &bench.core.state().jobs[&JOB].trials {
        let steps: u64 = trial.history.iter().map(|hop| hop.end.step - hop.start.step).sum();
        all += steps;
        doubtful += if trial.history.iter().any(|hop| hop.host == OTHER) { steps } else { 0 };
    }
    assert_eq!(u64::from(*lost), 1000 * doubtful / all);
    let doubts = bench.job().doubts;
    assert_eq!((doubts.len(), doubts[0].host, doubts[0].results), (1, OTHER, 4));
    assert!(doubts[0].to_string().contains("sojourn rollback JOB --host 2"), "{}", doubts[0]);
    let again = bench.events(Command::Started);
    assert!(!again.iter().any(|event| matches!(event, Event::RollbackAsked { .. })), "{again:?}");
    let options = RollbackOptions::default();
    let request = RollbackRequest::Host { host: OTHER, options };
    let Ok(Answer::RolledBack(back)) =
        bench.answer(Command::Rollback { to: TO, job: JOB, request })
    else {
        panic!("refused")
    };
    assert_eq!(u64::try_from(back.len()).unwrap(), doubts[0].trials);
    assert!(bench.job().doubts.is_empty());
}

#[test]
fn a_record_of_before_has_no_doubts() {
    let old = r#"{"confirmed":3,"in_row":3,"refuted":0,"last_confirmed":7}"#;
    let record: Trust = serde_json::from_str(old).unwrap();
    assert_eq!(record.suspect_until, LeaseId(0));
    assert_eq!(serde_json::to_string(&record).unwrap(), old);
}
