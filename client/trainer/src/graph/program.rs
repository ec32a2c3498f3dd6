//! A graph that is ready to run, and those that are kept for the next unit.

use super::{
    call::{Place, Scope},
    list::List,
};
use crate::{error::TrainError, kind::kind};
use sojourn_graph::{Graph, GraphError, GraphRole};
use sojourn_protocol::{
    digest::Digest,
    manifest::Targets,
    spec::{ExportedGraph, Precision},
    unit::TrialContext,
};
use std::{collections::BTreeMap, rc::Rc};
use tch::{Device, Kind, Tensor};

/// Graphs that are kept in memory: units of one job often share one.
const KEPT: usize = 4;

/// Graphs that are ready to run, the most recently used last.
#[derive(Debug)]
pub(crate) struct Graphs(Vec<(Digest, Rc<Program>)>);

impl Graphs {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The graph of a trial, from memory or from the bytes of its file, which `read` gives.
    pub(crate) fn get(
        &mut self,
        context: &TrialContext,
        exported: &ExportedGraph,
        read: impl FnOnce() -> Result<Vec<u8>, TrainError>,
        device: Device,
    ) -> Result<Rc<Program>, TrainError> {
        let digest = exported.file.sha256;
        let held = self.0.iter().position(|(held, _)| *held == digest);
        let program = match held {
            Some(at) => self.0.remove(at).1,
            None => Rc::new(Program::prepare(&read()?, exported, device)?),
        };
        program.check(context, exported)?;
        if self.0.len() >= KEPT {
            self.0.remove(0);
        }
        self.0.push((digest, Rc::clone(&program)));
        Ok(program)
    }
}

/// A graph that is ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    /// What the summary must say.
    exported: ExportedGraph,
    /// Where the graph's tensors are.
    places: Vec<Place>,
    constants: Vec<Tensor>,
    columns: Vec<Column>,
    /// Shape of a row of `x`.
    row: Vec<i64>,
    device: Device,
    stages: Vec<Stage>,
    evaluate: List,
    /// The names of its results.
    sums: Vec<String>,
    predict: Option<List>,
}

/// A stage of a training step.
#[derive(Debug)]
struct Stage {
    list: List,
    /// Indices among the parameters.
    moves: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    X,
    Y(Kind),
}

/// The tensors of a model, as a graph refers to them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tensors<'a> {
    /// The parameters as they are computed with.
    pub(crate) parameters: &'a [Tensor],
    /// The buffers.
    pub(crate) buffers: &'a [Tensor],
    /// See [`Precision`].
    pub(crate) precision: Precision,
}

impl Program {
    /// Prepares the graph in a file's bytes.
    pub(crate) fn prepare(
        file: &[u8],
        exported: &ExportedGraph,
        device: Device,
    ) -> Result<Self, TrainError> {
        let graph = Graph::read(file)?;
        graph.agrees_with(exported)?;
        let mut constants = Vec::with_capacity(graph.constants.len());
        for constant in &graph.constants {
            let sides = constant.shape.iter().map(|side| i64::try_from(*side));
            let shape = sides.collect::<Result<Vec<_>, _>>()?;
            let kind = kind(constant.dtype)?;
            let tensor = Tensor::f_from_data_size(&constant.data, &shape, kind)?;
            constants.push(tensor.f_to_device(device)?);
        }
        let mut stages = Vec::with_capacity(graph.train.len());
        for stage in &graph.train {
            let list = List::new(&stage.list, vec![stage.loss])?;
            stages.push(Stage { list, moves: stage.moves.clone() });
        }
        let sums = graph.evaluate.sums.keys().cloned().collect();
        let results = graph.evaluate.sums.values().copied().collect();
        let evaluate = List::new(&graph.evaluate.list, results)?;
        let predict = graph.predict.as_ref();
        let predict = predict.map(|predict| List::new(&predict.list, vec![predict.outputs]));
        let (columns, row) = columns(&graph)?;
        Ok(Self {
            exported: exported.clone(),
            places: places(&graph),
            constants,
            columns,
            row,
            device,
            stages,
            evaluate,
            sums,
            predict: predict.transpose()?,
        })
    }

    /// Can a trial be trained by it?
    fn check(&self, context: &TrialContext, exported: &ExportedGraph) -> Result<(), TrainError> {
        if exported.tensors != self.exported.tensors {
            let fault = "aren't those of the graph's file".into();
            let part = "the tensors that the unit says".into();
            return Err(GraphError::Part { part, fault }.into());
        }
        let features: i64 = context.shape.iter().map(|side| i64::from(*side)).product();
        if self.row.iter().product::<i64>() != features {
            let (row, shape) = (&self.row, &context.shape);
            let text =
                format!("the graph takes rows of shape {row:?}, those of the data are {shape:?}");
            return Err(TrainError::Unit(text));
        }
        if context.targets != Targets::Plain {
            let text = "a graph takes labels as they are, neither scaled nor weighted";
            return Err(TrainError::Unit(text.into()));
        }
        Ok(())
    }

    /// How many stages a training step has, each with the parameters that it moves: indices among the parameters.
    pub(crate) fn moves(&self) -> impl Iterator<Item = &[usize]> {
        self.stages.iter().map(|stage| stage.moves.as_slice())
    }

    /// The loss of a stage for `x`, `[rows, features]`, and `y`, `[rows]`.
    pub(crate) fn loss(
        &self,
        stage: usize,
        tensors: Tensors<'_>,
        x: &Tensor,
        y: &Tensor,
    ) -> Result<Tensor, TrainError> {
        let lacks = || TrainError::Unit(format!("the graph has no stage {stage}"));
        let stage = self.stages.get(stage).ok_or_else(lacks)?;
        let results = self.run(&stage.list, tensors, x, Some(y))?;
        let loss = results.into_iter().next().ok_or_else(lacks)?;
        if loss.dim() > 0 || loss.f_kind()? == Kind::Int64 {
            let size = loss.size();
            return Err(TrainError::Unit(format!("the graph's loss is {size:?}, and no number")));
        }
        if !loss.requires_grad() {
            // libtorch would follow a pointer to nothing.
            return Err(TrainError::Unit("the graph's loss depends on no parameter".into()));
        }
        Ok(loss)
    }

    /// The sums of an evaluation's rows, by name.
    pub(crate) fn sums(
        &self,
        tensors: Tensors<'_>,
        x: &Tensor,
        y: &Tensor,
    ) -> Result<BTreeMap<String, f64>, TrainError> {
        let results = self.run(&self.evaluate, tensors, x, Some(y))?;
        let mut sums = BTreeMap::new();
        for (name, sum) in self.sums.iter().zip(results) {
            if sum.numel() != 1 {
                let size = sum.size();
                let text = format!("the graph's sum `{name}` is {size:?}, and no number");
                return Err(TrainError::Unit(text));
            }
            sums.insert(name.clone(), sum.f_double_value(&[])?);
        }
        Ok(sums)
    }

    /// The predictions for `x`, `[rows, features]`: one tensor of rows.
    pub(crate) fn outputs(&self, tensors: Tensors<'_>, x: &Tensor) -> Result<Tensor, TrainError> {
        let text = "the model's code says nothing of predictions: it has no `predict`";
        let lacks = || TrainError::Unit(text.into());
        let results = self.run(self.predict.as_ref().ok_or_else(lacks)?, tensors, x, None)?;
        let outputs = results.into_iter().next().ok_or_else(lacks)?;
        if outputs.size().first() != x.size().first() {
            let size = outputs.size();
            return Err(TrainError::Unit(format!("the graph's outputs are {size:?}, not by row")));
        }
        Ok(outputs)
    }

    fn run(
        &self,
        list: &List,
        tensors: Tensors<'_>,
        x: &Tensor,
        y: Option<&Tensor>,
    ) -> Result<Vec<Tensor>, TrainError> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            columns.push(match (column, y) {
                (Column::X, _) => {
                    let shape: Vec<i64> = [-1].iter().chain(&self.row).copied().collect();
                    x.f_view(shape.as_slice())?
                }
                (Column::Y(kind), Some(y)) if y.f_kind()? == *kind => y.shallow_clone(),
                (Column::Y(kind), Some(_)) => {
                    let text = format!("the graph takes labels of type {kind:?}");
                    return Err(TrainError::Unit(text));
                }
                // The reader has seen to it that predictions don't ask for it.
                (Column::Y(_), None) => Tensor::new(),
            });
        }
        list.run(&Scope {
            places: &self.places,
            parameters: tensors.parameters,
            buffers: tensors.buffers,
            constants: &self.constants,
            columns: &columns,
            device: self.device,
            rounds: tensors.precision == Precision::Bf16,
        })
    }
}

fn places(graph: &Graph) -> Vec<Place> {
    let (mut parameters, mut buffers, mut constants) = (0.., 0.., 0..);
    let place = |role| match role {
        GraphRole::Parameter => parameters.next().map(Place::Parameter),
        GraphRole::Buffer => buffers.next().map(Place::Buffer),
        GraphRole::Constant => constants.next().map(Place::Constant),
    };
    graph.tensors.iter().map(|tensor| tensor.role).filter_map(place).collect()
}

/// The columns, and the shape of a row of `x`.
fn columns(graph: &Graph) -> Result<(Vec<Column>, Vec<i64>), TrainError> {
    let (mut columns, mut row) = (Vec::new(), Vec::new());
    for column in &graph.columns {
        if column.name == "x" {
            let sides = column.shape.iter().map(|side| i64::try_from(*side));
            row = sides.collect::<Result<_, _>>()?;
            columns.push(Column::X);
        } else {
            columns.push(Column::Y(kind(column.dtype)?));
        }
    }
    Ok((columns, row))
}
