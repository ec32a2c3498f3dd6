//! The widest view: everything that the choice of a unit rests on.

use super::{eligibility::Eligibility, locality::Locality, planner::Planner};
use crate::{data::DataPlacement, hosts::Hosts, index::DerivedIndex, ledger::Ledger};
use sojourn_workgen::Policy;
use std::ops::Deref;

/// The view that chooses units for devices. It reads, and changes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Scheduler<'a> {
    pub(crate) local: Locality<'a>,
    pub(crate) index: &'a DerivedIndex,
    pub(crate) planner: &'a Planner,
    pub(crate) policy: &'a dyn Policy,
}

impl<'a> Deref for Scheduler<'a> {
    type Target = Locality<'a>;

    fn deref(&self) -> &Self::Target {
        &self.local
    }
}

impl<'a> Scheduler<'a> {
    /// The view of a handler.
    pub(crate) fn new(
        ledger: &'a Ledger<'_>,
        hosts: &'a Hosts,
        data: &'a DataPlacement,
        policy: &'a dyn Policy,
    ) -> Self {
        let local = Locality { eligible: Eligibility::new(ledger, hosts, data) };
        Self { local, index: ledger.index, planner: ledger.planner, policy }
    }
}
