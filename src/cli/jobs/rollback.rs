//! `sojourn rollback`: trials go back to before what can't be trusted.

use crate::cli::{
    jobs::job_ref::JobRef,
    terminal::{connection::Connection, exit::Failure, simple::show},
};
use sojourn_protocol::{
    api::{RollbackRequest, RolledBack},
    ids::{HostId, TrialId},
};

/// Training since then is discarded and done again by other hosts; evaluations of those epochs are dropped. Jobs with
/// `verify` keep the checkpoints of their last three epochs for this; a trial that goes back further begins anew.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct Args {
    /// The job's number or name.
    #[arg(value_name = "JOB")]
    job: JobRef,
    /// The trial to take back; with `--epochs`.
    #[arg(long, value_name = "N", group = "what", requires = "epochs")]
    trial: Option<TrialId>,
    /// The most epochs that the trial keeps; with 0 it begins anew.
    #[arg(long, value_name = "N", requires = "trial")]
    epochs: Option<u32>,
    /// Take back every trial that this host has trained since its last confirmed result, to before that result. For a
    /// host with a refuted result (`sojourn hosts`).
    #[arg(long, value_name = "HOST", group = "what")]
    host: Option<HostId>,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let request = match (args.trial, args.epochs, args.host) {
        (Some(trial), Some(epochs), _) => RollbackRequest::Trial { trial, epochs },
        (_, _, Some(host)) => RollbackRequest::Host { host },
        _ => return Err(Failure::call("say `--trial N --epochs N`, or `--host HOST`")),
    };
    let client = args.connection.client()?;
    let job = args.job.find(&client).await?;
    show(&client.rollback(job, &request).await?, args.json, |back| text(back))
}

fn text(back: &[RolledBack]) -> String {
    if back.is_empty() {
        return "nothing is to be taken back: no result of that host is in doubt".to_owned();
    }
    let line = |RolledBack { trial, epochs, version }: &RolledBack| {
        let state = match epochs {
            0 => "begins anew".to_owned(),
            1 => format!("is where it was after 1 epoch, at version {version}"),
            epochs => format!("is where it was after {epochs} epochs, at version {version}"),
        };
        format!("trial {trial} {state}")
    };
    back.iter().map(line).collect::<Vec<_>>().join("\n")
}
