//! Job files.

use crate::expect::is_said;
use sojourn_protocol::{jobfile, spec::JobSpec};

/// Most problems that a job file's error names.
const MAX_PROBLEMS: usize = 200;
/// Most bytes of one problem.
const MAX_PROBLEM_BYTES: usize = 4096;

pub(crate) fn job_file(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else { return false };
    match jobfile::parse(text) {
        Ok(spec) => {
            is_kept(&spec);
            true
        }
        Err(error) => {
            is_said(&error, input);
            let lines = text.lines().count().max(1) + 1;
            let mut problems = 0;
            for problem in error.problems() {
                problems += 1;
                let said = problem.to_string();
                assert!(!said.is_empty(), "a problem without words");
                assert!(said.len() <= MAX_PROBLEM_BYTES, "a problem of {} bytes", said.len());
                let line = problem.line();
                assert!((1..=lines).contains(&line), "line {line} of {lines}: {said}");
            }
            assert!((1..=MAX_PROBLEMS).contains(&problems), "{problems} problems");
            false
        }
    }
}

/// A job that was taken goes over the wire, and comes to the server as the same.
pub(crate) fn is_kept(spec: &JobSpec) {
    let sent = serde_json::to_string(spec);
    assert!(sent.is_ok(), "a job that can't be sent: {sent:?}");
    let arrived: Result<JobSpec, _> = serde_json::from_str(&sent.unwrap_or_default());
    assert!(arrived.is_ok(), "a job that can't be taken: {arrived:?}");
    assert!(arrived.ok().as_ref() == Some(spec), "another job arrives than was sent");
}
