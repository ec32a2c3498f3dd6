//! IDX: one array a file, big-endian, as MNIST is published.
//!
//! ```text
//! | 0 0 | type | dimensions | each dimension, u32 ... | elements ... |
//! ```
//!
//! Images and labels are two files that belong together by their names.

use super::{Array, Body, Dtype, Encoding, one};
use crate::{
    error::{IngestError, Problem},
    source::{Finder, SourceFile},
};
use sojourn_protocol::spec::SourceSpec;
use std::io::Read;

/// Does a file begin as one of this kind?
pub(super) fn begins(start: &[u8]) -> bool {
    matches!(start, [0, 0, kind, sides, ..] if dtype(*kind).is_some() && *sides > 0)
}

/// The array of `file`, which messages call `name`.
pub(super) fn open(file: SourceFile, name: &str) -> Result<Array, IngestError> {
    let mut stream = file.read()?;
    let mut start = [0; 4];
    stream.read_exact(&mut start).map_err(|error| file.failed(error))?;
    let [0, 0, kind, dimensions] = start else {
        return Err(file.refuse(Problem::BadHeader("doesn't begin as an IDX file")));
    };
    let Some(dtype) = dtype(kind) else {
        return Err(file.refuse(Problem::BadHeader("doesn't begin as an IDX file")));
    };
    let mut shape = Vec::with_capacity(usize::from(dimensions));
    for _ in 0..dimensions {
        let mut side = [0; 4];
        stream.read_exact(&mut side).map_err(|error| file.failed(error))?;
        shape.push(u64::from(u32::from_be_bytes(side)));
    }
    let start = 4 + 4 * u64::from(dimensions);
    let array = Array {
        name: name.to_owned(),
        encoding: Encoding { dtype, is_big_endian: true },
        shape,
        body: Body::At { start, is_last: true },
        file,
    };
    array.check_size(start)?;
    Ok(array)
}

/// The labels of the images of `source`; `None` if there are none and `must` is false.
pub(super) fn labels(
    finder: &mut Finder<'_>,
    source: &SourceSpec,
    must: bool,
) -> Result<Option<Array>, IngestError> {
    if let Some(labels) = &source.labels {
        return open(one(finder, labels)?, "labels").map(Some);
    }
    let Some(sibling) = sibling(&source.data) else {
        let problem = Problem::NoLabelsFile;
        return if must {
            Err(crate::error::Place::of(&source.data).refuse(problem))
        } else {
            Ok(None)
        };
    };
    match one(finder, &sibling) {
        Ok(file) => open(file, "labels").map(Some),
        Err(_) if !must => Ok(None),
        Err(source) => Err(IngestError::NoSibling { labels: sibling, source: Box::new(source) }),
    }
}

/// The name of the labels that belong to these images, by MNIST's convention.
fn sibling(images: &str) -> Option<String> {
    let (folder, name) = match images.rsplit_once('/') {
        Some((folder, name)) => (Some(folder), name),
        None => (None, images),
    };
    let (before, after) = name.rsplit_once("images")?;
    let mut name = format!("{before}labels{after}");
    for dimensions in 2..=9 {
        name = name.replace(&format!("idx{dimensions}"), "idx1");
    }
    Some(folder.map_or_else(|| name.clone(), |folder| format!("{folder}/{name}")))
}

fn dtype(kind: u8) -> Option<Dtype> {
    Some(match kind {
        0x08 => Dtype::U8,
        0x09 => Dtype::I8,
        0x0b => Dtype::I16,
        0x0c => Dtype::I32,
        0x0d => Dtype::F32,
        0x0e => Dtype::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lie_beside_their_images() {
        let of = |images| sibling(images);
        assert_eq!(of("t10k-images-idx3-ubyte.gz").unwrap(), "t10k-labels-idx1-ubyte.gz");
        assert_eq!(of("images/train-images.idx3-ubyte").unwrap(), "images/train-labels.idx1-ubyte");
        assert_eq!(
            of("https://host/m/train-images-idx3-ubyte").unwrap(),
            "https://host/m/train-labels-idx1-ubyte"
        );
        assert_eq!(of("images/pixels.idx"), None);
    }
}
