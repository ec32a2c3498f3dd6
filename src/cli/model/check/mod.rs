//! `sojourn check`: exports a user's own model, trains a few batches of it with this machine's trainer, whole and cut in two
//! processes, and compares the bytes.

mod data;
mod report;
mod trial;

use crate::{
    cli::{
        submit::{
            graphs::{PythonArgs, export_failure, with_values},
            workspace::Workspace,
        },
        terminal::{exit::Failure, output},
    },
    exporter::{Export, Made, Values, export},
};
use data::DataArgs;
use report::Report;
use sojourn_protocol::spec::{InitialWeights, Setting};
use std::path::Path;
use toml::Value as TomlValue;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model's file and what is defined in it: `model.py:Cnn`.
    #[arg(value_name = "FILE.PY:NAME")]
    entry: String,
    /// A value of one of the model's own keys, as a job file would have it; repeat it for others. Of text `window` is the job's
    /// longest if left out.
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

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let (file, name) = split(&args.entry)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut values: Values = args.config.iter().cloned().collect();
    let workspace = Workspace::new()?;
    let data = tokio::task::block_in_place(|| args.data.read(folder, &workspace))?;
    data.fit_window(&mut values)?;
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
    let report = Report::new(entry, values, &made, &data, trained);
    if args.json {
        output::json(&report)?
    } else {
        output::line(&report.text())?
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
