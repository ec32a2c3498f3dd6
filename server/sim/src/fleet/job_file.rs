//! The trials of a job file, and the data of one that is really trained.

use super::{
    job::{Cost, Fleet, Made, flops},
    quantity::Auto,
    scenario::JobEntry,
    training::Trains,
};
use sojourn_protocol::{
    jobfile,
    manifest::{DataManifest, Labels},
    spec::{JobSpec, Loss},
};
use toml::{Table, Value};

/// The specification in a job file, with these keys set.
pub(crate) fn spec_of(path: &str, text: &str, set: &Table) -> Result<JobSpec, String> {
    if set.is_empty() {
        return jobfile::parse(text).map_err(|error| format!("`{path}`: {error}"));
    }
    let table = toml::from_str(text).map_err(|error| format!("`{path}`: {}", error.message()))?;
    let lines = over(table, set).into_iter().map(|(key, value)| set_to(&key, &value) + "\n");
    jobfile::parse(&lines.collect::<String>())
        .map_err(|error| format!("`{path}` with what `job.set` says: {error}"))
}

/// A key and its value on one line of a TOML file. Texts in JSON's quotes are texts in TOML's.
fn set_to(key: &str, value: &Value) -> String {
    format!("{} = {}", serde_json::Value::from(key), inline(value))
}

fn inline(value: &Value) -> String {
    let list = |values: Vec<String>| values.join(", ");
    match value {
        Value::String(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Integer(number) => number.to_string(),
        // With a point or an exponent, always.
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(values) => format!("[{}]", list(values.iter().map(inline).collect())),
        Value::Table(table) => {
            let keys = table.iter().map(|(key, value)| set_to(key, value));
            format!("{{ {} }}", list(keys.collect()))
        }
    }
}

/// A table with keys of another one over its own.
fn over(mut table: Table, keys: &Table) -> Table {
    for (key, value) in keys {
        let value = match (table.remove(key), value) {
            (Some(Value::Table(own)), Value::Table(keys)) => Value::Table(over(own, keys)),
            _ => value.clone(),
        };
        table.insert(key.clone(), value);
    }
    table
}

/// The shards of a job that is really trained; another seed of the scenario is another one of the job.
pub(crate) fn real_data(
    path: &str,
    entry: &JobEntry,
    seed: u64,
    spec: &mut JobSpec,
    fleet: Fleet<'_>,
    trains: &mut dyn Trains,
) -> Result<DataManifest, String> {
    if !spec.init.is_empty() {
        return Err(format!(
            "`{path}` starts from a model, which simulations can't: leave out `init`"
        ));
    }
    spec.seed = spec.seed.wrapping_add(seed);
    if let Auto::Given(shards) = entry.shards {
        spec.data.shards = Some(shards);
    }
    let data = trains.ingest(path, spec, fleet.hosts, entry.skew.concentration())?;
    spec.data.shards = u32::try_from(data.train.len()).ok();
    Ok(data)
}

/// The trials of a job file.
pub(crate) fn of_file(
    path: &str,
    entry: &JobEntry,
    spec: JobSpec,
    real: Option<&DataManifest>,
) -> Result<Made, String> {
    let known = real.map(|data| data.shape.clone()).or_else(|| entry.shape.clone());
    let shape = known.or_else(|| spec.data.shape.clone());
    let shape = shape.ok_or_else(|| {
        format!("`{path}` doesn't say the shape of a row: add `shape` to `[job]`, like [3, 32, 32]")
    })?;
    let labels = match (real, spec.training.loss) {
        (Some(data), _) => data.labels.clone(),
        (None, Loss::Mse) => Labels::Number,
        (None, Loss::Own) => Labels::None,
        (None, Loss::CrossEntropy) => {
            Labels::Classes((0..entry.classes).map(|n| n.to_string()).collect())
        }
    };
    let all = sojourn_workgen::trials(&spec).map_err(|error| format!("`{path}`: {error}"))?;
    let (mut costs, mut trials): (Vec<Cost>, Vec<usize>) = (Vec::new(), Vec::new());
    for trial in &all {
        let model = &trial.config.model;
        let flops =
            flops(model, &shape, labels.outputs()).map_err(|error| format!("`{path}`: {error}"))?;
        let known = costs.iter().position(|cost| cost.flops.to_bits() == flops.to_bits());
        trials.push(known.unwrap_or(costs.len()));
        if known.is_none() {
            costs.push(Cost { name: format!("{} {}", model.name(), costs.len() + 1), flops });
        }
    }
    Ok((spec, costs, trials, shape, labels))
}
