//! The classes of a job: the different labels of its training data, of which equal numbers are one class.

use crate::{error::Problem, words::Words};
use sojourn_protocol::{classes::plain_decimal, quantity::to_u64};
use std::collections::BTreeMap;

/// Most labels of one class that are told.
const MAX_TOLD: usize = 4;

/// The classes, in index order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) names: Vec<String>,
    /// Classes that are written in several ways.
    pub(crate) merged: Vec<Merged>,
}

/// A class that is written in several ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) class: String,
    /// Some of these ways.
    pub(crate) labels: Vec<String>,
}

impl Classes {
    /// The classes of these labels. One that is written in a single way is called so; else it is the shortest decimal.
    pub(crate) fn of(labels: Words) -> Self {
        let mut by_number: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut classes = Words::default();
        for label in labels.in_order() {
            match plain_decimal(&label) {
                Some(number) => by_number.entry(number).or_default().push(label),
                None => classes.add(&label),
            }
        }
        let mut merged = Vec::new();
        for (number, mut labels) in by_number {
            match labels.as_slice() {
                [only] => classes.add(only),
                _ => {
                    classes.add(&number);
                    labels.truncate(MAX_TOLD);
                    merged.push(Merged { class: number, labels });
                }
            }
        }
        Self { names: classes.in_order(), merged }
    }

    /// Refuses classes that are numbers to predict, most likely: all are numbers, some with decimals, and more than half of the rows
    /// have one of their own.
    pub(crate) fn check(&self, rows: u64) -> Result<(), Problem> {
        let decimals = || self.names.iter().map(|name| plain_decimal(name));
        let is_fraction =
            |number: Option<String>| number.is_some_and(|number| number.contains('.'));
        let distinct = self.names.len();
        if to_u64(distinct).saturating_mul(2) > rows
            && decimals().all(|number| number.is_some())
            && decimals().any(is_fraction)
        {
            return Err(Problem::NumbersAsClasses { distinct, rows });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[&str]) -> Classes {
        let mut words = Words::default();
        labels.iter().for_each(|label| words.add(label));
        Classes::of(words)
    }

    #[test]
    fn equal_numbers_are_one_class_and_a_single_label_keeps_its_text() {
        let classes = of(&["0", "0.0", "1.0", "-0", "10", "9"]);
        assert_eq!(classes.names, ["0", "1.0", "10", "9"]);
        let labels = ["-0", "0", "0.0"].map(str::to_owned).to_vec();
        assert_eq!(classes.merged, [Merged { class: "0".into(), labels }]);
        assert_eq!(of(&["10", "9", "9.0"]).names, ["9", "10"]);
        assert_eq!(
            of(&["1.0", "0.0"]),
            Classes { names: vec!["0.0".into(), "1.0".into()], merged: vec![] }
        );
        assert_eq!(of(&["b", "a"]).names, ["a", "b"]);
    }

    #[test]
    fn many_numbers_with_decimals_are_no_classes() {
        let prices = of(&["1.5", "2.25", "3"]);
        assert_eq!(prices.check(5), Err(Problem::NumbersAsClasses { distinct: 3, rows: 5 }));
        assert_eq!(prices.check(6), Ok(()));
        assert_eq!(of(&["1.0", "2.0", "3"]).check(3), Ok(()), "whole numbers");
        assert_eq!(of(&["1.5", "2.5", "high"]).check(3), Ok(()));
    }
}
