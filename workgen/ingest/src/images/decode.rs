//! An image's file as pixels.

use super::{
    fit::Size,
    jpeg,
    picture::{Decoded, Picture},
    png,
    sample::Sample,
    tiff, webp,
};
use crate::error::Problem;
use std::io::{Read, Seek};

const JPEG: &[u8] = b"\xff\xd8\xff";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
/// TIFF, with the small or the big end of numbers first.
const TIFF: [&[u8]; 2] = [b"II\x2a\0", b"MM\0\x2a"];

/// Does a file begin as an image that is read?
pub(crate) fn is_image(start: &[u8]) -> bool {
    start.starts_with(JPEG) || start.starts_with(PNG) || is_tiff(start) || webp::begins(start)
}

fn is_tiff(start: &[u8]) -> bool {
    TIFF.iter().any(|magic| start.starts_with(magic))
}

/// The image of a file, upright. It is gray where that is wanted, or where it is gray already, and RGB else.
pub(super) fn decode(file: &[u8], size: Size) -> Result<Decoded, Problem> {
    let decoded = match file {
        [] => return Err(Problem::Empty),
        _ if file.starts_with(JPEG) => Decoded::Bytes(jpeg::decode(file)?),
        _ if file.starts_with(PNG) => png::decode(file)?,
        _ if is_tiff(file) => tiff::decode(file)?,
        _ if webp::begins(file) => Decoded::Bytes(webp::decode(file)?),
        _ => return Err(Problem::NoImage),
    };
    Ok(match decoded {
        Decoded::Bytes(picture) => Decoded::Bytes(seen(picture, size)),
        Decoded::Words(picture) => Decoded::Words(seen(picture, size)),
    })
}

fn seen<T: Sample>(picture: Picture<T>, size: Size) -> Picture<T> {
    picture.plain(size.channels == 1).upright()
}

/// Has a file's image two bytes for each number of a pixel, as its header says? A file that can't be read has not.
pub(super) fn has_words(file: &mut (impl Read + Seek)) -> bool {
    let mut start = [0; png::HEADER];
    if file.read_exact(&mut start).is_err() || file.rewind().is_err() {
        return false;
    }
    let is_png = start.starts_with(PNG);
    is_png && png::has_words(&start) || is_tiff(&start) && tiff::has_words(file)
}
