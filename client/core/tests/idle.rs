//! An agent that may not wait for ever.

#[path = "support/all_here.rs"]
mod all_here;
mod support;

use all_here::Disk;
use sojourn_client_core::{
    Action, Agent, AgentConfig, AskId, CallError, DeviceSlots, Event, Micros, ReportError,
    ResultFacts, TrainerState,
};
use sojourn_protocol::{
    api::{HeartbeatAnswer, ReportAnswer},
    digest::{BlobRef, Digest},
    ids::LeaseId,
    report::{ReportEnd, ReportState},
};
use std::sync::Arc;

const LEASE: LeaseId = LeaseId(1);

/// An agent that ends when nothing was to do for a minute, and the calls that it has open.
struct Host {
    agent: Agent,
    now: u64,
    ask: Option<AskId>,
    beats: bool,
    reports: bool,
    /// Does the server answer?
    is_there: bool,
    /// And do reports arrive?
    takes_reports: bool,
    ended_at: Option<u64>,
}

impl Host {
    /// A host whose only unit has ended, at 100 seconds.
    fn with_a_result(is_there: bool) -> Self {
        let device = DeviceSlots { name: "cpu".into(), slots: 1 };
        let config = AgentConfig {
            exit_when_idle: Some(Micros::from_secs(60)),
            ..AgentConfig::new(vec![device])
        };
        let agent = Agent::new(Arc::new(config), 7, Vec::new());
        let mut host = Self {
            agent,
            now: 1,
            ask: None,
            beats: false,
            reports: false,
            is_there,
            takes_reports: false,
            ended_at: None,
        };
        let actions = host.agent.start(Micros::from_secs(1), &Disk);
        host.note(actions);
        let shard = BlobRef { sha256: Digest::of(b"shard"), bytes: 10 };
        let lease = support::lease(LEASE.0, shard, 5);
        let Some(ask) = host.ask.take() else { panic!("no request for work") };
        host.handle(Event::Work(ask, Ok(support::gives(vec![lease]))));
        host.handle(Event::BlobReady(shard.sha256));
        host.pass_until(100);
        assert!(host.ended_at.is_none(), "its unit runs");
        let result = ResultFacts { has_checkpoint: false, continues_from: None };
        host.handle(Event::SlotFree(LEASE, TrainerState::Good));
        host.handle(Event::UnitEnded(LEASE, result));
        host
    }

    fn handle(&mut self, event: Event) {
        let actions = self.agent.handle(Micros::from_secs(self.now), event, &Disk);
        self.note(actions);
    }

    fn note(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Ask(ask) => self.ask = Some(ask),
                Action::Beat => self.beats = true,
                Action::Report(LEASE) => self.reports = true,
                Action::Exit => self.ended_at = Some(self.now),
                _ => {}
            }
        }
    }

    /// Seconds pass, in each of which all calls that are open end.
    fn pass_until(&mut self, end: u64) {
        while self.now < end && self.ended_at.is_none() {
            self.now += 1;
            self.handle(Event::Tick);
            let error = CallError::default();
            if let Some(ask) = self.ask.take() {
                let nothing = support::gives(Vec::new());
                let result = if self.is_there { Ok(nothing) } else { Err(error) };
                self.handle(Event::Work(ask, result));
            }
            if std::mem::take(&mut self.beats) {
                let nothing = HeartbeatAnswer {
                    drop: Vec::new(),
                    reports: Vec::new(),
                    stop: Vec::new(),
                    leave_within: None,
                };
                let result = if self.is_there { Ok(nothing) } else { Err(error) };
                self.handle(Event::Heartbeat(result));
            }
            if std::mem::take(&mut self.reports) {
                let state = ReportState::Ended(ReportEnd::Superseded);
                let result = match self.takes_reports {
                    true => Ok(ReportAnswer { lease: LEASE, state }),
                    false => Err(ReportError::NoAnswer(error)),
                };
                self.handle(Event::Report(LEASE, result));
            }
        }
    }
}

#[test]
fn a_result_that_no_server_takes_does_not_keep_it() {
    let mut host = Host::with_a_result(false);
    host.pass_until(159);
    assert_eq!(host.ended_at, None, "nothing has run for less than a minute");
    host.pass_until(300);
    assert!(host.ended_at.is_some_and(|at| at < 165), "{:?}", host.ended_at);
    assert_eq!(host.agent.undelivered(), 1, "the next start sends it");
}

#[test]
fn a_result_is_delivered_before_the_end_where_the_server_answers() {
    let mut host = Host::with_a_result(true);
    host.pass_until(1000);
    assert_eq!((host.ended_at, host.agent.undelivered()), (None, 1));
    assert!(host.agent.is_leaving());
    // It doesn't end over a short absence.
    host.is_there = false;
    host.pass_until(1020);
    host.is_there = true;
    host.pass_until(1500);
    assert_eq!(host.ended_at, None);
    host.takes_reports = true;
    host.pass_until(1600);
    assert!(host.ended_at.is_some());
    assert_eq!(host.agent.undelivered(), 0);
}

#[test]
fn a_server_that_stays_away_while_a_result_is_delivered_is_not_waited_for() {
    let mut host = Host::with_a_result(true);
    host.pass_until(1000);
    host.is_there = false;
    host.pass_until(1059);
    assert_eq!(host.ended_at, None);
    host.pass_until(2000);
    assert!(host.ended_at.is_some_and(|at| at < 1075), "{:?}", host.ended_at);
}
