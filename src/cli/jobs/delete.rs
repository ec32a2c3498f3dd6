//! `sojourn delete`: jobs that have ended go, with all that the server keeps because of them.

use crate::{
    api_client::ApiClient,
    cli::{
        jobs::job_ref::JobRef,
        render::text,
        terminal::{confirm::confirm, connection::Connection, exit::Failure, simple::show},
    },
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::{DeleteRequest, DeletedJob, DeletedJobs, MAX_DELETED_JOBS},
    ids::JobId,
    time::{Millis, UnixMillis},
    view::JobView,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The jobs' numbers or names.
    #[arg(value_name = "JOB", required_unless_present = "older_than")]
    jobs: Vec<JobRef>,
    /// All jobs that ended longer ago than this: `30d`, `12h`. Of many the oldest 100; say it again for the others.
    #[arg(long, value_name = "TIME", conflicts_with = "jobs")]
    older_than: Option<Millis>,
    /// Only say what would go.
    #[arg(long)]
    preview: bool,
    /// Don't ask.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let client = args.connection.client()?;
    let jobs = match args.older_than {
        None => named(&client, &args.jobs).await?,
        Some(age) => {
            ended_before(&client.call(endpoints::Jobs::request()).await?, text::now(), age)
        }
    };
    if let (true, Some(age)) = (jobs.is_empty(), args.older_than) {
        let nothing = DeletedJobs { jobs: Vec::new(), bytes_freed: 0 };
        return show(&nothing, args.json, |_| format!("no job ended longer ago than {age}"));
    }
    let with = |preview| DeleteRequest { jobs: jobs.clone(), preview };
    let preview = client.call(endpoints::DeleteJobs::request(&with(true))).await?;
    if args.preview {
        return show(&preview, args.json, would_go);
    }
    confirm(&would_go(&preview), args.yes)?;
    show(&client.call(endpoints::DeleteJobs::request(&with(false))).await?, args.json, have_gone)
}

/// The numbers of these jobs, each once.
async fn named(client: &ApiClient, jobs: &[JobRef]) -> Result<Vec<JobId>, Failure> {
    let mut found = Vec::with_capacity(jobs.len());
    for job in jobs {
        found.push(job.find(client).await?);
    }
    found.sort_unstable();
    found.dedup();
    if found.len() > MAX_DELETED_JOBS {
        return Err(Failure::call(format!("one call deletes at most {MAX_DELETED_JOBS} jobs")));
    }
    Ok(found)
}

/// The jobs that ended longer ago than that, the oldest first, and no more than one call deletes.
fn ended_before(jobs: &[JobView], now: UnixMillis, age: Millis) -> Vec<JobId> {
    let ended = jobs.iter().filter_map(|job| Some((job.ended_at?, job.job)));
    let mut old: Vec<_> = ended.filter(|(at, _)| *at + age < now).collect();
    old.sort_unstable();
    old.into_iter().take(MAX_DELETED_JOBS).map(|(_, job)| job).collect()
}

/// The jobs that would be deleted, a line for each.
fn would_go(deleted: &DeletedJobs) -> String {
    let mut lines: Vec<String> = deleted.jobs.iter().map(line).collect();
    lines.push(match deleted.jobs.len() {
        1 => format!("deleting it frees {} of the store", text::bytes(deleted.bytes_freed)),
        several => {
            let freed = text::bytes(deleted.bytes_freed);
            format!("deleting these {several} jobs frees {freed} of the store")
        }
    });
    lines.join("\n")
}

fn line(job: &DeletedJob) -> String {
    let DeletedJob { job: id, name, trials, disk_bytes, metric, best, best_is_kept } = job;
    let trials = text::counted(u64::from(*trials), "trial");
    let best = best.as_ref().map(|best| {
        let (trial, value) = (best.trial, text::metric(best.value));
        let fate = match best_is_kept {
            true => "which another job keeps".to_owned(),
            false => format!("which goes too unless `sojourn export {id} -o FILE` has saved it"),
        };
        format!("; best model of trial {trial} ({metric} {value}), {fate}")
    });
    let best = best.unwrap_or_else(|| "; no model was evaluated".to_owned());
    format!("job {id} `{name}`: {trials}, {} on disk{best}", text::bytes(*disk_bytes))
}

fn have_gone(deleted: &DeletedJobs) -> String {
    let line = |job: &DeletedJob| format!("job {} `{}` is deleted", job.job, job.name);
    let mut lines: Vec<String> = deleted.jobs.iter().map(line).collect();
    let freed = text::bytes(deleted.bytes_freed);
    lines.push(format!("{freed} are freed within a few minutes, as the server sweeps its store"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(id: u64, ended_at: Option<u64>) -> JobView {
        let mut view = json!({
            "job": id, "name": "t", "state": "finished", "submitted_at": 0, "ended_at": ended_at,
            "metric": "valid/accuracy", "best": null, "waiting": null
        });
        for count in [
            "trials",
            "trials_finished",
            "trials_failed",
            "hops",
            "hops_expected",
            "evaluations",
            "evaluations_expected",
            "leases_live",
            "leases_expired",
            "leases_returned",
            "superseded",
            "rejected",
            "train_micros",
        ] {
            view[count] = json!(0);
        }
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn the_oldest_of_the_jobs_that_ended_go_first_and_none_that_runs() {
        let jobs = [job(1, Some(300)), job(2, None), job(3, Some(100)), job(4, Some(900))];
        let old = ended_before(&jobs, UnixMillis(1_000), Millis(500));
        assert_eq!(old, [JobId(3), JobId(1)]);
        let many: Vec<JobView> = (1..500).map(|id| job(id, Some(id))).collect();
        assert_eq!(ended_before(&many, UnixMillis(9_000), Millis(1)).len(), MAX_DELETED_JOBS);
    }
}
