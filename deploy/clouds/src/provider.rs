//! A cloud's provider, which reads its table of a fleet's file, and the account that the table describes.

use crate::{Leaving, Site, SiteDefaults};
use async_trait::async_trait;
use sojourn_fleet::cloud::{Cloud, CloudError};
use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};
use toml::Table;

/// The clouds that a program was built with.
pub type Providers<'a> = &'a [&'a dyn Provider];

/// A cloud, as a program that was built with it knows it: the table of it in a fleet's file, and what follows from that.
pub trait Provider: Send + Sync {
    /// The name of its table in a fleet's file. No other provider has the same.
    fn table(&self) -> &'static str;

    /// The name of the cloud, as people write it.
    fn title(&self) -> &'static str;

    /// The contents of the table in a few words, for a file that lacks it: `the regions, images and subnets`.
    fn contents(&self) -> &'static str;

    /// The values of keys outside of the table that a file with a site may leave out; none where the table describes no server
    /// that is made.
    fn site_defaults(&self, _table: &Table) -> Option<SiteDefaults> {
        None
    }

    /// Reads the table. Paths in it are taken from `folder`. Nothing is asked of the cloud.
    ///
    /// # Errors
    /// [`ProviderError::File`], with what is wrong.
    fn read(
        &self,
        table: &Table,
        fleet: &str,
        folder: &Path,
    ) -> Result<Box<dyn Account>, ProviderError>;
}

/// Why a provider didn't do what was asked. The text has all causes. Commands exit with 2 for [`ProviderError::File`], with 1 for
/// [`ProviderError::Work`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The same call can't succeed: the file or the call is wrong, the provider can't do this, or its owner has to change something in
    /// the account first.
    #[error("{0}")]
    File(String),
    /// The work failed: the same call may succeed later.
    #[error("{0}")]
    Work(String),
}

/// A fleet's account, as its table describes it. The cloud is asked nothing before [`connect`](Account::connect),
/// [`open`](Account::open) or [`site`](Account::site).
///
/// Commands await these futures where they are, so that they needn't be `Send`; those of [`Cloud`] are.
#[async_trait(?Send)]
pub trait Account: fmt::Debug {
    /// The cloud for buying. `values` are those of the placeholders (`{{name}}`) in the file by which machines are told what to do at their
    /// first start. The machine's own two, `machine` and `enrolment_token`, come with each order.
    ///
    /// # Errors
    /// See [`ProviderError`].
    async fn connect(
        &self,
        values: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Cloud>, ProviderError>;

    /// The cloud for looking and removing: no machine can be bought with it.
    ///
    /// # Errors
    /// See [`ProviderError`].
    async fn open(&self) -> Result<Box<dyn Holdings>, ProviderError>;

    /// The fleet's site: its server and what that needs.
    ///
    /// # Errors
    /// See [`ProviderError`]; also where the table describes no server, or the provider makes none.
    async fn site(&self) -> Result<Box<dyn Site>, ProviderError> {
        let none = "no server is made in this cloud: `up` and `down` can't be used with it";
        Err(ProviderError::File(none.to_owned()))
    }
}

/// All that a fleet has in its account, but for its site.
#[async_trait(?Send)]
pub trait Holdings: Cloud {
    /// Asks the cloud whether the table is as it should, and says what it has of what the table names, in sentences. Nothing is made.
    ///
    /// # Errors
    /// See [`CloudError`].
    async fn check(&self) -> Result<Vec<String>, CloudError>;

    /// All that has the fleet's tag and hasn't ended, in all its regions.
    ///
    /// # Errors
    /// See [`CloudError`].
    async fn leavings(&self) -> Result<Vec<Leaving>, CloudError>;

    /// Removes all that has the fleet's tag, and says what that was. Some of it goes a while later: nothing is left once
    /// [`Holdings::leavings`] says so.
    ///
    /// # Errors
    /// See [`CloudError`].
    async fn remove_all(&self) -> Result<Vec<Leaving>, CloudError>;
}
