//! Jobs of data that a browser sends: what makes shards of its files is given to the server, as the threads that assimilate are.

use sojourn_protocol::{
    digest::Digest,
    manifest::DataManifest,
    spec::JobSpec,
    view::{HostView, JobDetail},
};
use std::{
    collections::BTreeMap,
    fmt,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// Makes a job of its file and the files of its data, as `sojourn submit` does on a machine of its own.
pub trait PrepareJob: fmt::Debug + Send + Sync {
    /// Reads the data and cuts it into shards. Blocks. `tell` hears again and again how far it is, and may end it.
    ///
    /// # Errors
    /// What is wrong with the job file or the data, a text each; why it ended early.
    fn prepare(
        &self,
        files: JobFiles<'_>,
        tell: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<PreparedJob, Vec<String>>;
}

/// What a job is made of.
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
}

/// How far the data is read, over all passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BytesRead {
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes to read.
    pub of: u64,
}

/// A job that can be submitted once its blobs are stored.
#[derive(Debug)]
pub struct PreparedJob {
    /// The job.
    pub spec: JobSpec,
    /// Its data.
    pub data: DataManifest,
    /// Where its blobs lie.
    pub files: BTreeMap<Digest, PathBuf>,
}
