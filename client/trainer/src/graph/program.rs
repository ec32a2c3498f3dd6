//! A graph that is ready to run, and those that are kept for the next unit.

use super::{
    call::{Place, Scope},
    list::List,
};
use crate::{batch::Batch, error::TrainError, kind::kind};
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
    /// The export's summary; a unit's must say the same tensors.
    exported: ExportedGraph,
    /// Where the graph's tensors are.
    places: Vec<Place>,
    constants: Vec<Tensor>,
    columns: Vec<Column>,
    device: Device,
    stages: Vec<Stage>,
    evaluate: List,
    /// The names of its results.
    sums: Vec<String>,
    /// The shapes of those that are arrays.
    arrays: BTreeMap<String, Vec<u64>>,
    predict: Option<List>,
}

/// A stage of a training step.
#[derive(Debug)]
struct Stage {
    list: List,
    /// Indices among the parameters.
    moves: Vec<usize>,
}

/// A column that the graph reads.
#[derive(Debug)]
struct Column {
    name: String,
    kind: Kind,
    /// Shape of a row.
    row: Vec<i64>,
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

/// The sums of some rows of an evaluation, by name.
#[derive(Debug, Default)]
pub(crate) struct RowSums {
    pub(crate) numbers: BTreeMap<String, f64>,
    /// The numbers of arrays, which have the shapes that the graph says.
    pub(crate) arrays: BTreeMap<String, Vec<f64>>,
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
        let columns = graph.columns.iter().map(Column::of).collect::<Result<_, _>>()?;
        Ok(Self {
            exported: exported.clone(),
            places: places(&graph),
            constants,
            columns,
            device,
            stages,
            evaluate,
            sums,
            arrays: graph.evaluate.shapes,
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
        for (name, column) in &self.exported.columns {
            let fits = column.check(name, &context.columns, &context.shape);
            fits.map_err(TrainError::Unit)?;
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

    /// The loss of a stage for a batch.
    pub(crate) fn loss(
        &self,
        stage: usize,
        tensors: Tensors<'_>,
        batch: &Batch,
    ) -> Result<Tensor, TrainError> {
        let lacks = || TrainError::Unit(format!("the graph has no stage {stage}"));
        let stage = self.stages.get(stage).ok_or_else(lacks)?;
        let results = self.run(&stage.list, tensors, batch)?;
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

    /// The shapes of those sums of an evaluation that are arrays.
    pub(crate) const fn array_shapes(&self) -> &BTreeMap<String, Vec<u64>> {
        &self.arrays
    }

    /// The sums of an evaluation's rows.
    pub(crate) fn sums(&self, tensors: Tensors<'_>, batch: &Batch) -> Result<RowSums, TrainError> {
        let results = self.run(&self.evaluate, tensors, batch)?;
        let windows = self.windows(batch);
        let mut sums = RowSums::default();
        for (name, sum) in self.sums.iter().zip(results) {
            let size = sum.size();
            if let Some(shape) = self.arrays.get(name) {
                let is = size.iter().map(|side| u64::try_from(*side));
                if is.collect::<Result<Vec<_>, _>>()? != *shape {
                    let text = format!("the graph's sum `{name}` is {size:?} instead of {shape:?}");
                    return Err(TrainError::Unit(text));
                }
                let flat = sum.f_to_kind(Kind::Double)?.f_to_device(Device::Cpu)?;
                sums.arrays.insert(name.clone(), Vec::<f64>::try_from(flat.f_reshape([-1])?)?);
            } else if sum.numel() == 1 {
                // A mean over rows is one over windows: each row has as many.
                sums.numbers.insert(name.clone(), sum.f_double_value(&[])? / windows);
            } else {
                let text = format!("the graph's sum `{name}` is {size:?}, and no number");
                return Err(TrainError::Unit(text));
            }
        }
        Ok(sums)
    }

    /// The predictions for a batch: one tensor of rows.
    pub(crate) fn outputs(
        &self,
        tensors: Tensors<'_>,
        batch: &Batch,
    ) -> Result<Tensor, TrainError> {
        let text = "the model's code says nothing of predictions: it has no `predict`";
        let lacks = || TrainError::Unit(text.into());
        let results = self.run(self.predict.as_ref().ok_or_else(lacks)?, tensors, batch)?;
        let outputs = results.into_iter().next().ok_or_else(lacks)?;
        if outputs.size().first() != Some(&batch.rows()) {
            let size = outputs.size();
            return Err(TrainError::Unit(format!("the graph's outputs are {size:?}, not by row")));
        }
        Ok(outputs)
    }

    fn run(
        &self,
        list: &List,
        tensors: Tensors<'_>,
        batch: &Batch,
    ) -> Result<Vec<Tensor>, TrainError> {
        let column = |(at, column): (usize, &Column)| match list.reads(at) {
            true => column.take(batch),
            false => Ok(Tensor::new()),
        };
        let columns = self.columns.iter().enumerate().map(column);
        let columns = columns.collect::<Result<Vec<_>, TrainError>>()?;
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

    /// Rows that the graph sees in one row of a batch: several where that is a window that the trial's divides.
    fn windows(&self, batch: &Batch) -> f64 {
        let [column] = self.columns.as_slice() else { return 1.0 };
        match (column.row.as_slice(), batch.column(&column.name).map(Tensor::size).as_deref()) {
            #[expect(clippy::cast_precision_loss, reason = "windows of a row are far below 2^53")]
            ([row], Some([_, stored])) if *row > 1 && stored > row => {
                ((stored - 1) / (row - 1)) as f64
            }
            _ => 1.0,
        }
    }
}

impl Column {
    fn of(column: &sojourn_graph::Column) -> Result<Self, TrainError> {
        let sides = column.shape.iter().map(|side| i64::try_from(*side));
        let row = sides.collect::<Result<_, _>>()?;
        Ok(Self { name: column.name.clone(), kind: kind(column.dtype)?, row })
    }

    /// The column of a batch, `[rows, ...row]`.
    fn take(&self, batch: &Batch) -> Result<Tensor, TrainError> {
        let Self { name, kind, row } = self;
        let Some(column) = batch.column(name) else {
            return Err(TrainError::Unit(format!(
                "the graph takes a column `{name}`, which isn't there"
            )));
        };
        if column.f_kind()? != *kind {
            let found = column.f_kind()?;
            return Err(TrainError::Unit(format!(
                "the graph takes `{name}` as {kind:?}, not {found:?}"
            )));
        }
        let shape: Vec<i64> = [-1].iter().chain(row).copied().collect();
        match (column.size().get(1..), row.as_slice()) {
            (Some(found), row) if found == row => Ok(column.shallow_clone()),
            // A window of so many tokens, each of which but the last is followed by another window.
            (Some([stored]), [tokens]) if stored > tokens && *tokens > 1 => {
                let cut = column.f_unfold(1, *tokens, tokens - 1)?;
                Ok(cut.f_reshape(shape.as_slice())?)
            }
            _ => Ok(column.f_view(shape.as_slice())?),
        }
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
