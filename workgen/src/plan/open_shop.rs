//! The plain text form of an open shop, as public benchmark sets have it.
//!
//! ```text
//!   # comments and blank lines may stand anywhere
//!   3 2          jobs and machines
//!   54 34        durations of the first job, by machine
//!   9 15
//!   38 19
//! ```

use super::{Problem, ProblemError, problem::MAX_TOTAL_TIME};
use std::num::IntErrorKind;

/// Why a file isn't valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum OpenShopError {
    #[error("the file has no line `n m` with the numbers of jobs and machines")]
    Empty,
    #[error(
        "line {line}: `{found}` should be two whole numbers above zero: of jobs, and of machines"
    )]
    Size { line: usize, found: String },
    #[error("line {line}: `{found}` is no duration, which is a whole number from 0")]
    Duration { line: usize, found: String },
    #[error(
        "line {line}: `{found}` is too large: all durations together are at most {MAX_TOTAL_TIME}"
    )]
    TooLarge { line: usize, found: String },
    #[error("line {line}: job {job} has {found} durations, the first line counts {machines}")]
    Row { line: usize, job: usize, found: usize, machines: usize },
    #[error("line {line}: a row too many, the first line counts {jobs}")]
    TooMany { line: usize, jobs: usize },
    #[error("the file ends after {found} rows, the first line counts {jobs}")]
    TooFew { found: usize, jobs: usize },
    #[error("the shop can't be planned")]
    Problem(#[from] ProblemError),
}

/// The problem that a text states, with its numbers of jobs and machines.
///
/// # Errors
///
/// The first thing that is wrong, with its line.
pub fn read_open_shop(text: &str) -> Result<(Problem, usize, usize), OpenShopError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().zip(1..).map(|(text, line)| {
        let text = text.split_once('#').map_or(text, |(text, _)| text);
        (text.trim(), line)
    });
    let mut lines = lines.filter(|(text, _)| !text.is_empty());
    let (text, line) = lines.next().ok_or(OpenShopError::Empty)?;
    let (jobs, machines) =
        size(text).ok_or_else(|| OpenShopError::Size { line, found: text.to_owned() })?;
    let mut rows: Vec<Vec<u64>> = Vec::new();
    for (text, line) in lines {
        if rows.len() == jobs {
            return Err(OpenShopError::TooMany { line, jobs });
        }
        let durations = text.split_whitespace().map(|word| {
            let found = || word.to_owned();
            match word.parse::<u64>() {
                Ok(duration) if duration <= MAX_TOTAL_TIME => Ok(duration),
                Err(error) if *error.kind() != IntErrorKind::PosOverflow => {
                    Err(OpenShopError::Duration { line, found: found() })
                }
                _ => Err(OpenShopError::TooLarge { line, found: found() }),
            }
        });
        let row = durations.collect::<Result<Vec<u64>, _>>()?;
        if row.len() != machines {
            let (job, found) = (rows.len() + 1, row.len());
            return Err(OpenShopError::Row { line, job, found, machines });
        }
        rows.push(row);
    }
    if rows.len() < jobs {
        return Err(OpenShopError::TooFew { found: rows.len(), jobs });
    }
    let problem = Problem::of_open_shop(&rows);
    problem.check()?;
    Ok((problem, jobs, machines))
}

fn size(text: &str) -> Option<(usize, usize)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok().filter(|n| *n > 0));
    match (words.next(), words.next(), words.next()) {
        (Some(jobs), Some(machines), None) => jobs.zip(machines),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_comments_is_read() {
        let text =
            "\u{feff}# a shop\r\n\n 3 2 # jobs, machines\r\n54\t34\n# two more\n9 15\n 38 0\n\n";
        let (problem, jobs, machines) = read_open_shop(text).unwrap();
        assert_eq!((jobs, machines), (3, 2));
        assert_eq!(problem, Problem::of_open_shop(&[vec![54, 34], vec![9, 15], vec![38, 0]]));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("# nothing\n", "the file has no line `n m` with the numbers of jobs and machines"),
            (
                "2\n1 2\n",
                "line 1: `2` should be two whole numbers above zero: of jobs, and of machines",
            ),
            (
                "\n0 3\n",
                "line 2: `0 3` should be two whole numbers above zero: of jobs, and of machines",
            ),
            ("1 2\n3 -1\n", "line 2: `-1` is no duration, which is a whole number from 0"),
            ("2 2\n3 1\n# x\n3 1 2\n", "line 4: job 2 has 3 durations, the first line counts 2"),
            ("1 2\n3 1\n2 2", "line 3: a row too many, the first line counts 1"),
            ("3 1\n3\n2\n", "the file ends after 2 rows, the first line counts 3"),
            (
                "1 1\n99999999999999999999\n",
                "line 2: `99999999999999999999` is too large: all durations together are at most 1125899906842624",
            ),
            (
                "1 1\n18446744073709551615\n",
                "line 2: `18446744073709551615` is too large: all durations together are at most 1125899906842624",
            ),
            ("1 2\n1125899906842624 1\n", "the shop can't be planned"),
            ("1 1\n1.5\n", "line 2: `1.5` is no duration, which is a whole number from 0"),
        ] {
            assert_eq!(read_open_shop(text).unwrap_err().to_string(), message);
        }
    }
}
