//! `sojourn evaluate`: a trial's best checkpoint on the test data, or on the validation data, with all
//! metrics. Nothing of it reaches the search.

use crate::{
    api_client::ApiClient,
    cli::{
        jobs::job_ref::JobRef,
        render::scores,
        submit::wait::{self, Polled},
        terminal::{connection::Connection, exit::Failure, output},
    },
};
use clap::ValueEnum;
use serde::Serialize;
use sojourn_api::endpoints;
use sojourn_http::CallError;
use sojourn_protocol::{
    api::EvaluateRequest,
    ids::{JobId, TrialId},
    manifest::{DataSplit, Labels},
    spec::OwnMetric,
    view::{EvaluationState, EvaluationView},
};
use std::collections::BTreeMap;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job's number or name; it may have ended.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// The checkpoint of this trial that is its best by the job's metric.
    #[arg(long, value_name = "N", conflicts_with = "best")]
    trial: Option<TrialId>,
    /// The best trial of the job (what is taken if nothing is said).
    #[arg(long)]
    best: bool,
    /// The rows. If left out: the test data, or the validation data of a job without test data.
    #[arg(long, value_enum)]
    split: Option<SplitArg>,
    /// Wait until it is done; exit with 1 where it fails.
    #[arg(long)]
    wait: bool,
    /// Print one JSON object, with the whole confusion matrix once it is done.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SplitArg {
    /// The test data, which the search never sees.
    Test,
    /// The validation data.
    Valid,
}

/// The JSON of an evaluation.
#[derive(Debug, Serialize)]
struct Report {
    job: JobId,
    #[serde(flatten)]
    evaluation: EvaluationView,
    /// Names of the classes, in the order of the counts; none where labels are numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<String>>,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let job = args.job.find(&client).await?;
    let detail = client.call(endpoints::Job::request(job)).await?;
    let split = match args.split {
        Some(SplitArg::Test) => DataSplit::Test,
        Some(SplitArg::Valid) => DataSplit::Valid,
        None if detail.data.test.is_empty() => {
            output::remark(&format!(
                "job {job} has no test data; this is `--split valid`, the data that the search chose by"
            ));
            DataSplit::Valid
        }
        None => DataSplit::Test,
    };
    let trial = match (args.trial, &detail.summary.best) {
        (Some(trial), _) => trial,
        (None, Some(best)) => best.trial,
        (None, None) => {
            let message = format!("job {} has no best trial yet: none was evaluated", job);
            return Err(Failure::work(message));
        }
    };
    let lacks_test = split == DataSplit::Test && detail.data.test.is_empty();
    let mut evaluation = match client
        .call(endpoints::Evaluate::request(job, trial, &EvaluateRequest { split }))
        .await
    {
        Err(CallError::Refused { error, .. }) if lacks_test => {
            let hint = "`--split valid` takes the validation data";
            return Err(Failure::call(format!("{}; {hint}", error.message)));
        }
        asked => asked?,
    };
    if args.wait && is_open(&evaluation) {
        evaluation = wait_for(&client, job, &evaluation).await?;
    }
    let classes = match detail.data.labels {
        Labels::Classes(names) => Some(names),
        Labels::Number | Labels::None => None,
    };
    let report = Report { job, evaluation, classes };
    if args.json {
        output::json(&report)?;
    } else {
        output::line(&text(&report, &detail.spec.search.metrics))?;
    }
    match &report.evaluation.state {
        EvaluationState::Failed { error } => Err(Failure::work(format!(
            "trial {trial} of job {} could not be evaluated: {error}",
            job
        ))),
        _ => Ok(()),
    }
}

fn is_open(evaluation: &EvaluationView) -> bool {
    matches!(evaluation.state, EvaluationState::Waiting { .. } | EvaluationState::Running)
}

/// Asks until the evaluation has ended, and says why it stands still where it does.
async fn wait_for(
    client: &ApiClient,
    job: JobId,
    asked: &EvaluationView,
) -> Result<EvaluationView, Failure> {
    let mut said = None;
    let ask = async || client.call(endpoints::Evaluations::request(job, asked.trial)).await;
    wait::poll(ask, async |polled| {
        let all = match polled {
            Polled::Answer(all) => all,
            Polled::Away(reason) => {
                output::remark(&format!("{reason}; trying again"));
                return Ok(None);
            }
        };
        let same =
            |other: &EvaluationView| (other.split, other.epoch) == (asked.split, asked.epoch);
        let Some(evaluation) = all.into_iter().find(same) else {
            let trial = asked.trial;
            let text = format!("job {job} was cancelled, or its trial {trial} was taken back");
            return Err(Failure::work(text));
        };
        if let EvaluationState::Waiting { reason: Some(reason) } = &evaluation.state
            && said.as_ref() != Some(reason)
        {
            output::remark(&format!("waiting: {reason}"));
            said = Some(reason.clone());
        }
        Ok((!is_open(&evaluation)).then_some(evaluation))
    })
    .await
}

fn text(report: &Report, metrics: &BTreeMap<String, OwnMetric>) -> String {
    let Report { job, evaluation, classes } = report;
    let EvaluationView { trial, split, epoch, .. } = evaluation;
    let what = format!(
        "trial {trial} of job {job} after epoch {} on the {} data",
        epoch.0 + 1,
        split.name()
    );
    match &evaluation.state {
        EvaluationState::Done(result) => {
            let mut lines = vec![what, scores::table(&result.metrics)];
            lines.extend(scores::confusion(result, classes.as_deref()));
            lines.extend(scores::matrices(result, metrics, classes.as_deref()));
            lines.join("\n")
        }
        EvaluationState::Waiting { reason } => {
            let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            format!("{what}: waits for a machine{reason}\n`--wait` waits for it")
        }
        EvaluationState::Running => format!("{what}: under way\n`--wait` waits for it"),
        EvaluationState::Failed { .. } => format!("{what}: failed"),
    }
}
