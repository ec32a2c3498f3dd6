//! An image's file as pixels.

use super::{exif::Orientation, fit::Size, jpeg, png};
use crate::error::Problem;

/// Most pixels of an image, which is decoded whole: 8192 x 8192.
pub(super) const MAX_PIXELS: usize = 1 << 26;

const JPEG: &[u8] = b"\xff\xd8\xff";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) color: Color,
    /// Row after row, pixel after pixel.
    pub(super) pixels: Vec<u8>,
    /// How it is yet to be turned.
    pub(super) orientation: Orientation,
}

/// The numbers of a pixel, a byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Color {
    Gray,
    GrayAlpha,
    Rgb,
    RgbAlpha,
}

impl Color {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Color::Gray => 1,
            Color::GrayAlpha => 2,
            Color::Rgb => 3,
            Color::RgbAlpha => 4,
        }
    }
}

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

/// Refuses an image that would take too much memory, before anything is allocated for it.
pub(super) fn check(width: usize, height: usize) -> Result<(), Problem> {
    match width.checked_mul(height) {
        Some(0) => Err(Problem::NoPixels),
        Some(pixels) if pixels <= MAX_PIXELS => Ok(()),
        _ => Err(Problem::LargeImage { width, height, limit: MAX_PIXELS }),
    }
}

impl Picture {
    /// Without alpha, which is dropped: the colors stay what the file says. So do Pillow's `convert`, and with it torchvision
    /// and Keras.
    fn plain(mut self, is_gray: bool) -> Self {
        let to = match self.color {
            Color::Gray | Color::GrayAlpha => Color::Gray,
            Color::Rgb | Color::RgbAlpha if is_gray => Color::Gray,
            Color::Rgb | Color::RgbAlpha => Color::Rgb,
        };
        if to == self.color {
            return self;
        }
        let is_colored = matches!(self.color, Color::Rgb | Color::RgbAlpha);
        let each = self.pixels.chunks_exact(self.color.bytes());
        self.pixels = match to {
            Color::Gray if is_colored => each.map(luma).collect(),
            _ => each.flat_map(|pixel| pixel.iter().take(to.bytes()).copied()).collect(),
        };
        self.color = to;
        self
    }
}

/// The brightness of a color by ITU-R BT.601, in whole numbers, as Pillow has it.
fn luma(pixel: &[u8]) -> u8 {
    let weights = [19_595, 38_470, 7_471];
    let sum: u32 =
        pixel.iter().zip(weights).map(|(value, weight)| u32::from(*value) * weight).sum();
    // The weights sum to 2^16.
    let [_, luma, ..] = (sum + (1 << 15)).to_be_bytes();
    luma
}
