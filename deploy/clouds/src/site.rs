//! The site of a fleet: the machine of its server with all that it needs, made by one call and removed by another.

use crate::{Leaving, ProviderError};
use async_trait::async_trait;
use sojourn_protocol::money::MicroUsd;

/// Hours of a month.
pub const MONTH_HOURS: u64 = 730;

/// The values of keys that a file with a site may leave out: they are as on the server's machine, where the autoscaler is too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteDefaults {
    /// The server's address, as the autoscaler beside it reaches it.
    pub server: &'static str,
    /// The file with the autoscaler's token.
    pub token_file: &'static str,
    /// The server's own certificate.
    pub ca: &'static str,
}

/// How a part was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The part isn't there.
    Missing,
    /// The part is there, and isn't as it should be.
    Unfinished,
    /// The part is there as it should be.
    There,
}

/// A part of a site, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartState {
    /// The kind of the part in a few words, as `security group of the server`.
    pub part: String,
    /// The name that it has in the account.
    pub name: String,
    /// The cloud's id of it; none where it is missing.
    pub id: Option<String>,
    /// How it was found.
    pub state: State,
}

/// The costs of a site while it is up, without machines: list prices, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// An hour of the server's machine; none where the file has no price for its type.
    pub server: Option<MicroUsd>,
    /// An hour of its disk.
    pub disk: MicroUsd,
    /// An hour of its public address.
    pub address: MicroUsd,
}

impl Costs {
    /// An hour of all whose price is known.
    #[must_use]
    pub fn hour(&self) -> MicroUsd {
        let server = self.server.map_or(0, |price| price.0);
        MicroUsd(server.saturating_add(self.disk.0).saturating_add(self.address.0))
    }

    /// A month of it.
    #[must_use]
    pub fn month(&self) -> MicroUsd {
        MicroUsd(self.hour().0.saturating_mul(MONTH_HOURS))
    }
}

/// A server that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerMachine {
    /// The cloud's id of the server's machine.
    pub instance: String,
    /// The server's public address.
    pub address: String,
    /// The same with scheme and port, where people reach the server.
    pub url: String,
}

/// The site of a fleet in an account.
#[async_trait(?Send)]
pub trait Site {
    /// The region that has the server.
    fn region(&self) -> &str;

    /// The site's costs while it is up, without machines.
    fn costs(&self) -> Costs;

    /// The key of the file with the price of the server's machine, with its table, as `[cloud.server] price`.
    fn price_key(&self) -> &'static str;

    /// The values of keys that the file may leave out.
    fn defaults(&self) -> SiteDefaults;

    /// The server's address as machines see it: the address of the copy of the file that goes to the server's machine. A part of it
    /// may be a placeholder that the machine replaces.
    fn server_address(&self) -> String;

    /// Checks what the file says for [`Site::up`], and that files which it names can be read. Nothing is asked of the cloud.
    ///
    /// # Errors
    /// Where something is missing.
    fn check(&self) -> Result<(), ProviderError>;

    /// The parts in the order in which they are made, and how they are now. Nothing is changed.
    ///
    /// # Errors
    /// Where the cloud refuses, the file names what isn't there, or a part's name is taken by something of others.
    async fn look(&self) -> Result<Vec<PartState>, ProviderError>;

    /// Makes what is missing, and finishes what isn't as it should be; `seen` is told of each part as soon as it is there, with the
    /// state in which it was found. `file` is the fleet's file for the server's machine, where the provider fills in its own table.
    ///
    /// # Errors
    /// See [`Site::look`]. The same call goes on.
    async fn up(
        &self,
        file: &str,
        seen: &mut dyn FnMut(PartState),
    ) -> Result<ServerMachine, ProviderError>;

    /// The command by which the owner logs in to the server's machine.
    fn login(&self, server: &ServerMachine) -> String;

    /// All that has the fleet's tag and hasn't ended, the server and its network too.
    ///
    /// # Errors
    /// Where the cloud refuses.
    async fn leavings(&self) -> Result<Vec<Leaving>, ProviderError>;

    /// Removes what of it can go now, and says what was there. Some of it needs what goes first: nothing is left once
    /// [`Site::leavings`] says so.
    ///
    /// # Errors
    /// Where the cloud refuses.
    async fn remove_all(&self) -> Result<Vec<Leaving>, ProviderError>;
}
