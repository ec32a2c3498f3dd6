//! A pass over arrays of rows and labels, in parallel.

use super::{Array, Pair};
use crate::{
    error::{IngestError, Place, Problem},
    table::{Pass, Rows},
};
use sojourn_protocol::{
    quantity::{to_u64, to_usize},
    spec::Channels,
};
use std::io::{self, BufReader, Read};

const READ_BUFFER: usize = 1 << 20;

/// A pass over the rows, pairs in order.
pub(super) struct ArrayRows<'a> {
    /// The pairs that haven't been opened.
    pairs: std::slice::Iter<'a, Pair>,
    width: usize,
    channels: Channels,
    pass: Pass,
    x: Option<Stream<'a>>,
    y: Option<Stream<'a>>,
    is_open: bool,
    numbers: Vec<f32>,
    transposed: Vec<f32>,
    label: Vec<u8>,
    read: u64,
}

impl<'a> ArrayRows<'a> {
    pub(super) fn new(pairs: &'a [Pair], width: usize, channels: Channels, pass: Pass) -> Self {
        Self {
            pairs: pairs.iter(),
            width,
            channels,
            pass,
            x: None,
            y: None,
            is_open: false,
            numbers: Vec::new(),
            transposed: Vec::new(),
            label: Vec::new(),
            read: 0,
        }
    }

    fn open(&mut self, pair: &'a Pair) -> Result<(), IngestError> {
        self.x = match self.pass {
            Pass::All | Pass::Problems => Some(Stream::open(&pair.x)?),
            Pass::Labels => None,
        };
        self.y = pair.y.as_ref().map(Stream::open).transpose()?;
        self.is_open = true;
        Ok(())
    }
}

impl Rows for ArrayRows<'_> {
    fn advance(&mut self) -> Result<bool, IngestError> {
        loop {
            if !self.is_open {
                let Some(pair) = self.pairs.next() else { return Ok(false) };
                self.open(pair)?;
            }
            let mut is_row = false;
            if let Some(x) = &mut self.x
                && x.advance()?
            {
                is_row = true;
                self.read += x.array.stride();
                self.numbers.clear();
                x.numbers(&mut self.numbers)?;
                if self.channels == Channels::Last {
                    channels_first(&x.array.shape, &self.numbers, &mut self.transposed);
                    std::mem::swap(&mut self.numbers, &mut self.transposed);
                }
                debug_assert_eq!(self.numbers.len(), self.width);
            }
            if let Some(y) = &mut self.y
                && y.advance()?
            {
                is_row = true;
                self.read += y.array.stride();
                y.label(&mut self.label)?;
            }
            if is_row {
                return Ok(true);
            }
            self.is_open = false;
        }
    }

    fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    fn label(&self) -> &[u8] {
        &self.label
    }

    fn label_place(&self) -> Place {
        self.y.as_ref().map_or_else(|| Place::of(""), |y| y.place(""))
    }

    fn bytes_read(&self) -> u64 {
        self.read
    }
}

/// Transposes `[height, width, channels]` to `[channels, height, width]`.
fn channels_first(shape: &[u64], from: &[f32], into: &mut Vec<f32>) {
    into.clear();
    let channels = match shape {
        [_, _, _, channels] => to_usize(*channels).max(1),
        _ => 1,
    };
    for channel in 0..channels {
        into.extend(from.iter().skip(channel).step_by(channels));
    }
}

/// One array, row by row.
struct Stream<'a> {
    array: &'a Array,
    stream: BufReader<Box<dyn Read + Send>>,
    ends: bool,
    /// Rows read.
    rows: u64,
    row: Vec<u8>,
}

impl<'a> Stream<'a> {
    fn open(array: &'a Array) -> Result<Self, IngestError> {
        let (stream, ends) = array.open()?;
        let stream = BufReader::with_capacity(READ_BUFFER, stream);
        // The shape was found to be small enough when the array was.
        let row = vec![0; to_usize(array.stride())];
        Ok(Self { array, stream, ends, rows: 0, row })
    }

    /// Reads the next row; `false` after the last one, once it is certain that nothing follows.
    fn advance(&mut self) -> Result<bool, IngestError> {
        if self.rows < self.array.rows() {
            self.stream.read_exact(&mut self.row).map_err(|error| self.failed(error))?;
            self.rows += 1;
            return Ok(true);
        }
        if self.ends {
            let more = self.stream.read(&mut [0]).map_err(|error| self.failed(error))?;
            if more > 0 {
                return Err(self.array.refuse(Problem::MoreData { rows: self.rows }));
            }
            self.ends = false;
        }
        Ok(false)
    }

    fn failed(&self, error: io::Error) -> IngestError {
        if error.raw_os_error().is_some() {
            return self.array.file.failed(error);
        }
        let (row, rows, reason) = (self.rows, self.array.rows(), error.to_string());
        self.array.refuse(Problem::CutOff { row, rows, reason })
    }

    fn numbers(&self, into: &mut Vec<f32>) -> Result<(), IngestError> {
        self.array.encoding.numbers(&self.row, into).map_err(|(index, problem)| {
            let mut at = String::new();
            let mut rest = to_u64(index);
            for side in self.array.shape.iter().skip(1).rev() {
                let side = (*side).max(1);
                at = format!(", {}{at}", rest % side);
                rest /= side;
            }
            self.place(&at).refuse(problem)
        })
    }

    fn label(&self, into: &mut Vec<u8>) -> Result<(), IngestError> {
        let label = self.array.encoding.label(&self.row, into);
        label.map_err(|problem| self.place("").refuse(problem))
    }

    /// The place of the last row, counted from 0 as in NumPy; `at` is the index within the row.
    fn place(&self, at: &str) -> Place {
        let row = self.rows.saturating_sub(1);
        let element = format!("{}[{row}{at}]", self.array.name);
        Place { element: Some(element), ..self.array.place() }
    }
}
