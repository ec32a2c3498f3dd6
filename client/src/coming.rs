//! The blobs of a unit: those that it begins with, and the shards of further legs, which come while it runs.
//!
//! ```text
//!   base, scaling, first shard | second shard | third shard ...   over the line, in the order of the legs
//!                              '-- the unit begins -- waits, where it is faster than the line -- its end
//! ```
//!
//! Whatever comes is pinned until the unit has ended.

use crate::{
    cache::{Class, Pin},
    host::Host,
    runner::UnitRunner,
    transfer::Flight,
    trouble::Trouble,
    unit::{leave_room, model_of},
    watchdog::Watchdog,
};
use futures::{StreamExt, TryStreamExt, stream};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    reason::ReleaseReason,
    trainer::ShardArrived,
    unit::{Lease, Unit},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

/// Blobs of one unit that are fetched at once, or looked at in the cache.
const AT_ONCE: usize = 4;

/// Blobs in use, by digest.
pub(crate) type Pins = BTreeMap<Digest, Pin>;

/// What a unit needs, by when it does.
pub(crate) struct Needs {
    first: Vec<Need>,
    later: Vec<Need>,
}

/// A blob that a unit needs, and all who fetch it.
struct Need {
    blob: BlobRef,
    class: Class,
    flight: Arc<Flight>,
}

impl Needs {
    /// Those of a lease. Their bytes count from now on: one that another unit fetches is on its way for this one
    /// too.
    pub(crate) fn of<R: UnitRunner>(host: &Host<R>, lease: &Lease) -> Self {
        let model = model_of(&lease.unit);
        let mut first = lease.unit.blobs();
        let mut later = Vec::new();
        if let Unit::Train(hop) = &lease.unit {
            let further = hop.then.iter().map(|leg| leg.shard.blob);
            for blob in further.filter(|blob| *blob != hop.shard.blob) {
                if first.contains(&blob) {
                    first.retain(|other| *other != blob);
                    later.push(blob);
                }
            }
        }
        let need = |blob: BlobRef| {
            let class = if model == Some(blob) { Class::Checkpoint } else { Class::Data };
            Need { blob, class, flight: host.fetcher.flight(blob.sha256) }
        };
        let [first, later] = [first, later].map(|blobs| blobs.into_iter().map(need).collect());
        Self { first, later }
    }

    /// Fetches what the unit begins with.
    pub(crate) async fn first<R: UnitRunner>(
        &self,
        host: &Host<R>,
        lease: &Lease,
    ) -> Result<Pins, Trouble> {
        let all = self.first.iter().chain(&self.later);
        host.table.fetching(lease.id, all.map(|need| need.flight.fetched()).collect());
        let fetches: Vec<_> = self.first.iter().map(|need| fetch(host, need)).collect();
        let pins = stream::iter(fetches).buffer_unordered(AT_ONCE).try_collect().await;
        host.table.fetched(lease.id);
        pins
    }
}

async fn fetch<R: UnitRunner>(host: &Host<R>, need: &Need) -> Result<(Digest, Pin), Trouble> {
    let digest = need.blob.sha256;
    let _needed = (!host.cache.has(&digest)).then(|| host.ahead.give_way());
    let pin = host.fetcher.fetch(need.blob, need.class, &need.flight).await;
    pin.map(|pin| (digest, pin)).map_err(Trouble::of_fetch)
}

/// What comes while a unit runs.
pub(crate) struct Coming<'a, R> {
    host: &'a Host<R>,
    lease: &'a Lease,
    /// Its time doesn't pass while the unit waits.
    pub(crate) watchdog: &'a Watchdog,
    needs: Vec<Need>,
    files: UnboundedSender<ShardArrived>,
    state: Mutex<State>,
    failed: Notify,
}

#[derive(Default)]
struct State {
    here: Pins,
    /// The shard that the trainer waits for.
    awaited: Option<Digest>,
    /// Why the rest doesn't come.
    trouble: Option<Trouble>,
}

impl<'a, R: UnitRunner> Coming<'a, R> {
    /// What is left to come after the first, and where it is said that something has.
    pub(crate) fn new(
        host: &'a Host<R>,
        lease: &'a Lease,
        watchdog: &'a Watchdog,
        needs: Needs,
    ) -> (Self, UnboundedReceiver<ShardArrived>) {
        let (files, said) = unbounded_channel();
        let (needs, state, failed) = (needs.later, Mutex::default(), Notify::new());
        (Self { host, lease, watchdog, needs, files, state, failed }, said)
    }

    /// Its names.
    pub(crate) fn names(&self) -> BTreeSet<Digest> {
        self.needs.iter().map(|need| need.blob.sha256).collect()
    }

    /// Brings it; calls `all_here` when nothing is left to come. Where something can't be had, that is said, and
    /// the rest doesn't come.
    pub(crate) async fn bring(&self, all_here: impl FnOnce()) -> Infallible {
        let is_here = |need: &&Need| self.host.cache.has(&need.blob.sha256);
        let (cached, missing): (Vec<_>, Vec<_>) = self.needs.iter().partition(is_here);
        // Beside the others, so that what is here isn't deleted to make room for those.
        let cached: Vec<_> = cached.into_iter().map(|need| self.bring_one(need)).collect();
        let cached = stream::iter(cached).buffer_unordered(AT_ONCE).try_collect::<()>();
        let missing = async {
            let _needed = (!missing.is_empty()).then(|| self.host.ahead.give_way());
            // One at a time: the line belongs to the leg that is next.
            for need in missing {
                self.bring_one(need).await?;
            }
            Ok(())
        };
        let missing = async {
            tokio::select! {
                biased;
                brought = missing => brought,
                () = self.host.volume.over() => {
                    Err(Trouble::Unit(ReleaseReason::MonthlyBudget.to_string()))
                }
            }
        };
        match tokio::try_join!(cached, missing) {
            Ok(_) => all_here(),
            Err(trouble) => {
                self.lock().trouble = Some(trouble);
                self.failed.notify_one();
            }
        }
        pending().await
    }

    async fn bring_one(&self, need: &Need) -> Result<(), Trouble> {
        let (blob, pin) = fetch(self.host, need).await?;
        leave_room(self.host, self.lease);
        let path = pin.path().to_owned();
        let mut state = self.lock();
        state.here.insert(blob, pin);
        if state.awaited.take_if(|awaited| *awaited == blob).is_some() {
            self.watchdog.waits(false);
            self.host.table.awaits(self.lease.id, false);
        }
        // Nobody hears it only where the unit has ended.
        let _ = self.files.send(ShardArrived { blob, path });
        Ok(())
    }

    /// The trainer waits for a shard.
    pub(crate) fn awaited(&self, blob: Digest) {
        let mut state = self.lock();
        // It may have come while this was said.
        let waits = !state.here.contains_key(&blob);
        self.watchdog.waits(waits);
        if waits {
            tracing::debug!(lease = %self.lease.id, blob = %blob.short(), "the unit waits for a shard");
            state.awaited = Some(blob);
            self.host.table.awaits(self.lease.id, true);
        }
    }

    /// Ends when something can't be had.
    pub(crate) async fn fails(&self) {
        self.failed.notified().await;
    }

    /// Ends so too, and says why.
    pub(crate) async fn failed(&self) -> Trouble {
        loop {
            self.fails().await;
            if let Some(trouble) = self.trouble() {
                return trouble;
            }
        }
    }

    /// Why the rest doesn't come, where that is so; once.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.lock().trouble.take()
    }

    /// What has come.
    pub(crate) fn here(&self) -> Vec<Digest> {
        self.lock().here.keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
