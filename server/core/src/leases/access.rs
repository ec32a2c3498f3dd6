//! Access rights: the uploads and blobs that the leases of a host give it access to.

use super::handler::LeaseHandler;
use crate::reply::{Refusal, Reply};
use sojourn_protocol::{
    digest::Digest,
    error::ErrorKind,
    ids::{HostId, LeaseId},
    unit,
};

impl LeaseHandler<'_> {
    /// May this host upload so many bytes for this lease?
    pub(crate) fn authorize_upload(&self, host: HostId, lease: LeaseId, bytes: u64) -> Reply<()> {
        self.ledger.state.check_host(host)?;
        let Some(known) = self.ledger.state.lease(lease) else {
            return Err(self.unknown_lease(host, lease));
        };
        let expected = self.ledger.state.upload_bytes(known);
        if known.host != host {
            return Err(Refusal::new(
                ErrorKind::Forbidden,
                format!("lease {lease} is another host's"),
            ));
        }
        let past = self.ledger.state.past.get(&lease);
        if past.is_some_and(|past| past.report_state().is_some()) {
            return Err(Refusal::new(
                ErrorKind::Conflict,
                format!("lease {lease} is reported: nothing more is taken for it"),
            ));
        }
        if !self.ledger.state.is_wanted(known) {
            return Err(Refusal::new(
                ErrorKind::Conflict,
                format!("the unit of lease {lease} is settled"),
            ));
        }
        if expected != Some(bytes) {
            let expected = expected.unwrap_or(0);
            let kind = if bytes > expected { ErrorKind::TooLarge } else { ErrorKind::Invalid };
            let message = format!("lease {lease} declares {expected} bytes, not {bytes}");
            return Err(Refusal::new(kind, message));
        }
        Ok(())
    }

    /// Why nothing can be done under a lease that isn't known: for good, or until it is granted, where it is
    /// provisional.
    pub(crate) fn unknown_lease(&self, host: HostId, lease: LeaseId) -> Refusal {
        if self.ledger.leases.provisional().has(host, lease) {
            let message = format!("lease {lease} goes on from a result that isn't taken in yet");
            return Refusal::new(ErrorKind::Unavailable, message);
        }
        Refusal::new(ErrorKind::NotFound, format!("no lease {lease}"))
    }

    /// May this host read that blob? A lease of it must name the blob, or it is a `prefetch`, one to fetch ahead.
    pub(crate) fn authorize_read(&self, host: HostId, blob: Digest, prefetch: bool) -> Reply<()> {
        self.ledger.state.check_host(host)?;
        let occupancy = self.occupancy();
        let names = |lease: unit::Lease| lease.unit.blobs().iter().any(|of| of.sha256 == blob);
        let live = self.ledger.state.hosts.get(&host).map(|host| &host.live);
        let mut live = live.into_iter().flatten();
        // The base of a provisional lease is the host's own word, which opens nothing. The host has that anyway.
        let provisional = self.ledger.leases.provisional().of(host);
        let mut provisional = provisional.filter(|of| of.base.sha256 != blob);
        if live.any(|lease| occupancy.lease_message(*lease).is_some_and(names))
            || provisional.any(|of| occupancy.provisional_message(of).is_some_and(names))
            || prefetch
        {
            return Ok(());
        }
        Err(Refusal::new(ErrorKind::Forbidden, "no lease of this host names that blob"))
    }
}
