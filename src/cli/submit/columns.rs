//! Jobs over data that has columns by name.

use crate::cli::{render::text, submit::jobfile::Job, terminal::exit::Failure};
use sojourn_ingest::Surveyed;
use sojourn_protocol::{column::Column, spec::Loss};
use sojourn_workgen::search::preview;

/// Takes over what data with columns by name decides of a job: there is no label, and the loss is the models' own. Refuses
/// trials that can't be trained on such data. Other data decides nothing.
pub(crate) fn take(job: &mut Job, data: &Surveyed<'_>) -> Result<(), Failure> {
    if data.columns().is_empty() {
        return Ok(());
    }
    let spec = &mut job.spec;
    if spec.training.loss == Loss::Mse {
        let text =
            "`training.loss` says what labels are, and the data has columns by name: leave it out";
        return Err(Failure::call(text));
    }
    spec.data.label = None;
    spec.training.loss = Loss::Own;
    job.trials = preview(&job.spec).map_err(|error| Failure::call(error.to_string()))?.trials;
    // Before models are exported, which takes a while.
    let mut configs = job.trials.iter().map(|trial| &trial.config);
    configs
        .try_for_each(|config| config.check_columns(data.columns(), data.shape()))
        .map_err(Failure::call)
}

/// `image U8 [3, 32, 32]`, `caption I64 [40] at most of 5,000 values`.
pub(crate) fn said(column: &Column) -> String {
    let Column { name, dtype, longest, values, .. } = column;
    let mut said = format!("{name} {}", dtype.name());
    let shape = column.batch_shape(None);
    if !shape.is_empty() {
        said += &format!(" {shape:?}");
    }
    if longest.is_some() {
        said += " at most";
    }
    match values {
        Some(values) => format!("{said} of {}", text::counted(*values, "value")),
        None => said,
    }
}
