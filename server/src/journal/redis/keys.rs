//! The keys of a deployment. All carry its name as their hash tag, so that a script may use them together in a cluster.
//!
//! ```text
//! {NAME}:meta          hash    format, event-version, fence; anchor, anchor-check, tail, tail-check of the chain
//! {NAME}:events        stream  id POSITION-0; p = payload, c = hash  
//! {NAME}:lease         string  `HOLDER URL`, which expires unless it is renewed
//! {NAME}:jobs          set     jobs with events
//! {NAME}:job:N         sorted set of the positions of job N's events
//! {NAME}:lease-jobs    hash    lease -> job, dropped with a lease's end
//! {NAME}:snapshots     sorted set of positions
//! {NAME}:snapshot:POS  hash    version, digest, bytes
//! {NAME}:secrets       hash    hashes of tokens that all servers of the deployment share, and the id of the blobs' store
//! ```

use sojourn_core::JournalPosition;
use sojourn_protocol::ids::JobId;

/// The keys of one deployment.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    tag: String,
}

impl Keys {
    pub(super) fn of(deployment: &str) -> Self {
        Self { tag: format!("{{{deployment}}}") }
    }

    fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.tag)
    }

    pub(super) fn meta(&self) -> String {
        self.key("meta")
    }

    pub(super) fn events(&self) -> String {
        self.key("events")
    }

    pub(super) fn lease(&self) -> String {
        self.key("lease")
    }

    pub(super) fn jobs(&self) -> String {
        self.key("jobs")
    }

    /// The prefix of the key of a job's index, for scripts that find the job themselves.
    pub(super) fn job_prefix(&self) -> String {
        self.key("job:")
    }

    pub(super) fn job(&self, job: JobId) -> String {
        format!("{}{}", self.job_prefix(), job.0)
    }

    pub(super) fn lease_jobs(&self) -> String {
        self.key("lease-jobs")
    }

    pub(super) fn snapshots(&self) -> String {
        self.key("snapshots")
    }

    pub(super) fn snapshot_prefix(&self) -> String {
        self.key("snapshot:")
    }

    pub(super) fn snapshot(&self, position: JournalPosition) -> String {
        format!("{}{}", self.snapshot_prefix(), position.0)
    }

    pub(super) fn secrets(&self) -> String {
        self.key("secrets")
    }
}
