//! NPY: a NumPy array in a file of its own, or in an NPZ archive.
//!
//! ```text
//! | \x93NUMPY | major minor | header's bytes (u16; u32 from version 2) | header | elements ... |
//! header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
//! ```
//!
//! (NEP 1, and `numpy.lib.format`.) Arrays in either order are read. The crate `npyz` 0.9 allocates as many bytes as a header claims, up to 4 GiB, before it reads them.

use super::{Array, Body, Dtype, Encoding};
use crate::{
    error::{IngestError, Problem},
    source::SourceFile,
};
use std::io::{self, Read};

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header that is read; numpy's own limit is 10,000 characters.
const MAX_HEADER: u64 = 1 << 20;

/// The contents of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) encoding: Encoding,
    pub(super) shape: Vec<u64>,
    pub(super) order: Order,
    /// Bytes before the first element.
    pub(super) bytes: u64,
}

/// The order of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The last dimension changes fastest: row after row.
    C,
    /// The first dimension changes fastest: column after column.
    Fortran,
}

/// Why there is no header.
#[derive(Debug)]
pub(super) enum NoHeader {
    Read(io::Error),
    Bad(Problem),
}

/// The array of a file of its own; messages call it `name`.
pub(super) fn open(file: SourceFile, name: &str) -> Result<Array, IngestError> {
    let header = match read(&mut file.read()?) {
        Ok(header) => header,
        Err(NoHeader::Read(error)) => return Err(file.failed(error)),
        Err(NoHeader::Bad(problem)) => return Err(file.refuse(problem)),
    };
    let array = Array {
        name: name.to_owned(),
        encoding: header.encoding,
        shape: header.shape,
        body: match header.order {
            Order::C => Body::At { start: header.bytes, is_last: true },
            Order::Fortran => Body::Columns { skip: header.bytes, member: None },
        },
        file,
    };
    array.check_size(header.bytes)?;
    Ok(array)
}

/// Reads the header.
pub(super) fn read(stream: &mut dyn Read) -> Result<Header, NoHeader> {
    let mut start = [0; 8];
    stream.read_exact(&mut start).map_err(NoHeader::Read)?;
    let [magic @ .., major, _] = &start;
    if magic != MAGIC {
        return Err(NoHeader::Bad(Problem::BadHeader("doesn't begin as an NPY file")));
    }
    let (length, prefix) = match *major {
        1 => {
            let mut length = [0; 2];
            stream.read_exact(&mut length).map_err(NoHeader::Read)?;
            (u64::from(u16::from_le_bytes(length)), 10)
        }
        _ => {
            let mut length = [0; 4];
            stream.read_exact(&mut length).map_err(NoHeader::Read)?;
            (u64::from(u32::from_le_bytes(length)), 12)
        }
    };
    if length > MAX_HEADER {
        return Err(NoHeader::Bad(Problem::BadHeader("has a header of over 1 MiB")));
    }
    let mut text = Vec::new();
    stream.take(length).read_to_end(&mut text).map_err(NoHeader::Read)?;
    let text = String::from_utf8_lossy(&text);
    let (encoding, shape, order) = parse(&text).map_err(NoHeader::Bad)?;
    Ok(Header { encoding, shape, order, bytes: prefix + length })
}

/// Parses the header, which is a Python dictionary.
fn parse(text: &str) -> Result<(Encoding, Vec<u64>, Order), Problem> {
    let value = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}':"))?;
        Some(rest.trim_start())
    };
    let bad = || Problem::BadHeader("has a header that isn't NumPy's");
    let descr = value("descr").ok_or_else(bad)?;
    let encoding = match descr.strip_prefix('\'').and_then(|rest| rest.split_once('\'')) {
        Some(("|O" | "O", _)) => return Err(Problem::Objects),
        Some((word, _)) => parse_dtype(word)
            .ok_or_else(|| Problem::Dtype(crate::number::shown(word.as_bytes())))?,
        None if descr.starts_with('[') => return Err(Problem::Dtype("a structure".to_owned())),
        None => return Err(bad()),
    };
    let shape = value("shape").and_then(|rest| rest.strip_prefix('('));
    let (shape, _) = shape.and_then(|rest| rest.split_once(')')).ok_or_else(bad)?;
    let sides = shape.split(',').map(str::trim).filter(|side| !side.is_empty());
    let shape = sides.map(str::parse).collect::<Result<Vec<u64>, _>>().map_err(|_| bad())?;
    // An array that is long in one dimension alone is the same in either order.
    let is_line = shape.iter().filter(|side| **side != 1).count() < 2;
    match value("fortran_order") {
        Some(order) if order.starts_with("False") => Ok((encoding, shape, Order::C)),
        Some(order) if order.starts_with("True") && is_line => Ok((encoding, shape, Order::C)),
        Some(order) if order.starts_with("True") => Ok((encoding, shape, Order::Fortran)),
        _ => Err(bad()),
    }
}

fn parse_dtype(word: &str) -> Option<Encoding> {
    let (order, kind) = match word.strip_prefix(['<', '>', '=', '|']) {
        Some(kind) => (word.chars().next(), kind),
        None => (None, word),
    };
    let dtype = match kind {
        "b1" => Dtype::Bool,
        "u1" => Dtype::U8,
        "i1" => Dtype::I8,
        "u2" => Dtype::U16,
        "i2" => Dtype::I16,
        "u4" => Dtype::U32,
        "i4" => Dtype::I32,
        "u8" => Dtype::U64,
        "i8" => Dtype::I64,
        "f2" => Dtype::F16,
        "f4" => Dtype::F32,
        "f8" => Dtype::F64,
        _ => {
            let size = |prefix| kind.strip_prefix(prefix)?.parse().ok().filter(|size| *size > 0);
            match (size('S'), size('U')) {
                (Some(bytes), _) => Dtype::Text(bytes),
                (None, Some(characters)) => Dtype::Utf32(characters),
                (None, None) => return None,
            }
        }
    };
    Some(Encoding { dtype, is_big_endian: order == Some('>') })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(header: &str) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        file.extend(header.bytes());
        file
    }

    fn said(header: &str) -> String {
        match read(&mut file(header).as_slice()) {
            Err(NoHeader::Bad(problem)) => problem.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn headers_of_either_version_are_read() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 28, 28), }   \n";
        let float = Encoding { dtype: Dtype::F32, is_big_endian: false };
        let header = read(&mut file(text).as_slice()).unwrap();
        let bytes = u64::try_from(file(text).len()).unwrap();
        assert_eq!(
            header,
            Header { encoding: float, shape: vec![3, 28, 28], order: Order::C, bytes }
        );
        let mut second = b"\x93NUMPY\x02\x00".to_vec();
        second.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        second.extend(text.bytes());
        let header = read(&mut second.as_slice()).unwrap();
        let bytes = bytes + 2;
        assert_eq!(
            header,
            Header { encoding: float, shape: vec![3, 28, 28], order: Order::C, bytes }
        );
        let flat = read(&mut file("{'descr':'>i8','fortran_order':True,'shape':(9,)}").as_slice());
        let flat = flat.unwrap();
        assert_eq!((flat.shape.as_slice(), flat.order), (&[9][..], Order::C));
        let order = |shape: &str| {
            let text = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': {shape}, }}");
            read(&mut file(&text).as_slice()).unwrap().order
        };
        assert_eq!(order("(3, 2)"), Order::Fortran);
        assert_eq!([order("(9, 1)"), order("(1, 9)")], [Order::C, Order::C]);
    }

    #[test]
    fn unreadable_headers_are_reported() {
        assert_eq!(
            said("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"),
            "its elements are Python objects, no numbers; save words as `x.astype(str)`, numbers as `x.astype(float)`, \
             and a table as `df.to_parquet(...)`"
        );
        assert_eq!(
            said("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }"),
            "its elements are a structure, no numbers"
        );
        assert_eq!(said("{}"), "has a header that isn't NumPy's");
        assert_eq!(
            said("{'descr': '<f4', 'fortran_order': False, 'shape': (3, -1), }"),
            "has a header that isn't NumPy's"
        );
        assert!(matches!(read(&mut &b"\x93NUM"[..]), Err(NoHeader::Read(_))));
        assert!(matches!(read(&mut &b"anything"[..]), Err(NoHeader::Bad(_))));
    }

    proptest! {
        #[test]
        fn no_header_is_left_without_an_answer(text in "['{}(),:a-z0-9<>| ]{0,80}") {
            let _ = read(&mut file(&text).as_slice());
        }
    }
}
