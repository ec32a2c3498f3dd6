//! The table of a file's cloud: its provider reads it, and a file has one.

use crate::clouds::shown;
use sojourn_clouds::{Provider, Providers, SiteDefaults};
use sojourn_forms::Section;
use std::path::PathBuf;
use toml::{Table, Value};

/// The table of a file's cloud, which the cloud's provider reads.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudTable {
    /// The name of the table.
    pub name: String,
    /// The table as it is in the file.
    pub table: Table,
    /// The folder from which paths in it are taken.
    pub folder: PathBuf,
}

/// The providers whose table is in the file. Their keys are known to them alone.
pub(super) fn present<'p>(root: &Section<'_>, providers: Providers<'p>) -> Vec<&'p dyn Provider> {
    let has_table = |provider: &&dyn Provider| {
        let table = root.section(provider.table());
        table.is_read_elsewhere();
        table.is_there()
    };
    providers.iter().copied().filter(has_table).collect()
}

/// The values that the file may leave out, where its cloud makes the server's machine.
pub(super) fn defaults(present: &[&dyn Provider], file: &Table) -> Option<SiteDefaults> {
    let provider = present.first()?;
    provider.site_defaults(file.get(provider.table())?.as_table()?)
}

/// The name of the table, which may be that of a cloud without which the program was built; none only after a problem was reported.
/// All other keys of the file have to be asked for before.
pub(super) fn name(
    root: &Section<'_>,
    present: &[&dyn Provider],
    providers: Providers<'_>,
) -> Option<String> {
    if let [first, others @ ..] = present {
        for other in others {
            let first = first.table();
            root.refuse(
                other.table(),
                format!("is there beside `{first}`; a file has the table of one cloud"),
            );
        }
        return Some(first.table().to_owned());
    }
    if let Some(table) = root.foreign_table() {
        return Some(table.to_owned());
    }
    match providers {
        [] => root
            .refuse("", "there is no table of a cloud; this program was built without any cloud"),
        [one] => {
            let (table, contents) = (one.table(), one.contents());
            root.refuse(table, format!("is missing: a table `[{table}]` with {contents}"));
        }
        [first, ..] => {
            let all: Vec<String> = providers.iter().map(|provider| shown(*provider)).collect();
            let all = all.join(", ");
            root.refuse(
                first.table(),
                format!("is missing: the table of one cloud is wanted, of {all}"),
            );
        }
    }
    None
}

/// The table of this name, out of the file.
pub(super) fn table(mut file: Table, name: &str) -> Option<Table> {
    match file.remove(name) {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    }
}
