//! One number as a symbol, which compresses, and some bits, which are noise.
//!
//! ```text
//! symbol  0        no difference; of the plain: the number 0    nothing follows
//!         1 - 254  4 * (class - offset) + the two bits below    all bits below those, of the plain:
//!                  the leading one                              and the sign
//!         255      the class is outside                         32 bits: the number
//! ```
//!
//! Numbers are taken by their bits. A difference is one of integers in the floats' order, in which
//! neighbours differ by 1, with its sign moved to the lowest bit (zigzag). The offset puts a tensor's
//! classes into the middle of the symbols, so that tensors of all scales are alike to the entropy coder.

use super::{bits::BitReader, take};

/// The part of a number that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The difference; its class is its length and the base's exponent, hence its absolute size. Weights,
    /// all of which an optimiser moves by alike steps.
    Step,
    /// The difference less a bias; its class is its length, hence its relative size. Averages that move
    /// slowly, as Adam's second moment, which also shrinks or grows as a whole.
    Ratio { bias: u32 },
    /// The number itself; its class is its exponent. Momentum, of which nothing is left after some batches.
    Plain,
}

/// How a tensor's numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coding {
    pub(super) kind: Kind,
    pub(super) offset: u8,
}

/// The coded form of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) symbol: u8,
    pub(super) bits: u32,
    /// How many bits there are.
    pub(super) width: u32,
}

/// The symbol of numbers whose class is outside.
const OUTSIDE: u32 = 255;
/// Bits of a plain number that are in no symbol.
const PLAIN_BITS: u32 = 22;

impl Kind {
    /// How many kinds there are.
    pub(super) const COUNT: usize = 3;

    /// The kind's place among the kinds, from 0.
    pub(super) const fn index(self) -> u8 {
        match self {
            Self::Step => 0,
            Self::Ratio { .. } => 1,
            Self::Plain => 2,
        }
    }

    /// Four times the class, and the two bits below the leading one; the bits below those, upper ones not
    /// cleared; and how many. None where nothing is to be said.
    #[inline]
    pub(super) fn parts(self, base: u32, new: u32) -> Option<(u32, u32, u32)> {
        let (size, scale) = match self {
            Self::Step => (size(base, new, 0), exponent(base)),
            Self::Ratio { bias } => (size(base, new, bias), 0),
            Self::Plain => {
                let turned = new.rotate_left(1);
                return (new != 0).then_some((turned >> PLAIN_BITS, turned, PLAIN_BITS));
            }
        };
        let below = size.checked_ilog2()?;
        let width = below.saturating_sub(2);
        Some(((1 + below + scale) << 2 | (size >> width) & mask(below - width), size, width))
    }
}

impl Coding {
    /// The code of a number, its counterpart of the base being known.
    #[inline]
    pub(super) fn code(self, base: u32, new: u32) -> Code {
        let (symbol, bits, width) = match self.kind.parts(base, new) {
            None => (0, 0, 0),
            Some((top, bits, width)) => match top.wrapping_sub(u32::from(self.offset) << 2) {
                symbol @ 1..OUTSIDE => (symbol, bits, width),
                _ => (OUTSIDE, new, 32),
            },
        };
        #[expect(clippy::cast_possible_truncation, reason = "255 at the most")]
        Code { symbol: symbol as u8, bits: bits & mask(width), width }
    }

    /// The number of a code, whose bits are taken from the front; any number where the code is none.
    #[inline]
    pub(super) fn number(self, base: u32, symbol: u8, bits: &mut BitReader<'_>) -> u32 {
        let top = match u32::from(symbol) {
            0 => None,
            OUTSIDE => return bits.get(32),
            symbol => Some(symbol + (u32::from(self.offset) << 2)),
        };
        match (self.kind, top) {
            (Kind::Step, _) => moved(base, size_of(top, exponent(base), bits), 0),
            (Kind::Ratio { bias }, _) => moved(base, size_of(top, 0, bits), bias),
            (Kind::Plain, None) => 0,
            (Kind::Plain, Some(top)) => (top << PLAIN_BITS | bits.get(PLAIN_BITS)).rotate_right(1),
        }
    }

    /// Adds a coding's bytes: its kind, its offset, and the bias where there is one.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend([self.kind.index(), self.offset]);
        if let Kind::Ratio { bias } = self.kind {
            out.extend(bias.to_le_bytes());
        }
    }

    /// Takes a coding's bytes from the front; none where they are no coding.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let [kind, offset] = *take(bytes)?;
        let kind = match kind {
            0 => Kind::Step,
            1 => Kind::Ratio { bias: u32::from_le_bytes(*take(bytes)?) },
            2 => Kind::Plain,
            _ => return None,
        };
        Some(Self { kind, offset })
    }
}

/// The difference in the floats' order, less the bias, as a size.
#[inline]
fn size(base: u32, new: u32, bias: u32) -> u32 {
    let difference = difference(base, new).wrapping_sub(bias);
    (difference << 1) ^ (difference.cast_signed() >> 31).cast_unsigned()
}

/// The size of a symbol, and of bits taken from the front.
#[inline]
fn size_of(top: Option<u32>, scale: u32, bits: &mut BitReader<'_>) -> u32 {
    let Some(top) = top else { return 0 };
    // Other lengths than these are in no code.
    let below = (top >> 2).wrapping_sub(1 + scale) & 31;
    let width = below.saturating_sub(2);
    1 << below | (top & mask(below - width)) << width | bits.get(width)
}

/// The number that is a difference of this size away.
#[inline]
fn moved(base: u32, size: u32, bias: u32) -> u32 {
    let difference = (size >> 1) ^ (size & 1).wrapping_neg();
    unordered(ordered(base).wrapping_add(difference).wrapping_add(bias))
}

/// The difference of two numbers in the floats' order.
#[inline]
pub(super) fn difference(base: u32, new: u32) -> u32 {
    ordered(new).wrapping_sub(ordered(base))
}

#[inline]
fn exponent(number: u32) -> u32 {
    (number >> 23) & 0xff
}

/// The lowest bits, of 0 to 32.
#[inline]
fn mask(width: u32) -> u32 {
    u32::MAX.checked_shr(32 - width).unwrap_or_default()
}

/// Bits of floats as integers that are in the same order: negative ones turned round below the others.
#[inline]
fn ordered(bits: u32) -> u32 {
    bits ^ ((bits.cast_signed() >> 31).cast_unsigned() | 1 << 31)
}

#[inline]
fn unordered(integer: u32) -> u32 {
    integer ^ ((!integer.cast_signed() >> 31).cast_unsigned() | 1 << 31)
}

#[cfg(test)]
mod tests {
    use super::{super::bits::BitWriter, *};
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u32> {
        let float = prop_oneof![-1.0f32..1.0, -1e-6f32..1e-6].prop_map(f32::to_bits);
        prop_oneof![any::<u32>(), float, Just(0), Just(1 << 31)]
    }

    fn coding() -> impl Strategy<Value = Coding> {
        let bias = prop_oneof![Just(0), any::<u32>()];
        let ratio = bias.prop_map(|bias| Kind::Ratio { bias });
        let kind = prop_oneof![Just(Kind::Step), ratio, Just(Kind::Plain)];
        (kind, any::<u8>()).prop_map(|(kind, offset)| Coding { kind, offset })
    }

    proptest! {
        #[test]
        fn every_number_comes_back(coding in coding(), base in number(), new in number()) {
            let code = coding.code(base, new);
            let mut writer = BitWriter::behind(Vec::new());
            writer.put(code.bits, code.width);
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes);
            prop_assert_eq!(coding.number(base, code.symbol, &mut reader), new);
            prop_assert!(reader.ended());
        }

        #[test]
        fn any_symbol_gives_some_number(coding in coding(), base in number(), symbol in any::<u8>()) {
            coding.number(base, symbol, &mut BitReader::new(&[255; 4]));
        }
    }

    #[test]
    fn codings_are_read_as_written() {
        let kinds = [Kind::Step, Kind::Ratio { bias: 0x0102_0304 }, Kind::Plain];
        let codings = kinds.map(|kind| Coding { kind, offset: 7 });
        let mut written = Vec::new();
        codings.iter().for_each(|coding| coding.write(&mut written));
        let mut rest = written.as_slice();
        assert_eq!(codings.map(|_| Coding::read(&mut rest)), codings.map(Some));
        for cut in [&[][..], &[0], &[1, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 0]] {
            assert_eq!(Coding::read(&mut &*cut), None);
        }
    }

    #[test]
    fn unchanged_numbers_take_no_bits() {
        for number in [0, 1.5f32.to_bits(), f32::NAN.to_bits()] {
            for kind in [Kind::Step, Kind::Ratio { bias: 0 }] {
                let coding = Coding { kind, offset: 0 };
                assert_eq!(coding.code(number, number), Code { symbol: 0, bits: 0, width: 0 });
            }
        }
    }

    #[test]
    fn integers_are_in_the_order_of_the_floats() {
        let floats = [f32::NEG_INFINITY, -2.5, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::MAX];
        for pair in floats.windows(2) {
            let [a, b] = [pair[0].to_bits(), pair[1].to_bits()];
            assert!(ordered(a) < ordered(b), "{pair:?}");
            assert_eq!(unordered(ordered(a)), a);
        }
        assert_eq!(difference((-0.0f32).to_bits(), 0), 1);
    }
}
