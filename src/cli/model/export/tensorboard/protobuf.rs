//! Messages in the wire format of Protocol Buffers: fields with a number each, one after another.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>. As in proto3, callers leave out what has its default.

use sojourn_protocol::quantity::to_u64;

/// The wire types: how a field's value is delimited.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;
const FIXED_32: u32 = 5;

/// A message while it is being encoded.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The message's bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// `int32`, `int64` that isn't negative, `bool` or an enum.
    pub(super) fn whole(mut self, field: u32, value: u64) -> Self {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// `double`.
    pub(super) fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, FIXED_64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// `float`.
    pub(super) fn float(mut self, field: u32, value: f32) -> Self {
        self.key(field, FIXED_32);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// `string`.
    pub(super) fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    /// A message in this one, or `bytes`.
    pub(super) fn message(self, field: u32, value: Self) -> Self {
        self.bytes(field, &value.0)
    }

    fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.key(field, LENGTH_DELIMITED);
        self.varint(to_u64(value.len()));
        self.0.extend(value);
        self
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                self.0.push(low);
                return;
            }
            self.0.push(low | 0x80);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_encodings_page_come_out() {
        assert_eq!(Message::new().whole(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        let text = Message::new().text(2, "testing");
        assert_eq!(text.into_bytes(), *b"\x12\x07testing");
        let inner = Message::new().whole(1, 150);
        assert_eq!(Message::new().message(3, inner).into_bytes(), [0x1a, 3, 0x08, 0x96, 0x01]);
        assert_eq!(Message::new().whole(16, u64::MAX).into_bytes().len(), 2 + 10);
    }
}
