//! A value that a search may vary: plain, a choice, a range, or normal numbers.

use super::{method::Method, reader::JobFileNode};
use crate::spec::{
    OptimizerName, Pool, Precision, Ratio, Real, Sampling, Setting,
    dimension::{Dimension, MAX_STEPS, Normal, Range, Spread},
};
use sojourn_forms::{Node, Table, list};

/// A form of a dimension.
#[derive(Clone, Copy)]
enum Form {
    Choice,
    Range(Spread),
    Normal,
}

const FORMS: &[(&str, Form)] = &[
    ("choice", Form::Choice),
    ("uniform", Form::Range(Spread::Uniform)),
    ("log_uniform", Form::Range(Spread::LogUniform)),
    ("int", Form::Range(Spread::Integer)),
    ("log_int", Form::Range(Spread::LogInteger)),
    ("normal", Form::Normal),
];
/// The keys that may stand beside a form.
const OPTIONS: &[&str] = &["points", "step", "truncate"];

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
    /// Can it be any number, whole or not?
    const FRACTIONS: bool = false;
    /// Reads one plain value.
    fn read(node: &Node<'_>, bounds: Bounds) -> Option<Self>;
    /// Is a plain value of this type a list?
    const LIST: bool = false;
    /// The largest number that it can be.
    const MAX: f64 = f64::MAX;
}

impl Element for f64 {
    const RANGES: bool = true;
    const FRACTIONS: bool = true;
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

impl Element for Ratio {
    const RANGES: bool = true;
    const FRACTIONS: bool = true;
    fn read(node: &Node<'_>, bounds: Bounds) -> Option<Self> {
        f64::read(node, bounds).map(Ratio)
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
    const FRACTIONS: bool = true;
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
    searched(node, bounds, method)
}

/// Reads a dimension that varies: a table with one of the forms.
fn searched<T: Element>(
    node: &Node<'_>,
    bounds: Bounds,
    method: Option<Method>,
) -> Option<Dimension<T>> {
    let forms: Vec<&str> = FORMS.iter().map(|(word, _)| *word).collect();
    let section = node.section_of(&[&forms, OPTIONS].concat())?;
    let there: Vec<_> = FORMS
        .iter()
        .filter_map(|(word, form)| Some((*word, *form, section.optional(word)?)))
        .collect();
    let [(word, form, values)] = there.as_slice() else {
        let found: Vec<&str> = there.iter().map(|(word, ..)| *word).collect();
        let found = if found.is_empty() { "none".to_owned() } else { list(&found) };
        return node.refuse(format!("has {found}; exactly one of {} is wanted", list(&forms)));
    };
    let foreign: &[(&str, &str)] = match form {
        Form::Choice => &[("points", "a range"), ("step", "a range"), ("truncate", "`normal`")],
        Form::Range(_) => &[("truncate", "`normal`")],
        Form::Normal => &[("points", "a range"), ("step", "a range")],
    };
    if let Some((option, of)) =
        foreign.iter().find(|(option, _)| section.optional(option).is_some())
    {
        return section.refuse(option, format!("goes with {of}, not with `{word}`"));
    }
    if !T::RANGES && !matches!(form, Form::Choice) {
        return values.refuse("has no meaning here; `choice` is the way to search over this key");
    }
    let numbers = Numbers { node, section: &section, word, values, bounds };
    match form {
        Form::Choice => choice(values, bounds),
        Form::Normal if !T::FRACTIONS => values.refuse(
            "has no meaning here: whole numbers are wanted; `int` and `log_int` give them",
        ),
        Form::Normal if method == Some(Method::Grid) => node.refuse(
            "can't be in a grid search, which takes every value: `normal` goes with every other `method`",
        ),
        Form::Normal => numbers.normal().map(Dimension::Normal),
        Form::Range(spread) => {
            let range = numbers.range(*spread, T::MAX)?;
            if method == Some(Method::Grid) && range.points.is_none() && range.steps().is_none() {
                return node.refuse(format!(
                    "needs `points` in a grid search: how many values to take, e.g. `{{ {word} = [{}, {}], points = 3 }}`",
                    range.low, range.high
                ));
            }
            Some(Dimension::Range(range))
        }
    }
}

fn choice<T: Element>(values: &Node<'_>, bounds: Bounds) -> Option<Dimension<T>> {
    let elements = values.list("a list of values")?;
    if elements.is_empty() {
        return values.refuse("is empty; at least one value is wanted");
    }
    let read: Vec<Option<T>> = elements.iter().map(|element| T::read(element, bounds)).collect();
    read.into_iter().collect::<Option<Vec<T>>>().map(Dimension::Choice)
}

/// A dimension whose values are numbers of a range, or normal.
struct Numbers<'t, 'a> {
    node: &'t Node<'a>,
    section: &'t Table<'a>,
    /// The word of the form; `values` has the two numbers of it.
    word: &'t str,
    values: &'t Node<'a>,
    bounds: Bounds,
}

impl<'a> Numbers<'_, 'a> {
    fn range(&self, spread: Spread, max: f64) -> Option<Range> {
        let (low, high) = self.ends(spread, max)?;
        let points = match self.section.optional("points") {
            Some(points) => Some(points.integer(1, 1_000_000)?),
            None => None,
        };
        let range = Range { points, ..Range::new(spread, low, high) };
        let Some(node) = self.section.optional("step") else {
            if spread.is_whole() && high - low >= f64::from(MAX_STEPS) {
                let text = format!("has over {MAX_STEPS} values; `step` makes them fewer");
                return self.values.refuse(text);
            }
            return Some(range);
        };
        if points.is_some() {
            let text = "can't go with `step`: a grid takes every step".to_owned();
            return self.section.refuse("points", text);
        }
        let step = Bounds::Positive.check(&node, node.number()?)?;
        if spread.is_whole() && step.fract() != 0.0 {
            return node.refuse(format!("is {step}; `{}` needs a whole number", self.word));
        }
        if step > high - low {
            return node.refuse(format!("is {step}, more than the whole range"));
        }
        let range = Range { step: Some(step), ..range };
        if !range.is_sound() {
            let text = format!("is {step}, so that the range has over {MAX_STEPS} values");
            return node.refuse(text);
        }
        Some(range)
    }

    fn normal(&self) -> Option<Normal> {
        let [mean_node, deviation_node] = pair(self.values, "[mean, deviation]")?;
        let (mean, deviation) = (mean_node.number(), deviation_node.number());
        let (mean, deviation) = (mean?, deviation?);
        if deviation <= 0.0 {
            return deviation_node.refuse(format!("is {deviation}; a deviation above 0 is wanted"));
        }
        let truncate = match self.section.optional("truncate") {
            Some(node) => Some(self.truncate(&node, mean)?),
            None if self.bounds.hold(f64::MIN) => None,
            None => {
                let wanted = self.bounds.wanted();
                let text = format!(
                    "is any number; {wanted} is wanted: `truncate = [low, high]` says from where to where"
                );
                return self.node.refuse(text);
            }
        };
        let normal = Normal { mean, deviation, truncate };
        match (normal.is_sound(), truncate) {
            (true, _) => Some(normal),
            (false, None) => self.values.refuse("goes beyond the largest number there is"),
            (false, Some(_)) => {
                let text = format!(
                    "is so narrow for a deviation of {deviation} that any number is as likely; `uniform` says that"
                );
                self.section.refuse("truncate", text)
            }
        }
    }

    /// Reads `truncate`.
    fn truncate(&self, node: &Node<'a>, mean: f64) -> Option<[f64; 2]> {
        let [low_node, high_node] = pair(node, "[low, high]")?;
        let (low, high) = (low_node.number(), high_node.number());
        let (low, high) = (low?, high?);
        let any = Normal { mean, deviation: 1.0, truncate: None };
        if !any.is_inside([low, high]) {
            return node
                .refuse(format!("is {low} to {high}; ends around the mean, {mean}, are wanted"));
        }
        self.bounds.check(&low_node, low)?;
        self.bounds.check(&high_node, high)?;
        Some([low, high])
    }

    /// The ends of a range.
    fn ends(&self, spread: Spread, max: f64) -> Option<(f64, f64)> {
        let Self { values, word, .. } = *self;
        let [low_node, high_node] = pair(values, "[low, high]")?;
        let (low, high) = (low_node.number(), high_node.number());
        let (low, high) = (low?, high?);
        if low > high {
            return values.refuse(format!("has its low end {low} above its high end {high}"));
        }
        if spread.is_logarithmic() && low <= 0.0 {
            return low_node.refuse(format!("is {low}; the low end of `{word}` must be above 0"));
        }
        if high > max {
            return high_node.refuse(format!("is {high}; at most {max} is possible"));
        }
        let whole = |number: f64| number.fract() == 0.0 && number.abs() <= 9e15;
        if spread.is_whole() && !(whole(low) && whole(high)) {
            let text = format!("has ends that aren't whole numbers; `{word}` needs them");
            return values.refuse(text);
        }
        self.bounds.check(&low_node, low)?;
        self.bounds.check(&high_node, high)?;
        Some((low, high))
    }
}

/// A list of two; `wanted` names them.
fn pair<'a>(node: &Node<'a>, wanted: &str) -> Option<[Node<'a>; 2]> {
    let elements = node.list(&format!("a list of two numbers, `{wanted}`,"))?;
    <[Node<'a>; 2]>::try_from(elements).map_or_else(
        |elements| {
            let count = elements.len();
            let values = if count == 1 { "value" } else { "values" };
            node.refuse(format!("has {count} {values}; `{wanted}` is wanted"))
        },
        Some,
    )
}
