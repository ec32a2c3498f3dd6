//! Scales an image so that it covers a size with its aspect kept, and cuts what is over at either end.
//!
//! The result is what `ImageOps.fit(image, (width, height), Image.Resampling.BILINEAR)` of Pillow computes, byte for byte: a
//! triangle over all pixels that an output pixel covers, so that shrunk images have no moire. The triangle goes first along
//! lines, then along columns. Weights have 22 bits after the point, and sums are whole numbers. Newer versions begin with the
//! columns where that is less work, and differ by 1 at most. Weights are sums, products and quotients of double precision,
//! which IEEE 754 defines to the bit.

use super::{
    picture::Picture,
    sample::{PRECISION, Sample},
};
use sojourn_protocol::quantity::SaturatingFrom as _;

/// A half, which rounds a sum to the nearest number.
const HALF: i32 = 1 << (PRECISION - 1);

/// The size of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// 1 or 3.
    pub(super) channels: usize,
    pub(super) height: usize,
    pub(super) width: usize,
}

impl Size {
    pub(super) fn shape(self) -> Vec<u32> {
        [self.channels, self.height, self.width].map(u32::saturating_from).to_vec()
    }

    /// Numbers of a row.
    pub(super) const fn numbers(self) -> usize {
        self.channels.saturating_mul(self.height).saturating_mul(self.width)
    }
}

/// The pixels that one of the output covers, with their weights.
#[derive(Debug, Clone, PartialEq)]
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

/// The part of a side that is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    from: f32,
    to: f32,
}

/// The image as a row: channel after channel. A gray one is the same in every channel.
pub(super) fn fit<T: Sample>(picture: &Picture<T>, size: Size) -> Vec<T> {
    let Picture { width, height, color, .. } = *picture;
    let (across, down) = spans((width, height), (size.width, size.height));
    let depth = color.channels();
    let lines = taps(height, down, size.height);
    // Lines that no output covers needn't be scaled.
    let top = lines.iter().map(|taps| taps.first).min().unwrap_or(0);
    let bottom = lines.iter().map(|taps| taps.first + taps.weights.len()).max().unwrap_or(0);
    let needed = picture.pixels.chunks_exact(width.saturating_mul(depth).max(1));
    let needed = needed.skip(top).take(bottom.saturating_sub(top));
    let columns = taps(width, across, size.width);
    let mut narrowed = Vec::new();
    for line in needed {
        for taps in &columns {
            let covered = line.chunks_exact(depth).skip(taps.first);
            narrowed.extend(weigh(covered, &taps.weights).into_iter().take(depth));
        }
    }
    let stride = size.width.saturating_mul(depth).max(1);
    let mut scaled: Vec<T> = Vec::new();
    for taps in &lines {
        let covered = narrowed.chunks_exact(stride).skip(taps.first.saturating_sub(top));
        let mut sums = vec![T::Sum::from(HALF); stride];
        for (line, weight) in covered.zip(&taps.weights) {
            for (sum, value) in sums.iter_mut().zip(line) {
                *sum += value.widened() * T::Sum::from(*weight);
            }
        }
        scaled.extend(sums.into_iter().map(T::narrowed));
    }
    let mut row = Vec::with_capacity(size.numbers());
    for channel in 0..size.channels {
        let channel = channel.min(depth.saturating_sub(1));
        row.extend(scaled.iter().skip(channel).step_by(depth.max(1)));
    }
    row
}

/// The weighted sum of up to four channels of pixels.
fn weigh<'a, T: Sample + 'a>(pixels: impl Iterator<Item = &'a [T]>, weights: &[i32]) -> [T; 4] {
    let mut sums = [T::Sum::from(HALF); 4];
    for (pixel, weight) in pixels.zip(weights) {
        for (sum, value) in sums.iter_mut().zip(pixel) {
            *sum += value.widened() * T::Sum::from(*weight);
        }
    }
    sums.map(T::narrowed)
}

/// The parts of an image's width and height that have the aspect of the output, around the centre.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "sides of images are far below 2^24; Pillow keeps the box in single precision"
)]
fn spans((width, height): (usize, usize), to: (usize, usize)) -> (Span, Span) {
    let (whole_width, whole_height) = (width as f64, height as f64);
    let (is, wanted) = (whole_width / whole_height, to.0 as f64 / to.1 as f64);
    let (kept_width, kept_height) = if is == wanted {
        (whole_width, whole_height)
    } else if is >= wanted {
        (wanted * whole_height, whole_height)
    } else {
        (whole_width, whole_width / wanted)
    };
    let span = |whole: f64, kept: f64| {
        let from = (whole - kept) * 0.5;
        Span { from: from as f32, to: (from + kept) as f32 }
    };
    (span(whole_width, kept_width), span(whole_height, kept_height))
}

/// For each of `outputs` pixels along a side of `side` pixels, of which a span is kept: what it covers.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sides of images are far below 2^24; casts saturate"
)]
fn taps(side: usize, span: Span, outputs: usize) -> Vec<Taps> {
    let scale = f64::from(span.to - span.from) / outputs as f64;
    // An enlarged image is interpolated between its neighbors.
    let reach = scale.max(1.0);
    let tap = |output: usize| {
        let center = f64::from(span.from) + (output as f64 + 0.5) * scale;
        let first = ((center - reach + 0.5) as usize).min(side.saturating_sub(1));
        let end = ((center + reach + 0.5) as usize).min(side).max(first + 1);
        let weight = |at: usize| {
            let distance = ((at as f64 - center + 0.5) * (1.0 / reach)).abs();
            (1.0 - distance).max(0.0)
        };
        let weights: Vec<f64> = (first..end).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        let sum = if sum > 0.0 { sum } else { 1.0 };
        let fixed = |weight: &f64| (0.5 + weight / sum * f64::from(1 << PRECISION)) as i32;
        Taps { first, weights: weights.iter().map(fixed).collect() }
    };
    (0..outputs).map(tap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::{exif::Orientation, picture::Color};
    use proptest::prelude::*;
    use sojourn_protocol::digest::Digest;

    /// A picture of a formula, which the digests below were made of too.
    fn picture(width: usize, height: usize, color: Color) -> Picture<u8> {
        let depth = color.channels();
        let mut pixels = Vec::new();
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            let each = (0..depth).map(|c| (x * x * 7 + y * 13 * (x % 5) + c * 50 + x * y) % 256);
            pixels.extend(each.map(|value| u8::try_from(value).unwrap()));
        }
        Picture { width, height, color, pixels, orientation: Orientation::Upright }
    }

    fn size(width: usize, height: usize, channels: usize) -> Size {
        Size { channels, height, width }
    }

    /// By Pillow 11.3 on x86-64: `ImageOps.fit(image, size, Image.Resampling.BILINEAR)`, channel after channel.
    #[test]
    fn the_bytes_are_those_of_pillow() {
        let pillow = [
            ((9, 7), (4, 4), 3, "bf4db5e92d54a58b716eb54b22897996289aa1f370a5a922f4810ccc0edf6d09"),
            (
                (9, 7),
                (16, 16),
                3,
                "89660fb43c1ae736e7c8f2482968adc6f43c53376817a3fe2522827c8d8aad5f",
            ),
            (
                (100, 40),
                (32, 32),
                3,
                "9f79a6def2660bd9fceeebc44857ee8ca07172c16baa40a4958e34270fcf5494",
            ),
            (
                (40, 100),
                (32, 24),
                3,
                "33c416c9ceed2ceee99d791ffca45a7320ceb1b4d1d8205f6666c17b5d3d90a2",
            ),
            (
                (64, 64),
                (64, 64),
                1,
                "d4105a352e4f25f975ce026e4806555a9058f04988b6881406a3cf3e1ca2fb18",
            ),
            ((5, 3), (1, 1), 1, "559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd"),
            ((1, 1), (8, 8), 3, "069539ae1940b0d472d059f41aa240c1985df0a6673c535fc82844ea8f664284"),
            (
                (257, 131),
                (64, 48),
                3,
                "503463c28d3592c14f0ec562c5a7d2634ab5e0830f675e83fee214e8aba223fa",
            ),
            (
                (3, 200),
                (17, 5),
                1,
                "7f1803e7dafe02e9c47c21102eaa7d1d07b4bdb07b3db56f495dd74fbc24e7a5",
            ),
        ];
        for ((width, height), (to_width, to_height), channels, digest) in pillow {
            let color = if channels == 1 { Color::Gray } else { Color::Rgb };
            let row = fit(&picture(width, height, color), size(to_width, to_height, channels));
            assert_eq!(Digest::of(&row).to_string(), digest, "{width} x {height}");
        }
    }

    #[test]
    fn an_image_of_the_wanted_size_stays_as_it_is_and_gray_is_in_every_channel() {
        let gray = picture(5, 4, Color::Gray);
        assert_eq!(fit(&gray, size(5, 4, 1)), gray.pixels);
        assert_eq!(fit(&gray, size(5, 4, 3)), gray.pixels.repeat(3));
        let rgb = picture(5, 4, Color::Rgb);
        let planes: Vec<u8> =
            (0..3).flat_map(|c| rgb.pixels.iter().skip(c).step_by(3).copied()).collect();
        assert_eq!(fit(&rgb, size(5, 4, 3)), planes);
    }

    #[test]
    fn what_is_over_is_cut_at_both_ends() {
        // Black, white and black, side by side.
        let line = [[0u8; 4], [255; 4], [0; 4]].concat();
        let wide = Picture {
            width: 12,
            height: 4,
            color: Color::Gray,
            pixels: line.repeat(4),
            orientation: Orientation::Upright,
        };
        assert_eq!(fit(&wide, size(4, 4, 1)), [255; 16]);
    }

    #[test]
    fn two_bytes_are_scaled_as_one() {
        let bytes = picture(9, 7, Color::Rgb);
        let words = Picture {
            width: 9,
            height: 7,
            color: Color::Rgb,
            pixels: bytes.pixels.iter().map(|value| u16::from(*value) * 257).collect(),
            orientation: Orientation::Upright,
        };
        let size = size(4, 4, 3);
        for (byte, word) in fit(&bytes, size).into_iter().zip(fit(&words, size)) {
            // Each of the two passes rounds by half a step.
            assert!((byte.number() - word.number()).abs() <= 1.1, "{byte} {word}");
        }
    }

    proptest! {
        #[test]
        fn any_size_becomes_any_other_between_the_darkest_and_the_brightest(
            width in 1usize..40, height in 1usize..40, to_width in 1usize..40, to_height in 1usize..40, low in 0u8..100,
        ) {
            let mut picture = picture(width, height, Color::Rgb);
            picture.pixels.iter_mut().for_each(|value| *value = low + *value / 2);
            let size = size(to_width, to_height, 3);
            let row = fit(&picture, size);
            prop_assert_eq!(row.len(), size.numbers());
            let (least, most) = (picture.pixels.iter().min(), picture.pixels.iter().max());
            prop_assert!(row.iter().all(|value| Some(value) >= least && Some(value) <= most));
        }
    }
}
