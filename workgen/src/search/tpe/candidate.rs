//! Candidates: drawn from the density of the good observations, and ranked by how much more likely they are there than among the
//! others.

use super::{
    density::Density,
    kernel::{self, Group},
    space::{Places, Space},
};
use crate::search::{
    SearchError, draw,
    sample::{MODEL, Source},
};
use rand_chacha::ChaCha8Rng;
use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// The streams of one candidate, by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    /// The job's seed.
    pub(super) seed: u64,
    /// The number of the combination in its search.
    pub(super) index: u32,
    /// How many candidates were drawn for it before.
    pub(super) drawn: u32,
}

impl Streams {
    fn stream(self, name: &str) -> ChaCha8Rng {
        let Self { seed, index, drawn } = self;
        seeds::stream(&format!("tpe/{name}"), &[seed, u64::from(index), u64::from(drawn)])
    }

    fn uniform(self, name: &str) -> f64 {
        seeds::unit_f64(&mut self.stream(name))
    }
}

/// The densities of both groups of observations, for the model tables for which they were asked.
pub(super) struct Densities<'a> {
    space: &'a Space,
    places: Places,
    good: Vec<usize>,
    others: Vec<usize>,
    by_table: BTreeMap<u32, [Density<'a>; 2]>,
    /// The same over the dimensions that all tables have.
    common: BTreeMap<u32, [Density<'a>; 2]>,
}

impl<'a> Densities<'a> {
    /// `good`: by observation, whether it counts as such.
    pub(super) fn new(space: &'a Space, places: Places, good: &[bool]) -> Self {
        let (good, others): (Vec<_>, Vec<_>) =
            good.iter().enumerate().partition(|(_, is_good)| **is_good);
        let indices = |group: Vec<(usize, &bool)>| group.into_iter().map(|(at, _)| at).collect();
        let (good, others) = (indices(good), indices(others));
        let (by_table, common) = (BTreeMap::new(), BTreeMap::new());
        Self { space, places, good, others, by_table, common }
    }

    /// Of the good ones and of the others.
    pub(super) fn of_table(&mut self, table: u32) -> &[Density<'a>; 2] {
        let Self { space, places, good, others, by_table, .. } = self;
        let groups = [(Group::Good, &**good), (Group::Others, &**others)];
        by_table.entry(table).or_insert_with(|| {
            groups.map(|group| Density::new(space, table, space.of_table(table), places, group))
        })
    }

    /// The index of the best of these candidates.
    ///
    /// Candidates of one table are compared over all its dimensions, and the best ones of different tables over those that all
    /// tables have. Over all dimensions a table with many of its own would seem better than one with few, since the best of several
    /// candidates is the one whose ratio is estimated too high, the more so the more dimensions it has.
    pub(super) fn best(&mut self, candidates: &[Candidate]) -> Option<usize> {
        let tables: BTreeSet<u32> = candidates.iter().map(|candidate| candidate.table).collect();
        let is_one = tables.len() < 2;
        let bests = tables.into_iter().filter_map(|table| {
            let own = candidates.iter().enumerate().filter(|(_, of)| of.table == table);
            own.max_by(|(_, a), (_, b)| a.rank(b))
        });
        let compared = bests.map(|(at, best)| {
            let score = if is_one { best.score } else { self.common_score(best) };
            (at, best.is_known, score)
        });
        let best = compared.max_by(|(_, a_known, a), (_, b_known, b)| {
            a_known.cmp(b_known).reverse().then(a.total_cmp(b))
        });
        best.map(|(at, ..)| at)
    }

    /// The logarithm of the ratio of the densities over the dimensions that all tables have.
    fn common_score(&mut self, candidate: &Candidate) -> f64 {
        let Self { space, places, good, others, common, .. } = self;
        let groups = [(Group::Good, &**good), (Group::Others, &**others)];
        let [good, others] = common.entry(candidate.table).or_insert_with(|| {
            groups.map(|group| Density::new(space, candidate.table, &space.common, places, group))
        });
        let all = space.of_table(candidate.table).iter().zip(&candidate.values);
        let own = all.filter(|(dimension, _)| space.common.contains(dimension));
        let place: Vec<f64> = own.map(|(_, (_, drawn))| drawn.place).collect();
        good.log_at(&place) - others.log_at(&place)
    }

    /// A candidate from the density of the good ones.
    pub(super) fn draw(&mut self, streams: Streams) -> Candidate {
        // One kernel is the prior.
        let kernels = u32::saturating_from(self.good.len()) + 1;
        let kernel = to_usize(seeds::below(&mut streams.stream("kernel"), kernels));
        self.draw_around((kernel < self.good.len()).then_some(kernel), streams)
    }

    /// A candidate from the prior.
    pub(super) fn draw_from_prior(&mut self, streams: Streams) -> Candidate {
        self.draw_around(None, streams)
    }

    /// A candidate from the kernel of this one of the good observations, or from the prior.
    fn draw_around(&mut self, observation: Option<usize>, streams: Streams) -> Candidate {
        let table = self.draw_table(observation, streams);
        let space = self.space;
        let [good, others] = self.of_table(table);
        let (mut place, mut values) = (Vec::new(), Vec::new());
        for (dimension, column) in space.of_table(table).iter().zip(&good.columns) {
            let Some(dimension) = space.dimensions.get(*dimension) else { continue };
            let point = column.draw(observation, streams.uniform(&dimension.name));
            let drawn = Drawn { place: dimension.axis.place_at(point), point };
            place.push(drawn.place);
            values.push((dimension.name.clone(), drawn));
        }
        let is_known = good.has(table, &place) || others.has(table, &place);
        let score = good.log_at(&place) - others.log_at(&place);
        Candidate { streams, table, values, is_known, score }
    }

    fn draw_table(&self, observation: Option<usize>, streams: Streams) -> u32 {
        let tables = self.space.tables();
        let own = observation.and_then(|at| self.good.get(at));
        let own = own.and_then(|at| self.places.tables.get(*at)).copied().map(f64::from);
        let uniform = streams.uniform(MODEL);
        draw::floor(kernel::draw_category(own, self.good.len(), tables, uniform))
    }
}

/// A combination that might be suggested.
#[derive(Debug)]
pub(super) struct Candidate {
    streams: Streams,
    table: u32,
    /// By dimension, its name and where its value lies.
    values: Vec<(String, Drawn)>,
    /// Is it a combination that was tried?
    pub(super) is_known: bool,
    /// The logarithm of the ratio of the densities.
    score: f64,
}

/// Where a value lies.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    place: f64,
    /// The point of the line that was rounded to it.
    point: f64,
}

impl Candidate {
    /// Whether it is better than another one of its table. Combinations that were tried come after all others.
    fn rank(&self, other: &Self) -> Ordering {
        self.is_known.cmp(&other.is_known).reverse().then(self.score.total_cmp(&other.score))
    }

    fn drawn(&self, name: &str) -> Option<Drawn> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, drawn)| *drawn)
    }
}

impl Source for Candidate {
    fn index(&mut self, name: &str, count: u32) -> Result<u32, SearchError> {
        let index = match name {
            MODEL => self.table,
            _ => match self.drawn(name) {
                Some(drawn) => draw::floor(drawn.place),
                None => seeds::below(&mut self.streams.stream(name), count),
            },
        };
        Ok(index.min(count.saturating_sub(1)))
    }

    fn uniform(&mut self, name: &str) -> Result<f64, SearchError> {
        Ok(self.drawn(name).map_or_else(|| self.streams.uniform(name), |drawn| drawn.point))
    }
}
