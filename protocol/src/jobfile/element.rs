//! One plain value of a key: a number within bounds, a word, a list.

use crate::spec::{OptimizerName, Pool, Precision, Ratio, Real, Sampling, Setting};
use sojourn_forms::Node;

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
    pub(super) fn hold(self, number: f64) -> bool {
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

    pub(super) fn wanted(self) -> &'static str {
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

    pub(super) fn check(self, node: &Node<'_>, number: f64) -> Option<f64> {
        if self.hold(number) {
            Some(number)
        } else {
            node.refuse(format!("is {number}; {} is wanted", self.wanted()))
        }
    }
}

/// A type that a dimension can have.
pub(super) trait Element: Sized + Clone {
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
