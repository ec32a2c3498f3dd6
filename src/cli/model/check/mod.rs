//! `sojourn check`: exports a user's own model, trains a few batches of it with this machine's trainer, whole and cut in two
//! processes, and compares the bytes.

mod data;
mod trial;

use crate::{
    cli::{
        render::text,
        submit::{
            graphs::{PythonArgs, export_failure, with_values},
            workspace::Workspace,
        },
        terminal::{exit::Failure, output},
    },
    exporter::{Export, Made, Values, export},
};
use data::DataArgs;
use serde::Serialize;
use sojourn_protocol::{
    digest::Digest,
    spec::{GraphRole, InitialWeights, Setting},
};
use std::path::Path;
use toml::Value as TomlValue;

/// Says what a model is when it is exported as a graph (parameters, checkpoint, memory, time of a batch), and whether it is
/// repeatable: eight batches are trained whole, and cut after four with the rest in another process, and both must give the
/// same bytes.
///
/// The data is that of `--job`, of the `job.toml` beside the model where there is one, or made up by `--shape`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model's file and what is defined in it: `model.py:Cnn`.
    #[arg(value_name = "FILE.PY:NAME")]
    entry: String,
    /// A value of one of the model's own keys, as a job file would have it; repeat it for others.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    config: Vec<(String, Setting)>,
    #[command(flatten)]
    data: DataArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    python: PythonArgs,
}

/// The JSON of a check.
#[derive(Debug, Serialize)]
struct Report {
    entry: String,
    values: Values,
    /// Shape of one row.
    shape: Vec<u32>,
    /// None where labels are numbers.
    classes: Option<u32>,
    parameters: u64,
    buffers: u64,
    tensors: Vec<TensorReport>,
    graph_bytes: u64,
    graph_sha256: Digest,
    checkpoint_bytes: u64,
    /// Floating-point operations of one row's forward pass.
    flops_per_row: u64,
    /// What the evaluation adds up.
    sums: Vec<String>,
    batch_size: u32,
    batches: u32,
    seconds_per_batch: f64,
    /// Mean loss of the rows that were trained on.
    loss: f64,
    /// The most bytes of memory that training took, with libtorch.
    peak_memory: Option<u64>,
    repeatable: bool,
    /// The first tensor, in name order, that differs where the training is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    differs: Option<String>,
}

#[derive(Debug, Serialize)]
struct TensorReport {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    role: GraphRole,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let (file, name) = split(&args.entry)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let values: Values = args.config.iter().cloned().collect();
    let workspace = Workspace::new()?;
    let data = tokio::task::block_in_place(|| args.data.read(folder, &workspace))?;
    let entry = format!("{}:{name}", file.file_name().unwrap_or_default().to_string_lossy());
    let made = tokio::task::block_in_place(|| {
        let wanted = Export {
            folder,
            entry: &entry,
            data: &data.description(),
            initial: InitialWeights::default(),
            configs: std::slice::from_ref(&values),
            workspace: workspace.path(),
            python: args.python.python.as_deref(),
        };
        exported(&wanted)
    })?;
    let trial = trial::Trial::new(&entry, &values, &made, &data);
    let trained = trial.train(workspace.path()).await?;
    let report = report(entry, values, &made, &data, trained);
    if args.json {
        output::json(&report)?
    } else {
        output::line(&describe(&report))?
    }
    match &report.differs {
        None => Ok(()),
        Some(_) if args.json => Err(Failure::work("it isn't repeatable").silent()),
        Some(tensor) => Err(Failure::work(format!(
            "it isn't repeatable: cut after {} batches, `{tensor}` has other bytes. Nothing but parameters and buffers may \
             be kept from one batch to the next",
            trial::CUT
        ))),
    }
}

/// The file and the name of an entry.
fn split(entry: &str) -> Result<(&Path, &str), Failure> {
    match entry.rsplit_once(':') {
        Some((file, name)) if file.ends_with(".py") && !name.is_empty() => {
            Ok((Path::new(file), name))
        }
        _ => Err(Failure::call(format!(
            "`{entry}` isn't a Python file and what is defined in it: write `model.py:Cnn`"
        ))),
    }
}

/// Reads `KEY=VALUE`; the value as TOML where it is some, else as text.
fn setting(text: &str) -> Result<(String, Setting), String> {
    let (key, value) = text.split_once('=').ok_or("`KEY=VALUE` is wanted")?;
    let parsed = toml::from_str::<toml::Table>(&format!("v = {value}"));
    let value = match parsed.ok().and_then(|mut table| table.remove("v")) {
        Some(value) => {
            of_toml(value).ok_or("a number, a text, a truth value or a list is wanted")?
        }
        None => Setting::Text(value.to_owned()),
    };
    Ok((key.trim().to_owned(), value))
}

fn of_toml(value: TomlValue) -> Option<Setting> {
    match value {
        TomlValue::Boolean(value) => Some(Setting::Switch(value)),
        TomlValue::Integer(value) => Some(Setting::Whole(value)),
        TomlValue::Float(value) if value.is_finite() => {
            Some(Setting::Real(sojourn_protocol::spec::Real(value)))
        }
        TomlValue::String(value) => Some(Setting::Text(value)),
        TomlValue::Array(values) => {
            values.into_iter().map(of_toml).collect::<Option<_>>().map(Setting::List)
        }
        TomlValue::Float(_) | TomlValue::Datetime(_) | TomlValue::Table(_) => None,
    }
}

/// The one graph that was asked for.
fn exported(wanted: &Export<'_>) -> Result<Made, Failure> {
    let answers = export(wanted, &mut |_| ()).map_err(|error| export_failure(&error))?;
    let values = wanted.configs.first().map(with_values).unwrap_or_default();
    let entry = wanted.entry;
    match answers.into_iter().next() {
        Some(Ok(made)) => Ok(made),
        Some(Err(refusal)) => {
            Err(Failure::work(format!("`{entry}`{values} can't be a graph: {refusal}")))
        }
        None => Err(Failure::work("nothing was exported")),
    }
}

fn report(
    entry: String,
    values: Values,
    made: &Made,
    data: &data::CheckData,
    trained: trial::Trained,
) -> Report {
    let graph = &made.graph;
    let numbers = |role: GraphRole| -> u64 {
        let of_role = graph.tensors.iter().filter(|tensor| tensor.role == role);
        of_role.map(|tensor| tensor.shape.iter().product::<u64>()).sum()
    };
    let tensors = graph.tensors.iter().map(|tensor| TensorReport {
        name: tensor.name.clone(),
        dtype: tensor.dtype.to_string(),
        shape: tensor.shape.clone(),
        role: tensor.role,
    });
    Report {
        entry,
        values,
        shape: data.shape.clone(),
        classes: data.classes(),
        parameters: numbers(GraphRole::Parameter),
        buffers: numbers(GraphRole::Buffer),
        tensors: tensors.collect(),
        graph_bytes: graph.file.bytes,
        graph_sha256: graph.file.sha256,
        checkpoint_bytes: trained.checkpoint_bytes,
        flops_per_row: graph.flops_per_row,
        sums: graph.sums.clone(),
        batch_size: data.batch_size,
        batches: trained.batches,
        seconds_per_batch: trained.seconds_per_batch,
        loss: trained.loss,
        peak_memory: trained.peak_memory,
        repeatable: trained.differs.is_none(),
        differs: trained.differs,
    }
}

fn describe(report: &Report) -> String {
    let values = with_values(&report.values);
    let labels = match report.classes {
        Some(classes) => format!("{classes} classes"),
        None => "numbers as labels".to_owned(),
    };
    let memory = report.peak_memory.map_or_else(|| "not known".to_owned(), text::bytes);
    let tensors = text::counted(u64::try_from(report.tensors.len()).unwrap_or(u64::MAX), "tensor");
    let mut lines = vec![
        format!(
            "model    {}{values}, {} parameters, {} numbers in buffers",
            report.entry,
            text::count(report.parameters),
            text::count(report.buffers)
        ),
        format!("data     rows of shape {:?}, {labels}", report.shape),
        format!(
            "graph    {} (SHA-256 {})",
            text::bytes(report.graph_bytes),
            report.graph_sha256.short()
        ),
        format!(
            "layout   {tensors}; a checkpoint has {} with Adam's state",
            text::bytes(report.checkpoint_bytes)
        ),
        format!("work     {} operations a row forward", text::count(report.flops_per_row)),
        format!("sums     {}", report.sums.join(", ")),
        format!("memory   {memory} at most, with libtorch"),
        format!(
            "speed    {:.4} s a batch of {} rows, one thread; mean loss {} over {} batches",
            report.seconds_per_batch,
            report.batch_size,
            text::metric(report.loss),
            report.batches
        ),
    ];
    lines.push(match report.repeatable {
        true => "cut      repeatable: the same bytes, whole and cut in two processes".to_owned(),
        false => "cut      not repeatable".to_owned(),
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_a_job_file_would() {
        let read = |text: &str| setting(text).map(|(key, value)| format!("{key}: {value:?}"));
        assert_eq!(read("width=32").unwrap(), "width: Whole(32)");
        assert_eq!(read("p=0.5").unwrap(), "p: Real(Real(0.5))");
        assert_eq!(read("tied=true").unwrap(), "tied: Switch(true)");
        assert_eq!(read("kind=gru").unwrap(), "kind: Text(\"gru\")");
        assert_eq!(read("hidden=[8, 4]").unwrap(), "hidden: List([Whole(8), Whole(4)])");
        assert!(read("width").is_err());
        assert!(read("a={b = 1}").is_err());
    }

    #[test]
    fn an_entry_is_a_file_and_a_name() {
        assert!(split("models/cnn.py:Cnn").is_ok());
        for wrong in ["cnn.py", "Cnn", "cnn.py:", "cnn:Cnn"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }
}
