//! The table of operators, family by family.

use super::{activations, arithmetic, call::Run, layers, makers, reductions, shapes};

/// The function that computes the operator of this name; `written`: a later operator writes through its result.
pub(super) fn find(name: &str, written: bool) -> Option<Run> {
    let unwritten = (!written).then(|| shapes::find_unwritten(name)).flatten();
    unwritten.or_else(|| find_in_families(name))
}

fn find_in_families(name: &str) -> Option<Run> {
    let families = [
        layers::find,
        activations::find,
        arithmetic::find,
        shapes::find,
        reductions::find,
        makers::find,
    ];
    families.into_iter().find_map(|find| find(name))
}
