//! The context that the parts of the daemon share: server, disk, trainers, and the owner's limits.

use crate::{
    api::Api,
    config::Timing,
    contact::Contact,
    control::UnusedName,
    error::ClientError,
    limits::{DataUsage, DiskWatch, LimitEnforcement, Owner},
    message::Message,
    storage::{
        cache::Cache,
        folder::{Folder, free_bytes},
        measurements::Measurements,
        outbox::Outbox,
        stores::Stores,
    },
    trainers::{devices::Devices, last_failure::LastFailure, runner::UnitRunner, usage::Usages},
    transfer::{Bandwidth, Fetcher},
};
use parking_lot::Mutex;
use sojourn_client_core::Event;
use sojourn_http::{CallError, Recovery};
use sojourn_protocol::{error::ErrorKind, ids::HostId};
use std::sync::Arc;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

/// The shared context of executors, the limits' loops and the control socket.
#[derive(Debug)]
pub(crate) struct Context<R> {
    pub(crate) timing: Timing,
    /// Failures are reported with the end of the trainer's log.
    pub(crate) sends_log: bool,
    pub(crate) server: ServerAccess,
    pub(crate) storage: Storage,
    pub(crate) trainers: Trainers<R>,
    /// The limits and commands of the machine's owner.
    pub(crate) owner: Owner,
    /// To the driver.
    pub(crate) messages: mpsc::UnboundedSender<Message>,
    /// The errors that end the daemon.
    pub(crate) fatal: mpsc::UnboundedSender<ClientError>,
    pub(crate) tasks: Mutex<JoinSet<()>>,
}

/// Access to the server.
#[derive(Debug)]
pub(crate) struct ServerAccess {
    /// This machine's id at the server.
    pub(crate) host: HostId,
    /// The name that isn't used, since the machine enrolled under another one.
    pub(crate) unused_name: Option<UnusedName>,
    /// The server's address, for people.
    pub(crate) url: String,
    pub(crate) api: Api,
    pub(crate) contact: Arc<Contact>,
    pub(crate) fetcher: Fetcher,
    /// Limits and measures the rates of transfers.
    pub(crate) bandwidth: Arc<Bandwidth>,
}

/// The data folder's contents.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) folder: Folder,
    pub(crate) cache: Arc<Cache>,
    pub(crate) outbox: Outbox,
    /// Measurements of units on each device.
    pub(crate) measurements: Measurements,
    /// The room on its disk.
    pub(crate) disk: DiskWatch,
    /// Counts the bytes of each month against its limit.
    pub(crate) usage: Arc<DataUsage>,
    /// The stores that this machine may be sent to.
    pub(crate) stores: Stores,
}

/// The machine's trainers.
#[derive(Debug)]
pub(crate) struct Trainers<R> {
    /// The devices that the slots compute on.
    pub(crate) devices: Devices<R>,
    /// Enforces the owner's limits on the trainers.
    pub(crate) enforcement: LimitEnforcement,
    pub(crate) last_failure: LastFailure,
    /// The resources that running units take of the machine.
    pub(crate) usages: Usages,
}

impl<R: UnitRunner> Context<R> {
    /// Bytes of memory that one unit on a device may take: a part of what the owner lends, and of what the machine has.
    pub(crate) fn memory(&self, device: &str) -> Option<u64> {
        self.trainers.devices.get(device)?.memory(self.owner.memory())
    }
}

impl<R> Context<R> {
    /// Sends an event to the agent.
    pub(crate) fn tell(&self, event: Event) {
        self.send(Message::Event(event));
    }

    /// Sends a message to the driver.
    pub(crate) fn send(&self, message: Message) {
        // Sending fails only while the daemon ends.
        let _ = self.messages.send(message);
    }

    /// Ends the daemon if a failure is permanent.
    pub(crate) fn note(&self, failure: &CallError) {
        if let Some(error) = self.fatal_error(failure) {
            self.end(error);
        }
    }

    /// Ends the daemon.
    pub(crate) fn end(&self, error: ClientError) {
        // Sending fails only while the daemon ends.
        let _ = self.fatal.send(error);
    }

    /// Starts a task that ends with the daemon.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    /// Stops every task, without waiting.
    pub(crate) fn abort_tasks(&self) {
        self.tasks.lock().abort_all();
    }

    /// Stops every task and waits until each has let go of what it held.
    pub(crate) async fn stop_tasks(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }

    /// Makes room on the disk for a unit's partial checkpoint and its result, which exist together for a moment.
    pub(crate) fn leave_room(&self, upload_bytes: u64) {
        if upload_bytes > 0 {
            self.storage.cache.leave_room(upload_bytes.saturating_mul(2), free_bytes);
        }
    }

    fn fatal_error(&self, failure: &CallError) -> Option<ClientError> {
        let reason = failure.to_string();
        match failure {
            CallError::Protocol { .. } => Some(ClientError::Protocol { reason }),
            // A server that was there is waited for, whatever its certificate has become.
            CallError::Untrusted { fault, .. }
                if fault.is_the_callers() && !self.server.contact.was_made() =>
            {
                Some(self.server.api.untrusted(fault))
            }
            CallError::Refused { error, .. } if failure.recovery() == Recovery::End => {
                Some(match error.kind {
                    ErrorKind::UnsupportedProtocol => ClientError::Protocol { reason },
                    _ if error.copied_identity => {
                        let identity = self.storage.folder.identity();
                        ClientError::Copied { identity }
                    }
                    _ if error.unknown_token => {
                        let identity = self.storage.folder.identity();
                        ClientError::Forgotten { reason, identity }
                    }
                    _ => {
                        let identity = self.storage.folder.identity();
                        ClientError::Revoked { reason, identity }
                    }
                })
            }
            _ => None,
        }
    }
}
