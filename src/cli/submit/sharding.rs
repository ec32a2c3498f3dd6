//! Sharding: the number and the sizes of a job's shards. The job file sets them, or they are chosen by the data, the
//! models and the server's hosts. The choice is written into the job.

use crate::{
    api_client::ApiClient,
    cli::{render::text, submit::jobfile::Job, terminal::exit::Failure},
};
use sojourn_api::endpoints;
use sojourn_ingest::{Cut, Surveyed};
use sojourn_model::ModelError;
use sojourn_protocol::{
    column::row_bytes,
    inventory::Workload,
    quantity::SaturatingFrom as _,
    spec::{JobSpec, Loss, ModelSpace, Replicas, ShardSizes, Visits},
    view::{DeviceView, HostState, HostView, JobDetail},
};
use sojourn_workgen::{
    Trial,
    shards::{Load, ShardHost, by_speed, shard_count, shard_count_for_any},
    visits::{VisitsChoice, VisitsReason, choose_visits, fleet_dependences},
};

/// Training on a row takes about as long as three forward passes.
const FORWARD_PASSES: f64 = 3.0;

/// The part of the server's knowledge that the choice depends on.
#[derive(Debug, Default)]
pub(crate) struct Known {
    hosts: Vec<HostView>,
    /// The same job, submitted earlier: its shards are taken again, so that it is the same job still.
    same: Option<JobDetail>,
}

/// The chosen shards.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) cut: Cut,
    pub(crate) shards: u32,
    /// Why so, where the job file leaves something open.
    pub(crate) why: Option<String>,
    /// Whether the order of visits is fixed.
    pub(crate) visits: VisitsChoice,
}

impl Chosen {
    /// The reasons for which another run of the job may differ, for people.
    pub(crate) fn may_differ(&self, spec: &JobSpec) -> Vec<String> {
        let all = fleet_dependences(spec, self.visits.visits);
        all.iter().map(ToString::to_string).collect()
    }
}

impl Known {
    /// Asks the server, where the job leaves anything open. Jobs that were submitted before don't count where it
    /// is to be run once more.
    pub(crate) async fn of(client: &ApiClient, job: &Job, again: bool) -> Result<Self, Failure> {
        let placement = &job.spec.placement;
        let is_open = job.spec.data.shards.is_none() || placement.visits.is_none();
        if !is_open && !wants_speed(&job.spec) {
            return Ok(Self::default());
        }
        let hosts = client.call(endpoints::Hosts::request()).await?;
        let mut same = None;
        let jobs = if again { Vec::new() } else { client.call(endpoints::Jobs::request()).await? };
        for earlier in jobs.iter().rev().filter(|earlier| earlier.name == job.spec.name) {
            let detail = client.call(endpoints::Job::request(earlier.job)).await?;
            if is_same(&job.spec, &detail.spec) {
                same = Some(detail);
                break;
            }
        }
        Ok(Self { hosts, same })
    }

    /// The same of what the server has said already: its hosts, and jobs of the same name, the newest first.
    pub(crate) fn among(job: &Job, hosts: Vec<HostView>, earlier: Vec<JobDetail>) -> Self {
        Self { hosts, same: earlier.into_iter().find(|of| is_same(&job.spec, &of.spec)) }
    }
}

/// Are they the same but for what was chosen for the earlier one?
fn is_same(spec: &JobSpec, earlier: &JobSpec) -> bool {
    let (mut spec, mut earlier) = (spec.clone(), earlier.clone());
    // The server writes these down.
    for spec in [&mut spec, &mut earlier] {
        spec.placement.name_merging();
        spec.placement.name_verification();
    }
    if spec.data.shards.is_none() {
        earlier.data.shards = None;
    }
    if spec.placement.visits.is_none() {
        earlier.placement.visits = None;
    }
    // So is what the data decided, and what the models became.
    if earlier.training.loss == Loss::Own {
        earlier.data.label.clone_from(&spec.data.label);
        earlier.training.loss = spec.training.loss;
    }
    for model in spec.models.iter_mut().chain(&mut earlier.models) {
        if let ModelSpace::Graph(graph) = model {
            graph.exported.clear();
        }
    }
    spec == earlier
}

/// Are the shards' sizes to follow hosts' speeds?
fn wants_speed(spec: &JobSpec) -> bool {
    let alone = spec.placement.replicas == Replicas::Fixed(1);
    let is_asked = spec.data.shard_sizes == Some(ShardSizes::Speed);
    let is_usual = spec.data.shard_sizes.is_none() && !spec.placement.has_fixed_visits();
    alone && (is_asked || is_usual)
}

/// Chooses the shards of a job, and whether the order of their visits is fixed.
pub(crate) fn choose(job: &Job, data: &Surveyed<'_>, known: &Known) -> Result<Chosen, Failure> {
    let rows = data.train_rows();
    if let Some(same) = &known.same
        && same.data.train_rows() == rows
    {
        let cut = Cut::Rows(same.data.train.iter().map(|shard| shard.rows.into()).collect());
        let shards = u32::saturating_from(same.data.train.len());
        let count = text::counted(shards.into(), "shard");
        let equal = !wants_speed(&job.spec);
        let visits = same.spec.placement.visits.unwrap_or(Visits::Free);
        return Ok(Chosen {
            visits: VisitsChoice { visits, reason: VisitsReason::Given },
            cut: if equal { Cut::Equal(shards) } else { cut },
            shards,
            why: Some(format!("{count}, as job {} has", same.summary.job)),
        });
    }
    let outputs = data.labels().outputs();
    let hosts = shard_hosts(&known.hosts, &job.trials, data.shape(), outputs);
    choose_for(&job.spec, &job.trials, data, &hosts)
        .map_err(|error| Failure::call(format!("a model can't be built: {error}")))
}

/// Chooses for these hosts.
pub(crate) fn choose_for(
    spec: &JobSpec,
    trials: &[Trial],
    data: &Surveyed<'_>,
    hosts: &[ShardHost],
) -> Result<Chosen, ModelError> {
    let (rows, outputs) = (data.train_rows(), data.labels().outputs());
    let mut load = Load::of(trials, data.shape(), outputs, rows, spec.placement.replicas)?;
    if !data.columns().is_empty() {
        load.bytes = rows.saturating_mul(row_bytes(data.columns()));
    }
    let for_any = shard_count_for_any(&load);
    let for_any_folds = for_folds(for_any.shards, spec.search.folds);
    let (shards, epochs) = (spec.data.shards.unwrap_or(for_any_folds), spec.training.epochs);
    let visits = choose_visits(&spec.placement, &load, (shards, epochs), hosts);
    // Where visits are fixed nothing that decides the models follows the hosts.
    let counted = match visits.visits {
        Visits::Fixed => for_any,
        Visits::Free => shard_count(&load, hosts),
    };
    let shards = spec.data.shards.unwrap_or_else(|| for_folds(counted.shards, spec.search.folds));
    let why = spec.data.shards.is_none().then(|| match spec.search.folds {
        Some(folds) if shards != counted.shards => {
            let whole = text::counted(shards.into(), "shard");
            format!("{whole}, as many in each of {folds} folds; without folds {counted}")
        }
        Some(_) | None => counted.to_string(),
    });
    let sizes = wants_speed(spec).then(|| by_speed(rows, shards, hosts)).flatten();
    Ok(match sizes {
        None => Chosen { cut: Cut::Equal(shards), shards, why, visits },
        Some(sizes) => {
            let (least, most) = (sizes.iter().min(), sizes.iter().max());
            let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
            let sized =
                format!("of {least} to {most} rows, in proportion to the speeds of the hosts");
            let why = why.unwrap_or_else(|| text::counted(shards.into(), "shard"));
            let why = format!("{why}; {sized}");
            Chosen { cut: Cut::Rows(sizes), shards, why: Some(why), visits }
        }
    })
}

/// So many shards or a few more, so that all folds have as many.
fn for_folds(shards: u32, folds: Option<u32>) -> u32 {
    shards.checked_next_multiple_of(folds.unwrap_or(1)).unwrap_or(shards)
}

/// The hosts that can be counted on.
fn shard_hosts(
    hosts: &[HostView],
    trials: &[Trial],
    shape: &[u32],
    outputs: u32,
) -> Vec<ShardHost> {
    let workloads: Vec<(Workload, f64)> = trials
        .iter()
        .map(|trial| {
            let training = &trial.config.training;
            let workload = Workload {
                model: trial.config.model.name_only(),
                shape: shape.to_vec(),
                outputs,
                batch_size: training.batch_size,
                precision: training.precision,
                optimizer: training.optimizer.name,
            };
            let flops = flops(&workload);
            (workload, flops)
        })
        .collect();
    let there =
        |host: &&HostView| matches!(host.state, HostState::Live | HostState::Resting { .. });
    let host = |host: &HostView| ShardHost {
        slots: host.slots,
        flops: host.devices.iter().fold(0, |all: u64, device| {
            all.saturating_add(whole(speed(device, &workloads)).saturating_mul(device.slots.into()))
        }),
        download: host.links.download,
        upload: host.links.upload,
        cache: host.cache,
    };
    hosts.iter().filter(there).map(host).collect()
}

/// Operations a second that one slot of a device reaches with a job's trials: as it measured what units of them
/// took; else by its benchmark, as far off as that was for what it measured.
fn speed(device: &DeviceView, workloads: &[(Workload, f64)]) -> f64 {
    let benchmark = device.flops.max(1.0);
    let measured = |of: &Workload| {
        let known = device.measured.iter().find(|known| known.workload == *of);
        known.and_then(|known| known.nanos_per_row).map(seconds)
    };
    let known = device.measured.iter().filter_map(|known| {
        let guess = flops(&known.workload) / benchmark;
        known.nanos_per_row.map(|nanos| (seconds(nanos), guess))
    });
    let (took, guessed) = known.fold((0.0, 0.0), |(a, b), (took, guess)| (a + took, b + guess));
    let off = if took > 0.0 && guessed > 0.0 { took / guessed } else { 1.0 };
    let (mut work, mut time) = (0.0, 0.0);
    for (workload, flops) in workloads {
        work += flops;
        time += measured(workload).unwrap_or(flops / benchmark * off);
    }
    if time > 0.0 { work / time } else { benchmark }
}

/// Operations that training on one row takes.
fn flops(of: &Workload) -> f64 {
    let forward = sojourn_model::flops_per_row(&of.model, &of.shape, of.outputs).unwrap_or(1);
    float(forward) * FORWARD_PASSES
}

fn seconds(nanos: u64) -> f64 {
    float(nanos) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "rounding is meant")]
fn float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both ends are bounded"
)]
fn whole(number: f64) -> u64 {
    number.clamp(0.0, 1e18) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{digest::Digest, inventory::Measured, jobfile};

    const FILE: &str = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\n\
                        arch = \"mlp\"\nhidden = [10]\n[training]\nepochs = 1\noptimizer = \"adam\"\n";

    fn device(flops: f64, measured: Vec<Measured>) -> DeviceView {
        DeviceView {
            name: "cpu".into(),
            slots: 1,
            numeric_class: Digest([0; 32]),
            flops,
            memory: None,
            measured,
            estimate_error: None,
            classes: Vec::new(),
            engines: Vec::new(),
            unsupported: Vec::new(),
            parties: Vec::new(),
        }
    }

    #[test]
    fn measured_times_override_the_benchmark() {
        let trials = sojourn_workgen::trials(&jobfile::parse(FILE).unwrap()).unwrap();
        let training = &trials[0].config.training;
        let workload = |shape: u32| Workload {
            model: trials[0].config.model.clone(),
            shape: vec![shape],
            outputs: 2,
            batch_size: training.batch_size,
            precision: training.precision,
            optimizer: training.optimizer.name,
        };
        let own = vec![(workload(8), flops(&workload(8)))];
        let took = |shape: u32, times: f64| Measured {
            workload: workload(shape),
            nanos_per_row: Some(whole(flops(&workload(shape)) * times)),
            peak_memory: None,
            out_of_memory: false,
        };
        let near = |device: &DeviceView, wanted: f64| {
            let speed = speed(device, &own);
            assert!((speed / wanted - 1.0).abs() < 0.01, "{speed} {wanted}");
        };
        near(&device(1e9, Vec::new()), 1e9);
        near(&device(1e9, vec![took(8, 4.0)]), 0.25e9);
        near(&device(1e9, vec![took(16, 2.0)]), 0.5e9);
        near(&device(1e9, vec![took(16, 2.0), took(8, 4.0)]), 0.25e9);
    }

    #[test]
    fn a_job_is_the_same_whatever_was_chosen_for_it() {
        let auto = jobfile::parse(FILE).unwrap();
        let mut chosen = auto.clone();
        chosen.data.shards = Some(7);
        chosen.placement.visits = Some(Visits::Fixed);
        chosen.placement.name_merging();
        assert!(is_same(&auto, &chosen));
        let mut free = auto.clone();
        free.placement.visits = Some(Visits::Free);
        assert!(!is_same(&free, &chosen));
        let mut given = auto.clone();
        given.data.shards = Some(8);
        assert!(!is_same(&given, &chosen));
        chosen.seed += 1;
        assert!(!is_same(&auto, &chosen));
    }
}
