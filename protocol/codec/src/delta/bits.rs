//! Numbers of 0 to 32 bits in a row, the lowest bits first, in little-endian words of 32.

use std::slice::Iter;

/// Writes numbers of some bits each behind other bytes.
#[derive(Debug)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that fill no word yet, and how many: below 32.
    rest: u64,
    held: u32,
}

impl BitWriter {
    pub(super) fn behind(bytes: Vec<u8>) -> Self {
        Self { bytes, rest: 0, held: 0 }
    }

    /// Writes the lowest `width` bits of a number that has no others.
    #[inline]
    pub(super) fn put(&mut self, number: u32, width: u32) {
        debug_assert!(width <= 32 && u64::from(number) >> width == 0, "{number} in {width} bits");
        self.rest |= u64::from(number) << self.held;
        self.held += width;
        if self.held >= 32 {
            self.word();
        }
    }

    /// Ends the last word and gives all the bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.held > 0 {
            self.held = 32;
            self.word();
        }
        self.bytes
    }

    #[inline]
    fn word(&mut self) {
        #[expect(clippy::cast_possible_truncation, reason = "the upper half stays behind")]
        let word = self.rest as u32;
        self.bytes.extend_from_slice(&word.to_le_bytes());
        self.rest >>= 32;
        self.held -= 32;
    }
}

/// Reads what a [`BitWriter`] wrote. Beyond its end there are zeros, and [`BitReader::ended`] is false.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    words: Iter<'a, [u8; 4]>,
    rest: u64,
    held: u32,
    beyond: bool,
}

impl<'a> BitReader<'a> {
    /// Reads whole words; other bytes at the end count as missing.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let (words, odd) = bytes.as_chunks::<4>();
        Self { words: words.iter(), rest: 0, held: 0, beyond: !odd.is_empty() }
    }

    /// The next `width` bits, at most 32.
    #[inline]
    pub(super) fn get(&mut self, width: u32) -> u32 {
        debug_assert!(width <= 32, "{width} bits");
        if self.held < width {
            let word = self.words.next();
            self.beyond |= word.is_none();
            let word = word.map_or(0, |bytes| u32::from_le_bytes(*bytes));
            self.rest |= u64::from(word) << self.held;
            self.held += 32;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the mask leaves 32 bits")]
        let number = (self.rest & ((1 << width) - 1)) as u32;
        self.rest >>= width;
        self.held -= width;
        number
    }

    /// Whether all words, and no more, have been read.
    pub(super) fn ended(&self) -> bool {
        !self.beyond && self.words.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_are_read_back_as_written(pairs in prop::collection::vec((any::<u32>(), 0u32..=32), 0..100)) {
            let mask = |(number, width): (u32, u32)| {
                let number = u64::from(number) & ((1 << width) - 1);
                (u32::try_from(number).unwrap(), width)
            };
            let pairs: Vec<(u32, u32)> = pairs.into_iter().map(mask).collect();
            let mut writer = BitWriter::behind(Vec::new());
            for (number, width) in &pairs {
                writer.put(*number, *width);
            }
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes);
            for (number, width) in pairs {
                prop_assert_eq!(reader.get(width), number);
            }
            prop_assert!(reader.ended());
            reader.get(32);
            prop_assert!(!reader.ended());
        }
    }

    #[test]
    fn the_last_word_is_filled_up() {
        let mut writer = BitWriter::behind(vec![9]);
        writer.put(5, 3);
        assert_eq!(writer.finish(), [9, 5, 0, 0, 0]);
        let mut writer = BitWriter::behind(Vec::new());
        writer.put(u32::MAX, 32);
        assert_eq!(writer.finish(), [255; 4]);
    }
}
