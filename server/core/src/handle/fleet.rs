//! Who is there and what is left, kept up with what happens.

use crate::{
    contact::Slots,
    core::Core,
    schedule::{FleetPlace, Left, PACE_ONE, PlaceName, SPEED_ONE, look_after},
    state::{Change, Changes},
};
use sojourn_protocol::{
    ids::{HostId, JobId, TrialId},
    time::UnixMillis,
};

impl Core {
    /// A host was heard of, and may have other slots than before.
    pub(crate) fn renew_fleet(&mut self, host: HostId) {
        let Some(contact) = self.soft.contacts.get(&host) else { return };
        let revoked = self.state.hosts.get(&host).is_none_or(|host| host.revoked);
        let (estimates, share) = (&self.soft.schedule.estimates, self.reliability(host));
        let with_slots = contact.devices.values().filter(|slots| slots.count > 0 && !revoked);
        let speed = |slots: &Slots| {
            let device = &slots.device;
            let place = PlaceName { host, device: &device.name, flops: device.flops };
            reliable_speed(estimates.pace(place), share)
        };
        let known = self.soft.schedule.fleet.places(host);
        let is_known = |(slots, known): (&Slots, &FleetPlace)| {
            known.device == slots.device.name
                && (known.slots, known.class) == (slots.count, slots.device.numeric_class)
        };
        if with_slots.clone().count() == known.len() && with_slots.clone().zip(known).all(is_known)
        {
            let mut speeds = with_slots.clone().map(speed).zip(known);
            if speeds.any(|(speed, known)| speed != known.speed) {
                self.soft.schedule.fleet.set_speeds(host, with_slots.map(speed));
            }
            return;
        }
        let places = with_slots.map(|slots| FleetPlace {
            device: slots.device.name.clone(),
            slots: slots.count,
            class: slots.device.numeric_class,
            speed: speed(slots),
        });
        let places: Vec<FleetPlace> = places.collect();
        let look_at = look_after(self.now, self.config.lease_term);
        if self.soft.schedule.fleet.set(host, places, look_at) {
            self.soft.work_changed = true;
        }
    }

    /// The share of deadlines that a host may be expected to keep, in thousandths.
    pub(crate) fn reliability(&self, host: HostId) -> u64 {
        self.state.hosts.get(&host).map_or(1000, |host| host.reliability.share(self.now))
    }

    /// Finds hosts that haven't been heard of for long.
    pub(crate) fn look_at_fleet(&mut self) {
        let term = self.config.lease_term;
        for host in self.soft.schedule.fleet.due_for_a_look(self.now) {
            let seen = self.soft.contacts.get(&host).map_or(UnixMillis(0), |of| of.seen_at);
            let waits = self.soft.parked.waits(host);
            let seen = if waits { self.now } else { seen };
            let next = look_after(seen, term);
            if next > self.now {
                self.soft.schedule.fleet.there_until(host, next);
            } else if self.soft.schedule.fleet.leave(host) {
                self.soft.work_changed = true;
            }
        }
    }

    /// Takes in what an event, just folded, has changed of what is left.
    pub(crate) fn renew_schedule(&mut self, changes: &Changes) {
        for change in changes.iter() {
            match change {
                Change::Work { job, trial: None, .. } => self.rank_job(job),
                Change::Work { job, trial: Some(trial), .. } => self.rank_trial(job, trial),
                Change::LeaseGranted(_)
                | Change::LeaseClosed { .. }
                | Change::ResultSettled { .. }
                | Change::TrialEnded(..)
                | Change::Job(_)
                | Change::Host(_)
                | Change::Blob(_)
                | Change::WallTime => {}
            }
        }
    }

    /// Ranks the trials of all jobs: estimates have changed.
    pub(crate) fn rank_all(&mut self) {
        let jobs: Vec<JobId> = self.state.jobs.keys().copied().collect();
        for job in jobs {
            self.rank_job(job);
        }
    }

    /// Ranks all trials of a job.
    pub(crate) fn rank_job(&mut self, job: JobId) {
        let Some(known) = self.state.jobs.get(&job) else { return };
        self.soft.schedule.estimates.register(known);
        let trials: Vec<TrialId> = known.trials.iter().map(|trial| trial.id).collect();
        for trial in trials {
            self.rank_trial(job, trial);
        }
    }

    fn rank_trial(&mut self, job: JobId, trial: TrialId) {
        let Some(known) = self.state.trial(job, trial) else { return };
        let schedule = &mut self.soft.schedule;
        let ranks = schedule.ranks.entry(job).or_default();
        if known.is_running() && !known.chain.is_done() {
            let work = schedule.estimates.work_left(job, known);
            let at_once = match known.merging {
                None => 1,
                Some(_) => u64::try_from(known.hops_in_flight() + 1).unwrap_or(u64::MAX),
            };
            ranks.set(trial, Left { work, at_once }, known.is_runnable(), self.now);
        } else {
            ranks.remove(trial);
        }
        if ranks.is_empty() {
            schedule.ranks.remove(&job);
        }
    }
}

/// A place counts as slower by the part of deadlines that its host breaks: as often its units are done anew.
pub(crate) fn reliable_speed(pace: u64, share: u64) -> u64 {
    (speed_of(pace).saturating_mul(share) / 1000).max(1)
}

fn speed_of(pace: u64) -> u64 {
    let speed = u128::from(PACE_ONE) * u128::from(SPEED_ONE) / u128::from(pace.max(1));
    u64::try_from(speed).unwrap_or(u64::MAX).clamp(1, 1 << 44)
}
