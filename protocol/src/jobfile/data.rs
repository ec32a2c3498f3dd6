//! `[data]`, and the job's name.

use super::{
    categories, data_keys, dates, dialect, dimension,
    element::Bounds,
    groups,
    method::Method,
    reader::{JobFileNode, if_given, optional},
};
use crate::{
    spec::{
        Channels, Columns, DataSpec, FileKind, Loss, Missing, ModelSpace, OnBad, PlacementSpec,
        Replicas, Scale, ScaleLabel, Separator, ShardSizes, SourceSpec, Split, WINDOW,
        data::{DEFAULT_LABEL, SPARSE_LABEL},
    },
    text::{MAX_NAME_CHARS, is_plain_line, is_plain_name},
};
use sojourn_forms::{Node, Table, list, nearest};
use std::collections::{BTreeMap, BTreeSet};

const LABEL: &str = "the name of the label column";
const DEFAULT_VALID: f64 = 0.2;
/// Tokens of the longest window, and elements of the longest sequence.
const MAX_WINDOW: u32 = 1 << 24;
const MAX_SHARDS: u32 = 65_536;
/// The last column of a table.
const MAX_POSITION: u32 = 1 << 20;
/// Bounds of a constant that features are multiplied by: beyond them single precision has no numbers for most data.
const MIN_FACTOR: f64 = 1e-30;
const MAX_FACTOR: f64 = 1e30;

/// The job's name: something that a table can print.
pub(super) fn name(node: &Node<'_>) -> Option<String> {
    let name = node.string("a string")?;
    if name.trim().is_empty() {
        return node.refuse("is empty");
    }
    if !is_plain_line(name, MAX_NAME_CHARS) {
        return node.refuse(format!("must be one line of at most {MAX_NAME_CHARS} characters"));
    }
    if !is_plain_name(name, MAX_NAME_CHARS) {
        return node.refuse("has characters that nobody sees, or spaces at its ends");
    }
    Some(name.to_owned())
}

/// Reads `[data]`.
pub(super) fn read(section: &Table<'_>) -> Option<DataSpec> {
    let train = section
        .required("train", "a data file, a folder of them, or a URL")
        .and_then(|node| path(&node));
    let kind = train.as_deref().and_then(FileKind::named);
    let windows = if_given(section, "window", window);
    let label = match (section.optional("label"), kind) {
        (None, Some(FileKind::Image)) => section.refuse(
            "train",
            "is one image; a folder that has a folder of images for each class is wanted",
        ),
        (Some(node), _) => column_name(&node).map(Some),
        // What the file is decides: images need no label, nor has text one, nor columns by name.
        (None, None | Some(FileKind::Text | FileKind::Parquet)) => Some(None),
        (
            None,
            Some(FileKind::Csv | FileKind::JsonLines | FileKind::TfRecord | FileKind::Excel),
        ) => section.required("label", LABEL).and_then(|node| column_name(&node)).map(Some),
        (None, Some(FileKind::Libsvm)) => Some(Some(SPARSE_LABEL.to_owned())),
        (None, Some(_)) => Some(Some(DEFAULT_LABEL.to_owned())),
    };
    let features = if_given(section, "features", word);
    let labels = if_given(section, "labels", path);
    let fitting = data_keys::fit(section, kind);
    let separator = if_given(section, "separator", separator);
    let columns = section
        .optional("columns")
        .map_or(Some(None), |node| columns(&node, known_label(&label)).map(Some));
    let categories = section
        .optional("categories")
        .map_or(Some(Vec::new()), |node| categories::read(&node, known_label(&label)));
    let missing = section.optional("missing").map_or(Some(Missing::Refuse), |node| {
        node.word(&[
            ("refuse", Missing::Refuse),
            ("zero", Missing::Zero),
            ("mean", Missing::Mean),
            ("drop-row", Missing::DropRow),
        ])
    });
    let on_bad_row = optional(section, "on_bad_row", OnBad::Refuse, on_bad);
    let on_bad_image = optional(section, "on_bad_image", OnBad::Refuse, on_bad);
    let dialect = dialect::read(section, known_label(&label));
    let tokenizer = if_given(section, "tokenizer", path);
    let length = section.optional("length").map_or(Some(BTreeMap::new()), |node| length(&node));
    let shape = if_given(section, "shape", shape);
    let channels = section.optional("channels").map_or(Some(Channels::First), |node| {
        node.word(&[("first", Channels::First), ("last", Channels::Last)])
    });
    let scale = section.optional("scale").map_or(Some(Scale::None), |node| scale(&node));
    let valid =
        section.optional("valid").map_or(Some(Split::Ratio(DEFAULT_VALID)), |node| split(&node));
    let test = if_given(section, "test", split);
    let shards = section.optional("shards").map_or(Some(None), |node| shards(&node));
    let shard_sizes = if_given(section, "shard_sizes", |node| {
        node.word(&[("equal", ShardSizes::Equal), ("speed", ShardSizes::Speed)])
    });
    let stratified = section.optional("stratified").map_or(Some(false), |node| node.boolean());
    if let (Some(true), Some(Some(ShardSizes::Speed))) = (stratified, shard_sizes) {
        return section.refuse(
            "stratified",
            "can't go with `shard_sizes = \"speed\"`: each shard has as many rows of each class",
        );
    }
    let groups = if_given(section, "groups", column_name);
    if let Some(Some(name)) = &groups {
        groups::fit(section, name, known_label(&label), columns.as_ref().and_then(Option::as_ref))?;
        groups::alone(section, stratified, shard_sizes.flatten())?;
    }
    let seed = if_given(section, "seed", |node| node.integer(0, u64::MAX));
    if let (Some(Split::Ratio(valid)), Some(Some(Split::Ratio(test)))) = (&valid, &test)
        && valid + test >= 1.0
    {
        return section.refuse(
            "test",
            format!(
                "is {test} and `data.valid` is {valid}: together they leave no row to train on"
            ),
        );
    }
    if let (Some(Some(columns)), Some(categories)) = (&columns, &categories) {
        categories::fit(section, categories, columns)?;
    }
    if let (Some(dialect), Some(categories)) = (&dialect, &categories) {
        dates::fit(section, &dialect.dates, categories)?;
    }
    if let (Some(dialect), Some(Some(columns))) = (&dialect, &columns) {
        categories::used(section, "dates", dialect.dates.keys(), columns)?;
    }
    fitting?;
    Some(DataSpec {
        train: train?,
        features: features?,
        label: label?,
        labels: labels?,
        separator: separator?,
        columns: columns?,
        categories: categories?,
        missing: missing?,
        on_bad_row: on_bad_row?,
        on_bad_image: on_bad_image?,
        dialect: dialect?,
        window: windows?,
        tokenizer: tokenizer?,
        length: length?,
        shape: shape?,
        channels: channels?,
        scale: scale?,
        // It follows from the loss and the models, which are read later.
        scale_label: ScaleLabel::None,
        valid: valid?,
        test: test?,
        shards: shards?,
        // Shards of other sizes couldn't have as many rows of each class, nor follow from the sizes of groups.
        shard_sizes: match stratified? || matches!(groups, Some(Some(_))) {
            true => Some(ShardSizes::Equal),
            false => shard_sizes?,
        },
        stratified: stratified?,
        groups: groups?,
        // The search is read later.
        group_folds: None,
        seed: seed?,
    })
}

/// Sizes by speed are for shards that are each on one host alone.
pub(super) fn fits(
    root: &Table<'_>,
    data: Option<&DataSpec>,
    placement: Option<&PlacementSpec>,
) -> Option<()> {
    let by_speed = data.is_some_and(|data| data.shard_sizes == Some(ShardSizes::Speed));
    let alone = placement.is_none_or(|placement| placement.replicas == Replicas::Fixed(1));
    if !by_speed || alone {
        return Some(());
    }
    let why = "`\"speed\"`, which goes with `placement.replicas = 1`: where several hosts may train a shard, its \
               size can't be that of one of them";
    let section = root.optional("data").and_then(|node| node.section());
    match section.and_then(|section| section.optional("shard_sizes")) {
        Some(node) => node.refuse(format!("is {why}")),
        // The data is an earlier job's, and the file says nothing of it.
        None => root.refuse("placement", format!("is for shards whose sizes are {why}")),
    }
}

/// Windows of text are for users' own models alone, of which they are a key.
pub(super) fn fits_models(
    root: &Table<'_>,
    models: &mut [ModelSpace],
    method: Option<Method>,
) -> Option<()> {
    let node = root.optional("data")?;
    let section = node.peek()?;
    let has_others = models.iter().any(|model| !matches!(model, ModelSpace::Graph(_)));
    let Some(node) = section.optional("window") else { return Some(()) };
    if has_others {
        return node
            .refuse("is for text, on which only models with `arch = \"graph\"` are trained");
    }
    for model in models {
        let ModelSpace::Graph(space) = model else { continue };
        let values = dimension::read(&node, Bounds::AtLeastOne, method, None)?;
        if space.values.insert(WINDOW.to_owned(), values).is_some() {
            return node.refuse("is a key of a `[[model]]` too; leave out one of them");
        }
    }
    Some(())
}

/// The longest window of a number or a choice of them; the others must divide it.
fn window(node: &Node<'_>) -> Option<u32> {
    let wanted = "a number of tokens, or `{ choice = [64, 128] }`";
    let mut choices = match node.is_table() {
        true => node
            .peek()
            .and_then(|section| section.optional("choice"))
            .or_else(|| node.refuse(format!("is {}; {wanted} is wanted", node.describe())))?
            .list(wanted)?,
        false => Vec::new(),
    };
    choices.extend(node.peek().and_then(|section| section.optional("otherwise")));
    let read = |node: &Node<'_>| node.integer(1, MAX_WINDOW);
    let windows: Vec<u32> = match choices.as_slice() {
        [] => vec![read(node)?],
        choices => choices.iter().map(read).collect::<Option<_>>()?,
    };
    let longest = windows.iter().copied().max()?;
    match windows.iter().find(|window| longest % **window != 0) {
        None => Some(longest),
        Some(window) => node.refuse(format!(
            "has {window}, which doesn't divide {longest}: rows of the longest window are cut into the others"
        )),
    }
}

/// For columns of sequences, how long they may be.
fn length(node: &Node<'_>) -> Option<BTreeMap<String, u32>> {
    if !node.is_table() {
        let found = node.describe();
        return node.refuse(format!("is {found}; `{{ tokens = 256 }}` is wanted, by columns"));
    }
    let section = node.peek()?;
    let lengths: Vec<Option<(String, u32)>> = section
        .entries()
        .map(|(name, node)| Some((name.to_owned(), node.integer(1, MAX_WINDOW)?)))
        .collect();
    lengths.into_iter().collect()
}

fn known_label(label: &Option<Option<String>>) -> Option<&str> {
    label.as_ref().and_then(|label| label.as_deref())
}

/// The shape of a row as far as the job file says it: of arrays the file itself knows it.
pub(super) fn known_shape(data: &DataSpec) -> Option<Option<&[u32]>> {
    let is_table = FileKind::named(&data.train).is_some_and(FileKind::is_table);
    (data.shape.is_some() || is_table).then_some(data.shape.as_deref())
}

fn path(node: &Node<'_>) -> Option<String> {
    const SCHEMES: [&str; 3] = ["http", "https", "s3"];
    let path = node.string("a path or a URL")?;
    if path.is_empty() {
        return node.refuse("is empty; a path or a URL is wanted");
    }
    if let Some((scheme, rest)) = path.split_once("://") {
        if !SCHEMES.contains(&scheme) {
            let near = nearest(scheme, SCHEMES);
            let hint = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            return node.refuse(format!(
                "is `\"{path}\"`; {hint}a path, or a URL of {} is wanted",
                list(&SCHEMES)
            ));
        }
        if rest.split('/').next().is_none_or(str::is_empty) {
            let what = if scheme == "s3" { "bucket" } else { "host" };
            return node.refuse(format!("is `\"{path}\"`, which names no {what}"));
        }
    }
    Some(path.to_owned())
}

fn word(node: &Node<'_>) -> Option<String> {
    let word = node.string("the name of an array")?;
    if word.is_empty() { node.refuse("is empty") } else { Some(word.to_owned()) }
}

/// Reads the name of a column.
fn column_name(node: &Node<'_>) -> Option<String> {
    // Without a header columns are named by their positions.
    if let Some(position) = node.as_integer::<u32>().filter(|position| *position > 0) {
        return Some(position.to_string());
    }
    let label = node.string("the name of a column")?;
    if label.is_empty() { node.refuse("is empty") } else { Some(label.to_owned()) }
}

fn on_bad(node: &Node<'_>) -> Option<OnBad> {
    node.word(&[("refuse", OnBad::Refuse), ("skip", OnBad::Skip)])
}

fn separator(node: &Node<'_>) -> Option<Separator> {
    if node.as_string() == Some("\t") {
        return Some(Separator::Tab);
    }
    node.word(&[
        (",", Separator::Comma),
        (";", Separator::Semicolon),
        ("tab", Separator::Tab),
        ("|", Separator::Pipe),
    ])
}

/// `label`: the label's column, where it is known.
fn columns(node: &Node<'_>, label: Option<&str>) -> Option<Columns> {
    if !node.is_table() {
        return node.refuse(format!(
            "is {}; `{{ use = [\"...\"] }}` or `{{ drop = [\"...\"] }}` is wanted",
            node.describe()
        ));
    }
    let section = node.section()?;
    let (is_use, names) = match (section.optional("use"), section.optional("drop")) {
        (Some(names), None) => (true, names),
        (None, Some(names)) => (false, names),
        (Some(_), Some(_)) => {
            return node
                .refuse("has `use` and `drop`; one of them says which columns are features");
        }
        (None, None) => {
            return node.refuse("is empty; `use` or `drop` with a list of columns is wanted");
        }
    };
    let elements = names.list("a list of columns' names")?;
    if elements.is_empty() {
        return names.refuse("is empty; leave `columns` out if every column is a feature");
    }
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut positions = Vec::new();
    for element in &elements {
        if !is_use && element.is_integer() {
            positions.push(element.integer(1, MAX_POSITION)?);
            continue;
        }
        let name = element.string("the name of a column")?;
        if Some(name) == label {
            return element
                .refuse(format!("is `\"{name}\"`, the label, which is no feature anyway"));
        }
        if !seen.insert(name) {
            return element.refuse(format!("is `\"{name}\"`, which is there twice"));
        }
        found.push(name.to_owned());
    }
    Some(match (is_use, positions.is_empty()) {
        (true, _) => Columns::Use(found),
        (false, true) => Columns::Drop(found),
        (false, false) => Columns::DropAt { names: found, positions },
    })
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
    if !(MIN_FACTOR..=MAX_FACTOR).contains(&factor.abs()) {
        return node.refuse(format!(
            "is {factor:e}; a number from {MIN_FACTOR:e} to {MAX_FACTOR:e} is wanted, positive or negative"
        ));
    }
    Some(Scale::Constant(factor))
}

/// Can the data have so many folds, if any are wanted? `is_earlier`: it is that of an earlier job, which was cut.
pub(super) fn folds(
    root: &Table<'_>,
    data: Option<&DataSpec>,
    folds: Option<u32>,
    is_earlier: bool,
) -> Option<()> {
    let (node, data) = (|key: &str| root.optional("search")?.peek()?.optional(key), data?);
    let Some(folds) = folds else {
        return match data.valid {
            Split::Folds => root.refuse(
                "search",
                "says no `folds`, and the data of the earlier job has no validation rows: `folds` as that job has them is wanted",
            ),
            Split::Ratio(_) | Split::File(_) | Split::Source(_) => Some(()),
        };
    };
    let node = node("folds")?;
    if is_earlier && data.valid != Split::Folds {
        return node
            .refuse("needs data without validation rows, and that of the earlier job has some");
    }
    let says_valid = root.optional("data").filter(|_| !is_earlier);
    if let Some(valid) = says_valid.and_then(|data| data.peek()?.optional("valid")) {
        return valid.refuse(
            "can't go with `search.folds`, by which each fold of the training rows is validated on in turn",
        );
    }
    match data.shards {
        Some(shards) if shards < folds => node
            .refuse(format!("is {folds}, and `data.shards` is {shards}: each fold needs a shard")),
        _ => Some(()),
    }
}

/// Reads `scale_label`, for labels of this loss.
pub(super) fn scale_label(node: &Node<'_>, loss: Option<Loss>) -> Option<ScaleLabel> {
    let scale = node.word(&[("none", ScaleLabel::None), ("standard", ScaleLabel::Standard)])?;
    if scale == ScaleLabel::Standard && loss == Some(Loss::CrossEntropy) {
        return node.refuse(
            "is `\"standard\"`, which is for labels that are numbers; `training.loss` is `\"cross-entropy\"`, for classes",
        );
    }
    Some(scale)
}

fn split(node: &Node<'_>) -> Option<Split> {
    if node.is_string() {
        return path(node).map(Split::File);
    }
    if node.is_table() {
        return source(&node.section_of(&["data", "features", "label", "labels"])?)
            .map(Split::Source);
    }
    if node.is_list() {
        return node.refuse(
            "is a list; a share above 0 and below 1, a path or URL, or `{ data = \"...\" }` is wanted",
        );
    }
    let ratio = node.number()?;
    if ratio > 0.0 && ratio < 1.0 {
        return Some(Split::Ratio(ratio));
    }
    node.refuse(format!("is {ratio}; a share above 0 and below 1 is wanted, or the path of a file"))
}

fn source(section: &Table<'_>) -> Option<SourceSpec> {
    let data = section
        .required("data", "a data file, a folder of them, or a URL")
        .and_then(|node| path(&node));
    let fitting = data_keys::fit(section, data.as_deref().and_then(FileKind::named));
    let (features, label) =
        (if_given(section, "features", word), if_given(section, "label", column_name));
    let labels = if_given(section, "labels", path);
    fitting?;
    Some(SourceSpec { data: data?, features: features?, label: label?, labels: labels? })
}

/// `Some(None)`: to be chosen.
fn shards(node: &Node<'_>) -> Option<Option<u32>> {
    match node.as_string() {
        Some("auto") => Some(None),
        Some(word) => node.refuse(format!(
            "is `\"{word}\"`; `\"auto\"` or a whole number from 1 to {MAX_SHARDS} is wanted"
        )),
        None => node.integer(1, MAX_SHARDS).map(Some),
    }
}
