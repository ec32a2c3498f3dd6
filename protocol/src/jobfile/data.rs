//! `[data]`, and the job's name.

use super::reader::{Node, Section};
use crate::spec::{DataSpec, Scale, Split};

const DEFAULT_VALID: f64 = 0.2;
const DEFAULT_SHARDS: u32 = 4;
const MAX_SHARDS: u32 = 65_536;
const MAX_NAME: usize = 200;

/// The job's name: something that a table can print.
pub(super) fn name(node: &Node<'_>) -> Option<String> {
    let name = node.string("a string")?;
    if name.trim().is_empty() {
        return node.refuse("is empty");
    }
    if name.chars().any(char::is_control) || name.chars().count() > MAX_NAME {
        return node.refuse(format!("must be one line of at most {MAX_NAME} characters"));
    }
    Some(name.to_owned())
}

/// Reads `[data]`.
pub(super) fn read(section: &Section<'_>) -> Option<DataSpec> {
    let train = section
        .required("train", "a CSV file or a folder of CSV files")
        .and_then(|node| path(&node));
    let label = section.required("label", "the name of the label column").and_then(|node| {
        let label = node.string("the name of a column")?;
        if label.is_empty() { node.refuse("is empty") } else { Some(label.to_owned()) }
    });
    let shape = match section.optional("shape") {
        None => Some(None),
        Some(node) => shape(&node).map(Some),
    };
    let scale = section.optional("scale").map_or(Some(Scale::None), |node| scale(&node));
    let valid =
        section.optional("valid").map_or(Some(Split::Share(DEFAULT_VALID)), |node| split(&node));
    let test = match section.optional("test") {
        None => Some(None),
        Some(node) => split(&node).map(Some),
    };
    let shards = section.optional("shards").map_or(Some(DEFAULT_SHARDS), |node| shards(&node));
    if let (Some(Split::Share(valid)), Some(Some(Split::Share(test)))) = (&valid, &test)
        && valid + test >= 1.0
    {
        return section.refuse(
            "test",
            format!(
                "is {test} and `data.valid` is {valid}: together they leave no row to train on"
            ),
        );
    }
    Some(DataSpec {
        train: train?,
        label: label?,
        shape: shape?,
        scale: scale?,
        valid: valid?,
        test: test?,
        shards: shards?,
    })
}

fn path(node: &Node<'_>) -> Option<String> {
    let path = node.string("the path of a CSV file or of a folder of them")?;
    if path.is_empty() {
        return node.refuse("is empty; a path is wanted");
    }
    if path.contains("://") {
        return node.refuse(format!(
            "is `\"{path}\"`; this version reads local files only: download it first"
        ));
    }
    Some(path.to_owned())
}

fn shape(node: &Node<'_>) -> Option<Vec<u32>> {
    let elements = node.list("a list of whole numbers, e.g. `[1, 8, 8]`,")?;
    if elements.is_empty() {
        return node.refuse("is empty; leave it out for a flat vector");
    }
    let sizes: Vec<Option<u32>> =
        elements.iter().map(|element| element.integer(1, u32::MAX)).collect();
    let sizes = sizes.into_iter().collect::<Option<Vec<u32>>>()?;
    if sizes.iter().try_fold(1u32, |product, size| product.checked_mul(*size)).is_none() {
        return node.refuse(format!("has more than {} values", u32::MAX));
    }
    Some(sizes)
}

fn scale(node: &Node<'_>) -> Option<Scale> {
    if node.is_string() {
        return node.word(&[("none", Scale::None), ("standard", Scale::Standard)]);
    }
    if node.is_table() || node.is_list() {
        return node.refuse(format!(
            "is {}; `\"none\"`, `\"standard\"` or a number is wanted",
            node.describe()
        ));
    }
    let factor = node.number()?;
    if factor == 0.0 {
        return node.refuse("is 0, which would make every feature 0");
    }
    Some(Scale::Constant(factor))
}

fn split(node: &Node<'_>) -> Option<Split> {
    if node.is_string() {
        return path(node).map(Split::File);
    }
    if node.is_table() || node.is_list() {
        return node.refuse(format!(
            "is {}; a share above 0 and below 1, or the path of a file is wanted",
            node.describe()
        ));
    }
    let share = node.number()?;
    if share > 0.0 && share < 1.0 {
        return Some(Split::Share(share));
    }
    node.refuse(format!("is {share}; a share above 0 and below 1 is wanted, or the path of a file"))
}

fn shards(node: &Node<'_>) -> Option<u32> {
    if node.as_string() == Some("auto") {
        return node.refuse("is `\"auto\"`, which this version has not got; a number is wanted");
    }
    node.integer(1, MAX_SHARDS)
}
