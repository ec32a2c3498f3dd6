//! The survey and the cut of rows that are columns by name.

use super::{
    numbers::Whole,
    table::{ColumnTable, Field, check_same},
};
use crate::{
    bounds::SharedBounds,
    error::{IngestError, Place, Problem},
    meter::Meter,
    plan::{Cut, Part, Plan, left_to_train},
    progress::Progress,
    shards::ColumnShards,
    source::Finder,
};
use sojourn_protocol::{
    column::{Column, check_columns},
    quantity::{SaturatingFrom as _, to_u64, to_usize},
    spec::{FileKind, JobSpec},
};

/// A job's sources, each by the part that it is named for.
pub(crate) type ColumnTables = Vec<(Part, Box<dyn ColumnTable>)>;

/// A job's sources, with their rows.
pub(crate) struct ColumnData {
    tables: Vec<(Part, Box<dyn ColumnTable>, u64)>,
    /// The columns of all of them.
    pub(crate) columns: Vec<Column>,
    /// The most bytes that a row keeps of a column, where that is bounded.
    kept: Vec<Option<usize>>,
    meter: Meter,
}

/// The findings of the survey on a column.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    longest: u64,
    whole: Whole,
}

impl ColumnData {
    /// Finds the sources of the job, where they have columns by name; else none.
    pub(crate) fn open(
        spec: &JobSpec,
        finder: &mut Finder<'_>,
    ) -> Result<Option<ColumnTables>, IngestError> {
        let data = &spec.data;
        let Some(train) = super::open(finder, "data.train", &data.train, spec)? else {
            return Ok(None);
        };
        let fields = train.fields().to_vec();
        let mut tables = vec![(Part::Train, train)];
        let others = [
            (Part::Valid, "data.valid", data.source_of(&data.valid)),
            (Part::Test, "data.test", data.test.as_ref().and_then(|test| data.source_of(test))),
        ];
        for (part, key, source) in others {
            let Some(source) = source else { continue };
            let table = super::open(finder, key, &source.data, spec)?;
            let table = table.ok_or_else(|| {
                Place::of(&source.data).refuse(Problem::NoColumns(data.train.clone()))
            })?;
            check_same(&Place::of(table.shown()), table.fields(), &data.train, &fields)?;
            tables.push((part, table));
        }
        Ok(Some(tables))
    }

    /// Goes over the rows once.
    pub(crate) fn survey(
        spec: &JobSpec,
        tables: ColumnTables,
        bounds: &SharedBounds,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, IngestError> {
        let fields: Vec<Field> =
            tables.first().map(|(_, table)| table.fields().to_vec()).unwrap_or_default();
        check_said(spec, &fields, tables.first().map_or("", |(_, table)| table.shown()))?;
        let both = |table: &dyn ColumnTable| table.bytes().saturating_mul(2);
        let of = tables.iter().map(|(_, table)| both(table.as_ref()));
        let mut meter = Meter::new(of.fold(0, u64::saturating_add), SharedBounds::clone(bounds));
        let mut found = vec![Found::default(); fields.len()];
        let mut surveyed = Vec::with_capacity(tables.len());
        for (part, table) in tables {
            let mut count = 0u64;
            let mut rows = table.rows()?;
            while rows.advance()? {
                count += 1;
                let mut bytes = 0u64;
                for ((index, field), found) in fields.iter().enumerate().zip(&mut found) {
                    let row = rows.column(index);
                    bytes = bytes.saturating_add(to_u64(row.len()));
                    let elements = u64::saturating_from(row.len()) / field.stride().max(1);
                    found.longest = found.longest.max(elements);
                    if !found.whole.take(field.dtype, row) {
                        let column = Some(field.name.clone());
                        return Err(Place { column, ..rows.place() }.refuse(Problem::NoNumber));
                    }
                }
                meter.report(rows.bytes_read(), bytes, progress)?;
            }
            drop(rows);
            meter.end(table.bytes(), progress);
            if count == 0 {
                return Err(table.refuse(Problem::NoRows));
            }
            surveyed.push((part, table, count));
        }
        let columns: Vec<Column> = fields
            .iter()
            .zip(&found)
            .map(|(field, found)| {
                let most = spec.data.length.get(&field.name).copied().unwrap_or(u32::MAX);
                let longest = u32::saturating_from(found.longest).min(most);
                Column {
                    name: field.name.clone(),
                    dtype: field.dtype,
                    shape: field.shape.clone(),
                    longest: field.is_sequence.then_some(longest),
                    values: field.values.max(found.whole.values()),
                    classes: field.classes.clone(),
                    windows: field.windows,
                }
            })
            .collect();
        let refuse = |why| match surveyed.first() {
            Some((_, table, _)) => table.refuse(Problem::BadColumns(why)),
            None => Place::of("").refuse(Problem::BadColumns(why)),
        };
        check_columns(&columns).map_err(refuse)?;
        let kept = columns.iter().zip(&fields).map(|(column, field)| {
            let elements = u64::from(column.longest?);
            Some(to_usize(elements.saturating_mul(field.stride())))
        });
        let kept = kept.collect();
        Ok(Self { tables: surveyed, columns, kept, meter })
    }

    /// Rows that are trained on.
    pub(crate) fn train_rows(&self, spec: &JobSpec) -> u64 {
        left_to_train(&spec.data, &self.files(), None).0
    }

    /// The shard of each row.
    pub(crate) fn plan(&self, spec: &JobSpec, cut: &Cut) -> Result<Plan, IngestError> {
        Plan::new(spec.data_seed(), &spec.data, &self.files(), cut, None)
    }

    fn files(&self) -> Vec<(Part, u64)> {
        self.tables.iter().map(|(part, _, rows)| (*part, *rows)).collect()
    }

    /// The last pass: every row to its shard.
    pub(crate) fn cut(
        &mut self,
        plan: &Plan,
        mut shards: Option<&mut ColumnShards>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), IngestError> {
        for (part, table, count) in &self.tables {
            let changed = || table.refuse(Problem::Changed);
            let mut route = plan.route(*part, None);
            let mut rows = table.rows()?;
            let mut index = 0;
            while rows.advance()? {
                let place = route.next(None).ok_or_else(changed)?;
                index += 1;
                if let Some(shards) = &mut shards {
                    let row = self.kept.iter().enumerate().map(|(column, most)| {
                        let row = rows.column(column);
                        most.and_then(|most| row.get(..most)).unwrap_or(row)
                    });
                    shards.push(place.shard, row)?;
                }
                let bytes =
                    (0..self.kept.len()).map(|column| to_u64(rows.column(column).len())).sum();
                self.meter.report(rows.bytes_read(), bytes, progress)?;
            }
            if index != *count {
                return Err(changed());
            }
            self.meter.end(table.bytes(), progress);
        }
        Ok(())
    }
}

/// Refuses what the job says of rows of numbers, and lengths of columns that have none.
fn check_said(spec: &JobSpec, fields: &[Field], shown: &str) -> Result<(), IngestError> {
    let data = &spec.data;
    let said = [
        (data.label.is_some() && FileKind::named(&data.train).is_none(), "label"),
        (data.features.is_some(), "features"),
        (data.labels.is_some(), "labels"),
        (data.separator.is_some(), "separator"),
        (!data.categories.is_empty(), "categories"),
        (!data.missing.is_refuse(), "missing"),
        (!data.on_bad_row.is_refuse(), "on_bad_row"),
        (!data.on_bad_image.is_refuse(), "on_bad_image"),
        (data.stratified, "stratified"),
        (data.groups.is_some(), "groups"),
        (data.shape.is_some(), "shape"),
        (data.channels != sojourn_protocol::spec::Channels::First, "channels"),
        (data.scale != sojourn_protocol::spec::Scale::None, "scale"),
    ];
    if let Some((_, key)) = said.iter().find(|(is_said, _)| *is_said) {
        return Err(Place::of(shown).refuse(Problem::ForRowsOfNumbers(key)));
    }
    let is_sequence =
        |name: &String| fields.iter().any(|field| field.name == *name && field.is_sequence);
    match data.length.keys().find(|name| !is_sequence(name)) {
        Some(name) => Err(Place::of(shown).refuse(Problem::NoSequences(name.clone()))),
        None => Ok(()),
    }
}
