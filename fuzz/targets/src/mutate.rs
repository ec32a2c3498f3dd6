//! A seeded mutator: the same target, seed and number give the same input on any machine.
//!
//! The changes are those of AFL and libFuzzer (bits, numbers at the edges of their types, words of a dictionary, chunks that
//! are cut out, doubled, moved or taken from another input), without their feedback from coverage.

use sojourn_protocol::{
    quantity::{SaturatingFrom as _, to_usize},
    seeds,
};

/// Most bytes of an input.
pub const MAX_INPUT_BYTES: usize = 64 << 10;
/// Most changes of one input.
const MAX_CHANGES: u32 = 6;
/// How often a chunk is repeated at most, which shows time and memory that grow faster than the input.
const MAX_REPEATS: u32 = 2_000;
/// Numbers at which parsers err, in text.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "127",
    "128",
    "255",
    "256",
    "32767",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-320",
    "1e999",
    "-0.0",
    "0.1",
    "nan",
    "inf",
    "1e39",
    "00",
    "1_0",
    "+1",
    "0x10",
];
/// And in bytes: all bits of the last one, two, four or eight bytes, and their neighbours.
const EDGES: &[u64] = &[
    0,
    1,
    7,
    8,
    16,
    127,
    128,
    255,
    256,
    4096,
    32_767,
    65_535,
    65_536,
    1 << 20,
    1 << 24,
    1 << 30,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 40,
    (1 << 53) + 1,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 8,
    u64::MAX - 7,
    u64::MAX - 1,
    u64::MAX,
];

/// Makes inputs out of others.
#[derive(Debug)]
pub struct Mutator {
    target: u64,
    seed: u64,
    inputs: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Mutator {
    /// Of a target's inputs and words.
    #[must_use]
    pub fn new(target: &str, seed: u64, inputs: Vec<Vec<u8>>, words: Vec<Vec<u8>>) -> Self {
        Self { target: seeds::derive(target, &[]), seed, inputs, words }
    }

    /// The input of this number.
    #[must_use]
    pub fn input(&self, number: u64) -> Vec<u8> {
        let mut rng = seeds::stream("fuzz", &[self.target, self.seed, number]);
        let mut chance = Chance(Box::new(move |below| seeds::below(&mut rng, below)));
        let mut input = chance.one_of(&self.inputs).cloned().unwrap_or_default();
        for _ in 0..=chance.below(MAX_CHANGES) {
            self.change(&mut input, &mut chance);
            input.truncate(MAX_INPUT_BYTES);
        }
        input
    }

    fn change(&self, input: &mut Vec<u8>, chance: &mut Chance) {
        let at = chance.place(input.len());
        match chance.below(14) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << chance.below(8);
                }
            }
            1 => {
                let to = chance.byte();
                if let Some(byte) = input.get_mut(at) {
                    *byte = to;
                }
            }
            2 => write_edge(input, at, chance),
            3 => {
                let number = chance.one_of(NUMBERS).copied().unwrap_or_default();
                replace_digits(input, at, number.as_bytes());
            }
            4 | 5 => {
                let word = chance.one_of(&self.words).cloned().unwrap_or_default();
                splice(input, at..at, &word);
            }
            6 => {
                let word = chance.one_of(&self.words).cloned().unwrap_or_default();
                splice(input, at..at.saturating_add(word.len()), &word);
            }
            7 => {
                let chunk = chance.chunk(input.len());
                splice(input, chunk, &[]);
            }
            8 => {
                let chunk = input.get(chance.chunk(input.len())).unwrap_or_default().to_vec();
                splice(input, at..at, &chunk);
            }
            9 => {
                let (one, other) = (chance.chunk(input.len()), chance.chunk(input.len()));
                let chunk = input.get(one).unwrap_or_default().to_vec();
                splice(input, other, &chunk);
            }
            10 => {
                let other = chance.one_of(&self.inputs).cloned().unwrap_or_default();
                let chunk = other.get(chance.chunk(other.len())).unwrap_or_default();
                splice(input, at..at, chunk);
            }
            11 => input.truncate(at),
            12 => {
                let short = chance.chunk(input.len().min(at.saturating_add(24)));
                let chunk = input.get(short).unwrap_or_default().to_vec();
                let repeats = to_usize(u64::from(chance.below(MAX_REPEATS)));
                let most = MAX_INPUT_BYTES / chunk.len().max(1);
                splice(input, at..at, &chunk.repeat(repeats.min(most)));
            }
            _ => {
                let bytes: Vec<u8> = (0..=chance.below(8)).map(|_| chance.byte()).collect();
                splice(input, at..at, &bytes);
            }
        }
    }
}

/// A source of numbers that are drawn by chance, each below a bound.
struct Chance(Box<dyn FnMut(u32) -> u32>);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        (self.0)(bound)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or_default()
    }

    /// A place in so many bytes, or behind them.
    fn place(&mut self, bytes: usize) -> usize {
        let places = u32::saturating_from(bytes.saturating_add(1));
        to_usize(u64::from(self.below(places)))
    }

    /// Some of so many bytes; short ones are as likely as long ones.
    fn chunk(&mut self, bytes: usize) -> std::ops::Range<usize> {
        let (from, most) = (self.place(bytes), 1 << self.below(17));
        let length = self.place(bytes.min(most));
        from..from.saturating_add(length).min(bytes).max(from)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let count = u32::saturating_from(all.len());
        all.get(to_usize(u64::from(self.below(count))))
    }
}

/// Replaces a range, as far as it is there.
fn splice(input: &mut Vec<u8>, range: std::ops::Range<usize>, with: &[u8]) {
    let (start, end) = (range.start.min(input.len()), range.end.min(input.len()));
    input.splice(start..end.max(start), with.iter().copied());
}

/// Writes a number at the edge of a type over some bytes.
fn write_edge(input: &mut Vec<u8>, at: usize, chance: &mut Chance) {
    let number = chance.one_of(EDGES).copied().unwrap_or_default();
    let width = 1 << chance.below(4);
    let bytes = match chance.below(2) {
        0 => number.to_le_bytes().get(..width).unwrap_or_default().to_vec(),
        _ => number.to_be_bytes().get(8 - width..).unwrap_or_default().to_vec(),
    };
    splice(input, at..at.saturating_add(width), &bytes);
}

/// Replaces the next number after `at` that is written in digits.
fn replace_digits(input: &mut Vec<u8>, at: usize, with: &[u8]) {
    let rest = input.get(at..).unwrap_or_default();
    let Some(start) = rest.iter().position(u8::is_ascii_digit) else { return };
    let digits = rest.iter().skip(start).take_while(|byte| byte.is_ascii_digit()).count();
    splice(input, at + start..at + start + digits, with);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_names_one_input_and_others_differ() {
        let make =
            |seed| Mutator::new("a", seed, vec![b"x = 12\n".to_vec()], vec![b"word".to_vec()]);
        let inputs: Vec<Vec<u8>> = (0..200).map(|number| make(7).input(number)).collect();
        assert!(
            (0..200)
                .all(|number| make(7).input(number) == inputs[usize::try_from(number).unwrap()])
        );
        let different: BTreeSet<&Vec<u8>> = inputs.iter().collect();
        assert!(different.len() > 150, "{}", different.len());
        assert!(inputs.iter().any(|input| input.windows(4).any(|part| part == b"word")));
        assert!(inputs.iter().all(|input| input.len() <= MAX_INPUT_BYTES));
        assert_ne!(make(8).input(0), inputs[0]);
    }

    #[test]
    fn there_are_inputs_of_nothing_too() {
        let empty = Mutator::new("a", 1, Vec::new(), Vec::new());
        assert!((0..100).map(|number| empty.input(number)).any(|input| !input.is_empty()));
    }
}
