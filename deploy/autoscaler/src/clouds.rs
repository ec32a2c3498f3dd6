//! The clouds that this program was built with: the only place that names them.

use crate::config::Config;
use sojourn_fleet::cloud::{Cloud, CloudError, CloudMachine, Filled, Offers, Order, Pool};
use sojourn_protocol::{money::MicroUsd, time::UnixMillis};
use std::collections::BTreeMap;

/// Why there is no cloud.
#[derive(Debug, thiserror::Error)]
pub enum CloudsError {
    /// The program was built without the cloud that the file names.
    #[error("this program was built without EC2")]
    NotBuilt,
}

/// The cloud of a program that was built without any: there is none.
#[derive(Debug)]
pub enum NoCloud {}

/// Is what the file says of its cloud sound? Nothing is asked of the cloud.
///
/// # Errors
/// With what is wrong.
pub fn check(_config: &Config) -> Result<(), CloudsError> {
    Ok(())
}

/// The cloud that the file names; `values` are those of the placeholders of the machines' user data.
///
/// # Errors
/// With what is wrong, and where the program was built without it.
pub async fn connect(
    _config: &Config,
    _values: BTreeMap<String, String>,
) -> Result<NoCloud, CloudsError> {
    Err(CloudsError::NotBuilt)
}

impl Cloud for NoCloud {
    async fn offers(&self) -> Result<Offers, CloudError> {
        match *self {}
    }

    async fn spot_price_at(&self, _: &Pool, _: UnixMillis) -> Result<Option<MicroUsd>, CloudError> {
        match *self {}
    }

    async fn machines(&self) -> Result<Vec<CloudMachine>, CloudError> {
        match *self {}
    }

    async fn buy(&self, _: &Order) -> Result<Filled, CloudError> {
        match *self {}
    }

    async fn end(&self, _: &str, _: &[String]) -> Result<(), CloudError> {
        match *self {}
    }
}
