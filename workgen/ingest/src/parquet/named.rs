//! Parquet as columns by name: numbers, bytes and lists of numbers, as they are.

use super::{begins, column::Values, is_index, part::Part, stored::Stored, unpacked};
use crate::{
    columns::{Choice, ColumnRows, ColumnTable, Field, check_same},
    error::{IngestError, Place, Problem},
    fields::choose,
    source::{Finder, SourceFile},
};
use sojourn_protocol::{
    column::{MAX_COLUMNS, MAX_ROW_ELEMENTS, check_name},
    quantity::to_usize,
};

/// Rows of numbers that are decoded at once. Lists and bytes are decoded row by row: one may be as large as a page.
const BATCH: u64 = 1024;

/// Rows of columns by name.
pub(crate) fn by_name(
    finder: &mut Finder<'_>,
    shown: &str,
    files: Vec<SourceFile>,
    choice: Choice<'_>,
) -> Result<Box<dyn ColumnTable>, IngestError> {
    Ok(Box::new(NamedParquet::open(finder, shown, files, choice)?))
}

/// A file, or parts with the same columns.
#[derive(Debug)]
struct NamedParquet {
    shown: String,
    parts: Vec<SourceFile>,
    /// In the order of their names.
    fields: Vec<Field>,
}

impl NamedParquet {
    /// Reads the footers of `files`; packed ones are unpacked first.
    fn open(
        finder: &mut Finder<'_>,
        shown: &str,
        files: Vec<SourceFile>,
        choice: Choice<'_>,
    ) -> Result<Self, IngestError> {
        for file in &files {
            if !begins(&file.start()?) {
                return Err(file.refuse(Problem::NotAs { wanted: "Parquet" }));
            }
        }
        let parts = unpacked(finder, files)?;
        let mut fields: Option<Vec<Field>> = None;
        for file in &parts {
            let part = Part::open(file)?;
            let found = part.fields(choice)?;
            match &fields {
                None => fields = Some(found),
                Some(fields) => {
                    let first = parts.first().map_or(shown, SourceFile::shown);
                    check_same(&Place::of(file.shown()), &found, first, fields)?;
                }
            }
        }
        Ok(Self { shown: shown.to_owned(), parts, fields: fields.unwrap_or_default() })
    }
}

impl Part<'_> {
    /// The chosen columns, in the order of their names.
    fn fields(&self, choice: Choice<'_>) -> Result<Vec<Field>, IngestError> {
        let file = Place::of(self.file.shown());
        let names = self.footer.names(&file)?;
        let mut chosen = match choice {
            Choice::Job(None) => names.clone(),
            Choice::Job(Some(chosen)) => {
                let chosen = choose(&file, &names, None, chosen)?;
                chosen.into_iter().filter_map(|index| names.get(index).cloned()).collect()
            }
            Choice::Wanted(wanted) => {
                names.iter().filter(|name| wanted.contains(&name.as_str())).cloned().collect()
            }
        };
        if chosen.is_empty() && !matches!(choice, Choice::Wanted(_)) {
            return Err(file.refuse(Problem::NoColumnLeft));
        }
        chosen.sort_unstable();
        chosen.dedup();
        let mut fields = Vec::new();
        for name in chosen {
            let refuse = |problem| self.column(&name).refuse(problem);
            if matches!(choice, Choice::Job(None)) && is_index(&name) {
                return Err(refuse(Problem::FrameIndex));
            }
            check_name(&name)
                .map_err(|why| refuse(Problem::NameInFile { name: name.clone(), why }))?;
            let (_, stored) = self.stored(&name)?;
            if fields.len() == MAX_COLUMNS {
                return Err(file.refuse(Problem::TooManyNames { limit: MAX_COLUMNS }));
            }
            let field = Field {
                name: name.clone(),
                dtype: stored.dtype(),
                shape: stored.shape(),
                is_sequence: stored.is_sequence(),
                values: None,
                classes: Vec::new(),
                windows: false,
            };
            if field.stride() > MAX_ROW_ELEMENTS.saturating_mul(field.dtype.bytes()) {
                return Err(refuse(Problem::WideRow { limit: MAX_ROW_ELEMENTS }));
            }
            fields.push(field);
        }
        Ok(fields)
    }

    /// The form of a row in the column of this name, after the column's place among those that hold values.
    fn stored(&self, name: &str) -> Result<(usize, Stored), IngestError> {
        let column = self.footer.columns.iter().find(|column| column.name.trim() == name);
        let column = column.ok_or_else(|| self.file.refuse(Problem::Changed))?;
        let stored = column.stored.map_err(|holds| {
            self.column(name).refuse(Problem::NoColumnByName { name: name.to_owned(), holds })
        })?;
        Ok((column.leaf, stored))
    }
}

impl ColumnTable for NamedParquet {
    fn shown(&self) -> &str {
        &self.shown
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(SourceFile::bytes).fold(0, u64::saturating_add)
    }

    fn rows(&self) -> Result<Box<dyn ColumnRows + '_>, IngestError> {
        let values = vec![Vec::new(); self.fields.len()];
        let parts = self.parts.iter();
        Ok(Box::new(NamedRows { all: self, parts, open: None, values, before: 0 }))
    }
}

/// A pass over the rows.
struct NamedRows<'a> {
    all: &'a NamedParquet,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    open: Option<OpenPart<'a>>,
    /// The row's bytes in each column.
    values: Vec<Vec<u8>>,
    /// Bytes of the parts that are done.
    before: u64,
}

/// A part whose columns are read side by side.
struct OpenPart<'a> {
    part: Part<'a>,
    /// The columns of the row group.
    columns: Vec<OpenColumn>,
    /// Rows of the row group that weren't taken.
    left: u64,
}

/// A column of a row group.
struct OpenColumn {
    stored: Stored,
    values: Values,
    /// Rows that are decoded and weren't taken.
    decoded: u64,
}

impl OpenColumn {
    /// Reads the next of `left` rows.
    fn row(&mut self, left: u64, into: &mut Vec<u8>, name: &str) -> Result<(), Problem> {
        if self.decoded == 0 {
            let is_large = self.stored.is_sequence() || !self.stored.shape().is_empty();
            self.decoded = if is_large { 1 } else { left.min(BATCH) };
            self.values
                .read(to_usize(self.decoded))
                .map_err(|reason| Problem::Damaged { how: "Parquet", reason })?;
        }
        self.decoded = self.decoded.saturating_sub(1);
        self.values.row(self.stored, into).map_err(|fault| fault.problem(name))
    }
}

impl<'a> OpenPart<'a> {
    fn open(file: &'a SourceFile) -> Result<Self, IngestError> {
        Ok(Self { part: Part::open(file)?, columns: Vec::new(), left: 0 })
    }

    /// Reads a row; `false` after the last.
    fn read(&mut self, fields: &[Field], values: &mut [Vec<u8>]) -> Result<bool, IngestError> {
        while self.left == 0 {
            let Some(group) = self.part.next_group()? else { return Ok(false) };
            self.columns.clear();
            for field in fields {
                let (leaf, stored) = self.part.stored(&field.name)?;
                if stored.dtype() != field.dtype || stored.is_sequence() != field.is_sequence {
                    return Err(self.part.file.refuse(Problem::Changed));
                }
                let values = self.part.values(group, &field.name, leaf)?;
                self.columns.push(OpenColumn { stored, values, decoded: 0 });
            }
            self.left = group.rows;
        }
        self.part.taken += 1;
        for ((column, field), into) in self.columns.iter_mut().zip(fields).zip(values) {
            let name = &field.name;
            column.row(self.left, into, name).map_err(|problem| {
                Place { column: Some(name.clone()), ..self.part.row() }.refuse(problem)
            })?;
        }
        self.left -= 1;
        Ok(true)
    }
}

impl ColumnRows for NamedRows<'_> {
    fn advance(&mut self) -> Result<bool, IngestError> {
        loop {
            let Some(open) = &mut self.open else {
                let Some(file) = self.parts.next() else { return Ok(false) };
                self.open = Some(OpenPart::open(file)?);
                continue;
            };
            if open.read(&self.all.fields, &mut self.values)? {
                return Ok(true);
            }
            self.before = self.before.saturating_add(open.part.file.bytes());
            self.open = None;
        }
    }

    fn column(&self, index: usize) -> &[u8] {
        self.values.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    fn place(&self) -> Place {
        self.open.as_ref().map_or_else(|| Place::of(&self.all.shown), |open| open.part.row())
    }

    fn bytes_read(&self) -> u64 {
        let here = self.open.as_ref().map_or(0, |open| open.part.bytes_read());
        self.before.saturating_add(here)
    }
}
