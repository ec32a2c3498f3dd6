//! `sojourn set`: a running job's priority, slot share, number of machines, budget and deadline are changed, and any job's note.

use crate::cli::{
    jobs::job_args::{JobArgs, note},
    terminal::{exit::Failure, output, simple::show},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::{NoteRequest, PlacementRequest},
    money::MicroUsd,
    spec::PlacementSpec,
    time::Millis,
};

/// Settings that aren't named stay as they are. Running units end as usual; new ones follow the new settings, also after
/// a restart of the server.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Args {
    /// Serve it before jobs of a lower priority: -100 to 100.
    #[arg(long, value_name = "N", group = "what", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// The job's share of slot time beside jobs of the same priority: 1 to 1000.
    #[arg(long = "share", value_name = "N", group = "what")]
    slot_share: Option<u32>,
    /// No more machines at a time; 0: as many as there are.
    #[arg(long, value_name = "N", group = "what")]
    max_hosts: Option<u32>,
    /// The most that bought machines may cost for it, in all: `20 usd`; `none`: as much as it takes.
    #[arg(long, value_name = "AMOUNT", group = "what", value_parser = budget)]
    budget: Option<MicroUsd>,
    /// By when it is to end, from its submission: `8h`; `none`: at no time.
    #[arg(long, value_name = "TIME", group = "what", value_parser = deadline)]
    deadline: Option<Millis>,
    /// A note on the job, also for after its end; `""` takes the note away.
    #[arg(long, value_name = "TEXT", group = "what", value_parser = note)]
    note: Option<String>,
    #[command(flatten)]
    job: JobArgs,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let Args { priority, slot_share, max_hosts, budget, deadline, note, job } = args;
    let JobArgs { job, json, connection } = job;
    let request = PlacementRequest {
        priority: *priority,
        slot_share: *slot_share,
        max_hosts: *max_hosts,
        budget: *budget,
        deadline: *deadline,
    };
    let client = connection.client()?;
    let job = job.find(&client).await?;
    let noted = match note {
        Some(note) => Some(
            client
                .call(endpoints::NoteJob::request(job, &NoteRequest { note: note.clone() }))
                .await?,
        ),
        None => None,
    };
    if let Some(view) = noted.filter(|_| request == PlacementRequest::default()) {
        return show(&view, *json, |view| match view.note.as_str() {
            "" => format!("job {} `{}` has no note", view.job, view.name),
            note => format!("job {} `{}` has the note: {note}", view.job, view.name),
        });
    }
    let view = client.call(endpoints::PlaceJob::request(job, &request)).await?;
    if *json {
        return output::json(&view);
    }
    let detail = client.call(endpoints::Job::request(job)).await?;
    output::line(&format!("job {} `{}` has {}", view.job, view.name, text(&detail.spec.placement)))
}

/// An amount, or none.
fn budget(text: &str) -> Result<MicroUsd, &'static str> {
    match text {
        "none" => Ok(MicroUsd(0)),
        text => text.parse().and_then(|amount| match amount {
            MicroUsd(0) => Err("a budget of nothing isn't one; `none` takes it away"),
            amount => Ok(amount),
        }),
    }
}

/// A length of time, or none.
fn deadline(text: &str) -> Result<Millis, &'static str> {
    if text == "none" { Ok(Millis(0)) } else { text.parse() }
}

fn text(placement: &PlacementSpec) -> String {
    let hosts = match placement.max_hosts {
        None => "as many machines as there are".to_owned(),
        Some(1) => "1 machine at a time".to_owned(),
        Some(most) => format!("at most {most} machines at a time"),
    };
    let mut text =
        format!("priority {}, share {}, {hosts}", placement.priority, placement.slot_share);
    if let Some(budget) = placement.budget {
        text.push_str(&format!(", a budget of {budget}"));
    }
    if let Some(deadline) = placement.deadline {
        text.push_str(&format!(", {deadline} from its submission to its end"));
    }
    text
}
