//! WebP to pixels. The standard says every bit of both kinds, the lossy one in whole numbers, and the crate has no code of
//! processors.

use super::{
    exif::Orientation,
    picture::{Color, Picture, check},
};
use crate::{error::Problem, guard::guarded};
use image_webp::{DecodingError, WebPDecoder};
use sojourn_protocol::quantity::to_usize;
use std::io::Cursor;

/// The most memory for what a file says beside its pixels.
const MAX_MEMORY: usize = 1 << 28;

/// Does a file begin as WebP?
pub(super) fn begins(start: &[u8]) -> bool {
    start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP")
}

/// Decodes a file; of an animation the first image. Profiles of colors are left aside.
pub(super) fn decode(file: &[u8]) -> Result<Picture<u8>, Problem> {
    // A damaged file may make the crate panic.
    guarded(|| read(file)).unwrap_or_else(|panic| Err(bad(panic)))
}

fn read(file: &[u8]) -> Result<Picture<u8>, Problem> {
    let mut decoder = WebPDecoder::new(Cursor::new(file)).map_err(problem)?;
    decoder.set_memory_limit(MAX_MEMORY);
    let (width, height) = decoder.dimensions();
    let (width, height) = (to_usize(width), to_usize(height));
    check(width, height)?;
    let color = if decoder.has_alpha() { Color::RgbAlpha } else { Color::Rgb };
    let orientation = decoder.exif_metadata().map_err(problem)?;
    let orientation = orientation.as_deref().map_or(Orientation::default(), Orientation::of_exif);
    let bytes = decoder.output_buffer_size().ok_or_else(|| bad("it is too large".to_owned()))?;
    if bytes != width.saturating_mul(height).saturating_mul(color.channels()) {
        return Err(bad("it has another size than it says".to_owned()));
    }
    let mut pixels = vec![0; bytes];
    decoder.read_image(&mut pixels).map_err(problem)?;
    Ok(Picture { width, height, color, pixels, orientation })
}

fn problem(error: DecodingError) -> Problem {
    bad(error.to_string())
}

fn bad(reason: String) -> Problem {
    Problem::BadImage { kind: "WebP", reason }
}
