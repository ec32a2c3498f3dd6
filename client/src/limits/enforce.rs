//! The loop that makes the limits hold: it looks every few seconds, and whenever the owner says something.

use super::{
    Fact, Facts, Keeper, Limits, Machine, PaceDecision, ZoneName, decide, enforcement::SlotCaps,
    nice::Levels, unknown_facts,
};
use crate::{context::Context, message::Message};
use sojourn_client_core::{Event, OwnerEvent};
use std::{convert::Infallible, time::Duration};
use tokio::{task::spawn_blocking, time::Instant};

/// How often the machine is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How often a pause by hand is looked at: the machine may sleep meanwhile.
const PAUSE_LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// The facts that a look at the machine finds out.
const LOOKED_AT: &[Fact] = &[Fact::TimeZone, Fact::Battery, Fact::LastUse, Fact::Programs];
/// How long hops stand still before they end early, where nothing else is said.
const DEFAULT_GIVE_BACK_AFTER: Duration = Duration::from_secs(120);

/// Keeps the limits for as long as the daemon runs.
pub(crate) async fn enforce<R>(context: &Context<R>) -> Infallible {
    let (owner, enforcement) = (&context.owner, &context.trainers.enforcement);
    let mut changes = owner.subscribe();
    let mut machine = Machine::new();
    let mut levels = Levels::default();
    let mut still_since = None;
    let mut computed = None;
    let mut lent = owner.limits().memory;
    loop {
        changes.mark_unchanged();
        let given = owner.given_limits();
        let facts;
        (machine, facts) = look(machine, &given, owner.zone_name()).await;
        owner.set_local(facts.local);
        owner.unknowns().set(LOOKED_AT, &unknown_facts(&given, &facts));
        let limits = owner.limits();
        context.server.bandwidth.set(owner.rates());
        context.storage.cache.set_limit(owner.cache_bytes());
        if enforcement.hold(&limits) == SlotCaps::Lifted {
            context.send(Message::CapsLifted);
        }
        let slots = context.trainers.devices.slots().iter().map(|(_, slots)| slots).sum();
        enforcement.set_threads(slots, &limits);
        let keeper = if enforcement.keep_cpu() { Keeper::Quota } else { Keeper::Pace };
        let manual_pause = owner.manual_pause();
        let decision = match &manual_pause {
            Some(pause) => PaceDecision::Pause { reason: pause.reason.clone() },
            None => decide(&limits, &facts, keeper),
        };
        let stands_still = matches!(decision, PaceDecision::Pause { .. });
        owner.hold(decision);
        let computes = owner.computes();
        if computed.replace(computes) != Some(computes) {
            context.tell(Event::Owner(OwnerEvent::Compute(computes)));
        }
        if std::mem::replace(&mut lent, limits.memory) != limits.memory {
            // News for the server.
            context.tell(Event::Owner(OwnerEvent::InventoryChanged));
        }

        let now = Instant::now();
        let mut wake = is_looked_after(&given).then(|| now + LOOK_INTERVAL);
        let mut wake_at = |at: Instant| wake = Some(wake.map_or(at, |wake| wake.min(at)));
        if let Some(left) = manual_pause.and_then(|pause| pause.left) {
            wake_at(now + left.min(PAUSE_LOOK_INTERVAL));
        }
        if stands_still {
            // A draining client doesn't wait for units that stand still.
            let patience = match limits.give_back_after {
                _ if owner.drains() => Duration::ZERO,
                given => given.map_or(DEFAULT_GIVE_BACK_AFTER, |after| after.0),
            };
            let until = *still_since.get_or_insert(now) + patience;
            if until <= now {
                suspend(context, true);
            } else {
                wake_at(until);
            }
        } else {
            still_since = None;
            suspend(context, false);
        }
        levels.hold(limits.nice, &enforcement.trainer_group().pids());
        tokio::select! {
            () = sleep_until(wake) => {}
            // The sender lives as long as `context`.
            _ = changes.changed() => {}
        }
    }
}

/// Has hops end early and the rest given back, or no longer.
fn suspend<R>(context: &Context<R>, suspended: bool) {
    if context.owner.suspend(suspended) {
        context.tell(Event::Owner(OwnerEvent::Suspend(suspended)));
    }
}

/// Is there a limit that takes a look now and then?
fn is_looked_after(limits: &Limits) -> bool {
    // A trainer may have started, a control group may take now what it refused before.
    let of_trainers = limits.nice.is_some() || limits.cpu.is_some() || limits.memory.is_some();
    Machine::is_asked(limits) || of_trainers
}

async fn look(mut machine: Machine, limits: &Limits, zone: Option<ZoneName>) -> (Machine, Facts) {
    if !Machine::is_asked(limits) {
        return (machine, Facts::default());
    }
    let limits = limits.clone();
    let looked = spawn_blocking(move || {
        let facts = machine.look(&limits, zone.as_ref());
        (machine, facts)
    });
    looked.await.unwrap_or_else(|_| (Machine::new(), Facts::default()))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
