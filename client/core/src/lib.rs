//! The decisions of a host about its leases: events in, actions out. No clock, no I/O, no randomness of its own. The daemon
//! carries the actions out with real transfers and trainers, the simulations in virtual time.
//!
//! ```
//! use sojourn_client_core::{Action, Agent, AgentConfig, DeviceSlots, Event, Micros, TransferView};
//! use sojourn_protocol::{digest::Digest, ids::LeaseId};
//! use std::sync::Arc;
//!
//! /// A host whose disk is empty.
//! struct Empty;
//! impl TransferView for Empty {
//!     fn has(&self, _: &Digest) -> bool { false }
//!     fn fetched(&self, _: &Digest) -> u64 { 0 }
//!     fn sent(&self, _: LeaseId) -> u64 { 0 }
//!     fn has_room(&self, _: u64) -> bool { true }
//!     fn capacity(&self) -> u64 { u64::MAX }
//! }
//!
//! let device = DeviceSlots { name: "cpu".to_owned(), slots: 2 };
//! let config = Arc::new(AgentConfig::new(vec![device]));
//! let mut agent = Agent::new(config, 7, Vec::new());
//! let actions = agent.start(Micros::ZERO, &Empty);
//! let [Action::Ask(ask)] = actions[..] else { panic!("it asks for work") };
//! let request = agent.work_request(ask, None, &Empty);
//! assert_eq!((request.demand[0].idle, request.demand[0].wanted), (2, 4));
//!
//! // It is told to end: the last request asks for nothing.
//! let actions = agent.handle(Micros::from_secs(1), Event::Shutdown, &Empty);
//! assert!(matches!(actions[..], [Action::Ask(_)]));
//! ```

mod action;
mod agent;
mod closed;
mod config;
mod cooldown;
mod cpu_shares;
mod data_budget;
mod delivery;
mod demand;
mod event;
mod fetch_order;
pub mod lease;
mod needs;
mod requests;
mod retry;
mod shutdown;
mod slots;
mod time;

pub use action::{Action, BlobClass, Priority, UploadStart};
pub use agent::Agent;
pub use closed::ClosedLeases;
pub use config::{AgentConfig, DeviceSlots};
pub use cpu_shares::UnitCpuShare;
pub use delivery::Delivery;
pub use demand::DeviceDemand;
pub use event::{
    AskId, CallError, CallResult, Event, OwnerEvent, ReleaseReason, ReportError, ResultFacts,
    StoredResult, TrainerState, TransferView, UnitError, UploadError, Uploaded,
};
pub use needs::{Need, Needs, batches_of, model_of};
pub use slots::{OUT_OF_USE, SlotId};
pub use time::Micros;
