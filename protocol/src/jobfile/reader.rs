//! Tables of a job file, by the vocabulary of its keys.

use super::vocabulary;
use crate::{quantity::Micros, time::Millis};
use sojourn_forms::{Node, Table, list};

/// Values of a job file.
pub(super) trait JobFileNode<'a> {
    /// The table, with the keys that the vocabulary has for its path.
    fn section(&self) -> Option<Table<'a>>;
    /// The table, with these keys.
    fn section_of(&self, known: &[&str]) -> Option<Table<'a>>;
    /// A length of time such as `"30s"`.
    fn duration(&self) -> Option<Micros>;
}

impl<'a> JobFileNode<'a> for Node<'a> {
    fn section(&self) -> Option<Table<'a>> {
        self.section_of(vocabulary::keys(self.path()))
    }

    fn section_of(&self, known: &[&str]) -> Option<Table<'a>> {
        let table = self.table()?;
        table.refuse_unknown(known, "key", vocabulary::elsewhere);
        Some(table)
    }

    fn duration(&self) -> Option<Micros> {
        self.parsed::<Millis>("a length of time such as `\"30s\"`").map(Micros::from)
    }
}

/// Of a table whose keys depend on its policy: refuses the keys of other policies.
pub(super) fn refuse_others(section: &Table<'_>, policy: &str, own: &[&str]) -> Option<()> {
    let others = vocabulary::keys(section.path())
        .iter()
        .filter(|key| **key != "policy" && !own.contains(key));
    let mut mine = Some(());
    for node in others.filter_map(|key| section.optional(key)) {
        mine = node.refuse(match own {
            [] => format!("is no key of `{policy}`, which has no parameters"),
            own => format!("is no key of `{policy}`, which has {}", list(own)),
        });
    }
    mine
}

/// The value of a key that may be left out; the default where it is.
pub(super) fn optional<'a, T>(
    section: &Table<'a>,
    key: &str,
    default: T,
    read: impl FnOnce(&Node<'a>) -> Option<T>,
) -> Option<T> {
    section.optional(key).map_or(Some(default), |node| read(&node))
}

/// The value of a key that may be left out; none where it is.
pub(super) fn if_given<'a, T>(
    section: &Table<'a>,
    key: &str,
    read: impl FnOnce(&Node<'a>) -> Option<T>,
) -> Option<Option<T>> {
    optional(section, key, None, |node| read(node).map(Some))
}
