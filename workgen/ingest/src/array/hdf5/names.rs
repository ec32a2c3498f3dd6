//! The names of all datasets.

use hdf5_reader::{Hdf5File, error::Error, group::Group};

/// Most names that are listed, and most groups in each other.
const MAX_NAMES: usize = 4096;
const MAX_DEPTH: usize = 8;

/// The names, those in groups with the names of these, in the file's order.
pub(super) fn of_datasets(file: &Hdf5File) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    let mut groups = 0;
    add(&file.root_group()?, "", MAX_DEPTH, (&mut names, &mut groups))?;
    Ok(names)
}

/// Adds the names in a group whose own name is before them. A group that is in itself has an end.
fn add(
    group: &Group,
    before: &str,
    depth: usize,
    (names, groups): (&mut Vec<String>, &mut usize),
) -> Result<(), Error> {
    let (inner, datasets) = group.member_names()?;
    names.extend(datasets.iter().map(|name| format!("{before}{name}")));
    names.truncate(MAX_NAMES);
    for name in inner {
        *groups += 1;
        if *groups > MAX_NAMES || depth == 0 {
            break;
        }
        let before = format!("{before}{name}/");
        add(&group.group(&name)?, &before, depth - 1, (&mut *names, &mut *groups))?;
    }
    Ok(())
}
