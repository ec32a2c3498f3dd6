//! Arguments of operators, checked.

use sojourn_protocol::dtype::Dtype;

/// An argument of an operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// The argument is left out.
    Nothing,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(Whole),
    /// A real number; it may be infinite, or none.
    Real(f64),
    /// A word.
    Text(String),
    /// A type of elements.
    Dtype(Dtype),
    /// An order in memory.
    Memory(Memory),
    /// A tensor.
    Tensor(Source),
    /// Several tensors; some left out where the operator allows it.
    Tensors(Vec<Option<Source>>),
    /// All tensors that this node gives.
    AllOf(usize),
    /// Several whole numbers.
    Wholes(Vec<Whole>),
    /// Several real numbers.
    Reals(Vec<f64>),
}

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// This one.
    Number(i64),
    /// The value of an earlier node.
    Node(usize),
}

/// Where a tensor comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An earlier node of the list.
    Node(usize),
    /// One of the several tensors that an earlier node gives.
    Item {
        /// The node.
        node: usize,
        /// Which of them, from 0.
        item: usize,
    },
    /// The graph's tensor with this index.
    Tensor(usize),
    /// The batch's column with this index.
    Column(usize),
}

/// The order of a tensor's elements in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Row-major.
    Contiguous,
    /// An image's channels side by side.
    ChannelsLast,
    /// As it was.
    Preserve,
}
