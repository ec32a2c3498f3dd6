//! Workbooks of Excel (`.xlsx`): one sheet becomes a copy as CSV, which is read as any other.
//!
//! ```text
//! archive --each member counted--> sheets --the first that is shown--> cells --twice--> a line for each row
//! ```
//!
//! The copy has a cell's value as the workbook remembers it, of formulas too: numbers as the shortest text that reads back as
//! the same number, dates as ISO 8601 writes them. The lines of the copy are the rows of the sheet from the first of its table: those
//! above are titles.
//!
//! Words and styles of a workbook are held in memory, cells are not.

mod archive;
mod begins;
mod cells;
mod table_begins;

use crate::{
    bounds::refusal,
    error::{IngestError, Problem},
    guard::guarded,
    progress::Progress,
    source::{Finder, Raw, SourceFile},
};
pub(crate) use begins::begins;
use calamine::{Reader as _, SheetType, SheetVisible, Xlsx, XlsxError};
use cells::{Cells, Used};
use std::io::BufReader;
pub(crate) use table_begins::Begins;

/// An opened workbook.
type Workbook = Xlsx<BufReader<Raw>>;

/// The sheet of a workbook as a copy in CSV.
pub(crate) fn as_text(
    finder: &mut Finder<'_>,
    file: &SourceFile,
    begins: Begins,
) -> Result<SourceFile, IngestError> {
    let file = if file.is_packed() { finder.unpack(file)? } else { file.clone() };
    archive::check(&file)?;
    let damaged = |reason: String| file.refuse(Problem::Damaged { how: "Excel", reason });
    let raw = BufReader::new(file.raw()?);
    let mut book: Workbook = told(|| Xlsx::new(raw)).map_err(damaged)?;
    let sheets: Vec<String> = book
        .sheets_metadata()
        .iter()
        .filter(|sheet| sheet.typ == SheetType::WorkSheet && sheet.visible == SheetVisible::Visible)
        .map(|sheet| sheet.name.clone())
        .collect();
    let Some(name) = sheets.first() else { return Err(file.refuse(Problem::NoSheet)) };
    let used = Used::of(&mut book, name, begins).map_err(|problem| file.refuse(problem))?;
    let Some(used) = used else {
        return Err(file.refuse(Problem::EmptySheet(name.clone())));
    };
    if sheets.len() > 1 {
        finder.tell(Progress::Sheet { file: file.shown(), sheet: name, of: sheets.len() });
    }
    let mut cells = Cells::open(&mut book, name, used).map_err(damaged)?;
    finder.copy(file.shown(), &mut cells, |error| match refusal(error) {
        Ok(refused) => refused,
        Err(error) => damaged(error.to_string()),
    })
}

/// Calls the crate that reads workbooks: its errors and its panics are reasons.
fn told<T>(run: impl FnOnce() -> Result<T, XlsxError>) -> Result<T, String> {
    guarded(run)?.map_err(|error| error.to_string())
}
