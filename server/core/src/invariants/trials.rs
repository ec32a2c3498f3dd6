//! Invariants of trials: what they have trained, and what is under way for them.

use super::{Invariant, Violation, holds};
use sojourn_protocol::{
    ids::{Epoch, LeaseId, ShardId},
    position::Position,
    quantity::SaturatingFrom as _,
};
use sojourn_state::{Job, State, Trial};
use std::collections::{BTreeMap, BTreeSet};

fn trials(state: &State) -> impl Iterator<Item = (&Job, &Trial)> {
    state.jobs.values().flat_map(|job| job.trials.iter().map(move |trial| (job, trial)))
}

/// Checks H1.
pub(super) fn batches_are_trained_once(state: &State) -> Result<(), Violation> {
    trials(state).try_for_each(|(job, trial)| completeness(job, trial))
}

/// Checks H2.
pub(super) fn results_build_on_the_version(state: &State) -> Result<(), Violation> {
    trials(state).try_for_each(|(_, trial)| isolation(state, trial))
}

/// Checks M1.
pub(super) fn merged_units_are_counted_once(state: &State) -> Result<(), Violation> {
    trials(state).try_for_each(|(_, trial)| merging(state, trial))
}

/// H2: one current version; granted and awaited results are on it, or will be superseded.
fn isolation(state: &State, trial: &Trial) -> Result<(), Violation> {
    let versions = u32::saturating_from(trial.history.len());
    let numbered = (1u32..).zip(&trial.history).all(|(n, record)| record.version.0 == n);
    holds(Invariant::H2, versions == trial.version.0 && numbered, || {
        format!("trial {} is at version {} after {versions} hops", trial.id, trial.version)
    })?;
    let last = trial.history.last().map(|record| record.checkpoint);
    holds(Invariant::H2, last == trial.checkpoint, || {
        format!("trial {}'s checkpoint isn't the one that its last hop made", trial.id)
    })?;
    for lease in &trial.live {
        let lease_of = state.leases.get(lease);
        let on_current = lease_of.is_some_and(|lease| lease.base == trial.version);
        holds(Invariant::H2, on_current, || {
            format!("live lease {lease} of trial {} isn't on its version", trial.id)
        })?;
        let then = lease_of.map_or(&[][..], |lease| &lease.then);
        let mut all = BTreeSet::new();
        let fresh = |shard: &ShardId| all.insert(*shard) && trial.chain.is_untouched(*shard);
        holds(Invariant::H2, then.iter().all(fresh), || {
            format!("live lease {lease} of trial {} goes on over {then:?}", trial.id)
        })?;
    }
    for lease in trial.waiting() {
        let past = state.past.get(&lease);
        let fits = past.is_some_and(|past| match trial.merging {
            None => past.lease.base == trial.version,
            Some(_) => state.is_wanted(&past.lease),
        });
        holds(Invariant::H2, fits && trial.is_running(), || {
            format!("result {lease} waits for trial {} and can't be taken in", trial.id)
        })?;
    }
    Ok(())
}

/// M1: while results are merged, what is out of a trial are live leases, late ones and results that wait, each once
/// and each on a version that is kept for it; and nothing is free that is in flight.
fn merging(state: &State, trial: &Trial) -> Result<(), Violation> {
    let Some(merging) = &trial.merging else { return Ok(()) };
    let mut out = BTreeSet::new();
    for (shard, unit) in &merging.units {
        let live = unit.live.iter().map(|lease| state.leases.get(lease));
        let past = unit.late.iter().chain(&unit.reported);
        let past = past.map(|lease| state.past.get(lease).map(|past| &past.lease));
        for lease in live.chain(past) {
            let sound = lease.is_some_and(|lease| {
                let base = merging.bases.get(&lease.base);
                lease.visits().eq([*shard])
                    && out.insert(lease.id)
                    && base.is_some_and(|base| base.leases.contains(&lease.id))
                    && state.is_wanted(lease)
            });
            holds(Invariant::M1, sound, || {
                format!("trial {}, shard {shard}: {lease:?}", trial.id)
            })?;
        }
        let free = merging.free.next(*shard).is_some();
        holds(Invariant::M1, !(free && unit.is_in_flight()), || {
            format!("shard {shard} of trial {} is free and in flight", trial.id)
        })?;
    }
    let referring = merging.bases.values().flat_map(|base| &base.leases).copied();
    holds(Invariant::M1, out == referring.collect(), || {
        format!("other leases than those of its shards refer to trial {}'s bases", trial.id)
    })?;
    let waiting: BTreeSet<LeaseId> = trial.waiting().collect();
    let reported = merging.units.values().flat_map(|unit| &unit.reported).copied();
    holds(Invariant::M1, waiting == reported.collect() && trial.live.is_empty(), || {
        format!("the results of trial {} that wait aren't those of its shards", trial.id)
    })
}

/// H1: by the history, every batch of every shard once per ended epoch, none twice in the current one.
fn completeness(job: &Job, trial: &Trial) -> Result<(), Violation> {
    let minibatches = trial.context.config.training.minibatches();
    let shards = (0..).map(ShardId).zip(&job.data.train);
    let sizes = shards.map(|(shard, of)| match trial.fold {
        Some(fold) if fold.holds_out(shard) => 0,
        Some(_) | None => minibatches.of_hop(of.rows),
    });
    let sizes: Vec<u32> = sizes.collect();
    let mut done: BTreeMap<(Epoch, ShardId), u32> = BTreeMap::new();
    // A clone has trained nothing before the epochs of the other.
    let (first, mut step) = trial.origin.map_or((0, 0), |origin| (origin.epochs, origin.step));
    for record in &trial.history {
        let epoch = record.epoch();
        let mut start = record.start;
        for shard in record.shards() {
            let size = sizes.get(sojourn_protocol::unit::shard_index(shard)).copied().unwrap_or(0);
            let last = shard == record.end.shard;
            let end = if last { record.end.batch } else { size };
            let at = done.entry((epoch, shard)).or_default();
            let first = shard == record.start.shard;
            start = if first { start } else { Position { shard, batch: 0, ..start } };
            let follows = start.batch == *at && start.step == step && end > start.batch;
            holds(Invariant::H1, follows, || {
                format!("trial {}: {record:?} doesn't follow batch {at}, step {step}", trial.id)
            })?;
            step += u64::from(end - start.batch);
            start.step = step;
            *at = end;
        }
        let ends = record.end.epoch == epoch
            && record.shards().last() == Some(record.end.shard)
            && record.end.step == step;
        holds(Invariant::H1, ends, || format!("trial {}: {record:?} doesn't end there", trial.id))?;
    }
    for ((epoch, shard), at) in &done {
        let size = sizes.get(sojourn_protocol::unit::shard_index(*shard)).copied().unwrap_or(0);
        let ended = *epoch < trial.chain.epoch();
        holds(Invariant::H1, *at <= size && (!ended || *at == size), || {
            format!("trial {}: {at} of {size} batches of shard {shard} in epoch {epoch}", trial.id)
        })?;
    }
    let ended = (first..trial.chain.epoch().0).map(Epoch);
    let whole =
        ended.flat_map(|epoch| (0u32..).map(ShardId).zip(&sizes).map(move |of| (epoch, of)));
    let visited = whole.filter(|(_, (_, size))| **size > 0);
    for key in visited.map(|(epoch, (shard, _))| (epoch, shard)) {
        holds(Invariant::H1, done.contains_key(&key), || {
            format!("trial {}: shard {} was left out of epoch {}", trial.id, key.1, key.0)
        })?;
    }
    Ok(())
}
