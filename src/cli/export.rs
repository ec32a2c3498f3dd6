//! `sojourn export`: a trial's model as a `.safetensors` file that any reader of the format opens.
//!
//! The file holds the parameters and, where the job scales its features, `scaling.mean` and
//! `scaling.std`: a row goes into the model as `(x - mean) / std`. The optimiser's state stays behind.

use super::{
    connection::Connection,
    failure::{Failure, with_sources},
    meter::{Meter, Unit},
    output, words,
};
use crate::api_client::ApiClient;
use serde::Serialize;
use sojourn_codec::{Tensor, TensorView, decode, encode};
use sojourn_model::CheckpointLayout;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, TrialId},
    manifest::{DataManifest, Scaling},
};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// The last checkpoint of this trial.
    #[arg(long, value_name = "N", conflicts_with = "best")]
    trial: Option<TrialId>,
    /// The checkpoint with the best metric of the whole job (what is taken if nothing is said).
    #[arg(long)]
    best: bool,
    /// The file to write; one that is there is replaced.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    job: JobId,
    trial: TrialId,
    /// With the best checkpoint: the epoch that it ended, and its metric.
    epoch: Option<Epoch>,
    metric: String,
    value: Option<f64>,
    checkpoint: Digest,
    file: PathBuf,
    sha256: Digest,
    bytes: u64,
}

/// A checkpoint to export.
struct Chosen {
    trial: TrialId,
    epoch: Option<Epoch>,
    value: Option<f64>,
    checkpoint: BlobRef,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let detail = client.job(args.job).await?;
    let chosen = match (args.trial, detail.summary.best) {
        (Some(trial), _) => of_trial(&client, args.job, trial).await?,
        (None, Some(best)) => Chosen {
            trial: best.trial,
            epoch: Some(best.epoch),
            value: Some(best.value),
            checkpoint: best.checkpoint,
        },
        (None, None) => {
            let message = format!("job {} has no best trial yet: none was evaluated", args.job);
            return Err(Failure::work(message));
        }
    };
    let context = client.history(args.job, chosen.trial).await?.context;
    let layout = CheckpointLayout::of(&context).map_err(|error| bad(&error))?;
    let checkpoint = fetch(&client, chosen.checkpoint).await?;
    let names: Vec<&str> = layout.model().map(|spec| spec.name.as_str()).collect();
    let tensors = decode(&checkpoint).map_err(|error| bad(&error))?;
    let mut tensors: Vec<Tensor> =
        tensors.iter().filter(|tensor| names.contains(&tensor.name.as_str())).map(owned).collect();
    tensors.extend(scaling(&client, &detail.data).await?);
    let file = encode(&tensors).map_err(|error| bad(&error))?;
    write(&args.output, &file)?;
    let report = Report {
        job: args.job,
        trial: chosen.trial,
        epoch: chosen.epoch,
        metric: detail.summary.metric,
        value: chosen.value,
        checkpoint: chosen.checkpoint.sha256,
        file: args.output.clone(),
        sha256: Digest::of(&file),
        bytes: u64::try_from(file.len()).unwrap_or(u64::MAX),
    };
    if args.json { output::json(&report) } else { output::line(&text(&report)) }
}

fn bad(error: &dyn std::error::Error) -> Failure {
    Failure::work(format!("the checkpoint can't be used: {}", with_sources(error)))
}

async fn of_trial(client: &ApiClient, job: JobId, trial: TrialId) -> Result<Chosen, Failure> {
    let trials = client.trials(job).await?;
    let Some(view) = trials.iter().find(|view| view.trial == trial) else {
        let last = trials.len().saturating_sub(1);
        return Err(Failure::call(format!(
            "job {job} has no trial {trial}; its trials are 0 to {last}"
        )));
    };
    let Some(checkpoint) = view.checkpoint else {
        return Err(Failure::work(format!(
            "trial {trial} has no checkpoint yet: nothing was trained"
        )));
    };
    Ok(Chosen { trial, epoch: None, value: None, checkpoint })
}

async fn fetch(client: &ApiClient, blob: BlobRef) -> Result<Vec<u8>, Failure> {
    let mut meter = Meter::new("downloading", Unit::Bytes, blob.bytes);
    Ok(client.download(blob, &mut |received| meter.set(received, blob.bytes, "")).await?)
}

fn owned(view: &TensorView<'_>) -> Tensor {
    Tensor {
        name: view.name.clone(),
        dtype: view.dtype,
        shape: view.shape.clone(),
        data: view.data.to_vec(),
    }
}

/// The tensors that say how features are scaled; none where they aren't.
async fn scaling(client: &ApiClient, data: &DataManifest) -> Result<Vec<Tensor>, Failure> {
    let blob = match data.scaling {
        Scaling::None => return Ok(Vec::new()),
        Scaling::Constant(factor) => {
            #[expect(clippy::cast_possible_truncation, reason = "tensors are single precision")]
            let std = (1.0 / factor) as f32;
            let count = data.features.len();
            let shape = [u64::try_from(count).unwrap_or(u64::MAX)];
            return Ok(vec![
                Tensor::f32("scaling.mean", shape, &vec![0.0; count]),
                Tensor::f32("scaling.std", shape, &vec![std; count]),
            ]);
        }
        Scaling::Standard(blob) => blob,
    };
    let bytes = fetch(client, blob).await?;
    let tensors = decode(&bytes).map_err(|error| bad(&error))?;
    let named =
        tensors.iter().map(|view| Tensor { name: format!("scaling.{}", view.name), ..owned(view) });
    Ok(named.collect())
}

/// Writes a file so that its name never stands for half of it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::work(format!("can't write `{}`: {error}", path.display()));
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err(Failure::call(format!("`{}` is a folder; a file is wanted", path.display())));
    }
    if !folder.is_dir() {
        return Err(Failure::call(format!("there is no folder `{}`", folder.display())));
    }
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    {
        // Others may read it, as with any file that a person makes; the process's mask still holds.
        use std::os::unix::fs::PermissionsExt as _;
        file.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = file.prefix(".sojourn-").tempfile_in(folder).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn text(report: &Report) -> String {
    let (job, trial) = (report.job, report.trial);
    let value = match (report.value, report.epoch) {
        (Some(value), Some(epoch)) => {
            format!(", {} {} after epoch {}", report.metric, words::metric(value), epoch.0 + 1)
        }
        _ => String::new(),
    };
    format!(
        "{}: trial {trial} of job {job}{value} ({}, SHA-256 {})",
        report.file.display(),
        words::bytes(report.bytes),
        report.sha256
    )
}
