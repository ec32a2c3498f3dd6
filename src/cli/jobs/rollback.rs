//! `sojourn rollback`: trials go back to before what can't be trusted.

use crate::{
    api_client::ApiClient,
    cli::terminal::{connection::Connection, exit::Failure, simple::simple},
};
use sojourn_protocol::{
    api::{RollbackRequest, RolledBack},
    ids::{HostId, JobId, TrialId},
};

/// What the trials were trained since then is as if it had never been, and is trained again by others; evaluations of
/// those epochs are forgotten. Ends of epochs are kept for it where the job has `verify`: the last three; whatever lies
/// before them begins anew.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct Args {
    /// The job's number.
    #[arg(value_name = "JOB")]
    job: JobId,
    /// Take this trial back; with `--epochs`.
    #[arg(long, value_name = "N", group = "what", requires = "epochs")]
    trial: Option<TrialId>,
    /// The most epochs that it keeps; 0: it begins anew.
    #[arg(long, value_name = "N", requires = "trial")]
    epochs: Option<u32>,
    /// Take back every trial that this host has worked for since its last confirmed result, to before that: a host of
    /// which a result was refuted (`sojourn hosts`).
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
    let call = async |client: &ApiClient| client.rollback(args.job, &request).await;
    simple(&args.connection, args.json, call, |back| text(back)).await
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
