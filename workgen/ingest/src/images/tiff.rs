//! TIFF to pixels: gray or RGB of 8 or 16 bits, plain or packed without loss.

use super::{
    exif::Orientation,
    picture::{Color, Decoded, Picture, check},
};
use crate::{error::Problem, guard::guarded};
use ::tiff::{
    ColorType, TiffError,
    decoder::{Decoder, DecodingResult, Limits},
    tags::Tag,
};
use sojourn_protocol::quantity::to_usize;
use std::io::{Cursor, Read, Seek};

/// Bytes of a number of 16 bits, and of a color with alpha.
const MAX_PIXEL: usize = 8;
/// The kind of a further channel by which colors are multiplied already.
const PREMULTIPLIED: u16 = 1;

/// Has a file's first image 16 bits a channel?
pub(super) fn has_words(file: &mut (impl Read + Seek)) -> bool {
    let bits = || {
        let color = Decoder::new(file).and_then(|mut decoder| decoder.colortype());
        color.ok().and_then(color_of)
    };
    matches!(guarded(bits), Ok(Some((_, 16))))
}

/// Decodes a file's first image. Profiles of colors are left aside.
pub(super) fn decode(file: &[u8]) -> Result<Decoded, Problem> {
    // A damaged file may make the crate panic.
    guarded(|| read(file)).unwrap_or_else(|panic| Err(bad(panic)))
}

fn read(file: &[u8]) -> Result<Decoded, Problem> {
    let mut decoder = Decoder::new(Cursor::new(file)).map_err(problem)?;
    let (width, height) = decoder.dimensions().map_err(problem)?;
    let (width, height) = (to_usize(width), to_usize(height));
    check(width, height)?;
    let mut limits = Limits::default();
    limits.decoding_buffer_size = width.saturating_mul(height).saturating_mul(MAX_PIXEL);
    let mut decoder = decoder.with_limits(limits);
    let found = decoder.colortype().map_err(problem)?;
    let Some((color, _)) = color_of(found) else {
        let of = "of TIFF images gray and RGB of 8 or 16 bits are read";
        return Err(bad(format!("{of}, and this is {found:?}")));
    };
    // Of more channels than a color and its alpha nobody knows what they are.
    let samples: Option<u16> = decoder.find_tag_unsigned(Tag::SamplesPerPixel).map_err(problem)?;
    if samples.is_some_and(|samples| usize::from(samples) != color.channels()) {
        return Err(bad("it has more channels than a color and its alpha".to_owned()));
    }
    let extra: Option<Vec<u16>> =
        decoder.find_tag_unsigned_vec(Tag::ExtraSamples).map_err(problem)?;
    if extra.unwrap_or_default().contains(&PREMULTIPLIED) {
        return Err(bad("its colors are multiplied by their alpha".to_owned()));
    }
    if decoder.image_buffer_layout().map_err(problem)?.planes != 1 {
        return Err(bad("its channels lie in planes of their own".to_owned()));
    }
    let orientation = Orientation::of_exif(file);
    let numbers = width.saturating_mul(height).saturating_mul(color.channels());
    let decoded = match decoder.read_image().map_err(problem)? {
        DecodingResult::U8(pixels) if pixels.len() == numbers => {
            Decoded::Bytes(Picture { width, height, color, pixels, orientation })
        }
        DecodingResult::U16(pixels) if pixels.len() == numbers => {
            Decoded::Words(Picture { width, height, color, pixels, orientation })
        }
        _ => {
            return Err(bad("its numbers aren't whole ones from 0, as many as it says".to_owned()));
        }
    };
    Ok(decoded)
}

/// The channels of a pixel, and the bits of each; none of those that aren't read.
fn color_of(color: ColorType) -> Option<(Color, u8)> {
    let (color, bits) = match color {
        ColorType::Gray(bits) => (Color::Gray, bits),
        ColorType::GrayA(bits) | ColorType::Multiband { bit_depth: bits, num_samples: 2 } => {
            (Color::GrayAlpha, bits)
        }
        ColorType::RGB(bits) => (Color::Rgb, bits),
        ColorType::RGBA(bits) => (Color::RgbAlpha, bits),
        _ => return None,
    };
    matches!(bits, 8 | 16).then_some((color, bits))
}

fn problem(error: TiffError) -> Problem {
    bad(error.to_string())
}

fn bad(reason: String) -> Problem {
    Problem::BadImage { kind: "TIFF", reason }
}
