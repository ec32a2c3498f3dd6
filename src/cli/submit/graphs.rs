//! Users' own models of a job: exported for the data, once for all trials that have the same values.

use crate::{
    cli::{
        render::{
            progress::{Meter, Unit},
            text,
        },
        submit::jobfile::Job,
        terminal::exit::Failure,
    },
    exporter::{DataDescription, Export, ExportError, Made, Refusal, Values, export},
};
use sojourn_ingest::Surveyed;
use sojourn_protocol::{
    error::error_chain,
    quantity::to_u64,
    spec::{Architecture, Graph, GraphSpace, ModelSpace},
};
use sojourn_workgen::search::{models, preview};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Refusals that are told one by one; of others only that there are more.
const SHOWN_REFUSALS: usize = 5;

/// The Python that exports models.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct PythonArgs {
    /// The Python that exports models with `arch = "graph"`: one with PyTorch. Without it the active virtual environment, `.venv`
    /// beside the job file or above it, or `python3`.
    #[arg(long, value_name = "PATH", env = crate::exporter::VARIABLE)]
    pub(crate) python: Option<PathBuf>,
}

/// Exports the models of the job that aren't yet, and takes them into its trials. The files go into the workspace.
///
/// Blocks while Python runs.
pub(crate) fn export_all(
    job: &mut Job,
    data: &Surveyed<'_>,
    python: &PythonArgs,
    workspace: &Path,
) -> Result<(), Failure> {
    let (columns, rows) = (data.columns(), data.train_rows());
    let described = DataDescription::new(columns, data.shape(), data.labels(), rows);
    let mut changed = false;
    for index in 0..job.spec.models.len() {
        let Some(ModelSpace::Graph(space)) = job.spec.models.get(index) else { continue };
        let values = values_of(job, index)?;
        if values.is_empty() {
            continue;
        }
        let wanted = Export {
            folder: &job.folder,
            entry: &space.entry,
            data: &described,
            initial: space.initial,
            configs: &values,
            workspace,
            python: python.python.as_deref(),
        };
        let all = to_u64(values.len());
        let mut meter = Meter::new(&format!("exporting {}", space.entry), Unit::Steps, all);
        let answers = export(&wanted, &mut |done| meter.set(to_u64(done), all, ""));
        drop(meter);
        let answers = answers.map_err(|error| export_failure(&error))?;
        let graphs = accepted(&space.entry, &values, answers)?;
        job.graphs
            .extend(graphs.iter().map(|(_, made)| (made.graph.file.sha256, made.file.clone())));
        if let Some(ModelSpace::Graph(GraphSpace { entry, exported, .. })) =
            job.spec.models.get_mut(index)
        {
            exported.extend(graphs.into_iter().map(|(values, made)| Graph {
                entry: entry.clone(),
                values,
                exported: Some(made.graph),
            }));
            exported.sort();
            changed = true;
        }
    }
    if changed {
        job.trials = preview(&job.spec).map_err(|error| Failure::call(error.to_string()))?.trials;
    }
    job.spec.check_metric_of_graphs().map_err(Failure::call)
}

/// The values of a table's trials that aren't exported, each once, in order: where trials are suggested later, all that there are.
fn values_of(job: &Job, table: usize) -> Result<Vec<Values>, Failure> {
    let models: Vec<Architecture> = if job.spec.search.method.suggests() {
        models(&job.spec, table).map_err(|error| {
            let method = job.spec.search.method.name();
            Failure::call(format!(
                "{error}; with `method = \"{method}\"` every combination of a model's own keys is exported before trials are suggested"
            ))
        })?
    } else {
        let trials = job.trials.iter();
        let of_table = trials.filter(|trial| usize::try_from(trial.model) == Ok(table));
        of_table.map(|trial| trial.config.model.clone()).collect()
    };
    let open = models.into_iter().filter_map(|model| match model {
        Architecture::Graph(Graph { values, exported: None, .. }) => Some(values),
        _ => None,
    });
    Ok(open.collect::<BTreeSet<_>>().into_iter().collect())
}

/// The graphs with their values; else why there are none.
fn accepted(
    entry: &str,
    values: &[Values],
    answers: Vec<Result<Made, Refusal>>,
) -> Result<Vec<(Values, Made)>, Failure> {
    let (mut graphs, mut refusals) = (Vec::new(), Vec::new());
    for (values, answer) in values.iter().zip(answers) {
        match answer {
            Ok(made) => graphs.push((values.clone(), made)),
            Err(refusal) => refusals.push((values, refusal)),
        }
    }
    if refusals.is_empty() {
        return Ok(graphs);
    }
    let mut said = Vec::new();
    let mut seen = BTreeSet::new();
    for (values, refusal) in &refusals {
        // What is wrong with one width is mostly wrong with all.
        if seen.insert(refusal.to_string()) {
            let with = with_values(values);
            said.push(format!("`{entry}`{with} can't be a graph: {refusal}"));
        }
    }
    let more = said.len().saturating_sub(SHOWN_REFUSALS);
    said.truncate(SHOWN_REFUSALS);
    if more > 0 {
        let reasons = text::counted(to_u64(more), "other reason");
        said.push(format!("{reasons} for other values"));
    }
    Err(Failure::calls(said))
}

/// ` with width=16, dropout=0.2`; nothing where a model has no keys.
pub(crate) fn with_values(values: &Values) -> String {
    let values: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if values.is_empty() { String::new() } else { format!(" with {}", values.join(", ")) }
}

/// Why nothing could be exported, as the end of a command.
pub(crate) fn export_failure(error: &ExportError) -> Failure {
    match error {
        ExportError::Start { .. } | ExportError::Failed { .. } => Failure::call(error_chain(error)),
        ExportError::Workspace { .. } | ExportError::Answer(_) | ExportError::Graph(_) => {
            Failure::work(error_chain(error))
        }
    }
}
