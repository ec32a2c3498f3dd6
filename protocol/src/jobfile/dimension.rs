//! A value that a search may vary: plain, a choice, a range, normal numbers, or a formula of others.

use super::{
    condition,
    element::{Bounds, Element},
    method::Method,
    reader::JobFileNode,
};
use crate::spec::dimension::{Conditional, Dimension, MAX_STEPS, Normal, Range, Spread};
use sojourn_forms::{Node, Table, list};

/// A form of a dimension.
#[derive(Clone, Copy)]
enum Form {
    Choice,
    Range(Spread),
    Normal,
    Formula,
}

const FORMS: &[(&str, Form)] = &[
    ("choice", Form::Choice),
    ("uniform", Form::Range(Spread::Uniform)),
    ("log_uniform", Form::Range(Spread::LogUniform)),
    ("int", Form::Range(Spread::Integer)),
    ("log_int", Form::Range(Spread::LogInteger)),
    ("normal", Form::Normal),
    ("formula", Form::Formula),
];
/// The keys that may stand beside a form.
const OPTIONS: &[&str] = &["points", "step", "truncate", "when", "otherwise"];

/// Reads a dimension. `method` is needed because a grid must know how many values a range gives. `default`: the value where the key is left
/// out, if it may be.
pub(super) fn read<T: Element>(
    node: &Node<'_>,
    bounds: Bounds,
    method: Option<Method>,
    default: Option<&T>,
) -> Option<Dimension<T>> {
    if !node.is_table() {
        if node.is_list() && !T::LIST {
            return node.refuse(
                "is a list; one value is wanted, or to search over several: `{ choice = [...] }`",
            );
        }
        if T::RANGES && !T::LIST && node.is_string() {
            return condition::formula(node).map(Dimension::Tied);
        }
        return T::read(node, bounds).map(Dimension::Fixed);
    }
    let forms: Vec<&str> = FORMS.iter().map(|(word, _)| *word).collect();
    let section = node.section_of(&[&forms, OPTIONS].concat())?;
    let searched = searched(node, &section, bounds, method);
    let otherwise = section.optional("otherwise");
    let Some(when) = section.optional("when") else {
        return match otherwise {
            None => searched,
            Some(node) => node.refuse("goes with `when`: the value of trials that don't meet it"),
        };
    };
    let when = condition::read(&when);
    let otherwise = match otherwise {
        Some(node) => T::read(&node, bounds),
        None => default.cloned().or_else(|| {
            let text = "is missing: the value of trials that don't meet `when`, since the key has no default";
            section.refuse("otherwise", text)
        }),
    };
    let (dimension, when, otherwise) = (searched?, when?, otherwise?);
    Some(Dimension::Conditional(Box::new(Conditional { dimension, when, otherwise })))
}

/// Reads a dimension that varies: a table with one of the forms.
fn searched<T: Element>(
    node: &Node<'_>,
    section: &Table<'_>,
    bounds: Bounds,
    method: Option<Method>,
) -> Option<Dimension<T>> {
    let forms: Vec<&str> = FORMS.iter().map(|(word, _)| *word).collect();
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
        Form::Formula => &[("points", "a range"), ("step", "a range"), ("truncate", "`normal`")],
    };
    if let Some((option, of)) =
        foreign.iter().find(|(option, _)| section.optional(option).is_some())
    {
        return section.refuse(option, format!("goes with {of}, not with `{word}`"));
    }
    if !T::RANGES && !matches!(form, Form::Choice) {
        return values.refuse("has no meaning here; `choice` is the way to search over this key");
    }
    let numbers = Numbers { node, section, word, values, bounds };
    match form {
        Form::Choice => choice(values, bounds),
        Form::Formula => condition::formula(values).map(Dimension::Tied),
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
