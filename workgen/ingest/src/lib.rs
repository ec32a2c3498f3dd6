//! Readers of data files to shards: what `submit` runs before it uploads.
//!
//! Two passes over the files, each a stream:
//!
//! ```text
//! survey   lines -> rows counted, widths checked, labels collected
//! cut      lines -> numbers -> (row i goes to place permutation(i)) -> one writer per shard
//!                          \-> sums for the scaling, over the rows that are trained on
//! ```
//!
//! Which rows are trained on follows from how many there are, so the scaling can only be computed in
//! the second pass; it travels as a blob of its own, and shards hold the numbers as they were.
//!
//! Memory doesn't grow with the data: one line (bounded), the names of the classes (bounded), some
//! sums per feature, and write buffers that share [`shards::BUFFER_BYTES`], whatever their number.
//! The same seed and rows give the same blobs on any machine, however the rows are spread over files.
//! Nothing is left behind where an error ends it: files are made in a temporary folder and moved to
//! their names at the very end.

mod error;
mod fields;
mod permutation;
mod plan;
mod scaling;
mod shards;
mod survey;
mod table;

pub use error::{IngestError, Place, Problem};

use plan::{Part, Plan};
use scaling::Moments;
use shards::ShardSet;
use sojourn_protocol::{
    digest::Digest,
    manifest::{DataManifest, Labels, Scaling, Shard},
    spec::{JobSpec, Loss, Scale, Split},
};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};
use survey::Survey;
use table::Table;

/// A job's data as shards.
#[derive(Debug, Clone, PartialEq)]
pub struct Ingested {
    /// What was made.
    pub manifest: DataManifest,
    /// Where each blob of the manifest lies, named by its digest.
    pub files: BTreeMap<Digest, PathBuf>,
}

/// What a job's data would be cut into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Shape of one row.
    pub shape: Vec<u32>,
    /// Names of the feature columns in order.
    pub features: Vec<String>,
    /// What labels are.
    pub labels: Labels,
    /// Rows of each training shard.
    pub train: Vec<u32>,
    /// Rows of each validation shard.
    pub valid: Vec<u32>,
    /// Rows of each test shard.
    pub test: Vec<u32>,
}

/// How far reading is, over both passes and all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub bytes: u64,
    /// Bytes to read: twice the size of the files.
    pub of: u64,
}

/// Reads the data of `spec` (paths relative to `base_dir`) and writes its blobs into `out_dir`.
///
/// # Errors
/// Whatever is wrong with the files, with file, line and column; whatever the disk says. Then
/// `out_dir` is as it was.
pub fn ingest(
    spec: &JobSpec,
    base_dir: &Path,
    out_dir: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ingested, IngestError> {
    let mut data = Data::open(spec, base_dir, progress)?;
    let mut shards = ShardSet::create(out_dir, &data.plan, data.features.len(), &data.labels)?;
    let moments = data.cut(Some(&mut shards), progress)?;
    let scaling = match spec.data.scale {
        Scale::None => Scaling::None,
        Scale::Constant(factor) => Scaling::Constant(factor),
        // The caller has it: it came with a model.
        Scale::Given(blob) => Scaling::Standard(blob),
        Scale::Standard => Scaling::Standard(shards.add_blob(&moments.encode()?)?),
    };
    let (blobs, files) = shards.publish(out_dir)?;
    let shards_of = |part| -> Vec<Shard> {
        let blobs = blobs.iter().zip(data.plan.shards());
        blobs.filter(|(_, (of, _))| *of == part).map(|(shard, _)| *shard).collect()
    };
    let manifest = DataManifest {
        train: shards_of(Part::Train),
        valid: shards_of(Part::Valid),
        test: shards_of(Part::Test),
        shape: data.shape,
        features: data.features,
        labels: data.labels,
        scaling,
    };
    Ok(Ingested { manifest, files })
}

/// Reads the data of `spec` as [`ingest`] does, and writes nothing.
///
/// # Errors
/// Whatever is wrong with the files.
pub fn check(
    spec: &JobSpec,
    base_dir: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary, IngestError> {
    let mut data = Data::open(spec, base_dir, progress)?;
    data.cut(None, progress)?;
    let rows_of = |part| -> Vec<u32> {
        data.plan.shards().filter(|(of, _)| *of == part).map(|(_, rows)| rows).collect()
    };
    Ok(Summary {
        train: rows_of(Part::Train),
        valid: rows_of(Part::Valid),
        test: rows_of(Part::Test),
        features: data.features,
        shape: data.shape,
        labels: data.labels,
    })
}

/// A job's files after the survey.
struct Data {
    tables: Vec<(Part, Table, u64)>,
    features: Vec<String>,
    shape: Vec<u32>,
    labels: Labels,
    plan: Plan,
    bytes: u64,
    done: u64,
}

impl Data {
    fn open(
        spec: &JobSpec,
        base_dir: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, IngestError> {
        let data = &spec.data;
        let train = Table::open("data.train", base_dir, &data.train, &data.label)?;
        let shape = shape(data.shape.as_deref(), &train)?;
        let mut tables = vec![(Part::Train, train)];
        let own = |split: Option<&Split>| match split {
            Some(Split::File(path)) => Some(path.clone()),
            Some(Split::Share(_)) | None => None,
        };
        let others = [
            (Part::Valid, "data.valid", own(Some(&data.valid))),
            (Part::Test, "data.test", own(data.test.as_ref())),
        ];
        for (part, key, path) in others {
            let Some(path) = path else { continue };
            let table = Table::open(key, base_dir, &path, &data.label)?;
            if let Some((_, train)) = tables.first() {
                table.same_columns(train)?;
            }
            tables.push((part, table));
        }
        let bytes = tables.iter().map(|(_, table)| table.bytes()).sum::<u64>() * 2;
        let mut done = 0;
        let mut classes: Option<survey::Classes> = None;
        let mut surveyed = Vec::with_capacity(tables.len());
        for (part, table) in tables {
            let mut tick = |read| progress(Progress { bytes: done + read, of: bytes });
            let survey = Survey::of(&table, spec.training.loss, classes.as_ref(), &mut tick)?;
            done += table.bytes();
            classes = classes.or(survey.classes);
            surveyed.push((part, table, survey.rows));
        }
        let labels = match (spec.training.loss, classes) {
            (Loss::CrossEntropy, Some(classes)) => Labels::Classes(classes.names()),
            (Loss::CrossEntropy | Loss::Mse, _) => Labels::Number,
        };
        let rows: Vec<(Part, u64)> =
            surveyed.iter().map(|(part, _, rows)| (*part, *rows)).collect();
        let plan = Plan::new(spec.seed, data, &rows)?;
        let features = surveyed.first().map_or_else(Vec::new, |(_, table, _)| table.features());
        Ok(Self { tables: surveyed, features, shape, labels, plan, bytes, done })
    }

    /// The second pass: every row to its shard, and the sums of those that are trained on.
    fn cut(
        &mut self,
        mut shards: Option<&mut ShardSet>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Moments, IngestError> {
        let classes: HashMap<&[u8], i64> = match &self.labels {
            Labels::Classes(names) => {
                (0..).zip(names).map(|(index, name)| (name.as_bytes(), index)).collect()
            }
            Labels::Number => HashMap::new(),
        };
        let mut moments = Moments::new(self.features.len());
        let mut numbers = Vec::with_capacity(self.features.len());
        let mut label = Vec::new();
        for (part, table, rows) in &self.tables {
            let route = self.plan.route(*part);
            let mut index = 0;
            let mut tick = |read| progress(Progress { bytes: self.done + read, of: self.bytes });
            table.rows(&mut tick, |row| {
                let place = route.place(index).ok_or_else(|| table.changed())?;
                index += 1;
                row.read(&mut numbers, &mut label)?;
                let target = match self.labels {
                    Labels::Number => shards::Target::Number(row.label_number(&label)?),
                    Labels::Classes(_) => {
                        let class = classes.get(label.as_slice());
                        shards::Target::Class(*class.ok_or_else(|| table.changed())?)
                    }
                };
                if place.part == Part::Train {
                    moments.add(&numbers);
                }
                match &mut shards {
                    Some(shards) => shards.push(place.shard, &numbers, target),
                    None => Ok(()),
                }
            })?;
            if index != *rows {
                return Err(table.changed());
            }
            self.done += table.bytes();
        }
        Ok(moments)
    }
}

/// The shape that the job asks for, which must have as many values as there are features.
fn shape(asked: Option<&[u32]>, train: &Table) -> Result<Vec<u32>, IngestError> {
    let features = u32::try_from(train.features().len()).unwrap_or(u32::MAX);
    let Some(shape) = asked else { return Ok(vec![features]) };
    let product = shape.iter().try_fold(1u32, |product, size| product.checked_mul(*size));
    if product == Some(features) {
        return Ok(shape.to_vec());
    }
    Err(IngestError::Shape {
        shape: shape.to_vec(),
        values: product.unwrap_or(u32::MAX),
        features,
        file: train.shown(),
    })
}
