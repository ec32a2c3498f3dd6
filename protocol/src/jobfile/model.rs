//! `[[model]]`: the architectures and their own dimensions.

use super::{
    dimension::{self, Bounds},
    reader::{Node, Section},
    search::Method,
};
use crate::spec::{Dimension, ModelSpace};

#[derive(Clone, Copy)]
enum Arch {
    Mlp,
    Cnn,
}

/// Reads every `[[model]]`. `shape` is the shape of a row, where `[data]` could be read.
pub(super) fn read(
    root: &Section<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
) -> Option<Vec<ModelSpace>> {
    let node = root.required("model", "at least one `[[model]]` table")?;
    if node.is_table() {
        return node
            .refuse("is one table; write `[[model]]`, with two brackets, for each architecture");
    }
    let tables = node.list("a list of tables, each begun by `[[model]]`,")?;
    if tables.is_empty() {
        return node.refuse("is empty; at least one `[[model]]` table is wanted");
    }
    let models: Vec<Option<ModelSpace>> =
        tables.iter().map(|table| model(table, method, shape)).collect();
    models.into_iter().collect()
}

fn model(
    node: &Node<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
) -> Option<ModelSpace> {
    let section = node.section()?;
    let arch = section
        .required("arch", "`mlp` or `cnn`")?
        .word(&[("mlp", Arch::Mlp), ("cnn", Arch::Cnn)])?;
    match arch {
        Arch::Mlp => {
            foreign(&section, "channels", "cnn")?;
            let what = "the units of each hidden layer, e.g. `[64]`";
            let hidden = section.required("hidden", what)?;
            Some(ModelSpace::Mlp { hidden: dimension::read(&hidden, Bounds::AtLeastOne, method)? })
        }
        Arch::Cnn => {
            foreign(&section, "hidden", "mlp")?;
            let what = "the channels of each convolution, e.g. `[16, 32]`";
            let node = section.required("channels", what)?;
            let channels: Dimension<Vec<u32>> = dimension::read(&node, Bounds::AtLeastOne, method)?;
            let empty = match &channels {
                Dimension::Fixed(value) => value.is_empty(),
                Dimension::Choice(values) => values.iter().any(Vec::is_empty),
                Dimension::Range(_) => false,
            };
            if empty {
                return node.refuse("has an empty list; a `cnn` needs at least one convolution");
            }
            if let Some(shape) = shape
                && shape.is_none_or(|shape| shape.len() != 3)
            {
                return section.refuse(
                    "arch",
                    "is `\"cnn\"`, which needs `data.shape = [channels, height, width]`".to_owned(),
                );
            }
            Some(ModelSpace::Cnn { channels })
        }
    }
}

fn foreign(section: &Section<'_>, key: &str, arch: &str) -> Option<()> {
    match section.optional(key) {
        None => Some(()),
        Some(node) => node.refuse(format!("is a key of `arch = \"{arch}\"`")),
    }
}
