//! Reads a job file from disk, with the models that it starts from, for `validate` and `submit`.

use crate::cli::{
    model::model_file::{self, Model},
    terminal::exit::Failure,
};
use serde::Serialize;
use sojourn_protocol::{
    digest::Digest,
    jobfile::{self, InitModel},
    spec::JobSpec,
};
use sojourn_workgen::{Searched, Trial, search::preview};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs, io,
    path::{Path, PathBuf},
};

/// A job and where its file lies.
pub(crate) struct Job {
    pub(crate) spec: JobSpec,
    /// The trials that the job begins with; where a program suggests them, some that it may.
    pub(crate) trials: Vec<Trial>,
    /// How many combinations its constraints left out.
    pub(crate) left_out: usize,
    /// Number of combinations that differ, where the search asks for more.
    pub(crate) differ: Option<u32>,
    /// The models that it starts from, by their names in the job file.
    pub(crate) given: BTreeMap<String, Model>,
    /// The files of its graphs that were exported, by digest.
    pub(crate) graphs: BTreeMap<Digest, PathBuf>,
    /// The folder that its paths are relative to.
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
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        plain(match error.kind() {
            io::ErrorKind::InvalidData => format!("`{shown}` isn't UTF-8 text"),
            _ => format!("can't read the job file `{shown}`: {error}"),
        })
    })?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    of_text(&text, &shown.to_string(), folder)
}

fn plain(message: String) -> (Failure, Vec<Problem>) {
    let problem = Problem { line: None, key: None, message: message.clone() };
    (Failure::call(message), vec![problem])
}

/// Reads the text of a job file, which is shown under a name, as if it lay in a folder; or all that is wrong with it.
pub(crate) fn of_text(
    text: &str,
    shown: &str,
    folder: PathBuf,
) -> Result<Job, (Failure, Vec<Problem>)> {
    let mut given = BTreeMap::new();
    let mut open = |file: &str| {
        let model = match given.entry(file.to_owned()) {
            Entry::Occupied(model) => &*model.into_mut(),
            Entry::Vacant(place) => {
                let model = model_file::read(&sojourn_ingest::local_path(&folder, file));
                &*place.insert(model.map_err(|why| format!("is `{file}`, which {why}"))?)
            }
        };
        Ok(InitModel {
            architecture: model.description.architecture.clone(),
            parameters: model_file::blob(&model.parameters),
            scale: model.scale(),
            scale_label: model.scale_label(),
        })
    };
    let mut spec = jobfile::parse_with(text, &mut open).map_err(|error| {
        let lines =
            error.problems().map(|problem| format!("{shown}:{}: {problem}", problem.line()));
        let problems = error.problems().map(|problem| Problem {
            line: Some(problem.line()),
            key: Some(problem.key().to_owned()).filter(|key| !key.is_empty()),
            message: problem.to_string(),
        });
        (Failure::calls(lines.collect()), problems.collect())
    })?;
    spec.name_data_seed();
    let searched = preview(&spec).map_err(|error| plain(format!("{shown}: {error}")))?;
    let Searched { trials, left_out, differ } = searched;
    Ok(Job { spec, trials, left_out, differ, given, graphs: BTreeMap::new(), folder })
}
