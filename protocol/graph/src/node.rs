//! Nodes that have been checked: calls of operators, with all arguments in the order of their schemas.

use crate::{argument::Argument, schema::Operator};

/// The call of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What is called.
    pub operator: &'static Operator,
    /// One for each of the operator's parameters, defaults filled in.
    pub arguments: Vec<Argument>,
    /// Without gradients.
    pub no_grad: bool,
}
