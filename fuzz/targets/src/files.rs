//! Files that people have: models that `predict` reads, and `client.toml`.

use crate::expect::is_said;
use sojourn_client::limits::{Allowance, Change, Limits};
use sojourn_codec::decode;
use sojourn_model::{
    Lineage,
    portable::{ModelFile, ModelHeader},
    weights_checkpoint,
};
use sojourn_protocol::{error::error_chain, manifest::Scaling, quantity::to_u64};
use std::{fs, path::Path};
use tempfile::TempDir;

/// Reads a model file, and makes of it what `predict` gives to a trainer.
pub(crate) fn model_file(input: &[u8]) -> bool {
    if let Some(prefix) = input.first_chunk()
        && let Err(error) = ModelHeader::bytes(*prefix)
    {
        is_said(&error_chain(&error), input);
    }
    let header = ModelHeader::read(input);
    let model = match ModelFile::read(input) {
        Ok(model) => model,
        Err(error) => {
            is_said(&error_chain(&error), input);
            return false;
        }
    };
    let bytes = header.map(|header| header.file_bytes).ok();
    assert_eq!(bytes, Some(to_u64(input.len())), "the header says another size");
    let (parameters, scaling) = (model.parameters(), model.scaling());
    assert!(parameters.is_ok() && scaling.is_ok(), "{parameters:?} {scaling:?}");
    for blob in parameters.iter().chain(scaling.iter().flatten()) {
        assert!(decode(blob).is_ok(), "a blob that isn't canonical");
    }
    let context = model.description.context(Scaling::None);
    let start = weights_checkpoint(&context, &parameters.unwrap_or_default(), Lineage::initial(0));
    assert!(start.is_ok(), "a model that can't be run: {:?}", start.err());
    true
}

thread_local! {
    static FOLDER: Option<TempDir> = TempDir::new().ok();
}

/// Calls `with` with a folder of this thread.
pub(crate) fn in_folder(with: impl FnOnce(&Path) -> bool) -> bool {
    FOLDER.with(|folder| {
        assert!(folder.is_some(), "there is no folder for temporary files");
        folder.as_ref().is_some_and(|folder| with(folder.path()))
    })
}

/// Reads `client.toml`; lines behind a first NUL are limits that are given by hand.
pub(crate) fn client_toml(input: &[u8]) -> bool {
    let (text, given) = match input.iter().position(|byte| *byte == 0) {
        Some(at) => (input.get(..at), input.get(at + 1..)),
        None => (Some(input), None),
    };
    let given = String::from_utf8_lossy(given.unwrap_or_default());
    let changes: Vec<Change> = given.lines().filter_map(|line| line.parse().ok()).collect();
    in_folder(|folder| {
        let path = folder.join("client.toml");
        let written = fs::write(&path, text.unwrap_or_default());
        assert!(written.is_ok(), "{written:?}");
        match Allowance::read(Some(&path), folder, changes) {
            Ok(allowance) => {
                shows_its_limits(allowance.limits());
                true
            }
            Err(error) => {
                is_said(&error_chain(&error), input);
                false
            }
        }
    })
}

/// Limits go over the control socket, and are shown as they could be written.
fn shows_its_limits(limits: &Limits) {
    let sent = serde_json::to_string(limits);
    assert!(sent.is_ok(), "limits that can't be said: {sent:?}");
    let arrived: Result<Limits, _> = serde_json::from_str(&sent.unwrap_or_default());
    assert!(arrived.as_ref().ok() == Some(limits), "{limits:?} arrives as {arrived:?}");
}
