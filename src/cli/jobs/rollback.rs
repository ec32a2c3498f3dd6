//! `sojourn rollback`: trials go back to before what can't be trusted.

use crate::cli::{
    jobs::job_ref::JobRef,
    render::text,
    terminal::{confirm::confirm, connection::Connection, exit::Failure, simple::show},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::{RollbackOptions, RollbackRequest, RolledBack},
    ids::{HostId, JobId, TrialId},
};

/// Training since then is discarded and done again by other hosts; evaluations of those epochs are dropped. The command says
/// what would be lost, and asks. Jobs with `verify` keep the checkpoints of their last three epochs for this; of others a
/// trial can only begin anew.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// The trial to take back; with `--epochs`.
    #[arg(long, value_name = "N", group = "what", requires = "epochs")]
    trial: Option<TrialId>,
    /// The epochs that the trial keeps; with 0 it begins anew.
    #[arg(long, value_name = "N", requires = "trial")]
    epochs: Option<u32>,
    /// Take back every trial in which a result of this host, or of another one of the same owner, is in doubt: refuted parties'
    /// results that nobody has confirmed (`sojourn hosts`).
    #[arg(long, value_name = "HOST", group = "what")]
    host: Option<HostId>,
    /// Have a job that has ended go on again.
    #[arg(long)]
    reopen: bool,
    /// Only say what would be lost.
    #[arg(long)]
    preview: bool,
    /// Don't ask.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let with = |preview| {
        let options = RollbackOptions { preview, reopen: args.reopen };
        match (args.trial, args.epochs, args.host) {
            (Some(trial), Some(epochs), _) => Ok(RollbackRequest::Trial { trial, epochs, options }),
            (_, _, Some(host)) => Ok(RollbackRequest::Host { host, options }),
            _ => Err(Failure::call("say `--trial N --epochs N`, or `--host HOST`")),
        }
    };
    let client = args.connection.client()?;
    let job = args.job.find(&client).await?;
    if args.preview || !args.yes {
        let lost = client.call(endpoints::RollbackJob::request(job, &with(true)?)).await?;
        if args.preview {
            return show(&lost, args.json, |lost| preview(job, lost));
        }
        if !lost.is_empty() {
            confirm(&preview(job, &lost), args.yes)?;
        }
    }
    show(
        &client.call(endpoints::RollbackJob::request(job, &with(false)?)).await?,
        args.json,
        |back| done(back),
    )
}

/// The training that would be lost, a line for each trial.
fn preview(job: JobId, lost: &[RolledBack]) -> String {
    let lines = lost.iter().map(|RolledBack { trial, epochs, epochs_lost, ends, .. }| {
        let lost = text::counted(u64::from(*epochs_lost), "epoch");
        let state = match epochs {
            _ if *ends => ENDS.to_owned(),
            0 => "would begin anew".to_owned(),
            epochs => format!("would be where it was after epoch {epochs}"),
        };
        format!("trial {trial} of job {job} {state}: {lost} of training would be lost")
    });
    match lost.is_empty() {
        true => NOTHING.to_owned(),
        false => lines.collect::<Vec<_>>().join("\n"),
    }
}

/// Said of a trial that goes on from a result of another one that is in doubt.
const ENDS: &str = "would end, since it goes on from a result in doubt";
const NOTHING: &str = "nothing is to be taken back: no result of that host is in doubt";

fn done(back: &[RolledBack]) -> String {
    if back.is_empty() {
        return NOTHING.to_owned();
    }
    let line = |RolledBack { trial, epochs, version, ends, .. }: &RolledBack| {
        let state = match epochs {
            _ if *ends => "has ended".to_owned(),
            0 => "begins anew".to_owned(),
            1 => format!("is where it was after 1 epoch, at version {version}"),
            epochs => format!("is where it was after {epochs} epochs, at version {version}"),
        };
        format!("trial {trial} {state}")
    };
    back.iter().map(line).collect::<Vec<_>>().join("\n")
}
