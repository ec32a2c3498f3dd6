//! Machines of a fake cloud that become hosts of a simulated server, and what happens to them: starts, notices, ends, and
//! that they power themselves off.

use super::mailbox::secret_of;
use sojourn_fake_cloud::{FakeCloud, FakeEvent, Happens};
use sojourn_protocol::{
    machines::MachineName,
    time::{Millis, UnixMillis},
};
use sojourn_sim::fleet::Site;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Between two tries to enrol.
const RETRY: Millis = Millis::from_secs(15);
/// From the end of a client until the machine is off.
const POWER_OFF: Millis = Millis::from_secs(5);
/// Between two looks for clients without a unit.
const LOOK: Millis = Millis::from_secs(60);

/// How a machine's client begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// The client ends after so long without a unit.
    pub exit_when_idle: Millis,
    /// The client gives up enrolling after so long.
    pub enrol_within: Millis,
    /// The client hears of notices.
    pub hears_notices: bool,
}

/// The machines of one buyer.
#[derive(Debug)]
pub struct Ground {
    /// The cloud that they are bought from.
    pub cloud: Arc<Mutex<FakeCloud>>,
    habits: Habits,
    groups: BTreeMap<String, usize>,
    /// Machines that have started and aren't hosts yet: since when, and when they try next.
    starting: BTreeMap<MachineName, (UnixMillis, UnixMillis, FakeEvent)>,
    /// Machines that are hosts, with the cloud's id.
    here: BTreeMap<MachineName, String>,
    /// Machines that power themselves off.
    off: BTreeSet<(UnixMillis, String)>,
    looked_at: UnixMillis,
}

impl Ground {
    /// Machines of this cloud. `groups`: the scenario's group of each type.
    #[must_use]
    pub fn new(cloud: FakeCloud, habits: Habits, groups: BTreeMap<String, usize>) -> Self {
        Self {
            cloud: Arc::new(Mutex::new(cloud)),
            habits,
            groups,
            starting: BTreeMap::new(),
            here: BTreeMap::new(),
            off: BTreeSet::new(),
            looked_at: UnixMillis(0),
        }
    }

    /// The cloud. Each call of it leaves it whole.
    pub fn lock(&self) -> MutexGuard<'_, FakeCloud> {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When something happens by itself.
    #[must_use]
    pub fn next_at(&self) -> Option<UnixMillis> {
        let tries = self.starting.values().map(|(_, at, _)| *at).min();
        let looks = (!self.here.is_empty()).then(|| self.looked_at + LOOK);
        let off = self.off.first().map(|(at, _)| *at);
        [self.lock().next_at(), tries, looks, off].into_iter().flatten().min()
    }

    /// Lets happen what is due.
    ///
    /// # Errors
    /// Why the run can't go on.
    pub fn pump(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String> {
        self.look_for_idle(now, site);
        while let Some((at, instance)) = self.off.first().filter(|(at, _)| *at <= now).cloned() {
            self.off.remove(&(at, instance.clone()));
            self.lock().shut_down_by_itself(now, &instance);
        }
        let events = self.lock().step(now);
        for event in events {
            match event.happens {
                Happens::Starts => {
                    self.starting.insert(event.machine.clone(), (now, now, event));
                }
                Happens::Noticed(left) if self.habits.hears_notices => {
                    site.noticed(&event.machine, left);
                }
                Happens::Noticed(_) => {}
                Happens::Ends(_) => {
                    self.starting.remove(&event.machine);
                    if self.here.remove(&event.machine).is_some() {
                        site.goes(&event.machine);
                    }
                }
            }
        }
        let due = self.starting.values().filter(|(_, at, _)| *at <= now);
        for (since, _, event) in due.cloned().collect::<Vec<_>>() {
            self.enrol(since, now, event, site)?;
        }
        Ok(())
    }

    /// A machine's client has ended: it powers off.
    pub fn exited(&mut self, now: UnixMillis, machine: &MachineName) {
        if let Some(instance) = self.here.get(machine) {
            self.off.insert((now + POWER_OFF, instance.clone()));
        }
    }

    fn enrol(
        &mut self,
        since: UnixMillis,
        now: UnixMillis,
        event: FakeEvent,
        site: &mut dyn Site,
    ) -> Result<(), String> {
        let machine = event.machine.clone();
        let group = self.groups.get(&event.pool.instance_type).copied();
        let group = group.ok_or_else(|| format!("no host is like {}", event.pool))?;
        match site.comes(&machine, group, &secret_of(&machine))? {
            Ok(()) => {
                self.starting.remove(&machine);
                self.here.insert(machine, event.instance);
            }
            Err(_) if now >= since + self.habits.enrol_within => {
                self.starting.remove(&machine);
                self.off.insert((now + POWER_OFF, event.instance));
            }
            Err(_) => {
                self.starting.insert(machine, (since, now + RETRY, event));
            }
        }
        Ok(())
    }

    fn look_for_idle(&mut self, now: UnixMillis, site: &mut dyn Site) {
        if now < self.looked_at + LOOK {
            return;
        }
        self.looked_at = now;
        for (machine, instance) in &self.here {
            let idle = site.idle_since(machine).map(|since| now - since);
            if idle.is_some_and(|idle| idle >= self.habits.exit_when_idle) {
                self.off.insert((now + POWER_OFF, instance.clone()));
            }
        }
    }
}
