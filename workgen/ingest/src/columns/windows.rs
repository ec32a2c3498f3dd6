//! Streams of tokens, cut into rows of equal length.

use super::table::{ColumnRows, ColumnTable, Field};
use crate::error::{IngestError, Place, Problem};
use sojourn_protocol::{
    dtype::Dtype,
    quantity::{to_u64, to_usize},
};

/// The name of the column.
const TOKENS: &str = "tokens";

/// Tokens, one behind another, to be read as often as asked.
pub(super) trait TokenSource: Send + Sync {
    /// The type of the tokens.
    fn dtype(&self) -> Dtype;
    /// How many different ones there can be, where that is known.
    fn values(&self) -> Option<u64>;
    /// Bytes that a pass reads, for progress.
    fn bytes(&self) -> u64;
    /// Begins a pass.
    fn tokens(&self) -> Result<Box<dyn Tokens + '_>, IngestError>;
}

/// A pass over tokens.
pub(super) trait Tokens: Send {
    /// Appends some tokens, little-endian; `false` after the last.
    fn append(&mut self, into: &mut Vec<u8>) -> Result<bool, IngestError>;
    /// Where they come from.
    fn place(&self) -> Place;
    /// Bytes read so far.
    fn bytes_read(&self) -> u64;
}

/// Rows of `window + 1` tokens. Each but the first begins with the last token of the one before, so that every token but the
/// first is one to be predicted, once. What is left at the end is no row.
pub(super) struct Windows {
    shown: String,
    source: Box<dyn TokenSource>,
    window: u32,
    fields: [Field; 1],
}

impl Windows {
    pub(super) fn new(shown: &str, source: Box<dyn TokenSource>, window: u32) -> Self {
        let field = Field {
            name: TOKENS.to_owned(),
            dtype: source.dtype(),
            shape: vec![window.saturating_add(1)],
            is_sequence: false,
            values: source.values(),
            classes: Vec::new(),
            windows: true,
        };
        Self { shown: shown.to_owned(), source, window, fields: [field] }
    }
}

impl ColumnTable for Windows {
    fn shown(&self) -> &str {
        &self.shown
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn bytes(&self) -> u64 {
        self.source.bytes()
    }

    fn rows(&self) -> Result<Box<dyn ColumnRows + '_>, IngestError> {
        let token = to_usize(self.source.dtype().bytes());
        Ok(Box::new(WindowRows {
            all: self,
            tokens: self.source.tokens()?,
            step: to_usize(self.window).saturating_mul(token),
            token,
            held: Vec::new(),
            at: None,
            is_begun: false,
        }))
    }
}

/// A pass over windows.
struct WindowRows<'a> {
    all: &'a Windows,
    tokens: Box<dyn Tokens + 'a>,
    /// Bytes from one row to the next.
    step: usize,
    /// Bytes of a token.
    token: usize,
    /// Tokens of this row and behind it.
    held: Vec<u8>,
    /// Where the row begins in them; none before the first.
    at: Option<usize>,
    /// Was there a row?
    is_begun: bool,
}

impl WindowRows<'_> {
    /// The error where all tokens are too few for a row.
    fn too_short(&self) -> IngestError {
        let tokens = to_u64(self.held.len() / self.token.max(1));
        self.all.refuse(Problem::ShortText { tokens, window: self.all.window })
    }
}

impl ColumnRows for WindowRows<'_> {
    fn advance(&mut self) -> Result<bool, IngestError> {
        let begin = self.at.map_or(0, |at| at + self.step);
        let mut at = begin;
        while self.held.len() < at + self.step + self.token {
            if at > 0 {
                // What is behind needs less room than is gone.
                self.held.drain(..at.min(self.held.len()));
                at = 0;
            }
            if !self.tokens.append(&mut self.held)? {
                self.at = None;
                return if self.is_begun { Ok(false) } else { Err(self.too_short()) };
            }
        }
        self.at = Some(at);
        self.is_begun = true;
        Ok(true)
    }

    fn column(&self, _: usize) -> &[u8] {
        let at = self.at.unwrap_or_default();
        self.held.get(at..at + self.step + self.token).unwrap_or_default()
    }

    fn place(&self) -> Place {
        self.tokens.place()
    }

    fn bytes_read(&self) -> u64 {
        self.tokens.bytes_read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes from 0 to `count`, in chunks of one size.
    struct Counting {
        count: u8,
        chunk: u8,
    }

    struct CountingTokens {
        next: u8,
        of: u8,
        chunk: u8,
    }

    impl TokenSource for Counting {
        fn dtype(&self) -> Dtype {
            Dtype::U8
        }

        fn values(&self) -> Option<u64> {
            Some(256)
        }

        fn bytes(&self) -> u64 {
            self.count.into()
        }

        fn tokens(&self) -> Result<Box<dyn Tokens + '_>, IngestError> {
            Ok(Box::new(CountingTokens { next: 0, of: self.count, chunk: self.chunk }))
        }
    }

    impl Tokens for CountingTokens {
        fn append(&mut self, into: &mut Vec<u8>) -> Result<bool, IngestError> {
            let end = self.next.saturating_add(self.chunk).min(self.of);
            into.extend(self.next..end);
            let is_more = self.next < end;
            self.next = end;
            Ok(is_more)
        }

        fn place(&self) -> Place {
            Place::of("t")
        }

        fn bytes_read(&self) -> u64 {
            self.next.into()
        }
    }

    fn cut(count: u8, chunk: u8, window: u32) -> Vec<Vec<u8>> {
        let windows = Windows::new("t", Box::new(Counting { count, chunk }), window);
        let mut rows = windows.rows().unwrap();
        let mut found = Vec::new();
        while rows.advance().unwrap() {
            found.push(rows.column(0).to_vec());
        }
        found
    }

    #[test]
    fn rows_overlap_by_one_token_and_what_is_left_is_no_row() {
        for chunk in [1, 2, 3, 5, 100] {
            let rows = cut(11, chunk, 4);
            assert_eq!(rows, [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]], "chunks of {chunk}");
            assert_eq!(cut(9, chunk, 4).len(), 2);
            assert_eq!(cut(8, chunk, 4).len(), 1);
        }
    }

    #[test]
    fn a_row_of_the_longest_window_is_several_of_a_shorter_one() {
        let long: Vec<Vec<u8>> = cut(33, 7, 8);
        let short: Vec<Vec<u8>> = cut(33, 7, 4);
        let again = long.iter().flat_map(|row| [row[..5].to_vec(), row[4..].to_vec()]);
        assert_eq!(again.collect::<Vec<_>>(), short);
    }
}
