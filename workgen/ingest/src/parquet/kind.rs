//! The kinds of values that a column holds, and the values as text.

use crate::dates::{write_day, write_moment};
use half::f16;
use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit, Type},
    schema::types::ColumnDescriptor,
};
use std::io::Write as _;

/// Most digits behind the point.
const MAX_SCALE: i32 = 38;

const BYTES: &str = "bytes (of type string they are text)";
pub(super) const TIMES: &str = "dates or times (write them as numbers)";
const YEARS: &str = "dates outside of the years 0 to 9999";
const OTHER: &str = "values of a type that isn't read";

/// How values are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// True or false, which are 1 and 0.
    Truth,
    Signed,
    Unsigned,
    Real,
    /// Two bytes.
    Half,
    /// Whole numbers with the point so many digits from their end.
    Decimal(usize),
    Text,
    /// Days since 1970-01-01.
    Date,
    /// Units since 1970-01-01.
    Moment {
        per_second: i64,
        is_utc: bool,
    },
}

const MILLIS: i64 = 1000;
const MICROS: i64 = 1_000_000;
const NANOS: i64 = 1_000_000_000;

impl Kind {
    /// The kind of a column; or what it holds that is no number and no word.
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, &'static str> {
        let physical = column.physical_type();
        if physical == Type::INT96 {
            return Err(TIMES);
        }
        let logical = match column.logical_type_ref() {
            None => Self::by_converted(column)?,
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => Some(Kind::Text),
            Some(LogicalType::Decimal(decimal)) => Some(Self::decimal(decimal.scale)?),
            Some(LogicalType::Integer(whole)) if whole.is_signed => Some(Kind::Signed),
            Some(LogicalType::Integer(_)) => Some(Kind::Unsigned),
            Some(LogicalType::Float16) => Some(Kind::Half),
            Some(LogicalType::Date) => Some(Kind::Date),
            Some(LogicalType::Timestamp(moment)) => {
                let per_second = match moment.unit {
                    TimeUnit::MILLIS => MILLIS,
                    TimeUnit::MICROS => MICROS,
                    TimeUnit::NANOS => NANOS,
                };
                Some(Kind::Moment { per_second, is_utc: moment.is_adjusted_to_u_t_c })
            }
            Some(LogicalType::Time(_)) => return Err(TIMES),
            // Of a column that is null in every row.
            Some(LogicalType::Unknown) => None,
            Some(_) => return Err(OTHER),
        };
        let plain = match physical {
            Type::BOOLEAN => Ok(Kind::Truth),
            Type::INT32 | Type::INT64 => Ok(Kind::Signed),
            Type::FLOAT | Type::DOUBLE => Ok(Kind::Real),
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY | Type::INT96 => Err(BYTES),
        };
        let Some(kind) = logical else { return plain };
        let agrees = match kind {
            Kind::Truth | Kind::Real => false,
            Kind::Signed | Kind::Unsigned => matches!(physical, Type::INT32 | Type::INT64),
            Kind::Half => physical == Type::FIXED_LEN_BYTE_ARRAY && column.type_length() == 2,
            Kind::Decimal(_) => !matches!(physical, Type::BOOLEAN | Type::FLOAT | Type::DOUBLE),
            Kind::Text => physical == Type::BYTE_ARRAY,
            Kind::Date => physical == Type::INT32,
            Kind::Moment { .. } => physical == Type::INT64,
        };
        if agrees { Ok(kind) } else { Err(OTHER) }
    }

    /// By what files of before say in place of a logical type.
    fn by_converted(column: &ColumnDescriptor) -> Result<Option<Self>, &'static str> {
        Ok(Some(match column.converted_type() {
            ConvertedType::NONE => return Ok(None),
            ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Kind::Text,
            ConvertedType::DECIMAL => Self::decimal(column.type_scale())?,
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Kind::Unsigned,
            ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64 => Kind::Signed,
            ConvertedType::DATE => Kind::Date,
            // Files of before have moments in UTC alone.
            ConvertedType::TIMESTAMP_MILLIS => Kind::Moment { per_second: MILLIS, is_utc: true },
            ConvertedType::TIMESTAMP_MICROS => Kind::Moment { per_second: MICROS, is_utc: true },
            ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS | ConvertedType::INTERVAL => {
                return Err(TIMES);
            }
            _ => return Err(OTHER),
        }))
    }

    fn decimal(scale: i32) -> Result<Self, &'static str> {
        let scale = Some(scale).filter(|scale| *scale <= MAX_SCALE);
        scale.and_then(|scale| usize::try_from(scale).ok()).map(Kind::Decimal).ok_or(OTHER)
    }
}

/// A value of a column, whose text is the shortest that reads back as it.
pub(super) trait Value {
    /// Appends its text.
    ///
    /// # Errors
    /// What it is, where it can't be that.
    fn write(&self, kind: Kind, into: &mut Vec<u8>) -> Result<(), &'static str>;
}

/// Writing to memory doesn't fail.
macro_rules! text {
    ($into:expr, $value:expr) => {{
        let _ = write!($into, "{}", $value);
        Ok(())
    }};
}

impl Value for bool {
    fn write(&self, _: Kind, into: &mut Vec<u8>) -> Result<(), &'static str> {
        text!(into, u8::from(*self))
    }
}

impl Value for i32 {
    fn write(&self, kind: Kind, into: &mut Vec<u8>) -> Result<(), &'static str> {
        match kind {
            Kind::Unsigned => text!(into, self.cast_unsigned()),
            Kind::Decimal(scale) => decimal(i128::from(*self), scale, into),
            Kind::Date => write_day(i64::from(*self), into).ok_or(YEARS),
            _ => text!(into, self),
        }
    }
}

impl Value for i64 {
    fn write(&self, kind: Kind, into: &mut Vec<u8>) -> Result<(), &'static str> {
        match kind {
            Kind::Unsigned => text!(into, self.cast_unsigned()),
            Kind::Decimal(scale) => decimal(i128::from(*self), scale, into),
            Kind::Moment { per_second, is_utc } => {
                write_moment(*self, per_second, is_utc, into).ok_or(YEARS)
            }
            _ => text!(into, self),
        }
    }
}

impl Value for f32 {
    fn write(&self, _: Kind, into: &mut Vec<u8>) -> Result<(), &'static str> {
        text!(into, self)
    }
}

impl Value for f64 {
    fn write(&self, _: Kind, into: &mut Vec<u8>) -> Result<(), &'static str> {
        text!(into, self)
    }
}

impl Value for [u8] {
    fn write(&self, kind: Kind, into: &mut Vec<u8>) -> Result<(), &'static str> {
        match (kind, self) {
            (Kind::Half, [low, high]) => text!(into, f16::from_le_bytes([*low, *high]).to_f32()),
            (Kind::Decimal(scale), bytes) => decimal(whole(bytes).ok_or(OTHER)?, scale, into),
            (_, text) => {
                into.extend_from_slice(text);
                Ok(())
            }
        }
    }
}

/// A whole number with a sign, its big end first.
fn whole(bytes: &[u8]) -> Option<i128> {
    let (first, _) = bytes.split_first()?;
    if bytes.len() > size_of::<i128>() {
        return None;
    }
    let start = if first.cast_signed() < 0 { -1 } else { 0 };
    Some(bytes.iter().fold(start, |number: i128, byte| (number << 8) | i128::from(*byte)))
}

/// A whole number with a point before its last digits, without zeros at the end.
fn decimal(unscaled: i128, scale: usize, into: &mut Vec<u8>) -> Result<(), &'static str> {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale.saturating_add(1));
    let (before, after) =
        digits.split_at_checked(digits.len().saturating_sub(scale)).ok_or(OTHER)?;
    let after = after.trim_end_matches('0');
    let point = if after.is_empty() { "" } else { "." };
    text!(into, format_args!("{sign}{before}{point}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &(impl Value + ?Sized), kind: Kind) -> String {
        let mut into = Vec::new();
        value.write(kind, &mut into).unwrap();
        String::from_utf8(into).unwrap()
    }

    #[test]
    fn values_are_written_as_a_csv_file_would_have_them() {
        assert_eq!(text(&true, Kind::Truth), "1");
        assert_eq!(text(&-1i32, Kind::Signed), "-1");
        assert_eq!(text(&-1i32, Kind::Unsigned), "4294967295");
        assert_eq!(text(&19_813i32, Kind::Date), "2024-03-31");
        let moment = Kind::Moment { per_second: MILLIS, is_utc: true };
        assert_eq!(text(&1_711_890_300_000i64, moment), "2024-03-31T13:05:00Z");
        assert_eq!(text(&-1i64, Kind::Unsigned), "18446744073709551615");
        assert_eq!(text(&0.1f32, Kind::Real), "0.1");
        assert_eq!(text(&0.1f64, Kind::Real), "0.1");
        assert_eq!(text(&7f64, Kind::Real), "7");
        assert_eq!(text(&f64::NAN, Kind::Real), "NaN");
        assert_eq!(text(&f16::from_f32(1.5).to_le_bytes()[..], Kind::Half), "1.5");
        assert_eq!(text("né".as_bytes(), Kind::Text), "né");
    }

    #[test]
    fn decimals_have_their_point_and_no_zeros_at_the_end() {
        for (unscaled, scale, expected) in
            [(1250, 2, "12.5"), (-5, 2, "-0.05"), (700, 2, "7"), (0, 3, "0"), (42, 0, "42")]
        {
            assert_eq!(text(&unscaled, Kind::Decimal(scale)), expected);
            let bytes = i64::from(unscaled).to_be_bytes();
            assert_eq!(text(&bytes[..], Kind::Decimal(scale)), expected);
        }
        assert_eq!(text(&[0xff][..], Kind::Decimal(0)), "-1");
        assert_eq!([0; 17].write(Kind::Decimal(0), &mut Vec::new()), Err(OTHER));
    }
}
