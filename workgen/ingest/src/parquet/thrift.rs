//! Thrift's compact protocol, as far as it takes to know what a footer or a page's header asks for.
//!
//! ```text
//! struct: fields until a 0; field: | id - last id : 4 bits | type : 4 bits | value ... |
//! ```

/// Structs in structs: more are no file of anybody.
const MAX_DEPTH: u32 = 32;

/// The type of a value: a number of 4 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type(u8);

impl Type {
    pub(super) const I32: Self = Self(5);
    pub(super) const LIST: Self = Self(9);
    pub(super) const STRUCT: Self = Self(12);
}

/// The bytes that are left in this protocol. Each read is `None` where they end, or aren't what they should be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thrift<'a>(pub(super) &'a [u8]);

impl<'a> Thrift<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number without a sign, 7 bits a byte.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number with a sign.
    pub(super) fn int(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Calls `take` with each field of a struct, in front of its value. It reads the value, or returns `Some(false)` for it to be
    /// skipped.
    pub(super) fn fields(
        &mut self,
        mut take: impl FnMut(i64, Type, &mut Self) -> Option<bool>,
    ) -> Option<()> {
        self.fields_at(MAX_DEPTH, &mut take)
    }

    fn fields_at(
        &mut self,
        depth: u32,
        take: &mut dyn FnMut(i64, Type, &mut Self) -> Option<bool>,
    ) -> Option<()> {
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            let kind = Type(head & 0xf);
            if kind == Type(0) {
                return Some(());
            }
            id = match i64::from(head >> 4) {
                0 => self.int()?,
                step => id.checked_add(step)?,
            };
            let before = *self;
            if !take(id, kind, self)? {
                *self = before;
                self.skip(kind, false, depth)?;
            }
        }
    }

    /// The number and type of a list's elements.
    pub(super) fn list(&mut self) -> Option<(u64, Type)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        Some((count, Type(head & 0xf)))
    }

    /// Skips a value; a truth value is a byte in a list, and in the type elsewhere.
    fn skip(&mut self, kind: Type, is_element: bool, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind.0 {
            1 | 2 if !is_element => {}
            1..=3 => {
                self.byte()?;
            }
            4..=6 => {
                self.varint()?;
            }
            7 => {
                self.bytes(8)?;
            }
            8 => {
                let count = self.varint()?;
                self.bytes(count)?;
            }
            9 | 10 => {
                let (count, kind) = self.list()?;
                for _ in 0..count {
                    self.skip(kind, true, depth)?;
                }
            }
            11 => {
                let count = self.varint()?;
                if count > 0 {
                    let kinds = self.byte()?;
                    for _ in 0..count {
                        self.skip(Type(kinds >> 4), true, depth)?;
                        self.skip(Type(kinds & 0xf), true, depth)?;
                    }
                }
            }
            12 => self.fields_at(depth, &mut |_, _, _| Some(false))?,
            _ => return None,
        }
        Some(())
    }
}
