//! `job.toml` to [`JobSpec`]: reads, fills in defaults, and refuses with line, key and nearest word.
//!
//! The reader walks `toml`'s spanned tables by hand instead of through `serde`, because a message
//! that a person can act on needs the line of the value, the whole path of the key, what was there
//! and what is wanted; and because it goes on after a problem and reports all of them at once. No
//! I/O: the caller reads the file and puts its name before each line number.
//!
//! | file | reads |
//! |---|---|
//! | `reader` | any table and value: types, unknown keys, the collected problems |
//! | `dimension` | a plain value, `{ choice = … }`, `{ uniform = … }`, `{ log_uniform = … }`, `{ int = … }` |
//! | `data`, `model`, `training`, `search` | the tables of those names (`search` also `[placement]`) |
//! | `vocabulary` | every key there is, and the nearest word to a mistyped one |

mod data;
mod dimension;
mod error;
mod model;
mod reader;
mod search;
mod training;
mod vocabulary;

pub use error::{JobFileError, Problem};
pub use vocabulary::nearest;

use crate::spec::JobSpec;
use reader::{Problems, Section};
use toml::de::DeTable;

/// Reads a job file's text.
///
/// # Errors
/// Every problem that was found, in the order of their lines.
pub fn parse(text: &str) -> Result<JobSpec, JobFileError> {
    let problems = Problems::new(text);
    let (root, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        let start = error.span().map_or(0, |span| span.start);
        problems.add(start, "", format!("no valid TOML here: {}", error.message()));
    }
    // What follows a syntax error is guesswork; report that alone.
    let spec = if syntax.is_empty() { read(root.get_ref(), &problems) } else { None };
    match (spec, problems.into_error()) {
        (Some(spec), None) => Ok(spec),
        (_, Some(error)) => Err(error),
        (None, None) => Err(JobFileError::unexplained()),
    }
}

/// Reads all tables; `None` only after a problem was reported.
fn read(root: &DeTable<'_>, problems: &Problems<'_>) -> Option<JobSpec> {
    let root = Section::root(root, problems);
    let name = root.required("name", "a name for people").and_then(|node| data::name(&node));
    let seed = root.optional("seed").map_or(Some(0), |node| node.integer(0, u64::MAX));
    let search_node = root.optional("search");
    let method = search::method(search_node.as_ref());
    let data = root.required_section("data").and_then(|section| data::read(&section));
    let shape = data.as_ref().and_then(|data| data.shape.as_deref());
    let models = model::read(&root, method, data.is_some().then_some(shape));
    let training = root
        .required_section("training")
        .and_then(|section| training::read(&section, method, data.is_some().then_some(shape)));
    let loss = training.as_ref().map(|training| training.loss);
    let search = search::read(search_node.as_ref(), method, loss);
    let placement = search::placement(&root);
    Some(JobSpec {
        name: name?,
        seed: seed?,
        data: data?,
        models: models?,
        training: training?,
        search: search?,
        placement: placement?,
    })
}

#[cfg(test)]
mod tests;
