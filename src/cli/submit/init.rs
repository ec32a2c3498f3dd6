//! `sojourn init`: looks at data, and writes a job file for it.

use crate::cli::{
    render::{
        tables::{Column, Grid},
        text,
    },
    submit::{graphs::PythonArgs, jobfile, reading::Reading, validate, workspace},
    terminal::{causes::ingest_failure, exit::Failure, output},
};
use serde::Serialize;
use sojourn_draft::{Draft, LabelKind, Taken, TakenColumn, Wishes, draft, guess};
use sojourn_ingest::{Profile, ProfileOf, Progress, TableProfile, Unbounded};
use sojourn_protocol::{
    quantity::to_u64,
    spec::{FileKind, Separator},
};
use std::{
    fs::{self, File},
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data: a CSV, JSON lines, libsvm, TFRecord, Parquet, Excel, NPZ, HDF5 or IDX file, a folder of such parts or of images, a text, or a URL.
    #[arg(value_name = "DATA")]
    data: String,
    /// The column, or the array, of the labels; without it, it is guessed and asked for.
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// Are labels classes or numbers? Without it, their values decide.
    #[arg(long, value_name = "KIND")]
    labels: Option<Labels>,
    /// The sign between columns: `,`, `;`, `tab` or `|`; without it, the rows decide.
    #[arg(long, value_name = "SIGN", value_parser = separator)]
    separator: Option<Separator>,
    /// The job file to write.
    #[arg(short, long, value_name = "JOB.TOML", default_value = "job.toml")]
    output: PathBuf,
    /// The job's name; without it, that of the data.
    #[arg(long)]
    name: Option<String>,
    /// Take what is guessed, without a question.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Write over files that are there.
    #[arg(long)]
    force: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    python: PythonArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Labels {
    /// Each different value is a class.
    Classes,
    /// Labels are predicted as numbers.
    Numbers,
}

impl From<Labels> for LabelKind {
    fn from(labels: Labels) -> Self {
        match labels {
            Labels::Classes => LabelKind::Classes,
            Labels::Numbers => LabelKind::Numbers,
        }
    }
}

fn separator(text: &str) -> Result<Separator, String> {
    let text = if text == "\t" || text == "\\t" { "tab" } else { text };
    let found = Separator::ALL.into_iter().find(|separator| separator.text() == text);
    found.ok_or_else(|| "`,`, `;`, `tab` or `|` is wanted".to_owned())
}

/// The JSON of a job file that was written.
#[derive(Debug, Serialize)]
struct Report<'a> {
    /// The job file.
    file: &'a Path,
    /// The text of it.
    job: &'a str,
    data: &'a Profile,
    #[serde(flatten)]
    draft: &'a Draft,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let refused = |failure: Failure| match args.json {
        false => failure,
        true => {
            let answer = serde_json::json!({ "problems": failure.messages() });
            output::json(&answer).err().unwrap_or_else(|| failure.silent())
        }
    };
    make(args).map_err(refused)
}

fn make(args: &Args) -> Result<(), Failure> {
    let folder = args.output.parent().unwrap_or(Path::new(""));
    let train = named_from(&args.data, folder)?;
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        return Err(Failure::call(format!("there is no folder `{}`", folder.display())));
    }
    let files = [args.output.clone()];
    no_file_is_there(args, &files)?;
    let profile = look(args)?;
    let label = label(args, &profile)?;
    let name = args.name.clone().unwrap_or_else(|| name_of(&args.data));
    let wishes = Wishes {
        name: &name,
        train: &train,
        label: label.as_deref(),
        labels: args.labels.map(LabelKind::from),
    };
    let draft = draft(&profile, wishes).map_err(|problems| {
        let data = &args.data;
        Failure::calls(problems.iter().map(|problem| format!("{data}: {problem}")).collect())
    })?;
    let beside: Vec<(PathBuf, &str)> =
        draft.files.iter().map(|(name, text)| (folder.join(name), *text)).collect();
    no_file_is_there(args, &beside.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>())?;
    check(args, &draft, folder)?;
    for (path, text) in &beside {
        write(args, path, text)?;
    }
    write(args, &args.output, &draft.job)?;
    if args.json {
        return output::json(&Report {
            file: &args.output,
            job: &draft.job,
            data: &profile,
            draft: &draft,
        });
    }
    output::line(&shown(args, &profile, &draft))
}

fn look(args: &Args) -> Result<Profile, Failure> {
    let mut reading = Reading::new();
    let of = ProfileOf {
        data: &args.data,
        base_dir: Path::new(""),
        spool: &workspace::parent(),
        separator: args.separator,
        label: args.label.as_deref(),
    };
    let tell = &mut |progress: Progress<'_>| reading.tell(progress);
    sojourn_ingest::profile(of, Arc::new(Unbounded), tell).map_err(ingest_failure)
}

/// The path of the data as seen from the folder of the job file.
fn named_from(data: &str, folder: &Path) -> Result<String, Failure> {
    if data.contains("://") || folder.as_os_str().is_empty() || folder == Path::new(".") {
        return Ok(data.to_owned());
    }
    let path = std::path::absolute(data)
        .map_err(|error| Failure::call(format!("can't find the folder of `{data}`: {error}")))?;
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(Failure::call(format!("the path of `{data}` isn't UTF-8, as job files are"))),
    }
}

/// A name for the job: that of the data, without what is behind a point.
pub(crate) fn name_of(data: &str) -> String {
    let last = data.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = last.split('.').next().unwrap_or_default();
    let name: String = stem.chars().filter(|sign| !sign.is_control()).take(60).collect();
    if name.is_empty() { "job".to_owned() } else { name }
}

/// The column of the labels, where somebody says it.
fn label(args: &Args, profile: &Profile) -> Result<Option<String>, Failure> {
    let (None, false, Profile::Table(table)) = (&args.label, args.yes, profile) else {
        return Ok(args.label.clone());
    };
    let Some(guessed) = guess(table) else { return Ok(None) };
    let (column, because) = (&guessed.column, guessed.because);
    if !io::stdin().is_terminal() || args.json {
        return Err(Failure::call(format!(
            "{}: the label is `{column}`, most likely ({because}): `--label` says it, and `--yes` takes what is guessed",
            args.data
        )));
    }
    output::remark(&columns(table));
    // Where the question can't be shown, the guess stands.
    let _ = write!(io::stderr(), "which column is the label? [{column}] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::work(format!("no answer was read: {error}")))?;
    let answer = answer.trim();
    Ok(Some(if answer.is_empty() { column.clone() } else { answer.to_owned() }))
}

/// The columns of a table, by which a label is chosen.
fn columns(table: &TableProfile) -> String {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let rows = text::counted(table.rows, "row");
    format!("{rows}, {} columns: {}", names.len(), names.join(", "))
}

fn no_file_is_there(args: &Args, paths: &[PathBuf]) -> Result<(), Failure> {
    match paths.iter().find(|path| !args.force && path.exists()) {
        None => Ok(()),
        Some(path) => Err(Failure::call(format!(
            "`{}` is there already; `--force` writes over it, `--output` names another file",
            path.display()
        ))),
    }
}

/// Does `validate` accept the job file? All data is read for it. A model of one's own isn't built.
fn check(args: &Args, draft: &Draft, folder: &Path) -> Result<(), Failure> {
    let shown = args.output.display().to_string();
    let mut job =
        jobfile::of_text(&draft.job, &shown, folder.to_owned()).map_err(|(failure, _)| failure)?;
    if job.spec.has_graphs() {
        return Ok(());
    }
    validate::check_data(&mut job, &args.python).map(|_| ())
}

fn write(args: &Args, path: &Path, text: &str) -> Result<(), Failure> {
    let file = match args.force {
        true => File::create(path),
        false => File::create_new(path),
    };
    let failed =
        |error: io::Error| Failure::work(format!("can't write `{}`: {error}", path.display()));
    file.map_err(failed)?.write_all(text.as_bytes()).map_err(|error| {
        // Half a file would be in the way of the next try.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

fn shown(args: &Args, profile: &Profile, draft: &Draft) -> String {
    let mut lines = Vec::new();
    if let Profile::Table(table) = profile {
        lines.push(format!("{}: {}", args.data, table_text(table)));
        let mut grid = Grid::new(&[
            ("COLUMN", Column::Text),
            ("HOLDS", Column::Text),
            ("TAKEN AS", Column::Text),
        ]);
        for (column, holds, taken) in rows(&draft.columns) {
            grid.row([column, holds, taken]);
        }
        lines.push(grid.text());
    }
    if let Some(guess) = &draft.label {
        lines.push(format!("label   `{}`, {}", guess.column, guess.because));
    }
    lines.extend(draft.remarks.iter().map(|remark| format!("note    {remark}")));
    let file = args.output.display();
    lines.push(format!("{file} is written; next:"));
    lines.push(format!("  sojourn validate {file}          # what would run"));
    lines.push(format!("  sojourn submit {file} --wait     # with a server and a client running"));
    lines.join("\n")
}

/// A row for each column: its name, the contents and the use. Columns without a name that are left out alike, side by side, have one.
fn rows(columns: &[TakenColumn]) -> Vec<(String, String, String)> {
    let are_alike = |one: &TakenColumn, next: &TakenColumn| {
        let is_unnamed = one.taken == Taken::Unnamed && next.taken == Taken::Unnamed;
        is_unnamed && one.holds == next.holds && one.because == next.because
    };
    let of = |alike: &[TakenColumn]| {
        let (first, last) = (alike.first()?, alike.last()?);
        let name = match alike.len() {
            1 => first.column.clone(),
            _ => format!("{} to {}", first.column, last.column),
        };
        Some((name, first.holds.clone(), first.use_in_words()))
    };
    columns.chunk_by(are_alike).filter_map(of).collect()
}

fn table_text(table: &TableProfile) -> String {
    let rows = text::counted(table.rows, "row");
    let columns = text::counted(to_u64(table.columns.len()), "column");
    match (table.format, table.separator) {
        (FileKind::Csv, Some(separator)) => {
            let header = if table.has_header { "" } else { ", without names of columns" };
            format!("{rows}, {columns} separated by {}{header}", separator.name())
        }
        _ => format!("{rows}, {columns}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_by_its_data() {
        for (data, name) in [
            ("titanic.csv", "titanic"),
            ("/data/beijing.csv.gz", "beijing"),
            ("images/", "images"),
            ("https://example.org/a/iris.parquet", "iris"),
            (".hidden", "job"),
        ] {
            assert_eq!(name_of(data), name, "{data}");
        }
    }

    #[test]
    fn separators_are_said_by_their_signs() {
        assert_eq!(separator("\\t"), Ok(Separator::Tab));
        assert_eq!(separator(";"), Ok(Separator::Semicolon));
        assert!(separator("x").is_err());
    }
}
