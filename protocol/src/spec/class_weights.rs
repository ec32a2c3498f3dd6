//! `training.class_weights`: how much the rows of each class count in training.

use crate::manifest::Labels;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most classes that may have weights: each unit carries them.
pub const MAX_WEIGHTED_CLASSES: usize = 1024;
/// Classes that a message names.
const NAMED: usize = 5;

/// How much the rows of each class count in the loss that is minimised. Validation and test rows all count alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClassWeights {
    /// All alike.
    #[default]
    None,
    /// In inverse proportion to the class's training rows: rows / (classes * rows of the class).
    Balanced,
    /// By the names of classes, each above 0; a class without an entry has 1.
    Table(BTreeMap<String, f64>),
}

impl ClassWeights {
    /// Do all rows count alike?
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self, ClassWeights::None)
    }

    /// Can data with these labels be trained on with them?
    ///
    /// # Errors
    /// What is wrong, with the class.
    pub fn check(&self, labels: &Labels) -> Result<(), String> {
        let names = match (self, labels) {
            (ClassWeights::None, _) => return Ok(()),
            (_, Labels::Classes(names)) => names,
            (_, Labels::Number | Labels::None) => {
                return Err("`training.class_weights` needs labels that are classes".into());
            }
        };
        let classes = names.len();
        if classes > MAX_WEIGHTED_CLASSES {
            return Err(format!(
                "`training.class_weights` is for at most {MAX_WEIGHTED_CLASSES} classes; the data has {classes}"
            ));
        }
        let ClassWeights::Table(table) = self else { return Ok(()) };
        for (name, weight) in table {
            if !names.contains(name) {
                let known = names.iter().take(NAMED).map(|name| format!("`{name}`"));
                let known = known.collect::<Vec<_>>().join(", ");
                let more = if classes > NAMED { ", ..." } else { "" };
                return Err(format!(
                    "`training.class_weights` has `{name}`, which is no class of the data; its classes are {known}{more}"
                ));
            }
            if !(weight.is_finite() && *weight > 0.0) {
                return Err(format!(
                    "`training.class_weights` gives `{name}` the weight {weight}; a number above 0 is wanted"
                ));
            }
        }
        Ok(())
    }

    /// The weight of each class, in index order, for data with so many training rows of each; `None` where all count
    /// alike. A class without training rows has 1, and doesn't count among the classes.
    #[must_use]
    pub fn weights(&self, names: &[String], rows: &[u64]) -> Option<Vec<f64>> {
        match self {
            ClassWeights::None => None,
            ClassWeights::Balanced => {
                let there = rows.iter().filter(|rows| **rows > 0).count();
                let all: u64 = rows.iter().sum();
                #[expect(clippy::cast_precision_loss, reason = "row counts are far below 2^53")]
                let weight = |rows: &u64| match rows {
                    0 => 1.0,
                    rows => all as f64 / (there as f64 * *rows as f64),
                };
                Some(rows.iter().map(weight).collect())
            }
            ClassWeights::Table(table) => {
                let weight = |name: &String| table.get(name).copied().unwrap_or(1.0);
                Some(names.iter().map(weight).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn table(entries: &[(&str, f64)]) -> ClassWeights {
        let entries = entries.iter().map(|(name, weight)| ((*name).to_owned(), *weight));
        ClassWeights::Table(entries.collect())
    }

    #[test]
    fn weights_are_those_of_scikit_learn_or_of_the_table() {
        let classes = names(&["a", "b", "c"]);
        let balanced = ClassWeights::Balanced;
        // 12 / (3 * rows)
        assert_eq!(balanced.weights(&classes, &[8, 2, 2]), Some(vec![0.5, 2.0, 2.0]));
        // 10 / (2 * rows): no row of `c` is trained on.
        assert_eq!(balanced.weights(&classes, &[8, 2, 0]), Some(vec![0.625, 2.5, 1.0]));
        let some = table(&[("c", 3.0), ("a", 0.25)]);
        assert_eq!(some.weights(&classes, &[8, 2, 2]), Some(vec![0.25, 1.0, 3.0]));
        assert_eq!(ClassWeights::None.weights(&classes, &[8, 2, 2]), None);
    }

    #[test]
    fn weights_that_do_not_fit_the_labels_are_refused_with_the_class() {
        let labels = Labels::Classes(names(&["cat", "dog"]));
        let refused = |weights: &ClassWeights| weights.check(&labels).unwrap_err();
        assert_eq!(table(&[("cat", 2.0)]).check(&labels), Ok(()));
        assert_eq!(
            refused(&table(&[("cow", 2.0)])),
            "`training.class_weights` has `cow`, which is no class of the data; its classes are `cat`, `dog`"
        );
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let told = refused(&table(&[("dog", weight)]));
            assert!(told.contains("gives `dog` the weight"), "{told}");
        }
        let told = ClassWeights::Balanced.check(&Labels::Number).unwrap_err();
        assert_eq!(told, "`training.class_weights` needs labels that are classes");
        let many = Labels::Classes((0..1025).map(|class| class.to_string()).collect());
        let told = ClassWeights::Balanced.check(&many).unwrap_err();
        assert!(told.ends_with("at most 1024 classes; the data has 1025"), "{told}");
        assert_eq!(ClassWeights::None.check(&many), Ok(()));
    }
}
