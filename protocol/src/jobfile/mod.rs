//! `job.toml` to [`JobSpec`]: reads, fills in defaults, and refuses with line, key and nearest word.
//!
//! `sojourn_forms` has tables, values and problems. No I/O: the caller reads the file and puts its name before each line number.
//!
//! | file | reads |
//! |---|---|
//! | `reader` | tables, with the keys that the vocabulary has for them |
//! | `element` | one plain value of a key |
//! | `dimension` | a plain value, `{ choice = … }`, ranges, `{ normal = … }` |
//! | `condition` | `when` of a dimension, and formulas |
//! | `data`, `model`, `training`, `search`, `placement` | the tables of those names |
//! | `dates` | `data.dates`: columns of dates |
//! | `dialect` | the keys of `[data]` on how the fields of tables are written |
//! | `merge` | `merge` of `[placement]` |
//! | `init` | `init` of a `[[model]]` |
//! | `vocabulary` | every key there is |

mod categories;
mod condition;
mod cpu_shares;
mod data;
mod data_keys;
mod dates;
mod dialect;
mod dimension;
mod element;
mod error;
mod groups;
mod init;
mod merge;
mod method;
mod model;
mod placement;
mod reader;
mod residency;
mod search;
mod stopping;
mod training;
mod vocabulary;

pub use error::JobFileError;
pub use init::{InitModel, OpenModel};
pub use sojourn_forms::{Problem, nearest};
pub use vocabulary::TABLES;

use crate::{
    quantity::to_usize,
    spec::{DataSpec, JobSpec, Loss, Scale, ScaleLabel, Split},
};
use reader::JobFileNode;
use sojourn_forms::{Node, Table};
use std::collections::BTreeSet;

/// Reads a job file's text, whose models all start from random weights.
///
/// # Errors
/// Every problem that was found, in the order of their lines.
pub fn parse(text: &str) -> Result<JobSpec, JobFileError> {
    parse_with(text, &mut |_| Err("can't be read here".to_owned()))
}

/// Reads a job file's text; `open` gives what there is in the model file that an `init` names, or says
/// why it can't (a text that follows the key: `isn't there`).
///
/// # Errors
/// Every problem that was found, in the order of their lines.
pub fn parse_with(text: &str, open: &mut OpenModel<'_>) -> Result<JobSpec, JobFileError> {
    parse_for(text, None, Conditions::Checked, open)
}

/// Reads a small job file of which single dimensions are taken into another job. Their conditions are of settings of that one, and aren't
/// looked at: see [`JobSpec::check_space`].
///
/// # Errors
/// Every problem that was found, in the order of their lines.
pub fn parse_dimensions(text: &str) -> Result<JobSpec, JobFileError> {
    let conditions = Conditions::OfAnotherJob;
    parse_for(text, None, conditions, &mut |_| Err("can't be read here".to_owned()))
}

/// Reads the text of a job file for a job over the data of an earlier one: `[data]` is that one's, and what the file says there isn't
/// looked at. All models start from random weights.
///
/// # Errors
/// Every problem that was found, in the order of their lines.
pub fn parse_over(text: &str, data: &DataSpec) -> Result<JobSpec, JobFileError> {
    let conditions = Conditions::Checked;
    parse_for(text, Some(data), conditions, &mut |_| Err("can't be read here".to_owned()))
}

/// The job whose settings the conditions of dimensions name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conditions {
    /// The job that is read, which must have them.
    Checked,
    /// Another job.
    OfAnotherJob,
}

/// `given`: the data of an earlier job, which it is for.
fn parse_for(
    text: &str,
    given: Option<&DataSpec>,
    conditions: Conditions,
    open: &mut OpenModel<'_>,
) -> Result<JobSpec, JobFileError> {
    sojourn_forms::read(text, "can't be read as a job", |root| {
        let spec = read(&root, given, open)?;
        match conditions {
            Conditions::Checked => finish(&root, spec),
            Conditions::OfAnotherJob => Some(spec),
        }
    })
    .map_err(JobFileError::new)
}

/// Checks what the tables say together.
fn finish(root: &Table<'_>, mut spec: JobSpec) -> Option<JobSpec> {
    condition::check(root, &spec)?;
    spec.name_distinct_combinations();
    search::check_constraints(root.optional("search").as_ref(), &spec)?;
    Some(spec)
}

/// Reads all tables; `None` only after a problem was reported.
fn read(root: &Table<'_>, given: Option<&DataSpec>, open: &mut OpenModel<'_>) -> Option<JobSpec> {
    root.refuse_unknown(vocabulary::keys(""), "key or table", vocabulary::elsewhere);
    let name = root.required("name", "a name for people").and_then(|node| data::name(&node));
    let seeds = root.optional("seed").map_or(Some(Seeds::One(0)), |node| Seeds::read(&node));
    let search_node = root.optional("search");
    let method = method::method(search_node.as_ref());
    let repeat = search::repeat(search_node.as_ref(), seeds.as_ref());
    let data = match given {
        Some(data) => Some(data.clone()),
        None => root
            .required("data", "a table `[data]`")
            .and_then(|node| node.section())
            .and_then(|section| data::read(&section)),
    };
    let shape = data.as_ref().and_then(data::known_shape);
    let models = init::read_all(root, method, shape, open);
    let own_data = || root.optional("data").filter(|_| given.is_none());
    let says = |key: &str| own_data().and_then(|data| data.peek()?.optional(key));
    let says_scale = given.is_some() || says("scale").is_some();
    let init_scale = models.as_deref().filter(|_| !says_scale).map(|all| init::scale(root, all));
    let has_graphs = models.as_deref().is_some_and(init::has_graphs);
    // A table of which no label is said may have columns by name, and then no shape of rows: that is seen as it is read.
    let has_label = data.as_ref().is_some_and(|data| data.label.is_some());
    let image = shape.filter(|shape| shape.is_some() || has_label || !has_graphs);
    let training = root
        .required("training", "a table `[training]`")
        .and_then(|node| node.section())
        .and_then(|section| training::read(&section, method, image));
    let loss = training.as_ref().map(|training| training.loss);
    let scale_label = match (says("scale_label"), loss) {
        _ if given.is_some() => given.map(|data| data.scale_label),
        (Some(node), loss) => data::scale_label(&node, loss),
        // A graph's loss is its own, in the units of what it gets.
        (None, Some(Loss::Mse)) if has_graphs => Some(ScaleLabel::None),
        (None, Some(Loss::Mse)) => models
            .as_deref()
            .and_then(|models| init::scale_label(root, models))
            .map(|given| given.unwrap_or(ScaleLabel::Standard)),
        (None, _) => Some(ScaleLabel::None),
    };
    if let (Some(node), Some(Loss::Mse)) = (says("stratified"), loss)
        && data.as_ref().is_some_and(|data| data.stratified)
    {
        return node.refuse("needs labels that are classes; `training.loss` is `\"mse\"`");
    }
    let scaled = says("scale_label").filter(|node| node.as_string() == Some("standard"));
    let trains =
        |key: &str| root.optional("training").and_then(|training| training.peek()?.optional(key));
    let class_weights = trains("class_weights").filter(|node| node.as_string() != Some("none"));
    let smoothing = trains("label_smoothing")
        .filter(|_| training.as_ref().is_some_and(|training| !training.label_smoothing.is_zero()));
    if let (true, Some(node)) = (has_graphs, scaled.or(class_weights).or(smoothing)) {
        return node.refuse("can't go with `arch = \"graph\"`, whose loss is the model's own");
    }
    let metrics = search::metrics(root.optional("metrics").as_ref(), has_graphs);
    let own = search::Own { models: has_graphs, metrics };
    let search = search::read(search_node.as_ref(), method, training.as_ref(), &own);
    let placement = placement::read(root);
    data::fits(root, data.as_ref(), placement.as_ref())?;
    let folds = search.as_ref().and_then(|search| search.folds);
    let folded = data::folds(root, data.as_ref(), folds, given.is_some());
    groups::used(root, data.as_ref().filter(|_| given.is_none()), folds)?;
    let mut data = data?;
    folded?;
    if folds.is_some() {
        data.valid = Split::Folds;
        if given.is_none() {
            data.group_folds = folds.filter(|_| data.groups.is_some());
        }
    }
    if let Some(scale) = init_scale {
        data.scale = scale?.unwrap_or(Scale::None);
    }
    data.scale_label = scale_label?;
    let (mut models, init) = init::split(models?);
    if given.is_none() {
        data::fits_models(root, &mut models, method)?;
    }
    Some(JobSpec {
        name: name?,
        seed: seeds.as_ref()?.first(),
        seeds: seeds?.repeated(repeat?),
        data,
        models,
        init,
        training: training?,
        search: search?,
        placement: placement?,
    })
}

/// `seed`: a number, or several to train each configuration with.
enum Seeds {
    One(u64),
    Several(u64, Vec<u64>),
}

impl Seeds {
    fn read(node: &Node<'_>) -> Option<Self> {
        if !node.is_table() {
            return node.integer(0, u64::MAX).map(Self::One);
        }
        let section = node.section_of(&["choice"])?;
        let node = section.required("choice", "a list of seeds")?;
        let values = node.list("a list of seeds")?;
        let (mut seeds, mut seen) = (Vec::with_capacity(values.len()), BTreeSet::new());
        for value in &values {
            let seed = value.integer(0, u64::MAX)?;
            if !seen.insert(seed) {
                return value.refuse(format!("is {seed}, which is in the list before"));
            }
            seeds.push(seed);
        }
        match seeds.first() {
            Some(first) => Some(Self::Several(*first, seeds)),
            None => node.refuse("is empty; a list of seeds is wanted"),
        }
    }

    const fn first(&self) -> u64 {
        match self {
            Self::One(seed) | Self::Several(seed, _) => *seed,
        }
    }

    /// The seeds of each configuration, where it is trained so many times.
    fn repeated(self, times: u32) -> Vec<u64> {
        match self {
            Self::One(_) if times == 1 => Vec::new(),
            // Seeds beyond the last number were refused.
            Self::One(seed) => (seed..=u64::MAX).take(to_usize(times)).collect(),
            Self::Several(_, seeds) => seeds,
        }
    }
}

#[cfg(test)]
mod init_tests;
#[cfg(test)]
mod tests;
