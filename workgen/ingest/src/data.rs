//! A job's sources after the survey, for `ingest` and `check`.

use crate::{
    error::IngestError,
    format,
    plan::{Cut, Part, Plan, left_to_train},
    progress::Progress,
    scaling::Moments,
    shards::{ShardSet, Target},
    source::Finder,
    survey::{Classes, Survey},
    table::{Pass, Reading, Schema, Table, TextReading, Wanted},
};
use sojourn_protocol::{
    manifest::Labels,
    quantity::SaturatingFrom as _,
    spec::{JobSpec, Loss},
};
use std::{collections::HashMap, path::Path};

/// Bytes between two reports of progress.
const REPORT_INTERVAL: u64 = 4 << 20;

/// The sources, each by the part that it is named for.
type Tables = Vec<(Part, Box<dyn Table>)>;

/// A job's sources, with the shape and the labels of their rows.
pub(crate) struct Data {
    tables: Vec<(Part, Box<dyn Table>, u64)>,
    pub(crate) features: Vec<String>,
    pub(crate) width: usize,
    pub(crate) shape: Vec<u32>,
    pub(crate) labels: Labels,
    meter: Meter,
}

/// Counts the bytes read over both passes, and reports them now and then.
struct Meter {
    of: u64,
    /// Bytes of the tables that are done.
    done: u64,
    reported: u64,
}

impl Meter {
    /// Reports how far the pass over one table is.
    fn report(&mut self, read: u64, progress: &mut dyn FnMut(Progress<'_>)) {
        let bytes = self.done + read;
        if bytes - self.reported >= REPORT_INTERVAL {
            self.reported = bytes;
            progress(Progress::Reading { bytes, of: self.of });
        }
    }

    /// One table is done.
    fn end(&mut self, bytes: u64, progress: &mut dyn FnMut(Progress<'_>)) {
        self.done += bytes;
        self.reported = self.done;
        progress(Progress::Reading { bytes: self.done, of: self.of });
    }
}

impl Data {
    /// Finds the sources of `spec` and goes over them once, to count rows and collect labels.
    pub(crate) fn open(
        spec: &JobSpec,
        base_dir: &Path,
        spool: &Path,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, IngestError> {
        let data = &spec.data;
        let tables = open_all(spec, &mut Finder::new(base_dir, spool, progress))?;
        let (schema, shape) = match tables.first() {
            Some((_, train)) => {
                (train.schema().clone(), shape(data.shape.as_deref(), train.schema())?)
            }
            None => (Schema::default(), Vec::new()),
        };
        // A packed array may declare any size, which is seen to be wrong only as it is read.
        let bytes =
            |table: &dyn Table| table.bytes(Pass::Labels).saturating_add(table.bytes(Pass::All));
        let of = tables.iter().map(|(_, table)| bytes(table.as_ref())).fold(0, u64::saturating_add);
        let mut meter = Meter { of, done: 0, reported: 0 };
        let mut classes: Option<Classes> = None;
        let mut surveyed = Vec::with_capacity(tables.len());
        for (part, table) in tables {
            let mut tick = |read| meter.report(read, progress);
            let survey =
                Survey::of(table.as_ref(), spec.training.loss, classes.as_ref(), &mut tick)?;
            meter.end(table.bytes(Pass::Labels), progress);
            if survey.dropped > 0 {
                let of = survey.rows + survey.dropped;
                let from = &table.schema().shown;
                progress(Progress::Dropped { from, rows: survey.dropped, of });
            }
            classes = classes.or(survey.classes);
            surveyed.push((part, table, survey.rows));
        }
        let labels = match (spec.training.loss, classes) {
            (Loss::CrossEntropy, Some(classes)) => Labels::Classes(classes.names()),
            (Loss::CrossEntropy | Loss::Mse, _) => Labels::Number,
        };
        let Schema { features, width, .. } = schema;
        Ok(Self { tables: surveyed, features, width, shape, labels, meter })
    }

    /// Rows that are trained on.
    pub(crate) fn train_rows(&self, spec: &JobSpec) -> u64 {
        left_to_train(&spec.data, &self.files()).0
    }

    /// The shard of each row.
    pub(crate) fn plan(&self, spec: &JobSpec, cut: &Cut) -> Result<Plan, IngestError> {
        Plan::new(spec.seed, &spec.data, &self.files(), cut)
    }

    fn files(&self) -> Vec<(Part, u64)> {
        self.tables.iter().map(|(part, _, rows)| (*part, *rows)).collect()
    }

    /// The second pass: every row to its shard, and the sums of those that are trained on.
    pub(crate) fn cut(
        &mut self,
        plan: &Plan,
        mut shards: Option<&mut ShardSet>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Moments, IngestError> {
        let classes: HashMap<&[u8], i64> = match &self.labels {
            Labels::Classes(names) => {
                (0..).zip(names).map(|(index, name)| (name.as_bytes(), index)).collect()
            }
            Labels::Number => HashMap::new(),
        };
        let mut moments = Moments::new(self.width);
        for (part, table, count) in &self.tables {
            let route = plan.route(*part);
            let mut rows = table.rows(Pass::All)?;
            let mut index = 0;
            while rows.advance()? {
                let place = route.place(index).ok_or_else(|| table.changed())?;
                index += 1;
                let target = match self.labels {
                    Labels::Number => Target::Number(rows.label_number()?),
                    Labels::Classes(_) => {
                        let class = classes.get(rows.label());
                        Target::Class(*class.ok_or_else(|| table.changed())?)
                    }
                };
                if place.part == Part::Train {
                    moments.add(rows.numbers());
                }
                if let Some(shards) = &mut shards {
                    shards.push(place.shard, rows.numbers(), target)?;
                }
                self.meter.report(rows.bytes_read(), progress);
            }
            if index != *count {
                return Err(table.changed());
            }
            self.meter.end(table.bytes(Pass::All), progress);
        }
        Ok(moments)
    }
}

/// The sources that the job names, training rows first.
fn open_all(spec: &JobSpec, finder: &mut Finder<'_>) -> Result<Tables, IngestError> {
    let data = &spec.data;
    let reading = Reading {
        channels: data.channels,
        in_order: &[],
        wanted: Wanted::Labelled,
        has_shape: data.shape.is_some(),
        text: TextReading {
            separator: data.separator,
            columns: data.columns.as_ref(),
            missing: data.missing,
        },
    };
    let train = format::open(finder, "data.train", &data.train_source(), reading)?;
    let schema = train.schema().clone();
    let mut tables = vec![(Part::Train, train)];
    let others = [
        (Part::Valid, "data.valid", data.source_of(&data.valid)),
        (Part::Test, "data.test", data.test.as_ref().and_then(|test| data.source_of(test))),
    ];
    for (part, key, source) in others {
        let Some(source) = source else { continue };
        let table = format::open(finder, key, &source, reading)?;
        table.fits(&schema)?;
        tables.push((part, table));
    }
    Ok(tables)
}

/// The shape that the job asks for: that of a row, or one dimension.
fn shape(asked: Option<&[u32]>, train: &Schema) -> Result<Vec<u32>, IngestError> {
    let Some(shape) = asked else { return Ok(train.shape.clone()) };
    let features = u32::saturating_from(train.width);
    let product = shape.iter().try_fold(1u32, |product, size| product.checked_mul(*size));
    let is_flat = |shape: &[u32]| shape.len() == 1;
    // Another shape of as many numbers most often mixes up height and channels.
    let sides =
        |shape: &[u32]| -> Vec<u32> { shape.iter().copied().filter(|side| *side != 1).collect() };
    if product != Some(features) && is_flat(&train.shape) {
        return Err(IngestError::Shape {
            shape: shape.to_vec(),
            values: product.unwrap_or(u32::MAX),
            features,
            file: train.shown.clone(),
        });
    }
    let agrees = is_flat(shape) || is_flat(&train.shape) || sides(shape) == sides(&train.shape);
    if product == Some(features) && agrees {
        return Ok(shape.to_vec());
    }
    Err(IngestError::ArrayShape {
        shape: shape.to_vec(),
        actual: train.shape.clone(),
        file: train.shown.clone(),
    })
}
