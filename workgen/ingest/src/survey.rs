//! The first pass over a file: how many rows, how wide, and which labels.

use crate::{
    classes::Classes,
    error::{IngestError, Problem, Problems},
    groups::Groups,
    number::shown,
    table::{LeftOut, Pass, Table, class},
    words::Words,
};
use sojourn_protocol::{classes::ClassIndex, quantity::to_u64, spec::Loss};
use std::collections::BTreeMap;

/// Most classes that a job may have; more are numbers that should be predicted as such.
const MAX_CLASSES: usize = 65_536;

/// The results of the first pass.
#[derive(Debug, Clone)]
pub(crate) struct Survey {
    pub(crate) rows: u64,
    pub(crate) left_out: LeftOut,
    /// The classes, where labels are classes and none were given.
    pub(crate) classes: Option<Classes>,
    /// The groups of its rows, where it has some.
    pub(crate) groups: Groups,
    /// The words of each column whose words weren't known, by the column's name.
    pub(crate) words: BTreeMap<String, Words>,
}

impl Survey {
    /// Surveys `table`. Labels must be among `known`, where given.
    pub(crate) fn of(
        table: &dyn Table,
        loss: Loss,
        known: Option<&[String]>,
        progress: &mut dyn FnMut(u64, u64) -> Result<(), IngestError>,
    ) -> Result<Self, IngestError> {
        let mut count = 0u64;
        let (mut found, mut groups) = (Words::default(), Groups::default());
        let known = known.map(ClassIndex::new);
        let mut rows = table.rows(Pass::Labels)?;
        while rows.advance()? {
            count += 1;
            progress(rows.bytes_read(), to_u64(rows.label().len()))?;
            if !rows.group().is_empty() {
                groups.see(rows.group()).map_err(|problem| table.refuse(problem))?;
            }
            if loss != Loss::CrossEntropy {
                rows.label_number()?;
                continue;
            }
            let name = class(rows.label()).map_err(|problem| rows.refuse_label(problem))?;
            match &known {
                Some(known) if known.place(name).is_some() => {}
                Some(_) => {
                    return Err(rows.refuse_label(Problem::UnseenLabel(shown(rows.label()))));
                }
                None if found.contains(name) => {}
                None if found.len() == MAX_CLASSES => {
                    return Err(rows.refuse_label(Problem::TooManyClasses { limit: MAX_CLASSES }));
                }
                None => {
                    found.add(name);
                }
            }
        }
        let left_out = rows.left_out().clone();
        let all = count + left_out.rows();
        let bad = &left_out.bad;
        if bad.rows > all / 2 {
            let problems =
                Problems::most(&table.schema().shown, (bad.rows, all), bad.first.clone());
            return Err(IngestError::Several(Box::new(problems)));
        }
        if count == 0 {
            return Err(match left_out {
                LeftOut { incomplete: 0, unlabelled: 0, .. } => table.refuse(Problem::NoRows),
                LeftOut { incomplete: 0, .. } => {
                    table.labels_place().refuse(Problem::NoLabelledRow)
                }
                _ => table.refuse(Problem::NoWholeRow),
            });
        }
        let classes = loss == Loss::CrossEntropy && known.is_none();
        let classes = classes.then(|| Classes::of(found));
        if let Some(Classes { names, .. }) = &classes
            && let [only] = names.as_slice()
        {
            return Err(table.labels_place().refuse(Problem::OneClass(shown(only.as_bytes()))));
        }
        if let Some(classes) = &classes {
            classes.check(count).map_err(|problem| table.labels_place().refuse(problem))?;
        }
        let words = rows.words();
        Ok(Self { rows: count, left_out, classes, groups, words })
    }
}
