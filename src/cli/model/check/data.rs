//! Rows to check a model with: those of a job, or made up.

use crate::{
    cli::{
        submit::{jobfile, workspace::Workspace},
        terminal::{causes::ingest_failure, exit::Failure},
    },
    exporter::{DataDescription, Values},
};
use rand_core::Rng as _;
use sojourn_codec::{Tensor, encode};
use sojourn_ingest::Cut;
use sojourn_protocol::{
    column::Column,
    digest::{BlobRef, Digest},
    error::error_chain,
    manifest::{Labels, Scaling, Shard},
    quantity::{SaturatingFrom as _, to_u64},
    seeds,
    spec::{Dimension, Setting, WINDOW},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Batches that are trained.
pub(super) const BATCHES: u32 = 8;
/// Rows of a batch, where nothing says otherwise.
const BATCH_SIZE: u32 = 32;
/// The job file that is looked for beside a model.
const JOB_FILE: &str = "job.toml";

/// The data that a model is checked with.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DataArgs {
    /// Take the data of this job file [default: the `job.toml` beside the model].
    #[arg(long, value_name = "JOB.TOML", conflicts_with = "shape")]
    job: Option<PathBuf>,
    /// Make rows of numbers with a label up: the shape of one, e.g. `3,32,32`. For a model over columns by name there must be
    /// data.
    #[arg(long, value_name = "SIDES", value_delimiter = ',')]
    shape: Vec<u32>,
    /// Of rows that are made up: the number of classes; 0 for labels that are numbers.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "shape")]
    classes: u32,
    /// Of rows that are made up: their values are whole numbers below this, as tokens are.
    #[arg(long, value_name = "N", requires = "shape")]
    tokens: Option<u32>,
    /// Rows of a batch [default: the job's where that is one number, else 32].
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch_size: Option<u32>,
}

/// Rows in a shard, and what a trainer must know of them.
#[derive(Debug)]
pub(super) struct CheckData {
    pub(super) columns: Vec<Column>,
    pub(super) shape: Vec<u32>,
    pub(super) labels: Labels,
    pub(super) scaling: Scaling,
    pub(super) shard: Shard,
    pub(super) files: BTreeMap<Digest, PathBuf>,
    pub(super) batch_size: u32,
    /// Rows that are trained on in all.
    rows: u64,
}

impl CheckData {
    pub(super) fn description(&self) -> DataDescription {
        DataDescription::new(&self.columns, &self.shape, &self.labels, self.rows)
    }

    /// Takes the window of the data, where it has windows and the model's keys say none.
    pub(super) fn fit_window(&self, values: &mut Values) -> Result<(), Failure> {
        let column = self.columns.iter().find(|column| column.windows);
        let Some((column, tokens)) = column.and_then(|of| Some((of, *of.shape.first()?))) else {
            return Ok(());
        };
        let longest = Setting::Whole(tokens.saturating_sub(1).into());
        let window = match values.entry(WINDOW.to_owned()).or_insert(longest) {
            Setting::Whole(window) => *window,
            other => {
                return Err(Failure::call(format!(
                    "`--config {WINDOW}` is `{other}`; a number of tokens is wanted"
                )));
            }
        };
        let window = u32::try_from(window)
            .map_err(|_| Failure::call(format!("`--config {WINDOW}` can't be {window}")))?;
        column
            .windows_of_row(window)
            .map(|_| ())
            .map_err(|why| Failure::call(format!("`--config {WINDOW}`: {why}")))
    }

    /// The columns as a model with these values sees them.
    pub(super) fn columns_seen(&self, values: &Values) -> Vec<Column> {
        let window = match values.get(WINDOW) {
            Some(Setting::Whole(window)) => u32::try_from(*window).ok(),
            _ => None,
        };
        let seen = |column: &Column| match column.windows {
            true => Column { shape: column.batch_shape(window), ..column.clone() },
            false => column.clone(),
        };
        self.columns.iter().map(seen).collect()
    }

    /// How many; none where labels are numbers.
    pub(super) fn classes(&self) -> Option<u32> {
        match &self.labels {
            Labels::Classes(_) => Some(self.labels.outputs()),
            Labels::Number | Labels::None => None,
        }
    }
}

impl DataArgs {
    /// Reads the data, or makes it up, into the workspace. `folder` is the model's.
    pub(super) fn read(&self, folder: &Path, workspace: &Workspace) -> Result<CheckData, Failure> {
        let beside = Some(folder.join(JOB_FILE)).filter(|file| file.is_file());
        if !self.shape.is_empty() {
            if beside.is_some_and(|file| has_columns(&file, workspace.path())) {
                return Err(Failure::call(format!(
                    "`--shape` makes rows of numbers up, and the data of `{JOB_FILE}` has columns by name: leave it out"
                )));
            }
            return self.made_up(workspace.path());
        }
        match self.job.clone().or(beside) {
            Some(file) => self.of_job(&file, workspace.path()),
            None => Err(Failure::call(format!(
                "there is no `{JOB_FILE}` beside the model: `--job` names a job file whose data is taken, `--shape` makes rows up"
            ))),
        }
    }

    fn of_job(&self, file: &Path, workspace: &Path) -> Result<CheckData, Failure> {
        let job = jobfile::read(file).map_err(|(failure, _)| failure)?;
        let data = sojourn_ingest::survey(&job.spec, &job.folder, workspace, &mut |_| ())
            .map_err(ingest_failure)?;
        let rows = data.train_rows();
        let batch_size = match (self.batch_size, &job.spec.training.batch_size) {
            (Some(batch_size), _) => batch_size,
            (None, Dimension::Fixed(batch_size)) => *batch_size,
            (None, _) => BATCH_SIZE,
        };
        let shards = job.spec.data.shards.unwrap_or(1);
        let ingested =
            data.ingest(&Cut::Equal(shards), workspace, &mut |_| ()).map_err(ingest_failure)?;
        let manifest = ingested.manifest;
        let shard = manifest.train.first().copied();
        let shard = shard.ok_or_else(|| Failure::work("the job has no training rows"))?;
        Ok(CheckData {
            columns: manifest.columns,
            shape: manifest.shape,
            labels: manifest.labels,
            scaling: manifest.scaling,
            shard,
            files: ingested.files,
            batch_size,
            rows,
        })
    }

    fn made_up(&self, workspace: &Path) -> Result<CheckData, Failure> {
        let batch_size = self.batch_size.unwrap_or(BATCH_SIZE);
        // The last batch is smaller, as in a shard.
        let rows = batch_size.saturating_mul(BATCHES) - batch_size / 2;
        let features = self.shape.iter().fold(1u32, |all, side| all.saturating_mul(*side));
        let bytes = u64::from(rows).saturating_mul(u64::from(features)).saturating_mul(4);
        if features == 0 || bytes > 1 << 31 {
            let shape = &self.shape;
            return Err(Failure::call(format!("{rows} rows of shape {shape:?} can't be made up")));
        }
        let mut rng = seeds::stream("check", &[]);
        let numbers: Vec<f32> = (0..u64::from(rows) * u64::from(features))
            .map(|_| match self.tokens {
                Some(tokens) => f64::from(seeds::below(&mut rng, tokens)),
                None => f64::from(rng.next_u32() >> 8) / 16_777_216.0,
            })
            .map(single)
            .collect();
        let x = Tensor::f32("x", [u64::from(rows), u64::from(features)], &numbers);
        let (y, labels) = match self.classes {
            0 => {
                let values: Vec<f32> = (0..rows)
                    .map(|_| single(f64::from(rng.next_u32() >> 8) / 16_777_216.0))
                    .collect();
                (Tensor::f32("y", [u64::from(rows)], &values), Labels::Number)
            }
            classes => {
                let values: Vec<i64> =
                    (0..rows).map(|_| i64::from(seeds::below(&mut rng, classes))).collect();
                let names = (0..classes).map(|class| class.to_string()).collect();
                (Tensor::i64("y", [u64::from(rows)], &values), Labels::Classes(names))
            }
        };
        let file = encode(&[x, y]).map_err(|error| Failure::work(error_chain(&error)))?;
        let blob = BlobRef { sha256: Digest::of(&file), bytes: to_u64(file.len()) };
        let path = workspace.join(blob.sha256.to_string());
        fs::write(&path, file)
            .map_err(|error| Failure::work(format!("can't write `{}`: {error}", path.display())))?;
        Ok(CheckData {
            columns: Vec::new(),
            shape: self.shape.clone(),
            labels,
            scaling: Scaling::None,
            shard: Shard { blob, rows: u32::saturating_from(rows) },
            files: [(blob.sha256, path)].into(),
            batch_size,
            rows: u64::from(rows),
        })
    }
}

/// Has the data of a job file columns by name? What can't be read has none: rows are made up where there is no data yet.
fn has_columns(file: &Path, spool: &Path) -> bool {
    let Ok(job) = jobfile::read(file) else { return false };
    sojourn_ingest::has_columns(&job.spec, &job.folder, spool).unwrap_or_default()
}

/// Rounded to single precision.
#[expect(clippy::cast_possible_truncation, reason = "that is what it is for")]
const fn single(value: f64) -> f32 {
    value as f32
}
