//! Names that people give to owners and tokens: one line of bounded length that a terminal can print.
//!
//! A value can't be built past its bound, neither by a program nor by reading a request, an event or a snapshot. New names have no
//! invisible characters either; events of before such names were refused may have them, and are read.

use crate::text::{is_plain_line, is_plain_name};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use std::{fmt, str::FromStr};

/// Characters of the name of an owner or a token.
pub const MAX_OWNER_CHARS: usize = 64;
/// Characters of an untrusted name that a message repeats.
const QUOTED_CHARS: usize = 40;

/// Why a text is no such name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{begins}` isn't one line of at most {MAX_OWNER_CHARS} characters without invisible ones, and without spaces at its ends"
)]
pub struct NameError {
    /// How it begins.
    begins: String,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[cfg_attr(feature = "openapi", schema(value_type = String, max_length = 64))]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            fn checked(text: &str, is_name: bool) -> Result<Self, NameError> {
                if is_name {
                    return Ok(Self(text.to_owned()));
                }
                Err(NameError { begins: text.escape_debug().take(QUOTED_CHARS).collect() })
            }

            /// Is it the empty name?
            #[must_use]
            pub fn is_default(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                // Names that differ in spaces or in what nobody sees look the same in a table.
                Self::checked(text, is_plain_name(text, MAX_OWNER_CHARS))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let was_taken = text.trim() == text && is_plain_line(&text, MAX_OWNER_CHARS);
                Self::checked(&text, was_taken).map_err(D::Error::custom)
            }
        }
    };
}

name!(
    /// The name of the owner of hosts: the person or group that answers for them. The empty name is the deployment's own
    /// owner, to whom all hosts belong that enrolled with the server's own enrolment token.
    OwnerName
);

name!(
    /// The name of a token, for people: what it is for, or who has it.
    TokenLabel
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_owner_is_a_line_of_at_most_64_characters() {
        let longest = "\u{e4}".repeat(MAX_OWNER_CHARS);
        for fine in ["", "lab-3", "Lab 3, room 12", longest.as_str()] {
            let owner: OwnerName = fine.parse().unwrap();
            assert_eq!(owner.as_str(), fine);
            let written = serde_json::to_string(&owner).unwrap();
            assert_eq!(serde_json::from_str::<OwnerName>(&written).unwrap(), owner);
        }
        assert!(OwnerName::default().is_default());
        let long = "x".repeat(MAX_OWNER_CHARS + 1);
        for wrong in [long.as_str(), " lab", "lab ", "a\nb", "a\u{1b}[31mb", "a\u{202e}b"] {
            let error = wrong.parse::<OwnerName>().unwrap_err().to_string();
            assert!(error.contains("isn't one line of at most 64 characters"), "{error}");
            assert!(is_plain_line(&error, 200), "{error:?}");
            let written = serde_json::to_string(wrong).unwrap();
            serde_json::from_str::<OwnerName>(&written).unwrap_err();
        }
    }

    #[test]
    fn a_name_with_letters_that_nobody_sees_is_refused_and_read_from_old_events() {
        for hidden in ["lab\u{200b}", "\u{feff}lab", "l\u{ad}ab", "lab\u{e0041}"] {
            hidden.parse::<OwnerName>().unwrap_err();
            hidden.parse::<TokenLabel>().unwrap_err();
            let written = serde_json::to_string(hidden).unwrap();
            assert_eq!(serde_json::from_str::<OwnerName>(&written).unwrap().as_str(), hidden);
        }
    }

    proptest! {
        #[test]
        fn no_owner_is_past_its_bound(text: String) {
            if let Ok(owner) = text.parse::<OwnerName>() {
                prop_assert!(is_plain_line(owner.as_str(), MAX_OWNER_CHARS));
            }
        }
    }
}
