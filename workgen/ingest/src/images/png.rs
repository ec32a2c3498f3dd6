//! PNG to pixels. It is lossless, so any decoder gives the same.

use super::{
    exif::Orientation,
    picture::{Color, Decoded, Picture, check},
};
use crate::error::Problem;
use ::png::{BitDepth, ColorType, Decoder, DecodingError, Transformations};
use sojourn_protocol::quantity::to_usize;
use std::io::Cursor;

/// Bytes of a file up to the bits of a channel.
pub(super) const HEADER: usize = 25;

/// Are 16 bits those of a channel?
pub(super) fn has_words(header: &[u8; HEADER]) -> bool {
    header.last() == Some(&16)
}

/// Decodes a file: palettes and fewer bits become 8 bits a channel. Profiles of colors and gamma are left aside. Of an animation
/// it is the image that programs show that know none.
pub(super) fn decode(file: &[u8]) -> Result<Decoded, Problem> {
    let mut decoder = Decoder::new(Cursor::new(file));
    decoder.set_transformations(Transformations::EXPAND);
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
    let has_words = frame.bit_depth == BitDepth::Sixteen;
    let each = if has_words { 2 } else { 1 };
    let wanted = width.saturating_mul(height).saturating_mul(color.channels());
    if pixels.len() != wanted.saturating_mul(each) {
        return Err(bad("it has another size than it says"));
    }
    if !has_words {
        return Ok(Decoded::Bytes(Picture { width, height, color, pixels, orientation }));
    }
    let (words, _) = pixels.as_chunks();
    let pixels = words.iter().map(|word| u16::from_be_bytes(*word)).collect();
    Ok(Decoded::Words(Picture { width, height, color, pixels, orientation }))
}

fn problem(error: DecodingError) -> Problem {
    bad(&error.to_string())
}

fn bad(reason: &str) -> Problem {
    Problem::BadImage { kind: "PNG", reason: reason.to_owned() }
}
