//! TOML that people write, read with the place of each value: types, ranges, unknown keys, and all problems at once.
//!
//! Readers walk `toml`'s spanned tables instead of going through `serde`, because a message that a person can act on needs the
//! line of the value, the whole path of the key, its value and the wanted one. Getters return `None` after they have reported a
//! problem, so that reading goes on. No I/O, and no knowledge of any key: the caller names the keys.
//!
//! ```text
//!   text --read--> Table --optional, required--> Node --typed getters--> values
//!                    |                             |
//!                 Section (notes its keys)         '--refuse--> Problems --> every Problem, by line
//! ```
//!
//! | type | is |
//! |---|---|
//! | [`Table`] | a table; its reader says which keys are known |
//! | [`Section`] | a table that is read key by key: keys that nobody asked for are unknown |
//! | [`Node`] | a value with its path and place |
//! | [`Problem`] | one thing that is wrong, with its line |

mod node;
mod place;
mod problems;
mod section;
mod table;
mod words;

pub use node::Node;
pub use place::{line_at, line_of};
pub use problems::Problem;
pub use section::Section;
pub use table::Table;
pub use words::{list, nearest, suggestion};

use problems::Problems;
use toml::de::DeTable;

/// Reads a text by a function of its root, which returns `None` only after it has reported a problem.
///
/// # Errors
/// Every problem that was found, in the order of their lines: at least one, which is `unexplained` where the function reported
/// none.
pub fn read<T>(
    text: &str,
    unexplained: &str,
    read: impl FnOnce(Table<'_>) -> Option<T>,
) -> Result<T, Vec<Problem>> {
    let problems = Problems::new(text);
    let (root, syntax) = DeTable::parse_recoverable(text);
    for error in &syntax {
        let start = error.span().map_or(0, |span| span.start);
        problems.add(start, "", &format!("no valid TOML here: {}", error.message()));
    }
    // Everything after a syntax error is guesswork, so that error alone is reported.
    let value = if syntax.is_empty() { read(Table::root(root.get_ref(), &problems)) } else { None };
    let found = problems.into_found();
    match value {
        Some(value) if found.is_empty() => Ok(value),
        None if found.is_empty() => Err(vec![Problem::new(1, "", unexplained)]),
        _ => Err(found),
    }
}

#[cfg(test)]
mod tests;
