//! Names out of files in messages.

use crate::number::shown;
use sojourn_protocol::jobfile::nearest;

/// Most names that a message lists.
const MOST: usize = 8;

/// The name that may have been meant by `wanted`: ``did you mean `x`?``
pub(crate) fn meant(wanted: &str, names: &[String]) -> Option<String> {
    let near = nearest(wanted, names.iter().map(String::as_str)).filter(|near| *near != wanted)?;
    Some(format!("did you mean `{}`?", shown(near.as_bytes())))
}

/// The names: all of them, or the first and the last, where a label often is.
pub(crate) fn listed(names: &[String]) -> String {
    let quoted = |name: &String| format!("`{}`", shown(name.as_bytes()));
    let (first, last) = match names {
        [first @ .., last] if names.len() > MOST => {
            (first.iter().take(MOST - 1), Some(format!("..., {}", quoted(last))))
        }
        names => (names.iter().take(MOST), None),
    };
    first.map(quoted).chain(last).collect::<Vec<_>>().join(", ")
}

/// The end of a message on a table's columns: the one that may have been meant by `wanted`, else those that there are.
pub(crate) fn columns(wanted: &str, names: &[String]) -> String {
    match (meant(wanted, names), names) {
        (_, []) => String::new(),
        (_, [only]) => format!("; the only one is `{}`", shown(only.as_bytes())),
        (Some(meant), _) => format!("; {meant}"),
        (None, names) => format!("; there are {} columns: {}", names.len(), listed(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_names_are_listed_as_a_whole_and_of_many_the_first_and_the_last() {
        let names = |count: u32| (0..count).map(|at| format!("c{at}")).collect::<Vec<_>>();
        assert_eq!(listed(&names(2)), "`c0`, `c1`");
        assert!(listed(&names(8)).ends_with("`c6`, `c7`"));
        assert_eq!(listed(&names(100)), "`c0`, `c1`, `c2`, `c3`, `c4`, `c5`, `c6`, ..., `c99`");
        assert!(listed(&["x\n".repeat(10_000)]).len() < 200);
    }
}
