//! `sojourn predict`: an exported model over a data file, on this machine, to CSV.
//!
//! ```text
//! Reader -- some rows --> Predictor (a trainer child) -- outputs --> Table -- CSV --> stdout or a file
//!    '------ their labels, where there are some ------------------> Score ------> stderr
//! ```
//!
//! Rows go through in chunks, so that files may be larger than the memory.

mod named;
mod predictor;
mod rows;
mod score;
mod table;

use crate::cli::{
    model::{atomic_file::NewFile, model_file},
    render::{
        progress::{Meter, Unit},
        text,
    },
    submit::workspace::Workspace,
    terminal::{causes::ingest_failure, exit::Failure, output},
};
use predictor::Predictor;
use score::{Score, Scored};
use serde::Serialize;
use sojourn_ingest::RowReader;
use sojourn_model::portable::{KnownAgain, Overlap};
use sojourn_protocol::quantity::to_usize;
use std::{
    collections::BTreeMap,
    io::{self, Write},
    num::NonZeroUsize,
    path::PathBuf,
};
use table::Table;

/// Numbers that go into the model, or come out of it, at once, where `--batch` says nothing.
const NUMBERS: usize = 1 << 22;
/// Rows of a chunk are at most so many, however narrow they are.
const MAX_ROWS: usize = 1 << 16;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The model, as `sojourn export` writes it.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    data: rows::DataArgs,
    /// The CSV file to write, in the place of one that is there; stdout if left out.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Rows that are read and go through the model at once; if left out, about 4 million numbers
    /// on the side that has more of them.
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroUsize>,
    /// Print one JSON object about what was done; the predictions go to a file then.
    #[arg(long, requires = "output")]
    json: bool,
}

/// The JSON of a prediction.
#[derive(Debug, Serialize)]
struct Report {
    rows: u64,
    #[serde(serialize_with = "text::path_in_json")]
    file: PathBuf,
    #[serde(flatten)]
    scored: Option<Scored>,
    /// Rows that the model was trained on, where some are known again.
    #[serde(skip_serializing_if = "Option::is_none")]
    trained_rows: Option<Overlap>,
    /// Of columns by name: the rows that were cut, by their column.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_rows: Option<BTreeMap<String, u64>>,
}

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let model = model_file::read(&args.model)
        .map_err(|why| Failure::call(format!("`{}` {why}", args.model.display())))?;
    let workspace = Workspace::new()?;
    if !model.description.columns.is_empty() {
        return named::run(args, &model, &workspace).await;
    }
    let reader = tokio::task::block_in_place(|| args.data.open(&model, workspace.path()))?;
    let mut predictor = Predictor::new(&model, workspace.path())?;
    let mut sink = match &args.output {
        Some(path) => Sink::File(NewFile::create(path)?),
        None => Sink::Stdout(io::stdout()),
    };
    let mut table = Table::new(&mut sink, &model.description.labels);
    let mut score = Score::new(&model.description.labels);
    let mut known = model.trained_rows.as_ref().map(KnownAgain::among);
    let width = reader.shape().iter().map(|side| to_usize(*side)).product();
    let at_once = args.batch.map_or(rows_at_once(width, predictor.columns()), usize::from);
    let mut rows = reader.rows().map_err(ingest_failure)?;
    let mut meter = Meter::new("predicting", Unit::Bytes, reader.bytes());
    loop {
        let chunk = tokio::task::block_in_place(|| Chunk::read(&mut rows, at_once))?;
        if chunk.rows == 0 {
            break;
        }
        let outputs = predictor.outputs(&chunk.numbers, chunk.rows).await?;
        for (row, outputs) in outputs.chunks_exact(predictor.columns()).enumerate() {
            table.write(outputs, chunk.files.get(row).map(String::as_str))?;
            // An empty label is none.
            if let Some(label) = chunk.labels.get(row).filter(|label| !label.is_empty()) {
                score.add(outputs, label);
            }
        }
        if let Some(known) = &mut known {
            chunk.numbers.chunks_exact(width.max(1)).for_each(|row| known.add(row));
        }
        meter.set(rows.bytes_read(), reader.bytes(), "");
    }
    drop(meter);
    let rows = table.finish()?;
    if let Sink::File(file) = sink {
        file.finish()?;
    }
    let scored = score.finish();
    let trained_rows = known.and_then(|known| known.overlap());
    if args.json {
        let file = args.output.clone().unwrap_or_default();
        return output::json(&Report { rows, file, scored, trained_rows, cut_rows: None });
    }
    if let Some(path) = &args.output {
        output::line(&format!("{}: {}", path.display(), text::counted(rows, "row")))?;
    }
    if let Some(scored) = scored {
        output::remark(&scored.text());
    }
    if let Some(overlap) = trained_rows {
        output::remark(&overlap_text(overlap, rows));
    }
    Ok(())
}

/// Says that rows aren't new to the model.
fn overlap_text(overlap: Overlap, of: u64) -> String {
    let of = text::counted(of, "row");
    let some = match overlap.rows {
        Some(rows) => format!("{} of {of} are", text::count(rows)),
        None => format!("about {:.0} % of {of} are", overlap.share * 100.0),
    };
    format!("{some} rows that the model was trained on: they don't tell how good it is on new ones")
}

/// Rows of a chunk, for so many numbers into the model and out of it for each.
fn rows_at_once(width: usize, columns: usize) -> usize {
    (NUMBERS / width.max(columns).max(1)).clamp(1, MAX_ROWS)
}

/// Where the predictions go.
enum Sink {
    File(NewFile),
    Stdout(io::Stdout),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Stdout(stdout) => stdout.flush(),
        }
    }
}

/// Some rows of the data.
#[derive(Default)]
struct Chunk {
    rows: usize,
    numbers: Vec<f32>,
    /// One a row, or none.
    labels: Vec<String>,
    /// One a row, or none.
    files: Vec<String>,
}

impl Chunk {
    /// Up to `at_once` rows.
    fn read(rows: &mut RowReader<'_>, at_once: usize) -> Result<Self, Failure> {
        let mut chunk = Self::default();
        while chunk.rows < at_once
            && let Some(row) = rows.next_row().map_err(ingest_failure)?
        {
            chunk.rows += 1;
            chunk.numbers.extend_from_slice(row.numbers);
            chunk.files.extend(row.file.map(str::to_owned));
            chunk.labels.extend(row.label.map(|label| String::from_utf8_lossy(label).into_owned()));
        }
        Ok(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_bounded_on_its_wider_side() {
        assert_eq!(rows_at_once(3072, 10), 1365);
        assert_eq!(rows_at_once(10, 10_000), 419);
        assert_eq!(rows_at_once(1, 1), MAX_ROWS);
        assert_eq!(rows_at_once(0, 0), MAX_ROWS);
        assert_eq!(rows_at_once(10, NUMBERS + 1), 1);
    }
}
