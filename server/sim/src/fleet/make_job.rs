//! Makes a job of what a scenario says of it. Its trials are those of a cost table (`costs.rs`) or of a job file
//! (`job_file.rs`).

use super::{
    costs,
    files::Files,
    job::{Fleet, SimJob},
    job_data::{load, made_up_data},
    job_file::{of_file, real_data, spec_of},
    scenario::{JobEntry, Placement},
    surrogate::Surrogate,
    training::Trains,
};
use sojourn_protocol::{
    spec::{JobSpec, MergeSpec, Metric, Replicas, RuleSpec},
    time::Millis,
};
use sojourn_workgen::shards::shard_count;
use std::sync::Arc;

/// Makes a job of its entry. `n` tells a scenario's jobs apart.
///
/// # Errors
/// What speaks against it.
pub(crate) fn make(
    entry: &JobEntry,
    n: u64,
    seed: u64,
    fleet: Fleet<'_>,
    files: &mut Files<'_>,
    trains: Option<&mut (dyn Trains + '_)>,
) -> Result<SimJob, String> {
    let name = if entry.name.is_empty() { format!("job {}", n + 1) } else { entry.name.clone() };
    let mut real = None;
    let (mut spec, costs, trials, shape, labels) = match &entry.file {
        Some(path) => {
            let text = files(path)?;
            let mut spec = spec_of(path, &text, &entry.set)?;
            if let Some(trains) = trains.filter(|_| entry.train) {
                real = Some(real_data(path, entry, seed, &mut spec, fleet, trains)?);
            } else if entry.surrogate.is_some() {
                // As with real training: another seed of the scenario is another one of the job.
                spec.seed = spec.seed.wrapping_add(seed);
            }
            of_file(path, entry, spec, real.as_ref())?
        }
        None => costs::of(entry, &name, n, seed, files)?,
    };
    if let Some(epochs) = entry.epochs {
        spec.training.epochs = epochs;
    }
    if let Some(passes) = entry.local_epochs {
        spec.training.local_epochs = passes;
    }
    let surrogate = entry.surrogate.as_deref().map(|path| read_surrogate(path, &spec, files));
    let surrogate = surrogate.transpose()?;
    spec.search.spread = entry.spread.unwrap_or(spec.search.spread);
    let placement = &mut spec.placement;
    placement.priority = entry.priority.unwrap_or(placement.priority);
    placement.slot_share = entry.slot_share.unwrap_or(placement.slot_share);
    placement.max_hosts = entry.max_hosts.or(placement.max_hosts);
    placement.visits = entry.visits.or(placement.visits);
    placement.budget = entry.budget.or(placement.budget);
    let deadline = entry.deadline.map(|time| Millis(time.0 / 1000));
    placement.deadline = deadline.or(placement.deadline);
    if let Some(order) = entry.order {
        placement.order = order;
        placement.merge = placement
            .may_merge()
            .then_some(placement.merge.unwrap_or(MergeSpec::of(RuleSpec::VC_ASGD)));
    }
    if entry.placement == Placement::Pinned {
        placement.replicas = Replicas::Fixed(entry.replicas.unwrap_or(1));
    }
    let holders = match placement.replicas {
        Replicas::Demand => 0,
        Replicas::Fixed(hosts) => hosts,
    };
    let is_trained = real.is_some();
    let data = match real {
        Some(data) => data,
        None => {
            let load = load(entry, &spec, &costs, &trials, &shape, labels.outputs())?;
            let shards = entry.shards.or(shard_count(&load, fleet.hosts).shards);
            spec.data.shards = Some(shards);
            made_up_data(entry, &name, [seed, n], shards, fleet, shape, labels)?
        }
    };
    Ok(SimJob {
        name,
        epochs: spec.training.epochs,
        spec,
        costs,
        trials,
        checkpoint_bytes: match (&entry.file, entry.checkpoint_bytes) {
            (Some(_), None) => None,
            (_, bytes) => Some(bytes.map_or(0, |bytes| bytes.0)),
        },
        valid_rows: match is_trained {
            true => data.valid.iter().map(|shard| u64::from(shard.rows)).sum(),
            false => entry.valid_rows,
        },
        data,
        curve: entry.curve,
        is_trained,
        surrogate,
        at: entry.submitted.0,
        holders,
    })
}

/// The curves by which a job's evaluations give losses.
fn read_surrogate(
    path: &str,
    spec: &JobSpec,
    files: &mut Files<'_>,
) -> Result<Arc<Surrogate>, String> {
    let surrogate = Surrogate::read(path, &files(path)?)?;
    if spec.search.metric != Metric::Loss {
        return Err(format!("the curves `{path}` are losses: set `metric = \"valid/loss\"`"));
    }
    let (recorded, epochs) = (surrogate.epochs(), spec.training.epochs);
    if epochs > recorded {
        return Err(format!(
            "the curves `{path}` have {recorded} epochs, and the job {epochs}: set `epochs`"
        ));
    }
    Ok(Arc::new(surrogate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{
        job::Cost,
        quantity::{Auto, Bytes, float},
        scenario::{Costs, Pick, ShardSizes},
    };
    use sojourn_model::CheckpointLayout;
    use sojourn_protocol::{
        manifest::{Scaling, Targets},
        unit::TrialContext,
    };
    use sojourn_workgen::shards::{ShardHost, rows_by_weight};

    const HOST: ShardHost =
        ShardHost { slots: 1, flops: 1, download: None, upload: None, cache: None };
    const FLEET: Fleet<'_> = Fleet { hosts: &[HOST, ShardHost { flops: 3, ..HOST }] };

    fn made(entry: &JobEntry) -> SimJob {
        make(entry, 0, 7, FLEET, &mut |_| Err("no files".into()), None).unwrap()
    }

    #[test]
    fn made_up_networks_come_near_to_what_they_stand_for() {
        for (mflops, bytes) in
            [(360.0, 100_000_000), (21_000.0, 100_000_000), (4_000.0, 0), (5.0, 0)]
        {
            let entry = JobEntry {
                costs: Some(Costs::List(vec![mflops, 8_000.0])),
                pick: Pick::Cycle,
                checkpoint_bytes: Some(Bytes(bytes)),
                ..JobEntry::default()
            };
            let job = made(&entry);
            let trial = sojourn_workgen::trials(&job.spec).unwrap().remove(0);
            let flops =
                sojourn_model::flops_per_row(&trial.config.model, &job.data.shape, 1).unwrap();
            let ratio = float(flops) * 3.0 / (mflops * 1e6);
            assert!((0.98..1.02).contains(&ratio), "{mflops} MFLOPs: {ratio}");
            let context = TrialContext {
                config: trial.config,
                columns: Vec::new(),
                shape: job.data.shape.clone(),
                outputs: 1,
                scaling: Scaling::None,
                targets: Targets::Plain,
                total_steps: 1,
                pinned_threads: None,
            };
            let is = float(CheckpointLayout::of(&context).unwrap().file_bytes());
            assert!(bytes == 0 || (0.99..1.01).contains(&(is / float(bytes))), "{mflops}: {is}");
        }
    }

    #[test]
    fn rows_are_shared_out_to_the_last() {
        assert_eq!(rows_by_weight(10, &[1, 1, 1]), [3, 4, 3]);
        assert_eq!(rows_by_weight(3, &[1, 1, 1]), [1, 1, 1]);
        let entry = JobEntry {
            rows: 1_000,
            shards: Auto::Given(4),
            shard_sizes: ShardSizes::Speed,
            placement: Placement::Pinned,
            ..JobEntry::default()
        };
        let rows: Vec<u32> = made(&entry).data.train.iter().map(|shard| shard.rows).collect();
        assert_eq!(rows, [126, 374, 126, 374]);
    }

    #[test]
    fn costs_are_sampled_from_the_seed() {
        let costs = Some(Costs::File("c.csv".into()));
        let entry = JobEntry { costs, trials: Some(50), ..JobEntry::default() };
        let mut files = |_: &str| Ok("model,mflops\na, 1\nb,20\n".to_owned());
        let job = make(&entry, 0, 7, FLEET, &mut files, None).unwrap();
        assert_eq!(job.costs[1], Cost { name: "b".into(), flops: 20e6 });
        assert!(job.trials.contains(&0) && job.trials.contains(&1));
        assert_eq!(make(&entry, 0, 7, FLEET, &mut files, None).unwrap().trials, job.trials);
        assert_ne!(make(&entry, 0, 8, FLEET, &mut files, None).unwrap().trials, job.trials);
        let mut bare = |_: &str| Ok("a, 1\nb,20\n".to_owned());
        assert_eq!(make(&entry, 0, 7, FLEET, &mut bare, None).unwrap().costs, job.costs);
        let error = make(&entry, 0, 7, FLEET, &mut |_| Ok("m,f\na,x\n".into()), None).unwrap_err();
        assert_eq!(error, "line 2 of the cost table `c.csv` doesn't end with MFLOPs");
    }
}
