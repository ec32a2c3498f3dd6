//! Predictions as CSV.

use crate::cli::{
    model::predict::score::{best, softmax},
    render::csv_cell::cell,
    terminal::exit::Failure,
};
use csv::{ErrorKind, Writer};
use sojourn_protocol::manifest::Labels;
use std::{
    io::{self, Write},
    iter::once,
};

/// The table: `row`, counted from 1, `file` where each row is one, `prediction`, and for classes `p_<class>` for each.
pub(super) struct Table<'a, W: Write> {
    writer: Writer<W>,
    labels: &'a Labels,
    rows: u64,
}

impl<'a, W: Write> Table<'a, W> {
    /// A table without rows. The header is written with the first, or at the end.
    pub(super) fn new(sink: W, labels: &'a Labels) -> Self {
        Self { writer: Writer::from_writer(sink), labels, rows: 0 }
    }

    fn header(&mut self, file: Option<&str>) -> Result<(), Failure> {
        let classes: &[String] = match self.labels {
            Labels::Classes(names) => names,
            Labels::Number | Labels::None => &[],
        };
        let file = file.map(|_| "file");
        let names = once("row").chain(file).chain(once("prediction")).map(str::to_owned);
        put(&mut self.writer, names.chain(classes.iter().map(|name| format!("p_{name}"))))
    }

    /// Writes a row's line from its outputs. The file that it is, is given for all rows or for none.
    pub(super) fn write(&mut self, outputs: &[f32], file: Option<&str>) -> Result<(), Failure> {
        if self.rows == 0 {
            self.header(file)?;
        }
        self.rows += 1;
        let row = self.rows.to_string();
        let (prediction, ratios) = match self.labels {
            Labels::Number | Labels::None => {
                (outputs.first().copied().map(number).unwrap_or_default(), Vec::new())
            }
            Labels::Classes(names) => {
                let name = names.get(best(outputs)).cloned().unwrap_or_default();
                #[expect(clippy::cast_possible_truncation, reason = "as exact as the outputs are")]
                let ratios = softmax(outputs).into_iter().map(|ratio| number(ratio as f32));
                (name, ratios.collect())
            }
        };
        let begin = once(row).chain(file.map(str::to_owned)).chain(once(prediction));
        put(&mut self.writer, begin.chain(ratios))
    }

    /// Writes what is left; how many rows there were.
    pub(super) fn finish(mut self) -> Result<u64, Failure> {
        if self.rows == 0 {
            self.header(None)?;
        }
        self.writer.flush().map_err(|error| Failure::output(&error))?;
        Ok(self.rows)
    }
}

/// Writes a line, in which no text is a formula.
pub(super) fn put<W: Write>(
    writer: &mut Writer<W>,
    fields: impl Iterator<Item = String>,
) -> Result<(), Failure> {
    let cells = fields.map(|field| cell(&field).into_owned());
    writer.write_record(cells).map_err(|error| match error.into_kind() {
        ErrorKind::Io(error) => Failure::output(&error),
        other => Failure::output(&io::Error::other(format!("{other:?}"))),
    })
}

/// The shortest text that reads as this number again.
pub(super) fn number(value: f32) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(labels: &Labels, rows: &[&[f32]]) -> String {
        let mut sink = Vec::new();
        let mut table = Table::new(&mut sink, labels);
        rows.iter().for_each(|row| table.write(row, None).unwrap());
        assert_eq!(table.finish().unwrap(), rows.len() as u64);
        String::from_utf8(sink).unwrap()
    }

    #[test]
    fn classes_have_their_probabilities_and_numbers_themselves() {
        let classes = Labels::Classes(vec!["a".into(), "b, or \"c\"".into()]);
        assert_eq!(
            written(&classes, &[&[0.0, 0.0], &[-1e9, 5.0]]),
            "row,prediction,p_a,\"p_b, or \"\"c\"\"\"\n1,a,0.5,0.5\n2,\"b, or \"\"c\"\"\",0.0,1.0\n"
        );
        let numbers = written(&Labels::Number, &[&[1.5], &[-3e-12], &[f32::NAN]]);
        assert_eq!(numbers, "row,prediction\n1,1.5\n2,-3e-12\n3,NaN\n");
        assert_eq!(written(&Labels::Number, &[]), "row,prediction\n");
        let formulas = Labels::Classes(vec!["=1+1".into(), "-0.5".into(), "+a".into()]);
        assert_eq!(
            written(&formulas, &[&[9e9, 0.0, 0.0], &[0.0, 9e9, 0.0]]),
            "row,prediction,p_=1+1,p_-0.5,p_+a\n1,'=1+1,1.0,0.0,0.0\n2,-0.5,0.0,1.0,0.0\n"
        );
    }
}
