//! A table as Parquet: one row group, in which every column may have missing values.

use super::table::{Column, Table, Values};
use parquet::{
    basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{Type, TypePtr},
};
use sojourn_protocol::quantity::SaturatingFrom as _;
use std::{io::Write, sync::Arc};

/// Writes the table. Times are milliseconds in UTC.
pub(in super::super) fn write(table: &Table, to: impl Write + Send) -> Result<(), ParquetError> {
    let columns = table.columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(table.name).with_fields(columns).build()?;
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut file = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties))?;
    if table.rows() > 0 {
        let mut group = file.next_row_group()?;
        for column in &table.columns {
            write_column(&mut group, &column.values)?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// The type of a column.
fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match &column.values {
        Values::Whole(_) => (PhysicalType::INT64, None),
        Values::Real(_) => (PhysicalType::DOUBLE, None),
        Values::Switch(_) => (PhysicalType::BOOLEAN, None),
        Values::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Time(_) => {
            (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS)))
        }
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Ok(Arc::new(field.build()?))
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &Values,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than the table".into());
    let column = group.next_column()?.ok_or_else(missing)?;
    match values {
        Values::Whole(values) => put::<Int64Type, _>(column, values, |value| *value),
        Values::Real(values) => put::<DoubleType, _>(column, values, |value| *value),
        Values::Switch(values) => put::<BoolType, _>(column, values, |value| *value),
        Values::Text(values) => {
            put::<ByteArrayType, _>(column, values, |value| ByteArray::from(value.as_str()))
        }
        Values::Time(values) => {
            put::<Int64Type, _>(column, values, |value| i64::saturating_from(value.0))
        }
    }
}

/// Writes the values that there are, and for each row whether it has one: the definition level 1.
fn put<T: DataType, V>(
    mut column: SerializedColumnWriter<'_>,
    values: &[Option<V>],
    convert: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<T::T> = values.iter().flatten().map(convert).collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}
