//! Scenario files of `sojourn simulate`, and the files that they name.

use crate::expect::is_said;
use sojourn_sim::fleet;

/// Reads a scenario file.
pub(crate) fn scenario(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else { return false };
    match fleet::read(text) {
        Ok(study) => {
            assert!(!study.rows.is_empty(), "a scenario file without a scenario");
            true
        }
        Err(error) => {
            is_said(&error, input);
            false
        }
    }
}

/// Scenarios that name a file each: a table of costs, a trace of hosts, a job.
const NAMING: [&str; 3] = [
    "[[hosts]]\ncount = 2\n[job]\ncosts = \"f\"\ntrials = 2\nshards = 2\nepochs = 1\n",
    "[[hosts]]\ncount = 2\ntrace = \"f\"\n[job]\ntrials = 2\nshards = 2\nepochs = 1\n",
    "[[hosts]]\ncount = 2\n[job]\nfile = \"f\"\nshape = [1, 8, 8]\nclasses = 10\nshards = 2\n",
];
/// Most trials of a job file that a plan is made of.
const MAX_TRIALS: usize = 64;

/// Reads the input as each file that a scenario names, and makes the plan.
pub(crate) fn tables(input: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(input) else { return false };
    let mut taken = false;
    for (number, naming) in NAMING.iter().enumerate() {
        if number == 2 && !is_small(text) {
            continue;
        }
        let study = fleet::read(naming);
        let rows = study.as_ref().map(|study| study.rows.as_slice());
        assert!(rows.is_ok(), "{:?}", rows.err());
        for row in rows.unwrap_or_default() {
            let mut files = |_: &str| Ok(text.to_owned());
            match fleet::lower_bound(&row.scenario, 1, &mut files) {
                Ok((seconds, _)) => {
                    assert!(seconds.is_finite() && seconds >= 0.0, "{seconds}");
                    taken = true;
                }
                Err(error) => is_said(&error, input),
            }
        }
    }
    taken
}

/// A plan of many trials takes longer than an input may.
fn is_small(text: &str) -> bool {
    let Ok(spec) = sojourn_protocol::jobfile::parse(text) else { return true };
    sojourn_workgen::trials(&spec).is_ok_and(|trials| trials.len() <= MAX_TRIALS)
}
