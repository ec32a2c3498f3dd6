//! The lines of JSON between the server and the process that reads a job's data. Both are the same program, so the lines carry no
//! version.

use super::{BytesRead, DataStep, DraftedJob, PreparedJob, ReaderLimits};
use serde::{Deserialize, Serialize};
use sojourn_protocol::view::{HostView, JobDetail};
use std::path::PathBuf;

/// The reader's first line of input.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// The folder of the data.
    pub folder: PathBuf,
    /// Set by the reader for itself, before it reads.
    pub limits: ReaderLimits,
    /// The answer that is wanted.
    pub wanted: Wanted,
}

/// The answer that is wanted of a reader.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "`JobFiles` and `DraftFiles` say what each part is")]
pub enum Wanted {
    /// A job over the data.
    Job { text: String, shards: PathBuf, hosts: Vec<HostView>, earlier: Vec<JobDetail> },
    /// A job file for the data.
    Draft { data: String, label: Option<String> },
}

/// A line of the reader's output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// How far the data is read. There is no answer.
    Read(BytesRead),
    /// May it take this step? An [`Answer`] follows.
    Step(DataStep),
    /// May it fetch this URL? An [`Answer`] follows.
    Url(String),
    /// The last line: the job.
    Made(Box<PreparedJob>),
    /// The last line: the job file.
    Drafted(Box<DraftedJob>),
    /// The last line: what is wrong with the job file or its data, a text each.
    Wrong(Vec<String>),
}

/// A further line of the reader's input: the answer to its question.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The reader may go on.
    Yes,
    /// Reading is to end, or the URL isn't to be fetched; why.
    No(String),
}
