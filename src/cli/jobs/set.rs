//! `sojourn set`: a running job's priority, share and number of machines are changed.

use crate::cli::{
    jobs::job_args::JobArgs,
    terminal::{exit::Failure, output},
};
use sojourn_protocol::{api::PlacementRequest, spec::PlacementSpec};

/// Settings that aren't named stay as they are. Running units end as usual; new ones follow the new settings, also after
/// a restart of the server.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Args {
    /// Serve it before jobs of a lower priority: -100 to 100.
    #[arg(long, value_name = "N", group = "what", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Its share of slot time beside jobs of the same priority: 1 to 1000.
    #[arg(long, value_name = "N", group = "what")]
    share: Option<u32>,
    /// No more machines at a time; 0: as many as there are.
    #[arg(long, value_name = "N", group = "what")]
    max_hosts: Option<u32>,
    #[command(flatten)]
    job: JobArgs,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let Args { priority, share, max_hosts, job: JobArgs { job, json, connection } } = args;
    let (priority, share, max_hosts) = (*priority, *share, *max_hosts);
    let client = connection.client()?;
    let job = job.find(&client).await?;
    let view = client.place(job, &PlacementRequest { priority, share, max_hosts }).await?;
    if *json {
        return output::json(&view);
    }
    let detail = client.job(job).await?;
    output::line(&format!("job {} `{}` has {}", view.job, view.name, text(&detail.spec.placement)))
}

fn text(placement: &PlacementSpec) -> String {
    let hosts = match placement.max_hosts {
        None => "as many machines as there are".to_owned(),
        Some(1) => "1 machine at a time".to_owned(),
        Some(most) => format!("at most {most} machines at a time"),
    };
    format!("priority {}, share {}, {hosts}", placement.priority, placement.share)
}
