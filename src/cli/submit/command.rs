//! `sojourn submit`: data to shards, missing blobs to the server, then the job.

use crate::{
    api_client::ApiClient,
    cli::{
        jobs::job_args::note,
        render::{
            owners::{self, ONE_OWNER},
            progress::{Meter, Unit},
            text,
        },
        submit::{
            columns,
            graphs::{self, PythonArgs},
            history, init_weights,
            jobfile::{self, Job},
            prices::{self, DataSize, Prices},
            reading::{LeftOut, Reading},
            sharding::{self, Chosen, Known},
            validate,
            wait::{self, Watched},
            warnings,
            workspace::Workspace,
        },
        terminal::{
            causes::ingest_failure, connection::Connection, exit::Failure, output, signals,
        },
    },
};
use serde::Serialize;
use sojourn_api::endpoints;
use sojourn_ingest::{Bounds, Ingested, Progress, Unbounded};
use sojourn_protocol::{
    api::{MissingRequest, NoteRequest, SubmitRequest, Submitted},
    digest::{BlobRef, Digest},
    ids::JobId,
    spec::Visits,
    view::{JobState, JobView},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job file; paths in it are relative to its folder.
    #[arg(value_name = "JOB.TOML")]
    file: PathBuf,
    /// Wait until the job has ended; exit with 1 unless it finished.
    #[arg(long)]
    wait: bool,
    /// Run it again even if an identical job exists.
    #[arg(long)]
    again: bool,
    /// A note on the job; `sojourn set --note` changes it.
    #[arg(long, value_name = "TEXT", value_parser = note)]
    note: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    python: PythonArgs,
    #[command(flatten)]
    connection: Connection,
}

/// The JSON of a submission.
#[derive(Debug, Serialize)]
struct Report {
    job: JobId,
    trials: u32,
    submitted: Submitted,
    /// Blobs that the job needs, and those of them that the server lacked.
    blobs: usize,
    blobs_sent: usize,
    bytes_sent: u64,
    /// Shards of the training rows.
    shards: u32,
    /// Why so many, or of these sizes, where the job file leaves that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    shards_because: Option<String>,
    /// Whether the order in which trials visit shards is fixed, and why where the job file leaves that open.
    visits: Visits,
    #[serde(skip_serializing_if = "Option::is_none")]
    visits_because: Option<String>,
    /// The reasons for which another run of the job may differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    may_differ: Vec<String>,
    /// The expected cost on the types of machines that the server has bought, and the trade of money for time.
    #[serde(flatten)]
    prices: Prices,
    /// Rows that were left out because they can't be read, by their source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bad_rows: Vec<LeftOut>,
    /// Warnings of what is allowed, and hardly meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// With `--wait`: the job at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<JobView>,
}

/// The blobs of an upload.
#[derive(Debug, Clone, Copy)]
struct Sent {
    blobs: usize,
    bytes: u64,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let mut job = jobfile::read(&args.file).map_err(|(failure, _)| failure)?;
    let client = args.connection.client()?;
    // Before minutes are spent on data: is the server there, and does it take this token?
    client.call(endpoints::Health::request()).await?;
    client
        .call_while_away(endpoints::MissingBlobs::request(&MissingRequest { blobs: Vec::new() }))
        .await?;

    if let Some(trials) = history::find(&client, &mut job).await?
        && !args.json
    {
        let past = job.spec.search.history.as_ref().map_or("", |past| past.job.as_str());
        output::line(&format!("history {} of job {past}", text::counted(trials, "trial")))?;
    }

    let known = Known::of(&client, &job, args.again).await?;

    if !args.json {
        let (placement, hosts) =
            (&job.spec.placement, client.call(endpoints::Hosts::request()).await?);
        if placement.verifies_all().is_some() && owners::are_of_one_owner(&hosts) {
            output::line(ONE_OWNER)?;
        } else if owners::has_strangers(&hosts) {
            output::line(&format!("verify {}", placement.verified_hosts()))?;
        }
    }

    let workspace = Workspace::new()?;
    let mut reading = Reading::new();
    let tell = &mut |progress: Progress<'_>| reading.tell(progress);
    let (ingested, chosen) = tokio::task::block_in_place(|| {
        cut(&mut job, &args.python, &known, (workspace.path(), Arc::new(Unbounded)), tell)
    })?;
    let may_differ = chosen.may_differ(&job.spec);
    let Chosen { shards, why, visits, .. } = chosen;
    job.spec.data.shards = Some(shards);
    job.spec.placement.visits = Some(visits.visits);
    if !args.json {
        let visits = visits.is_chosen().then(|| format!("visits {visits}"));
        why.iter().chain(&visits).chain(&may_differ).try_for_each(|line| output::line(line))?;
    }
    let rows: Vec<u32> = ingested.manifest.train.iter().map(|shard| shard.rows).collect();
    let warnings = warnings::of(&job, &ingested.manifest.labels, &rows);
    for warning in warnings.iter().filter(|_| !args.json) {
        output::remark(&format!("warning: {warning}"));
    }
    let manifest = &ingested.manifest;
    let size = DataSize {
        shape: &manifest.shape,
        outputs: manifest.labels.outputs(),
        train_rows: manifest.train_rows(),
        valid_rows: manifest.valid.iter().map(|shard| u64::from(shard.rows)).sum(),
    };
    // A server that is older knows no prices, and an estimate is no reason not to submit.
    let prices = match prices::are_wanted(&job) {
        true => prices::of(&client, &job, &size).await.unwrap_or_default(),
        false => Prices::default(),
    };
    if !args.json {
        let lines = prices::lines(&prices, &job);
        lines.iter().try_for_each(|line| output::line(&format!("cost {line}")))?;
    }
    let mut files = ingested.files.clone();
    files.extend(init_weights::write(&job, workspace.path())?);
    files.extend(std::mem::take(&mut job.graphs));
    let blobs = ingested.manifest.blobs().chain(job.spec.blobs());
    let sent = upload(&client, blobs.map(|blob| (blob.sha256, blob)).collect(), &files).await?;
    let request = SubmitRequest {
        spec: job.spec,
        data: ingested.manifest.clone(),
        again: args.again,
        nonce: nonce()?,
    };
    let answer = client.call_while_away(endpoints::SubmitJob::request(&request)).await?;
    if let Some(note) = &args.note {
        client
            .call(endpoints::NoteJob::request(answer.job, &NoteRequest { note: note.clone() }))
            .await?;
    }
    drop(workspace);

    let mut report = Report {
        job: answer.job,
        trials: answer.trials,
        submitted: answer.submitted,
        blobs: files.len(),
        blobs_sent: sent.blobs,
        bytes_sent: sent.bytes,
        shards,
        shards_because: why,
        visits: visits.visits,
        visits_because: visits.is_chosen().then(|| visits.to_string()),
        may_differ,
        prices,
        bad_rows: reading.left_out(),
        warnings,
        outcome: None,
    };
    if !args.json {
        output::line(&text(&report))?;
    }
    if args.wait {
        let job = report.job;
        let view = tokio::select! {
            view = wait_for(&client, job) => view?,
            () = signals::requested() => {
                let message = format!("job {job} goes on; `sojourn cancel {job}` ends it");
                return Err(Failure::interrupted(message));
            }
        };
        if !args.json {
            output::line(&wait::outcome_text(&view))?;
        }
        report.outcome = Some(view);
    }
    if args.json {
        output::json(&report)?;
    }
    match &report.outcome {
        Some(view) => wait::verdict(view),
        None => Ok(()),
    }
}

/// Checks the data, exports users' own models for it, and cuts it into shards within bounds, by what is chosen.
pub(crate) fn cut(
    job: &mut Job,
    python: &PythonArgs,
    known: &Known,
    (workspace, bounds): (&Path, Arc<dyn Bounds>),
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<(Ingested, Chosen), Failure> {
    let spec = job.spec.clone();
    let data = sojourn_ingest::survey_within(&spec, &job.folder, workspace, bounds, tell)
        .map_err(ingest_failure)?;
    columns::take(job, &data)?;
    graphs::export_all(job, &data, python, workspace)?;
    validate::check(job, &data)?;
    let chosen = sharding::choose(job, &data, known)?;
    let ingested = data.ingest(&chosen.cut, workspace, tell).map_err(ingest_failure)?;
    Ok((ingested, chosen))
}

/// Sends the blobs that the server lacks.
async fn upload(
    client: &ApiClient,
    blobs: BTreeMap<Digest, BlobRef>,
    files: &BTreeMap<Digest, PathBuf>,
) -> Result<Sent, Failure> {
    let request = MissingRequest { blobs: blobs.values().copied().collect() };
    let missing = client.call_while_away(endpoints::MissingBlobs::request(&request)).await?.missing;
    let missing: Vec<BlobRef> =
        missing.iter().filter_map(|digest| blobs.get(digest)).copied().collect();
    let total = missing.iter().map(|blob| blob.bytes).sum();
    let mut meter = Meter::new("uploading", Unit::Bytes, total);
    let mut before = 0;
    for blob in &missing {
        let Some(path) = files.get(&blob.sha256) else {
            return Err(Failure::work(format!("the blob {} was not made", blob.sha256)));
        };
        client.upload(*blob, path, &mut |sent| meter.set(before + sent, total, "")).await?;
        before += blob.bytes;
    }
    Ok(Sent { blobs: missing.len(), bytes: total })
}

fn text(report: &Report) -> String {
    let job = report.job;
    let state = match report.submitted {
        Submitted::New => format!("job {job} has begun"),
        Submitted::Existing => {
            format!("job {job} is this job already (`--again` runs it once more)")
        }
    };
    let trials = text::counted(u64::from(report.trials), "trial");
    let sent = text::bytes(report.bytes_sent);
    let (blobs_sent, blobs) = (report.blobs_sent, report.blobs);
    format!(
        "{state}: {trials}; {blobs_sent} of {blobs} blobs sent ({sent})\nsee `sojourn status {job} --watch`"
    )
}

async fn wait_for(client: &ApiClient, job: JobId) -> Result<JobView, Failure> {
    let mut meter = Meter::new("hops", Unit::Steps, 0);
    let mut was = JobState::Running;
    let mut waits: Option<String> = None;
    wait::until_end(client, job, async |watched| {
        match watched {
            Watched::View(view) => {
                if view.state != was && !view.state.has_ended() {
                    meter.remark(&format!("job {job} is {}", view.state.name()));
                }
                was = view.state;
                if view.waiting != waits {
                    waits.clone_from(&view.waiting);
                    if let Some(reason) = &waits {
                        meter.remark(&format!("job {job} waits: {reason}"));
                    }
                }
                let left = view.time_left.and_then(|left| left.expected);
                meter.set_with_left(
                    (view.hops, view.hops_expected),
                    left.map(|left| Duration::from_millis(left.0)),
                    &format!("best {}", text::best(view)),
                );
            }
            Watched::Away(reason) => meter.remark(&format!("{reason}; trying again")),
        }
        Ok(())
    })
    .await
}

/// A name for this call, so that its answer may be lost and asked for again.
pub(crate) fn nonce() -> Result<Option<String>, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::work(format!("the system gives no random numbers: {error}")))?;
    Ok(Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}
