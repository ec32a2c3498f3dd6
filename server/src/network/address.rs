//! The address of a connection or a request, as limits count it.

use actix_web::http::header::{HeaderMap, HeaderName};
use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

/// The header in which a proxy says for whom it asks.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Bits of an IPv6 address that name its network: one site has all addresses below them.
const NETWORK_BITS: u32 = 64;

/// An IPv4 address, or the network of an IPv6 address: its owner has all of its 2^64 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AddressKey(IpAddr);

impl AddressKey {
    /// The key of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => {
                let network = u128::MAX << (u128::BITS - NETWORK_BITS);
                Ipv6Addr::from_bits(address.to_bits() & network).into()
            }
        })
    }
}

impl fmt::Display for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(network) => write!(f, "{network}/{NETWORK_BITS}"),
        }
    }
}

/// The caller's address as the proxy before the server says it. The last one of the list: a proxy appends what it saw itself, and
/// the caller can write the others.
pub(super) fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all(FORWARDED_FOR).last()?.to_str().ok()?;
    let last = last.rsplit(',').next()?.trim();
    let bare = last.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().ok();
    address.or_else(|| last.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    fn key(address: &str) -> String {
        AddressKey::of(address.parse().unwrap()).to_string()
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        assert_eq!(key("10.0.0.7"), "10.0.0.7");
        assert_eq!(key("::ffff:10.0.0.7"), "10.0.0.7");
        assert_eq!(key("2001:db8:1:2:3::4"), "2001:db8:1:2::/64");
        assert_eq!(key("2001:db8:1:2:ffff::"), "2001:db8:1:2::/64");
        assert_ne!(key("2001:db8:1:3::"), key("2001:db8:1:2::"));
    }

    #[test]
    fn of_forwarded_addresses_the_last_one_counts() {
        let read = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
            }
            forwarded(&headers).map(|address| address.to_string())
        };
        assert_eq!(read(&[]), None);
        assert_eq!(read(&["1.2.3.4"]).as_deref(), Some("1.2.3.4"));
        assert_eq!(read(&["9.9.9.9, 1.2.3.4"]).as_deref(), Some("1.2.3.4"));
        assert_eq!(read(&["9.9.9.9", "1.2.3.4:55"]).as_deref(), Some("1.2.3.4"));
        assert_eq!(read(&["2001:db8::1"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(read(&["[2001:db8::1]:55"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(read(&["[2001:db8::1]"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(read(&["1.2.3.4, unknown"]), None);
    }
}
