//! Nodes against the schemas of their operators: one list of nodes after another.

use crate::{
    argument::{Argument, Memory, Source, Whole},
    error::said,
    json,
    node::Node,
    operators::{operator, takes_number},
    schema::{Kind, Operator, Parameter, Returns},
};
use std::collections::BTreeMap;

/// The most numbers that one argument lists.
const MAX_LIST: usize = 100_000;

/// The tensors and columns that nodes may refer to, by name.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) tensors: &'a BTreeMap<&'a str, usize>,
    pub(crate) columns: BTreeMap<&'a str, usize>,
}

/// A list of nodes in the making.
#[derive(Debug)]
pub(crate) struct Checker<'a> {
    names: &'a Names<'a>,
    nodes: Vec<Node>,
    /// The source of memory that the value of each node may share: a tensor of the graph or a column.
    roots: Vec<Option<Source>>,
    /// The tensors and columns that nodes change, each once for each change.
    pub(crate) changed: Vec<Source>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(names: &'a Names<'a>) -> Self {
        Self { names, nodes: Vec::new(), roots: Vec::new(), changed: Vec::new() }
    }

    /// Checks one more node; refuses it in words that go on after its name.
    pub(crate) fn add(&mut self, node: json::Node) -> Result<(), String> {
        let operator =
            operator(&node.op).ok_or_else(|| "is no operator that graphs may have".to_owned())?;
        let arguments = self.arguments(operator, node.args, node.kwargs.0)?;
        let mut root = None;
        for (parameter, argument) in operator.parameters.iter().zip(&arguments) {
            let all;
            let source = match argument {
                Argument::Tensor(source) => source,
                // It may be one alone.
                Argument::AllOf(node) => {
                    all = Source::Node(*node);
                    &all
                }
                // What is made of one tensor may be a view of it; of several it is new.
                Argument::Tensors(sources) => match sources.as_slice() {
                    [Some(source)] => source,
                    _ => continue,
                },
                _ => continue,
            };
            let shares = self.root(*source);
            if parameter.shared {
                root = shares;
            }
            if parameter.changed && !by_batch_is_off(operator, &arguments) {
                self.changed.extend(shares);
            }
        }
        self.roots.push(root);
        self.nodes.push(Node { operator, arguments, no_grad: node.no_grad });
        Ok(())
    }

    /// The checked nodes.
    pub(crate) fn finish(self) -> Vec<Node> {
        self.nodes
    }

    /// The tensor that an argument outside of nodes names: a loss, a sum or outputs.
    pub(crate) fn tensor(&self, argument: &json::Argument) -> Result<Source, String> {
        match argument {
            json::Argument::Node { node, item } => self.tensor_of_node(*node, *item),
            json::Argument::Tensor(name) => {
                let index = self.names.tensors.get(name.as_str());
                Ok(Source::Tensor(*index.ok_or_else(|| format!("no tensor `{}`", said(name)))?))
            }
            json::Argument::Column(name) => {
                let index = self.names.columns.get(name.as_str());
                Ok(Source::Column(*index.ok_or_else(|| format!("no column `{}`", said(name)))?))
            }
            _ => Err("something that is no tensor".into()),
        }
    }

    fn arguments(
        &self,
        operator: &Operator,
        positional: Vec<json::Argument>,
        mut named: BTreeMap<String, json::Argument>,
    ) -> Result<Vec<Argument>, String> {
        let mut positional = positional.into_iter();
        let mut arguments = Vec::with_capacity(operator.parameters.len());
        for parameter in &operator.parameters {
            let given = if parameter.by_name { None } else { positional.next() };
            let by_name = named.remove(&parameter.name);
            let argument = match (given, by_name, &parameter.default) {
                (Some(_), Some(_), _) => return Err(format!("has `{}` twice", parameter.name)),
                (Some(given), None, _) | (None, Some(given), _) => self
                    .argument(operator, parameter, given)
                    .map_err(|fault| format!("takes no such `{}`: {fault}", parameter.name))?,
                (None, None, Some(default)) => default.clone(),
                (None, None, None) => return Err(format!("lacks `{}`", parameter.name)),
            };
            arguments.push(argument);
        }
        if positional.next().is_some() {
            return Err("has too many arguments".into());
        }
        match named.keys().next() {
            Some(name) => Err(format!("takes no `{}`", said(name))),
            None => Ok(arguments),
        }
    }

    fn argument(
        &self,
        operator: &Operator,
        parameter: &Parameter,
        given: json::Argument,
    ) -> Result<Argument, String> {
        use json::Argument as Given;
        if given == Given::Null {
            return if parameter.optional {
                Ok(Argument::Nothing)
            } else {
                Err("it can't be left out".into())
            };
        }
        match parameter.kind {
            Kind::Tensor
                if parameter.name == "other"
                    && takes_number(operator)
                    && is_number(&given, self) =>
            {
                self.number(&given)
            }
            Kind::Tensor => Ok(Argument::Tensor(self.tensor(&given)?)),
            Kind::Tensors { some } => self.tensors(some, given),
            Kind::Number => self.number(&given),
            Kind::Whole => Ok(Argument::Whole(self.whole(&given)?)),
            Kind::Real => Ok(Argument::Real(real(&given)?)),
            Kind::Wholes(length) => self.wholes(length, given),
            Kind::Reals => {
                Ok(Argument::Reals(list(given)?.iter().map(real).collect::<Result<_, _>>()?))
            }
            Kind::Flag => match given {
                Given::Flag(flag) => Ok(Argument::Flag(flag)),
                _ => Err("it must be true or false".into()),
            },
            Kind::Dtype => match given {
                Given::Dtype(dtype) if has_arithmetic(dtype) => Ok(Argument::Dtype(dtype)),
                _ => Err("it must be a type that PyTorch computes with".into()),
            },
            Kind::Memory => memory(&given).map(Argument::Memory),
            Kind::Text => match given {
                Given::Text(text) => Ok(Argument::Text(text)),
                _ => Err("it must be text".into()),
            },
        }
    }

    fn tensors(&self, some: bool, given: json::Argument) -> Result<Argument, String> {
        if let json::Argument::Node { node, item: None } = given
            && matches!(self.returns(node)?, Returns::Tensors(_) | Returns::List)
        {
            return Ok(Argument::AllOf(node));
        }
        let of = |given: &json::Argument| match given {
            json::Argument::Null if some => Ok(None),
            given => self.tensor(given).map(Some),
        };
        Ok(Argument::Tensors(list(given)?.iter().map(of).collect::<Result<_, _>>()?))
    }

    fn number(&self, given: &json::Argument) -> Result<Argument, String> {
        match given {
            json::Argument::Real(real) => Ok(Argument::Real(*real)),
            json::Argument::Flag(flag) => Ok(Argument::Flag(*flag)),
            given => Ok(Argument::Whole(self.whole(given)?)),
        }
    }

    fn whole(&self, given: &json::Argument) -> Result<Whole, String> {
        match given {
            json::Argument::Whole(number) => Ok(Whole::Number(*number)),
            json::Argument::Node { node, item: None } => match self.returns(*node)? {
                Returns::Whole => Ok(Whole::Node(*node)),
                _ => Err(format!("node {node} gives no whole number")),
            },
            _ => Err("it must be a whole number".into()),
        }
    }

    fn wholes(&self, length: Option<usize>, given: json::Argument) -> Result<Argument, String> {
        let numbers = match given {
            json::Argument::List(list) if list.len() <= MAX_LIST => {
                list.iter().map(|given| self.whole(given)).collect::<Result<Vec<_>, _>>()?
            }
            json::Argument::List(_) => return Err("it is too long".into()),
            // As PyTorch has it, one number stands for as many as there are dimensions.
            given if length.is_some() => vec![self.whole(&given)?; length.unwrap_or(1)],
            _ => return Err("it must be a list of whole numbers".into()),
        };
        Ok(Argument::Wholes(numbers))
    }

    fn tensor_of_node(&self, node: usize, item: Option<usize>) -> Result<Source, String> {
        match (self.returns(node)?, item) {
            (Returns::Tensor, None) => Ok(Source::Node(node)),
            (Returns::Tensors(count), Some(item)) if item < count => {
                Ok(Source::Item { node, item })
            }
            (Returns::List, Some(item)) => Ok(Source::Item { node, item }),
            (Returns::Tensors(_) | Returns::List, None) => {
                Err(format!("node {node} gives several tensors"))
            }
            (Returns::Whole, _) => Err(format!("node {node} gives a whole number")),
            (_, Some(item)) => Err(format!("node {node} gives no tensor {item}")),
        }
    }

    fn returns(&self, node: usize) -> Result<Returns, String> {
        let node = self.nodes.get(node).ok_or_else(|| format!("node {node} isn't before it"))?;
        Ok(node.operator.returns)
    }

    fn root(&self, source: Source) -> Option<Source> {
        match source {
            Source::Node(node) | Source::Item { node, .. } => self.roots.get(node).copied()?,
            Source::Tensor(_) | Source::Column(_) => Some(source),
        }
    }
}

/// Batch norm and its like leave their statistics alone unless they go by the batch.
fn by_batch_is_off(operator: &Operator, arguments: &[Argument]) -> bool {
    operator.parameters.iter().zip(arguments).any(|(parameter, argument)| {
        let goes_by_batch = matches!(parameter.name.as_str(), "training" | "use_input_stats");
        goes_by_batch && *argument == Argument::Flag(false)
    })
}

fn is_number(given: &json::Argument, checker: &Checker<'_>) -> bool {
    match given {
        json::Argument::Whole(_) | json::Argument::Real(_) | json::Argument::Flag(_) => true,
        json::Argument::Node { node, item: None } => {
            checker.nodes.get(*node).is_some_and(|node| node.operator.returns == Returns::Whole)
        }
        _ => false,
    }
}

fn real(given: &json::Argument) -> Result<f64, String> {
    match given {
        json::Argument::Real(real) => Ok(*real),
        #[expect(
            clippy::cast_precision_loss,
            reason = "as PyTorch takes a whole number for a real one"
        )]
        json::Argument::Whole(whole) => Ok(*whole as f64),
        _ => Err("it must be a number".into()),
    }
}

fn list(given: json::Argument) -> Result<Vec<json::Argument>, String> {
    match given {
        json::Argument::List(list) if list.len() <= MAX_LIST => Ok(list),
        json::Argument::List(_) => Err("it is too long".into()),
        _ => Err("it must be a list".into()),
    }
}

fn memory(given: &json::Argument) -> Result<Memory, String> {
    let json::Argument::Memory(word) = given else {
        return Err("it must be an order in memory".into());
    };
    match word.as_str() {
        "contiguous" => Ok(Memory::Contiguous),
        "channels_last" => Ok(Memory::ChannelsLast),
        "preserve" => Ok(Memory::Preserve),
        _ => Err(format!("`{}` is no order in memory", said(word))),
    }
}

/// Types that tensors in memory may have.
pub(crate) const fn has_arithmetic(dtype: sojourn_protocol::dtype::Dtype) -> bool {
    use sojourn_protocol::dtype::Dtype;
    !matches!(dtype, Dtype::U32 | Dtype::U64)
}
