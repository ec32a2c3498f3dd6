//! `placement.verify`: whose results other hosts are asked to come to as well, and how many of them.

use super::PlacementSpec;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, IntoDeserializer as _, MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::fmt;

/// The most [`Verify::quorum`].
pub const MAX_QUORUM: u32 = 5;

/// `placement.verify`: whose results are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum VerifyChoice {
    /// Nobody's, or those of strangers' hosts.
    Named(VerifyName),
    /// The results of all hosts.
    All(Verify),
}

impl VerifyChoice {
    /// No result is verified.
    pub const NONE: Self = Self::Named(VerifyName::None);
    /// The default: results of strangers' hosts are verified, at the rate that follows from the record of their party.
    pub const STRANGERS: Self = Self::Named(VerifyName::Strangers);
}

// By hand, so that an error says what is wrong with the table or the word.
impl<'de> Deserialize<'de> for VerifyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;

        impl<'de> Visitor<'de> for Choice {
            type Value = VerifyChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word, or a table of `quorum` and `rate`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<VerifyChoice, E> {
                VerifyName::deserialize(word.into_deserializer()).map(VerifyChoice::Named)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VerifyChoice, A::Error> {
                Verify::deserialize(MapAccessDeserializer::new(map)).map(VerifyChoice::All)
            }
        }

        deserializer.deserialize_any(Choice)
    }
}

impl From<Verify> for VerifyChoice {
    fn from(verify: Verify) -> Self {
        Self::All(verify)
    }
}

/// A [`VerifyChoice`] that has no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerifyName {
    /// Every host is believed.
    None,
    /// Hosts of issued owners are verified, and those of the operator are believed.
    Strangers,
}

/// `placement.verify` for all hosts: results that are trained again by other hosts of the same numeric class before they are
/// taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// Hosts that have to come to the same result, 2 to [`MAX_QUORUM`].
    pub quorum: u32,
    /// How many of a thousand results of hosts that haven't earned trust are checked, at least 1; of the operator's hosts that
    /// have, so many thousandths of that. Strangers' hosts are verified at this rate or at their party's, whichever is higher.
    pub rate: u32,
}

impl Verify {
    /// The default of `quorum`.
    pub const QUORUM: u32 = 2;
    /// The default of `rate`: a tenth.
    pub const RATE: u32 = 100;
}

impl PlacementSpec {
    /// Writes the default down where nothing says whose results are verified. Only reproducible results can be.
    pub fn name_verification(&mut self) {
        if self.reproducible {
            self.verify.get_or_insert(VerifyChoice::STRANGERS);
        }
    }

    /// How the results of all hosts are verified, where they are.
    #[must_use]
    pub fn verifies_all(&self) -> Option<Verify> {
        match self.verify {
            Some(VerifyChoice::All(verify)) if self.reproducible => Some(verify),
            Some(VerifyChoice::All(_) | VerifyChoice::Named(_)) | None => None,
        }
    }

    /// Are the results of strangers' hosts verified, and those of the operator's believed?
    #[must_use]
    pub fn verifies_strangers(&self) -> bool {
        self.reproducible && self.verify == Some(VerifyChoice::STRANGERS)
    }

    /// The hosts whose results are verified, and what that takes, in words.
    #[must_use]
    pub fn verified_hosts(&self) -> &'static str {
        match self.verify {
            Some(VerifyChoice::NONE) => NOBODY,
            _ if !self.reproducible => NOT_REPRODUCIBLE,
            Some(VerifyChoice::All(_)) => ALL,
            Some(VerifyChoice::Named(_)) | None => STRANGERS,
        }
    }
}

const STRANGERS: &str = "strangers' results are done again by another party: all at first, 1 in 20 once trusted, and each evaluation; your own \
    machines are believed";
const ALL: &str = "by a quorum of owners, where each machine of the operator counts; of hosts, where all are of one owner: then it guards \
    against broken machines, not against that owner";
const NOT_REPRODUCIBLE: &str =
    "nothing: without `reproducible` results can't be verified, and strangers' hosts are believed";
const NOBODY: &str = "nothing: strangers' hosts are believed too";
