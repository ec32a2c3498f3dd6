//! `init` of a `[[model]]`: its trials start from an exported model.

use super::{
    model::{self, ARCHS},
    reader::{Node, Section},
    search::Method,
};
use crate::{
    digest::BlobRef,
    spec::{Architecture, Init, ModelSpace, Scale},
};

/// What is in a model file that an `init` names.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenModel {
    /// Its architecture.
    pub architecture: Architecture,
    /// Its parameters and buffers, as a blob.
    pub parameters: BlobRef,
    /// How its features were scaled: anything but [`Scale::Standard`].
    pub scale: Scale,
}

/// Opens the model file of an `init`, by its path in the job file.
pub type OpenModel<'a> = dyn FnMut(&str) -> Result<GivenModel, String> + 'a;

/// One `[[model]]`.
pub(super) struct Model {
    space: ModelSpace,
    given: Option<(String, GivenModel)>,
}

/// Reads one `[[model]]`, from its file where it names one. `shape` is the shape of a row, where
/// `[data]` could be read.
pub(super) fn read(
    node: &Node<'_>,
    method: Option<Method>,
    shape: Option<Option<&[u32]>>,
    open: &mut OpenModel<'_>,
) -> Option<Model> {
    let section = node.section()?;
    let Some(init) = section.optional("init") else {
        return Some(Model { space: model::space(section, method, shape)?, given: None });
    };
    let file = init.string("the path of a model file, as `sojourn export` writes it,")?;
    let given = match open(file) {
        Ok(given) => given,
        Err(why) => return init.refuse(why),
    };
    let found = ModelSpace::from(given.architecture.clone());
    let name = given.architecture.name();
    let agrees = match section.optional("arch") {
        None if section.has_only(&["init"]) => true,
        Some(arch) if section.has_only(&["init", "arch"]) => {
            arch.word(ARCHS)?;
            arch.as_string() == Some(name)
        }
        _ => model::space(section, method, shape)? == found,
    };
    if !agrees {
        return init.refuse(format!(
            "is `\"{file}\"`, a `{name}` that isn't the model which the other keys say: leave them out"
        ));
    }
    Some(Model { space: found, given: Some((file.to_owned(), given)) })
}

/// The spaces, and what starts from a file.
pub(super) fn split(models: Vec<Model>) -> (Vec<ModelSpace>, Vec<Init>) {
    let mut init = Vec::new();
    let spaces = (0u32..).zip(models).map(|(model, Model { space, given })| {
        init.extend(given.map(|(file, given)| Init { model, file, parameters: given.parameters }));
        space
    });
    (spaces.collect(), init)
}

/// The scaling that goes with the models that start from files: [`Scale::None`] where none does. To be
/// asked where the job says nothing of its own.
pub(super) fn scale(root: &Section<'_>, models: &[Model]) -> Option<Scale> {
    let mut found: Option<(&str, Scale)> = None;
    for (index, model) in models.iter().enumerate() {
        let Some((file, given)) = &model.given else { continue };
        match found {
            None => found = Some((file.as_str(), given.scale)),
            Some((_, scale)) if scale == given.scale => {}
            Some((first, _)) => {
                let text = format!(
                    "is `\"{file}\"`, which scales its features otherwise than `\"{first}\"`; say which way with `data.scale`"
                );
                let tables = root.optional("model")?.list("tables")?;
                return tables.get(index)?.peek()?.refuse("init", text);
            }
        }
    }
    Some(found.map_or(Scale::None, |(_, scale)| scale))
}
