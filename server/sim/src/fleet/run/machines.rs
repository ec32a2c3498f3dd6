//! Machines that somebody buys and gives back while a fleet works.

use super::{NOBODY, Run};
use crate::fleet::{
    host::{Host, agent_config},
    job::index,
    machines::{FleetView, MachineChange},
    queue::Event,
};
use sojourn_core::{Answer, Command};
use sojourn_protocol::{
    digest::Digest,
    machines::MachineName,
    quantity::SaturatingFrom as _,
    time::{Millis, UnixMillis},
};
use std::sync::Arc;

impl Run<'_> {
    /// Is nothing more to come of those who buy machines?
    pub(super) fn machines_are_done(&self) -> bool {
        self.machines.as_ref().is_none_or(|machines| machines.is_done())
    }

    pub(super) fn server_is_away(&self) -> bool {
        let now = UnixMillis(self.now / 1000);
        self.machines.as_ref().is_some_and(|machines| machines.server_is_away(now))
    }

    /// It is as late as whoever buys machines wanted to be asked.
    pub(super) fn machines_event(&mut self) -> Result<(), String> {
        if self.asked_at != Some(self.now) {
            return Ok(());
        }
        self.asked_at = None;
        self.ask_machines()
    }

    /// Asks whoever buys machines, and lets happen what it says.
    pub(super) fn ask_machines(&mut self) -> Result<(), String> {
        let Some(machines) = &mut self.machines else { return Ok(()) };
        let now = UnixMillis(self.now / 1000);
        let view = FleetView {
            core: &self.core,
            hosts: &self.hosts,
            machines: &self.bought,
            now,
            all_ended: self.submitted == self.plan.jobs.len() && self.ended == self.submitted,
        };
        let changes = machines.act(now, &view)?;
        let next = machines.next_at();
        for change in changes {
            self.change(change)?;
        }
        let at = next.map(|at| at.0.saturating_mul(1000).max(self.now + 1000));
        if let Some(at) = at.filter(|at| self.asked_at.is_none_or(|asked| *at < asked)) {
            self.asked_at = Some(at);
            self.queue.add(at, Event::Machines);
        }
        Ok(())
    }

    /// Tells whoever buys machines of those whose clients have ended.
    pub(super) fn tell_exits(&mut self) -> Result<(), String> {
        if self.exits.is_empty() {
            return Ok(());
        }
        let now = UnixMillis(self.now / 1000);
        let exits = std::mem::take(&mut self.exits);
        let Some(machines) = &mut self.machines else { return Ok(()) };
        let of = |exit: u32| self.bought.iter().find(|(_, host)| **host == index(exit));
        for (name, _) in exits.into_iter().filter_map(of) {
            machines.exited(now, name);
        }
        self.ask_machines()
    }

    fn change(&mut self, change: MachineChange) -> Result<(), String> {
        match change {
            MachineChange::Comes { machine, group } => self.machine_comes(machine, group),
            MachineChange::Ending { machine, left: Millis(left) } => {
                if let Some(host) = self.bought.get(&machine).copied() {
                    let left = left.saturating_mul(1000);
                    self.with(host, |host, around| host.preempted(left, around));
                }
                Ok(())
            }
            MachineChange::Goes { machine } => {
                if let Some(host) = self.bought.remove(&machine) {
                    self.with(host, |host, around| host.go(true, around));
                    self.tally.departures += 1;
                }
                Ok(())
            }
        }
    }

    fn machine_comes(&mut self, machine: MachineName, group: usize) -> Result<(), String> {
        let plan = self.plan;
        let kind = plan.kinds.iter().position(|kind| kind.group == group);
        let known = kind.zip(plan.groups.get(group));
        let (kind, of) = known.ok_or_else(|| format!("there is no group {group} of hosts"))?;
        let place = self.hosts.len();
        let config = Arc::new(agent_config(plan, kind, of));
        let mut host = Host::new(u32::saturating_from(place), kind, of, config);
        let token_sha256 = Digest::of(format!("token of {machine}").as_bytes());
        self.apply(Command::Enrol { to: NOBODY, name: machine.to_string(), token_sha256 })?;
        let Some(Ok(Answer::Enrolled(id))) = self.answer.take() else {
            return Err(format!("machine {machine} can't enrol"));
        };
        host.id = id;
        self.hosts.push(host);
        self.bought.insert(machine, place);
        self.with(place, Host::come);
        Ok(())
    }
}
