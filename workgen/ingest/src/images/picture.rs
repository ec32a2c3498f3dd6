//! Pixels in memory.

use super::{exif::Orientation, sample::Sample};
use crate::error::Problem;

/// Most pixels of an image, which is decoded whole: 8192 x 8192.
pub(super) const MAX_PIXELS: usize = 1 << 26;

/// An image with a byte, or with two, for each number of a pixel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decoded {
    Bytes(Picture<u8>),
    Words(Picture<u16>),
}

impl Decoded {
    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Decoded::Bytes(picture) => size_of_val(picture.pixels.as_slice()),
            Decoded::Words(picture) => size_of_val(picture.pixels.as_slice()),
        }
    }

    /// Is it gray?
    pub(super) fn is_gray(&self) -> bool {
        let (Decoded::Bytes(Picture { color, .. }) | Decoded::Words(Picture { color, .. })) = self;
        *color == Color::Gray
    }

    /// Width and height in pixels.
    pub(super) fn size(&self) -> (usize, usize) {
        match self {
            Decoded::Bytes(Picture { width, height, .. })
            | Decoded::Words(Picture { width, height, .. }) => (*width, *height),
        }
    }
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture<T> {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) color: Color,
    /// Row after row, pixel after pixel.
    pub(super) pixels: Vec<T>,
    /// How it is yet to be turned.
    pub(super) orientation: Orientation,
}

/// The numbers of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Color {
    Gray,
    GrayAlpha,
    Rgb,
    RgbAlpha,
}

impl Color {
    pub(super) const fn channels(self) -> usize {
        match self {
            Color::Gray => 1,
            Color::GrayAlpha => 2,
            Color::Rgb => 3,
            Color::RgbAlpha => 4,
        }
    }
}

/// Refuses an image that would take too much memory, before anything is allocated for it.
pub(super) fn check(width: usize, height: usize) -> Result<(), Problem> {
    match width.checked_mul(height) {
        Some(0) => Err(Problem::NoPixels),
        Some(pixels) if pixels <= MAX_PIXELS => Ok(()),
        _ => Err(Problem::LargeImage { width, height, limit: MAX_PIXELS }),
    }
}

impl<T: Sample> Picture<T> {
    /// Without alpha, which is dropped: the colors stay what the file says. So do Pillow's `convert`, and with it torchvision
    /// and Keras.
    pub(super) fn plain(mut self, is_gray: bool) -> Self {
        let to = match self.color {
            Color::Gray | Color::GrayAlpha => Color::Gray,
            Color::Rgb | Color::RgbAlpha if is_gray => Color::Gray,
            Color::Rgb | Color::RgbAlpha => Color::Rgb,
        };
        if to == self.color {
            return self;
        }
        let is_colored = matches!(self.color, Color::Rgb | Color::RgbAlpha);
        let each = self.pixels.chunks_exact(self.color.channels());
        self.pixels = match to {
            Color::Gray if is_colored => each.map(luma).collect(),
            _ => each.flat_map(|pixel| pixel.iter().take(to.channels()).copied()).collect(),
        };
        self.color = to;
        self
    }

    /// The image as it is to be seen.
    pub(super) fn upright(self) -> Self {
        let turn = self.orientation;
        if turn == Orientation::Upright {
            return self;
        }
        let is = (self.width, self.height);
        let (width, height) = if turn.swaps() { (self.height, self.width) } else { is };
        let channels = self.color.channels();
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            let (x, y) = turn.stored((x, y), is);
            let start = y.saturating_mul(self.width).saturating_add(x).saturating_mul(channels);
            let pixel = self.pixels.get(start..start.saturating_add(channels));
            pixels.extend_from_slice(pixel.unwrap_or_default());
        }
        Self { width, height, pixels, orientation: Orientation::Upright, ..self }
    }
}

/// The brightness of a color by ITU-R BT.601, in whole numbers, as Pillow has it.
fn luma<T: Sample>(pixel: &[T]) -> T {
    T::mixed(pixel, [19_595, 38_470, 7_471])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the order of Exif's numbers, from 1.
    const ORIENTATIONS: [Orientation; 8] = [
        Orientation::Upright,
        Orientation::MirroredHorizontally,
        Orientation::Turned180,
        Orientation::MirroredVertically,
        Orientation::Transposed,
        Orientation::Turned90,
        Orientation::Transversed,
        Orientation::Turned270,
    ];

    /// By Pillow's `ImageOps.exif_transpose`.
    #[test]
    fn each_way_is_that_of_the_tag() {
        // 0 1 2
        // 3 4 5
        let upright: [(&[u8], usize); 8] = [
            (&[0, 1, 2, 3, 4, 5], 3),
            (&[2, 1, 0, 5, 4, 3], 3),
            (&[5, 4, 3, 2, 1, 0], 3),
            (&[3, 4, 5, 0, 1, 2], 3),
            (&[0, 3, 1, 4, 2, 5], 2),
            (&[3, 0, 4, 1, 5, 2], 2),
            (&[5, 2, 4, 1, 3, 0], 2),
            (&[2, 5, 1, 4, 0, 3], 2),
        ];
        for (orientation, (pixels, width)) in ORIENTATIONS.into_iter().zip(upright) {
            let picture = Picture {
                width: 3,
                height: 2,
                color: Color::Gray,
                pixels: (0..6u8).collect(),
                orientation,
            };
            let turned = picture.upright();
            assert_eq!(
                (turned.pixels.as_slice(), turned.width),
                (pixels, width),
                "{orientation:?}"
            );
        }
    }
}
