//! The dimensions of a space by model table, and where observations lie in them.

use super::{Observation, axis::Axis};
use crate::search::sample::MODEL;
use serde_json::Value;
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    spec::{
        Choices, JobSpec,
        dimension::{Chooser, Normal, Range},
    },
};
use std::{cmp::Ordering, iter};

/// A dimension of the space.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dimension {
    pub(super) name: String,
    pub(super) axis: Axis,
}

/// All dimensions that have more than one value. The choice of a model table is one where there are several.
pub(super) struct Space {
    pub(super) dimensions: Vec<Dimension>,
    /// By table, its dimensions as indices, in the order of their names.
    tables: Vec<Vec<usize>>,
    /// The dimensions that all tables have, in the same order.
    pub(super) common: Vec<usize>,
}

impl Space {
    pub(super) fn new(spec: &JobSpec) -> Self {
        let mut space = Self { dimensions: Vec::new(), tables: Vec::new(), common: Vec::new() };
        for table in 0..spec.models.len() {
            let mut own: Vec<usize> =
                survey(spec, table).into_iter().map(|d| space.add(d)).collect();
            own.sort_by(|a, b| space.name(*a).cmp(space.name(*b)));
            space.tables.push(own);
        }
        space.common = common(&space.tables);
        space
    }

    /// The index of a dimension, which is added if it is new. Tables share dimensions of one name and scale.
    fn add(&mut self, dimension: Dimension) -> usize {
        let found = self.dimensions.iter().position(|known| *known == dimension);
        found.unwrap_or_else(|| {
            self.dimensions.push(dimension);
            self.dimensions.len() - 1
        })
    }

    fn name(&self, dimension: usize) -> &str {
        self.dimensions.get(dimension).map_or("", |dimension| dimension.name.as_str())
    }

    /// How many model tables there are.
    pub(super) fn tables(&self) -> u32 {
        u32::saturating_from(self.tables.len())
    }

    /// The dimensions of a table, as indices.
    pub(super) fn of_table(&self, table: u32) -> &[usize] {
        self.tables.get(to_usize(table)).map_or(&[], Vec::as_slice)
    }
}

/// The dimensions that each of these tables has.
fn common(tables: &[Vec<usize>]) -> Vec<usize> {
    let Some((first, rest)) = tables.split_first() else { return Vec::new() };
    first.iter().copied().filter(|d| rest.iter().all(|table| table.contains(d))).collect()
}

/// The places of observations, by dimension.
pub(super) struct Places {
    /// By observation, its model table.
    pub(super) tables: Vec<u32>,
    /// By dimension and observation; no number where an observation has no value of the dimension.
    pub(super) columns: Vec<Vec<f64>>,
}

impl Places {
    pub(super) fn new(space: &Space, observations: &[&Observation<'_>]) -> Self {
        let tables = observations.iter().map(|observation| observation.model).collect();
        let mut columns = vec![vec![f64::NAN; observations.len()]; space.dimensions.len()];
        for (at, observation) in observations.iter().enumerate() {
            let dimensions = space.of_table(observation.model);
            for (dimension, value) in values(space, dimensions, observation.choices) {
                let place = space.dimensions.get(dimension).and_then(|d| d.axis.place(value));
                let to = columns.get_mut(dimension).and_then(|column| column.get_mut(at));
                if let (Some(place), Some(to)) = (place, to) {
                    *to = place;
                }
            }
        }
        Self { tables, columns }
    }
}

/// The values of these dimensions, which are in the order of their names as choices are.
fn values<'a>(
    space: &'a Space,
    dimensions: &'a [usize],
    choices: &'a Choices,
) -> impl Iterator<Item = (usize, &'a Value)> {
    let mut dimensions = dimensions.iter().copied().peekable();
    let mut choices = choices.iter().peekable();
    iter::from_fn(move || {
        loop {
            let (dimension, (name, value)) = (*dimensions.peek()?, *choices.peek()?);
            match space.name(dimension).cmp(name) {
                Ordering::Less => _ = dimensions.next(),
                Ordering::Greater => _ = choices.next(),
                Ordering::Equal => {
                    choices.next();
                    dimensions.next();
                    return Some((dimension, value));
                }
            }
        }
    })
}

/// The dimensions that a table's space asks for, each once.
fn survey(spec: &JobSpec, table: usize) -> Vec<Dimension> {
    let mut survey = Survey { category: 0, most: 1, asked: None, found: Vec::new() };
    while survey.category < survey.most {
        // A space that has no value is reported when its trial is made.
        let _ = spec.close(table, &mut survey);
        survey.category += 1;
    }
    survey.found
}

/// Takes all categories of each choice, one after another, and of ranges their low ends. So it sees each dimension's scale, and
/// each category as choices have it.
struct Survey {
    /// The category that is taken, where there are so many.
    category: usize,
    /// Categories of the dimension that has most.
    most: usize,
    /// The scale of the dimension that was asked for last.
    asked: Option<Axis>,
    found: Vec<Dimension>,
}

impl Survey {
    fn of(&mut self, name: &str) -> Option<&mut Dimension> {
        self.found.iter_mut().find(|dimension| dimension.name == name)
    }
}

impl Chooser for Survey {
    fn index(&mut self, _: &str, count: usize) -> usize {
        self.most = self.most.max(count);
        self.asked = Axis::of_choice(count);
        self.category.min(count.saturating_sub(1))
    }

    fn number(&mut self, _: &str, range: &Range) -> f64 {
        self.asked = Axis::of_range(*range);
        range.low
    }

    fn normal(&mut self, _: &str, normal: &Normal) -> f64 {
        self.asked = Axis::of_normal(*normal);
        normal.mean
    }

    fn takes_absent(&self) -> bool {
        true
    }

    fn chosen(&mut self, name: &str, value: Value) {
        let Some(axis) = self.asked.take().filter(|_| name != MODEL) else { return };
        if self.of(name).is_none() {
            self.found.push(Dimension { name: name.to_owned(), axis });
        }
        let category = self.category;
        if let Some(Dimension { axis: Axis::Choice(values), .. }) = self.of(name)
            && let Some(to) = values.get_mut(category)
        {
            *to = value;
        }
    }
}
