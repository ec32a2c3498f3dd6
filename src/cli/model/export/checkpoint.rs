//! `sojourn export JOB -o FILE`: a trial's model as a `.safetensors` file that any reader of the format opens.
//!
//! The file holds the parameters, the scaling of the features, and a description of both; see
//! [`sojourn_model::portable`]. The optimiser's state stays behind.

use crate::{
    api_client::ApiClient,
    cli::{
        model::{
            atomic_file::NewFile,
            export::{download::fetch, trained_rows::trained_rows},
        },
        render::text,
        terminal::{exit::Failure, output},
    },
};
use serde::Serialize;
use sojourn_api::endpoints;
use sojourn_codec::decode;
use sojourn_model::{
    LINEAGE, Lineage,
    portable::{Description, FORMAT, FileScaling, Origin, Parts, TrainedRows, write_model},
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::error_chain,
    ids::{Epoch, JobId, TrialId},
    manifest::Scaling,
    quantity::to_u64,
    spec::Missing,
    unit::TrialContext,
    view::{BestView, JobDetail, JobView, TrialHistory},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The checkpoint that is wanted.
#[derive(Debug, clap::Args)]
pub(super) struct Choice {
    /// The model of this trial: its best checkpoint.
    #[arg(long, value_name = "N", conflicts_with = "best", requires = "output")]
    trial: Option<TrialId>,
    /// The checkpoint with the best metric of the whole job (the default).
    #[arg(long, requires = "output")]
    best: bool,
    /// The trial's last checkpoint instead of its best.
    #[arg(long, requires = "trial")]
    last: bool,
    /// Export a model though results that it follows from, or is judged by, were taken in unverified. Without it such an export is
    /// refused.
    #[arg(long)]
    unverified: bool,
    /// Leave out the digests of rows that the model was trained on, by which `predict` knows them again.
    #[arg(long, requires = "output")]
    no_row_digests: bool,
}

impl Choice {
    /// Is anything chosen?
    pub(super) const fn any(&self) -> bool {
        self.trial.is_some() || self.best || self.last
    }

    /// Refuses a model that unverified results are in the lineage of, unless it is wanted all the same.
    pub(super) fn check_verified(&self, trial: TrialId, unverified: u64) -> Result<(), Failure> {
        if unverified == 0 || self.unverified {
            return Ok(());
        }
        let results = match unverified {
            1 => "1 result was".to_owned(),
            several => format!("{several} results were"),
        };
        Err(Failure::work(format!(
            "trial {trial} isn't verified: {results} taken in that no other party confirmed, and its models follow from them or are \
             judged by them; `--unverified` exports it all the same"
        )))
    }
}

/// The JSON of an export.
#[derive(Debug, Serialize)]
struct Report {
    job: JobId,
    trial: TrialId,
    /// Of a best checkpoint: the epoch that it ended, and its metric.
    epoch: Option<Epoch>,
    metric: String,
    value: Option<f64>,
    checkpoint: Digest,
    #[serde(serialize_with = "text::path_in_json")]
    file: PathBuf,
    sha256: Digest,
    bytes: u64,
    /// Unverified results that the model follows from, or is judged by, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    unverified: Option<u64>,
}

/// A checkpoint to export.
struct Chosen {
    trial: TrialId,
    epoch: Option<Epoch>,
    value: Option<f64>,
    checkpoint: BlobRef,
    unverified: u64,
}

impl Chosen {
    const fn best(best: &BestView) -> Self {
        let BestView { trial, epoch, value, checkpoint, unverified, .. } = *best;
        Self { trial, epoch: Some(epoch), value: Some(value), checkpoint, unverified }
    }
}

/// Writes the model to `path`, and prints what was written: as JSON, or as a sentence.
pub(super) async fn run(
    client: &ApiClient,
    job: JobId,
    args: &Choice,
    path: &Path,
    json: bool,
) -> Result<(), Failure> {
    let detail = client.call(endpoints::Job::request(job)).await?;
    check_kept(args, &detail.summary)?;
    let chosen = match (args.trial, &detail.summary.best) {
        (Some(trial), _) => of_trial(client, args, (job, trial)).await?,
        (None, Some(best)) => Chosen::best(best),
        (None, None) => {
            let message = format!("job {} has no best trial yet: none was evaluated", job);
            return Err(Failure::work(message));
        }
    };
    args.check_verified(chosen.trial, chosen.unverified)?;
    let history = client.call(endpoints::History::request(job, chosen.trial)).await?;
    let rows = match args.no_row_digests {
        true => None,
        false => trained_rows(client, &detail, &history).await,
    };
    let file = model_file(client, &detail, (&chosen, history), rows.as_ref()).await?;
    NewFile::write(path, &file)?;
    let report = Report {
        job,
        trial: chosen.trial,
        epoch: chosen.epoch,
        metric: detail.summary.metric,
        value: chosen.value,
        checkpoint: chosen.checkpoint.sha256,
        file: path.to_owned(),
        sha256: Digest::of(&file),
        bytes: to_u64(file.len()),
        unverified: (chosen.unverified > 0).then_some(chosen.unverified),
    };
    if json { output::json(&report) } else { output::line(&text(&report)) }
}

/// The file of a job's best model.
pub(super) async fn best_file(
    client: &ApiClient,
    detail: &JobDetail,
    best: &BestView,
) -> Result<Vec<u8>, Failure> {
    let (job, chosen) = (detail.summary.job, Chosen::best(best));
    let history = client.call(endpoints::History::request(job, chosen.trial)).await?;
    let rows = trained_rows(client, detail, &history).await;
    model_file(client, detail, (&chosen, history), rows.as_ref()).await
}

async fn model_file(
    client: &ApiClient,
    detail: &JobDetail,
    (chosen, history): (&Chosen, TrialHistory),
    trained_rows: Option<&TrainedRows>,
) -> Result<Vec<u8>, Failure> {
    let context = history.context;
    let checkpoint = fetch(client, chosen.checkpoint).await?;
    let scaling = match context.scaling {
        Scaling::Standard(blob) => Some(fetch(client, blob).await?),
        Scaling::None | Scaling::Constant(_) => None,
    };
    let graph = match context.config.model.exported() {
        Some(graph) => Some(fetch(client, graph.file).await?),
        None => None,
    };
    let context = Arc::unwrap_or_clone(context);
    let description = describe(detail, context, chosen, steps(&checkpoint)?);
    let parts = Parts {
        checkpoint: &checkpoint,
        scaling: scaling.as_deref(),
        graph: graph.as_deref(),
        trained_rows,
    };
    write_model(&description, parts).map_err(|error| bad(&error))
}

/// Is the checkpoint kept: of a job that was thinned only the best one is.
fn check_kept(args: &Choice, job: &JobView) -> Result<(), Failure> {
    let best = job.best.as_ref().map(|best| best.trial);
    let is_best = !args.last && args.trial.is_none_or(|trial| Some(trial) == best);
    if !job.thinned || is_best {
        return Ok(());
    }
    let best = best.map(|trial| format!(", that of trial {trial}")).unwrap_or_default();
    Err(Failure::work(format!(
        "job {} is thinned: of its models the server keeps only the best one{best} (`--keep-jobs`)",
        job.job
    )))
}

fn bad(error: &dyn std::error::Error) -> Failure {
    Failure::work(format!("the checkpoint can't be used: {}", error_chain(error)))
}

async fn of_trial(
    client: &ApiClient,
    args: &Choice,
    (job, trial): (JobId, TrialId),
) -> Result<Chosen, Failure> {
    let trials = client.call(endpoints::Trials::request(job)).await?;
    let Some(view) = trials.iter().find(|view| view.trial == trial) else {
        let last = trials.len().saturating_sub(1);
        return Err(Failure::call(format!(
            "job {job} has no trial {trial}; its trials are 0 to {last}"
        )));
    };
    match (view.checkpoint, &view.best) {
        (None, _) => {
            let message = format!("trial {trial} has no checkpoint yet: nothing was trained");
            Err(Failure::work(message))
        }
        (Some(_), None) if !args.last => Err(Failure::work(format!(
            "trial {trial} has no best checkpoint yet: none was evaluated; `--last` takes its last"
        ))),
        (Some(last), Some(best)) if !args.last || best.checkpoint == last => Ok(Chosen::best(best)),
        // Of others than the best nothing is remembered but where they are.
        (Some(checkpoint), _) => {
            let unverified = view.unverified;
            Ok(Chosen { trial, epoch: None, value: None, checkpoint, unverified })
        }
    }
}

/// Optimiser steps in a checkpoint.
fn steps(checkpoint: &[u8]) -> Result<u64, Failure> {
    let tensors = decode(checkpoint).map_err(|error| bad(&error))?;
    let lineage = tensors.iter().find(|tensor| tensor.name == LINEAGE);
    let lineage =
        lineage.ok_or_else(|| Failure::work("the checkpoint can't be used: it has no lineage"))?;
    let numbers: Vec<i64> = lineage.i64s().map_err(|error| bad(&error))?.collect();
    let lineage = Lineage::from_numbers(&numbers).map_err(|error| bad(&error))?;
    Ok(lineage.position.step)
}

fn describe(detail: &JobDetail, context: TrialContext, chosen: &Chosen, steps: u64) -> Description {
    let JobDetail { summary, spec, data, .. } = detail;
    Description {
        format: FORMAT,
        architecture: context.config.model,
        columns: context.columns,
        shape: context.shape,
        outputs: context.outputs,
        labels: data.labels.clone(),
        label: spec.data.label.clone(),
        array: spec.data.features.clone(),
        channels: spec.data.channels,
        features: data.features.clone(),
        categories: data.categories.clone(),
        missing: match spec.data.missing {
            // Rows that were left out in training have no prediction.
            Missing::Refuse | Missing::DropRow => Missing::Refuse,
            said @ (Missing::Zero | Missing::Mean) => said,
        },
        fill: data.fill.clone(),
        dialect: spec.data.dialect.clone(),
        scaling: match context.scaling {
            Scaling::None => FileScaling::None,
            Scaling::Constant(factor) => FileScaling::Constant(factor),
            Scaling::Standard(_) => FileScaling::Standard,
        },
        label_scaling: context.targets.scaling(),
        loss: context.config.training.loss,
        precision: context.config.training.precision,
        origin: Origin {
            job: summary.job,
            name: spec.name.clone(),
            trial: chosen.trial,
            epoch: chosen.epoch,
            steps,
            metric: summary.metric.clone(),
            value: chosen.value,
            checkpoint: chosen.checkpoint.sha256,
        },
    }
}

fn text(report: &Report) -> String {
    let (job, trial) = (report.job, report.trial);
    let value = match (report.value, report.epoch) {
        (Some(value), Some(epoch)) => {
            format!(", {} {} after epoch {}", report.metric, text::metric(value), epoch.0 + 1)
        }
        _ => String::new(),
    };
    let unverified = report.unverified.map(|results| {
        let results = text::counted(results, "result");
        format!("; it isn't verified: it follows from {results} that nobody confirmed, or is judged by them")
    });
    let unverified = unverified.unwrap_or_default();
    format!(
        "{}: trial {trial} of job {job}{value} ({}, SHA-256 {}){unverified}",
        report.file.display(),
        text::bytes(report.bytes),
        report.sha256
    )
}
