//! Predictions of models whose data has columns by name: all outputs of each row, as they are.

mod table;
mod wanted;

use super::{Args, Report, Sink, predictor::Predictor, rows_at_once};
use crate::cli::{
    model::{atomic_file::NewFile, model_file::Model},
    render::{
        progress::{Meter, Unit},
        text,
    },
    submit::workspace::Workspace,
    terminal::{causes::ingest_failure, exit::Failure, output},
};
use sojourn_protocol::{
    column::{Column, row_bytes},
    quantity::to_usize,
};
use table::OutputTable;
use wanted::{columns, wanted};

/// The most outputs of a row that are written as columns of a table.
const MAX_OUTPUTS: usize = 1 << 16;

pub(super) async fn run(args: &Args, model: &Model, workspace: &Workspace) -> Result<(), Failure> {
    let columns = columns(model);
    let wanted = wanted(model, &columns)?;
    let open = || args.data.open_columns(&wanted, workspace.path());
    let reader = tokio::task::block_in_place(open)?;
    check_all_there(&args.data.source(), &wanted, &reader.columns())?;
    let mut predictor = Predictor::new(model, workspace.path())?;
    predictor.take_columns(columns);
    let mut sink = match &args.output {
        Some(path) => Sink::File(NewFile::create(path)?),
        None => Sink::Stdout(std::io::stdout()),
    };
    let numbers = to_usize(row_bytes(&reader.columns()));
    // How many outputs a row has is known once some have gone through.
    let first = rows_at_once(numbers, MAX_OUTPUTS);
    let mut at_once = args.batch.map_or(first, usize::from);
    let mut rows = reader.rows().map_err(ingest_failure)?;
    let mut meter = Meter::new("predicting", Unit::Bytes, reader.bytes());
    let mut table = OutputTable::new(&mut sink, &model.description.columns);
    while let Some((file, count)) =
        tokio::task::block_in_place(|| rows.next_shard(at_once)).map_err(ingest_failure)?
    {
        let outputs = predictor.outputs_of(&file, count).await?;
        let width = outputs.len() / count.max(1);
        if width == 0 || width > MAX_OUTPUTS {
            return Err(Failure::work(format!(
                "each row gives {width} outputs; 1 to {MAX_OUTPUTS} are written as a table"
            )));
        }
        at_once = args.batch.map_or(rows_at_once(numbers, width), usize::from);
        outputs.chunks_exact(width).try_for_each(|outputs| table.write(outputs))?;
        meter.set(rows.bytes_read(), reader.bytes(), "");
    }
    drop(meter);
    let count = table.finish()?;
    if let Sink::File(file) = sink {
        file.finish()?;
    }
    if args.json {
        let file = args.output.clone().unwrap_or_default();
        let cut_rows = rows.cut_rows().map(|(column, rows)| (column.name.clone(), rows)).collect();
        let report = Report {
            rows: count,
            file,
            scored: None,
            trained_rows: None,
            cut_rows: Some(cut_rows),
        };
        return output::json(&report);
    }
    if let Some(path) = &args.output {
        output::line(&format!("{}: {}", path.display(), text::counted(count, "row")))?;
    }
    rows.cut_rows().for_each(|(column, rows)| output::remark(&cut_remark(column, rows)));
    Ok(())
}

/// The remark on rows that were cut.
fn cut_remark(column: &Column, rows: u64) -> String {
    let longest = column.longest.unwrap_or_default();
    format!(
        "{} of `{}` cut to {}, the most that the model was trained on",
        text::counted(rows, "row"),
        column.name,
        text::counted(longest.into(), "element")
    )
}

/// Refuses data that lacks one of the wanted columns.
fn check_all_there(source: &str, wanted: &[Column], there: &[Column]) -> Result<(), Failure> {
    let is_there = |wanted: &&Column| there.iter().any(|column| column.name == wanted.name);
    match wanted.iter().find(|column| !is_there(column)) {
        None => Ok(()),
        Some(Column { name, .. }) => Err(Failure::call(format!(
            "`{source}` has no column `{name}`, which the model's predictions need"
        ))),
    }
}
