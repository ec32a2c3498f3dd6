//! The table of operators, family by family.

use super::{activations, arithmetic, call::Run, layers, makers, reductions, shapes};

/// What computes the operator of this name.
pub(super) fn find(name: &str) -> Option<Run> {
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
