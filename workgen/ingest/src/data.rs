//! A job's sources after the survey, for `ingest` and `check`.

use crate::{
    bounds::SharedBounds,
    classes::{Classes, Merged},
    error::{IngestError, Problem},
    format,
    groups::Dealt,
    listing::with_others,
    meter::Meter,
    number::shown,
    plan::{Cut, Part, Plan, left_to_train},
    progress::Progress,
    route::{Route, RowPlace},
    scaling::{Means, TrainingSums},
    shards::{ShardSet, Target},
    source::Finder,
    survey::Survey,
    table::{Element, LeftOut, Pass, Reading, Rows, Schema, Table, TextReading, Wanted},
    words::Words,
};
use sojourn_protocol::{
    classes::ClassIndex,
    manifest::Labels,
    quantity::{SaturatingFrom as _, to_u64},
    spec::{Categories, JobSpec, Loss, Missing},
};
use std::collections::{BTreeMap, HashMap};

/// The sources, each by the part that it is named for.
pub(crate) type Tables = Vec<(Part, Box<dyn Table>)>;

/// A job's sources, with the shape and the labels of their rows.
pub(crate) struct Data {
    tables: Vec<(Part, Box<dyn Table>, u64)>,
    pub(crate) features: Vec<String>,
    pub(crate) width: usize,
    pub(crate) shape: Vec<u32>,
    pub(crate) labels: Labels,
    pub(crate) categories: Vec<Categories>,
    /// The values that missing features are taken as: the means, once they are known.
    pub(crate) fill: Vec<f32>,
    missing: Missing,
    /// Is each class to be spread over parts and shards evenly?
    is_stratified: bool,
    /// Rows of each class in the file for each part, where it is.
    classes_of: Vec<(Part, Vec<u64>)>,
    /// The folds or parts of the groups of the training file, where rows are kept together.
    dealt: Option<Box<Dealt>>,
    meter: Meter,
}

/// The classes of labels as they are written.
struct ClassOfLabel<'a> {
    classes: HashMap<&'a [u8], usize>,
    by_number: ClassIndex<'a>,
}

impl<'a> ClassOfLabel<'a> {
    fn new(labels: &'a Labels) -> Self {
        let names: &[String] = match labels {
            Labels::Classes(names) => names,
            Labels::Number | Labels::None => &[],
        };
        let classes = names.iter().enumerate().map(|(index, name)| (name.as_bytes(), index));
        Self { classes: classes.collect(), by_number: ClassIndex::new(names) }
    }

    /// The class's index; `None` where there is no such class.
    fn index(&self, label: &[u8]) -> Option<usize> {
        if self.classes.is_empty() {
            return None;
        }
        match self.classes.get(label) {
            Some(class) => Some(*class),
            None => self.by_number.place(std::str::from_utf8(label).ok()?),
        }
    }
}

impl Data {
    /// Goes over the sources once, to count rows and collect labels.
    pub(crate) fn survey(
        spec: &JobSpec,
        tables: Tables,
        bounds: &SharedBounds,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, IngestError> {
        let data = &spec.data;
        let asked = data.shape.as_deref();
        // With a feature for each word, or for the hours of dates, the width is known only after the survey.
        let is_known = data.categories.is_empty() && data.dialect.dates.is_empty();
        if let Some((_, train)) = tables.first().filter(|_| is_known) {
            shape(asked, train.schema())?;
        }
        // A packed array may declare any size, which is seen to be wrong only as it is read.
        let bytes =
            |table: &dyn Table| table.bytes(Pass::Labels).saturating_add(table.bytes(Pass::All));
        let means = match (data.missing, tables.first()) {
            (Missing::Mean, Some((_, train))) => train.bytes(Pass::All),
            _ => 0,
        };
        let counted: u64 = match data.stratified {
            true => tables.iter().map(|(_, table)| table.bytes(Pass::Labels)).sum(),
            false => 0,
        };
        let more = means.saturating_add(counted);
        let of =
            tables.iter().map(|(_, table)| bytes(table.as_ref())).fold(more, u64::saturating_add);
        let mut meter = Meter::new(of, SharedBounds::clone(bounds));
        let mut classes: Option<Classes> = None;
        let mut words: Option<BTreeMap<String, Words>> = None;
        let mut dealt = None;
        let mut surveyed = Vec::with_capacity(tables.len());
        for (part, mut table) in tables {
            if let Some(words) = &words {
                table.set_words(words)?;
            }
            let mut tick = |read, row| meter.report(read, row, progress);
            let known = classes.as_ref().map(|classes| classes.names.as_slice());
            let survey = Survey::of(table.as_ref(), spec.training.loss, known, &mut tick);
            let survey =
                survey.map_err(|error| with_others(table.as_ref(), error, &meter, progress))?;
            meter.end(table.bytes(Pass::Labels), progress);
            tell(&table.schema().shown, &survey, progress);
            if part == Part::Train && data.groups.is_some() {
                dealt = Some(Box::new(Dealt::new(spec, survey.groups)?));
            }
            classes = classes.or(survey.classes);
            if words.is_none() {
                table.set_words(&survey.words)?;
                words = Some(survey.words);
            }
            surveyed.push((part, table, survey.rows));
        }
        let labels = match (spec.training.loss, classes) {
            (Loss::CrossEntropy, Some(classes)) => Labels::Classes(classes.names),
            (Loss::CrossEntropy | Loss::Mse | Loss::Own, _) => Labels::Number,
        };
        let (schema, categories) = match surveyed.first() {
            Some((_, train, _)) => (train.schema().clone(), train.categories()),
            None => (Schema::default(), Vec::new()),
        };
        let shape = shape(asked, &schema)?;
        let (missing, fill) = (data.missing, Vec::new());
        let Schema { features, width, .. } = schema;
        let tables = surveyed;
        let (is_stratified, classes_of) = (data.stratified, Vec::new());
        Ok(Self {
            tables,
            features,
            width,
            shape,
            labels,
            categories,
            fill,
            missing,
            is_stratified,
            classes_of,
            dealt,
            meter,
        })
    }

    /// Rows that are trained on.
    pub(crate) fn train_rows(&self, spec: &JobSpec) -> u64 {
        left_to_train(&spec.data, &self.files(), self.dealt.as_deref()).0
    }

    /// The shard of each row.
    pub(crate) fn plan(&self, spec: &JobSpec, cut: &Cut) -> Result<Plan, IngestError> {
        Plan::new(spec.data_seed(), &spec.data, &self.files(), cut, self.dealt.as_deref())
    }

    /// How shards keep the numbers that the source for `part` has.
    pub(crate) fn element(&self, part: Part) -> Element {
        let table = self.tables.iter().find(|(of, ..)| *of == part);
        table.map_or(Element::Single, |(_, table, _)| table.element())
    }

    /// Rows of each class in the file for a part, where classes are to be spread evenly.
    fn of_each_class(&self, part: Part) -> Option<Vec<u64>> {
        let counted = self.classes_of.iter().find(|(of, _)| *of == part);
        counted.map(|(_, counts)| counts.clone())
    }

    /// Counts the rows of each class in each file.
    fn count_classes(&mut self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), IngestError> {
        let labels = ClassOfLabel::new(&self.labels);
        let mut counted = Vec::with_capacity(self.tables.len());
        for (part, table, _) in &self.tables {
            let mut counts = vec![0_u64; labels.classes.len()];
            let mut rows = table.rows(Pass::Labels)?;
            while rows.advance()? {
                let of = labels.index(rows.label()).and_then(|class| counts.get_mut(class));
                *of.ok_or_else(|| table.changed())? += 1;
                self.meter.report(rows.bytes_read(), to_u64(rows.label().len()), progress)?;
            }
            drop(rows);
            self.meter.end(table.bytes(Pass::Labels), progress);
            counted.push((*part, counts));
        }
        self.classes_of = counted;
        Ok(())
    }

    /// The place of the present row of the file for a part.
    fn place(
        &self,
        route: &mut Route,
        (part, rows): (Part, &dyn Rows),
        class: Option<usize>,
    ) -> Option<RowPlace> {
        match &self.dealt {
            Some(dealt) if part == Part::Train => route.next(dealt.bucket(rows.group())),
            Some(_) | None => route.next(class),
        }
    }

    fn files(&self) -> Vec<(Part, u64)> {
        self.tables.iter().map(|(part, _, rows)| (*part, *rows)).collect()
    }

    /// The means of the features that are there, over the rows that are trained on; missing ones are these from now on.
    fn find_means(
        &mut self,
        plan: &Plan,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), IngestError> {
        let Some((part, table, _)) = self.tables.first() else { return Ok(()) };
        let labels = ClassOfLabel::new(&self.labels);
        let mut route = plan.route(*part, self.of_each_class(*part).as_deref());
        let mut means = Means::new(self.width);
        let mut rows = table.rows(Pass::All)?;
        while rows
            .advance()
            .map_err(|error| with_others(table.as_ref(), error, &self.meter, progress))?
        {
            let class = labels.index(rows.label());
            let place = self.place(&mut route, (*part, rows.as_ref()), class);
            let place = place.ok_or_else(|| table.changed())?;
            if place.part == Part::Train {
                means.add(rows.numbers());
            }
            self.meter.report(rows.bytes_read(), row_bytes(rows.numbers()), progress)?;
        }
        drop(rows);
        self.meter.end(table.bytes(Pass::All), progress);
        let fill = means.found().map_err(|index| {
            let name = self.features.get(index).map(|name| shown(name.as_bytes()));
            table.refuse(Problem::NoMean(name.unwrap_or_default()))
        })?;
        self.tables.iter_mut().for_each(|(_, table, _)| table.set_fill(&fill));
        self.fill = fill;
        Ok(())
    }

    /// The last pass: every row to its shard, and the sums of those that are trained on.
    pub(crate) fn cut(
        &mut self,
        plan: &Plan,
        mut shards: Option<&mut ShardSet>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<TrainingSums, IngestError> {
        if self.is_stratified {
            self.count_classes(progress)?;
        }
        if self.missing == Missing::Mean {
            self.find_means(plan, progress)?;
        }
        let labels = ClassOfLabel::new(&self.labels);
        let mut sums = TrainingSums::new(self.width, labels.classes.len());
        for (part, table, count) in &self.tables {
            let mut route = plan.route(*part, self.of_each_class(*part).as_deref());
            let mut rows = table.rows(Pass::All)?;
            let mut index = 0;
            while rows
                .advance()
                .map_err(|error| with_others(table.as_ref(), error, &self.meter, progress))?
            {
                let class = labels.index(rows.label());
                let place = self.place(&mut route, (*part, rows.as_ref()), class);
                let place = place.ok_or_else(|| table.changed())?;
                index += 1;
                let target = match self.labels {
                    Labels::Number | Labels::None => Target::Number(rows.label_number()?),
                    Labels::Classes(_) => {
                        let class = class.and_then(|class| i64::try_from(class).ok());
                        Target::Class(class.ok_or_else(|| table.changed())?)
                    }
                };
                if place.part == Part::Train {
                    sums.add(rows.numbers(), target);
                }
                if let Some(shards) = &mut shards {
                    shards.push(place.shard, rows.numbers(), target)?;
                }
                self.meter.report(rows.bytes_read(), row_bytes(rows.numbers()), progress)?;
            }
            if index != *count {
                return Err(table.changed());
            }
            self.meter.end(table.bytes(Pass::All), progress);
        }
        Ok(sums)
    }
}

/// Says what a survey left out, and which labels it took as one class.
fn tell(from: &str, survey: &Survey, progress: &mut dyn FnMut(Progress<'_>)) {
    let LeftOut { incomplete, unlabelled, words, bad } = &survey.left_out;
    let of = survey.rows + survey.left_out.rows();
    if *unlabelled > 0 {
        let words: Vec<String> = words.iter().cloned().collect();
        progress(Progress::Unlabelled { from, rows: *unlabelled, of, words: &words });
    }
    if *incomplete > 0 {
        progress(Progress::Dropped { from, rows: *incomplete, of });
    }
    if bad.rows > 0 {
        progress(Progress::Bad { from, bad, of });
    }
    for merged in survey.classes.iter().flat_map(|classes| &classes.merged) {
        let Merged { class, labels } = merged;
        progress(Progress::SameClass { class, labels });
    }
}

/// Bytes of a row in memory.
fn row_bytes(numbers: &[f32]) -> u64 {
    to_u64(size_of_val(numbers))
}

/// The sources that the job names, training rows first.
pub(crate) fn open_all(spec: &JobSpec, finder: &mut Finder<'_>) -> Result<Tables, IngestError> {
    let data = &spec.data;
    let reading = Reading {
        channels: data.channels,
        in_order: &[],
        image: data.shape.as_deref().unwrap_or_default(),
        on_bad_image: data.on_bad_image,
        wanted: Wanted::Labelled,
        has_shape: data.shape.is_some(),
        text: TextReading {
            separator: data.separator,
            columns: data.columns.as_ref(),
            categories: &data.categories,
            missing: data.missing,
            on_bad_row: data.on_bad_row,
            loss: Some(spec.training.loss),
            fill: &[],
            dialect: &data.dialect,
            groups: data.groups.as_deref(),
            train: &[],
            hours: None,
        },
    };
    let train = format::open(finder, "data.train", &data.train_source(), reading)?;
    let schema = train.schema().clone();
    let mut tables = vec![(Part::Train, train)];
    let others = [
        (Part::Valid, "data.valid", data.source_of(&data.valid)),
        (Part::Test, "data.test", data.test.as_ref().and_then(|test| data.source_of(test))),
    ];
    let reading =
        Reading { text: TextReading { train: &schema.columns, ..reading.text }, ..reading };
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
