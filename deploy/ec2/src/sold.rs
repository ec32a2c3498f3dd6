//! Types of a region as they are kept between two requests.

use sojourn_fleet::cloud::InstanceType;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::time::Instant;

/// A catalog with the time at which it was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Dated {
    pub(crate) at: Instant,
    pub(crate) catalog: Arc<Catalog>,
}

/// The types that the settings name and a region sells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Catalog {
    /// The types by name.
    pub(crate) types: BTreeMap<String, Sold>,
    /// The zones of each type, of those with a subnet.
    pub(crate) zones: BTreeMap<String, BTreeSet<String>>,
}

/// A type, and how it may be bought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sold {
    pub(crate) instance_type: InstanceType,
    /// Also as spot.
    pub(crate) spot: bool,
}
