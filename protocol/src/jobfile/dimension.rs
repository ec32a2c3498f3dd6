//! A value that a search may vary: plain, a choice, or a range.

use super::{
    reader::{Node, list},
    search::Method,
};
use crate::spec::{
    OptimizerName, Pool, Precision, Real, Sampling, Setting, Share,
    dimension::{Dimension, Range, Spread},
};

const WAYS: &[&str] = &["choice", "uniform", "log_uniform", "int", "points"];
const RANGES: &[(&str, Spread)] =
    &[("uniform", Spread::Uniform), ("log_uniform", Spread::LogUniform), ("int", Spread::Integer)];

/// The numbers that are allowed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bounds {
    /// Any number.
    Any,
    /// Anything above 0.
    Positive,
    /// Anything from 0 on.
    NotNegative,
    /// From 0 on, below 1.
    ZeroToBelowOne,
    /// Above 0, up to 1.
    AboveZeroToOne,
    /// From 0 to 1.
    ZeroToOne,
    /// From 1 on.
    AtLeastOne,
}

impl Bounds {
    fn hold(self, number: f64) -> bool {
        match self {
            Bounds::Any => true,
            Bounds::Positive => number > 0.0,
            Bounds::NotNegative => number >= 0.0,
            Bounds::ZeroToBelowOne => (0.0..1.0).contains(&number),
            Bounds::AboveZeroToOne => number > 0.0 && number <= 1.0,
            Bounds::ZeroToOne => (0.0..=1.0).contains(&number),
            Bounds::AtLeastOne => number >= 1.0,
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Bounds::Any => "a number",
            Bounds::Positive => "a number above 0",
            Bounds::NotNegative => "a number of at least 0",
            Bounds::ZeroToBelowOne => "a number of at least 0 and below 1",
            Bounds::AboveZeroToOne => "a number above 0 and at most 1",
            Bounds::ZeroToOne => "a number from 0 to 1",
            Bounds::AtLeastOne => "a number of at least 1",
        }
    }

    fn check(self, node: &Node<'_>, number: f64) -> Option<f64> {
        if self.hold(number) {
            Some(number)
        } else {
            node.refuse(format!("is {number}; {} is wanted", self.wanted()))
        }
    }
}

/// A type that a dimension can have.
pub(super) trait Element: Sized {
    /// Are ranges of it possible?
    const RANGES: bool;
    /// Reads one plain value.
    fn read(node: &Node<'_>, bounds: Bounds) -> Option<Self>;
    /// Is a plain value of this type a list?
    const LIST: bool = false;
    /// The largest number that it can be.
    const MAX: f64 = f64::MAX;
}

impl Element for f64 {
    const RANGES: bool = true;
    fn read(node: &Node<'_>, bounds: Bounds) -> Option<Self> {
        bounds.check(node, node.number()?)
    }
}

impl Element for u32 {
    const RANGES: bool = true;
    const MAX: f64 = 4_294_967_295.0;
    fn read(node: &Node<'_>, bounds: Bounds) -> Option<Self> {
        let low = u32::from(!bounds.hold(0.0));
        node.integer(low, u32::MAX)
    }
}

impl Element for Share {
    const RANGES: bool = true;
    fn read(node: &Node<'_>, bounds: Bounds) -> Option<Self> {
        f64::read(node, bounds).map(Share)
    }
}

impl Element for bool {
    const RANGES: bool = false;
    fn read(node: &Node<'_>, _: Bounds) -> Option<Self> {
        node.boolean()
    }
}

impl Element for Pool {
    const RANGES: bool = false;
    fn read(node: &Node<'_>, _: Bounds) -> Option<Self> {
        node.word(&[("max", Pool::Max), ("average", Pool::Average), ("none", Pool::None)])
    }
}

impl Element for Precision {
    const RANGES: bool = false;
    fn read(node: &Node<'_>, _: Bounds) -> Option<Self> {
        node.word(&[("f32", Precision::F32), ("bf16", Precision::Bf16)])
    }
}

impl Element for Sampling {
    const RANGES: bool = false;
    fn read(node: &Node<'_>, _: Bounds) -> Option<Self> {
        node.word(&[("shuffled", Sampling::Shuffled), ("balanced", Sampling::Balanced)])
    }
}

/// The most bytes of a text among the keys of a user's own model.
const MAX_TEXT: usize = 200;

impl Element for Setting {
    const RANGES: bool = true;
    const LIST: bool = true;
    fn read(node: &Node<'_>, bounds: Bounds) -> Option<Self> {
        if node.is_list() {
            let elements = node.list("a list of values")?;
            // Every element is looked at, so that every problem is reported.
            let read: Vec<Option<Setting>> =
                elements.iter().map(|element| Self::read(element, bounds)).collect();
            return read.into_iter().collect::<Option<_>>().map(Setting::List);
        }
        if node.is_string() {
            let text = node.string("text")?;
            return match text.len() {
                ..=MAX_TEXT => Some(Setting::Text(text.to_owned())),
                _ => node.refuse(format!("has more than {MAX_TEXT} bytes")),
            };
        }
        if node.is_boolean() {
            return node.boolean().map(Setting::Switch);
        }
        if node.is_integer() {
            return node.integer(i64::MIN, i64::MAX).map(Setting::Whole);
        }
        f64::read(node, bounds).map(|number| Setting::Real(Real(number)))
    }
}

impl Element for Vec<u32> {
    const RANGES: bool = false;
    const LIST: bool = true;
    fn read(node: &Node<'_>, _: Bounds) -> Option<Self> {
        let elements = node.list("a list of whole numbers, e.g. `[64, 32]`,")?;
        // Every element is looked at, so that every problem is reported.
        let numbers: Vec<Option<u32>> =
            elements.iter().map(|element| element.integer(1, 1 << 20)).collect();
        numbers.into_iter().collect()
    }
}

impl Element for OptimizerName {
    const RANGES: bool = false;
    fn read(node: &Node<'_>, _: Bounds) -> Option<Self> {
        node.word(OPTIMIZERS)
    }
}

/// The optimisers by their words.
pub(super) const OPTIMIZERS: &[(&str, OptimizerName)] =
    &[("sgd", OptimizerName::Sgd), ("adam", OptimizerName::Adam), ("adamw", OptimizerName::Adamw)];

/// Reads a dimension. `method` is needed because a grid must know how many values a range gives.
pub(super) fn read<T: Element>(
    node: &Node<'_>,
    bounds: Bounds,
    method: Option<Method>,
) -> Option<Dimension<T>> {
    if !node.is_table() {
        if node.is_list() && !T::LIST {
            return node.refuse(
                "is a list; one value is wanted, or to search over several: `{ choice = [...] }`",
            );
        }
        return T::read(node, bounds).map(Dimension::Fixed);
    }
    let section = node.section_of(WAYS)?;
    let ways = ["choice", "uniform", "log_uniform", "int"];
    let there: Vec<&str> = ways.into_iter().filter(|way| section.optional(way).is_some()).collect();
    let [way] = there.as_slice() else {
        let found = if there.is_empty() { "none".to_owned() } else { list(&there) };
        return node.refuse(format!("has {found}; exactly one of {} is wanted", list(&ways)));
    };
    let values = section.optional(way)?;
    let Some((_, spread)) = RANGES.iter().find(|(name, _)| name == way) else {
        if section.optional("points").is_some() {
            return section.refuse("points", "goes with a range, not with `choice`".to_owned());
        }
        return choice(&values, bounds);
    };
    if !T::RANGES {
        return values.refuse("has no meaning here; `choice` is the way to search over this key");
    }
    let (low, high) = ends(&values, *spread, bounds, T::MAX)?;
    let points = match section.optional("points") {
        Some(points) => Some(points.integer(1, 1_000_000)?),
        None => None,
    };
    if method == Some(Method::Grid) && points.is_none() && *spread != Spread::Integer {
        return node.refuse(format!(
            "needs `points` in a grid search: how many values to take, e.g. `{{ {way} = [{low}, {high}], points = 3 }}`"
        ));
    }
    Some(Dimension::Range(Range { spread: *spread, low, high, points }))
}

fn choice<T: Element>(values: &Node<'_>, bounds: Bounds) -> Option<Dimension<T>> {
    let elements = values.list("a list of values")?;
    if elements.is_empty() {
        return values.refuse("is empty; at least one value is wanted");
    }
    let read: Vec<Option<T>> = elements.iter().map(|element| T::read(element, bounds)).collect();
    read.into_iter().collect::<Option<Vec<T>>>().map(Dimension::Choice)
}

fn ends(values: &Node<'_>, spread: Spread, bounds: Bounds, max: f64) -> Option<(f64, f64)> {
    let elements = values.list("a list of two numbers, `[low, high]`,")?;
    let [low_node, high_node] = elements.as_slice() else {
        return values.refuse(format!("has {} values; `[low, high]` is wanted", elements.len()));
    };
    let (low, high) = (low_node.number(), high_node.number());
    let (low, high) = (low?, high?);
    if low > high {
        return values.refuse(format!("has its low end {low} above its high end {high}"));
    }
    if spread == Spread::LogUniform && low <= 0.0 {
        return low_node.refuse(format!("is {low}; the low end of `log_uniform` must be above 0"));
    }
    if high > max {
        return high_node.refuse(format!("is {high}; at most {max} is possible"));
    }
    let whole = |number: f64| number.fract() == 0.0 && number.abs() <= 9e15;
    if spread == Spread::Integer && !(whole(low) && whole(high)) {
        return values.refuse("has ends that aren't whole numbers; `int` needs them");
    }
    bounds.check(low_node, low)?;
    bounds.check(high_node, high)?;
    Some((low, high))
}
