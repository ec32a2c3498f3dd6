//! Invariants of leases: who holds them, when they expire, and what is indexed by them.

use super::{Invariant, Subject, Violation, holds};
use sojourn_protocol::{
    ids::{Epoch, HostId, ShardId, TrialId},
    quantity::to_usize,
};
use sojourn_scheduling::index::{Owners, RemainingWorkIndex};
use sojourn_state::{Job, Lease, Open, State, UnitKey};
use std::collections::{BTreeMap, BTreeSet};

/// H3: no more running leases than slots.
pub(super) fn slots_hold_one_unit_each(of: Subject<'_>) -> Result<(), Violation> {
    for (host, session) in of.hosts.sessions() {
        let running = of.eligible.occupancy.running_leases(host);
        let slots = to_usize(session.slots);
        holds(Invariant::H3, running <= slots, || {
            format!("host {host} runs {running} units in {slots} slots")
        })?;
    }
    Ok(())
}

/// L2: every live lease has a deadline after its grant, and the index by time has the same ones. No other lease counts as one whose
/// unit runs. Before the core is started leases have none.
pub(super) fn live_leases_have_deadlines(of: Subject<'_>) -> Result<(), Violation> {
    if of.clock.is_recovering() {
        return Ok(());
    }
    let deadlines = of.leases.deadlines();
    holds(Invariant::L2, deadlines.is_indexed(), || {
        "deadlines and their index by time differ".into()
    })?;
    let live = of.state.leases.keys().copied();
    holds(Invariant::L2, live.eq(deadlines.all().map(|(lease, _)| lease)), || {
        "live leases and deadlines differ".into()
    })?;
    let mut running = of.leases.running_units();
    holds(Invariant::L2, running.all(|lease| deadlines.get(lease).is_some()), || {
        "a unit that has ended counts as one that runs".into()
    })?;
    for (lease, term) in deadlines.all() {
        let granted = of.state.leases.get(&lease).map(|lease| lease.granted_at);
        let after = granted.is_some_and(|at| term.renew_by > at && term.due > at);
        holds(Invariant::L2, after, || format!("lease {lease} is due before its grant"))?;
    }
    Ok(())
}

/// L3: open units, remaining work, what rules of early stopping know, visits that are left, kept bytes, where trials stay, hosts of
/// jobs and jobs of owners are those of a recount. The first wall-time limit is known.
pub(super) fn indexes_are_those_of_a_recount(of: Subject<'_>) -> Result<(), Violation> {
    for job in of.state.jobs.values() {
        holds(Invariant::L3, job.open == Open::of(&job.trials), || {
            format!("the index of job {}'s open units differs from a recount", job.id)
        })?;
        holds(Invariant::L3, ranking_agrees(of, job), || {
            format!("the index of remaining work of job {} differs from a recount", job.id)
        })?;
        holds(Invariant::L3, of.index.stopping_rules().agree_with(job), || {
            format!("what the rule of job {} knows of its trials differs from a recount", job.id)
        })?;
        holds(Invariant::L3, !job.is_running() || job.load == job.counted_load(), || {
            format!("the visits that are left to job {}'s shards differ from a recount", job.id)
        })?;
        holds(Invariant::L3, job.is_kept_right(), || {
            format!("the bytes that are kept for job {} differ from a recount", job.id)
        })?;
        holds(Invariant::L3, residents_agree(of, job), || {
            format!("the index of where job {}'s trials stay differs from a recount", job.id)
        })?;
        let mut hosts: BTreeMap<HostId, u32> = BTreeMap::new();
        for lease in of.state.leases.values().filter(|lease| lease.unit.job() == job.id) {
            *hosts.entry(lease.host).or_default() += 1;
        }
        holds(Invariant::L3, job.hosts == hosts, || {
            format!("the index of job {}'s hosts differs from a recount", job.id)
        })?;
    }
    let owned = of.clock.is_recovering() || *of.index.owners() == Owners::of(of.state);
    holds(Invariant::L3, owned, || "the index of owners' jobs differs from a recount".into())?;
    let first = of.state.jobs.values().filter_map(Job::time_up_at).min();
    let known = of.clock.is_recovering()
        || first.is_none_or(|first| of.index.wall_time().is_some_and(|at| at <= first));
    holds(Invariant::L3, known, || format!("the first wall time is over at {first:?}, unnoticed"))
}

/// Are the trials that the index of remaining work holds as open those whose next hop could be granted?
fn ranking_agrees(of: Subject<'_>, job: &Job) -> bool {
    let ranked = of.index.remaining(job.id);
    let ranked: BTreeSet<TrialId> =
        ranked.into_iter().flat_map(RemainingWorkIndex::open).map(|(trial, ..)| trial).collect();
    of.clock.is_recovering() || job.open.hops().eq(ranked)
}

/// Does the index have each trial of the job that stays somewhere, there and in its category?
fn residents_agree(of: Subject<'_>, job: &Job) -> bool {
    let staying = job.trials.iter().filter(|trial| trial.trains()).filter_map(|trial| {
        let residence = trial.residence?;
        Some((trial.id, residence.host?, residence.category))
    });
    of.clock.is_recovering() || of.index.residents().of(job.id).eq(staying)
}

/// L4: what is promised goes on from a lease that its trial has in hand, of the same host and device, and has an
/// id that no lease has.
pub(super) fn provisional_leases_follow_others(of: Subject<'_>) -> Result<(), Violation> {
    let promises = of.leases.provisional();
    holds(Invariant::L4, promises.all().count() == promises.count(), || {
        "promises and the leases that they go on from differ in number".into()
    })?;
    for (after, promise) in promises.all() {
        let sound = promise.is_some_and(|promise| {
            let lease = &promise.lease;
            let before = of.state.lease(after);
            let trial = of.state.trial(lease.unit.job(), lease.unit.trial());
            trial.is_some_and(|trial| trial.in_hand().any(|lease| lease == after))
                && before.is_some_and(|before| {
                    before.host == lease.host && before.device == lease.device
                })
                && !of.state.leases.contains_key(&lease.id)
                && !of.state.past.contains_key(&lease.id)
        });
        holds(Invariant::L4, sound, || {
            format!("what is promised after lease {after}: {promise:?}")
        })?;
    }
    Ok(())
}

/// L1: one live lease per unit, or two on two hosts of which one was granted as a copy.
pub(super) fn units_have_one_live_lease(state: &State) -> Result<(), Violation> {
    for job in state.jobs.values() {
        let live = state.leases.values().filter(|lease| lease.unit.job() == job.id).count();
        let counted = job.counters.leases_live;
        holds(Invariant::L1, u64::try_from(live) == Ok(counted), || {
            format!("job {} counts {counted} live leases, has {live}", job.id)
        })?;
    }
    let mut units: BTreeMap<UnitKey, Vec<&Lease>> = BTreeMap::new();
    for lease in state.leases.values() {
        units.entry(unit_name(state, lease)).or_default().push(lease);
        let live = state.jobs.get(&lease.unit.job()).and_then(|j| j.live_of(&lease.unit));
        let known = live.is_some_and(|live| live.contains(&lease.id));
        holds(Invariant::L1, known, || format!("live lease {} isn't its unit's", lease.id))?;
        let host = state.hosts.get(&lease.host);
        let of_host = host.is_some_and(|host| host.live.contains(&lease.id) && !host.revoked);
        holds(Invariant::L1, of_host, || format!("live lease {} isn't its host's", lease.id))?;
    }
    let one_too_many = |leases: &&Vec<&Lease>| match leases[..] {
        [_] => false,
        [first, second] => {
            let copies = [first, second].iter().any(|lease| lease.speculative_for.is_some());
            !copies || first.host == second.host || first.unit != second.unit
        }
        _ => true,
    };
    let wrong = units.values().find(one_too_many);
    holds(Invariant::L1, wrong.is_none(), || format!("too many live leases of one unit: {wrong:?}"))
}

/// The unit that at most one live lease may have, not counting speculative ones.
fn unit_name(state: &State, lease: &Lease) -> UnitKey {
    let UnitKey::Train { job, trial, .. } = lease.unit else { return lease.unit };
    let known = state.trial(job, trial);
    if known.is_some_and(|trial| trial.merging.is_some()) {
        return lease.unit;
    }
    // In hop order a trial has one next hop, whatever the shard.
    UnitKey::Train { job, trial, epoch: Epoch(0), shard: ShardId(0), from: 0 }
}
