//! An image's file as pixels.

use super::{fit::Size, jpeg, picture::Picture, png};
use crate::error::Problem;

const JPEG: &[u8] = b"\xff\xd8\xff";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Does a file begin as an image that is read?
pub(crate) fn is_image(start: &[u8]) -> bool {
    start.starts_with(JPEG) || start.starts_with(PNG)
}

/// The image of a file, upright. It is gray where that is wanted, or where it is gray already, and RGB else.
pub(super) fn decode(file: &[u8], size: Size) -> Result<Picture, Problem> {
    let picture = match file {
        [] => return Err(Problem::Empty),
        _ if file.starts_with(JPEG) => jpeg::decode(file)?,
        _ if file.starts_with(PNG) => png::decode(file)?,
        _ => return Err(Problem::NoImage),
    };
    Ok(picture.plain(size.channels == 1).upright())
}
