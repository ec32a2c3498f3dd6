//! The wire format of protocol buffers: fields, each with a number and a value.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>. Groups, which are deprecated, are refused.

/// The value of a field, as it lies in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
    Four([u8; 4]),
}

/// A message that can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// The fields of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next field: its number and its value.
    fn read(&mut self) -> Result<(u64, Value<'a>), Broken> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut self.0)?),
            1 => Value::Eight(array(&mut self.0)?),
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).map_err(|_| Broken)?;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or(Broken)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => Value::Four(array(&mut self.0)?),
            _ => return Err(Broken),
        };
        match key >> 3 {
            0 => Err(Broken),
            number => Ok((number, value)),
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.0 = &[];
        }
        Some(read)
    }
}

/// A number of up to 64 bits, seven a byte, the lowest first.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64, Broken> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(Broken)?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return Err(Broken);
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Broken)
}

/// The next bytes.
pub(super) fn array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Broken> {
    let (array, rest) = bytes.split_first_chunk::<N>().ok_or(Broken)?;
    *bytes = rest;
    Ok(*array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_seven_bits_a_byte() {
        let read = |mut bytes: &[u8]| varint(&mut bytes);
        assert_eq!(read(&[0x96, 0x01]), Ok(150));
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read(&most), Ok(u64::MAX));
        assert_eq!(read(&[0xff; 10]), Err(Broken));
        assert_eq!(read(&[0x80]), Err(Broken));
    }

    #[test]
    fn a_length_beyond_the_end_is_refused() {
        let mut fields = Fields(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]);
        assert_eq!(fields.next(), Some(Err(Broken)));
        assert_eq!(fields.next(), None);
        assert_eq!(Fields(&[0x0b]).next(), Some(Err(Broken)), "a group");
        assert_eq!(Fields(&[0x02, 0]).next(), Some(Err(Broken)), "the number 0");
    }

    proptest! {
        #[test]
        fn no_bytes_are_left_without_an_end(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(Fields(&bytes).count() <= bytes.len());
        }
    }
}
