//! Initial weights: the models that a job starts from, the check that they fit its data, and their blobs.

use crate::cli::{
    model::model_file::blob,
    submit::jobfile::Job,
    terminal::{exit::Failure, output},
};
use sojourn_protocol::{
    digest::Digest,
    manifest::Labels,
    spec::{Categories, Coding, Init, Scale},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Refuses models that can't be trained on this data, and remarks on those that were trained on other data.
pub(crate) fn check(
    job: &Job,
    shape: &[u32],
    labels: &Labels,
    features: &[String],
    categories: &[Categories],
) -> Result<(), Failure> {
    for Init { model, file, .. } in &job.spec.init {
        let Some(given) = job.given.get(file) else { continue };
        let given = &given.description;
        let name = format!("`model[{model}].init` (`{file}`)");
        if given.shape != shape {
            let is = &given.shape;
            return Err(Failure::call(format!(
                "{name} takes rows of shape {is:?}, those of the data have {shape:?}"
            )));
        }
        let named = !given.features.is_empty() && !features.is_empty();
        if named && given.features != features {
            let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
            if sorted(&given.features) == sorted(features) {
                return Err(Failure::call(format!(
                    "{name} was trained on the data's features in another order of columns"
                )));
            }
            output::remark(&format!("{name} was trained on features of other names"));
        }
        if named && let Some(why) = other_words(&given.categories, categories) {
            return Err(Failure::call(format!("{name} {why}")));
        }
        match (&given.labels, labels) {
            (Labels::Classes(theirs), Labels::Classes(ours)) if theirs.len() != ours.len() => {
                let (theirs, ours) = (theirs.len(), ours.len());
                return Err(Failure::call(format!(
                    "{name} tells {theirs} classes apart, the data has {ours}"
                )));
            }
            (theirs, ours) if kind(theirs) != kind(ours) => {
                return Err(Failure::call(format!(
                    "{name} was trained on {}, the job's labels are {}",
                    kind(&given.labels),
                    kind(labels)
                )));
            }
            (theirs, ours) if theirs != ours => {
                output::remark(&format!(
                    "{name} was trained on classes of other names; each of its outputs becomes the class of the same place"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The complaint about a column that was words for the model and isn't for the job, or others, or the other way round: the same
/// numbers would mean something else.
fn other_words(theirs: &[Categories], ours: &[Categories]) -> Option<String> {
    let of = |all: &[Categories], column: &str| -> Option<(Coding, Vec<String>)> {
        let found = all.iter().find(|coded| coded.column == column)?;
        Some((found.coding, found.words.clone()))
    };
    let differs = |coded: &&Categories| of(theirs, &coded.column) != of(ours, &coded.column);
    let column = &theirs.iter().chain(ours).find(differs)?.column;
    let Some((coding, words)) = of(theirs, column) else {
        return Some(format!(
            "was trained on the numbers of column `{column}`, which `data.categories` takes as words"
        ));
    };
    let coding = match coding {
        Coding::OneHot => "one-hot",
        Coding::Ordinal => "ordinal",
    };
    let words = some_words(&words);
    Some(format!(
        "was trained on other words of column `{column}`; give its own in `data.categories`, in this order: \
         {{ {coding} = {words} }}"
    ))
}

/// Words for a message, as a list of TOML: the first ones.
fn some_words(words: &[String]) -> String {
    const SHOWN: usize = 20;
    let quoted = |word: &String| format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""));
    let shown: Vec<String> = words.iter().take(SHOWN).map(quoted).collect();
    let more = if words.len() > SHOWN { ", ..." } else { "" };
    format!("[{}{more}]", shown.join(", "))
}

fn kind(labels: &Labels) -> &'static str {
    match labels {
        Labels::Classes(_) => "classes",
        Labels::Number => "numbers",
        Labels::None => "columns by name",
    }
}

/// Writes the blobs that the job takes from its models into a folder.
pub(crate) fn write(job: &Job, folder: &Path) -> Result<BTreeMap<Digest, PathBuf>, Failure> {
    let mut files = BTreeMap::new();
    let mut put = |bytes: &[u8]| -> Result<(), Failure> {
        let digest = blob(bytes).sha256;
        let path = folder.join(digest.to_string());
        fs::write(&path, bytes)
            .map_err(|error| Failure::work(format!("can't write `{}`: {error}", path.display())))?;
        files.insert(digest, path);
        Ok(())
    };
    for given in job.spec.init.iter().filter_map(|init| job.given.get(&init.file)) {
        put(&given.parameters)?;
        given.graph.as_deref().map(&mut put).transpose()?;
        if let (Some(scaling), Scale::Given(wanted)) = (&given.scaling, job.spec.data.scale)
            && blob(scaling) == wanted
        {
            put(scaling)?;
        }
    }
    Ok(files)
}
