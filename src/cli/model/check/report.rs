//! The findings of a check, as JSON and as text.

use super::{data::CheckData, trial::Trained};
use crate::{
    cli::{
        render::text,
        submit::{columns, graphs::with_values},
    },
    exporter::{Made, Values},
};
use serde::Serialize;
use sojourn_protocol::{column::Column, digest::Digest, spec::GraphRole};

/// The JSON of a check.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    entry: String,
    values: Values,
    /// The columns, where the data has them by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    columns: Vec<Column>,
    /// Shape of one row; empty where the data has columns by name.
    shape: Vec<u32>,
    /// None where labels are numbers, or columns have names.
    classes: Option<u32>,
    parameters: u64,
    buffers: u64,
    tensors: Vec<TensorReport>,
    graph_bytes: u64,
    graph_sha256: Digest,
    checkpoint_bytes: u64,
    /// Floating-point operations of one row's forward pass.
    flops_per_row: u64,
    /// The names of the sums that the evaluation adds up.
    sums: Vec<String>,
    batch_size: u32,
    batches: u32,
    seconds_per_batch: f64,
    /// Mean loss of the rows that were trained on.
    loss: f64,
    /// The most bytes of memory that training took, with libtorch.
    peak_memory: Option<u64>,
    repeatable: bool,
    /// The first tensor, in name order, that differs where the training is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) differs: Option<String>,
}

#[derive(Debug, Serialize)]
struct TensorReport {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    role: GraphRole,
}

impl Report {
    /// Of a model with these values.
    pub(super) fn new(
        entry: String,
        values: Values,
        made: &Made,
        data: &CheckData,
        trained: Trained,
    ) -> Self {
        let graph = &made.graph;
        let numbers = |role: GraphRole| -> u64 {
            let of_role = graph.tensors.iter().filter(|tensor| tensor.role == role);
            of_role.map(|tensor| tensor.shape.iter().product::<u64>()).sum()
        };
        let tensors = graph.tensors.iter().map(|tensor| TensorReport {
            name: tensor.name.clone(),
            dtype: tensor.dtype.to_string(),
            shape: tensor.shape.clone(),
            role: tensor.role,
        });
        Self {
            entry,
            columns: data.columns_seen(&values),
            values,
            shape: data.shape.clone(),
            classes: data.classes(),
            parameters: numbers(GraphRole::Parameter),
            buffers: numbers(GraphRole::Buffer),
            tensors: tensors.collect(),
            graph_bytes: graph.file.bytes,
            graph_sha256: graph.file.sha256,
            checkpoint_bytes: trained.checkpoint_bytes,
            flops_per_row: graph.flops_per_row,
            sums: graph.sums.clone(),
            batch_size: data.batch_size,
            batches: trained.batches,
            seconds_per_batch: trained.seconds_per_batch,
            loss: trained.loss,
            peak_memory: trained.peak_memory,
            repeatable: trained.differs.is_none(),
            differs: trained.differs,
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let values = with_values(&self.values);
        let memory = self.peak_memory.map_or_else(|| "not known".to_owned(), text::bytes);
        let tensors =
            text::counted(u64::try_from(self.tensors.len()).unwrap_or(u64::MAX), "tensor");
        let mut lines = vec![
            format!(
                "model    {}{values}, {}, {} in buffers",
                self.entry,
                text::counted(self.parameters, "parameter"),
                text::counted(self.buffers, "number")
            ),
            format!("data     {}", data_text(self)),
            format!(
                "graph    {} (SHA-256 {})",
                text::bytes(self.graph_bytes),
                self.graph_sha256.short()
            ),
            format!(
                "layout   {tensors}; a checkpoint has {} with Adam's state",
                text::bytes(self.checkpoint_bytes)
            ),
            format!("work     {} a row forward", text::counted(self.flops_per_row, "operation")),
            format!("sums     {}", self.sums.join(", ")),
            format!("memory   {memory} at most, with libtorch"),
            format!(
                "speed    {:.4} s a batch of {}, one thread; mean loss {} over {}",
                self.seconds_per_batch,
                text::counted(self.batch_size.into(), "row"),
                text::metric(self.loss),
                match self.batches {
                    1 => "1 batch".to_owned(),
                    batches => format!("{batches} batches"),
                }
            ),
        ];
        lines.push(match self.repeatable {
            true => {
                "cut      repeatable: the same bytes, whole and cut in two processes".to_owned()
            }
            false => "cut      not repeatable".to_owned(),
        });
        lines.join("\n")
    }
}

/// The columns one by one; without such the shape of a row, and what labels are.
fn data_text(report: &Report) -> String {
    if !report.columns.is_empty() {
        return report.columns.iter().map(columns::said).collect::<Vec<_>>().join(", ");
    }
    let labels = match report.classes {
        Some(classes) => text::classes(classes.into()),
        None => "numbers as labels".to_owned(),
    };
    format!("rows of shape {:?}, {labels}", report.shape)
}
