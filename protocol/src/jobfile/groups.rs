//! `groups`: rows that stay together, in one fold, or in one of training, validation and test rows.

use crate::spec::{Columns, DataSpec, ShardSizes, Split};
use sojourn_forms::Table;

/// Can this column name the groups, beside this label and these columns of features?
pub(super) fn fit(
    section: &Table<'_>,
    name: &String,
    label: Option<&str>,
    columns: Option<&Columns>,
) -> Option<()> {
    if label == Some(name.as_str()) {
        return section.refuse("groups", "is the label; rows are kept together by another column");
    }
    match columns {
        Some(Columns::Use(names)) if names.contains(name) => section.refuse(
            "groups",
            format!(
                "is `{name}`, which `columns` has as a feature: a model would know the groups by it"
            ),
        ),
        _ => Some(()),
    }
}

/// Refuses other keys by which rows are dealt.
pub(super) fn alone(
    section: &Table<'_>,
    stratified: Option<bool>,
    sizes: Option<ShardSizes>,
) -> Option<()> {
    if stratified == Some(true) {
        return section.refuse(
            "groups",
            "can't go with `stratified`: groups are kept whole, whatever classes their rows are of",
        );
    }
    match sizes {
        Some(ShardSizes::Speed) => section.refuse(
            "groups",
            "can't go with `shard_sizes = \"speed\"`: how many rows a shard has follows from the groups",
        ),
        Some(ShardSizes::Equal) | None => Some(()),
    }
}

/// Refuses groups where nothing is split that they would be kept together in.
pub(super) fn used(root: &Table<'_>, data: Option<&DataSpec>, folds: Option<u32>) -> Option<()> {
    let Some(data) = data.filter(|data| data.groups.is_some()) else { return Some(()) };
    let is_share = |split: &Split| matches!(split, Split::Ratio(_));
    if folds.is_some() || is_share(&data.valid) || data.test.as_ref().is_some_and(is_share) {
        return Some(());
    }
    root.optional("data")?.peek()?.refuse(
        "groups",
        "keeps rows together in one fold, or in one share: `search.folds`, or a share in `valid` or `test` is wanted",
    )
}
