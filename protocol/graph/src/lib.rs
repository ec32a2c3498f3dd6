//! Graph files: users' models, losses and metrics as plain data (docs/internals/graphs.md). No libtorch.
//!
//! [`Graph::read`] takes the bytes of a file from anyone. What it gives is sound: each node calls an operator of
//! [the table](operators) with arguments of the right kinds, refers to what exists before it, and changes nothing that
//! it may not. It never panics, and allocates no more than the file can pay for.
//!
//! ```text
//! bytes --sojourn-codec--> tensors: `graph` (JSON), `constant.*`, `given.*`
//!                             |
//!                           json      as it is written, unknown fields refused
//!                             |
//!                           read      limits, tensors, columns, lists of nodes
//!                             |
//!                           check     each node against its operator's schema --> Graph
//! ```
//!
//! ```
//! // The trainer knows these operators and no others.
//! let names: Vec<&str> = sojourn_graph::operators().collect();
//! assert!(names.contains(&"aten.linear.default") && names.contains(&"sym.size"));
//! assert!(!names.contains(&"aten.as_strided.default"));
//! ```

mod argument;
mod check;
mod error;
mod json;
mod node;
mod operators;
mod read;
mod schema;

pub use argument::{Argument, Memory, Source, Whole};
pub use error::GraphError;
pub use node::{Node, NodeList};
pub use operators::{operator, operators};
pub use read::{
    Column, Evaluate, Graph, MAX_FILE_BYTES, MAX_JSON_BYTES, MAX_NODES, MAX_VALUE_ELEMENTS,
    Predict, Stage,
};
pub use schema::{Kind, Operator, Parameter, Returns};
pub use sojourn_protocol::spec::{GraphRole, GraphTensor};
