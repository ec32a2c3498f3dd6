//! Rows through a model: the outputs, as they are before any softmax, and in the units of labels that are numbers.

use crate::{
    batch::X,
    data::Dataset,
    error::TrainError,
    evaluate::rows_at_once,
    files::read,
    graph::Graphs,
    kind::tensor,
    model::Model,
    objective::{predictions, seed_chance},
    scaler::Scaler,
};
use sojourn_codec::{Dtype, Tensor as Stored, decode, encode};
use sojourn_protocol::{
    digest::Digest,
    manifest::LabelScaling,
    trainer::{Predict, Predicted},
};
use std::fs;
use tch::Device;

/// The model of the last request, because requests come in rows of the same.
#[derive(Debug)]
pub(crate) struct LastModel {
    /// By its checkpoint, and its graph: two graphs may begin with the same numbers.
    model: Option<(Named, Model)>,
    graphs: Graphs,
}

/// The checkpoint of a model, and the file of its graph if it has one.
type Named = (Digest, Option<Digest>);

impl Default for LastModel {
    fn default() -> Self {
        Self { model: None, graphs: Graphs::new() }
    }
}

impl LastModel {
    fn get(&mut self, request: &Predict, device: Device) -> Result<&Model, TrainError> {
        let graph = request.context.config.model.exported();
        let named = (request.checkpoint, graph.map(|graph| graph.file.sha256));
        let held = self.model.take().filter(|(held, _)| *held == named);
        let model = match held {
            Some((_, model)) => model,
            None => {
                let checkpoint = read(&request.files, request.checkpoint)?;
                let program = match graph {
                    Some(exported) => {
                        let read = || read(&request.files, exported.file.sha256);
                        Some(self.graphs.get(&request.context, exported, read, device)?)
                    }
                    None => None,
                };
                Model::load(&request.context, &checkpoint, program, device)?
            }
        };
        Ok(&self.model.insert((named, model)).1)
    }
}

/// Puts the rows of a file through a model and writes the outputs into another.
pub(crate) fn predict(
    request: &Predict,
    last: &mut LastModel,
    device: Device,
) -> Result<Predicted, TrainError> {
    let model = last.get(request, device)?;
    let failed = |verb, path: &std::path::Path| {
        let path = path.to_owned();
        move |source| TrainError::File { verb, path, source }
    };
    let bytes = fs::read(&request.rows).map_err(failed("read", &request.rows))?;
    let blob = |source| TrainError::Blob { what: "rows", source };
    let scaling = request.context.targets.scaling();
    let stored = match request.context.columns.as_slice() {
        [] => through(model, &numbers(request, &bytes, device)?, scaling)?,
        columns => {
            // Predictions may do without some.
            let names: Vec<String> =
                decode(&bytes).map_err(blob)?.into_iter().map(|view| view.name).collect();
            let there = columns.iter().filter(|column| names.contains(&column.name));
            let there: Vec<_> = there.cloned().collect();
            through(model, &Dataset::of_columns(&bytes, &there, device)?, scaling)?
        }
    };
    drop(bytes);
    let rows = stored.shape.first().copied().unwrap_or_default();
    let file = encode(&[stored]).map_err(blob)?;
    fs::write(&request.output, file).map_err(failed("write", &request.output))?;
    Ok(Predicted { rows })
}

/// Rows of numbers, in the bytes of a file with `x` alone.
fn numbers(request: &Predict, bytes: &[u8], device: Device) -> Result<Dataset, TrainError> {
    let views = decode(bytes).map_err(|source| TrainError::Blob { what: "rows", source })?;
    let features = request.context.shape.iter().map(|side| u64::from(*side)).product();
    let x = match views.as_slice() {
        [x] if x.name == X && x.dtype == Dtype::F32 && x.shape.get(1..) == Some(&[features]) => x,
        _ => {
            let text = format!("rows must be `x` alone, F32 of shape [rows, {features}]");
            return Err(TrainError::Unit(text));
        }
    };
    let x = tensor(x)?;
    let scaler = Scaler::of(&request.context.scaling, &x, &request.files)?;
    Dataset::of_x(scaler.apply(x)?.f_to_device(device)?)
}

/// The predictions `[rows, outputs]`: the model's outputs, unscaled as labels are. Rows go through in chunks that bound the
/// memory; each chunk's outputs go straight to their place. How many rows a request has is the caller's business.
fn through(
    model: &Model,
    data: &Dataset,
    scaling: Option<LabelScaling>,
) -> Result<Stored, TrainError> {
    let rows = data.rows();
    let at_once = rows_at_once(model.trial_model())?;
    let (mut made, mut columns) = (Vec::new(), 0);
    seed_chance(model);
    tch::no_grad(|| {
        let mut start = 0;
        while start < rows {
            let count = at_once.min(rows - start);
            let outputs = predictions(model, &data.range(start, count)?, scaling)?;
            let outputs = outputs.f_contiguous()?.f_to_device(Device::Cpu)?;
            (_, columns) = outputs.size2()?;
            let before = made.len();
            made.resize(before + outputs.numel() * size_of::<f32>(), 0);
            let place = made.get_mut(before..).unwrap_or_default();
            outputs.f_copy_data_u8(place, outputs.numel())?;
            start += count;
        }
        Ok::<_, TrainError>(())
    })?;
    let shape = vec![u64::try_from(rows)?, u64::try_from(columns)?];
    Ok(Stored { name: "outputs".into(), dtype: Dtype::F32, shape, data: made })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{World, context};
    use sojourn_model::{Lineage, weights_checkpoint};
    use sojourn_protocol::{
        manifest::Scaling,
        spec::{Architecture, Loss},
        unit::TrialContext,
    };

    /// A linear model of 16 features whose two outputs are the first feature, and 3 less the second.
    fn linear() -> (TrialContext, Vec<u8>) {
        let mut context = context(Architecture::mlp([]));
        context.outputs = 2;
        let mut weight = [0.0; 32];
        (weight[0], weight[17]) = (1.0, -1.0);
        let weight = Stored::f32("layers.0.weight", [2, 16], &weight);
        let bias = Stored::f32("layers.0.bias", [2], &[0.0, 3.0]);
        let parameters = encode(&[weight, bias]).unwrap();
        let checkpoint = weights_checkpoint(&context, &parameters, Lineage::initial(0)).unwrap();
        (context, checkpoint)
    }

    fn request(world: &mut World, model: (TrialContext, Vec<u8>), rows: &Stored) -> Predict {
        let (context, checkpoint) = model;
        let checkpoint = world.put(&checkpoint).sha256;
        let path = world.folder.path().join("rows");
        fs::write(&path, encode(std::slice::from_ref(rows)).unwrap()).unwrap();
        let (files, output) = (world.files.clone(), world.folder.path().join("outputs"));
        Predict { context, checkpoint, files, rows: path, output }
    }

    fn outputs(request: &Predict, last: &mut LastModel) -> Vec<f32> {
        let predicted = predict(request, last, Device::Cpu).unwrap();
        let file = fs::read(&request.output).unwrap();
        let views = decode(&file).unwrap();
        let [view] = views.as_slice() else { panic!("{views:?}") };
        assert_eq!(
            (view.name.as_str(), view.shape.as_slice()),
            ("outputs", &[predicted.rows, 2][..])
        );
        view.f32s().unwrap().collect()
    }

    #[test]
    fn rows_go_through_in_their_order_scaled() {
        let mut world = World::new();
        // More rows than go through at once.
        let rows = 3000u16;
        let x: Vec<f32> = (0..rows).flat_map(|row| [f32::from(row); 16]).collect();
        let x = Stored::f32("x", [u64::from(rows), 16], &x);
        let mut plain = request(&mut world, linear(), &x);
        let mut last = LastModel::default();
        let expected = |factor: f32| -> Vec<f32> {
            (0..rows).map(|row| f32::from(row) * factor).flat_map(|x| [x, 3.0 - x]).collect()
        };
        assert_eq!(outputs(&plain, &mut last), expected(1.0));
        plain.context.scaling = Scaling::Constant(0.5);
        assert_eq!(outputs(&plain, &mut last), expected(0.5));

        let [mean, std] = [("mean", 1.0), ("std", 4.0)]
            .map(|(name, value)| Stored::f32(name, [16], &[value; 16]));
        plain.context.scaling = Scaling::Standard(world.put(&encode(&[mean, std]).unwrap()));
        plain.files = world.files.clone();
        let made = outputs(&plain, &mut last);
        assert_eq!(made[..4], [-0.25, 3.25, 0.0, 3.0]);
    }

    #[test]
    fn another_model_is_loaded_and_wrong_rows_are_refused() {
        let mut world = World::new();
        let x = Stored::f32("x", [1, 16], &[2.0; 16]);
        let first = request(&mut world, linear(), &x);
        let mut last = LastModel::default();
        assert_eq!(outputs(&first, &mut last), [2.0, 1.0]);
        let (context, _) = linear();
        let zeros = [("layers.0.weight", vec![2, 16], 32), ("layers.0.bias", vec![2], 2)]
            .map(|(name, shape, count)| Stored::f32(name, shape, &vec![0.0; count]));
        let zeros = encode(&zeros).unwrap();
        let zeros = weights_checkpoint(&context, &zeros, Lineage::initial(0)).unwrap();
        let second = request(&mut world, (context, zeros), &x);
        assert_eq!(outputs(&second, &mut last), [0.0, 0.0]);
        assert_eq!(outputs(&first, &mut last), [2.0, 1.0]);

        for wrong in [Stored::f32("x", [1, 15], &[0.0; 15]), Stored::f32("z", [1, 16], &[0.0; 16])]
        {
            let refused = predict(&request(&mut world, linear(), &wrong), &mut last, Device::Cpu)
                .unwrap_err();
            assert_eq!(refused.to_string(), "rows must be `x` alone, F32 of shape [rows, 16]");
        }
        let mut other = request(&mut world, linear(), &x);
        other.context.config.training.loss = Loss::Mse;
        other.checkpoint = Digest::of(b"another");
        assert!(matches!(predict(&other, &mut last, Device::Cpu), Err(TrainError::NoFile(_))));
        fs::write(&first.files[&first.checkpoint], "altered").unwrap();
        let refused = predict(&first, &mut LastModel::default(), Device::Cpu);
        assert!(matches!(refused, Err(TrainError::Damaged(_))));
    }
}
