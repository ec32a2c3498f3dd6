//! The separator of a file's columns: as the job says, or as the header shows.

use super::split::visit;
use sojourn_protocol::spec::Separator;

/// The separator of a file by its first line: the first with which the column `wanted` is there; else the comma where there is
/// one, else what makes the most columns. `record` is the file's first record, where its fields are separated so.
pub(super) fn find(record: impl Fn(Separator) -> Vec<u8>, wanted: Option<&str>) -> Separator {
    let count = |separator: Separator, name: Option<&str>| {
        let mut is_there = name.is_none();
        let columns = visit(&record(separator), separator.byte(), |_, field| {
            let field = std::str::from_utf8(field).unwrap_or_default().trim();
            is_there |= Some(field) == name;
            Ok(())
        });
        columns.ok().filter(|columns| is_there && *columns > 1)
    };
    let by_name = |separator: &Separator| count(*separator, wanted).is_some();
    if let (Some(found), true) = (Separator::ALL.into_iter().find(by_name), wanted.is_some()) {
        return found;
    }
    if count(Separator::Comma, None).is_some() {
        return Separator::Comma;
    }
    let by_columns = Separator::ALL
        .into_iter()
        .filter_map(|separator| Some((count(separator, None)?, separator)));
    by_columns.max_by_key(|(columns, _)| *columns).map_or(Separator::Comma, |(_, found)| found)
}

/// The separator of a file whose first line is a row, in which a comma is a decimal sign: what makes the most columns without it.
pub(super) fn find_beside_commas(record: impl Fn(Separator) -> Vec<u8>) -> Separator {
    let count = |separator: Separator| {
        let columns = visit(&record(separator), separator.byte(), |_, _| Ok(()));
        columns.ok().filter(|columns| *columns > 1)
    };
    let others = Separator::ALL.into_iter().filter(|separator| *separator != Separator::Comma);
    let by_columns = others.filter_map(|separator| Some((count(separator)?, separator)));
    by_columns.max_by_key(|(columns, _)| *columns).map_or(Separator::Comma, |(_, found)| found)
}

/// The separator by which a first line that is a row has as many columns as are wanted; none where no separator makes two of them.
pub(super) fn find_by_width(
    record: impl Fn(Separator) -> Vec<u8>,
    is_wanted: impl Fn(usize) -> bool,
) -> Option<Separator> {
    Separator::ALL.into_iter().find(|separator| {
        let columns = visit(&record(*separator), separator.byte(), |_, _| Ok(()));
        columns.is_ok_and(|columns| columns > 1 && is_wanted(columns))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_that_is_looked_for_decides_before_the_number_of_columns() {
        let find = |header: &str, wanted| find(|_| header.as_bytes().to_vec(), wanted);
        assert_eq!(find("a,b,y", Some("y")), Separator::Comma);
        assert_eq!(find("a;b;y", Some("y")), Separator::Semicolon);
        assert_eq!(find("length, cm;width, cm;\"y\"", Some("y")), Separator::Semicolon);
        assert_eq!(find("a;b;c,y", Some("y")), Separator::Comma, "as it was read before");
        assert_eq!(find("a\tb\ty", Some("z")), Separator::Tab, "no column of that name");
        assert_eq!(find("a|b", None), Separator::Pipe);
        assert_eq!(find("a;b,c", None), Separator::Comma);
        assert_eq!(find("\"a;b", Some("y")), Separator::Comma, "an open quote");
        assert_eq!(find("y", Some("y")), Separator::Comma);
    }
}
