//! Where a deployment has hosts of several owners, what several hosts say counts by owner.

use crate::support::{Bench, HOST, JOB, OTHER, data, demand, done, fail, hop, request};
use sojourn_core::{Answer, Command, Event, ReplyTo};
use sojourn_protocol::{
    api::WorkRequest,
    digest::Digest,
    ids::{HostId, TrialId},
    quotas::TokenQuotas,
    report::{FailureKind, Outcome, Report},
    spec::{OrderChoice, PlacementSpec, Verify},
    tokens::{TokenGrant, TokenRequest},
    unit::Lease,
    view::Verification,
};

const TO: ReplyTo = ReplyTo(1);

/// Hosts that enrol as those of one owner, and have shown themselves; of the deployment itself where none is named.
pub(crate) fn enrol(bench: &mut Bench, owner: &str, hosts: u32) -> Vec<HostId> {
    let grant =
        TokenGrant::Enrol { owner: owner.parse().unwrap(), hosts, machine: None, trusted: false };
    let asked = TokenRequest {
        label: owner.parse().unwrap(),
        grant,
        lifetime: None,
        quotas: TokenQuotas::default(),
    };
    let sha256 = Digest::of(owner.as_bytes());
    let create = Command::CreateToken { to: TO, request: asked, sha256, by: None };
    let Ok(Answer::Token(token)) = bench.answer(create) else {
        panic!("no token for {owner}");
    };
    let hosts = (0..hosts).map(|n| {
        let name = format!("{owner}-{n}");
        let token_sha256 = Digest::of(name.as_bytes());
        let enrol = Command::EnrolWithToken { to: TO, name, token_sha256, with: token.token };
        let Ok(Answer::Enrolled(host)) = bench.answer(enrol) else { panic!("refused") };
        bench.ask(host, request(0, Vec::new()));
        host
    });
    hosts.collect()
}

/// Each of these hosts in turn gets the one unit, and its trainer fails.
fn fail_on(bench: &mut Bench, hosts: &[HostId], kind: FailureKind) {
    for host in hosts {
        let lease = bench.lease(*host);
        fail(bench, *host, lease.id, kind, "out of luck");
    }
}

fn has_failed(bench: &mut Bench) -> bool {
    bench.core.state().trial(JOB, TrialId(0)).unwrap().end.is_some()
}

#[test]
fn an_owner_with_many_hosts_does_not_end_a_trial() {
    for kind in [FailureKind::Trainer, FailureKind::NonFinite] {
        let mut bench = Bench::with_job(1, 1);
        let liars = enrol(&mut bench, "lab-3", 10);
        fail_on(&mut bench, &liars, kind);
        assert!(!has_failed(&mut bench), "{kind:?}");
        // The operator's machines say so, too. A loss that isn't finite is the model's with two parties.
        fail_on(&mut bench, &[HOST], kind);
        assert_eq!(has_failed(&mut bench), kind == FailureKind::NonFinite);
        if kind == FailureKind::Trainer {
            fail_on(&mut bench, &[OTHER], kind);
        }
        assert!(has_failed(&mut bench), "{kind:?}");
    }
}

/// A host of another owner is there, and could never get the unit: it is no reason to go on.
#[test]
fn a_host_that_could_not_get_the_unit_keeps_no_trial_alive() {
    type Change = fn(&mut WorkRequest);
    let too_little_memory: Change = |request| {
        request.inventory.iter_mut().for_each(|of| of.devices[0].memory = Some(10));
    };
    let no_disk: Change = |request| {
        request.inventory.iter_mut().for_each(|of| of.cache = Some(10));
    };
    let no_slots: Change = |request| request.demand = vec![demand(0, 0, 0)];
    for change in [too_little_memory, no_disk, no_slots] {
        for (kind, hosts) in [(FailureKind::Trainer, 3), (FailureKind::NonFinite, 1)] {
            let verify = "[placement]\nverify = \"none\"";
            let mut bench = Bench::with_job_on(data(), 1, 1, verify);
            for operators in [HOST, OTHER] {
                let mut request = request(0, Vec::new());
                change(&mut request);
                bench.ask(operators, request);
            }
            let all = enrol(&mut bench, "lab-3", 4);
            fail_on(&mut bench, &all[..hosts], kind);
            assert!(has_failed(&mut bench), "{kind:?}");
        }
    }
}

/// Else a job that no trainer takes would keep the few hosts there are from all other work.
#[test]
fn what_trainers_refuse_ends_on_fewer_than_three_hosts_where_there_are_no_more() {
    for (kind, ends) in [(FailureKind::Trainer, true), (FailureKind::Died, false)] {
        let mut bench = Bench::with_job(1, 1);
        for host in [HOST, OTHER] {
            bench.ask(host, request(0, Vec::new()));
        }
        // A host that has done nothing yet may be what is broken.
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
        fail_on(&mut bench, &[HOST, OTHER], kind);
        assert!(!has_failed(&mut bench), "{kind:?}");
        fail_on(&mut bench, &[HOST], kind);
        assert_eq!(has_failed(&mut bench), ends, "{kind:?}");
    }
}

#[test]
fn a_unit_that_has_failed_on_very_many_hosts_ends_whoever_owns_them() {
    for kind in [FailureKind::Trainer, FailureKind::NonFinite] {
        let mut bench = Bench::with_job(1, 1);
        let many = enrol(&mut bench, "lab-3", 32);
        fail_on(&mut bench, &many[..31], kind);
        assert!(!has_failed(&mut bench), "{kind:?}");
        fail_on(&mut bench, &many[31..], kind);
        assert!(has_failed(&mut bench), "{kind:?}");
    }
}

#[test]
fn hosts_of_one_owner_end_a_trial_as_many_as_they_are() {
    for (kind, hosts) in [(FailureKind::Trainer, 3), (FailureKind::NonFinite, 2)] {
        let mut bench = Bench::with_job(1, 1);
        let more = enrol(&mut bench, "", 8);
        for (n, host) in [HOST, OTHER].into_iter().chain(more).enumerate().take(hosts) {
            assert!(!has_failed(&mut bench), "{kind:?} after {n}");
            fail_on(&mut bench, &[host], kind);
        }
        assert!(has_failed(&mut bench), "{kind:?}");
    }
}

#[test]
fn an_owner_does_not_decide_while_the_others_are_away() {
    let mut bench = Bench::with_job(1, 1);
    let liars = enrol(&mut bench, "lab-3", 4);
    // Nobody else was heard of for half an hour.
    bench.now += 1_800_000;
    for kind in [FailureKind::NonFinite, FailureKind::Trainer, FailureKind::Died] {
        for host in &liars {
            bench.now += 3_600_000;
            bench.ask(HOST, request(0, Vec::new()));
            bench.now += 60_000;
            for lease in bench.ask(*host, request(1, Vec::new())).leases {
                fail(&mut bench, *host, lease.id, kind, "out of luck");
            }
        }
    }
    assert!(!has_failed(&mut bench));
    bench.work_to_the_end(&[HOST]);
    assert_eq!(bench.job().trials_failed, 0);
}

/// Reports a host's result: right where `word` is "right".
pub(crate) fn came_to(bench: &mut Bench, host: HostId, lease: &Lease, word: &str) -> Vec<Event> {
    let mut report = done(lease);
    if let Outcome::Trained(trained) = &mut report.outcome {
        let what = format!("{word} {:?} {}", hop(lease).base, trained.end);
        trained.checkpoint.sha256 = Digest::of(what.as_bytes());
    }
    let Report { outcome: Outcome::Trained(trained), .. } = &report else { panic!("{report:?}") };
    let uploaded = Some(trained.checkpoint);
    bench.events(Command::Report { to: TO, host, report, uploaded })
}

fn verified_by_two() -> Bench {
    let verify = Some(Verify { quorum: 2, rate: 1000 }.into());
    let placement = PlacementSpec { verify, ..PlacementSpec::new(OrderChoice::Hop, true, 1) };
    Bench::with_order(&placement, 1, 1)
}

#[test]
fn an_owner_does_not_confirm_itself() {
    let mut bench = verified_by_two();
    let liars = enrol(&mut bench, "lab-3", 10);
    let third = enrol(&mut bench, "lab-4", 1).remove(0);
    let first = bench.lease(liars[0]);
    came_to(&mut bench, liars[0], &first, "wrong");
    for host in &liars[1..] {
        assert_eq!(bench.ask(*host, request(1, Vec::new())).leases, [], "not by the same owner");
    }
    let second = bench.lease(HOST);
    let events = came_to(&mut bench, HOST, &second, "right");
    assert!(!events.iter().any(|event| matches!(event, Event::Verified { .. })), "{events:?}");
    for host in &liars[1..] {
        assert_eq!(bench.ask(*host, request(1, Vec::new())).leases, [], "the owner has said it");
    }
    let witness = bench.lease(third);
    let events = came_to(&mut bench, third, &witness, "right");
    let (confirmed, refuted) = (vec![second.id, witness.id], vec![first.id]);
    assert!(events.contains(&Event::Verified { confirmed, refuted }), "{events:?}");
}

/// The operator's machines confirm each other, also where another owner's machine enrolled and is gone.
#[test]
fn machines_of_the_operator_verify_each_other_whoever_else_has_enrolled() {
    let mut bench = verified_by_two();
    let third = enrol(&mut bench, "", 1).remove(0);
    enrol(&mut bench, "lab-3", 1);
    // That one is gone for hours.
    for _ in 0..100 {
        bench.now += 60_000;
        for host in [HOST, OTHER, third] {
            bench.ask(host, request(0, Vec::new()));
        }
    }
    let first = bench.lease(HOST);
    came_to(&mut bench, HOST, &first, "wrong");
    let second = bench.lease(OTHER);
    came_to(&mut bench, OTHER, &second, "right");
    let witness = bench.lease(third);
    let events = came_to(&mut bench, third, &witness, "right");
    let (confirmed, refuted) = (vec![second.id, witness.id], vec![first.id]);
    assert!(events.contains(&Event::Verified { confirmed, refuted }), "{events:?}");
}

fn trust(bench: &Bench) -> Vec<sojourn_core::Trust> {
    bench.core.state().hosts.values().map(|host| host.trust).collect()
}

/// Two owners whose results differ: further hosts of theirs are asked, but what one owner's hosts agree on confirms nothing.
#[test]
fn a_dispute_of_two_owners_waits_for_a_third() {
    let mut bench = verified_by_two();
    let honest = enrol(&mut bench, "lab-1", 3);
    let liars = enrol(&mut bench, "lab-2", 3);
    for operators in [HOST, OTHER] {
        bench.events(Command::RevokeHost { to: TO, host: operators });
    }
    let before = trust(&bench);
    let first = bench.lease(liars[0]);
    came_to(&mut bench, liars[0], &first, "wrong 1");
    assert_eq!(bench.ask(liars[1], request(1, Vec::new())).leases, [], "another owner is there");
    let second = bench.lease(honest[0]);
    came_to(&mut bench, honest[0], &second, "right");
    let third = bench.lease(liars[1]);
    came_to(&mut bench, liars[1], &third, "wrong 2");
    assert_eq!(bench.ask(liars[0], request(1, Vec::new())).leases, [], "it has said it");
    let fourth = bench.lease(honest[1]);
    came_to(&mut bench, honest[1], &fourth, "right");
    assert_eq!(bench.assimilate(), [], "it waits");
    assert_eq!(trust(&bench), before, "nobody's trust changes");
    let third_owner = enrol(&mut bench, "lab-3", 1).remove(0);
    let fifth = bench.lease(third_owner);
    let events = came_to(&mut bench, third_owner, &fifth, "right");
    let (confirmed, refuted) = (vec![second.id, fourth.id, fifth.id], vec![first.id, third.id]);
    assert!(events.contains(&Event::Verified { confirmed, refuted }), "{events:?}");
    bench.assimilate();
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    let taken: Vec<_> = trial.history.iter().map(|hop| (hop.lease, hop.verified)).collect();
    assert_eq!(taken, [(second.id, Some(Verification::Confirmed))]);
}

/// One of an owner's machines is broken: another one of them agrees with the other owner's.
#[test]
fn a_dispute_with_one_broken_machine_ends_by_another_of_the_same_owner() {
    let mut bench = verified_by_two();
    let one = enrol(&mut bench, "lab-1", 2);
    let two = enrol(&mut bench, "lab-2", 2);
    for operators in [HOST, OTHER] {
        bench.events(Command::RevokeHost { to: TO, host: operators });
    }
    let broken = bench.lease(one[0]);
    came_to(&mut bench, one[0], &broken, "wrong");
    let second = bench.lease(two[0]);
    came_to(&mut bench, two[0], &second, "right");
    let third = bench.lease(one[1]);
    let events = came_to(&mut bench, one[1], &third, "right");
    let (confirmed, refuted) = (vec![second.id, third.id], vec![broken.id]);
    assert!(events.contains(&Event::Verified { confirmed, refuted }), "{events:?}");
}

/// A host that was revoked has no say, also in what it had said before.
#[test]
fn what_revoked_hosts_agreed_on_confirms_nothing() {
    let mut bench = verified_by_two();
    let liars = enrol(&mut bench, "lab-2", 2);
    bench.events(Command::RevokeHost { to: TO, host: OTHER });
    let first = bench.lease(liars[0]);
    came_to(&mut bench, liars[0], &first, "wrong");
    let second = bench.lease(HOST);
    came_to(&mut bench, HOST, &second, "right");
    let third = bench.lease(liars[1]);
    came_to(&mut bench, liars[1], &third, "wrong");
    // The others' hosts count one by one once theirs are revoked.
    for host in liars {
        let events = bench.events(Command::RevokeHost { to: TO, host });
        assert!(!events.iter().any(|event| matches!(event, Event::Verified { .. })), "{events:?}");
    }
    assert_eq!(bench.assimilate(), []);
}

#[test]
fn a_dispute_waits_for_a_party_that_could_be_asked() {
    let mut bench = verified_by_two();
    let liars = enrol(&mut bench, "lab-2", 3);
    let honest = enrol(&mut bench, "lab-1", 3);
    bench.events(Command::RevokeHost { to: TO, host: OTHER });
    let first = bench.lease(liars[0]);
    came_to(&mut bench, liars[0], &first, "wrong");
    let second = bench.lease(honest[0]);
    came_to(&mut bench, honest[0], &second, "right");
    for host in liars.iter().chain(&honest) {
        assert_eq!(bench.ask(*host, request(1, Vec::new())).leases, [], "the operator's is there");
    }
    let witness = bench.lease(HOST);
    let events = came_to(&mut bench, HOST, &witness, "right");
    let (confirmed, refuted) = (vec![second.id, witness.id], vec![first.id]);
    assert!(events.contains(&Event::Verified { confirmed, refuted }), "{events:?}");
}

/// Each owner's own machines come to different results: the arithmetic is at fault.
#[test]
fn a_unit_that_the_machines_of_two_owners_can_not_reproduce_ends_its_trial() {
    let mut bench = verified_by_two();
    let one = enrol(&mut bench, "lab-1", 2);
    let two = enrol(&mut bench, "lab-2", 2);
    for operators in [HOST, OTHER] {
        bench.events(Command::RevokeHost { to: TO, host: operators });
    }
    for (n, host) in [one[0], two[0], one[1], two[1]].into_iter().enumerate() {
        assert!(!has_failed(&mut bench), "after {n}");
        let lease = bench.lease(host);
        came_to(&mut bench, host, &lease, &n.to_string());
    }
    assert!(has_failed(&mut bench));
}

#[test]
fn machines_of_the_operator_confirm_each_other_and_no_other_owner_is_waited_for() {
    let mut bench = verified_by_two();
    let first = bench.lease(HOST);
    came_to(&mut bench, HOST, &first, "right");
    let second = bench.lease(OTHER);
    let events = came_to(&mut bench, OTHER, &second, "right");
    let confirmed = vec![first.id, second.id];
    assert!(events.contains(&Event::Verified { confirmed, refuted: Vec::new() }), "{events:?}");

    // Those of an owner don't while another one is there. Where the other has left, they do.
    let mut bench = verified_by_two();
    let own = enrol(&mut bench, "lab-1", 3);
    let left = enrol(&mut bench, "lab-3", 1).remove(0);
    for operators in [HOST, OTHER] {
        bench.events(Command::RevokeHost { to: TO, host: operators });
    }
    let first = bench.lease(own[0]);
    came_to(&mut bench, own[0], &first, "right");
    assert_eq!(bench.ask(own[1], request(1, Vec::new())).leases, [], "of the same owner");
    bench.events(Command::RevokeHost { to: TO, host: left });
    let second = bench.lease(own[1]);
    came_to(&mut bench, own[1], &second, "right");
    bench.assimilate();
    let trial = bench.core.state().trial(JOB, TrialId(0)).unwrap();
    let verified: Vec<_> = trial.history.iter().map(|hop| hop.verified).collect();
    assert_eq!(verified, [Some(Verification::Confirmed)], "all are of one owner then");
}
