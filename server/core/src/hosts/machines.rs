//! Bought machines: what their buyer says of them, and which are given back.

use super::HostHandler;
use crate::reply::{Reply, invalid};
use sojourn_protocol::{
    machines::{DrainRequest, MAX_MACHINES, MachineReport, MachinesAnswer},
    quantity::SaturatingFrom as _,
    time::Millis,
};
use sojourn_scheduling::waiters::Wake;
use sojourn_state::{Event, KEEP_ENDED_MACHINES};

/// How far the clocks of a cloud and of the server may be apart.
const CLOCK_DIFFERENCE: Millis = Millis::from_secs(600);

impl HostHandler<'_> {
    /// Takes in what the buyer says of machines.
    pub(crate) fn report_machines(
        &mut self,
        mut machines: Vec<MachineReport>,
    ) -> Reply<MachinesAnswer> {
        if machines.len() > MAX_MACHINES {
            return invalid(format!("at most {MAX_MACHINES} machines are taken at once"));
        }
        for machine in &machines {
            self.check(machine)?;
        }
        let known = &self.ledger.state.machines;
        machines.retain(|machine| {
            known.get(&machine.name).and_then(|known| known.report.as_ref()) != Some(machine)
        });
        let changed = u32::saturating_from(machines.len());
        if machines.is_empty() {
            return Ok(MachinesAnswer { changed });
        }
        for machine in machines.iter().filter(|machine| machine.ended_at.is_some()) {
            self.hosts.end_drain(&machine.name);
        }
        self.ledger.record(Event::MachinesReported { machines })?;
        Ok(MachinesAnswer { changed })
    }

    /// Can it be so?
    fn check(&self, machine: &MachineReport) -> Reply<()> {
        let (name, now) = (&machine.name, self.ledger.clock.now());
        if machine.launched_at > now + CLOCK_DIFFERENCE {
            return invalid(format!("machine {name} is launched in the future"));
        }
        let Some(ended) = machine.ended_at else { return Ok(()) };
        if ended < machine.launched_at {
            return invalid(format!("machine {name} ended before it was launched"));
        }
        // Its costs may have been counted by then.
        let is_new = self.ledger.state.machines.get(name).is_none();
        if is_new && ended + KEEP_ENDED_MACHINES < now {
            return invalid(format!("machine {name} ended more than 7 days ago"));
        }
        Ok(())
    }

    /// Machines are given back: from now on their hosts get nothing, and hear by when they have to end.
    pub(crate) fn drain_machines(&mut self, request: DrainRequest) -> Reply<MachinesAnswer> {
        let DrainRequest { machines, within } = request;
        if machines.len() > MAX_MACHINES {
            return invalid(format!("at most {MAX_MACHINES} machines are taken at once"));
        }
        let until = self.ledger.clock.now() + within;
        let mut changed = 0_u32;
        for machine in machines {
            let known = self.ledger.state.machines.get(&machine);
            if known.is_none_or(|known| known.has_ended()) {
                continue;
            }
            let host = known.and_then(|known| known.host);
            // Who asks again gives no more time.
            if self.hosts.drained_at(&machine).is_some_and(|before| before <= until) {
                continue;
            }
            changed += 1;
            self.hosts.drain(machine, until);
            if let Some(host) = host {
                self.update_fleet(host);
                self.ledger.waiters.wake(Wake::Host(host));
            }
        }
        Ok(MachinesAnswer { changed })
    }
}
