//! Jobs of data that a browser sends, and job files for it. The data's files are strangers' bytes, so another process reads them.
//!
//! ```text
//!   server: JobFiles --Request--> reader, with limits of the kernel
//!           bounds   <--Message-- how far it is, and what it asks before each step
//!                    --Answer---> go on, or why not
//!           job      <--Message-- the job with its shards, a job file, or what is wrong with the data
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `messages` | what the two processes say to each other |
//! | `limits` | how much memory and time a reader may take |
//! | `reader` | the reader's process, from its start to its end |

mod limits;
mod messages;
mod reader;

pub use limits::{DEFAULT_MAX_DATA_MEMORY, MIN_MAX_DATA_MEMORY, ReaderLimits};
pub use messages::{Answer, Message, Request, Wanted};
pub use reader::ReaderProgram;

use serde::{Deserialize, Serialize};
use sojourn_protocol::{
    digest::Digest,
    manifest::DataManifest,
    spec::JobSpec,
    view::{HostView, JobDetail},
};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Makes a job of its file and the files of its data, as `sojourn submit` does on a machine of its own, and a job file as `sojourn init`
/// does.
pub trait PrepareJob: fmt::Debug + Send + Sync {
    /// Reads the data and cuts it into shards. Blocks. `tell` hears again and again how far it is. The bounds of the files are asked at
    /// each step, and end it.
    ///
    /// # Errors
    /// What is wrong with the job file or the data, a text each; why it ended early.
    fn prepare(
        &self,
        files: JobFiles<'_>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<PreparedJob, Vec<String>>;

    /// Looks at the data, and writes a job file for it. Blocks, tells and ends as above.
    ///
    /// # Errors
    /// Why there can be no job file, a text each; why it ended early.
    fn draft(
        &self,
        files: DraftFiles<'_>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<DraftedJob, Vec<String>>;
}

/// The files that a job is made of.
#[derive(Debug)]
pub struct JobFiles<'a> {
    /// The job file. The server has checked that it runs no code, and that its paths lead nowhere but into the folder.
    pub text: &'a str,
    /// The folder of the data, to which its paths are relative.
    pub folder: &'a Path,
    /// The folder that gets the shards.
    pub shards: &'a Path,
    /// The hosts, by which the number of shards is chosen.
    pub hosts: Vec<HostView>,
    /// Jobs of the same name, the newest first: the same job gets the same shards.
    pub earlier: Vec<JobDetail>,
    /// Asked at each step of the reading.
    pub bounds: Arc<dyn DataBounds>,
    /// Kept by the kernel, whatever the files do to the code that reads them.
    pub limits: ReaderLimits,
}

/// The files for which a job file is wanted.
#[derive(Debug)]
pub struct DraftFiles<'a> {
    /// The folder of the files.
    pub folder: &'a Path,
    /// The file or folder below it that has the training data.
    pub data: &'a str,
    /// The column of the labels; guessed where nobody says it.
    pub label: Option<&'a str>,
    /// Asked at each step of the reading.
    pub bounds: Arc<dyn DataBounds>,
    /// Kept by the kernel, whatever the files do to the code that reads them.
    pub limits: ReaderLimits,
}

/// A step of the reading of data, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataStep {
    /// Bytes of files as they were sent.
    Read(u64),
    /// Bytes that came out of a compressed file.
    Unpacked(u64),
    /// Bytes of rows in memory.
    Decoded(u64),
    /// Bytes that are about to be written to the data folder.
    Written(u64),
}

/// Bounds of the reading of one job's data.
pub trait DataBounds: fmt::Debug + Send + Sync {
    /// Counts a step, and lets the reading go on.
    ///
    /// # Errors
    /// Why it is to end.
    fn admit(&self, step: DataStep) -> Result<(), String>;

    /// May the server fetch this URL? Every hop of a redirect is asked about.
    fn admits_url(&self, url: &str) -> bool;
}

/// How far the data is read, over all passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BytesRead {
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes to read.
    pub of: u64,
}

/// A job that can be submitted once its blobs are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreparedJob {
    /// The job.
    pub spec: JobSpec,
    /// The job's data.
    pub data: DataManifest,
    /// Where its blobs lie.
    pub files: BTreeMap<Digest, PathBuf>,
}

/// A job file for data, with what it makes of the data and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftedJob {
    /// The job file.
    pub text: String,
    /// The column of the labels, where the data is a table.
    pub label: Option<String>,
    /// Each column of a table.
    pub columns: Vec<DraftedColumn>,
    /// The guesses, and which line changes each.
    pub remarks: Vec<String>,
}

/// A column of a table, and the use that is made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftedColumn {
    /// The column; its position where it has no name.
    pub name: String,
    /// The contents, in a few words.
    pub holds: String,
    /// The use that is made of it, in a few words.
    pub taken: String,
}
