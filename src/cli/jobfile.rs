//! Reads a job file from disk, for `validate` and `submit`.

use super::failure::Failure;
use serde::Serialize;
use sojourn_protocol::{jobfile, spec::JobSpec};
use sojourn_workgen::Trial;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A job and where its file lies.
pub(crate) struct Job {
    pub(crate) spec: JobSpec,
    pub(crate) trials: Vec<Trial>,
    /// What the paths in it are relative to.
    pub(crate) folder: PathBuf,
}

/// A problem of a job or its data, as `--json` shows it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Problem {
    pub(crate) line: Option<usize>,
    pub(crate) key: Option<String>,
    pub(crate) message: String,
}

/// Reads a job file; or all that is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Job, (Failure, Vec<Problem>)> {
    let plain = |message: String| {
        let problem = Problem { line: None, key: None, message: message.clone() };
        (Failure::call(message), vec![problem])
    };
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        plain(match error.kind() {
            io::ErrorKind::InvalidData => format!("`{shown}` isn't UTF-8 text"),
            _ => format!("can't read the job file `{shown}`: {error}"),
        })
    })?;
    let spec = jobfile::parse(&text).map_err(|error| {
        let lines =
            error.problems().map(|problem| format!("{shown}:{}: {problem}", problem.line()));
        let problems = error.problems().map(|problem| Problem {
            line: Some(problem.line()),
            key: Some(problem.key().to_owned()).filter(|key| !key.is_empty()),
            message: problem.to_string(),
        });
        (Failure::calls(lines.collect()), problems.collect())
    })?;
    let trials =
        sojourn_workgen::trials(&spec).map_err(|error| plain(format!("{shown}: {error}")))?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(Job { spec, trials, folder })
}
