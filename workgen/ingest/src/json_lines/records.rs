//! A pass over the objects of a source, parts in name order.

use super::{
    JsonLines,
    names::Columns,
    object::{Broken, Members, Value, read},
};
use crate::{
    csv::Lines,
    error::{Place, Problem},
    fields::{Need, RecordError, Records},
    number::shown,
    source::SourceFile,
};

/// A pass over the objects.
pub(crate) struct JsonRecords<'a> {
    columns: &'a Columns,
    needed: Vec<Need>,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    lines: Option<Lines<'a>>,
    /// Bytes of the parts that are done.
    before: u64,
    line: u64,
    /// Memory for a number's text.
    text: Vec<u8>,
    /// The columns that the present object has.
    present: Vec<bool>,
}

impl<'a> JsonRecords<'a> {
    pub(super) fn new(json: &'a JsonLines, needed: Vec<Need>) -> Self {
        Self {
            columns: &json.columns,
            present: vec![false; needed.len()],
            needed,
            parts: json.parts.iter(),
            lines: None,
            before: 0,
            line: 0,
            text: Vec::new(),
        }
    }
}

impl Records for JsonRecords<'_> {
    fn advance(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<bool, RecordError> {
        loop {
            let Some(lines) = &mut self.lines else {
                let Some(part) = self.parts.next() else { return Ok(false) };
                self.lines = Some(Lines::open(part)?);
                continue;
            };
            let Some(line) = lines.next_line()? else {
                self.before += lines.part.bytes();
                self.lines = None;
                continue;
            };
            if line.text.trim_ascii().is_empty() {
                continue;
            }
            self.line = line.line;
            self.present.fill(false);
            let mut members = Taking {
                columns: self.columns,
                needed: &self.needed,
                present: &mut self.present,
                at: None,
                take: &mut take,
                problem: None,
            };
            let read = read(line.text, &mut self.text, &mut members);
            let problem = members.problem;
            read.map_err(|Broken { reason, .. }| {
                RecordError::Record(None, Problem::NoObject { reason })
            })?;
            if let Some((index, problem)) = problem {
                return Err(RecordError::Record(index, problem));
            }
            for (index, need) in self.needed.iter().enumerate() {
                if *need != Need::Nothing && self.present.get(index) == Some(&false) {
                    take(index, b"")
                        .map_err(|problem| RecordError::Record(Some(index), problem))?;
                }
            }
            return Ok(true);
        }
    }

    fn place(&self) -> Place {
        let file = self.lines.as_ref().map_or("", |lines| lines.part.shown());
        Place { line: Some(self.line), ..Place::of(file) }
    }

    fn bytes_read(&self) -> u64 {
        self.before + self.lines.as_ref().map_or(0, Lines::bytes_read)
    }
}

/// Takes the members of one object.
struct Taking<'a, T> {
    columns: &'a Columns,
    needed: &'a [Need],
    present: &'a mut [bool],
    /// The column of the last key, if it is needed.
    at: Option<usize>,
    take: &'a mut T,
    /// The first thing that is wrong, and its column.
    problem: Option<(Option<usize>, Problem)>,
}

impl<T> Taking<'_, T> {
    fn refuse(&mut self, index: Option<usize>, problem: Problem) {
        self.problem.get_or_insert((index, problem));
    }
}

impl<T: FnMut(usize, &[u8]) -> Result<(), Problem>> Members for Taking<'_, T> {
    fn key(&mut self, key: &str) -> Need {
        self.at = None;
        let Some(index) = self.columns.index(key) else {
            self.refuse(None, Problem::Changed);
            return Need::Nothing;
        };
        match self.present.get_mut(index) {
            Some(present) if *present => {
                self.refuse(Some(index), Problem::KeyTwice(shown(key.as_bytes())));
            }
            Some(present) => *present = true,
            None => {}
        }
        let need = self.needed.get(index).copied().unwrap_or(Need::Nothing);
        self.at = Some(index).filter(|_| need != Need::Nothing);
        need
    }

    fn value(&mut self, value: Value<'_>) {
        let Some(index) = self.at else { return };
        let taken = match value {
            // No label has a zero with a sign, whatever it was a number of.
            Value::Text(b"-0") if self.needed.get(index) == Some(&Need::Label) => {
                (self.take)(index, b"0")
            }
            Value::Text(text) => (self.take)(index, text),
            Value::Nested(what) => Err(Problem::ColumnKind(what)),
        };
        if let Err(problem) = taken {
            self.refuse(Some(index), problem);
        }
    }
}
