//! Hosts: their agents' actions are carried out here, and what follows is told to them as events.

use super::{HOST_BEAT, World, WorldEvent};
use crate::{
    call::Call,
    chaos::{fate::UnitFate, host::checkpoint_of},
};
use sojourn_client_core::{
    Action, CallError, Event, Micros, ReportError, UnitError, UploadError, Uploaded,
};
use sojourn_core::{Answer, Command, ReplyTo};
use sojourn_protocol::{
    api::HeartbeatRequest,
    error::ApiError,
    ids::{JobId, LeaseId, TrialId},
    manifest::DataSplit,
    report::ReportState,
    time::Millis,
};

/// A call without an answer is given up after this time.
const CALL_TIMEOUT: Millis = Millis::from_secs(3);
/// The same of a request for work, which the server may hold.
const ASK_TIMEOUT: Millis = Millis::from_secs(8);

/// A call of a host that has no answer yet.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    host: usize,
    boot: u64,
    of: Call,
}

impl World {
    /// A host's program starts.
    pub(super) fn boots(&mut self, index: usize, boot: u64) {
        let now = self.agent_time();
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        let actions = host.agent.start(now, &host.disk);
        self.carry_out(index, actions);
        self.beat(index, boot);
    }

    /// Time goes by on a host: its units come on, and what is due is done.
    pub(super) fn beat(&mut self, index: usize, boot: u64) {
        let now = self.now;
        let Some(host) = self.hosts.get(index).filter(|host| host.boot == boot) else { return };
        for event in host.progress(now) {
            self.tell(index, event);
        }
        self.tell(index, Event::Tick);
        if self.faulty() && self.happens(self.scenario.curious) {
            let trial = TrialId(self.below(8));
            let split = if self.below(2) == 0 { DataSplit::Valid } else { DataSplit::Test };
            self.send(Command::Evaluate { to: ReplyTo(0), job: JobId(1), trial, split });
        }
        self.later(HOST_BEAT, WorldEvent::Beat { host: index, boot });
    }

    /// Tells an agent of an event, unless its host has crashed since it was on its way.
    pub(super) fn told(&mut self, index: usize, boot: u64, event: Event) {
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        if let Event::BlobReady(blob) = &event {
            host.cache(*blob);
        }
        self.tell(index, event);
    }

    fn tell(&mut self, index: usize, event: Event) {
        let now = self.agent_time();
        let Some(host) = self.hosts.get_mut(index) else { return };
        let actions = host.agent.handle(now, event, &host.disk);
        self.carry_out(index, actions);
    }

    fn agent_time(&self) -> Micros {
        Micros::from_millis(self.now.0)
    }

    fn carry_out(&mut self, index: usize, actions: Vec<Action>) {
        for action in actions {
            self.carry_out_one(index, action);
        }
    }

    fn carry_out_one(&mut self, index: usize, action: Action) {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index) else { return };
        let (id, boot) = (host.id, host.boot);
        match action {
            Action::Ask(ask) => {
                let inventory = host.inventory();
                let request = host.agent.work_request(ask, inventory, &host.disk);
                let call = |to| Command::Ask { to, host: id, request };
                self.call(index, Call::Ask(ask), ASK_TIMEOUT, call);
            }
            Action::Beat => {
                let request = host.agent.heartbeat_request(&host.disk);
                let (holding, reported) = (request.holding, request.reported);
                let call = |to| Command::Heartbeat {
                    to,
                    host: id,
                    request: HeartbeatRequest::new(holding, reported),
                };
                self.call(index, Call::Beat, CALL_TIMEOUT, call);
            }
            Action::Report(lease) => match host.report(lease).cloned() {
                Some(report) => {
                    let uploaded = checkpoint_of(&report);
                    let call = |to| Command::Report { to, host: id, report, uploaded };
                    self.call(index, Call::Report(lease), CALL_TIMEOUT, call);
                }
                None => {
                    let lost = ReportError::NotWanted("there is no such result".into());
                    self.soon(index, Event::Report(lease, Err(lost)));
                }
            },
            Action::Release(leases, reason) => {
                let of = Call::Release(Box::new((leases.clone(), reason.clone())));
                let call = |to| Command::Release { to, host: id, leases, reason };
                self.call(index, of, CALL_TIMEOUT, call);
            }
            Action::Fetch(blob, _, _) => {
                let takes = self.transfer_time(index);
                let event = Box::new(Event::BlobReady(blob.sha256));
                self.later(takes, WorldEvent::Told { host: index, boot, event });
            }
            Action::Upload(lease, _) => {
                let faults = self.faults();
                let takes = self.transfer_time(index);
                let event = match self.happens(faults.lose) {
                    true => Event::UploadFailed(lease, UploadError::Later(CallError::default())),
                    false => Event::Uploaded(lease, Uploaded::Sent),
                };
                let event = Box::new(event);
                self.later(takes, WorldEvent::Told { host: index, boot, event });
            }
            Action::Start(lease, _) => {
                let lease_id = lease.id;
                let takes = host.start(lease, now);
                self.later(takes, WorldEvent::UnitEnds { host: index, boot, lease: lease_id });
            }
            Action::HandOver(lease, shard) => {
                if host.hand_over(lease, shard) {
                    self.later(Millis(0), WorldEvent::UnitEnds { host: index, boot, lease });
                }
            }
            Action::StopAfterBatch(lease) => {
                if let Some(takes) = host.stop_after_batch(lease, now) {
                    self.later(takes, WorldEvent::UnitEnds { host: index, boot, lease });
                }
            }
            Action::StopNow(lease) => {
                host.kill(lease);
                self.soon(index, Event::UnitFailed(lease, UnitError::Stopped, None));
            }
            Action::Kill(lease) => host.kill(lease),
            Action::DeleteResult(lease) => host.delete_result(lease),
            Action::Evict(blob) => host.evict(&blob),
            Action::CancelFetch(_) | Action::Unpin(_) | Action::SetCpuShares(_) | Action::Exit => {}
        }
    }

    fn soon(&mut self, index: usize, event: Event) {
        let boot = self.hosts.get(index).map_or(0, |host| host.boot);
        self.later(Millis(0), WorldEvent::Told { host: index, boot, event: Box::new(event) });
    }

    /// How long a blob takes: longer while the network is slow, and at least until it is there again.
    fn transfer_time(&mut self, index: usize) -> Millis {
        let faults = self.faults();
        let slow = self.happens(faults.lag);
        let takes = Millis(u64::from(if slow { self.below(5_000) } else { 1 + self.below(30) }));
        let silent_until = self.hosts.get(index).map_or(self.now, |host| host.silent_until);
        if silent_until > self.now { Millis((silent_until - self.now).0 + takes.0) } else { takes }
    }

    /// Makes a call; without an answer it fails when its time is over.
    fn call(
        &mut self,
        index: usize,
        of: Call,
        timeout: Millis,
        command: impl FnOnce(ReplyTo) -> Command,
    ) {
        let Some(host) = self.hosts.get(index) else { return };
        let (boot, is_silent) = (host.boot, host.silent_until > self.now);
        self.count += 1;
        let to = ReplyTo(self.count);
        self.calls.insert(to, OpenCall { host: index, boot, of });
        self.later(timeout, WorldEvent::CallTimesOut { to });
        if !is_silent {
            self.send(command(to));
        }
    }

    pub(super) fn call_times_out(&mut self, to: ReplyTo) {
        if let Some(OpenCall { host, boot, of }) = self.calls.remove(&to) {
            self.told(host, boot, of.failed(None));
        }
    }

    /// An answer reaches a host, unless its network is cut, or it has crashed or given the call up.
    pub(super) fn heard(&mut self, to: ReplyTo, answer: Result<Box<Answer>, ApiError>) {
        let now = self.now;
        let Some(call) = self.calls.get(&to) else { return };
        let Some(host) = self.hosts.get_mut(call.host) else { return };
        if host.boot != call.boot || host.silent_until > now {
            return;
        }
        let Some(OpenCall { host: index, boot, of }) = self.calls.remove(&to) else { return };
        match answer.as_deref() {
            Ok(Answer::Work(work)) => host.count_leases(&work.leases),
            Ok(Answer::Report(report)) if report.state == ReportState::Acknowledged => {
                self.acknowledged.insert(report.lease);
            }
            _ => {}
        }
        let event = of.answered(answer.map(|answer| *answer));
        if let Some(event) = event {
            self.told(index, boot, event);
        }
    }

    pub(super) fn unit_ends(&mut self, index: usize, boot: u64, lease: LeaseId) {
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        if let Some(shard) = host.missing_shard(lease) {
            return self.tell(index, Event::ShardNeeded(lease, shard));
        }
        let faults = self.faults();
        let (crash, vanish) = (self.happens(faults.crash), self.happens(faults.vanish));
        let trick = self.hosts.get(index).and_then(|host| host.trick);
        let fate = if let Some(fate) = trick.and_then(|trick| trick.fate(lease)) {
            fate
        } else if self.happens(faults.fail) {
            if self.below(2) == 0 { UnitFate::Fails } else { UnitFate::Diverges }
        } else if self.happens(faults.lie) {
            UnitFate::Lies
        } else if self.happens(faults.part) {
            UnitFate::Part
        } else {
            UnitFate::Done
        };
        let away = Millis(u64::from(self.below(60_000)));
        let kept = self.below(2) == 0;
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index) else { return };
        let result = if !crash || kept { host.finish(lease, fate) } else { None };
        self.outcome.host_faults += u64::from(crash || vanish);
        if crash {
            host.crash();
            let boot = host.boot;
            return self.later(away, WorldEvent::Boots { host: index, boot });
        }
        if vanish {
            host.silent_until = now + away;
        }
        if let Some(result) = result {
            self.tell(index, Event::UnitEnded(lease, result));
        }
    }
}
