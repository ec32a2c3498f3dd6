//! The delivery of a result, where the server or the disk is in the way, and the reports that the server is asked about.

#[path = "support/all_here.rs"]
mod all_here;
mod support;

use all_here::Disk;
use sojourn_client_core::{
    Action, Agent, AgentConfig, AskId, DeviceSlots, Event, Micros, ReleaseReason, ReportError,
    ResultFacts, TrainerState, UploadError, UploadStart, Uploaded,
};
use sojourn_protocol::{
    api::{HeartbeatAnswer, HeldState, ReportAnswer},
    digest::{BlobRef, Digest},
    ids::LeaseId,
    report::ReportState,
};
use std::sync::Arc;

const LEASE: LeaseId = LeaseId(1);
const WITH_CHECKPOINT: ResultFacts = ResultFacts { has_checkpoint: true, continues_from: None };

/// A host whose blobs are all here as soon as they are asked for.
struct Host {
    agent: Agent,
    now: u64,
    ask: AskId,
    /// A heartbeat is under way.
    is_beating: bool,
}

impl Host {
    fn new(slots: u32) -> Self {
        let device = DeviceSlots { name: "cpu".into(), slots };
        let mut agent = Agent::new(Arc::new(AgentConfig::new(vec![device])), 7, Vec::new());
        let actions = agent.start(Micros::from_secs(1), &Disk);
        let Some(ask) = asked(&actions) else { panic!("no request for work") };
        Self { agent, now: 1, ask, is_beating: false }
    }

    fn handle(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let said = self.agent.handle(Micros::from_secs(self.now), event, &Disk);
            for action in &said {
                match action {
                    Action::Fetch(blob, ..) => events.push(Event::BlobReady(blob.sha256)),
                    Action::Ask(ask) => self.ask = *ask,
                    Action::Beat => self.is_beating = true,
                    _ => {}
                }
            }
            actions.extend(said);
        }
        actions
    }

    /// Waits for longer than any pause between two attempts.
    fn later(&mut self) -> Vec<Action> {
        self.now += 60;
        self.handle(Event::Tick)
    }

    /// Is granted a unit, which begins.
    fn begins(&mut self, lease: LeaseId) {
        let shard = BlobRef { sha256: Digest::of(b"shard"), bytes: 10 };
        let leases = vec![support::lease(lease.0, shard, 5)];
        let mut actions = self.handle(Event::Work(self.ask, Ok(support::gives(leases))));
        // The next request may have to wait for a while.
        actions.extend(self.later());
        let starts = |action: &Action| matches!(action, Action::Start(unit, _) if unit.id == lease);
        assert!(actions.iter().any(starts), "{actions:?}");
    }

    /// Is granted a unit, which ends with this result.
    fn ends(&mut self, lease: LeaseId, result: ResultFacts) -> Vec<Action> {
        self.begins(lease);
        self.handle(Event::SlotFree(lease, TrainerState::Good));
        self.handle(Event::UnitEnded(lease, result))
    }

    fn acknowledged(&mut self, lease: LeaseId) {
        let result = ResultFacts::default();
        assert!(self.ends(lease, result).contains(&Action::Report(lease)));
        let answer = ReportAnswer { lease, state: ReportState::Acknowledged };
        self.handle(Event::Report(lease, Ok(answer)));
        assert_eq!(self.agent.acknowledged(), [lease]);
    }
}

fn asked(actions: &[Action]) -> Option<AskId> {
    actions.iter().find_map(|action| match action {
        Action::Ask(ask) => Some(*ask),
        _ => None,
    })
}

fn drops(lease: LeaseId) -> HeartbeatAnswer {
    let (drop, reports, stop) = (vec![lease], Vec::new(), Vec::new());
    HeartbeatAnswer { drop, reports, stop, leave_within: None }
}

/// The result is deleted, and its lease given back with this reason.
fn is_given_up(actions: &[Action], reason: &str) -> bool {
    let reason = ReleaseReason::Fault(reason.to_owned());
    actions.contains(&Action::DeleteResult(LEASE))
        && actions.contains(&Action::Release(vec![LEASE], reason))
}

#[test]
fn a_checkpoint_that_the_server_lacks_is_sent_again_five_times() {
    let mut host = Host::new(1);
    let missing = || Event::Report(LEASE, Err(ReportError::UploadMissing("no upload".into())));
    let first = host.ends(LEASE, WITH_CHECKPOINT);
    assert!(first.contains(&Action::Upload(LEASE, UploadStart::FirstByte)), "{first:?}");
    for again in 1..=5 {
        let actions = host.handle(Event::Uploaded(LEASE, Uploaded::Sent));
        assert!(actions.contains(&Action::Report(LEASE)), "{again}: {actions:?}");
        let actions = host.handle(missing());
        assert!(actions.contains(&Action::Upload(LEASE, UploadStart::Locate)), "{again}");
    }
    host.handle(Event::Uploaded(LEASE, Uploaded::Sent));
    assert!(is_given_up(&host.handle(missing()), "no upload"));
    assert_eq!(host.agent.undelivered(), 0);
}

/// There is nothing to send again.
#[test]
fn a_report_without_a_checkpoint_is_given_up_where_the_server_misses_one() {
    let mut host = Host::new(1);
    let actions = host.ends(LEASE, ResultFacts::default());
    assert!(actions.contains(&Action::Report(LEASE)));
    let missing = Event::Report(LEASE, Err(ReportError::UploadMissing("no upload".into())));
    assert!(is_given_up(&host.handle(missing), "no upload"));
}

/// A program that is ending meets such errors: one of them doesn't cost the result.
#[test]
fn a_result_that_can_not_be_read_six_times_is_lost() {
    let mut host = Host::new(1);
    host.ends(LEASE, WITH_CHECKPOINT);
    let unreadable =
        || Event::UploadFailed(LEASE, UploadError::Unreadable("too many open files".into()));
    for again in 1..=5 {
        let actions = host.handle(unreadable());
        assert!(!actions.contains(&Action::DeleteResult(LEASE)), "{again}");
        let actions = host.later();
        assert!(actions.contains(&Action::Upload(LEASE, UploadStart::Locate)), "{again}");
    }
    assert!(is_given_up(&host.handle(unreadable()), "too many open files"));
}

#[test]
fn a_heartbeat_names_what_is_held_and_the_reports_whose_end_is_not_known() {
    let mut host = Host::new(1);
    host.acknowledged(LEASE);
    host.begins(LeaseId(2));
    let beat = host.agent.heartbeat_request(&Disk);
    let held: Vec<_> = beat.holding.iter().map(|held| (held.lease, held.state)).collect();
    assert_eq!(held, [(LeaseId(2), HeldState::Running { done: 0, of: 9 })]);
    assert_eq!(beat.reported, [LEASE]);
    // The server no longer knows the lease that was named so: its result may go.
    let actions = host.handle(Event::Heartbeat(Ok(drops(LEASE))));
    assert!(actions.contains(&Action::DeleteResult(LEASE)), "{actions:?}");
}

/// The server may have dropped the lease before the report came, and have the result now.
#[test]
fn an_acknowledged_result_stays_where_the_heartbeat_did_not_name_it() {
    let mut host = Host::new(1);
    let beat = host.agent.heartbeat_request(&Disk);
    assert_eq!((beat.holding, beat.reported), (Vec::new(), Vec::new()));
    host.acknowledged(LEASE);
    let actions = host.handle(Event::Heartbeat(Ok(drops(LEASE))));
    assert!(!actions.contains(&Action::DeleteResult(LEASE)), "{actions:?}");
    assert_eq!(host.agent.acknowledged(), [LEASE]);
}

#[test]
fn a_host_that_ends_asks_what_has_become_of_its_reports() {
    let none = || HeartbeatAnswer { drop: Vec::new(), ..drops(LEASE) };
    for is_answered in [false, true] {
        let mut host = Host::new(1);
        host.acknowledged(LEASE);
        assert!(host.is_beating, "a unit that ran had heartbeats sent");
        if is_answered {
            host.is_beating = false;
            host.handle(Event::Heartbeat(Ok(none())));
            assert!(!host.is_beating, "nothing is held");
        }
        let actions = host.handle(Event::Shutdown);
        assert!(!actions.contains(&Action::Exit), "{actions:?}");
        // A heartbeat that is under way will do.
        assert_eq!(actions.contains(&Action::Beat), is_answered, "{actions:?}");
        let mut actions = host.handle(Event::Heartbeat(Ok(none())));
        actions.extend(host.handle(Event::Work(host.ask, Ok(support::gives(Vec::new())))));
        assert!(actions.contains(&Action::Exit), "{actions:?}");
    }
}

#[test]
fn a_slot_whose_trainer_fails_three_units_in_a_row_gets_no_more() {
    let mut host = Host::new(2);
    assert_eq!((host.agent.usable_slots(0), host.agent.usable_slots(1)), (2, 0));
    for id in (1..=3).map(LeaseId) {
        assert_eq!((host.agent.usable_slots(0), host.agent.slots_out_of_use()), (2, 0));
        host.begins(id);
        host.handle(Event::SlotFree(id, TrainerState::Failed));
        host.handle(Event::UnitEnded(id, ResultFacts::default()));
    }
    assert_eq!((host.agent.usable_slots(0), host.agent.slots_out_of_use()), (1, 1));
    let demand: Vec<u32> = host.agent.demand().iter().map(|demand| demand.slots).collect();
    assert_eq!(demand, [1]);
}
