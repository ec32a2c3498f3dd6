//! The names of columns, out of a file's first record.

use super::split::visit;
use crate::{error::Problem, fields::Names, number::number};
use sojourn_protocol::spec::Separator;

/// The fields of a record.
pub(super) fn fields(record: &[u8], separator: Separator) -> Result<Vec<Vec<u8>>, Problem> {
    let mut fields = Vec::new();
    let mut take = |_, field: &[u8]| {
        fields.push(field.to_vec());
        Names::check_count(fields.len())
    };
    visit(record, separator.byte(), &mut take).map_err(|(_, problem)| problem)?;
    Ok(fields)
}

/// Is each of them a number? Then they are a row, most likely.
pub(super) fn are_numbers(fields: &[Vec<u8>]) -> bool {
    fields.iter().all(|field| number(field).is_ok())
}

/// The names in a header. A line break in one, as spreadsheets write it, is a space.
pub(crate) fn of_header(fields: Vec<Vec<u8>>) -> Result<Vec<String>, Problem> {
    let mut names = Names::default();
    for field in fields {
        let name = String::from_utf8(field).map_err(|_| Problem::UnknownEncoding)?;
        let name = if name.contains(['\n', '\r']) {
            name.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
        } else {
            name
        };
        names.push(&name)?;
    }
    Ok(names.finish())
}

/// The positions of so many columns, from 1.
pub(super) fn by_position(columns: usize) -> Vec<String> {
    (1..=columns).map(|position| position.to_string()).collect()
}
