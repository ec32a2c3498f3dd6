//! Rows through the model, in a trainer child of this machine.

use crate::cli::{
    model::model_file::{Model, blob},
    terminal::{causes::slot_failure, exit::Failure},
};
use sojourn_codec::{CodecError, Tensor, decode, encode};
use sojourn_model::{Lineage, portable::FileScaling, weights_checkpoint};
use sojourn_protocol::{
    column::Column,
    digest::Digest,
    error::error_chain,
    manifest::Scaling,
    quantity::{SaturatingFrom as _, to_u64, to_usize},
    trainer::Predict,
};
use sojourn_slot::{Slot, SlotConfig};
use std::{collections::BTreeMap, fs, io, path::Path, thread::available_parallelism};

/// A trainer with a model.
pub(super) struct Predictor {
    slot: Slot,
    request: Predict,
    /// Rows that have gone through.
    rows: u64,
}

impl Predictor {
    /// Puts the model into `folder`, where the trainer finds it. No process is started yet.
    pub(super) fn new(model: &Model, folder: &Path) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        let mut put = |bytes: &[u8]| {
            let blob = blob(bytes);
            let path = folder.join(blob.sha256.to_string());
            write(&path, bytes)?;
            files.insert(blob.sha256, path);
            Ok::<_, Failure>(blob)
        };
        let scaling = match (model.description.scaling, &model.scaling) {
            (FileScaling::Constant(factor), _) => Scaling::Constant(factor),
            (FileScaling::Standard, Some(scaling)) => Scaling::Standard(put(scaling)?),
            (FileScaling::Standard, None) | (FileScaling::None, _) => Scaling::None,
        };
        let context = model.description.context(scaling);
        let checkpoint = weights_checkpoint(&context, &model.parameters, Lineage::initial(0))
            .map_err(|error| Failure::work(error_chain(&error)))?;
        let checkpoint: Digest = put(&checkpoint)?.sha256;
        model.graph.as_deref().map(&mut put).transpose()?;
        let mut config = SlotConfig::find().map_err(slot_failure)?;
        let threads = available_parallelism().map_or(1, usize::from);
        config.threads = u32::saturating_from(threads);
        let request = Predict {
            context,
            checkpoint,
            files,
            rows: folder.join("rows"),
            output: folder.join("outputs"),
        };
        Ok(Self { slot: Slot::new(config), request, rows: 0 })
    }

    /// Outputs of each row.
    pub(super) fn columns(&self) -> usize {
        to_usize(self.request.context.outputs).max(1)
    }

    /// Rows are these columns by name.
    pub(super) fn take_columns(&mut self, columns: Vec<Column>) {
        self.request.context.columns = columns;
    }

    /// The outputs of `rows` rows of numbers, one row after another, before any softmax.
    pub(super) async fn outputs(
        &mut self,
        numbers: &[f32],
        rows: usize,
    ) -> Result<Vec<f32>, Failure> {
        let width = u64::saturating_from(numbers.len() / rows.max(1));
        let file = encode(&[Tensor::f32("x", [to_u64(rows), width], numbers)]);
        let outputs = self.outputs_of(&file.map_err(|error| bad(&error))?, rows).await?;
        if outputs.len() == rows.saturating_mul(self.columns()) {
            return Ok(outputs);
        }
        let wanted = self.columns();
        let came = outputs.len() / rows.max(1);
        let first = self.rows.saturating_sub(to_u64(rows)) + 1;
        Err(failed(
            first,
            &format!(
                "each row gives {came} outputs; {wanted} are wanted, one for each class, or one for numbers"
            ),
        ))
    }

    /// The outputs of the `rows` rows of a file, one row after another.
    pub(super) async fn outputs_of(
        &mut self,
        file: &[u8],
        rows: usize,
    ) -> Result<Vec<f32>, Failure> {
        let count = to_u64(rows);
        write(&self.request.rows, file)?;
        let first = self.rows + 1;
        match self.slot.predict(self.request.clone()).await.map_err(slot_failure)? {
            Ok(predicted) if predicted.rows == count => {}
            Ok(predicted) => {
                let why = format!("{count} went in, {} came out", predicted.rows);
                return Err(failed(first, &why));
            }
            Err(failure) => return Err(failed(first, &failure.message)),
        }
        self.rows += count;
        let path = &self.request.output;
        let file = fs::read(path).map_err(|error| io_failure("read", path, &error))?;
        let views = decode(&file).map_err(|error| bad(&error))?;
        let outputs = views.first().ok_or_else(|| failed(first, "nothing came out"))?;
        Ok(outputs.f32s().map_err(|error| bad(&error))?.collect())
    }
}

fn bad(error: &CodecError) -> Failure {
    Failure::work(error_chain(error))
}

fn failed(first: u64, why: &str) -> Failure {
    Failure::work(format!("the rows from row {first} on can't be predicted: {why}"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| io_failure("write", path, &error))
}

fn io_failure(verb: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::work(format!("can't {verb} `{}`: {error}", path.display()))
}
