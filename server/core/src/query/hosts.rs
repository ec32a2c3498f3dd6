//! Views of hosts and their devices.

use super::Views;
use sojourn_protocol::{
    cpu_shares::HeldCpuShare,
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, ShardId},
    inventory::Device,
    quantity::{SaturatingFrom as _, to_u64},
    reason::IdleReason,
    spec::CpuSharePolicy,
    time::UnixMillis,
    view::{
        CachedOfJob, ClassParties, CpuShareView, DeviceView, HeldView, HostDetail, HostState,
        HostView, SuspectResult,
    },
};
use sojourn_scheduling::{
    hosts::{DeviceSlots, Session},
    leases::Deadline,
    schedule::idle_reason,
};
use sojourn_state::{Host, Job, Lease, UnitKey};
use std::collections::{BTreeMap, BTreeSet};

/// The part of a host's cache that is of a job, if there is any. `all`: blobs that jobs refer to are added to it.
fn cached_of(job: &Job, session: &Session, all: &mut BTreeSet<Digest>) -> Option<CachedOfJob> {
    let mut bytes = BTreeMap::new();
    let mut has = |blob: BlobRef| {
        let is_there = session.has_blob(&blob.sha256);
        if is_there {
            bytes.insert(blob.sha256, blob.bytes);
        }
        is_there
    };
    let train = job.data.train.iter().zip(0..);
    let shards: Vec<ShardId> =
        train.filter(|(shard, _)| has(shard.blob)).map(|(_, number)| ShardId(number)).collect();
    let other = job.data.blobs().skip(job.data.train.len()).filter(|blob| has(*blob)).count();
    let checkpoints = job.trials.iter().filter_map(|trial| trial.checkpoint);
    let checkpoints = checkpoints.filter(|blob| has(*blob)).count();
    all.extend(bytes.keys().copied());
    (!bytes.is_empty()).then(|| CachedOfJob {
        job: job.id,
        name: job.spec.name.clone(),
        shards,
        of_shards: u32::saturating_from(job.data.train.len()),
        other_data: to_u64(other),
        checkpoints: to_u64(checkpoints),
        bytes: bytes.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)),
    })
}

impl Views<'_> {
    /// One host.
    pub(crate) fn host(&self, host: HostId) -> Result<HostView, ApiError> {
        self.known_host(host)
            .ok_or_else(|| ApiError::new(ErrorKind::NotFound, format!("no host {host}")))
    }

    /// One host, with what lies in its cache.
    pub(crate) fn host_detail(&self, host: HostId) -> Result<HostDetail, ApiError> {
        let view = self.host(host)?;
        let mut of_jobs = BTreeSet::new();
        let mut cache = Vec::new();
        if let Some(session) = self.hosts.session(host) {
            for job in self.state.jobs.values() {
                cache.extend(cached_of(job, session, &mut of_jobs));
            }
        }
        let other_blobs = view.cached.saturating_sub(to_u64(of_jobs.len()));
        Ok(HostDetail { host: view, cache, other_blobs })
    }

    pub(crate) fn hosts(&self) -> Vec<HostView> {
        self.state.hosts.keys().filter_map(|host| self.known_host(*host)).collect()
    }

    /// The hosts that have live leases of a job.
    pub(crate) fn hosts_of(&self, job: JobId) -> Result<Vec<HostView>, ApiError> {
        let hosts = self.state.find_job(job)?.hosts.keys();
        Ok(hosts.filter_map(|host| self.known_host(*host)).collect())
    }

    pub(crate) fn known_host(&self, host: HostId) -> Option<HostView> {
        let host = self.state.hosts.get(&host)?;
        let session = self.hosts.session(host.id);
        let leases = host.live.iter().filter_map(|lease| self.state.leases.get(lease));
        let copies = session.and_then(|session| session.incarnations.copies());
        Some(HostView {
            host: host.id,
            name: host.name.clone(),
            owner: host.owner.clone(),
            state: self.host_state(host),
            seen_at: session.map(|session| session.seen_at),
            slots: session.map_or(0, |session| session.slots),
            devices: session.map(|session| self.devices_of(host.id, session)).unwrap_or_default(),
            cached: session.map_or(0, |c| to_u64(c.cached.len())),
            cache: session.and_then(|session| session.cache),
            stopped: session.is_some_and(Session::has_stopped),
            waiting: self.idle_reason(host).map(|reason| reason.to_string()),
            blocked: host.blocked,
            disk_is_low: session.is_some_and(|session| session.disk_is_low),
            links: session.map(|session| session.links).unwrap_or_default(),
            leases: leases.map(|lease| self.held_view(lease)).collect(),
            used: host.used,
            expired: host.expired,
            reliability: host.reliability.is_known().then(|| host.reliability.ratio(self.now)),
            confirmed: host.trust.confirmed,
            confirmed_in_row: host.trust.in_row,
            refuted: host.trust.refuted,
            stranger: host.is_strangers(),
            verified_rate: self.state.stranger_rate(host),
            suspects: self.suspect_hops_of(host.id),
            unverified: self.state.unverified_hops_of(host.id),
            alone: self.eligible.is_alone(host.id) && self.is_verified(host.id),
            failures: host.failures,
            last_error: match self.hosts.releases(host.id).map(|history| &history.last_reason) {
                Some(reason) if reason.is_fault() => Some(format!("gave work back: {reason}")),
                _ => host.last_error.clone(),
            },
            train_micros: host.train_micros,
            away_since: self.away_since(host),
            copies: copies.map_or(0, |(count, _)| count),
            copy_found_at: copies.map(|(_, at)| at),
        })
    }

    /// Hops of a refuted party that a host has delivered, in any job, and that nobody has confirmed.
    fn suspect_hops_of(&self, host: HostId) -> Vec<SuspectResult> {
        let of_job = |job: &Job| {
            let job_id = job.id;
            let doubtful = self.state.suspect_hops(host, job).map(move |(trial, hop)| {
                let (version, epoch) = (hop.version, hop.epoch());
                SuspectResult { job: job_id, trial: trial.id, version, epoch }
            });
            doubtful.collect::<Vec<_>>()
        };
        self.state.jobs.values().flat_map(of_job).collect()
    }

    fn devices_of(&self, host: HostId, session: &Session) -> Vec<DeviceView> {
        let estimates = self.cost.estimates;
        let view = |slots: &DeviceSlots| {
            let Device {
                name,
                numeric_class,
                flops,
                memory,
                measured,
                classes,
                engines,
                unsupported,
            } = slots.device.clone();
            let estimate_error = estimates.error_of(host, &name).thousandths();
            let (offers, all) = (self.hosts.offers(), self.state.parties());
            let parties = slots.classes.iter().map(|of| ClassParties {
                numeric_class: of.class,
                parties: to_u64(offers.parties(of.class, all)),
            });
            let parties = parties.collect();
            let slots = slots.count;
            DeviceView {
                name,
                slots,
                numeric_class,
                flops,
                memory,
                measured,
                estimate_error,
                classes,
                engines,
                unsupported,
                parties,
            }
        };
        session.devices.values().map(view).collect()
    }

    pub(super) fn host_state(&self, host: &Host) -> HostState {
        if host.revoked {
            HostState::Revoked
        } else if let Some(until) = self.hosts.cooldown(host.id).filter(|until| *until > self.now) {
            HostState::Resting { until }
        } else if self.eligible.is_live(host.id) && !self.has_gone(host) {
            HostState::Live
        } else {
            HostState::Away
        }
    }

    /// Since when a host that isn't in contact has been away, at the least. The journal's note of it may be old.
    fn away_since(&self, host: &Host) -> Option<UnixMillis> {
        if self.host_state(host) == HostState::Live {
            return None;
        }
        let seen_at = self.hosts.session(host.id).map(|session| session.seen_at);
        let noted = host.last_known_at() + self.config.note_interval();
        let absent = noted.min(self.clock.started_at()).max(host.last_known_at());
        Some(seen_at.unwrap_or(absent))
    }

    /// Has it said that it ends, and nothing left to do?
    fn has_gone(&self, host: &Host) -> bool {
        host.live.is_empty() && self.hosts.session(host.id).is_some_and(Session::has_stopped)
    }

    /// Would any running job verify what a host comes to?
    fn is_verified(&self, host: HostId) -> bool {
        let mut running = self.state.jobs.values().filter(|job| job.is_running());
        running.any(|job| self.state.verified_quorum_for(job, host).is_some())
    }

    /// Why it is given nothing though there is work. One that isn't in contact asks for nothing.
    pub(super) fn idle_reason(&self, host: &Host) -> Option<IdleReason> {
        let is_live = self.host_state(host) == HostState::Live;
        idle_reason(self.state, self.index, self.hosts, host.id).filter(|_| is_live)
    }

    fn held_view(&self, lease: &Lease) -> HeldView {
        let unit = match lease.unit {
            UnitKey::Train { epoch, shard, from, .. } => {
                let from = if from == 0 { String::new() } else { format!(" from batch {from}") };
                let then: String = lease.then.iter().map(|shard| format!(", {shard}")).collect();
                format!("train epoch {} shard {shard}{from}{then}", epoch.0 + 1)
            }
            UnitKey::Evaluate { epoch, .. } => format!("evaluate epoch {}", epoch.0 + 1),
            UnitKey::Extra { name, .. } => {
                format!("evaluate epoch {} on the {} data", name.epoch.0 + 1, name.split.name())
            }
        };
        let deadline = self.leases.deadline(lease.id);
        let running = deadline.is_some_and(Deadline::is_running);
        let told = Some(self.leases.running_unit(lease.id)).filter(|_| running);
        HeldView {
            lease: lease.id,
            job: lease.unit.job(),
            trial: lease.unit.trial(),
            unit,
            running,
            age: self.now - lease.granted_at,
            usage: told.and_then(|told| told.usage),
            cpu_share: told
                .and_then(|told| told.cpu_share)
                .map(|held| self.cpu_share_view(lease, held)),
        }
    }

    /// The CPU share of a running unit. Only one policy has lists.
    fn cpu_share_view(&self, lease: &Lease, held: HeldCpuShare) -> CpuShareView {
        let job = self.state.jobs.get(&lease.unit.job());
        let policy = job.map(|job| job.spec.placement.cpu_shares);
        let has_lists = matches!(policy, Some(CpuSharePolicy::FlowCon(_)));
        CpuShareView { cpu_share: held.cpu_share, list: has_lists.then_some(held.carried.list) }
    }
}
