//! Carries out the agent's actions: starts executors, and stops those that are no longer needed.

use super::{Driver, Fetching, RunningUnit};
use crate::{
    executors::{
        calls, deliver, fetch,
        run::{self, Job, Stop},
    },
    trainers::{cpu_share::KeptCpuShare, runner::UnitRunner, watchdog::Watchdog},
};
use sojourn_client_core::{
    Action, AskId, BlobClass, Needs, Priority, ReleaseReason, SlotId, UploadStart,
};
use sojourn_http::{trace::UNITS, traced};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    ids::LeaseId,
    inventory::Inventory,
    trainer::ShardArrived,
    unit::Lease,
};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::{mpsc, oneshot, watch};

impl<R: UnitRunner> Driver<R> {
    /// Carries out actions, in this order. True where the agent has ended.
    pub(super) fn carry_out(&mut self, actions: Vec<Action>) -> bool {
        let mut has_ended = false;
        // Units that were stopped; their tasks may still run.
        let mut stopped: BTreeMap<LeaseId, oneshot::Receiver<()>> = BTreeMap::new();
        for action in actions {
            match action {
                Action::Ask(ask) => self.ask(ask),
                Action::Beat => {
                    let mut request = self.agent.heartbeat_request(&self.view);
                    for held in &mut request.holding {
                        held.usage = self.usage(held.lease);
                    }
                    let traced = traced!("heartbeat", None, otel.kind = "client");
                    let beat = calls::beat(Arc::clone(&self.context), request);
                    self.context.spawn(traced.run(beat));
                }
                Action::Report(lease) => self.report(lease),
                Action::Release(leases, reason) => self.release(leases, reason),
                Action::Fetch(blob, class, priority) => self.fetch(blob, class, priority),
                Action::CancelFetch(blob) => {
                    if let Some(fetching) = self.fetches.remove(&blob) {
                        fetching.task.abort();
                    }
                    self.view.forget_blob(&blob);
                }
                Action::Unpin(blob) => {
                    self.pins.remove(&blob);
                    self.view.forget_blob(&blob);
                }
                Action::Start(lease, slot) => self.start(lease, slot),
                Action::HandOver(lease, blob) => self.hand_over(lease, blob),
                Action::StopAfterBatch(lease) => self.stop(lease, Stop::AfterBatch),
                Action::StopNow(lease) => self.stop(lease, Stop::Now),
                Action::Kill(lease) => {
                    if let Some(unit) = self.running.remove(&lease) {
                        unit.task.abort();
                        stopped.insert(lease, unit.ended);
                        let span = self.traces.span(lease);
                        tracing::debug!(target: UNITS, parent: &span, lease = lease.0, "a unit is stopped");
                    }
                }
                Action::Upload(lease, start) => self.upload(lease, start),
                Action::DeleteResult(lease) => self.delete_result(lease, stopped.remove(&lease)),
                Action::Evict(blob) => self.context.storage.cache.evict(&[blob]),
                Action::SetCpuShares(cpu_shares) => self.set_cpu_shares(cpu_shares),
                Action::Exit => has_ended = true,
            }
        }
        let agent = &self.agent;
        self.view.retain(|lease| agent.lease(lease).is_some());
        has_ended
    }

    fn ask(&mut self, ask: AskId) {
        let inventory = self.inventory();
        let is_new = self.sent_inventory.as_ref() != Some(&inventory);
        let inventory = (is_new || self.agent.sends_inventory()).then_some(inventory);
        let request = self.agent.work_request(ask, inventory, &self.view);
        let limit = self.call_limit.filter(|_| request.demand.is_empty());
        let traced = traced!("ask", None, otel.name = "ask for work", otel.kind = "client");
        let task = calls::ask(Arc::clone(&self.context), ask, request, limit);
        self.context.spawn(traced.run(task));
    }

    fn inventory(&self) -> Inventory {
        let context = &self.context;
        let storage = &context.storage;
        let memory = context.owner.memory();
        Inventory {
            cached: storage.cache.data(),
            devices: context.trainers.devices.inventory(&storage.measurements, memory),
            client: env!("CARGO_PKG_VERSION").to_owned(),
            links: context.server.bandwidth.links(),
            cache: Some(storage.cache.limit()),
            disk_is_low: storage.disk.is_low(),
        }
    }

    fn release(&mut self, leases: Vec<LeaseId>, reason: ReleaseReason) {
        let count = leases.len();
        if self.call_limit.is_some() {
            self.given_back += count;
        }
        match &reason {
            ReleaseReason::Fault(reason) => {
                let seconds = self.agent.cooldown().map_or(0, |(left, _)| left.0 / 1_000_000);
                tracing::warn!(?leases, reason, seconds, "a unit is given back");
            }
            reason => tracing::info!(count, %reason, "units are given back"),
        }
        for lease in &leases {
            let span = self.traces.span(*lease);
            tracing::debug!(target: UNITS, parent: &span, lease = lease.0, %reason, "lease given back");
        }
        // A call for several leases is of one trace: that of the first.
        let parent = leases.first().and_then(|lease| self.traces.of(*lease));
        let traced = traced!("release", parent, otel.kind = "client", ?leases);
        let context = Arc::clone(&self.context);
        let task = calls::release(context, leases, reason, self.call_limit);
        self.context.spawn(traced.run(task));
    }

    fn fetch(&mut self, blob: BlobRef, class: BlobClass, priority: Priority) {
        let flight = self.context.server.fetcher.flight(blob.sha256);
        self.view.add_download(blob.sha256, Arc::clone(&flight));
        self.serial += 1;
        let serial = self.serial;
        if priority == Priority::Prefetch {
            tracing::debug!(blob = %blob.sha256.short(), "a shard is fetched ahead");
        }
        let lease = self.traces.oldest_with(&blob.sha256);
        if let Some(lease) = lease {
            self.units.receives(lease, flight.received());
        }
        let parent = lease.and_then(|lease| self.traces.of(lease));
        let (name, bytes) = (blob.sha256.short(), blob.bytes);
        let traced = traced!("fetch", parent, otel.kind = "client", blob = name, bytes = bytes);
        let context = Arc::clone(&self.context);
        let task = fetch::fetch(context, blob, class, flight, serial);
        let task = self.context.spawn(traced.run(task));
        self.fetches.insert(blob.sha256, Fetching { serial, task });
    }

    fn start(&mut self, lease: Box<Lease>, slot: SlotId) {
        let id = lease.id;
        let device = self.context.trainers.devices.get(&lease.device);
        let Some(trainer) = device.and_then(|device| device.trainers.get(slot.number)) else {
            return;
        };
        let needs = Needs::of(&lease.unit);
        let first = needs.first.iter().filter_map(|need| self.pinned(&need.blob.sha256));
        let files: BTreeMap<Digest, PathBuf> = first.collect();
        let coming = needs.later.iter().map(|need| need.blob.sha256).collect();
        let (stop, stops) = watch::channel(Stop::No);
        let (here, comes) = mpsc::unbounded_channel();
        let (ending, ended) = oneshot::channel();
        let watchdog = Arc::new(Watchdog::new(self.context.timing.standstill));
        let upload_bytes = lease.upload_bytes;
        let free = self.context.trainers.enforcement.threads();
        let pinned = lease.unit.context().pinned_threads;
        let threads = pinned.unwrap_or_else(|| free.load(Ordering::Relaxed));
        let device = lease.device.clone();
        let cpu_share = watch::Sender::new(KeptCpuShare::EQUAL);
        let job = Job {
            lease,
            trainer,
            files,
            coming,
            here: comes,
            stop: stops,
            cpu_share: cpu_share.subscribe(),
            watchdog: Arc::clone(&watchdog),
            ended: ending,
        };
        self.units.started(id);
        let traced = traced!("train", self.traces.of(id), lease = id.0);
        let task = run::run(Arc::clone(&self.context), job);
        let task = self.context.spawn(traced.run(task));
        let unit = RunningUnit {
            task,
            stop,
            here,
            watchdog,
            ended,
            upload_bytes,
            device,
            threads,
            cpu_share,
        };
        self.running.insert(id, unit);
    }

    fn pinned(&self, blob: &Digest) -> Option<(Digest, PathBuf)> {
        self.pins.get(blob).map(|pin| (*blob, pin.path().to_owned()))
    }

    fn hand_over(&mut self, lease: LeaseId, blob: Digest) {
        let Some((blob, path)) = self.pinned(&blob) else { return };
        let Some(unit) = self.running.get(&lease) else { return };
        // Sending fails only if the unit has ended.
        let _ = unit.here.send(ShardArrived { blob, path });
        if !self.agent.lease(lease).is_some_and(|lease| lease.is_blocked()) {
            unit.watchdog.waits(false);
        }
    }

    fn stop(&mut self, lease: LeaseId, so: Stop) {
        if let Some(unit) = self.running.get(&lease) {
            unit.stop.send_modify(|stop| *stop = so.max(*stop));
        }
    }

    fn upload(&mut self, lease: LeaseId, start: UploadStart) {
        let Some(attempt) = self.results.get(&lease).map(Arc::clone) else { return };
        let traced =
            traced!("upload", self.traces.of(lease), otel.kind = "client", lease = lease.0);
        let task = deliver::upload(Arc::clone(&self.context), attempt, start);
        self.deliveries.insert(lease, self.context.spawn(traced.run(task)));
    }

    fn report(&mut self, lease: LeaseId) {
        let Some(attempt) = self.results.get(&lease).map(Arc::clone) else { return };
        let traced =
            traced!("report", self.traces.of(lease), otel.kind = "client", lease = lease.0);
        let task = deliver::report(Arc::clone(&self.context), attempt);
        self.deliveries.insert(lease, self.context.spawn(traced.run(task)));
    }

    /// Deletes a final or partial result, once its unit's task has ended.
    fn delete_result(&mut self, lease: LeaseId, stopped: Option<oneshot::Receiver<()>>) {
        if let Some(delivery) = self.deliveries.remove(&lease) {
            delivery.abort();
        }
        self.results.remove(&lease);
        self.view.forget_lease(lease);
        let Some(ended) = stopped else {
            return self.context.storage.outbox.remove(lease);
        };
        let context = Arc::clone(&self.context);
        self.context.spawn(async move {
            // An error means that the sender was dropped, so the task has ended too.
            let _ = ended.await;
            context.storage.outbox.remove(lease);
        });
    }
}
