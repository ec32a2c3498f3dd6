//! JPEG to pixels.
//!
//! The standard leaves rounding to the decoder, and decoders with vector code round as the processor at hand does. So it runs
//! without: the crate is built without that code, and is told so once more, should another crate switch it on. What is left
//! is arithmetic in whole numbers.

use super::{
    exif::Orientation,
    picture::{Color, Picture, check},
};
use crate::error::Problem;
use zune_jpeg::{
    JpegDecoder,
    errors::DecodeErrors,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

/// Sides of the format are 16 bits.
const MAX_SIDE: usize = 65_535;
/// Passes over a progressive image: each takes the time of a whole image, and encoders make about ten.
const MAX_SCANS: usize = 100;

/// Decodes a file, of 8 bits and Huffman's code, baseline or progressive: gray as gray, all else as RGB. CMYK is taken as
/// Adobe writes it, inverted. Profiles of colors are left aside.
pub(super) fn decode(file: &[u8]) -> Result<Picture<u8>, Problem> {
    // Without the strict mode what is missing would be gray.
    let options = DecoderOptions::default()
        .set_use_unsafe(false)
        .set_strict_mode(true)
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE)
        .jpeg_set_max_scans(MAX_SCANS)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    if !has_end(file) {
        return Err(bad("it is cut off: its end is missing"));
    }
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(problem)?;
    let (width, height) = decoder.dimensions().ok_or_else(|| bad("it has no size"))?;
    check(width, height)?;
    let orientation =
        decoder.exif().map_or(Orientation::default(), |exif| Orientation::of_exif(exif));
    let color = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => {
            decoder.set_options(options.jpeg_set_out_colorspace(ColorSpace::Luma));
            Color::Gray
        }
        Some(ColorSpace::YCbCr | ColorSpace::RGB | ColorSpace::CMYK | ColorSpace::YCCK) => {
            Color::Rgb
        }
        _ => return Err(bad("its colors are none of gray, YCbCr, RGB, CMYK and YCCK")),
    };
    let pixels = decoder.decode().map_err(problem)?;
    if pixels.len() != width.saturating_mul(height).saturating_mul(color.channels()) {
        return Err(bad("its colors aren't as many as it says"));
    }
    Ok(Picture { width, height, color, pixels, orientation })
}

/// Is there an end of the image behind the header of its first scan? A decoder doesn't miss one after the last line.
fn has_end(file: &[u8]) -> bool {
    let scan = scan(file).unwrap_or(file);
    scan.windows(2).any(|pair| pair == b"\xff\xd9")
}

/// The bytes after the segments before the first scan; `None` where these can't be followed.
fn scan(file: &[u8]) -> Option<&[u8]> {
    let mut rest = file.strip_prefix(b"\xff\xd8")?;
    loop {
        rest = rest.strip_prefix(b"\xff")?;
        let (marker, tail) = rest.split_first()?;
        match marker {
            // A byte that fills up.
            0xff => continue,
            0xda => return Some(tail),
            _ => {
                let length = tail.first_chunk::<2>().map(|length| u16::from_be_bytes(*length))?;
                rest = tail.get(usize::from(length)..)?;
            }
        }
    }
}

fn problem(error: DecodeErrors) -> Problem {
    bad(&error.to_string())
}

fn bad(reason: &str) -> Problem {
    Problem::BadImage { kind: "JPEG", reason: reason.to_owned() }
}
