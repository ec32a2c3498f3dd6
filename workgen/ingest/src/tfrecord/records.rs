//! A pass over the examples of a source, parts in name order.

use super::{
    TfRecord,
    columns::Columns,
    example::{Element, NoExample, check, each_feature},
    frames::Frames,
};
use crate::{
    error::{Place, Problem},
    fields::{Need, RecordError, Records},
    number::shown,
    source::SourceFile,
};
use std::io::Write as _;

/// A pass over the examples.
pub(crate) struct ExampleRecords<'a> {
    columns: &'a Columns,
    needed: Vec<Need>,
    /// Parts that haven't been opened.
    parts: std::slice::Iter<'a, SourceFile>,
    frames: Option<Frames<'a>>,
    /// Bytes of the parts that are done.
    before: u64,
    place: Place,
    /// Memory for a number's text.
    text: Vec<u8>,
    /// The columns that the present example has a value of.
    present: Vec<bool>,
}

impl<'a> ExampleRecords<'a> {
    pub(super) fn new(source: &'a TfRecord, needed: Vec<Need>) -> Self {
        Self {
            columns: &source.columns,
            present: vec![false; needed.len()],
            needed,
            parts: source.parts.iter(),
            frames: None,
            before: 0,
            place: Place::of(&source.first),
            text: Vec::new(),
        }
    }
}

impl Records for ExampleRecords<'_> {
    fn advance(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<bool, RecordError> {
        loop {
            let Some(frames) = &mut self.frames else {
                let Some(part) = self.parts.next() else { return Ok(false) };
                self.frames = Some(Frames::open(part)?);
                self.place = Place { row: Some(0), ..Place::of(part.shown()) };
                continue;
            };
            let part = frames.part;
            let Some(record) = frames.next()? else {
                self.before += part.bytes();
                self.frames = None;
                continue;
            };
            self.place.row = self.place.row.map(|row| row + 1);
            self.present.fill(false);
            let refused = |NoExample(reason)| RecordError::Record(None, Problem::NoExample(reason));
            // An example counts whole, or not at all.
            check(record).map_err(refused)?;
            let mut taking = Taking {
                columns: self.columns,
                needed: &self.needed,
                present: &mut self.present,
                text: &mut self.text,
                take: &mut take,
                problem: None,
            };
            taking.example(record).map_err(refused)?;
            if let Some((index, problem)) = taking.problem {
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
        self.place.clone()
    }

    fn bytes_read(&self) -> u64 {
        self.before + self.frames.as_ref().map_or(0, Frames::bytes_read)
    }
}

/// Takes the features of one example.
struct Taking<'a, T> {
    columns: &'a Columns,
    needed: &'a [Need],
    present: &'a mut [bool],
    text: &'a mut Vec<u8>,
    take: &'a mut T,
    /// The first thing that is wrong, and its column.
    problem: Option<(Option<usize>, Problem)>,
}

impl<T: FnMut(usize, &[u8]) -> Result<(), Problem>> Taking<'_, T> {
    fn example(&mut self, record: &[u8]) -> Result<(), NoExample> {
        each_feature(record, |name, list| {
            let Some(columns) = self.columns.of_feature(name) else {
                self.refuse(None, Problem::Changed);
                return Ok(());
            };
            // Of a feature that can't be read, nobody needs the column.
            let first = columns.first().copied();
            if first.is_some_and(|column| self.columns.unreadable(column).is_some()) {
                return Ok(());
            }
            let length = list.each(|index, element| {
                if let Some(column) = columns.get(index) {
                    self.element(*column, element);
                }
            })?;
            if length > 0 && length != columns.len() {
                self.refuse(first, Problem::Changed);
            }
            Ok(())
        })
    }

    fn element(&mut self, column: usize, element: Element<'_>) {
        match self.present.get_mut(column) {
            Some(present) if *present => {
                let name = self.columns.names().get(column).map_or("", String::as_str);
                let problem = Problem::KeyTwice(shown(name.as_bytes()));
                return self.refuse(Some(column), problem);
            }
            Some(present) => *present = true,
            None => return,
        }
        let need = self.needed.get(column).copied().unwrap_or(Need::Nothing);
        if need == Need::Nothing {
            return;
        }
        self.text.clear();
        // Writing to memory doesn't fail. No label has a zero with a sign.
        let _ = match element {
            Element::Bytes(bytes) => self.text.write_all(bytes),
            Element::Float(number) if need == Need::Label => {
                write!(self.text, "{}", if number == 0.0 { 0.0 } else { number })
            }
            Element::Float(number) => write!(self.text, "{number}"),
            Element::Whole(number) => write!(self.text, "{number}"),
        };
        if let Err(problem) = (self.take)(column, self.text) {
            self.refuse(Some(column), problem);
        }
    }

    fn refuse(&mut self, index: Option<usize>, problem: Problem) {
        self.problem.get_or_insert((index, problem));
    }
}
