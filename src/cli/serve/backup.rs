//! `sojourn backup`: copies a server's data folder, also while the server runs.

use crate::cli::{
    render::{
        progress::{Meter, Unit},
        text,
    },
    terminal::{exit::Failure, local, output},
};
use serde::Serialize;
use sojourn_protocol::{error::error_chain, quantity::to_u64};
use sojourn_server::{BackedUp, BackupError, back_up, check_backup};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the backup: an empty one, or one with a backup of this server, to which only new files are added.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The server's data folder.
    #[arg(long, env = "SOJOURN_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Copy nothing: read all of the backup in DIR, and say whether it is whole.
    #[arg(long)]
    check: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The JSON of a backup.
#[derive(Debug, Serialize)]
struct Report {
    position: u64,
    jobs: usize,
    hosts: usize,
    blobs: u64,
    blob_bytes: u64,
    files_copied: u64,
    bytes_copied: u64,
    files_deleted: u64,
    lost_uploads: usize,
}

impl From<BackedUp> for Report {
    fn from(done: BackedUp) -> Self {
        Self {
            position: done.position.0,
            jobs: done.jobs,
            hosts: done.hosts,
            blobs: done.blobs.files,
            blob_bytes: done.blobs.bytes,
            files_copied: done.copied.files,
            bytes_copied: done.copied.bytes,
            files_deleted: done.deleted.files,
            lost_uploads: done.lost_uploads,
        }
    }
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let folder = args.folder.clone();
    let done = if args.check {
        let mut meter = Meter::new("reading blobs", Unit::Steps, 0);
        check_backup(&folder, |done, of| meter.set(done, of, "")).await
    } else {
        let data = args.data.clone().unwrap_or_else(|| local::data_folder("server"));
        let copied = tokio::task::spawn_blocking(move || {
            let mut meter = Meter::new("copying blobs", Unit::Bytes, 0);
            back_up(&data, &folder, |done, of| meter.set(done, of, ""))
        });
        copied.await.map_err(|error| Failure::work(error.to_string()))?
    };
    let report: Report = done.map_err(failure)?.into();
    match args.json {
        true => output::json(&report),
        false => output::line(&text(&report, &args.folder, args.check)),
    }
}

fn failure(error: BackupError) -> Failure {
    let message = error_chain(&error);
    if error.is_of_call() { Failure::call(message) } else { Failure::work(message) }
}

fn text(report: &Report, folder: &Path, is_check: bool) -> String {
    let folder = folder.display();
    let jobs = text::counted(to_u64(report.jobs), "job");
    let hosts = text::counted(to_u64(report.hosts), "host");
    let blobs = text::counted(report.blobs, "blob");
    let has = format!(
        "{jobs}, {hosts}, {blobs} ({}), all events up to position {}",
        text::bytes(report.blob_bytes),
        report.position
    );
    let mut lines = vec![match is_check {
        true => format!("the backup in `{folder}` is whole: {has}"),
        false => format!(
            "backed up to `{folder}`: {has}\n{} copied ({}), {} deleted that nothing needs any more",
            text::counted(report.files_copied, "file"),
            text::bytes(report.bytes_copied),
            text::counted(report.files_deleted, "file"),
        ),
    }];
    if report.lost_uploads > 0 {
        let results = text::counted(to_u64(report.lost_uploads), "result");
        lines.push(format!("{results} were being merged: a server that goes on from the backup has them trained again"));
    }
    if !is_check {
        lines.push("to go on from it, copy the folder, and `sojourn serve --data COPY`".to_owned());
    }
    lines.join("\n")
}
