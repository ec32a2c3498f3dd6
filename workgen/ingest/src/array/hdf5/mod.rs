//! HDF5: datasets by name, as h5py, Keras and MATLAB write them. Each that is needed is copied to a temporary file, row after row.
//!
//! ```text
//! file --the crate `hdf5-reader`, within limits--> blocks of rows --copy--> bytes of an array, which are read as those of NPY are
//! ```
//!
//! The crate is told the largest header, chunk and block that it may allocate, follows no links to other files, and its panics are
//! refusals. Memory holds a block of rows and the chunks that it lies in.

mod blocks;
mod elements;
mod names;

use super::{Array, Body, Dtype, no_array};
use crate::{
    bounds::refusal,
    error::{IngestError, Place, Problem},
    guard::guarded,
    source::{Finder, SourceFile},
};
use blocks::Blocks;
use hdf5_reader::{Dataset, Hdf5File, OpenOptions, RangeRequestStorage, error::Error};
use sojourn_protocol::quantity::to_u64;
use std::{
    io::{self, Read as _},
    sync::Arc,
};

/// Most bytes of a row.
const MAX_ROW: usize = 256 << 20;
/// Most bytes of an unpacked chunk.
const MAX_CHUNK: usize = 256 << 20;
/// Most bytes of the unpacked chunks that are kept.
const KEPT_CHUNKS: usize = 64 << 20;
const MAX_HEADER: usize = 16 << 20;
/// Most bytes that compression makes one of. Of a dataset that nobody has written a few bytes say that it has any number of zeros.
const MOST_PACKED: u64 = 1040;
/// Bytes of arrays that are copied whatever the size of the file.
const FEW: u64 = 1 << 20;

/// A file's datasets.
pub(super) struct Datasets {
    file: SourceFile,
    hdf5: Hdf5File,
    names: Vec<String>,
}

impl Datasets {
    /// Reads the names of datasets; a compressed file is unpacked first.
    pub(super) fn open(finder: &mut Finder<'_>, file: SourceFile) -> Result<Self, IngestError> {
        let file = if file.is_packed() { finder.unpack(&file)? } else { file };
        let raw = file.raw()?;
        let read = move |at: u64, length: usize| -> Result<Vec<u8>, Error> {
            let mut bytes = vec![0; length];
            raw.at(at).read_exact(&mut bytes)?;
            Ok(bytes)
        };
        let storage = Arc::new(RangeRequestStorage::new(file.bytes(), read));
        let options = OpenOptions::default()
            .with_max_chunk_bytes(MAX_CHUNK)
            .with_max_read_bytes(MAX_ROW)
            .with_max_object_header_bytes(MAX_HEADER)
            .with_chunk_cache_bytes(KEPT_CHUNKS);
        let opened = told(|| {
            let hdf5 = Hdf5File::from_storage_with_options(storage, options)?;
            let names = names::of_datasets(&hdf5)?;
            Ok((hdf5, names))
        });
        let (hdf5, names) = opened.map_err(|error| failed(file.shown(), None, error))?;
        Ok(Self { file, hdf5, names })
    }

    /// The names of its datasets, those in groups with the names of these: `images/train`.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The array `name`, which `key` of the job asks for, as a copy.
    pub(super) fn array(
        &self,
        finder: &mut Finder<'_>,
        key: &'static str,
        name: &str,
    ) -> Result<Array, IngestError> {
        let (array, dataset) = self.described(key, name)?;
        let mut blocks = Blocks::new(dataset, &array);
        let shown = self.file.shown();
        let copy = finder.copy(shown, &mut blocks, |error| failed(shown, Some(name), error))?;
        let array = Array { file: copy, ..array };
        array.check_size(0)?;
        Ok(array)
    }

    /// The array `name` without its bytes, which `key` of the job asks for.
    pub(super) fn described(
        &self,
        key: &'static str,
        name: &str,
    ) -> Result<(Array, Dataset), IngestError> {
        let name = name.trim_start_matches('/');
        if !self.names.iter().any(|of| of == name) {
            return Err(no_array(&self.file, key, name, &self.names));
        }
        let failed = |error| failed(self.file.shown(), Some(name), error);
        let dataset = told(|| self.hdf5.dataset(name)).map_err(failed)?;
        let place = Place { element: Some(name.to_owned()), ..Place::of(self.file.shown()) };
        let encoding = match elements::encoding(dataset.dtype()) {
            Ok(encoding) => encoding,
            Err(what) => return Err(place.refuse(Problem::Dtype(what.to_owned()))),
        };
        let array = Array {
            file: self.file.clone(),
            name: name.to_owned(),
            encoding,
            shape: dataset.shape().to_vec(),
            body: Body::At { start: 0, is_last: true },
        };
        array.check_dimensions()?;
        let limit = to_u64(MAX_ROW);
        if array.stride() > limit {
            let limit = limit / array.encoding.dtype.bytes().max(1);
            return Err(array.refuse(Problem::WideRow { limit }));
        }
        let (wanted, there) = (array.bytes(), self.file.bytes());
        if wanted > there.saturating_mul(MOST_PACKED).max(FEW) {
            let shape = array.shape.clone();
            return Err(array.refuse(Problem::Size { shape, wanted, there }));
        }
        Ok((array, dataset))
    }
}

/// Calls the crate: its panics are errors.
fn told<T>(run: impl FnOnce() -> Result<T, Error>) -> io::Result<T> {
    match guarded(run) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(of_storage(error)),
        Err(panic) => Err(io::Error::other(panic)),
    }
}

/// The error of the bytes below, as it was, or that of the crate.
fn of_storage(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::Context { source, .. } => of_storage(*source),
        other => io::Error::other(other),
    }
}

/// The error of a file, or of an array of it.
fn failed(shown: &str, name: Option<&str>, error: io::Error) -> IngestError {
    match refusal(error) {
        Ok(refused) => refused,
        Err(error) => {
            let place = Place { element: name.map(str::to_owned), ..Place::of(shown) };
            place.refuse(Problem::Damaged { how: "HDF5", reason: error.to_string() })
        }
    }
}
