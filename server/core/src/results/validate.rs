//! Checks whether a well-formed report can be the result of its lease.

use sojourn_protocol::{
    ids::ShardId,
    manifest::{DataSplit, Labels},
    metrics::{ClassDetail, Counting},
    position::Position,
    report::{Evaluated, Outcome, Sums, Trained},
    spec::ExportedGraph,
    unit::shard_index,
};
use sojourn_state::{Job, Lease, State, Trial, UnitKey};
use std::collections::BTreeSet;

/// The largest sum of losses that is accepted.
const MAX_LOSS: f64 = 1e100;

/// Why an outcome can't be one of this wanted lease.
pub(super) fn mismatch(state: &State, lease: &Lease, outcome: &Outcome) -> Option<String> {
    let job = state.jobs.get(&lease.unit.job())?;
    let trial = job.trial(lease.unit.trial())?;
    match (outcome, lease.unit) {
        (Outcome::Failed(_), _) => None,
        (Outcome::Trained(trained), UnitKey::Train { .. }) => wrong_base(lease, trained)
            .or_else(|| wrong_position(lease, trial, trained))
            .or_else(|| wrong_rows(job, lease, trial, trained))
            .or_else(|| match trial.context.config.model.exported() {
                Some(_) => wrong_own_sums(&trained.sums, &[]),
                None => wrong_sums(job, std::slice::from_ref(&trained.sums), None),
            }),
        (Outcome::Evaluated(evaluated), UnitKey::Evaluate { .. }) => {
            let counting = job.counting(trial);
            wrong_evaluation(job, trial, (lease, evaluated), DataSplit::Valid, counting)
        }
        (Outcome::Evaluated(evaluated), UnitKey::Extra { name, .. }) => {
            let counting = job.full_counting(trial);
            wrong_evaluation(job, trial, (lease, evaluated), name.split, counting)
        }
        (Outcome::Trained(_), UnitKey::Evaluate { .. } | UnitKey::Extra { .. }) => {
            Some("a hop was reported for an evaluation".into())
        }
        (Outcome::Evaluated(_), UnitKey::Train { .. }) => {
            Some("an evaluation was reported for a hop".into())
        }
    }
}

fn wrong_base(lease: &Lease, trained: &Trained) -> Option<String> {
    (trained.base != lease.base)
        .then(|| format!("trained on version {} instead of {}", trained.base, lease.base))
}

fn wrong_position(lease: &Lease, trial: &Trial, trained: &Trained) -> Option<String> {
    let UnitKey::Train { shard, from, .. } = lease.unit else { return None };
    let start = trial.chain.next(shard)?;
    let mut chain = trial.chain.clone();
    if start.batch != from {
        return Some(format!("batch {from} of shard {shard} is trained already"));
    }
    if trained.checkpoint.bytes != trial.checkpoint_bytes {
        let (is, wanted) = (trained.checkpoint.bytes, trial.checkpoint_bytes);
        return Some(format!("the checkpoint has {is} bytes instead of {wanted}"));
    }
    let last = lease.then.last().copied().unwrap_or(shard);
    if let Some(until) = lease.until
        && trained.end.shard == last
        && trained.end.batch > until
    {
        return Some(format!("it was to end before batch {until} of shard {last}"));
    }
    let Some(end) = trial.end_in_chain(lease, trained.end) else {
        return Some(format!("{} steps were taken in all, which are too few", trained.end.step));
    };
    chain.advance_through(start, &lease.then, end).err().map(|error| error.to_string())
}

/// The rows that were trained are those of the batches that were.
fn wrong_rows(job: &Job, lease: &Lease, trial: &Trial, trained: &Trained) -> Option<String> {
    let UnitKey::Train { shard, from, .. } = lease.unit else { return None };
    let minibatches = trial.context.config.training.minibatches();
    let Position { shard: last, batch, .. } = trained.end;
    let rows = |shard: ShardId, until| {
        let of = job.data.train.get(shard_index(shard));
        of.map_or(0, |of| minibatches.rows_before(of.rows, until))
    };
    let whole: u64 = lease.visits().take_while(|on| *on != last).map(|on| rows(on, u32::MAX)).sum();
    let wanted = (whole + rows(last, batch)).saturating_sub(rows(shard, from));
    let is = trained.sums.rows;
    (is != wanted).then(|| format!("{is} rows were trained instead of {wanted}"))
}

/// The version, the rows and the counts are those that were asked for.
fn wrong_evaluation(
    job: &Job,
    trial: &Trial,
    (lease, evaluated): (&Lease, &Evaluated),
    split: DataSplit,
    counting: Counting,
) -> Option<String> {
    let shards = job.evaluated_shards(trial, split);
    let rows: Vec<u64> = shards.iter().map(|shard| u64::from(shard.rows)).collect();
    let counted: Vec<u64> = evaluated.shards.iter().map(|sums| sums.rows).collect();
    if evaluated.version != lease.base {
        let (is, wanted) = (evaluated.version, lease.base);
        Some(format!("version {is} was evaluated instead of {wanted}"))
    } else if rows != counted {
        Some(format!("rows {counted:?} were evaluated instead of {rows:?}"))
    } else if let Some(graph) = trial.context.config.model.exported() {
        let numbers: Vec<&str> = numbers_of(graph).collect();
        let wrong = evaluated.shards.iter().find_map(|sums| wrong_own_sums(sums, &numbers));
        wrong.or_else(|| wrong_arrays(evaluated, graph))
    } else if !evaluated.arrays.is_empty() {
        Some("arrays are those of users' own models".into())
    } else {
        wrong_sums(job, &evaluated.shards, counting.top_k)
            .or_else(|| wrong_classes(job, evaluated, counting.by_class))
    }
}

/// The sums of a graph that are numbers.
fn numbers_of(graph: &ExportedGraph) -> impl Iterator<Item = &str> {
    graph.sums.iter().map(String::as_str).filter(|name| !graph.arrays.contains_key(*name))
}

/// The arrays are those that a user's own model gives, and nothing is counted by class.
fn wrong_arrays(evaluated: &Evaluated, graph: &ExportedGraph) -> Option<String> {
    if evaluated.by_class.is_some() {
        return Some("rows are counted by class of built-in models, and of no others".into());
    }
    if !evaluated.arrays.keys().eq(graph.arrays.keys()) {
        return Some("the arrays aren't those of the model's evaluation".into());
    }
    evaluated.arrays.iter().zip(graph.arrays.values()).find_map(|((name, array), shape)| {
        if array.differs_from(shape) {
            return Some(format!("the array `{name}` isn't one of shape {shape:?}"));
        }
        let wrong = array.numbers.iter().find(|number| !is_sound(**number))?;
        Some(format!("the array `{name}` can't have {wrong}"))
    })
}

/// Can it be added up over a whole job?
fn is_sound(sum: f64) -> bool {
    sum.abs() <= MAX_LOSS
}

/// The sums are those that a user's own model gives, beside the loss, and can be added up over a whole job.
fn wrong_own_sums(sums: &Sums, given: &[&str]) -> Option<String> {
    let mut wanted: BTreeSet<&str> = given.iter().copied().collect();
    wanted.remove("loss");
    if !is_sound(sums.loss) {
        Some(format!("a loss can't be {}", sums.loss))
    } else if sums.correct.is_some() || sums.top_k.is_some() {
        Some("hits are counted of built-in models, and of no others".into())
    } else if !sums.named.keys().map(String::as_str).eq(wanted) {
        Some("the sums aren't those of the model's evaluation".into())
    } else {
        let wrong = sums.named.iter().find(|(_, sum)| !is_sound(**sum));
        wrong.map(|(name, sum)| format!("the sum `{name}` can't be {sum}"))
    }
}

/// Losses that sums over a whole job can hold, and no more hits than rows. `top_k`: the k of hits
/// among the largest outputs, where they were to be counted.
fn wrong_sums(job: &Job, sums: &[Sums], top_k: Option<u32>) -> Option<String> {
    let classes = matches!(job.data.labels, Labels::Classes(_));
    sums.iter().find_map(|sums| {
        if !(0.0..=MAX_LOSS).contains(&sums.loss) {
            Some(format!("a loss can't be {}", sums.loss))
        } else if sums.correct.is_some() != classes {
            Some("hits are counted for classes, and for nothing else".into())
        } else if sums.correct.is_some_and(|correct| correct > sums.rows) {
            Some("more rows are correct than there are".into())
        } else if sums.top_k.is_some() != top_k.is_some() {
            Some("hits among the largest outputs are counted where that is asked for".into())
        } else if sums.top_k.is_some_and(|hits| hits > sums.rows || Some(hits) < sums.correct) {
            Some("the hits among the largest outputs can't be so many".into())
        } else {
            None
        }
    })
}

/// The counts by class are those that were asked for, over the rows of the sums.
fn wrong_classes(job: &Job, evaluated: &Evaluated, asked: ClassDetail) -> Option<String> {
    let Some(by_class) = &evaluated.by_class else {
        return (asked != ClassDetail::Nothing).then(|| "nothing was counted by class".into());
    };
    if by_class.detail() != asked {
        return Some("something else was counted by class than what was asked for".into());
    }
    by_class.fault(job.data.labels.outputs(), &evaluated.sums())
}
