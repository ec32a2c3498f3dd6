//! Reading of model files, and the values that are refused.

use super::*;
use crate::{Lineage, checkpoint::tests::context, initial_checkpoint, weights_checkpoint};
use proptest::prelude::*;
use safetensors::tensor::TensorView as TheirView;
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::{Epoch, JobId, TrialId},
    manifest::{Labels, Scaling},
    spec::{
        Architecture, Categories, Channels, Coding, Dialect, Loss, Missing, OptimizerName,
        Precision,
    },
};
use std::collections::BTreeMap;

fn description(scaling: FileScaling) -> Description {
    Description {
        format: FORMAT,
        architecture: Architecture::cnn([2]),
        columns: Vec::new(),
        shape: vec![1, 4, 4],
        outputs: 3,
        labels: Labels::Classes(["a", "b", "c"].map(str::to_owned).to_vec()),
        label: Some("y".into()),
        array: None,
        channels: Channels::First,
        features: (0..16).map(|n| format!("x{n}")).collect(),
        categories: Vec::new(),
        missing: Missing::Refuse,
        dialect: Dialect::default(),
        fill: Vec::new(),
        scaling,
        label_scaling: None,
        loss: Loss::CrossEntropy,
        precision: Precision::F32,
        origin: Origin {
            job: JobId(3),
            name: "small".into(),
            trial: TrialId(1),
            epoch: Some(Epoch(4)),
            steps: 50,
            metric: "valid/accuracy".into(),
            value: Some(0.1 + 0.2),
            checkpoint: Digest::of(b"checkpoint"),
        },
    }
}

fn checkpoint() -> Vec<u8> {
    let context = context(Architecture::cnn([2]), OptimizerName::Adam, 0.0);
    initial_checkpoint(&context, 7, Lineage::initial(7)).unwrap()
}

fn scaling() -> Vec<u8> {
    let (mean, std) = (vec![1.5; 16], vec![0.5; 16]);
    encode(&[Tensor::f32(MEAN, [16], &mean), Tensor::f32(STD, [16], &std)]).unwrap()
}

fn sample() -> Vec<u8> {
    written(&description(FileScaling::Standard), Some(&scaling())).unwrap()
}

fn written(description: &Description, scaling: Option<&[u8]>) -> Result<Vec<u8>, ModelFileError> {
    write_model(description, Parts { checkpoint: &checkpoint(), scaling, ..Parts::default() })
}

#[test]
fn rows_that_it_was_trained_on_lie_beside_the_description() {
    let mut rows = TrainedRows::of(2);
    rows.see(&[1.0]);
    let (checkpoint, scaling) = (checkpoint(), scaling());
    let parts = Parts {
        checkpoint: &checkpoint,
        scaling: Some(&scaling),
        trained_rows: Some(&rows),
        ..Parts::default()
    };
    let file = write_model(&description(FileScaling::Standard), parts).unwrap();
    let model = ModelFile::read(&file).unwrap();
    assert_eq!(model.trained_rows, Some(rows));
    let without = ModelFile::read(&sample()).map(|model| model.trained_rows);
    assert_eq!(without, Ok(None));
    assert_eq!(model.description, description(FileScaling::Standard));
}

#[test]
fn a_written_model_is_read_back() {
    let file = sample();
    assert_eq!(file, sample(), "the same model, the same bytes");
    let model = ModelFile::read(&file).unwrap();
    assert_eq!(model.description, description(FileScaling::Standard));
    assert_eq!(model.scaling().unwrap(), Some(scaling()), "the very blob");
    let blob = BlobRef { sha256: Digest::of(b""), bytes: 0 };
    let context = model.description.context(Scaling::Standard(blob));
    let start = weights_checkpoint(&context, &model.parameters().unwrap(), Lineage::initial(0));
    let original = checkpoint();
    for (made, known) in decode(&start.unwrap()).unwrap().iter().zip(decode(&original).unwrap()) {
        if made.name.starts_with("layers.") {
            assert_eq!(*made, known);
        }
    }
    let header = ModelHeader::read(&file[..file.len() - 1]).unwrap();
    assert_eq!(header.file_bytes, file.len() as u64);
}

#[test]
fn a_constant_is_in_the_description_alone() {
    for scaling in [FileScaling::None, FileScaling::Constant(0.0625)] {
        let nameless = Description { features: Vec::new(), ..description(scaling) };
        let file = written(&nameless, None).unwrap();
        let model = ModelFile::read(&file).unwrap();
        assert_eq!((model.description.scaling, model.scaling()), (scaling, Ok(None)));
    }
    let lacking = written(&description(FileScaling::Standard), None);
    assert_eq!(lacking.unwrap_err().to_string(), "tensor `scaling.mean` of the model is missing");
    let extra = written(&description(FileScaling::None), Some(&scaling()));
    assert_eq!(extra.unwrap_err().to_string(), "tensor `scaling.mean` is none of the model's");
}

#[test]
fn the_description_is_pinned() {
    // Other programs read it: whoever changes it raises `FORMAT`.
    let text = serde_json::to_string(&Description {
        features: vec!["x0".into()],
        ..description(FileScaling::Constant(0.5))
    });
    assert_eq!(
        text.unwrap(),
        concat!(
            r#"{"format":1,"architecture":{"arch":"cnn","channels":[2]},"shape":[1,4,4],"outputs":3,"#,
            r#""labels":{"classes":["a","b","c"]},"label":"y","features":["x0"],"#,
            r#""scaling":{"constant":0.5},"loss":"cross-entropy","origin":{"job":3,"name":"small","#,
            r#""trial":1,"epoch":4,"steps":50,"metric":"valid/accuracy","value":0.30000000000000004,"#,
            r#""checkpoint":"47320987f9a49d5b00119b960f247a956773f57543982b8bfcb6da5bb3afd9ef"}}"#
        )
    );
}

#[test]
fn columns_of_words_and_means_fit_the_features() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let whole = Description {
        shape: vec![4],
        features: words(&["size", "color=blue", "color=red", "age"]),
        categories: vec![
            Categories {
                column: "size".into(),
                coding: Coding::Ordinal,
                words: words(&["S", "M"]),
                first: 0,
            },
            Categories {
                column: "color".into(),
                coding: Coding::OneHot,
                words: words(&["blue", "red"]),
                first: 1,
            },
        ],
        missing: Missing::Mean,
        fill: vec![0.5, 0.25, 0.75, 30.1],
        ..description(FileScaling::None)
    };
    let read = |change: &dyn Fn(&mut Description)| {
        let mut changed = whole.clone();
        change(&mut changed);
        let text = serde_json::to_string(&changed).unwrap();
        Description::parse(&text).map_err(|error| error.to_string())
    };
    assert_eq!(read(&|_| {}), Ok(whole.clone()), "means are read back to the bit");
    let refused = |change: &dyn Fn(&mut Description)| {
        let told = read(change).unwrap_err();
        told.trim_start_matches("its description contradicts itself: ").to_owned()
    };
    let colors = "the features of column `color` aren't those of its words";
    assert_eq!(refused(&|file| file.categories[1].first = 2), colors);
    assert_eq!(refused(&|file| file.categories[1].first = u32::MAX), colors);
    assert_eq!(refused(&|file| file.categories[1].words[0] = "pink".into()), colors);
    assert_eq!(
        refused(&|file| file.categories.swap(0, 1)),
        "the features of column `size` aren't those of its words"
    );
    assert_eq!(
        refused(&|file| file.categories[0].words.clear()),
        "column `size` has no words, or one twice"
    );
    assert_eq!(refused(&|file| file.fill.truncate(3)), "3 means of 4 features");
    assert_eq!(refused(&|file| file.missing = Missing::Zero), "4 means of 4 features");
}

/// The sample as another program would write it, changed by `change`.
fn rewritten(
    change: impl FnOnce(&mut BTreeMap<String, (safetensors::Dtype, Vec<usize>, Vec<u8>)>),
    said: Option<(&str, String)>,
) -> Vec<u8> {
    let file = sample();
    let theirs = SafeTensors::deserialize(&file).unwrap();
    let mut tensors: BTreeMap<_, _> = theirs
        .tensors()
        .into_iter()
        .map(|(name, view)| (name, (view.dtype(), view.shape().to_vec(), view.data().to_vec())))
        .collect();
    change(&mut tensors);
    // Backwards, as nobody here would write them.
    let views = tensors.iter().rev().map(|(name, (dtype, shape, data))| {
        (name.clone(), TheirView::new(*dtype, shape.clone(), data).unwrap())
    });
    let said = said.map(|(key, text)| [(key.to_owned(), text)].into_iter().collect());
    safetensors::serialize(views, said).unwrap()
}

fn said(change: impl FnOnce(&mut Description)) -> Option<(&'static str, String)> {
    let mut description = description(FileScaling::Standard);
    change(&mut description);
    Some((KEY, serde_json::to_string(&description).unwrap()))
}

#[test]
fn another_programs_copy_is_the_same_model() {
    let copy = rewritten(|_| {}, said(|_| {}));
    let original = sample();
    assert_eq!(ModelFile::read(&copy).unwrap(), ModelFile::read(&original).unwrap());
}

#[test]
fn invalid_models_are_refused_with_the_reason() {
    let refusal = |file: &[u8]| ModelFile::read(file).unwrap_err().to_string();
    let same = |file: Vec<u8>| refusal(&file);
    assert_eq!(
        same(rewritten(|_| {}, None)),
        "not written by `sojourn export`: its metadata has no `sojourn`"
    );
    assert_eq!(
        same(rewritten(|_| {}, Some((KEY, r#"{"format":2,"new":1}"#.into())))),
        "its format is 2, this program reads 1"
    );
    for text in ["", "[]", r#"{"format":1}"#, r#"{"format":-1}"#] {
        let told = same(rewritten(|_| {}, Some((KEY, text.into()))));
        assert!(told.starts_with("its description can't be read: "), "{told}");
    }
    let contradiction = |change: fn(&mut Description)| {
        let told = same(rewritten(|_| {}, said(change)));
        told.strip_prefix("its description contradicts itself: ").unwrap_or(&told).to_owned()
    };
    assert_eq!(contradiction(|d| d.shape = vec![1, 4]), "16 features in rows of shape [1, 4]");
    assert_eq!(contradiction(|d| d.outputs = 4), "4 outputs for 3 labels");
    let twice = contradiction(|d| d.features[9] = "x3".into());
    assert_eq!(twice, "feature `x3` is there twice");
    let twice = contradiction(|d| {
        d.labels = Labels::Classes(["a", "b", "a"].map(str::to_owned).to_vec());
    });
    assert_eq!(twice, "class `a` is there twice");
    assert_eq!(contradiction(|d| d.loss = Loss::Mse), "classes and `mse`");
    let numbers = contradiction(|d| (d.labels, d.outputs) = (Labels::Number, 1));
    assert_eq!(numbers, "numbers and `cross-entropy`");
    let nothing = contradiction(|d| d.scaling = FileScaling::Constant(0.0));
    assert_eq!(nothing, "features times 0");
    let unbuilt = said(|d| d.architecture = Architecture::cnn([]));
    assert!(same(rewritten(|_| {}, unbuilt)).contains("at least one entry"));
    let wider = said(|d| d.architecture = Architecture::cnn([3]));
    assert_eq!(
        same(rewritten(|_| {}, wider)),
        "tensor `layers.0.bias` is F32 [2], the model's is F32 [3]"
    );
    let lacking = rewritten(|all| drop(all.remove("layers.1.bias")), said(|_| {}));
    assert_eq!(refusal(&lacking), "tensor `layers.1.bias` of the model is missing");
    let nan = |all: &mut BTreeMap<String, (safetensors::Dtype, Vec<usize>, Vec<u8>)>| {
        all.get_mut("layers.1.bias").unwrap().2[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    };
    assert_eq!(
        same(rewritten(nan, said(|_| {}))),
        "tensor `layers.1.bias` has a value that isn't finite"
    );
    let whole = |all: &mut BTreeMap<String, (safetensors::Dtype, Vec<usize>, Vec<u8>)>| {
        all.get_mut("layers.1.bias").unwrap().0 = safetensors::Dtype::I32;
    };
    assert_eq!(
        same(rewritten(whole, said(|_| {}))),
        "tensor `layers.1.bias` is I32 [3], the model's is F32 [3]"
    );
}

#[test]
fn half_a_file_and_other_formats_are_told_apart_from_models() {
    let file = sample();
    for end in 0..file.len() {
        let told = ModelFile::read(&file[..end]).unwrap_err().to_string();
        assert!(told.starts_with("not a whole safetensors file: "), "{end} bytes: {told}");
    }
    let told = ModelFile::read(b"PK\x03\x04 this is another format").unwrap_err().to_string();
    assert!(told.contains("a header of"), "{told}");
    assert!(ModelFile::read(b"\x02\0\0\0\0\0\0\0{}").is_err());
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = ModelFile::read(&bytes);
    }

    #[test]
    fn a_changed_byte_is_refused_or_read(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut file = sample();
        let at = at.index(file.len());
        file[at] = byte;
        if let Ok(model) = ModelFile::read(&file) {
            prop_assert!(model.parameters().is_ok() && model.scaling().is_ok());
        }
    }

    #[test]
    fn random_descriptions_never_panic(
        hidden in prop::collection::vec(any::<u32>(), 0..4),
        shape in prop::collection::vec(any::<u32>(), 0..4),
        outputs in any::<u32>(),
    ) {
        let changed = said(|d| {
            d.architecture = Architecture::mlp(hidden);
            d.shape = shape;
            d.outputs = outputs;
        });
        let refused = ModelFile::read(&rewritten(|_| {}, changed)).is_err();
        prop_assert!(refused);
    }
}
