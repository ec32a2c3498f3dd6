//! One line: a label, and pairs of an index and a value.

use crate::{
    error::SparseProblem,
    number::{number, shown},
};
use sojourn_protocol::bounds::MAX_FEATURES;
use std::str;

/// The largest index that is read. A row is made of as many numbers.
pub(super) const MAX_INDEX: usize = MAX_FEATURES - 1;

/// The row of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct SparseRow<'a> {
    pub(super) label: &'a [u8],
    /// The text behind the label.
    pairs: &'a [u8],
}

impl<'a> SparseRow<'a> {
    /// The row; none of a line that is empty or a comment.
    pub(super) fn of(line: &'a [u8]) -> Result<Option<Self>, SparseProblem> {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (label, pairs) = line.split_at(end);
        if label.contains(&b':') {
            return Err(SparseProblem::NoLabel(shown(label)));
        }
        if label.contains(&b',') {
            return Err(SparseProblem::SeveralLabels(shown(label)));
        }
        // `+1` and `1` are one class.
        let is_signed = matches!(label, [b'+', b'0'..=b'9' | b'.', ..]);
        let label = label.get(usize::from(is_signed)..).unwrap_or(label);
        Ok(Some(Self { label, pairs }))
    }

    /// The values of the row, each with its index.
    pub(super) const fn pairs(self) -> Pairs<'a> {
        Pairs { rest: self.pairs, last: None, is_first: true }
    }
}

/// The pairs of a line, whose indices must grow.
pub(super) struct Pairs<'a> {
    rest: &'a [u8],
    last: Option<usize>,
    is_first: bool,
}

impl<'a> Pairs<'a> {
    fn read(&mut self, pair: &'a [u8]) -> Result<Option<(usize, &'a [u8])>, SparseProblem> {
        let colon = pair.iter().position(|byte| *byte == b':').unwrap_or(pair.len());
        let (index, value) = pair.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        if value.is_empty() {
            return Err(SparseProblem::NoPair(shown(pair)));
        }
        if index == b"qid" && std::mem::take(&mut self.is_first) {
            return match whole(value) {
                Some(_) => Ok(None),
                None => Err(SparseProblem::NoPair(shown(pair))),
            };
        }
        self.is_first = false;
        let index = whole(index).ok_or_else(|| SparseProblem::NoIndex(shown(index)))?;
        let index = usize::try_from(index).ok().filter(|index| *index <= MAX_INDEX);
        let index = index
            .ok_or_else(|| SparseProblem::LargeIndex { pair: shown(pair), limit: MAX_INDEX })?;
        match self.last.replace(index) {
            Some(last) if last == index => Err(SparseProblem::Twice(index)),
            Some(last) if last > index => Err(SparseProblem::Order { index, last }),
            _ => Ok(Some((index, value))),
        }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<(usize, &'a [u8]), SparseProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.rest.trim_ascii_start();
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            let (pair, rest) = rest.split_at(end);
            self.rest = rest;
            if pair.is_empty() {
                return None;
            }
            if let Some(read) = self.read(pair).transpose() {
                return Some(read);
            }
        }
    }
}

/// A whole number without a sign. One that is too large to be held is as large as can be.
fn whole(text: &[u8]) -> Option<u64> {
    let are_digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(text).ok().filter(|_| are_digits)?;
    Some(text.parse().unwrap_or(u64::MAX))
}

/// Does a file begin with a row of at least one pair? The last line may be cut off.
pub(crate) fn begins(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    for line in start.split(|byte| *byte == b'\n') {
        let row = match SparseRow::of(line) {
            Ok(None) => continue,
            Ok(Some(row)) if number(row.label).is_ok() => row,
            Ok(Some(_)) | Err(_) => return false,
        };
        let mut pairs = row.pairs();
        let is_first_pair = matches!(pairs.next(), Some(Ok((_, value))) if number(value).is_ok());
        // Of a line that is cut off, the last pair may be too.
        let is_cut = |pairs: &Pairs<'_>| pairs.rest.is_empty() && line.len() == start.len();
        return is_first_pair && pairs.by_ref().all(|pair| pair.is_ok()) || {
            is_first_pair && is_cut(&pairs)
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(String, Vec<(usize, String)>), String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let row = SparseRow::of(line.as_bytes()).map_err(|problem| problem.to_string())?;
        let row = row.ok_or("none")?;
        let pairs = row.pairs().map(|pair| pair.map(|(index, value)| (index, text(value))));
        let pairs = pairs.collect::<Result<_, _>>().map_err(|problem| problem.to_string())?;
        Ok((text(row.label), pairs))
    }

    #[test]
    fn a_line_is_a_label_and_pairs() {
        let pairs = vec![(2, "0.5".to_owned()), (7, "-1e3".to_owned())];
        for line in [
            "-1 2:0.5 7:-1e3",
            "  -1\t2:0.5  7:-1e3 \r",
            "-1 qid:4 2:0.5 7:-1e3 # of 3:4",
            "-1 2:0.5 7:-1e3#",
        ] {
            assert_eq!(read(line), Ok(("-1".to_owned(), pairs.clone())), "{line}");
        }
        assert_eq!(read("+1"), Ok(("1".to_owned(), Vec::new())), "all are zero");
        assert_eq!(read("+"), Ok(("+".to_owned(), Vec::new())));
        assert_eq!(read("  # comment"), Err("none".to_owned()));
    }

    #[test]
    fn a_file_is_known_by_its_first_row() {
        for start in ["1 1:2", "# c\n\n-1 qid:1 3:0.5 9:1 # d\n", "\u{feff}2.5 0:1 3:2\r\n1"] {
            assert!(begins(start.as_bytes()), "{start}");
        }
        for cut in ["1 1:2 17", "1 1:2 17:"] {
            assert!(begins(cut.as_bytes()), "{cut}");
        }
        for other in
            ["a,b\n1,2", "1", "1 2 3", "12:30 is the time", "{\"a\": 1}", "", "1 2:a", "1 1:2 x\n"]
        {
            assert!(!begins(other.as_bytes()), "{other}");
        }
    }
}
