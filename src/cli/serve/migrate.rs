//! `sojourn migrate`: copies a stopped server's journal to another place.

use crate::cli::{
    render::progress::{Meter, Unit},
    serve::journal_url::Place,
    terminal::{exit::Failure, local, output},
};
use serde::Serialize;
use sojourn_protocol::error::error_chain;
use sojourn_server::{
    DataFolder, MigrateError, Migrated, ServerTokens,
    journal::{Durability, Journal, JournalError, OpenJournal},
    migrate,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The journal to copy: `sqlite:FILE` (DATA/journal.sqlite of a server) or a Redis, as `serve --journal` takes it.
    /// No server may use it meanwhile; it is left as it is.
    #[arg(long, value_name = "URL", required_unless_present = "from_file")]
    from: Option<Place>,
    /// A file with that URL, for one with a password.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    from_file: Option<PathBuf>,
    /// The place of the copy, which has no journal yet.
    #[arg(long, value_name = "URL", required_unless_present = "to_file")]
    to: Option<Place>,
    /// A file with that URL, for one with a password.
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    to_file: Option<PathBuf>,
    /// When an event counts as durable in Redis, as `serve` takes it.
    #[arg(long, value_name = "WORDS", default_value_t)]
    redis_durability: Durability,
    /// The data folder of the server. Its tokens are copied too: into Redis, or from Redis into the folder [default: the
    /// folder of the SQLite file].
    #[arg(long, env = "SOJOURN_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The JSON of a copy.
#[derive(Debug, Serialize)]
struct Copied {
    events: u64,
    position: u64,
    snapshot: Option<u64>,
    jobs: usize,
    hosts: usize,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let (from, to) = (
        place(args.from.as_ref(), args.from_file.as_deref())?,
        place(args.to.as_ref(), args.to_file.as_deref())?,
    );
    if from == to {
        return Err(Failure::call("--from and --to name the same place"));
    }
    if let Place::Sqlite(file) = &from
        && !file.is_file()
    {
        return Err(Failure::call(format!("there is no file `{}`", file.display())));
    }
    let folders = [&from, &to].into_iter().find_map(|place| match place {
        Place::Sqlite(file) => file.parent().map(|folder| match folder.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => folder.to_owned(),
        }),
        Place::Redis(_) => None,
    });
    let data = args.data.clone().or(folders).unwrap_or_else(|| local::data_folder("server"));
    let folder = DataFolder::take(&data).map_err(|error| Failure::call(error_chain(&error)))?;
    let from = from.journals(args.redis_durability, &data)?;
    let to = to.journals(args.redis_durability, &data)?;
    let done = tokio::task::spawn_blocking(move || copy(&folder, &from, &to))
        .await
        .map_err(|error| Failure::work(error.to_string()))?;
    let Migrated { events, tail, snapshot, jobs, hosts } = done?;
    let copied =
        Copied { events, position: tail.0, snapshot: snapshot.map(|at| at.0), jobs, hosts };
    if args.json {
        return output::json(&copied);
    }
    output::line(&format!(
        "{events} events copied, up to position {}; both replay to the same state: {jobs} jobs, {hosts} hosts",
        copied.position
    ))
}

/// The place that was named, or that a file names.
fn place(given: Option<&Place>, file: Option<&Path>) -> Result<Place, Failure> {
    match (given, file) {
        (Some(place), _) => Ok(place.clone()),
        (None, Some(file)) => Place::in_file(file),
        (None, None) => Err(Failure::call("a journal's URL is needed")),
    }
}

fn copy(
    folder: &DataFolder,
    from: &Arc<dyn OpenJournal>,
    to: &Arc<dyn OpenJournal>,
) -> Result<Migrated, Failure> {
    let open = |journals: &Arc<dyn OpenJournal>| -> Result<Box<dyn Journal>, Failure> {
        journals.open().map_err(|error| {
            let message = error_chain(&error);
            match error {
                JournalError::Standby { .. } => {
                    Failure::call(format!("{message}; stop the servers of this journal first"))
                }
                _ => Failure::work(message),
            }
        })
    };
    // The source's tokens hold in both places afterwards.
    let settle =
        |journals: &Arc<dyn OpenJournal>| ServerTokens::settle(folder, Arc::clone(journals));
    let settled = settle(from).and_then(|_| settle(to));
    settled.map_err(|error| Failure::work(error_chain(&error)))?;
    let (mut source, mut target) = (open(from)?, open(to)?);
    let mut meter = Meter::new("copying", Unit::Steps, 0);
    let done = migrate(&mut *source, &mut *target, |at, of| meter.set(at, of, "events"));
    drop((meter, source, target));
    from.leave();
    to.leave();
    done.map_err(|error| {
        let message = error_chain(&error);
        match error {
            MigrateError::NotEmpty(_) => Failure::call(message),
            _ => Failure::work(message),
        }
    })
}
