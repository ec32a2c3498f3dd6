//! The widest view: everything that the choice of a unit rests on.

use super::{eligibility::Eligibility, locality::Locality, planner::Planner};
use crate::{
    config::CoreConfig,
    cost::Cost,
    data::DataPlacement,
    hosts::Hosts,
    index::DerivedIndex,
    leases::{Leases, Occupancy},
    waiters::Waiters,
};
use sojourn_protocol::time::UnixMillis;
use sojourn_state::State;
use sojourn_workgen::Policy;

/// The view that chooses units for devices. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub struct Scheduler<'a> {
    /// The durable state.
    pub state: &'a State,
    /// The settings.
    pub config: &'a CoreConfig,
    /// Hosts in contact.
    pub hosts: &'a Hosts,
    /// Live leases.
    pub leases: &'a Leases,
    /// Data on hosts.
    pub data: &'a DataPlacement,
    /// Requests that wait.
    pub waiters: &'a Waiters,
    /// The derived index.
    pub index: &'a DerivedIndex,
    /// Estimates, plans and fair shares.
    pub planner: &'a Planner,
    /// The policy that assigns hops to hosts.
    pub policy: &'a dyn Policy,
    /// The time of the step.
    pub now: UnixMillis,
    /// How long things take.
    pub cost: Cost<'a>,
    /// When running work ends.
    pub occupancy: Occupancy<'a>,
    /// Which hosts may do a unit.
    pub eligible: Eligibility<'a>,
    /// How long fetches take.
    pub local: Locality<'a>,
}

impl<'a> Scheduler<'a> {
    /// The view over these parts.
    pub fn new(
        local: Locality<'a>,
        index: &'a DerivedIndex,
        planner: &'a Planner,
        policy: &'a dyn Policy,
    ) -> Self {
        let Locality { state, hosts, data, cost, occupancy, eligible } = local;
        let (Cost { config, now, .. }, leases) = (cost, occupancy.leases);
        let waiters = eligible.waiters;
        Self {
            state,
            config,
            hosts,
            leases,
            data,
            waiters,
            index,
            planner,
            policy,
            now,
            cost,
            occupancy,
            eligible,
            local,
        }
    }
}
