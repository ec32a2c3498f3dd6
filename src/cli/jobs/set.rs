//! `sojourn set`: a running job's priority, share and number of machines are changed, and any job's note.

use crate::cli::{
    jobs::job_args::{JobArgs, note},
    terminal::{exit::Failure, output, simple::show},
};
use sojourn_protocol::{
    api::{NoteRequest, PlacementRequest},
    spec::PlacementSpec,
};

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
    /// What is to be remembered of it, also once it has ended; `""` takes the note away.
    #[arg(long, value_name = "TEXT", group = "what", value_parser = note)]
    note: Option<String>,
    #[command(flatten)]
    job: JobArgs,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let Args { priority, share, max_hosts, note, job: JobArgs { job, json, connection } } = args;
    let (priority, share, max_hosts) = (*priority, *share, *max_hosts);
    let client = connection.client()?;
    let job = job.find(&client).await?;
    let noted = match note {
        Some(note) => Some(client.note(job, &NoteRequest { note: note.clone() }).await?),
        None => None,
    };
    if let Some(view) = noted.filter(|_| (priority, share, max_hosts) == (None, None, None)) {
        return show(&view, *json, |view| match view.note.as_str() {
            "" => format!("job {} `{}` has no note", view.job, view.name),
            note => format!("job {} `{}` has the note: {note}", view.job, view.name),
        });
    }
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
