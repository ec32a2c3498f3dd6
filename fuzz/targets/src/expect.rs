//! Expectations of any parser: values that are written and read again are the same, and refusals are in words.

use serde::{Serialize, de::DeserializeOwned};
use std::fmt::{Debug, Display};

/// A refusal may be so long, whatever the input.
const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// And by so many bytes longer for each byte of the input, since refusals quote: an escaped byte takes ten.
const MESSAGE_TIMES: usize = 16;

/// The refusal of an input says something, and isn't much longer than the input.
pub(crate) fn is_said(error: &dyn Display, input: &[u8]) {
    let message = error.to_string();
    assert!(!message.is_empty(), "an input is refused without a word");
    let most = MAX_MESSAGE_BYTES + MESSAGE_TIMES * input.len();
    let bytes = message.len();
    assert!(bytes <= most, "a refusal of {bytes} bytes for an input of {}", input.len());
}

/// Reads JSON. A value that is taken is the same once it was written and read again.
pub(crate) fn round_trip<T: DeserializeOwned + Serialize + PartialEq + Debug>(
    input: &[u8],
) -> Option<T> {
    let value: T = match serde_json::from_slice(input) {
        Ok(value) => value,
        Err(error) => {
            is_said(&error, input);
            return None;
        }
    };
    let written = serde_json::to_vec(&value);
    assert!(written.is_ok(), "{value:?} was read and can't be written: {written:?}");
    let again: Result<T, _> = serde_json::from_slice(&written.unwrap_or_default());
    assert!(again.is_ok(), "{value:?} was read, and can't be read as it is written: {again:?}");
    assert!(again.ok().as_ref() == Some(&value), "{value:?} is read as something else");
    Some(value)
}

/// A text that was read is shown as one that reads the same. True where it was read.
pub(crate) fn shows_itself<T: std::str::FromStr + Display + PartialEq + Debug>(text: &str) -> bool
where
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            let shown = value.to_string();
            let again = shown.parse::<T>();
            assert!(again.is_ok(), "`{text}` is shown as `{shown}`, which can't be read");
            assert!(again.ok().as_ref() == Some(&value), "`{shown}` is read as something else");
            true
        }
        Err(error) => {
            is_said(&error, text.as_bytes());
            false
        }
    }
}
