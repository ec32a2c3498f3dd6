//! A list price of the file.

use serde::{Deserialize, Deserializer, de::Error as _};
use sojourn_protocol::money::MicroUsd;

/// The price of an hour, written as `"0.404 usd"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPrice(pub MicroUsd);

impl<'de> Deserialize<'de> for ListPrice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}
