//! Predictions as CSV.

use crate::cli::{
    model::predict::score::{best, softmax},
    terminal::exit::Failure,
};
use csv::{ErrorKind, Writer};
use sojourn_protocol::manifest::Labels;
use std::io::{self, Write};

/// The table: `row`, counted from 1, `prediction`, and for classes `p_<class>` for each.
pub(super) struct Table<'a, W: Write> {
    writer: Writer<W>,
    labels: &'a Labels,
    rows: u64,
}

impl<'a, W: Write> Table<'a, W> {
    /// Writes the header.
    pub(super) fn new(sink: W, labels: &'a Labels) -> Result<Self, Failure> {
        let mut table = Self { writer: Writer::from_writer(sink), labels, rows: 0 };
        let mut header = vec!["row".to_owned(), "prediction".to_owned()];
        if let Labels::Classes(names) = labels {
            header.extend(names.iter().map(|name| format!("p_{name}")));
        }
        put(&mut table.writer, header.into_iter())?;
        Ok(table)
    }

    /// Writes a row's line from its outputs.
    pub(super) fn write(&mut self, outputs: &[f32]) -> Result<(), Failure> {
        self.rows += 1;
        let row = self.rows.to_string();
        let (prediction, shares) = match self.labels {
            Labels::Number | Labels::None => {
                (outputs.first().copied().map(number).unwrap_or_default(), Vec::new())
            }
            Labels::Classes(names) => {
                let name = names.get(best(outputs)).cloned().unwrap_or_default();
                #[expect(clippy::cast_possible_truncation, reason = "as exact as the outputs are")]
                let shares = softmax(outputs).into_iter().map(|share| number(share as f32));
                (name, shares.collect())
            }
        };
        put(&mut self.writer, [row, prediction].into_iter().chain(shares))
    }

    /// Writes what is left; how many rows there were.
    pub(super) fn finish(mut self) -> Result<u64, Failure> {
        self.writer.flush().map_err(|error| Failure::output(&error))?;
        Ok(self.rows)
    }
}

/// Writes a line.
pub(super) fn put<W: Write>(
    writer: &mut Writer<W>,
    fields: impl Iterator<Item = String>,
) -> Result<(), Failure> {
    writer.write_record(fields.collect::<Vec<_>>()).map_err(|error| match error.into_kind() {
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
        let mut table = Table::new(&mut sink, labels).unwrap();
        rows.iter().for_each(|row| table.write(row).unwrap());
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
    }
}
