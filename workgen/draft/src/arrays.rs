//! A job over arrays.

use crate::{
    Draft, LabelKind, Wishes,
    job::{JobText, Length},
    label::Guess,
    number::quoted,
    table::{models, search, training},
};
use sojourn_ingest::{ArrayProfile, Elements};
use sojourn_protocol::spec::FileKind;

/// Names of arrays of labels, the usual ones first.
const LABELS: [&str; 7] = ["y", "label", "labels", "target", "targets", "y_train", "train_labels"];

/// Makes a job file for the arrays of a file.
pub(crate) fn draft(
    format: FileKind,
    arrays: &[ArrayProfile],
    wishes: Wishes<'_>,
) -> Result<Draft, Vec<String>> {
    let has_names = matches!(format, FileKind::Npz | FileKind::Hdf5 | FileKind::Safetensors);
    if format == FileKind::Npy {
        return Err(vec![
            "an NPY file holds no labels: put both arrays into one file, `numpy.savez(\"data.npz\", x=x, y=y)`".to_owned(),
        ]);
    }
    if wishes.label.is_some() && !has_names {
        return Err(vec![
            "the labels lie in the file beside the images: there is no array to name".to_owned(),
        ]);
    }
    let label = if has_names { Some(label(arrays, wishes.label)?) } else { None };
    let rows_of = |array: &ArrayProfile| array.shape.first().copied().unwrap_or(0);
    let wanted = label.map(rows_of);
    let features = arrays
        .iter()
        .filter(|array| Some(array.name.as_str()) != label.map(|label| label.name.as_str()))
        .filter(|array| array.elements != Elements::Words && !array.shape.is_empty())
        .filter(|array| wanted.is_none_or(|rows| rows_of(array) == rows))
        .max_by_key(|array| array.shape.iter().product::<u64>());
    let Some(features) = features else {
        return Err(vec![format!(
            "no array of numbers has as many rows as the labels: {}",
            listed(arrays)
        )]);
    };
    let found = match label.map(|label| label.elements) {
        Some(Elements::Floats) => LabelKind::Numbers,
        _ => LabelKind::Classes,
    };
    let labels = wishes.labels.unwrap_or(found);
    let rows = rows_of(features);
    let image = image(features);
    let mut remarks = vec![format!(
        "`{}` of shape {:?} is taken for the rows{}",
        features.name,
        features.shape,
        label.map_or_else(String::new, |label| format!(", `{}` for their labels", label.name))
    )];
    if labels == LabelKind::Classes && label.is_some_and(|label| label.elements == Elements::Whole)
    {
        remarks.push(
            "whole numbers as labels are classes; `loss = \"mse\"` with `metric = \"valid/rmse\"` predicts them as numbers (`--labels numbers` writes both)"
                .to_owned(),
        );
    }
    let mut job = JobText::new(wishes.name);
    job.section("[data]");
    job.line(format_args!("train = {}", quoted(wishes.train)));
    if has_names && features.name != "x" {
        job.line(format_args!("features = {}", quoted(&features.name)));
    }
    if let Some(label) = label.filter(|label| label.name != "y") {
        job.line(format_args!("label = {}", quoted(&label.name)));
    }
    if image == Some(Channels::Last) {
        job.line(format_args!(
            "channels = \"last\"              # rows are [height, width, channels]"
        ));
    }
    job.line(format_args!("scale = \"standard\""));
    job.line(format_args!(
        "valid = 0.2                    # a share of the rows, by which trials are compared"
    ));
    if image.is_some() {
        let length = Length::of_images(rows);
        job.line(format_args!("\n[[model]]\narch = \"mlp\"\nhidden = [128]"));
        job.line(format_args!(
            "\n[[model]]\narch = \"cnn\"\nchannels = {{ choice = [[16, 32], [32, 64]] }}"
        ));
        training(&mut job, length, labels, "name = \"adamw\", lr = { choice = [0.0005, 0.002] }");
        search(&mut job, length, labels);
    } else {
        models(&mut job, rows, labels);
    }
    let label = label.filter(|_| wishes.label.is_none());
    let label =
        label.map(|label| Guess { column: label.name.clone(), because: "by its name or shape" });
    Ok(Draft { job: job.finish(), files: Vec::new(), label, columns: Vec::new(), remarks })
}

/// The array of the labels: one number or word for each row.
fn label<'a>(
    arrays: &'a [ArrayProfile],
    said: Option<&str>,
) -> Result<&'a ArrayProfile, Vec<String>> {
    let can_be = |array: &&ArrayProfile| matches!(array.shape.as_slice(), [_] | [_, 1]);
    if let Some(said) = said {
        let Some(array) = arrays.iter().find(|array| array.name == said) else {
            return Err(vec![format!("there is no array `{said}`; there are {}", listed(arrays))]);
        };
        return Some(array).filter(can_be).ok_or_else(|| {
            vec![format!("`{said}` has the shape {:?}; labels are one for each row", array.shape)]
        });
    }
    let named = |name: &&str| arrays.iter().filter(can_be).find(|array| array.name == *name);
    LABELS
        .iter()
        .find_map(named)
        .or_else(|| arrays.iter().find(can_be))
        .ok_or_else(|| vec![format!("no array has one label for each row: {}", listed(arrays))])
}

fn listed(arrays: &[ArrayProfile]) -> String {
    let arrays = arrays.iter().map(|array| format!("`{}` {:?}", array.name, array.shape));
    arrays.collect::<Vec<_>>().join(", ")
}

/// Where the channels of images are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Channels {
    First,
    Last,
}

/// Are the rows of an array images?
fn image(array: &ArrayProfile) -> Option<Channels> {
    match array.shape.as_slice() {
        [_, height, width] if *height >= 8 && *width >= 8 => Some(Channels::First),
        [_, 1..=4, height, width] if *height >= 8 && *width >= 8 => Some(Channels::First),
        [_, height, width, 1..=4] if *height >= 8 && *width >= 8 => Some(Channels::Last),
        _ => None,
    }
}
