//! Machines that have to go whatever the demand is: those that nobody knows, that failed, and whose drain is over.

use super::{
    Situation,
    action::Action,
    fleet::{Fleet, Machine, victim},
    memory::Memory,
    reason::EndReason,
};
use crate::cloud::MachineState;
use sojourn_protocol::time::Millis;

/// After so long the cloud is asked once more to end a machine that is still there.
const ASK_AGAIN: Millis = Millis::from_secs(60);

/// Ends what has to go, and notes it in memory and fleet.
pub(super) fn sweep(
    situation: &Situation<'_>,
    fleet: &mut Fleet<'_>,
    memory: &mut Memory,
) -> Vec<Action> {
    let now = situation.now;
    let mut actions = unnamed(situation, memory);
    for machine in &mut fleet.machines {
        let Some(reason) = reason(situation, machine) else { continue };
        if matches!(reason, EndReason::NeverEnrolled { .. } | EndReason::Silent { .. }) {
            memory.machine_failed(now, situation.seed);
        }
        machine.known.ended = Some(now);
        if let Some(known) = memory.machines.get_mut(machine.name) {
            known.ended = Some(now);
        }
        machine.phase = super::fleet::Phase::Draining;
        actions.push(Action::End { machine: machine.victim(), reason });
    }
    actions
}

/// Why a machine has to end at once, if it has to.
fn reason(situation: &Situation<'_>, machine: &Machine<'_>) -> Option<EndReason> {
    let (now, times) = (situation.now, &situation.settings.times);
    let known = &machine.known;
    if let Some(ended) = known.ended {
        return (now >= ended + ASK_AGAIN).then_some(EndReason::StillThere);
    }
    if machine.load.is_some_and(|load| load.stopped) {
        return Some(EndReason::Stopped);
    }
    if known.drained.is_some_and(|drained| now >= drained + times.drain) {
        return Some(EndReason::DrainOver);
    }
    if situation.is_old {
        // The server may have heard of it meanwhile.
        return None;
    }
    let unheard = known.unheard.map(|since| now - since);
    match machine.load {
        None if !known.enrolled => (now >= machine.cloud.launched_at + times.enrol)
            .then_some(EndReason::NeverEnrolled { within: times.enrol }),
        None => unheard.is_some_and(|since| since >= times.settle).then_some(EndReason::HostEnded),
        Some(load) => {
            // Both by the server's clock, which may differ from this one.
            let since = load.seen_at.map(|seen| situation.demand.at - seen).or(unheard)?;
            (since >= times.silent).then_some(EndReason::Silent { since })
        }
    }
}

/// Machines without a name of their own.
fn unnamed(situation: &Situation<'_>, memory: &mut Memory) -> Vec<Action> {
    let (now, times) = (situation.now, &situation.settings.times);
    let mut actions = Vec::new();
    for machine in situation.machines {
        if !matches!(machine.state, MachineState::Pending | MachineState::Running) {
            continue;
        }
        let known = machine.name.as_ref().and_then(|name| memory.machines.get(name));
        if known.is_some_and(|known| known.instance == machine.instance) {
            continue;
        }
        // Tags may be seen later than the machine.
        let first = *memory.nameless.entry(machine.instance.clone()).or_insert(now);
        if now < first + times.visible {
            continue;
        }
        let named = machine.name.is_some();
        let reason = if named { EndReason::NameTaken } else { EndReason::Nameless };
        memory.nameless.insert(machine.instance.clone(), now);
        actions.push(Action::End { machine: victim(machine), reason });
    }
    actions
}
