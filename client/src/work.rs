//! Asks for work: one request that counts at a time, held open by the server; asked anew at once when a
//! slot becomes idle.

use crate::{ahead, host::Host, runner::UnitRunner};
use futures::future::{BoxFuture, FutureExt, OptionFuture};
use sojourn_http::{Backoff, CallError};
use sojourn_protocol::{
    api::{WorkAnswer, WorkRequest},
    inventory::{Demand, Inventory},
    quantity::SaturatingFrom as _,
    time::Millis,
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

/// The longest pause after answers that changed nothing and came at once.
const LONGEST_FRUITLESS: Duration = Duration::from_secs(5);

/// A request and what came of it.
type Exchange = BoxFuture<'static, (WorkRequest, Result<WorkAnswer, CallError>)>;

/// The loop's own memory.
struct Asker<R> {
    host: Arc<Host<R>>,
    /// The inventory of the last answered request.
    told: Option<Inventory>,
    /// Was the inventory asked for?
    send_inventory: bool,
    /// A request that a newer one has replaced; the server answers it, empty or not.
    older: Option<Exchange>,
    away: Backoff,
    fruitless: Backoff,
}

/// Asks for work for as long as the daemon runs.
pub(crate) async fn ask<R: UnitRunner>(host: Arc<Host<R>>) -> Infallible {
    let mut changes = host.table.subscribe();
    let mut asker = Asker {
        told: None,
        send_inventory: true,
        older: None,
        away: host.backoff(),
        fruitless: Backoff::new(LONGEST_FRUITLESS),
        host,
    };
    loop {
        asker.host.rest.over().await;
        asker.owner_runs(&mut changes).await;
        changes.mark_unchanged();
        let demand = asker.host.demand();
        if demand.iter().all(|demand| demand.wanted == 0) {
            asker.changed(&mut changes).await;
            continue;
        }
        asker.round(demand, &mut changes).await;
    }
}

impl<R: UnitRunner> Asker<R> {
    /// One request, until it is answered, fails, or is replaced because another slot is idle.
    async fn round(&mut self, demand: Vec<Demand>, changes: &mut watch::Receiver<()>) {
        let begun = Instant::now();
        let mut current = self.exchange(demand.clone());
        let (request, answer) = loop {
            tokio::select! {
                biased;
                answered = &mut current => break answered,
                () = self.changed(changes) => {
                    if more_idle(&self.host.demand(), &demand) || self.has_other_devices() {
                        self.older = Some(current);
                        return;
                    }
                }
            }
        };
        match answer {
            Ok(answer) => {
                self.away.reset();
                let ask_again = Duration::from_millis(answer.ask_again.0);
                let held_open = begun.elapsed() >= self.host.timing.wait / 2;
                if self.apply(&request, answer) || held_open {
                    // The server paces these: by having news, or by holding the request. A pause here
                    // would only be time in which nobody can give this host work.
                    self.fruitless.reset();
                    return;
                }
                let pause = ask_again.max(self.fruitless.next(None));
                self.pause(pause, changes).await;
            }
            Err(failure) => {
                self.host.note(&failure);
                self.host.contact.lost(&failure);
                self.host.contact.pause(&mut self.away, failure.retry_after()).await;
            }
        }
    }

    fn exchange(&self, demand: Vec<Demand>) -> Exchange {
        let host = Arc::clone(&self.host);
        let inventory = self.inventory();
        let send = self.send_inventory || self.told.as_ref() != Some(&inventory);
        let request = WorkRequest {
            demand,
            holding: host.table.holding(),
            reported: host.table.awaiting_end(),
            wait: Millis(u64::saturating_from(host.timing.wait.as_millis())),
            inventory: send.then_some(inventory),
        };
        async move {
            let answer = host.api.work(&request).await;
            (request, answer)
        }
        .boxed()
    }

    /// Does what an answer says. False where that was nothing.
    fn apply(&mut self, request: &WorkRequest, answer: WorkAnswer) -> bool {
        self.host.contact.made();
        if let Some(told) = &request.inventory {
            self.told = Some(told.clone());
        }
        self.send_inventory = answer.send_inventory;
        let obeyed = self.host.obey(&answer.drop, &answer.reports, &request.reported);
        let stopped = self.host.stop_early(&answer.stop);
        self.host.cache.evict(&answer.evict);
        ahead::fetch(&self.host, answer.fetch);
        let taken = self.host.take(answer.leases);
        obeyed || stopped || taken || (answer.send_inventory && request.inventory.is_none())
    }

    /// Has the owner changed what is lent, since the server was told?
    fn has_other_devices(&self) -> bool {
        let now = self.host.devices.memory(self.host.owner.memory());
        let told = self.told.as_ref();
        told.is_some_and(|told| !told.devices.iter().map(|device| device.memory).eq(now))
    }

    fn inventory(&self) -> Inventory {
        Inventory {
            cached: self.host.cache.data(),
            devices: self.host.devices.inventory(&self.host.measurements, self.host.owner.memory()),
            client: env!("CARGO_PKG_VERSION").to_owned(),
            links: self.host.lines.links(),
            cache: Some(self.host.cache.limit()),
        }
    }

    /// Waits, but not past the moment when a slot becomes idle.
    async fn pause(&mut self, length: Duration, changes: &mut watch::Receiver<()>) {
        if length.is_zero() {
            return;
        }
        let before = self.host.demand();
        let end = tokio::time::sleep(length);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                () = self.changed(changes) => {
                    if more_idle(&self.host.demand(), &before) {
                        return;
                    }
                }
            }
        }
    }

    /// Waits until the owner lets units compute, and bytes come.
    async fn owner_runs(&mut self, changes: &mut watch::Receiver<()>) {
        let host = Arc::clone(&self.host);
        let runs = async {
            host.volume.opened().await;
            host.owner.runs().await;
        };
        tokio::pin!(runs);
        loop {
            tokio::select! {
                biased;
                () = &mut runs => return,
                () = self.changed(changes) => {}
            }
        }
    }

    /// Waits until a lease changes; takes the answer to a replaced request meanwhile.
    async fn changed(&mut self, changes: &mut watch::Receiver<()>) {
        loop {
            tokio::select! {
                // The table, and with it the sender, lives as long as `self`.
                _ = changes.changed() => return,
                Some((request, answer)) = OptionFuture::from(self.older.as_mut()) => {
                    self.older = None;
                    match answer {
                        Ok(answer) => {
                            self.apply(&request, answer);
                        }
                        Err(failure) => self.host.note(&failure),
                    }
                }
            }
        }
    }
}

/// Has some device more idle slots than it had?
fn more_idle(now: &[Demand], before: &[Demand]) -> bool {
    now.iter().zip(before).any(|(now, before)| now.idle > before.idle)
}
