//! All outputs of each row as CSV.

use crate::cli::{
    model::predict::{
        score::best,
        table::{number, put},
    },
    terminal::exit::Failure,
};
use csv::Writer;
use sojourn_protocol::column::Column;
use std::{io::Write, iter::once};

/// The table: `row`, counted from 1, and its outputs. Where these are as many as the data has classes, they are named by them,
/// and `prediction` is the class of the largest.
pub(super) struct OutputTable<'a, W: Write> {
    writer: Writer<W>,
    classes: Option<&'a [String]>,
    rows: u64,
}

impl<'a, W: Write> OutputTable<'a, W> {
    /// A table for outputs of a model over these columns. The header is written with the first row.
    pub(super) fn new(sink: W, columns: &'a [Column]) -> Self {
        Self { writer: Writer::from_writer(sink), classes: classes(columns), rows: 0 }
    }

    /// Writes a row's line. All rows have as many outputs.
    pub(super) fn write(&mut self, outputs: &[f32]) -> Result<(), Failure> {
        let classes = self.classes.filter(|classes| classes.len() == outputs.len());
        if self.rows == 0 {
            let prediction = classes.map(|_| "prediction".to_owned());
            let names = (0..outputs.len()).map(|at| match classes.and_then(|of| of.get(at)) {
                Some(class) => format!("output_{class}"),
                None => format!("output_{at}"),
            });
            put(&mut self.writer, once("row".to_owned()).chain(prediction).chain(names))?;
        }
        self.rows += 1;
        let prediction = classes.map(|of| of.get(best(outputs)).cloned().unwrap_or_default());
        let outputs = outputs.iter().copied().map(number);
        put(&mut self.writer, once(self.rows.to_string()).chain(prediction).chain(outputs))
    }

    /// Writes what is left; how many rows there were.
    pub(super) fn finish(mut self) -> Result<u64, Failure> {
        self.writer.flush().map_err(|error| Failure::output(&error))?;
        Ok(self.rows)
    }
}

/// The names of the classes that the data has, where one of its columns alone has any.
fn classes(columns: &[Column]) -> Option<&[String]> {
    let mut named = columns.iter().filter(|column| !column.classes.is_empty());
    match (named.next(), named.next()) {
        (Some(column), None) => Some(&column.classes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::dtype::Dtype;

    fn labels(classes: &[&str]) -> Column {
        Column {
            name: "label".into(),
            dtype: Dtype::I64,
            shape: Vec::new(),
            longest: None,
            values: None,
            classes: classes.iter().map(|class| (*class).to_owned()).collect(),
            windows: false,
        }
    }

    fn written(columns: &[Column], rows: &[&[f32]]) -> String {
        let mut sink = Vec::new();
        let mut table = OutputTable::new(&mut sink, columns);
        rows.iter().for_each(|row| table.write(row).unwrap());
        assert_eq!(table.finish().unwrap(), rows.len() as u64);
        String::from_utf8(sink).unwrap()
    }

    #[test]
    fn outputs_are_named_by_the_classes_of_one_column() {
        let rows: [&[f32]; 2] = [&[0.5, -1e9], &[f32::NAN, 3.0]];
        let plain = "row,output_0,output_1\n1,0.5,-1000000000.0\n2,NaN,3.0\n";
        assert_eq!(
            written(&[labels(&[]), labels(&["a", "b, c"])], &rows),
            "row,prediction,output_a,\"output_b, c\"\n1,a,0.5,-1000000000.0\n2,\"b, c\",NaN,3.0\n"
        );
        let two = [labels(&["a", "b"]), labels(&["c", "d"])];
        for columns in [&[labels(&["a", "b", "c"])][..], &two, &[]] {
            assert_eq!(written(columns, &rows), plain);
        }
        assert_eq!(written(&[], &[]), "");
    }
}
