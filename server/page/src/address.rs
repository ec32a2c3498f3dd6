//! The addresses of pages that other pages lead to, and of their parts.

use sojourn_protocol::ids::{JobId, TrialId};

/// The address of a trial's page.
#[must_use]
pub fn of_trial(job: JobId, trial: TrialId) -> String {
    format!("/jobs/{job}/trials/{trial}")
}

/// The address of a part of a job's page.
pub(crate) fn part_of_job(job: JobId, name: &str) -> String {
    format!("/jobs/{job}?part={name}")
}

/// The address of a part of a trial's page.
pub(crate) fn part_of_trial(job: JobId, trial: TrialId, name: &str) -> String {
    format!("{}?part={name}", of_trial(job, trial))
}
