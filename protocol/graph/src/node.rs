//! Nodes that have been checked: calls of operators, with all arguments in the order of their schemas.

use crate::{
    argument::{Argument, Source},
    schema::Operator,
};
use std::collections::BTreeSet;

/// The call of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The operator that is called.
    pub operator: &'static Operator,
    /// One for each of the operator's parameters, defaults filled in.
    pub arguments: Vec<Argument>,
    /// Without gradients.
    pub no_grad: bool,
}

impl Node {
    /// The tensors that it takes, one by one.
    #[must_use]
    pub fn sources(&self) -> Vec<Source> {
        let mut sources = Vec::new();
        for argument in &self.arguments {
            match argument {
                Argument::Tensor(source) => sources.push(*source),
                Argument::Tensors(some) => sources.extend(some.iter().flatten()),
                _ => {}
            }
        }
        sources
    }
}

/// Nodes, each of which refers to those before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeList {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The columns that they change, by index: a batch that is used again needs a copy.
    pub changed_columns: BTreeSet<usize>,
}

impl NodeList {
    /// The columns, by index, that the nodes read or that are among these results.
    #[must_use]
    pub fn columns_read(&self, results: &[Source]) -> BTreeSet<usize> {
        let sources = self.nodes.iter().flat_map(Node::sources).chain(results.iter().copied());
        let column = |source| match source {
            Source::Column(column) => Some(column),
            Source::Node(_) | Source::Item { .. } | Source::Tensor(_) => None,
        };
        sources.filter_map(column).collect()
    }
}
