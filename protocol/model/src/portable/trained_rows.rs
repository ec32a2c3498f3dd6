//! A sample of the rows that a model was trained on, by which rows to predict are known again.
//!
//! Of all digests the smallest ones are kept: of two sets of rows the share that both have is then estimated from few of them, as by the K
//! minimum values of Bar-Yossef et al., "Counting distinct elements in a data stream" (2002). Of few rows all are there, and the share
//! is exact.

use super::error::ModelFileError;
use serde::{Deserialize, Serialize};
use sojourn_protocol::{digest::Digest, quantity::to_u64};
use std::collections::BTreeSet;

/// Digests that are kept: 16 kB of a file.
const KEPT: usize = 1024;

/// The rows that a model was trained on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainedRows {
    /// Rows that it was trained on.
    rows: u64,
    /// Rows among them whose digests were taken.
    seen: u64,
    /// The smallest digests, each of 16 digits.
    digests: BTreeSet<RowDigest>,
}

/// The first eight bytes of the SHA-256 of a row's numbers, as little-endian `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct RowDigest(u64);

impl From<RowDigest> for String {
    fn from(digest: RowDigest) -> Self {
        format!("{:016x}", digest.0)
    }
}

impl TryFrom<String> for RowDigest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_one = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digest = u64::from_str_radix(&text, 16).ok().filter(|_| is_one);
        digest.map(Self).ok_or_else(|| format!("`{text}` is no digest of a row"))
    }
}

impl RowDigest {
    fn of(row: &[f32], bytes: &mut Vec<u8>) -> Self {
        bytes.clear();
        // Zero has one way.
        bytes.extend(row.iter().flat_map(|number| (number + 0.0).to_le_bytes()));
        let [a, b, c, d, e, f, g, h, ..] = Digest::of(bytes).0;
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

impl TrainedRows {
    /// So many rows, none of which was seen yet.
    #[must_use]
    pub fn of(rows: u64) -> Self {
        Self { rows, ..Self::default() }
    }

    /// Takes the digest of a row, unscaled.
    pub fn see(&mut self, row: &[f32]) {
        self.seen = self.seen.saturating_add(1);
        let digest = RowDigest::of(row, &mut Vec::new());
        if self.digests.len() < KEPT || self.digests.last().is_some_and(|last| digest < *last) {
            self.digests.insert(digest);
        }
        if self.digests.len() > KEPT {
            self.digests.pop_last();
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, ModelFileError> {
        let rows: Self = serde_json::from_str(text)
            .map_err(|error| ModelFileError::Description(error.to_string()))?;
        let digests = to_u64(rows.digests.len());
        if rows.digests.len() > KEPT || digests > rows.seen || rows.seen > rows.rows {
            let text = format!("{digests} digests of {} rows", rows.seen);
            return Err(ModelFileError::Contradiction(text));
        }
        Ok(rows)
    }

    /// Are the digests of all rows there?
    fn is_whole(&self) -> bool {
        self.seen == self.rows && self.digests.len() < KEPT
    }
}

/// Rows that a model is asked about, beside those that it was trained on.
#[derive(Debug)]
pub struct KnownAgain<'a> {
    trained: &'a TrainedRows,
    /// Rows whose digest would have been kept, and those among them whose digest was.
    compared: u64,
    equal: u64,
    bytes: Vec<u8>,
}

/// How many of the rows are equal to rows that the model was trained on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overlap {
    /// The share of them, above 0.
    pub share: f64,
    /// The number of them, where all rows that it was trained on are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

impl<'a> KnownAgain<'a> {
    /// No rows yet, of a model that was trained on these.
    #[must_use]
    pub const fn among(trained: &'a TrainedRows) -> Self {
        Self { trained, compared: 0, equal: 0, bytes: Vec::new() }
    }

    /// Takes a row, unscaled.
    pub fn add(&mut self, row: &[f32]) {
        let digests = &self.trained.digests;
        let digest = RowDigest::of(row, &mut self.bytes);
        let is_full = digests.len() >= KEPT;
        if !is_full || digests.last().is_some_and(|last| digest <= *last) {
            self.compared = self.compared.saturating_add(1);
            self.equal = self.equal.saturating_add(u64::from(digests.contains(&digest)));
        }
    }

    /// How many were known again; none where no row was.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share of rows")]
    pub fn overlap(&self) -> Option<Overlap> {
        let Self { trained, compared, equal, .. } = self;
        if *equal == 0 {
            return None;
        }
        // Of rows that weren't seen, as many are equal as of the others.
        let seen = trained.seen as f64 / trained.rows.max(1) as f64;
        let share = (*equal as f64 / *compared as f64 / seen).min(1.0);
        Some(Overlap { share, rows: trained.is_whole().then_some(*equal) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trained(rows: u16, seen: u16) -> TrainedRows {
        let mut trained = TrainedRows::of(rows.into());
        (0..seen).for_each(|row| trained.see(&[f32::from(row), 1.0]));
        trained
    }

    fn overlap(trained: &TrainedRows, rows: std::ops::Range<u16>) -> Option<Overlap> {
        let mut known = KnownAgain::among(trained);
        rows.for_each(|row| known.add(&[f32::from(row), 1.0]));
        known.overlap()
    }

    #[test]
    fn few_rows_are_counted() {
        let few = trained(100, 100);
        assert_eq!(overlap(&few, 90..130), Some(Overlap { share: 0.25, rows: Some(10) }));
        assert_eq!(overlap(&few, 100..200), None);
        assert_eq!(overlap(&few, 0..0), None);
        let mut zero = TrainedRows::of(1);
        zero.see(&[-0.0]);
        let mut known = KnownAgain::among(&zero);
        known.add(&[0.0]);
        assert_eq!(known.overlap(), Some(Overlap { share: 1.0, rows: Some(1) }));
    }

    #[test]
    fn the_share_of_many_rows_is_estimated() {
        // Half of the rows that it was trained on were seen; a third of the others are among them.
        let many = trained(40_000, 20_000);
        let Some(Overlap { share, rows: None }) = overlap(&many, 10_000..40_000) else {
            panic!("no overlap");
        };
        assert!((share - 2.0 / 3.0).abs() < 0.12, "{share}");
        assert_eq!(overlap(&many, 50_000..60_000), None);
    }

    #[test]
    fn digests_are_kept_as_text_and_others_are_refused() {
        let many = trained(3000, 3000);
        assert_eq!(many.digests.len(), KEPT);
        let text = serde_json::to_string(&many).unwrap();
        assert!(text.len() < 20_000, "{}", text.len());
        assert_eq!(TrainedRows::parse(&text).unwrap(), many);
        let one = r#"{"rows":1,"seen":1,"digests":["00000000000000ff"]}"#;
        assert_eq!(TrainedRows::parse(one).unwrap().digests.len(), 1);
        for wrong in [
            r#"{"rows":1,"seen":1,"digests":["ff"]}"#,
            r#"{"rows":1,"seen":1,"digests":["+0000000000000ff"]}"#,
            r#"{"rows":1,"seen":0,"digests":["00000000000000ff"]}"#,
            r#"{"rows":1,"seen":2,"digests":[]}"#,
            "{}",
        ] {
            assert!(TrainedRows::parse(wrong).is_err(), "{wrong}");
        }
    }
}
