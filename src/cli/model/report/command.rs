//! The command line of `sojourn report`: asks the server, trains trials again where that is wanted, and writes the file.

use super::{efficiencies::Efficiencies, rows};
use crate::{
    api_client::ApiClient,
    cli::{
        jobs::job_ref::JobRef,
        model::{atomic_file::NewFile, export::answers::Answers},
        render::text,
        terminal::{connection::Connection, exit::Failure, output},
    },
    replay::{
        Verdict,
        trial::{replay_trial, verdict_text},
    },
};
use serde::Serialize;
use sojourn_api::endpoints;
use sojourn_client::GpuChoice;
use sojourn_page::report::{Efficiency, Replay, Report, document};
use sojourn_protocol::{
    PROTOCOL_VERSION,
    ids::{JobId, TrialId},
    machines::CostsView,
    money::MicroUsd,
    quantity::{to_u64, to_usize},
    view::TrialView,
};
use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
};

/// The job to report, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// Write the report into this file; an existing file is replaced.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Train the N best trials again on this machine, and say in the report whether each checkpoint came out the same. Without N: the
    /// best. The exit code is 1 where one differs; the file is written then too.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1")]
    replay: Option<u32>,
    /// With `--replay`: the device to train on, `auto`, `none` (the CPU alone), or GPUs by number, as for `sojourn replay`.
    #[arg(long, env = "SOJOURN_GPUS", value_name = "GPUS", default_value = "auto")]
    gpus: GpuChoice,
    /// Print one JSON object: what was written, the efficiencies and the verdicts.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// The JSON of a report.
#[derive(Debug, Serialize)]
struct Written<'a> {
    job: JobId,
    #[serde(serialize_with = "text::path_in_json")]
    file: &'a Path,
    bytes: u64,
    efficiencies: Efficiencies,
    replays: &'a [Replay],
}

/// Trials that were trained again.
#[derive(Debug, Default)]
struct Replays {
    done: Vec<Replay>,
    /// Why none was.
    none: Option<String>,
    /// The first that came out otherwise.
    different: Option<TrialId>,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let job = args.job.find(&client).await?;
    // Before hours of training: a file that can't be written says so at once.
    let file = NewFile::create(&args.output)?;
    let answers = Answers::read(&client, job).await?;
    let replays = replays(args, &client, &answers).await?;
    let hosts = client.call(endpoints::Hosts::request()).await?;
    let slots: BTreeMap<_, _> = hosts.iter().map(|host| (host.host, host.slots)).collect();
    let efficiencies = Efficiencies::of(&answers, &slots);
    let rows = rows::rows(&efficiencies, &client.call(endpoints::Traffic::request()).await?);
    let page = page(&client, &answers, rows, &replays).await?;
    let bytes = write(file, &args.output, &page)?;
    let different = replays.different;
    if args.json {
        let (file, replays) = (args.output.as_path(), replays.done.as_slice());
        output::json(&Written { job, file, bytes, efficiencies, replays })?;
    } else {
        output::line(&format!("{}: job {job}, {}", args.output.display(), text::bytes(bytes)))?;
    }
    match different {
        None => Ok(()),
        Some(trial) => {
            Err(Failure::work(format!("the replay of trial {trial} of job {job} is different")))
        }
    }
}

/// The page as text.
async fn page(
    client: &ApiClient,
    answers: &Answers,
    efficiencies: Vec<Efficiency>,
    replays: &Replays,
) -> Result<String, Failure> {
    let job = answers.detail.summary.job;
    let curves = client.call(endpoints::Search::request(job)).await?.trials;
    let report = Report {
        made_at: text::now(),
        job: &answers.detail,
        trials: &answers.trials,
        curves: &curves,
        cost: cost(&client.call(endpoints::Costs::request()).await?, job),
        versions: versions(&client.call(endpoints::Health::request()).await?.version, answers),
        efficiencies,
        replays: replays.done.clone(),
        not_replayed: replays.none.clone(),
    };
    let page = document(&report).map_err(|error| Failure::work(error.to_string()))?;
    Ok(page.into_string())
}

fn write(mut file: NewFile, path: &Path, page: &str) -> Result<u64, Failure> {
    let written = file.write_all(page.as_bytes());
    written.map_err(|error| Failure::work(format!("can't write `{}`: {error}", path.display())))?;
    file.finish()?;
    Ok(to_u64(page.len()))
}

/// The cost of the job on bought machines, where any were.
fn cost(costs: &CostsView, job: JobId) -> Option<MicroUsd> {
    let of_job = costs.jobs.iter().find(|cost| cost.job == job)?;
    Some(of_job.cost).filter(|cost| *cost > MicroUsd(0))
}

fn versions(server: &str, answers: &Answers) -> Vec<(&'static str, String)> {
    let best = answers.detail.summary.best.as_ref();
    let best = best.and_then(|best| answers.trials.iter().find(|trial| trial.trial == best.trial));
    let class = best.and_then(|trial| trial.numeric_class);
    let class = class.map(|class| ("Numeric class of the best", class.to_string()));
    let programs = [
        ("Server", server.to_owned()),
        ("Report", env!("CARGO_PKG_VERSION").to_owned()),
        ("Protocol", PROTOCOL_VERSION.to_string()),
    ];
    programs.into_iter().chain(class).collect()
}

/// Trains the best trials again, as many as are wanted.
async fn replays(args: &Args, client: &ApiClient, answers: &Answers) -> Result<Replays, Failure> {
    let mut replays = Replays::default();
    let Some(wanted) = args.replay else { return Ok(replays) };
    let job = &answers.detail.summary;
    if job.thinned {
        replays.none = Some("the server doesn't keep the job's data and checkpoints".to_owned());
        return Ok(replays);
    }
    for trial in best(answers, to_usize(wanted)) {
        let replayed = replay_trial(client, job.job, trial, &args.gpus).await?;
        if replayed.verdict == Verdict::Different {
            replays.different = replays.different.or(Some(trial));
        }
        let (verdict, text) = (replayed.verdict.name(), verdict_text(&replayed));
        replays.done.push(Replay { trial, verdict, text });
    }
    if replays.done.is_empty() {
        replays.none = Some("no trial has a checkpoint".to_owned());
    }
    Ok(replays)
}

/// The best trials that have something to train again.
fn best(answers: &Answers, wanted: usize) -> Vec<TrialId> {
    let goal = answers.detail.spec.search.goal;
    let mut trials: Vec<&TrialView> =
        answers.trials.iter().filter(|trial| trial.checkpoint.is_some()).collect();
    trials.sort_by(|a, b| TrialView::leader_board(goal, a, b));
    trials.into_iter().take(wanted).map(|trial| trial.trial).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::model::export::samples::{Sample, answers};

    #[test]
    fn the_best_trials_are_replayed_and_none_without_a_checkpoint() {
        let epochs = [3, 0, 2].map(|epochs| Sample { name: String::new(), epochs });
        let mut answers = answers(&epochs);
        answers.trials[2].best.as_mut().unwrap().value = 0.9;
        assert_eq!(best(&answers, 1), [TrialId(2)]);
        assert_eq!(best(&answers, 9), [TrialId(2), TrialId(0)]);
    }
}
