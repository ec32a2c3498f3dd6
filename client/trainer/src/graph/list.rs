//! A list of nodes that is ready to run, and how it runs.

use super::{
    call::{Call, Ready, Run, Scope},
    operators::find,
    sizes::{Check, check_of},
    value::Value,
};
use crate::error::TrainError;
use sojourn_graph::{Argument, Node, NodeList, Parameter, Source, Whole};
use std::{
    any::Any,
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
};
use tch::{TchError, Tensor};

/// Nodes in their order, resolved to functions.
#[derive(Debug)]
pub(crate) struct List {
    steps: Vec<Step>,
    /// Columns of which nodes need a copy, because they change them.
    copied: Vec<usize>,
    /// Columns that nodes or results read.
    read: BTreeSet<usize>,
    /// The results that are asked for.
    results: Vec<Source>,
}

/// One node.
#[derive(Debug)]
struct Step {
    name: &'static str,
    run: Run,
    check: Option<Check>,
    arguments: Vec<Ready>,
    no_grad: bool,
    /// The nodes whose values nobody needs after this one.
    last_uses: Vec<usize>,
}

impl List {
    /// Prepares a list of which these results are asked for.
    pub(super) fn new(list: &NodeList, results: Vec<Source>) -> Result<Self, TrainError> {
        let written = written(&list.nodes);
        let step = |(at, node)| Step::new(node, written.contains(&at));
        let steps = list.nodes.iter().enumerate().map(step).collect::<Result<Vec<_>, _>>()?;
        let copied = list.changed_columns.iter().copied().collect();
        let read = list.columns_read(&results);
        let mut prepared = Self { steps, copied, read, results };
        prepared.find_last_uses(&list.nodes);
        Ok(prepared)
    }

    /// Is the column with this index read?
    pub(super) fn reads(&self, column: usize) -> bool {
        self.read.contains(&column)
    }

    fn find_last_uses(&mut self, nodes: &[Node]) {
        let mut last: Vec<usize> = (0..nodes.len()).collect();
        for (at, node) in nodes.iter().enumerate() {
            for used in used_by(node) {
                if let Some(last) = last.get_mut(used) {
                    *last = at;
                }
            }
        }
        for result in self.results.iter().filter_map(|result| node_of(*result)) {
            if let Some(last) = last.get_mut(result) {
                *last = usize::MAX;
            }
        }
        for (node, last) in last.into_iter().enumerate() {
            if let Some(step) = self.steps.get_mut(last) {
                step.last_uses.push(node);
            }
        }
    }

    /// Calls all operators; gives the results.
    pub(crate) fn run(&self, scope: &Scope<'_>) -> Result<Vec<Tensor>, TrainError> {
        let columns = self.columns(scope.columns)?;
        let scope = Scope { columns: &columns, ..*scope };
        let mut values: Vec<Value> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = step.call(&values, &scope);
            let value = value.map_err(|fault| TrainError::Node {
                node: values.len(),
                op: step.name,
                fault: Box::new(fault),
            })?;
            values.push(value);
            for node in &step.last_uses {
                if let Some(value) = values.get_mut(*node) {
                    *value = Value::Nothing;
                }
            }
        }
        let results = self.results.iter().map(|result| scope.source(*result, &values));
        results.map(|result| result.map(Tensor::shallow_clone)).collect()
    }

    /// The columns, with copies of those that nodes change: a shard's rows are used again.
    fn columns(&self, columns: &[Tensor]) -> Result<Vec<Tensor>, TrainError> {
        let copy = |(at, column): (usize, &Tensor)| {
            if self.copied.contains(&at) {
                column.f_to_dtype(column.f_kind()?, false, true)
            } else {
                Ok(column.shallow_clone())
            }
        };
        Ok(columns.iter().enumerate().map(copy).collect::<Result<_, _>>()?)
    }
}

impl Step {
    fn new(node: &Node, written: bool) -> Result<Self, TrainError> {
        let name = node.operator.name.as_str();
        let lacks = || TrainError::Unit(format!("this trainer has no operator `{name}`"));
        Ok(Self {
            name,
            run: find(name, written).ok_or_else(lacks)?,
            check: check_of(node.operator),
            arguments: node.arguments.iter().map(Ready::of).collect(),
            no_grad: node.no_grad,
            last_uses: Vec::new(),
        })
    }

    fn call(&self, values: &[Value], scope: &Scope<'_>) -> Result<Value, TrainError> {
        let call = Call { arguments: &self.arguments, values, scope };
        if let Some(check) = self.check {
            check(&call)?;
        }
        // Where libtorch refuses a call that has a number of any kind, `tch` panics as it frees the number.
        let called = catch_unwind(AssertUnwindSafe(|| {
            let _no_grad = self.no_grad.then(tch::no_grad_guard);
            (self.run)(&call)
        }));
        called.unwrap_or_else(|panic| Err(refusal(panic.as_ref())))
    }
}

/// The error that libtorch gave before `tch` panicked.
fn refusal(panic: &(dyn Any + Send)) -> TrainError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    // The text is escaped, as a string in a string is shown.
    let text = text.unwrap_or("a call failed").replace("\\n", "\n");
    let said = text.split_once("Torch(\"").map_or(text.as_str(), |(_, said)| said);
    TrainError::Torch(TchError::Torch(said.to_owned()))
}

const fn node_of(source: Source) -> Option<usize> {
    match source {
        Source::Node(node) | Source::Item { node, .. } => Some(node),
        Source::Tensor(_) | Source::Column(_) => None,
    }
}

/// The nodes whose values are written by later nodes, directly or through what shares memory with them.
fn written(nodes: &[Node]) -> BTreeSet<usize> {
    let mut written = BTreeSet::new();
    for node in nodes {
        let mut next = tensors_of(node, |parameter| parameter.changed);
        while let Some(at) = next.pop() {
            if written.insert(at)
                && let Some(node) = nodes.get(at)
            {
                next.extend(tensors_of(node, |parameter| parameter.shared));
            }
        }
    }
    written
}

/// The nodes that a node takes for these parameters.
fn tensors_of(node: &Node, wanted: impl Fn(&Parameter) -> bool) -> Vec<usize> {
    let given = node.operator.parameters.iter().zip(&node.arguments);
    let given = given.filter(|(parameter, _)| wanted(parameter));
    given
        .flat_map(|(_, argument)| match argument {
            Argument::Tensor(source) => node_of(*source).into_iter().collect(),
            Argument::Tensors(some) => {
                some.iter().flatten().filter_map(|of| node_of(*of)).collect()
            }
            Argument::AllOf(node) => vec![*node],
            _ => Vec::new(),
        })
        .collect()
}

/// The nodes whose values a node takes.
fn used_by(node: &Node) -> Vec<usize> {
    let of_whole = |whole: &Whole| match whole {
        Whole::Node(node) => Some(*node),
        Whole::Number(_) => None,
    };
    let mut used: Vec<usize> = node.sources().into_iter().filter_map(node_of).collect();
    for argument in &node.arguments {
        match argument {
            Argument::AllOf(node) => used.push(*node),
            Argument::Whole(whole) => used.extend(of_whole(whole)),
            Argument::Wholes(wholes) => used.extend(wholes.iter().filter_map(of_whole)),
            _ => {}
        }
    }
    used
}
