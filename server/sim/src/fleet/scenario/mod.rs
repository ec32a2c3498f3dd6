//! A scenario as its file says it: hosts, jobs, and the server between them.
//!
//! Every key is documented in `examples/scheduling/README.md`; what is left out has the default here.
//! Tables have files of their own: `[server]`, `[[hosts]]`, `[job]`.

mod hosts;
mod job;
mod server;

use super::quantity::{Auto, Span};
pub use hosts::{Exponential, HostGroup, Notice, Preempted, Speeds, Spot, Trace};
pub use job::{Costs, JobEntry, Placement, ShardSizes, Skew};
use serde::Deserialize;
pub use server::ServerSpec;

/// One scenario, nothing left to vary.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// For people.
    pub name: String,
    /// The first seed: costs, speeds, arrivals, noise and the core's chance follow from it.
    pub seed: u64,
    /// So many seeds, one after the other.
    pub seeds: u32,
    /// The server's knowledge of speeds beforehand.
    pub estimates: Knowledge,
    /// The time of day at which it begins.
    pub starts_at: String,
    /// Given up after so much virtual time.
    pub horizon: Auto<Span>,
    /// Whether the fleet's requests to the server are shown.
    pub load: bool,
    /// The server.
    pub server: ServerSpec,
    /// Groups of like hosts.
    pub hosts: Vec<HostGroup>,
    /// The job, where there is but one.
    pub job: Option<JobEntry>,
    /// Several jobs.
    pub jobs: Vec<JobEntry>,
    /// Taken out before a scenario is made of a file: see [`super::read`].
    vary: Option<toml::Value>,
    case: Option<toml::Value>,
    drawn: Option<toml::Value>,
    normalise: Option<toml::Value>,
}

/// The knowledge of their speed that hosts bring when they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// The time that units of each trial take on the hosts.
    Known,
    /// The hosts' operations per second; the rest is measured as units end.
    #[default]
    Prior,
    /// Nothing: all is measured as units end.
    Nothing,
}

/// How one of several values is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// By chance, with replacement.
    #[default]
    Sample,
    /// One after the other, round and round.
    Cycle,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            name: String::new(),
            seed: 0,
            seeds: 1,
            estimates: Knowledge::default(),
            starts_at: "00:00".into(),
            horizon: Auto::Auto,
            load: false,
            server: ServerSpec::default(),
            hosts: Vec::new(),
            job: None,
            jobs: Vec::new(),
            vary: None,
            case: None,
            drawn: None,
            normalise: None,
        }
    }
}

impl Scenario {
    /// All its jobs.
    pub fn all_jobs(&self) -> impl Iterator<Item = &JobEntry> {
        self.job.iter().chain(&self.jobs)
    }

    /// Hosts in all groups.
    #[must_use]
    pub fn host_count(&self) -> u64 {
        self.hosts.iter().map(|group| u64::from(group.count)).sum()
    }
}
