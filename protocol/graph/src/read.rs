//! A file's bytes as a checked graph.

use crate::{
    argument::Source,
    check::{Checker, Names, has_arithmetic},
    error::{GraphError, said},
    json,
    node::NodeList,
};
use sojourn_codec::{Dtype, Tensor, TensorSpec, TensorView, decode};
use sojourn_model::{MAX_PARAMETERS, MAX_TENSOR_NAME, MAX_TENSORS, check_tensors};
use sojourn_protocol::{
    column::{MAX_COLUMNS, check_name},
    digest::BlobRef,
    quantity::to_u64,
    report::MAX_NAMED_SUMS,
    spec::{ExportedGraph, GraphColumn, GraphRole, GraphTensor, Start, is_sum_name},
    sum_array::check_array_shapes,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The most bytes of a graph's file.
pub const MAX_FILE_BYTES: u64 = 1 << 30;
/// The most bytes of its JSON.
pub const MAX_JSON_BYTES: u64 = 16 << 20;
/// The most nodes over all lists.
pub const MAX_NODES: u64 = 100_000;
/// The most elements of a value.
pub const MAX_VALUE_ELEMENTS: u64 = 1 << 33;
const MAX_STAGES: u64 = 64;
const MAX_TORCH_BYTES: usize = 40;

/// A graph: a model, its losses and its metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// The version of PyTorch that it was exported with.
    pub torch: String,
    /// The columns of a batch, in the order of the names.
    pub columns: Vec<Column>,
    /// Parameters, buffers and constants, in the model's order.
    pub tensors: Vec<GraphTensor>,
    /// The constants with their numbers, in the order of `tensors`.
    pub constants: Vec<Tensor>,
    /// The stages of a training step; at least one.
    pub train: Vec<Stage>,
    /// The evaluation: its nodes, and the sums that it adds up.
    pub evaluate: Evaluate,
    /// The prediction, where the model can predict.
    pub predict: Option<Predict>,
}

/// A column of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The column's name.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// The shape of one row.
    pub shape: Vec<u64>,
}

/// A stage of a training step.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// The nodes of the stage.
    pub list: NodeList,
    /// The loss, one number.
    pub loss: Source,
    /// The parameters that its gradient moves: indices among the parameters, rising.
    pub moves: Vec<usize>,
}

/// An evaluation: its nodes, and the sums that it adds up.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluate {
    /// The nodes of the evaluation.
    pub list: NodeList,
    /// Numbers and arrays by name, which are added up over batches; `loss` is among them.
    pub sums: BTreeMap<String, Source>,
    /// The shapes of those that are arrays.
    pub shapes: BTreeMap<String, Vec<u64>>,
}

/// A prediction: its nodes and outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Predict {
    /// The nodes of the prediction, which has no labels `y`.
    pub list: NodeList,
    /// The outputs, `[rows, ...]`.
    pub outputs: Source,
}

impl Graph {
    /// The graph in a file's bytes.
    ///
    /// # Errors
    /// Whatever docs/internals/graphs.md doesn't allow.
    pub fn read(bytes: &[u8]) -> Result<Self, GraphError> {
        limit("bytes in its file", to_u64(bytes.len()), MAX_FILE_BYTES)?;
        let views = decode(bytes)?;
        let file = parse(&views)?;
        if file.graph != 1 {
            return Err(GraphError::Version(file.graph));
        }
        if file.torch.len() > MAX_TORCH_BYTES {
            return Err(GraphError::part("the version of PyTorch", "is too long"));
        }
        let columns = columns(file.columns.0)?;
        let constants = check_all_tensors(&file.tensors, &views)?;
        let lists = file.train.iter().map(|stage| stage.nodes.len());
        let rest = file.evaluate.nodes.len() + file.predict.as_ref().map_or(0, |p| p.nodes.len());
        limit("nodes", to_u64(lists.sum::<usize>() + rest), MAX_NODES)?;
        let reader = Reader::new(&file.tensors, &columns);
        let train = reader.train(file.train)?;
        let evaluate = reader.evaluate(file.evaluate)?;
        let predict = file.predict.map(|predict| reader.predict(predict)).transpose()?;
        drop(reader);
        let (torch, tensors) = (file.torch, file.tensors);
        Ok(Self { torch, columns, tensors, constants, train, evaluate, predict })
    }

    /// The parameters, in the model's order.
    pub fn parameters(&self) -> impl Iterator<Item = &GraphTensor> {
        self.tensors.iter().filter(|tensor| tensor.role == GraphRole::Parameter)
    }

    /// The buffers, in the model's order.
    pub fn buffers(&self) -> impl Iterator<Item = &GraphTensor> {
        self.tensors.iter().filter(|tensor| tensor.role == GraphRole::Buffer)
    }

    /// The columns that a prediction reads, in the order of the names; none where the model can't predict.
    #[must_use]
    pub fn predicted_columns(&self) -> Option<Vec<&Column>> {
        let predict = self.predict.as_ref()?;
        let read = predict.list.columns_read(&[predict.outputs]);
        Some(read.into_iter().filter_map(|column| self.columns.get(column)).collect())
    }

    /// A unit's summary of the graph, whose file this is.
    #[must_use]
    pub fn summary(&self, file: BlobRef, flops_per_row: u64, widest: u64) -> ExportedGraph {
        let kept = self.tensors.iter().filter(|tensor| tensor.role != GraphRole::Constant);
        ExportedGraph {
            file,
            tensors: Arc::new(kept.cloned().collect()),
            columns: self.columns_by_name(),
            flops_per_row,
            widest,
            sums: self.evaluate.sums.keys().cloned().collect(),
            arrays: self.evaluate.shapes.clone(),
        }
    }

    fn columns_by_name(&self) -> BTreeMap<String, GraphColumn> {
        let column = |Column { name, dtype, shape }: &Column| {
            (name.clone(), GraphColumn { dtype: *dtype, shape: shape.clone() })
        };
        self.columns.iter().map(column).collect()
    }

    /// Are these the tensors and columns that a unit's summary of the file says?
    ///
    /// # Errors
    /// The first tensor that differs, or the columns.
    pub fn agrees_with(&self, exported: &ExportedGraph) -> Result<(), GraphError> {
        if self.columns_by_name() != exported.columns {
            let part = "`columns`";
            return Err(GraphError::part(part, "aren't the same in the unit and in the file"));
        }
        let mut own = self.tensors.iter().filter(|tensor| tensor.role != GraphRole::Constant);
        let mut theirs = exported.tensors.iter();
        loop {
            let (a, b) = (own.next(), theirs.next());
            if a != b {
                let name = a.or(b).map_or("", |tensor| tensor.name.as_str());
                let part = format!("tensor `{}`", said(name));
                return Err(GraphError::part(part, "isn't the same in the unit and in the file"));
            }
            if a.is_none() {
                return Ok(());
            }
        }
    }
}

fn limit(what: &'static str, count: u64, limit: u64) -> Result<(), GraphError> {
    if count > limit { Err(GraphError::TooMany { what, limit }) } else { Ok(()) }
}

fn parse(views: &[TensorView<'_>]) -> Result<json::File, GraphError> {
    let lacks = || GraphError::part("the file", "has no `graph`");
    let view = views.iter().find(|view| view.name == "graph").ok_or_else(lacks)?;
    if view.dtype != Dtype::U8 || view.shape.len() != 1 {
        return Err(GraphError::part("`graph`", "must be U8 of shape [bytes]"));
    }
    limit("bytes of JSON", to_u64(view.data.len()), MAX_JSON_BYTES)?;
    // The message quotes what it found, which may be anything and of any length.
    serde_json::from_slice(view.data).map_err(|error| GraphError::Json(said_fault(&error)))
}

fn said_fault(error: &serde_json::Error) -> String {
    const LONGEST: usize = 200;
    error.to_string().chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}

fn columns(written: BTreeMap<String, (Dtype, Vec<u64>)>) -> Result<Vec<Column>, GraphError> {
    let column = |(name, (dtype, shape)): (String, (Dtype, Vec<u64>))| {
        let elements = TensorSpec::new("", dtype, shape.clone()).elements()?;
        limit("elements in a row", elements, MAX_VALUE_ELEMENTS)?;
        let part = |fault: &str| GraphError::part(format!("column `{}`", said(&name)), fault);
        check_name(&name).map_err(|fault| part(&fault))?;
        if matches!(dtype, Dtype::U32 | Dtype::U64) {
            return Err(part("is of a type that no batch has"));
        }
        Ok(Column { name, dtype, shape })
    };
    limit("columns", to_u64(written.len()), to_u64(MAX_COLUMNS))?;
    written.into_iter().map(column).collect()
}

/// Checks the tensors against each other and against what the file holds; gives the constants.
fn check_all_tensors(
    tensors: &[GraphTensor],
    views: &[TensorView<'_>],
) -> Result<Vec<Tensor>, GraphError> {
    limit("tensors", to_u64(tensors.len()), to_u64(MAX_TENSORS))?;
    check_tensors(tensors.iter().filter(|tensor| tensor.role != GraphRole::Constant))?;
    let (mut names, mut elements) = (BTreeSet::new(), 0u64);
    let mut constants = Vec::new();
    let mut expected = 1;
    for tensor in tensors {
        let fault = |fault| GraphError::part(format!("tensor `{}`", said(&tensor.name)), fault);
        if !names.insert(tensor.name.as_str()) {
            return Err(fault("is there twice"));
        }
        let spec = TensorSpec::new("", tensor.dtype, tensor.shape.clone());
        elements = elements.saturating_add(spec.elements()?);
        let prefix = match (tensor.role, tensor.start) {
            (GraphRole::Constant, Some(_)) => return Err(fault("is a constant with a start")),
            (GraphRole::Constant, None) if tensor.name.len() > MAX_TENSOR_NAME => {
                return Err(fault("has too long a name"));
            }
            (GraphRole::Constant, None) if !has_arithmetic(tensor.dtype) => {
                return Err(fault("has a type that PyTorch doesn't compute with"));
            }
            (GraphRole::Constant, None) => "constant.",
            (_, Some(Start::Given)) => sojourn_model::GIVEN,
            _ => continue,
        };
        let name = format!("{prefix}{}", tensor.name);
        let index = views.binary_search_by(|view| view.name.cmp(&name)).ok();
        let view = index.and_then(|index| views.get(index));
        let view = view.ok_or_else(|| fault("has no numbers in the file"))?;
        if (view.dtype, &view.shape) != (tensor.dtype, &tensor.shape) {
            return Err(fault("has another type or shape in the file"));
        }
        expected += 1;
        if tensor.role == GraphRole::Constant {
            constants.push(Tensor { name: tensor.name.clone(), ..view.to_tensor() });
        }
    }
    limit("numbers in its tensors", elements, MAX_PARAMETERS)?;
    if views.len() != expected {
        return Err(GraphError::part("the file", "has tensors that the graph doesn't"));
    }
    Ok(constants)
}

/// Reads lists of nodes over the same tensors and columns.
struct Reader<'a> {
    roles: Vec<GraphRole>,
    tensors: BTreeMap<&'a str, usize>,
    /// The index of each parameter among the parameters.
    parameters: BTreeMap<&'a str, usize>,
    columns: &'a [Column],
}

impl<'a> Reader<'a> {
    fn new(tensors: &'a [GraphTensor], columns: &'a [Column]) -> Self {
        let names = tensors.iter().map(|tensor| tensor.name.as_str());
        let parameters = tensors.iter().filter(|tensor| tensor.role == GraphRole::Parameter);
        Self {
            roles: tensors.iter().map(|tensor| tensor.role).collect(),
            tensors: names.zip(0..).collect(),
            parameters: parameters.map(|tensor| tensor.name.as_str()).zip(0..).collect(),
            columns,
        }
    }

    fn train(&self, stages: Vec<json::Stage>) -> Result<Vec<Stage>, GraphError> {
        limit("stages", to_u64(stages.len()), MAX_STAGES)?;
        if stages.is_empty() {
            return Err(GraphError::part("`train`", "has no stage"));
        }
        let mut read = Vec::with_capacity(stages.len());
        for (index, stage) in stages.into_iter().enumerate() {
            let name = format!("train {index}");
            let (list, sources) = self.list(&name, stage.nodes, &[stage.loss], Use::Train)?;
            let [loss] = sources.as_slice() else { continue };
            let moves = self.moves(&name, stage.moves)?;
            read.push(Stage { list, loss: *loss, moves });
        }
        Ok(read)
    }

    fn moves(&self, stage: &str, moves: Option<Vec<String>>) -> Result<Vec<usize>, GraphError> {
        let Some(names) = moves else { return Ok((0..self.parameters.len()).collect()) };
        let fault = |fault: String| GraphError::part(format!("`moves` of `{stage}`"), fault);
        let mut indices: Vec<usize> = Vec::new();
        for name in &names {
            let index = self.parameters.get(name.as_str());
            let index = index.ok_or_else(|| fault(format!("has no parameter `{}`", said(name))))?;
            if indices.last().is_some_and(|last| last >= index) {
                return Err(fault(format!("has `{}` out of order", said(name))));
            }
            indices.push(*index);
        }
        if indices.is_empty() { Err(fault("is empty".into())) } else { Ok(indices) }
    }

    fn evaluate(&self, evaluate: json::Evaluate) -> Result<Evaluate, GraphError> {
        let sums = evaluate.sums.0;
        limit("sums", to_u64(sums.len()), to_u64(MAX_NAMED_SUMS))?;
        if !sums.contains_key("loss") {
            return Err(GraphError::part("`sums`", "has no `loss`"));
        }
        if let Some(name) = sums.keys().find(|name| !is_sum_name(name)) {
            let part = format!("sum `{}`", said(name));
            return Err(GraphError::part(part, "has a name that no metric can have"));
        }
        let shapes = evaluate.shapes.0;
        check_array_shapes(&shapes, |name| sums.contains_key(name))
            .map_err(|(name, fault)| GraphError::part(format!("sum `{}`", said(&name)), fault))?;
        let (names, sources): (Vec<String>, Vec<json::Argument>) = sums.into_iter().unzip();
        let (list, sources) = self.list("evaluate", evaluate.nodes, &sources, Use::Evaluate)?;
        Ok(Evaluate { list, sums: names.into_iter().zip(sources).collect(), shapes })
    }

    fn predict(&self, predict: json::Predict) -> Result<Predict, GraphError> {
        let (list, sources) =
            self.list("predict", predict.nodes, &[predict.outputs], Use::Predict)?;
        let [outputs] = sources.as_slice() else {
            return Err(GraphError::part("`predict`", "has no outputs"));
        };
        Ok(Predict { list, outputs: *outputs })
    }

    /// Checks a list of nodes, and gives where its results come from.
    fn list(
        &self,
        name: &str,
        nodes: Vec<json::Node>,
        results: &[json::Argument],
        r#use: Use,
    ) -> Result<(NodeList, Vec<Source>), GraphError> {
        let columns = self.columns.iter().map(|column| column.name.as_str()).zip(0..);
        let names = Names { tensors: &self.tensors, columns: columns.collect() };
        let mut checker = Checker::new(&names);
        for (node, written) in nodes.into_iter().enumerate() {
            let op = said(&written.op);
            let refuse = |fault| GraphError::Node { list: name.to_owned(), node, op, fault };
            let before = checker.changed.len();
            let added = checker.add(written);
            let changed = checker.changed.get(before..).unwrap_or_default();
            added.and_then(|()| self.may_change(changed, r#use)).map_err(refuse)?;
        }
        let part = |fault| GraphError::part(format!("a result of `{name}`"), format!("is {fault}"));
        let sources = results.iter().map(|result| checker.tensor(result).map_err(part));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let changed = checker.changed.iter().filter_map(|changed| match changed {
            Source::Column(column) => Some(*column),
            _ => None,
        });
        let changed_columns = changed.collect();
        Ok((NodeList { nodes: checker.finish(), changed_columns }, sources))
    }

    /// Parameters are moved by the optimiser alone, buffers in training alone, constants never.
    fn may_change(&self, changed: &[Source], r#use: Use) -> Result<(), String> {
        for source in changed {
            let Source::Tensor(index) = source else { continue };
            match self.roles.get(*index) {
                Some(GraphRole::Buffer) if r#use == Use::Train => {}
                Some(GraphRole::Buffer) => {
                    return Err("changes a buffer, which only training may".into());
                }
                _ => return Err("changes a parameter or constant itself".into()),
            }
        }
        Ok(())
    }
}

/// The use of a list of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Train,
    Evaluate,
    Predict,
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
