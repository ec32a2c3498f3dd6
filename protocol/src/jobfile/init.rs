//! `init` of a `[[model]]`: its trials start from an exported model.

use super::{
    method::Method,
    model::{self, ARCHS},
    reader::JobFileNode,
};
use crate::{
    digest::BlobRef,
    spec::{Architecture, Init, ModelSpace, Scale, ScaleLabel},
};
use sojourn_forms::{Node, Table};

/// The contents of a model file that an `init` names.
#[derive(Debug, Clone, PartialEq)]
pub struct InitModel {
    /// The model's architecture.
    pub architecture: Architecture,
    /// The model's parameters and buffers, as a blob.
    pub parameters: BlobRef,
    /// How its features were scaled: anything but [`Scale::Standard`].
    pub scale: Scale,
    /// How its labels were scaled: anything but [`ScaleLabel::Standard`].
    pub scale_label: ScaleLabel,
}

/// Opens the model file of an `init`, by its path in the job file.
pub type OpenModel<'a> = dyn FnMut(&str) -> Result<InitModel, String> + 'a;

/// One `[[model]]`.
pub(super) struct Model {
    space: ModelSpace,
    init: Option<(String, InitModel)>,
}

/// Reads every `[[model]]`. `shape` is the shape of a row, where `[data]` could be read.
pub(super) fn read_all(
    root: &Table<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
    open: &mut OpenModel<'_>,
) -> Option<Vec<Model>> {
    let node = root.required("model", "at least one `[[model]]` table")?;
    if node.is_table() {
        return node
            .refuse("is one table; write `[[model]]`, with two brackets, for each architecture");
    }
    let tables = node.list("a list of tables, each begun by `[[model]]`,")?;
    if tables.is_empty() {
        return node.refuse("is empty; at least one `[[model]]` table is wanted");
    }
    let models: Vec<Option<Model>> =
        tables.iter().map(|table| read(table, method, shape, open)).collect();
    models.into_iter().collect()
}

/// Reads one `[[model]]`, from its file where it names one. `shape` is the shape of a row, where
/// `[data]` could be read.
fn read(
    node: &Node<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
    open: &mut OpenModel<'_>,
) -> Option<Model> {
    // Of a user's own model all other keys are its own.
    let is_graph = node.peek().is_some_and(|section| model::is_graph(&section));
    let section = if is_graph { node.peek() } else { node.section() }?;
    let Some(init) = section.optional("init") else {
        return Some(Model { space: model::space(section, method, shape)?, init: None });
    };
    if let Some(initial) = section.optional("initial") {
        return initial.refuse("can't go with `init`, whose file has the weights to begin with");
    }
    let file = init.string("the path of a model file, as `sojourn export` writes it,")?;
    let init_model = match open(file) {
        Ok(model) => model,
        Err(why) => return init.refuse(why),
    };
    let found = ModelSpace::from(init_model.architecture.clone());
    let name = init_model.architecture.name();
    let agrees = match section.optional("arch") {
        None if section.has_only(&["init"]) => true,
        Some(arch) if section.has_only(&["init", "arch"]) => {
            arch.word(ARCHS)?;
            arch.as_string() == Some(name)
        }
        _ => model::space(section, method, shape)?.is_of(&found),
    };
    if !agrees {
        return init.refuse(format!(
            "is `\"{file}\"`, a `{name}` that isn't the model which the other keys say: leave them out"
        ));
    }
    Some(Model { space: found, init: Some((file.to_owned(), init_model)) })
}

/// Are users' own models among them?
pub(super) fn has_graphs(models: &[Model]) -> bool {
    models.iter().any(|model| matches!(model.space, ModelSpace::Graph(_)))
}

/// The spaces, and what starts from a file.
pub(super) fn split(models: Vec<Model>) -> (Vec<ModelSpace>, Vec<Init>) {
    let mut init = Vec::new();
    let spaces = (0u32..).zip(models).map(|(model, Model { space, init: from })| {
        let from = from.map(|(file, from)| Init { model, file, parameters: from.parameters });
        init.extend(from);
        space
    });
    (spaces.collect(), init)
}

/// The scaling of features that goes with the models that start from files; `Some(None)` where none does. To be asked
/// where the job says nothing of its own.
pub(super) fn scale(root: &Table<'_>, models: &[Model]) -> Option<Option<Scale>> {
    agreed(root, models, |init| init.scale, ("features", "data.scale"))
}

/// The same of labels.
pub(super) fn scale_label(root: &Table<'_>, models: &[Model]) -> Option<Option<ScaleLabel>> {
    agreed(root, models, |init| init.scale_label, ("labels", "data.scale_label"))
}

/// The scaling of `what` that all models that start from files have; else they are refused, and told of `key`.
fn agreed<T: Copy + PartialEq>(
    root: &Table<'_>,
    models: &[Model],
    scaling: fn(&InitModel) -> T,
    (what, key): (&str, &str),
) -> Option<Option<T>> {
    let mut found: Option<(&str, T)> = None;
    for (index, model) in models.iter().enumerate() {
        let Some((file, init)) = &model.init else { continue };
        match found {
            None => found = Some((file.as_str(), scaling(init))),
            Some((_, scale)) if scale == scaling(init) => {}
            Some((first, _)) => {
                let text = format!(
                    "is `\"{file}\"`, which scales its {what} otherwise than `\"{first}\"`; say which way with `{key}`"
                );
                let tables = root.optional("model")?.list("tables")?;
                return tables.get(index)?.peek()?.refuse("init", text);
            }
        }
    }
    Some(found.map(|(_, scale)| scale))
}
