//! The rows of a column by name, as the bytes of its numbers.

use super::{
    column::{Buffer, Typed, Values},
    stored::{Number, Sign, Stored},
};
use crate::error::Problem;
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use sojourn_protocol::{
    column::MAX_ROW_ELEMENTS,
    dtype::Dtype,
    quantity::{to_u64, to_usize},
};

/// Why a row can't be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Null,
    /// An element of a list.
    NullElement,
    /// The value doesn't fit the type that keeps it.
    Large,
    /// More numbers than a row may have.
    Wide,
    Damaged(&'static str),
}

impl Fault {
    /// The fault as a problem of the column with this name.
    pub(super) fn problem(self, column: &str) -> Problem {
        match self {
            Fault::Null => Problem::NullRow(column.to_owned()),
            Fault::NullElement => Problem::NullElement(column.to_owned()),
            Fault::Large => Problem::LargeWhole,
            Fault::Wide => Problem::WideRow { limit: MAX_ROW_ELEMENTS },
            Fault::Damaged(reason) => {
                Problem::Damaged { how: "Parquet", reason: reason.to_owned() }
            }
        }
    }
}

impl Values {
    /// The numbers of the next row, little-endian. Where rows are lists, one was read.
    pub(super) fn row(&mut self, stored: Stored, into: &mut Vec<u8>) -> Result<(), Fault> {
        into.clear();
        let count = match stored.empty {
            Some(empty) => elements(&self.levels, empty, self.full_level)?,
            None => {
                let level = self.levels.get(self.next).copied();
                self.next = self.next.saturating_add(1);
                if self.full_level > 0 && level != Some(self.full_level) {
                    return Err(Fault::Null);
                }
                1
            }
        };
        let number = stored.number;
        match &mut self.typed {
            Typed::Truth(buffer) => take(buffer, count, number, into),
            Typed::Int(buffer) => take(buffer, count, number, into),
            Typed::Long(buffer) => take(buffer, count, number, into),
            Typed::Single(buffer) => take(buffer, count, number, into),
            Typed::Double(buffer) => take(buffer, count, number, into),
            Typed::Bytes(buffer) => take(buffer, count, number, into),
            Typed::Fixed(buffer) => take(buffer, count, number, into),
        }
    }
}

/// How many elements a list with these levels has, where none of them is null.
fn elements(levels: &[i16], empty: i16, full: i16) -> Result<usize, Fault> {
    match levels {
        [] => Err(Fault::Damaged("a row without levels")),
        [level] if *level < empty => Err(Fault::Null),
        [level] if *level == empty => Ok(0),
        levels if levels.iter().all(|level| *level == full) => Ok(levels.len()),
        levels if levels.iter().all(|level| *level > empty) => Err(Fault::NullElement),
        _ => Err(Fault::Damaged("a list that has elements and none")),
    }
}

fn take<T: DataType>(
    buffer: &mut Buffer<T>,
    count: usize,
    number: Number,
    into: &mut Vec<u8>,
) -> Result<(), Fault>
where
    T::T: Value,
{
    let most = to_usize(MAX_ROW_ELEMENTS);
    if let Number::Fixed(bytes) = number
        && to_u64(count).saturating_mul(bytes.into()) > MAX_ROW_ELEMENTS
    {
        return Err(Fault::Wide);
    }
    if count > most {
        return Err(Fault::Wide);
    }
    for _ in 0..count {
        let value = buffer.next().ok_or(Fault::Damaged("fewer values than rows"))?;
        value.append(number, into)?;
    }
    if number == Number::Bytes && into.len() > most {
        return Err(Fault::Wide);
    }
    Ok(())
}

/// A value of a file.
trait Value {
    /// Appends its bytes.
    fn append(&self, number: Number, into: &mut Vec<u8>) -> Result<(), Fault>;
}

impl Value for bool {
    fn append(&self, _: Number, into: &mut Vec<u8>) -> Result<(), Fault> {
        into.push(u8::from(*self));
        Ok(())
    }
}

impl Value for i32 {
    fn append(&self, number: Number, into: &mut Vec<u8>) -> Result<(), Fault> {
        match number {
            Number::Whole(dtype, Sign::Unsigned) => whole(self.cast_unsigned().into(), dtype, into),
            Number::Whole(dtype, Sign::Signed) => whole((*self).into(), dtype, into),
            _ => Err(Fault::Damaged("whole numbers in place of others")),
        }
    }
}

impl Value for i64 {
    fn append(&self, number: Number, into: &mut Vec<u8>) -> Result<(), Fault> {
        match number {
            // What is below 0 here is above the largest number with a sign.
            Number::Whole(_, Sign::Unsigned) if *self < 0 => Err(Fault::Large),
            Number::Whole(dtype, _) => whole(*self, dtype, into),
            _ => Err(Fault::Damaged("whole numbers in place of others")),
        }
    }
}

impl Value for f32 {
    fn append(&self, _: Number, into: &mut Vec<u8>) -> Result<(), Fault> {
        into.extend(self.to_le_bytes());
        Ok(())
    }
}

impl Value for f64 {
    fn append(&self, _: Number, into: &mut Vec<u8>) -> Result<(), Fault> {
        into.extend(self.to_le_bytes());
        Ok(())
    }
}

impl Value for ByteArray {
    fn append(&self, _: Number, into: &mut Vec<u8>) -> Result<(), Fault> {
        into.extend_from_slice(self.data());
        Ok(())
    }
}

impl Value for FixedLenByteArray {
    fn append(&self, number: Number, into: &mut Vec<u8>) -> Result<(), Fault> {
        let bytes = self.data();
        let wanted = match number {
            Number::Fixed(bytes) => bytes,
            _ => 2,
        };
        if to_u64(bytes.len()) != u64::from(wanted) {
            return Err(Fault::Damaged("a value of another length"));
        }
        into.extend_from_slice(bytes);
        Ok(())
    }
}

/// Appends a whole number as `dtype` keeps it.
fn whole(number: i64, dtype: Dtype, into: &mut Vec<u8>) -> Result<(), Fault> {
    const OTHER: Fault = Fault::Large;
    match dtype {
        Dtype::U8 => into.extend(u8::try_from(number).map_err(|_| OTHER)?.to_le_bytes()),
        Dtype::I8 => into.extend(i8::try_from(number).map_err(|_| OTHER)?.to_le_bytes()),
        Dtype::I16 => into.extend(i16::try_from(number).map_err(|_| OTHER)?.to_le_bytes()),
        Dtype::I32 => into.extend(i32::try_from(number).map_err(|_| OTHER)?.to_le_bytes()),
        _ => into.extend(number.to_le_bytes()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_a_list_say_its_elements() {
        // optional list of optional elements: 0 is no list, 1 an empty one, 2 a null in it, 3 a value.
        assert_eq!(elements(&[3, 3], 1, 3), Ok(2));
        assert_eq!(elements(&[1], 1, 3), Ok(0));
        assert_eq!(elements(&[0], 1, 3), Err(Fault::Null));
        assert_eq!(elements(&[3, 2], 1, 3), Err(Fault::NullElement));
        assert_eq!(elements(&[2], 1, 3), Err(Fault::NullElement));
        assert!(matches!(elements(&[3, 1], 1, 3), Err(Fault::Damaged(_))));
        assert!(matches!(elements(&[], 1, 3), Err(Fault::Damaged(_))));
        // `repeated int32 a`
        assert_eq!((elements(&[0], 0, 1), elements(&[1, 1], 0, 1)), (Ok(0), Ok(2)));
    }

    #[test]
    fn numbers_without_a_sign_are_kept_by_the_next_larger_type() {
        let of = |value: &dyn Value, dtype, sign| {
            let mut into = Vec::new();
            value.append(Number::Whole(dtype, sign), &mut into).map(|()| into)
        };
        let unsigned = |value: i32, dtype| of(&value, dtype, Sign::Unsigned);
        assert_eq!(unsigned(255, Dtype::U8), Ok(vec![255]));
        assert_eq!(unsigned(65535, Dtype::I32), Ok(vec![255, 255, 0, 0]));
        assert_eq!(unsigned(-1, Dtype::I64), Ok(vec![255, 255, 255, 255, 0, 0, 0, 0]));
        assert_eq!(of(&-1i64, Dtype::I64, Sign::Unsigned), Err(Fault::Large));
        assert_eq!(of(&300i32, Dtype::I8, Sign::Signed), Err(Fault::Large));
        assert_eq!(of(&-2i32, Dtype::I16, Sign::Signed), Ok(vec![254, 255]));
    }
}
