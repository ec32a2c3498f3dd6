//! A job of a scenario: what the core is told of it, and what is true of it. Its trials are those of a cost table
//! (`costs.rs`) or of a job file.

use super::{
    quantity::{Auto, float, whole},
    read::Files,
    scenario::{JobEntry, Placement, ShardSizes},
    training::Trains,
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard},
    quantity::{SaturatingFrom as _, to_u64, to_usize},
    spec::{JobSpec, Loss, Replicas},
};
use sojourn_workgen::shards::{Load, ShardHost, shard_count, shares};
use toml::{Table, Value};

/// Training takes about three forward passes: what a table says of a row is all three.
pub(crate) const PASSES: f64 = 3.0;

/// What training on one row takes, by the name of a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cost {
    pub(crate) name: String,
    /// Floating-point operations.
    pub(crate) flops: f64,
}

/// A job as it is.
#[derive(Debug, Clone)]
pub(crate) struct SimJob {
    pub(crate) name: String,
    pub(crate) spec: JobSpec,
    pub(crate) data: DataManifest,
    /// The different costs.
    pub(crate) costs: Vec<Cost>,
    /// Each trial's, as an index.
    pub(crate) trials: Vec<usize>,
    /// Of every checkpoint; `None`: as large as the core says.
    pub(crate) checkpoint_bytes: Option<u64>,
    /// What evaluations are of; 0: they take no time.
    pub(crate) valid_rows: u64,
    /// The metric of so many results' version and of each multiple's is asked for.
    pub(crate) curve: Option<u32>,
    /// Do its hops really train?
    pub(crate) is_trained: bool,
    /// When it is submitted.
    pub(crate) at: u64,
    pub(crate) epochs: u32,
    /// On so many hosts is each shard; 0: on any.
    pub(crate) holders: u32,
}

impl SimJob {
    /// Floating-point operations of a trial's row.
    pub(crate) fn flops(&self, trial: usize) -> f64 {
        self.cost(trial).map_or(0.0, |cost| cost.flops)
    }

    /// What a trial's rows cost.
    pub(crate) fn cost(&self, trial: usize) -> Option<&Cost> {
        self.trials.get(trial).and_then(|cost| self.costs.get(*cost))
    }

    /// Hops of the whole job.
    pub(crate) fn hops(&self) -> u64 {
        count(self.trials.len()) * u64::from(self.epochs) * count(self.data.train.len())
    }
}

/// Of a machine's hosts, what a job's shards depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fleet<'a> {
    /// Each host.
    pub(crate) hosts: &'a [ShardHost],
}

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
            }
            of_file(path, entry, spec, real.as_ref())?
        }
        None => super::costs::of(entry, &name, n, seed, files)?,
    };
    if let Some(epochs) = entry.epochs {
        spec.training.epochs = epochs;
    }
    let placement = &mut spec.placement;
    placement.priority = entry.priority.unwrap_or(placement.priority);
    placement.share = entry.share.unwrap_or(placement.share);
    placement.max_hosts = entry.max_hosts.or(placement.max_hosts);
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
        at: entry.submitted.0,
        holders,
    })
}

/// What a job file says, with these keys set.
fn spec_of(path: &str, text: &str, set: &Table) -> Result<JobSpec, String> {
    if set.is_empty() {
        return jobfile::parse(text).map_err(|error| format!("`{path}`: {error}"));
    }
    let table = toml::from_str(text).map_err(|error| format!("`{path}`: {}", error.message()))?;
    let lines = over(table, set).into_iter().map(|(key, value)| set_to(&key, &value) + "\n");
    jobfile::parse(&lines.collect::<String>())
        .map_err(|error| format!("`{path}` with what `job.set` says: {error}"))
}

/// A key and its value on one line of a TOML file. Texts in JSON's quotes are texts in TOML's.
fn set_to(key: &str, value: &Value) -> String {
    format!("{} = {}", serde_json::Value::from(key), inline(value))
}

fn inline(value: &Value) -> String {
    let list = |values: Vec<String>| values.join(", ");
    match value {
        Value::String(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Integer(number) => number.to_string(),
        // With a point or an exponent, always.
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(values) => format!("[{}]", list(values.iter().map(inline).collect())),
        Value::Table(table) => {
            let keys = table.iter().map(|(key, value)| set_to(key, value));
            format!("{{ {} }}", list(keys.collect()))
        }
    }
}

/// A table with keys of another one over its own.
fn over(mut table: Table, keys: &Table) -> Table {
    for (key, value) in keys {
        let value = match (table.remove(key), value) {
            (Some(Value::Table(own)), Value::Table(keys)) => Value::Table(over(own, keys)),
            _ => value.clone(),
        };
        table.insert(key.clone(), value);
    }
    table
}

/// The shards of a job that is really trained; another seed of the scenario is another one of the job.
fn real_data(
    path: &str,
    entry: &JobEntry,
    seed: u64,
    spec: &mut JobSpec,
    fleet: Fleet<'_>,
    trains: &mut dyn Trains,
) -> Result<DataManifest, String> {
    if !spec.init.is_empty() {
        return Err(format!(
            "`{path}` starts from a model, which simulations can't: leave out `init`"
        ));
    }
    spec.seed = spec.seed.wrapping_add(seed);
    if let Auto::Given(shards) = entry.shards {
        spec.data.shards = Some(shards);
    }
    let data = trains.ingest(path, spec, fleet.hosts, entry.skew.concentration())?;
    spec.data.shards = u32::try_from(data.train.len()).ok();
    Ok(data)
}

/// Shards that nobody looks into.
fn made_up_data(
    entry: &JobEntry,
    name: &str,
    [seed, n]: [u64; 2],
    shards: u32,
    fleet: Fleet<'_>,
    shape: Vec<u32>,
    labels: Labels,
) -> Result<DataManifest, String> {
    let rows = match entry.shard_sizes {
        ShardSizes::Equal => shares(entry.rows, &vec![1; index(shards)]),
        ShardSizes::Speed => {
            let speeds = fleet.hosts.iter().map(|host| host.flops).cycle().take(index(shards));
            shares(entry.rows, &speeds.collect::<Vec<_>>())
        }
    };
    let bytes_of = |rows: u64| {
        let share = float(rows) / float(entry.rows.max(1));
        whole(float(entry.data_bytes.0) * share).unwrap_or(0)
    };
    let shard = |place: u64, rows: u64| {
        let sha256 = Digest::of(format!("shard {seed} {n} {place}").as_bytes());
        let rows_u32 = u32::try_from(rows).map_err(|_| {
            format!("a shard of `{name}` has {rows} rows: make more shards of fewer rows")
        })?;
        Ok::<Shard, String>(Shard {
            blob: BlobRef { sha256, bytes: bytes_of(rows) },
            rows: rows_u32,
        })
    };
    let train = (0..).zip(&rows).map(|(place, rows)| shard(place, *rows));
    Ok(DataManifest {
        shape,
        features: Vec::new(),
        labels,
        scaling: Scaling::None,
        train: train.collect::<Result<_, _>>()?,
        valid: vec![Shard {
            blob: BlobRef { bytes: bytes_of(entry.valid_rows), ..shard(u64::MAX, 1)?.blob },
            rows: u32::saturating_from(entry.valid_rows.max(1)),
        }],
        test: Vec::new(),
    })
}

/// What the number of shards follows from where a scenario doesn't say it.
fn load(
    entry: &JobEntry,
    spec: &JobSpec,
    costs: &[Cost],
    trials: &[usize],
    shape: &[u32],
    outputs: u32,
) -> Result<Load, String> {
    let all = sojourn_workgen::trials(spec).map_err(|error| error.to_string())?;
    let known = Load::of(&all, shape, outputs, entry.rows, spec.placement.replicas);
    let known = known.map_err(|error| error.to_string())?;
    let flops: f64 = trials.iter().filter_map(|cost| costs.get(*cost)).map(|cost| cost.flops).sum();
    Ok(Load {
        bytes: entry.data_bytes.0,
        flops: whole(flops / float(count(trials.len()).max(1))).unwrap_or(u64::MAX),
        checkpoint: match (&entry.file, entry.checkpoint_bytes) {
            (Some(_), None) => known.checkpoint,
            (_, bytes) => bytes.map_or(0, |bytes| bytes.0),
        },
        ..known
    })
}

/// A job's specification, its costs, each trial's cost as an index, the shape of a row, and what labels are.
pub(crate) type Made = (JobSpec, Vec<Cost>, Vec<usize>, Vec<u32>, Labels);

/// The trials of a job file.
fn of_file(
    path: &str,
    entry: &JobEntry,
    spec: JobSpec,
    real: Option<&DataManifest>,
) -> Result<Made, String> {
    let known = real.map(|data| data.shape.clone()).or_else(|| entry.shape.clone());
    let shape = known.or_else(|| spec.data.shape.clone());
    let shape = shape.ok_or_else(|| {
        format!("`{path}` doesn't say the shape of a row: add `shape` to `[job]`, like [3, 32, 32]")
    })?;
    let labels = match (real, spec.training.loss) {
        (Some(data), _) => data.labels.clone(),
        (None, Loss::Mse) => Labels::Number,
        (None, Loss::CrossEntropy) => {
            Labels::Classes((0..entry.classes).map(|n| n.to_string()).collect())
        }
    };
    let all = sojourn_workgen::trials(&spec).map_err(|error| format!("`{path}`: {error}"))?;
    let (mut costs, mut trials): (Vec<Cost>, Vec<usize>) = (Vec::new(), Vec::new());
    for trial in &all {
        let model = &trial.config.model;
        let forward = sojourn_model::flops_per_row(model, &shape, labels.outputs())
            .map_err(|error| format!("`{path}`: {error}"))?;
        let flops = float(forward) * PASSES;
        let known = costs.iter().position(|cost| cost.flops.to_bits() == flops.to_bits());
        trials.push(known.unwrap_or(costs.len()));
        if known.is_none() {
            costs.push(Cost { name: format!("{} {}", model.name(), costs.len() + 1), flops });
        }
    }
    Ok((spec, costs, trials, shape, labels))
}

pub(crate) fn index(number: u32) -> usize {
    to_usize(number)
}

pub(crate) fn count(number: usize) -> u64 {
    to_u64(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{
        quantity::{Auto, Bytes},
        scenario::{Costs, Pick},
    };
    use sojourn_model::CheckpointLayout;
    use sojourn_protocol::unit::TrialContext;

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
                shape: job.data.shape.clone(),
                outputs: 1,
                scaling: Scaling::None,
                total_steps: 1,
                pinned_threads: None,
            };
            let is = float(CheckpointLayout::of(&context).unwrap().file_bytes());
            assert!(bytes == 0 || (0.99..1.01).contains(&(is / float(bytes))), "{mflops}: {is}");
        }
    }

    #[test]
    fn rows_are_shared_out_to_the_last() {
        assert_eq!(shares(10, &[1, 1, 1]), [3, 4, 3]);
        assert_eq!(shares(3, &[1, 1, 1]), [1, 1, 1]);
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
