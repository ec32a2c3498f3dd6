//! The rows of data with one column of tokens, joined into one stream.

use super::{
    table::{ColumnRows, ColumnTable},
    windows::{TokenSource, Tokens},
};
use crate::error::{IngestError, Place, Problem};
use sojourn_protocol::dtype::Dtype;

/// One column of tokens.
pub(super) struct JoinedRows {
    table: Box<dyn ColumnTable>,
    dtype: Dtype,
    values: Option<u64>,
}

impl JoinedRows {
    /// The tokens of a table that has no other column; `hint` says how it could be so.
    pub(super) fn new(
        table: Box<dyn ColumnTable>,
        hint: &'static str,
    ) -> Result<Self, IngestError> {
        let whole = [Dtype::U8, Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64];
        match table.fields() {
            [field]
                if whole.contains(&field.dtype)
                    && field.shape.len() <= usize::from(!field.is_sequence) =>
            {
                let (dtype, values) = (field.dtype, field.values);
                Ok(Self { table, dtype, values })
            }
            _ => Err(table.refuse(Problem::NoTokens(hint))),
        }
    }
}

impl TokenSource for JoinedRows {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn values(&self) -> Option<u64> {
        self.values
    }

    fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    fn tokens(&self) -> Result<Box<dyn Tokens + '_>, IngestError> {
        Ok(Box::new(JoinedTokens(self.table.rows()?)))
    }
}

/// A pass over the tokens.
struct JoinedTokens<'a>(Box<dyn ColumnRows + 'a>);

impl Tokens for JoinedTokens<'_> {
    fn append(&mut self, into: &mut Vec<u8>) -> Result<bool, IngestError> {
        let is_row = self.0.advance()?;
        if is_row {
            into.extend_from_slice(self.0.column(0));
        }
        Ok(is_row)
    }

    fn place(&self) -> Place {
        self.0.place()
    }

    fn bytes_read(&self) -> u64 {
        self.0.bytes_read()
    }
}
