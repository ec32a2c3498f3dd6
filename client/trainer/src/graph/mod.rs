//! Graphs: users' models as nodes that call operators of libtorch, one after another (docs/internals/graphs.md).
//!
//! ```text
//! file --sojourn-graph--> Graph --prepare--> Program: lists of steps, constants on the device
//!                                               |
//! parameters, buffers, columns of a batch ----> list ---- step ----> sizes     may it give so much?
//!                                                                     call      its arguments for libtorch
//!                                                                     layers, activations, arithmetic,
//!                                                                     shapes, reductions, makers
//! ```
//!
//! A node's operator is looked up once, when a graph is prepared. What a file can't say soundly was refused by
//! `sojourn-graph`; what depends on shapes is checked before each call, or by libtorch, whose refusal is an error here.

mod activations;
mod arithmetic;
mod bounds;
mod call;
mod layers;
mod list;
mod makers;
mod operators;
mod program;
mod reductions;
mod shapes;
mod sizes;
mod value;
mod windows;

pub(crate) use program::{Graphs, Program, Tensors};

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "exported_tests.rs"]
mod exported_tests;

#[cfg(test)]
#[path = "array_tests.rs"]
mod array_tests;

#[cfg(test)]
#[path = "columns_tests.rs"]
mod columns_tests;

#[cfg(test)]
#[path = "chance_tests.rs"]
mod chance_tests;

#[cfg(test)]
#[path = "windows_tests.rs"]
mod windows_tests;
