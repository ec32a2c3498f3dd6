//! The incarnation of a client: each start of a client has another one, which its requests name. So a server tells two clients with one
//! identity from one client that was started again.

use std::{fmt, str::FromStr};

/// Header of the requests of a host: its [`Incarnation`]. A server that doesn't know the header ignores it.
pub const INCARNATION_HEADER: &str = "sojourn-incarnation";

/// Header of the requests of a host: the incarnation of which the server has told it
/// ([`ApiError::rival`](crate::error::ApiError::rival)). It proves that the host has heard the server's answer, and so that it is there.
pub const RIVAL_HEADER: &str = "sojourn-rival";

/// One start of a client, by a random number: 16 lowercase hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Why a text is no incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an incarnation has 16 lowercase hex digits")]
pub struct ParseIncarnationError;

impl FromStr for Incarnation {
    type Err = ParseIncarnationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 16 || !text.bytes().all(is_digit) {
            return Err(ParseIncarnationError);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| ParseIncarnationError)
    }
}

impl serde::Serialize for Incarnation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Incarnation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incarnations_are_16_hex_digits() {
        let incarnation = Incarnation(0xab);
        assert_eq!(incarnation.to_string(), "00000000000000ab");
        assert_eq!("00000000000000ab".parse(), Ok(incarnation));
        assert_eq!(serde_json::to_string(&incarnation).unwrap(), "\"00000000000000ab\"");
        for wrong in ["", "ab", "00000000000000AB", "+0000000000000ab", "00000000000000ab0"] {
            assert!(wrong.parse::<Incarnation>().is_err(), "{wrong}");
        }
    }
}
