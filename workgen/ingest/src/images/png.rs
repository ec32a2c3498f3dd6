//! PNG to pixels of 8 bits. It is lossless, so any decoder gives the same.

use super::{
    exif::Orientation,
    picture::{Color, Picture, check},
};
use crate::error::Problem;
use ::png::{ColorType, Decoder, DecodingError, Transformations};
use sojourn_protocol::quantity::to_usize;
use std::io::Cursor;

/// Decodes a file: palettes and fewer bits become 8 bits a channel, and of 16 bits the upper 8 are taken. Profiles of colors
/// and gamma are left aside. Of an animation it is the image that programs show that know none.
pub(super) fn decode(file: &[u8]) -> Result<Picture, Problem> {
    let mut decoder = Decoder::new(Cursor::new(file));
    decoder.set_transformations(Transformations::normalize_to_color8());
    // Compressed texts are for people.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(problem)?;
    let info = reader.info();
    let (width, height) = (to_usize(info.width), to_usize(info.height));
    check(width, height)?;
    let orientation =
        info.exif_metadata.as_deref().map_or(Orientation::default(), Orientation::of_exif);
    let bytes = reader.output_buffer_size().ok_or_else(|| bad("it is too large"))?;
    let mut pixels = vec![0; bytes];
    let frame = reader.next_frame(&mut pixels).map_err(problem)?;
    reader.finish().map_err(problem)?;
    let color = match frame.color_type {
        ColorType::Grayscale => Color::Gray,
        ColorType::GrayscaleAlpha => Color::GrayAlpha,
        ColorType::Rgb => Color::Rgb,
        ColorType::Rgba => Color::RgbAlpha,
        ColorType::Indexed => return Err(bad("its palette is missing")),
    };
    let wanted = width.saturating_mul(height).saturating_mul(color.bytes());
    if pixels.len() != wanted {
        return Err(bad("it has another size than it says"));
    }
    Ok(Picture { width, height, color, pixels, orientation })
}

fn problem(error: DecodingError) -> Problem {
    bad(&error.to_string())
}

fn bad(reason: &str) -> Problem {
    Problem::BadImage { kind: "PNG", reason: reason.to_owned() }
}
