//! Sizes with their units.

use sojourn_forms::Node;

/// A size with its unit, as `16GiB`.
pub(super) fn size(node: &Node<'_>) -> Option<u64> {
    let text = node.as_string()?.trim();
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("GB", 1_000_000_000), ("MB", 1_000_000)];
    let (number, unit) =
        units.into_iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)))?;
    number.trim().parse::<u64>().ok()?.checked_mul(unit)
}
