//! How long bytes take between the server and its hosts, and how many hops a lease should cover for that.

use super::view::Cost;
use sojourn_protocol::{
    ids::HostId,
    inventory::Links,
    quantity::{SaturatingFrom as _, mul_div},
};
use sojourn_state::Trial;
use sojourn_workgen::plan::Line;

/// Bytes per second of a link of which nothing is known.
const DEFAULT_SPEED: u64 = 125_000_000;
/// A host whose uploads weren't measured yet is assumed to send so many times slower than it fetches.
const UNMEASURED_UPLOAD: u64 = 4;
/// Microseconds. Checkpoints whose transfers both ways take no longer are moved for each hop.
const MAX_NEGLIGIBLE: u64 = 200_000;
/// A lease is to train for at least so many times as long as the transfers of its checkpoints take.
const MIN_TRAINING_RATIO: u64 = 20;
/// Microseconds for which a lease trains at least, where that is known: a request, a journalled result and a file take the same
/// time for a hop of any length.
const MIN_TRAINING: u64 = 50_000;

/// Microseconds that a checkpoint takes from a host to the server, and from the server to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferTime {
    pub send: u64,
    pub fetch: u64,
}

impl TransferTime {
    fn of(bytes: u64, links: Links) -> Self {
        Self { send: takes(bytes, links.upload), fetch: takes(bytes, links.download) }
    }

    /// The sum.
    pub fn both_ways(self) -> u64 {
        self.send.saturating_add(self.fetch)
    }

    /// Is it too short to plan for?
    pub fn is_negligible(self) -> bool {
        self.both_ways() <= MAX_NEGLIGIBLE
    }

    /// Hops that a lease should be of, where one takes `hop` microseconds, which was measured or is a guess; at the most so many.
    pub fn hops(self, hop: u64, is_measured: bool, most: u32) -> u32 {
        let least = if is_measured { MIN_TRAINING } else { 0 };
        let worth = match self.is_negligible() {
            true => least,
            false => self.both_ways().saturating_mul(MIN_TRAINING_RATIO).max(least),
        };
        let hops = worth.div_ceil(hop.max(1));
        u32::saturating_from(hops).clamp(1, most.max(1))
    }
}

impl Cost<'_> {
    /// The links of a host. One that has sent nothing yet is assumed to send at a part of the rate at which it fetches: most
    /// lines of households are of that kind.
    pub fn links(&self, host: HostId) -> Links {
        let links = self.hosts.session(host).map(|session| session.links).unwrap_or_default();
        let upload = links.upload.or(links.download.map(|download| download / UNMEASURED_UPLOAD));
        Links { upload, ..links }
    }

    /// How long a trial's checkpoints take between the server and a host.
    pub fn transfer_time(&self, trial: &Trial, host: HostId) -> TransferTime {
        TransferTime::of(trial.checkpoint_bytes, self.links(host))
    }

    /// Microseconds that so many bytes take from the server to a host.
    pub fn fetch_time(&self, host: HostId, bytes: u64) -> u64 {
        takes(bytes, self.links(host).download)
    }

    /// Microseconds that so many bytes take from a host to the server.
    pub fn send_time(&self, host: HostId, bytes: u64) -> u64 {
        takes(bytes, self.links(host).upload)
    }

    /// How long a trial's checkpoint takes to a host that doesn't hold it, and back to the server; 0 where that is
    /// negligible.
    pub fn round_trip_time(&self, trial: &Trial, host: HostId) -> u64 {
        let transfer = self.transfer_time(trial, host);
        let holds = trial.history.last().is_none_or(|hop| hop.host == host);
        match transfer.is_negligible() {
            true => 0,
            false => transfer.send.saturating_add(if holds { 0 } else { transfer.fetch }),
        }
    }

    /// The slowest links of the hosts in contact.
    pub fn slowest_links(&self) -> Links {
        let slower = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let links = self.hosts.fleet().hosts().map(|(host, _)| self.links(host));
        links.fold(Links::default(), |all, one| Links {
            download: slower(all.download, one.download),
            upload: slower(all.upload, one.upload),
        })
    }

    /// How long a trial's checkpoints take over given links.
    pub fn transfer_time_over(trial: &Trial, links: Links) -> TransferTime {
        TransferTime::of(trial.checkpoint_bytes, links)
    }

    /// The line of a host, which so many slots share.
    pub fn line(&self, host: HostId, slots: u32) -> Line {
        let links = self.links(host);
        let rate = |rate: Option<u64>| rate.unwrap_or(DEFAULT_SPEED).max(1);
        Line { upload: rate(links.upload), download: rate(links.download), machines: slots }
    }
}

fn takes(bytes: u64, per_second: Option<u64>) -> u64 {
    let rate = per_second.unwrap_or(DEFAULT_SPEED).max(1);
    mul_div(bytes, 1_000_000, rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_of_as_many_hops_as_make_its_bytes_worth_while() {
        let slow = Links { download: Some(12_500_000), upload: Some(12_500_000) };
        let transfer = TransferTime::of(100_000_000, slow);
        assert_eq!(transfer, TransferTime { send: 8_000_000, fetch: 8_000_000 });
        assert_eq!(transfer.hops(400_000_000, true, 64), 1);
        assert_eq!(transfer.hops(50_000_000, true, 64), 7);
        assert_eq!(transfer.hops(50_000_000, false, 64), 7);
        assert_eq!(transfer.hops(1_000, true, 64), 64);
        let little = TransferTime::of(1_000_000, Links::default());
        assert_eq!((little.is_negligible(), little.hops(1, false, 64)), (true, 1));
    }

    #[test]
    fn a_lease_is_of_as_many_short_hops_as_make_its_requests_worth_while() {
        let little = TransferTime::of(1_000_000, Links::default());
        assert_eq!(little.hops(50_000, true, 64), 1);
        assert_eq!(little.hops(14_000, true, 64), 4);
        assert_eq!(little.hops(14_000, false, 64), 1, "a guess may be far too short");
        assert_eq!(little.hops(0, true, 64), 64);
    }
}
