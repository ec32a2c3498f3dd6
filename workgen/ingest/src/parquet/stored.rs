//! The form of a row in a column by name: a number, bytes, or a list of numbers.
//!
//! Lists are groups of this form, where the inner group may be missing, as writers of before left it out:
//!
//! ```text
//! optional group tokens (LIST) { repeated group list { optional int32 element; } }
//! ```

use super::kind::{Kind, TIMES};
use parquet::{
    basic::{ConvertedType, LogicalType, Repetition, Type as Physical},
    schema::types::{ColumnDescriptor, Type},
};
use sojourn_protocol::dtype::Dtype;

const DECIMALS: &str = "decimals (write them as floats or whole numbers)";
const LISTS: &str = "lists of lists";
const MAPS: &str = "maps";
const NULLS: &str = "nothing but nulls";
const RECORDS: &str = "records (make a column of each of their fields)";
const TEXTS: &str = "lists of strings or bytes";
const UNREAD: &str = "values of a type that isn't read";

/// How values become numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// Whole, and kept as this type. Those without a sign lie in the file as ones with it.
    Whole(Dtype, Sign),
    Half,
    Single,
    Double,
    Truth,
    /// So many bytes.
    Fixed(u32),
    /// Any number of bytes: a sequence.
    Bytes,
}

/// Whether whole numbers of a file may be below 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Signed,
    Unsigned,
}

/// The form of a row in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) number: Number,
    /// The level of a list without elements, if rows are lists; a row with less is null.
    pub(super) empty: Option<i16>,
}

impl Stored {
    /// The form of the column `field`, whose first or only values are `value`; or what it holds that can be no column.
    pub(super) fn of(field: &Type, value: &ColumnDescriptor) -> Result<Self, &'static str> {
        let empty = list(field)?;
        let number = Number::of(value)?;
        match (number, empty) {
            (Number::Bytes, Some(_)) => Err(TEXTS),
            _ => Ok(Self { number, empty }),
        }
    }

    pub(super) const fn dtype(self) -> Dtype {
        match self.number {
            Number::Whole(dtype, _) => dtype,
            Number::Half => Dtype::F16,
            Number::Single => Dtype::F32,
            Number::Double => Dtype::F64,
            Number::Truth => Dtype::Bool,
            Number::Fixed(_) | Number::Bytes => Dtype::U8,
        }
    }

    /// Shape of a row; of a sequence, of an element.
    pub(super) fn shape(self) -> Vec<u32> {
        match self.number {
            Number::Fixed(bytes) => vec![bytes],
            _ => Vec::new(),
        }
    }

    pub(super) fn is_sequence(self) -> bool {
        self.empty.is_some() || self.number == Number::Bytes
    }
}

impl Number {
    fn of(column: &ColumnDescriptor) -> Result<Self, &'static str> {
        let logical = column.logical_type_ref();
        if let Some(LogicalType::Unknown) = logical {
            return Err(NULLS);
        }
        let is_plain = matches!(column.converted_type(), ConvertedType::NONE | ConvertedType::BSON);
        if is_plain && matches!(logical, None | Some(LogicalType::Bson | LogicalType::Uuid)) {
            match column.physical_type() {
                Physical::BYTE_ARRAY => return Ok(Number::Bytes),
                Physical::FIXED_LEN_BYTE_ARRAY => {
                    let bytes = u32::try_from(column.type_length()).ok().filter(|bytes| *bytes > 0);
                    return bytes.map(Number::Fixed).ok_or(UNREAD);
                }
                _ => {}
            }
        }
        Ok(match Kind::of(column)? {
            Kind::Truth => Number::Truth,
            Kind::Signed => Number::Whole(whole(column, Sign::Signed), Sign::Signed),
            Kind::Unsigned => Number::Whole(whole(column, Sign::Unsigned), Sign::Unsigned),
            Kind::Real if column.physical_type() == Physical::FLOAT => Number::Single,
            Kind::Real => Number::Double,
            Kind::Half => Number::Half,
            Kind::Decimal(_) => return Err(DECIMALS),
            Kind::Date | Kind::Moment { .. } => return Err(TIMES),
            Kind::Text => Number::Bytes,
        })
    }
}

/// The type that keeps whole numbers: without a sign, the next larger one with it.
fn whole(column: &ColumnDescriptor, sign: Sign) -> Dtype {
    let bits = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Integer(whole)), _) => whole.bit_width,
        (_, ConvertedType::INT_8 | ConvertedType::UINT_8) => 8,
        (_, ConvertedType::INT_16 | ConvertedType::UINT_16) => 16,
        (_, ConvertedType::INT_32 | ConvertedType::UINT_32) => 32,
        _ if column.physical_type() == Physical::INT32 => 32,
        _ => 64,
    };
    match (bits, sign) {
        (8, Sign::Unsigned) => Dtype::U8,
        (8, Sign::Signed) => Dtype::I8,
        (16, Sign::Signed) => Dtype::I16,
        (16, Sign::Unsigned) | (32, Sign::Signed) => Dtype::I32,
        _ => Dtype::I64,
    }
}

/// The level of a list without elements, where the column is one of lists; none where it is one of values.
fn list(field: &Type) -> Result<Option<i16>, &'static str> {
    if field.is_primitive() {
        return Ok(is(field, Repetition::REPEATED).then_some(0));
    }
    if is_map(field) {
        return Err(MAPS);
    }
    let [elements] = field.get_fields() else { return Err(RECORDS) };
    let is_one = is_list(field) && !is(field, Repetition::REPEATED);
    if !is_one || !is(elements, Repetition::REPEATED) {
        return Err(RECORDS);
    }
    if elements.is_group() {
        // By these names a group is the element itself, and not one around it.
        let is_element =
            elements.name() == "array" || elements.name() == format!("{}_tuple", field.name());
        match elements.get_fields() {
            [element] if element.is_primitive() && !is_element => {
                if is(element, Repetition::REPEATED) {
                    return Err(LISTS);
                }
            }
            [element] if is_list(element) => return Err(LISTS),
            [element] if is_map(element) => return Err(MAPS),
            _ => return Err(RECORDS),
        }
    }
    Ok(Some(i16::from(is(field, Repetition::OPTIONAL))))
}

fn is(field: &Type, repetition: Repetition) -> bool {
    let info = field.get_basic_info();
    info.has_repetition() && info.repetition() == repetition
}

fn is_list(field: &Type) -> bool {
    let info = field.get_basic_info();
    let logical = info.logical_type_ref();
    matches!(logical, Some(LogicalType::List)) || info.converted_type() == ConvertedType::LIST
}

fn is_map(field: &Type) -> bool {
    let info = field.get_basic_info();
    matches!(info.logical_type_ref(), Some(LogicalType::Map))
        || matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
}
