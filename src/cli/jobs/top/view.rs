//! The state behind the screen: what the server has answered, and where in it the reader is. Knows neither terminal nor
//! server.

use sojourn_protocol::{
    api::Health,
    ids::{JobId, TrialId},
    view::{EventView, HostState, HostView, JobState, JobView},
};
use std::{cmp::Reverse, time::Duration};

/// Whether the screen is about the whole server, or about one of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Server,
    Job(JobId),
}

/// All that is shown.
#[derive(Debug)]
pub(super) struct View {
    pub(super) scope: Scope,
    /// The server's address.
    pub(super) server: String,
    /// The last answers; none before the first.
    pub(super) snapshot: Option<Snapshot>,
    /// Why the last round of requests failed.
    pub(super) problem: Option<String>,
    /// The time since the last answers came, or since the start.
    pub(super) silence: Duration,
    pub(super) selected: Option<JobId>,
    /// The pane that keys move in.
    pub(super) pane: Pane,
    /// The lines of the other panes that keys have moved to.
    pub(super) cursors: Cursors,
    pub(super) help: bool,
}

/// The answers of one round of requests.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) health: Health,
    /// In the order in which they are shown; of [`Scope::Job`] that job alone.
    pub(super) jobs: Vec<JobView>,
    /// In the order in which they are shown; of [`Scope::Job`] those that have a lease of it.
    pub(super) hosts: Vec<HostView>,
    /// The facts of the job beside its line; only of [`Scope::Job`].
    pub(super) facts: Vec<String>,
    /// Of the selected job; none where there are no jobs.
    pub(super) detail: Option<Detail>,
}

/// The details of the selected job.
#[derive(Debug, Clone)]
pub(super) struct Detail {
    pub(super) job: JobId,
    /// The leading trials, the best first.
    pub(super) leaders: Vec<Leader>,
    /// The last events, the latest first.
    pub(super) events: Vec<EventView>,
    /// Why there is less than there should be.
    pub(super) problem: Option<String>,
}

/// A trial of a leader board.
#[derive(Debug, Clone)]
pub(super) struct Leader {
    pub(super) trial: TrialId,
    pub(super) name: String,
    /// Epochs trained, of all: `2/3`.
    pub(super) epochs: String,
    pub(super) best: Option<f64>,
    /// The search's metric after each evaluated epoch.
    pub(super) values: Vec<Option<f64>>,
    pub(super) state: String,
}

/// A part of the screen that keys can move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Jobs,
    Trials,
    Hosts,
    Events,
}

impl Pane {
    /// From top to bottom.
    pub(super) const ALL: [Self; 4] = [Self::Jobs, Self::Trials, Self::Hosts, Self::Events];
}

/// Lines, counted from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cursors {
    pub(super) trials: usize,
    pub(super) hosts: usize,
    pub(super) events: usize,
}

impl Snapshot {
    /// Brings jobs and hosts into the order in which they are shown: jobs that go on first, of these the latest first; hosts in
    /// contact first, by number.
    pub(super) fn new(health: Health, mut jobs: Vec<JobView>, mut hosts: Vec<HostView>) -> Self {
        jobs.sort_by_key(|job| {
            let rank = match job.state {
                JobState::Running => 0,
                JobState::Paused => 1,
                JobState::Finished | JobState::Failed | JobState::Cancelled => 2,
            };
            (rank, Reverse(job.job))
        });
        hosts.sort_by_key(|host| {
            let rank = match host.state {
                HostState::Live => 0,
                HostState::Resting { .. } => 1,
                HostState::Away => 2,
                HostState::Revoked => 3,
            };
            (rank, host.host)
        });
        Self { health, jobs, hosts, facts: Vec::new(), detail: None }
    }
}

impl View {
    pub(super) fn new(server: String, scope: Scope) -> Self {
        let (selected, pane) = match scope {
            Scope::Server => (None, Pane::Jobs),
            Scope::Job(job) => (Some(job), Pane::Trials),
        };
        Self {
            scope,
            server,
            snapshot: None,
            problem: None,
            silence: Duration::ZERO,
            selected,
            pane,
            cursors: Cursors::default(),
            help: false,
        }
    }

    /// Takes the server's answers. Where the selected job is gone, the first one is selected.
    pub(super) fn take_snapshot(&mut self, snapshot: Snapshot) {
        self.problem = None;
        self.silence = Duration::ZERO;
        let is_there = |selected| snapshot.jobs.iter().any(|job| job.job == selected);
        if !self.selected.is_some_and(is_there) {
            self.selected = snapshot.jobs.first().map(|job| job.job);
        }
        self.snapshot = Some(snapshot);
    }

    pub(super) fn jobs(&self) -> &[JobView] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.jobs)
    }

    pub(super) fn hosts(&self) -> &[HostView] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.hosts)
    }

    pub(super) fn facts(&self) -> &[String] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.facts)
    }

    /// The selected job.
    pub(super) fn job(&self) -> Option<&JobView> {
        self.jobs().iter().find(|job| Some(job.job) == self.selected)
    }

    /// The details of the selected job; none until the first answer about it.
    pub(super) fn detail(&self) -> Option<&Detail> {
        let detail = self.snapshot.as_ref()?.detail.as_ref()?;
        Some(detail).filter(|detail| Some(detail.job) == self.selected)
    }

    /// The line that is selected in a pane, and all lines there.
    pub(super) fn position(&self, pane: Pane) -> (usize, usize) {
        let (at, lines) = match pane {
            Pane::Jobs => {
                let at = self.jobs().iter().position(|job| Some(job.job) == self.selected);
                (at.unwrap_or(0), self.jobs().len())
            }
            Pane::Trials => (self.cursors.trials, self.detail().map_or(0, |of| of.leaders.len())),
            Pane::Hosts => (self.cursors.hosts, self.hosts().len()),
            Pane::Events => (self.cursors.events, self.detail().map_or(0, |of| of.events.len())),
        };
        (at.min(lines.saturating_sub(1)), lines)
    }

    /// Moves to a line of the pane that keys move in.
    pub(super) fn move_to(&mut self, line: usize) {
        let (_, lines) = self.position(self.pane);
        let line = line.min(lines.saturating_sub(1));
        match self.pane {
            Pane::Jobs => {
                let selected = self.jobs().get(line).map(|job| job.job);
                if selected != self.selected {
                    self.cursors = Cursors { hosts: self.cursors.hosts, ..Cursors::default() };
                }
                self.selected = selected;
            }
            Pane::Trials => self.cursors.trials = line,
            Pane::Hosts => self.cursors.hosts = line,
            Pane::Events => self.cursors.events = line,
        }
    }
}
