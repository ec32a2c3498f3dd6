//! The types of elements, and elements as the bytes that they are.

use super::super::{Dtype, Encoding};
use hdf5_reader::{ByteOrder, Datatype, H5Type, StringSize, error::Error};
use sojourn_protocol::quantity::SaturatingFrom as _;

/// How elements are written; or what they are, where they can't be read.
pub(super) fn encoding(of: &Datatype) -> Result<Encoding, &'static str> {
    let (dtype, order) = match of {
        Datatype::FixedPoint { size, signed, byte_order } => {
            let dtype = match (size, signed) {
                (1, false) => Dtype::U8,
                (1, true) => Dtype::I8,
                (2, false) => Dtype::U16,
                (2, true) => Dtype::I16,
                (4, false) => Dtype::U32,
                (4, true) => Dtype::I32,
                (8, false) => Dtype::U64,
                (8, true) => Dtype::I64,
                _ => return Err("whole numbers of an unusual size"),
            };
            (dtype, Some(*byte_order))
        }
        Datatype::FloatingPoint { size, byte_order } => {
            let dtype = match size {
                2 => Dtype::F16,
                4 => Dtype::F32,
                8 => Dtype::F64,
                _ => return Err("floats of an unusual size"),
            };
            (dtype, Some(*byte_order))
        }
        // As h5py writes truth values.
        Datatype::Enum { base, members } => {
            let are_truths = members.len() == 2
                && members.iter().any(|member| member.name.eq_ignore_ascii_case("true"));
            match **base {
                Datatype::FixedPoint { size: 1, .. } if are_truths => (Dtype::Bool, None),
                _ => return Err("values of an enumeration"),
            }
        }
        Datatype::String { size: StringSize::Fixed(size), .. } if *size > 0 => {
            (Dtype::Text(*size), None)
        }
        Datatype::String { .. } | Datatype::VarLen { .. } => {
            return Err(
                "texts or lists of different lengths (h5py writes texts of one length by `astype(\"S\")`)",
            );
        }
        Datatype::Compound { .. } => return Err("a structure"),
        _ => return Err("values of a type that isn't read"),
    };
    Ok(Encoding { dtype, is_big_endian: order == Some(ByteOrder::BigEndian) })
}

/// An element of so many bytes, as they are in the file.
#[derive(Debug, Clone)]
pub(super) struct Number<const N: usize>(pub(super) [u8; N]);

impl<const N: usize> H5Type for Number<N> {
    fn hdf5_type() -> Datatype {
        opaque(N)
    }

    fn from_bytes(bytes: &[u8], _: &Datatype) -> Result<Self, Error> {
        <[u8; N]>::try_from(bytes).map(Self).map_err(|_| other_size())
    }

    fn element_size(_: &Datatype) -> usize {
        N
    }
}

/// A text of the bytes that each has.
#[derive(Debug, Clone)]
pub(super) struct FixedText(pub(super) Vec<u8>);

impl H5Type for FixedText {
    fn hdf5_type() -> Datatype {
        opaque(1)
    }

    fn from_bytes(bytes: &[u8], _: &Datatype) -> Result<Self, Error> {
        Ok(Self(bytes.to_vec()))
    }

    fn element_size(of: &Datatype) -> usize {
        match of {
            Datatype::String { size: StringSize::Fixed(size), .. } => usize::saturating_from(*size),
            _ => 1,
        }
    }
}

fn opaque(size: usize) -> Datatype {
    Datatype::Opaque { size: u32::saturating_from(size), tag: String::new() }
}

fn other_size() -> Error {
    Error::InvalidData("an element of another size than its type's".to_owned())
}
