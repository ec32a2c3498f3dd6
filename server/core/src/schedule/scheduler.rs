//! The widest view: everything that the choice of a unit rests on.

use super::{eligibility::Eligibility, locality::Locality, planner::Planner};
use crate::{
    config::CoreConfig,
    cost::{Cost, Occupancy},
    data::DataPlacement,
    dispatch::Waiters,
    hosts::Hosts,
    index::DerivedIndex,
    leases::Leases,
};
use sojourn_protocol::time::UnixMillis;
use sojourn_state::State;
use sojourn_workgen::Policy;

/// The view that chooses units for devices. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Scheduler<'a> {
    pub(crate) state: &'a State,
    pub(crate) config: &'a CoreConfig,
    pub(crate) hosts: &'a Hosts,
    pub(crate) leases: &'a Leases,
    pub(crate) data: &'a DataPlacement,
    pub(crate) waiters: &'a Waiters,
    pub(crate) index: &'a DerivedIndex,
    pub(crate) planner: &'a Planner,
    pub(crate) policy: &'a dyn Policy,
    pub(crate) now: UnixMillis,
    pub(crate) cost: Cost<'a>,
    pub(crate) occupancy: Occupancy<'a>,
    pub(crate) eligible: Eligibility<'a>,
    pub(crate) local: Locality<'a>,
}

impl<'a> Scheduler<'a> {
    pub(crate) fn new(
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
