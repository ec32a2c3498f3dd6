//! Where a server may send its hosts to: a store on the internet, or in the server's own network, and nowhere else.
//!
//! A host stands behind its owner's router and on its owner's machine, and reaches what the server can't: other programs of the
//! machine, devices of the home, a cloud's metadata service. A signed URL that leads there is refused. Names are checked as they
//! are resolved, so that what is connected to is what was checked.

use crate::{
    error::{CallError, STORE},
    transport::literal,
};
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

/// Azure's and Alibaba's services for their machines.
const CLOUD_SERVICES_V4: [Ipv4Addr; 2] =
    [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200)];
/// Amazon's metadata service.
const CLOUD_SERVICE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// The network that an address is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    /// Anywhere on the internet.
    Internet,
    /// A home's or an organisation's own.
    Private,
    /// Addresses that have no router before them: the next machines, and the metadata services of clouds.
    LinkLocal,
    /// The machine itself.
    Loopback,
}

impl Network {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(address) => Self::of_v4(address),
                None => Self::of_v6(address),
            },
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [first, second, ..] = address.octets();
        // Services of clouds for their machines, outside the link-local addresses.
        let is_cloud = CLOUD_SERVICES_V4.contains(&address);
        // Carriers use 100.64.0.0/10 before their customers.
        let is_shared = first == 100 && second & 0b1100_0000 == 64;
        if address.is_loopback() || address.is_unspecified() {
            Self::Loopback
        } else if is_cloud
            || address.is_link_local()
            || address.is_multicast()
            || address.is_broadcast()
        {
            Self::LinkLocal
        } else if address.is_private() || is_shared {
            Self::Private
        } else {
            Self::Internet
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let [first, second, third, .., high, low] = address.segments();
        let v4 = |high: u16, low: u16| {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Self::of_v4(Ipv4Addr::new(a, b, c, d))
        };
        match (first, second) {
            // NAT64 and 6to4 lead to the address that they hold.
            (0x64, 0xff9b) => return v4(high, low),
            (0x2002, _) => return v4(second, third),
            _ => {}
        }
        let is_site_local = first & 0xffc0 == 0xfec0;
        if address == CLOUD_SERVICE_V6 {
            Self::LinkLocal
        } else if is_site_local {
            Self::Private
        } else if address.is_loopback() || address.is_unspecified() {
            Self::Loopback
        } else if address.is_unicast_link_local() || address.is_multicast() {
            Self::LinkLocal
        } else if address.is_unique_local() {
            Self::Private
        } else {
            Self::Internet
        }
    }

    /// May a server at an address of this network send hosts to one of the other?
    fn leads_to(self, other: Self) -> bool {
        match other {
            Self::Internet => true,
            Self::Private => matches!(self, Self::Private | Self::LinkLocal | Self::Loopback),
            Self::LinkLocal => self == Self::LinkLocal,
            Self::Loopback => self == Self::Loopback,
        }
    }
}

/// The rule of one server; cheap to clone.
#[derive(Clone)]
pub(crate) struct Reach {
    server: Arc<Url>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("server", &self.server.host_str()).finish()
    }
}

/// An address to which the server may not send its hosts.
#[derive(Debug, thiserror::Error)]
#[error("{0} is an address of this machine or of its network, and not of the server's")]
struct Refused(IpAddr);

impl Reach {
    pub(crate) fn of(server: &Url) -> Self {
        Self { server: Arc::new(server.clone()) }
    }

    /// Refuses a URL by its address. One with a name is refused as that is resolved.
    pub(crate) async fn check(&self, target: &Url) -> Result<(), CallError> {
        let Some(address) = literal(target) else { return Ok(()) };
        let checked = self.keep_reachable(vec![SocketAddr::new(address, 0)]).await;
        checked.map(drop).map_err(|error| refused(&error))
    }

    /// The addresses of these that the server may lead to; an error where it may lead to none.
    async fn keep_reachable(&self, found: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
        let beyond = |address: &SocketAddr| Network::of(address.ip()) == Network::Internet;
        if found.iter().all(beyond) {
            return Ok(found);
        }
        let own = self.networks_of_server().await?;
        let leads = |address: &&SocketAddr| {
            // Its owner chooses what its name resolves to: one address doesn't open what another doesn't.
            !own.is_empty() && own.iter().all(|own| own.leads_to(Network::of(address.ip())))
        };
        let kept: Vec<SocketAddr> = found.iter().filter(leads).copied().collect();
        match (kept.is_empty(), found.first()) {
            (true, Some(first)) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, Refused(first.ip())))
            }
            _ => Ok(kept),
        }
    }

    async fn networks_of_server(&self) -> io::Result<Vec<Network>> {
        if let Some(address) = literal(&self.server) {
            return Ok(vec![Network::of(address)]);
        }
        let name = self.server.host_str().unwrap_or_default();
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| Network::of(address.ip())).collect())
    }
}

impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let kept = reach.keep_reachable(found).await?;
            let addresses: Addrs = Box::new(kept.into_iter());
            Ok(addresses)
        })
    }
}

fn refused(error: &io::Error) -> CallError {
    let detail = format!("the server names a store that isn't followed: {error}");
    CallError::InvalidResponse { server: STORE.to_owned(), status: 0, detail, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn follows(server: &str, target: &str) -> bool {
        let (server, target) = (server.parse().unwrap(), target.parse().unwrap());
        Reach::of(&server).check(&target).await.is_ok()
    }

    #[tokio::test]
    async fn a_server_leads_to_the_internet_and_into_its_own_network_alone() {
        let internet = "https://93.184.216.34/";
        for store in ["https://1.1.1.1/b", "https://[2606:4700::1111]/b"] {
            for server in [internet, "http://10.0.0.7:8080/", "http://127.0.0.1:8080/"] {
                assert!(follows(server, store).await, "{server} {store}");
            }
        }
        for store in [
            "http://127.0.0.1:631/",
            "http://0.0.0.0/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://192.168.1.1/reboot",
            "http://100.64.0.1/",
            "http://[fd00::1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[fe80::1]/",
            "http://168.63.129.16/",
            "http://[fd00:ec2::254]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:c0a8:101::1]/",
            "http://[fec0::1]/",
        ] {
            assert!(!follows(internet, store).await, "{store}");
        }
        let lab = "http://10.0.0.7:8080/";
        assert!(follows(lab, "http://10.0.0.8:9000/bucket").await);
        assert!(!follows(lab, "http://127.0.0.1:631/").await);
        assert!(!follows(lab, "http://169.254.169.254/").await);
        let own = "http://127.0.0.1:8080/";
        assert!(follows(own, "http://127.0.0.1:9000/bucket").await);
        assert!(!follows(own, "http://169.254.169.254/").await);
    }

    #[tokio::test]
    async fn a_name_is_checked_as_it_is_resolved() {
        let resolve = |server: &str| {
            let reach = Reach::of(&server.parse().unwrap());
            reach.resolve("localhost".parse().unwrap())
        };
        let Err(error) = resolve("https://93.184.216.34/").await else { panic!("it was resolved") };
        assert!(error.to_string().contains("an address of this machine"), "{error}");
        assert!(resolve("http://localhost:8080/").await.is_ok());
    }
}
