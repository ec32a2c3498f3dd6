//! How an image is to be turned to be seen upright: Exif's tag `Orientation`.
//!
//! The crate `kamadak-exif` 0.6 would save 15 lines of code, but needs a copy of the data and parses all of its tags.

/// One of the eight ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Orientation {
    #[default]
    Upright,
    MirroredHorizontally,
    Turned180,
    MirroredVertically,
    Transposed,
    /// To be turned by 90 degrees to the right.
    Turned90,
    Transversed,
    Turned270,
}

const ORIENTATION: u16 = 0x0112;
const SHORT: u16 = 3;
/// Bytes of an entry of a directory.
const ENTRY: usize = 12;

impl Orientation {
    /// The orientation that this data says, which begins as a file of TIFF; upright where it says nothing that can be read.
    pub(super) fn of_exif(exif: &[u8]) -> Self {
        match Self::number(exif) {
            Some(2) => Self::MirroredHorizontally,
            Some(3) => Self::Turned180,
            Some(4) => Self::MirroredVertically,
            Some(5) => Self::Transposed,
            Some(6) => Self::Turned90,
            Some(7) => Self::Transversed,
            Some(8) => Self::Turned270,
            _ => Self::Upright,
        }
    }

    /// The number of the first directory's entry.
    fn number(exif: &[u8]) -> Option<u16> {
        let is_big = match exif.get(..4)? {
            b"MM\0\x2a" => true,
            b"II\x2a\0" => false,
            _ => return None,
        };
        let short = |at: &[u8]| {
            let bytes = *at.first_chunk::<2>()?;
            Some(if is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
        };
        let bytes = *exif.get(4..)?.first_chunk::<4>()?;
        let start = if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        let directory = exif.get(usize::try_from(start).ok()?..)?;
        let count = short(directory)?;
        let mut entries = directory.get(2..)?.chunks_exact(ENTRY).take(usize::from(count));
        let entry = entries.find(|entry| short(entry) == Some(ORIENTATION))?;
        // Tag, type, count, and a value that fits in four bytes.
        (short(entry.get(2..)?)? == SHORT).then(|| short(entry.get(8..)?)).flatten()
    }

    /// Are width and height to be swapped?
    pub(super) const fn swaps(self) -> bool {
        match self {
            Self::Transposed | Self::Turned90 | Self::Transversed | Self::Turned270 => true,
            Self::Upright
            | Self::MirroredHorizontally
            | Self::Turned180
            | Self::MirroredVertically => false,
        }
    }

    /// Where the pixel at column `x` and line `y` of the upright image lies in the stored one, which has this width and height.
    pub(super) const fn stored(
        self,
        (x, y): (usize, usize),
        (width, height): (usize, usize),
    ) -> (usize, usize) {
        let right = width.saturating_sub(1);
        let bottom = height.saturating_sub(1);
        match self {
            Self::Upright => (x, y),
            Self::MirroredHorizontally => (right.saturating_sub(x), y),
            Self::Turned180 => (right.saturating_sub(x), bottom.saturating_sub(y)),
            Self::MirroredVertically => (x, bottom.saturating_sub(y)),
            Self::Transposed => (y, x),
            Self::Turned90 => (y, bottom.saturating_sub(x)),
            Self::Transversed => (right.saturating_sub(y), bottom.saturating_sub(x)),
            Self::Turned270 => (right.saturating_sub(y), x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exif(is_big: bool, kind: u16, value: u16) -> Vec<u8> {
        let short = |n: u16| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
        let long = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
        let mut bytes = if is_big { b"MM\0\x2a".to_vec() } else { b"II\x2a\0".to_vec() };
        bytes.extend(long(10));
        bytes.extend([7, 7]);
        bytes.extend(short(2));
        for (tag, kind, value) in [(0x10f, 2, 0), (ORIENTATION, kind, value)] {
            bytes.extend(short(tag));
            bytes.extend(short(kind));
            bytes.extend(long(1));
            bytes.extend(short(value));
            bytes.extend([0, 0]);
        }
        bytes
    }

    #[test]
    fn the_tag_is_found_in_either_order_of_bytes() {
        for is_big in [false, true] {
            let found = [1, 2, 3, 4, 5, 6, 7, 8]
                .map(|number| Orientation::of_exif(&exif(is_big, SHORT, number)));
            let expected = [
                Orientation::Upright,
                Orientation::MirroredHorizontally,
                Orientation::Turned180,
                Orientation::MirroredVertically,
                Orientation::Transposed,
                Orientation::Turned90,
                Orientation::Transversed,
                Orientation::Turned270,
            ];
            assert_eq!(found, expected);
            for (kind, value) in [(SHORT, 0), (SHORT, 9), (4, 6)] {
                let found = Orientation::of_exif(&exif(is_big, kind, value));
                assert_eq!(found, Orientation::Upright);
            }
        }
    }

    proptest! {
        #[test]
        fn data_that_is_cut_or_altered_is_read_without_a_panic(
            cut in 0usize..40, at in 0usize..36, byte: u8, is_big: bool,
        ) {
            let mut bytes = exif(is_big, SHORT, 6);
            if let Some(here) = bytes.get_mut(at) {
                *here = byte;
            }
            bytes.truncate(cut);
            Orientation::of_exif(&bytes);
        }
    }
}
