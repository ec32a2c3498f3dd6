//! The columns that a model's predictions read.

use crate::cli::{model::model_file::Model, terminal::exit::Failure};
use sojourn_graph::Graph;
use sojourn_protocol::{column::Column, error::error_chain};
use std::collections::BTreeSet;

/// Why a model can't predict that says nothing of it.
const NO_PREDICT: &str = "the model's code says nothing of predictions: it has no `predict`";

/// The model's columns, as rows to predict have them.
pub(super) fn columns(model: &Model) -> Vec<Column> {
    let window = model.description.architecture.window();
    model.description.columns.iter().map(|column| taken(column, window)).collect()
}

/// The model's columns that its predictions read.
pub(super) fn wanted(model: &Model, columns: &[Column]) -> Result<Vec<Column>, Failure> {
    let lacks = || Failure::work(NO_PREDICT);
    let file = model.graph.as_deref().ok_or_else(lacks)?;
    let graph = Graph::read(file).map_err(|error| {
        Failure::call(format!("the model's graph can't be read: {}", error_chain(&error)))
    })?;
    let read = graph.predicted_columns().ok_or_else(lacks)?;
    let read: BTreeSet<&str> = read.into_iter().map(|column| column.name.as_str()).collect();
    Ok(of_names(columns, &read).cloned().collect())
}

/// The columns that a graph reads by these names: a column's own, or that of its rows' lengths.
fn of_names<'a>(
    columns: &'a [Column],
    read: &'a BTreeSet<&str>,
) -> impl Iterator<Item = &'a Column> {
    columns.iter().filter(|column| {
        let length = column.length_name();
        read.contains(column.name.as_str())
            || length.is_some_and(|length| read.contains(length.as_str()))
    })
}

/// The column as rows to predict have it: of text, windows are those of the trial.
fn taken(column: &Column, window: Option<u32>) -> Column {
    match window.filter(|_| column.windows) {
        Some(_) => Column { shape: column.batch_shape(window), ..column.clone() },
        None => column.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::dtype::Dtype;

    fn column(name: &str, longest: Option<u32>) -> Column {
        Column {
            name: name.into(),
            dtype: Dtype::U8,
            shape: Vec::new(),
            longest,
            values: None,
            classes: Vec::new(),
            windows: false,
        }
    }

    #[test]
    fn a_column_is_read_where_its_lengths_are() {
        let columns = [column("label", None), column("text", Some(4)), column("title", Some(4))];
        let names = |read: &[&str]| -> Vec<String> {
            let read = read.iter().copied().collect();
            of_names(&columns, &read).map(|column| column.name.clone()).collect()
        };
        assert_eq!(names(&["text"]), ["text"]);
        assert_eq!(names(&["text_length", "title"]), ["text", "title"]);
        assert_eq!(names(&["label_length"]), [""; 0]);
    }

    #[test]
    fn windows_of_text_are_those_of_the_trial() {
        let tokens = Column { shape: vec![129], windows: true, ..column("tokens", None) };
        let taken_tokens = taken(&tokens, Some(64));
        assert_eq!((taken_tokens.shape.as_slice(), taken_tokens.windows), (&[65][..], true));
        assert_eq!(taken(&column("x", Some(7)), Some(64)), column("x", Some(7)));
    }
}
