//! What hosts do, and what they hear.

use super::{HOST_BEAT, Happening, World};
use crate::chaos::host::Fate;
use sojourn_core::{Answer, Command, ReplyTo};
use sojourn_protocol::{
    ids::{HostId, JobId, LeaseId, TrialId},
    manifest::DataSplit,
    report::{Outcome as UnitOutcome, Report, ReportState},
    time::Millis,
};

impl World {
    pub(super) fn beat(&mut self, index: usize, boot: u64) {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        if host.silent_until > now {
            let rest = host.silent_until - now;
            return self.later(rest, Happening::Beat { host: index, boot });
        }
        let started = host.start_units(now);
        let (id, reports) = (host.id, host.to_report());
        let ask = host.ask_until.is_none_or(|until| until <= now).then(|| host.request(now));
        let (holding, reported) = (host.holding(now), host.reported());
        if ask.is_some() {
            host.ask_until = Some(now + Millis::from_secs(8));
        }
        for (lease, takes) in started {
            self.later(takes, Happening::UnitEnds { host: index, boot, lease });
        }
        if let Some(request) = ask {
            let to = self.caller(index, None);
            self.send(Command::Ask { to, host: id, request });
        }
        for report in reports {
            self.send_report(index, id, report);
        }
        if self.faulty() && self.happens(self.scenario.curious) {
            let trial = TrialId(self.below(8));
            let split = if self.below(2) == 0 { DataSplit::Valid } else { DataSplit::Test };
            self.send(Command::Evaluate { to: ReplyTo(0), job: JobId(1), trial, split });
        }
        let to = self.caller(index, None);
        self.send(Command::Heartbeat { to, host: id, holding, reported });
        self.later(HOST_BEAT, Happening::Beat { host: index, boot });
    }

    pub(super) fn send_report(&mut self, index: usize, host: HostId, report: Report) {
        let uploaded = match &report.outcome {
            UnitOutcome::Trained(trained) => Some(trained.checkpoint),
            UnitOutcome::Evaluated(_) | UnitOutcome::Failed(_) => None,
        };
        let to = self.caller(index, Some(report.lease));
        self.send(Command::Report { to, host, report, uploaded });
    }

    pub(super) fn unit_ends(&mut self, index: usize, boot: u64, lease: LeaseId) {
        let faults = self.faults();
        let (crash, vanish) = (self.happens(faults.crash), self.happens(faults.vanish));
        let fate = if self.happens(faults.fail) {
            if self.below(2) == 0 { Fate::Fails } else { Fate::Explodes }
        } else if self.happens(faults.lie) {
            Fate::Lies
        } else if self.happens(faults.part) {
            Fate::Part
        } else {
            Fate::Done
        };
        let away = Millis(u64::from(self.below(60_000)));
        let kept = self.below(2) == 0;
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        if !crash || kept {
            host.finish(lease, fate);
        }
        self.outcome.host_faults += u64::from(crash || vanish);
        if crash {
            host.crash(now + away);
            let boot = host.boot;
            self.later(away, Happening::Beat { host: index, boot });
        } else if vanish {
            host.silent_until = now + away;
        } else {
            self.later(Millis(0), Happening::Beat { host: index, boot });
        }
    }

    pub(super) fn heard(&mut self, index: usize, boot: u64, answer: Answer) {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index).filter(|host| host.boot == boot) else { return };
        if host.silent_until > now {
            return;
        }
        match answer {
            Answer::Work(answer) => host.heard_work(&answer),
            Answer::Heartbeat(answer) => host.heard_heartbeat(&answer),
            Answer::Report(answer) => {
                if answer.state == ReportState::Acknowledged {
                    self.acknowledged.insert(answer.lease);
                }
                host.heard_state(answer.lease, &answer.state);
            }
            _ => {}
        }
    }
}
