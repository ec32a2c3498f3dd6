//! A job as people name it: by its number, or by its name.

use crate::{api_client::ApiClient, cli::render::text, cli::terminal::exit::Failure};
use sojourn_api::endpoints;
use sojourn_protocol::{ids::JobId, view::JobView};
use std::{convert::Infallible, str::FromStr};

/// Jobs that an error lists.
const MAX_CANDIDATES: usize = 10;

/// A job by its number or its name. What is a number is the number, also where a job has it as its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobRef {
    Number(JobId),
    Name(String),
}

impl FromStr for JobRef {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_number = text.chars().all(|digit| digit.is_ascii_digit());
        Ok(match text.parse().ok().filter(|_| is_number) {
            Some(job) => Self::Number(job),
            None => Self::Name(text.to_owned()),
        })
    }
}

impl JobRef {
    /// The job's number. A name is looked up at the server.
    ///
    /// # Errors
    /// Where no job has the name, or several have it: the message lists them.
    pub(crate) async fn find(&self, client: &ApiClient) -> Result<JobId, Failure> {
        match self {
            Self::Number(job) => Ok(*job),
            Self::Name(name) => {
                named(name, &client.call(endpoints::Jobs::request()).await?).map_err(Failure::call)
            }
        }
    }
}

/// The one job with this name.
fn named(name: &str, jobs: &[JobView]) -> Result<JobId, String> {
    let same: Vec<&JobView> = jobs.iter().filter(|job| job.name == name).collect();
    match same.as_slice() {
        [job] => Ok(job.job),
        [] if jobs.is_empty() => Err(format!("no job `{name}`: there are no jobs yet")),
        [] => {
            let all: Vec<&JobView> = jobs.iter().collect();
            Err(format!("no job is called `{name}`; there are:{}", candidates(&all)))
        }
        several => {
            let count = several.len();
            let candidates = candidates(several);
            Err(format!("{count} jobs are called `{name}`; say the number of one:{candidates}"))
        }
    }
}

/// The latest jobs, a line each.
fn candidates(jobs: &[&JobView]) -> String {
    let line = |job: &&JobView| {
        let (state, ago) = (job.state.name(), text::ago(job.submitted_at));
        format!("\n  {} `{}`, {state}, submitted {ago}", job.job, job.name)
    };
    let hidden = jobs.len().saturating_sub(MAX_CANDIDATES);
    let lines: String = jobs.iter().rev().take(MAX_CANDIDATES).map(line).collect();
    match hidden {
        0 => lines,
        hidden => format!("{lines}\n  and {hidden} more: `sojourn jobs`"),
    }
}
