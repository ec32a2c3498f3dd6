//! NPZ: a ZIP archive whose members are NPY files, as `numpy.savez` and `savez_compressed` write it.
//!
//! The archive's central directory says where the members are. Each is a stream of its own, inflated as it is read.

use super::{
    Array, Body,
    body::Member,
    no_array,
    npy::{self, NoHeader, Order},
};
use crate::{
    error::{IngestError, Place, Problem},
    source::{Finder, SourceFile},
};
use std::io::BufReader;
use zip::{CompressionMethod, ZipArchive};

/// An archive's arrays.
pub(super) struct Archive {
    file: SourceFile,
    members: Vec<Member>,
}

impl Archive {
    /// Reads the central directory; a compressed archive is unpacked first.
    pub(super) fn open(finder: &mut Finder<'_>, file: SourceFile) -> Result<Self, IngestError> {
        let file = if file.is_packed() { finder.unpack(&file)? } else { file };
        let damaged = |error: zip::result::ZipError| {
            file.refuse(Problem::Damaged { how: "ZIP", reason: error.to_string() })
        };
        let mut archive = ZipArchive::new(BufReader::new(file.raw()?)).map_err(damaged)?;
        let mut members = Vec::new();
        for index in 0..archive.len() {
            let member = archive.by_index_raw(index).map_err(damaged)?;
            let name = member.name().map_err(damaged)?;
            let Some(name) = name.strip_suffix(".npy") else { continue };
            let is_deflated = match member.compression() {
                CompressionMethod::Stored if !member.encrypted() => false,
                CompressionMethod::DEFLATE if !member.encrypted() => true,
                _ => return Err(element(&file, name).refuse(Problem::Compression)),
            };
            members.push(Member {
                name: name.to_owned(),
                start: member.data_start().unwrap_or(0),
                stored: member.compressed_size(),
                bytes: member.size(),
                crc: member.crc32(),
                is_deflated,
            });
        }
        drop(archive);
        Ok(Self { file, members })
    }

    /// The names of its arrays.
    pub(super) fn names(&self) -> Vec<String> {
        self.members.iter().map(|member| member.name.clone()).collect()
    }

    /// The array `name`, which `key` of the job asks for.
    pub(super) fn array(&self, key: &'static str, name: &str) -> Result<Array, IngestError> {
        let Some(member) = self.members.iter().find(|member| member.name == name) else {
            return Err(no_array(&self.file, key, name, &self.names()));
        };
        let place = || element(&self.file, name);
        let header = match npy::read(&mut member.open(&self.file)?) {
            Ok(header) => header,
            Err(NoHeader::Read(error)) => {
                let reason = error.to_string();
                return Err(place().refuse(Problem::Damaged { how: "ZIP", reason }));
            }
            Err(NoHeader::Bad(problem)) => return Err(place().refuse(problem)),
        };
        let array = Array {
            file: self.file.clone(),
            name: name.to_owned(),
            encoding: header.encoding,
            shape: header.shape,
            body: match header.order {
                Order::C => Body::Member { member: member.clone(), skip: header.bytes },
                Order::Fortran => {
                    Body::Columns { skip: header.bytes, member: Some(member.clone()) }
                }
            },
        };
        array.check_size(header.bytes)?;
        Ok(array)
    }
}

fn element(file: &SourceFile, name: &str) -> Place {
    Place { element: Some(name.to_owned()), ..Place::of(file.shown()) }
}
