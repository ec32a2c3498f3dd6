//! One buyer's cloud: what is bought, what happens to it, and what it costs.

use super::{
    config::CloudConfig,
    machine::{FakeEvent, FakeMachine, Happens, Stage},
    walk::{float, whole},
    world::{Fate, World},
};
use rand_chacha::ChaCha8Rng;
use sojourn_fleet::cloud::{
    Bought, CloudError, CloudMachine, Filled, NewMachine, Offers, Order, Pool,
};
use sojourn_protocol::{
    machines::{MachineEnd, MachineName, MachineReport, Market},
    money::MicroUsd,
    quantity::{to_u64, to_usize},
    seeds,
    time::{Millis, UnixMillis},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A cloud. All times that it is given must not go back.
#[derive(Debug)]
pub struct FakeCloud {
    world: Arc<World>,
    config: CloudConfig,
    seed: u64,
    /// By the cloud's ids.
    machines: BTreeMap<String, FakeMachine>,
    names: BTreeMap<MachineName, Token>,
    alive: BTreeSet<String>,
    /// The ids of machines that ended, with the time of each end; the last is the latest.
    ended: BTreeSet<(UnixMillis, String)>,
    /// The time of the next event of each machine that is alive, where it has one, with the machine's id.
    due: BTreeSet<(UnixMillis, String)>,
    /// The places of spot machines that haven't ended, by pool: their fates go by it.
    places: BTreeMap<Pool, BTreeSet<u32>>,
    /// The events that weren't returned yet.
    events: Vec<FakeEvent>,
    calls: u64,
}

/// The order with which a name was bought, and the cloud's id of the machine.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    market: Market,
    pools: Vec<Pool>,
    instance: String,
}

/// How a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Answered,
    /// The call is done, and its answer is lost.
    Lost,
}

impl FakeCloud {
    /// A cloud in a world. The seed is for boot times and faults; what the world does has its own.
    #[must_use]
    pub fn new(world: Arc<World>, config: CloudConfig, seed: u64) -> Self {
        Self {
            world,
            config,
            seed,
            machines: BTreeMap::new(),
            names: BTreeMap::new(),
            alive: BTreeSet::new(),
            ended: BTreeSet::new(),
            due: BTreeSet::new(),
            places: BTreeMap::new(),
            events: Vec::new(),
            calls: 0,
        }
    }

    /// The world that it is in.
    #[must_use]
    pub const fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Types and prices of now.
    ///
    /// # Errors
    /// [`CloudError::Throttled`] and [`CloudError::Away`], by chance.
    pub fn offers(&mut self, now: UnixMillis) -> Result<Offers, CloudError> {
        self.read()?;
        Ok(self.world.offers(now))
    }

    /// The spot price of a pool at a time that isn't later than now.
    ///
    /// # Errors
    /// See [`FakeCloud::offers`].
    pub fn price_at(
        &mut self,
        pool: &Pool,
        at: UnixMillis,
    ) -> Result<Option<MicroUsd>, CloudError> {
        self.read()?;
        Ok(self.world.price(pool, at))
    }

    /// All machines that are listed: new ones only after a while, and ended ones for a while.
    ///
    /// # Errors
    /// See [`FakeCloud::offers`].
    pub fn machines(&mut self, now: UnixMillis) -> Result<Vec<CloudMachine>, CloudError> {
        self.advance(now);
        self.read()?;
        let since = UnixMillis(now.0.saturating_sub(self.config.ended_listed.0));
        let ended = self.ended.range((since, String::new())..).map(|(_, instance)| instance);
        let all = self.alive.iter().chain(ended);
        let listed = all.filter_map(|instance| {
            let machine = self.machines.get(instance)?;
            (machine.listed_at <= now).then(|| machine.view(instance, now))
        });
        Ok(listed.collect())
    }

    /// Buys machines, as many as it has.
    ///
    /// # Errors
    /// See [`FakeCloud::offers`]; [`CloudError::TokenReused`] where a name was bought with another order, and
    /// [`CloudError::Refused`] where an order names no pool, or several regions.
    pub fn buy(&mut self, now: UnixMillis, order: &Order) -> Result<Filled, CloudError> {
        self.advance(now);
        let mut chance = self.call();
        let call = self.fails(&mut chance)?;
        let Some(first) = order.pools.first() else {
            return Err(CloudError::Refused("no pool was named".into()));
        };
        if order.pools.iter().any(|pool| pool.region != first.region) {
            return Err(CloudError::Refused("pools of several regions were named".into()));
        }
        let other = |machine: &NewMachine| {
            let token = self.names.get(&machine.name);
            token.is_some_and(|of| of.market != order.market || of.pools != order.pools)
        };
        if order.machines.iter().any(other) {
            return Err(CloudError::TokenReused);
        }
        let count = to_u64(order.machines.len());
        let most = match seeds::unit_f64(&mut chance) < self.config.faults.partial {
            true => whole(seeds::unit_f64(&mut chance) * float(count)),
            false => count,
        };
        let mut filled = Filled::default();
        for (n, machine) in (0..).zip(&order.machines) {
            if let Some(token) = self.names.get(&machine.name) {
                let of = self.machines.get(&token.instance);
                let pool = of.map_or_else(|| first.clone(), |of| of.pool.clone());
                let (name, instance) = (machine.name.clone(), token.instance.clone());
                filled.bought.push(Bought { name, instance, pool });
                continue;
            }
            let bought = match n < most {
                true => self.buy_one(now, order, &machine.name, &mut chance),
                false => Err(CloudError::NoCapacity { pools: order.pools.clone() }),
            };
            match bought {
                Ok(bought) => filled.bought.push(bought),
                Err(error) => filled.failure = Some(error),
            }
        }
        match call {
            Call::Answered => Ok(filled),
            Call::Lost => Err(CloudError::Away("the answer was lost".into())),
        }
    }

    /// Ends machines. Ids that it doesn't know, and machines that have ended, are no error.
    ///
    /// # Errors
    /// See [`FakeCloud::offers`].
    pub fn end(&mut self, now: UnixMillis, instances: &[String]) -> Result<(), CloudError> {
        self.advance(now);
        let mut chance = self.call();
        let call = self.fails(&mut chance)?;
        for instance in instances {
            self.end_one(now, instance, MachineEnd::Released);
        }
        match call {
            Call::Answered => Ok(()),
            Call::Lost => Err(CloudError::Away("the answer was lost".into())),
        }
    }

    /// The cloud takes a machine back, whatever was to become of it: at once, or so long after it was told.
    pub fn take_back(&mut self, now: UnixMillis, instance: &str, told: Option<Millis>) {
        self.advance(now);
        let Some(machine) = self.machines.get_mut(instance).filter(|of| of.ended.is_none()) else {
            return;
        };
        if let Some((at, _)) = machine.next() {
            self.due.remove(&(at, instance.to_owned()));
        }
        let taken_at = Some(now + told.unwrap_or_default());
        machine.fate = Fate { taken_at, noticed_at: told.map(|_| now) };
        if machine.next == Stage::Last && told.is_some() {
            machine.next = Stage::Work;
        }
        if let Some((at, _)) = machine.next() {
            self.due.insert((at, instance.to_owned()));
        }
        self.advance(now);
    }

    /// A machine powers itself off.
    pub fn shut_down_by_itself(&mut self, now: UnixMillis, instance: &str) {
        self.advance(now);
        self.end_one(now, instance, MachineEnd::Itself);
    }

    /// When something happens next by itself.
    #[must_use]
    pub fn next_at(&self) -> Option<UnixMillis> {
        let told = self.events.first().map(|event| event.at);
        told.into_iter().chain(self.due.first().map(|(at, _)| *at)).min()
    }

    /// The events up to now since the last call, in the order of time.
    pub fn step(&mut self, now: UnixMillis) -> Vec<FakeEvent> {
        self.advance(now);
        std::mem::take(&mut self.events)
    }

    /// Machines that haven't ended.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.alive.len()
    }

    /// Each machine that ever was, as its owner pays for it, in the order of their launch.
    #[must_use]
    pub fn bill(&self) -> Vec<MachineReport> {
        let reports = self.machines.iter().map(|(instance, of)| of.report(instance));
        let mut reports: Vec<MachineReport> = reports.collect();
        reports.sort_by(|a, b| (a.launched_at, &a.name).cmp(&(b.launched_at, &b.name)));
        reports
    }

    /// The cost of all machines up to now, to the millionth of a dollar.
    #[must_use]
    pub fn cost(&self, now: UnixMillis) -> MicroUsd {
        self.machines.iter().map(|(instance, of)| of.report(instance).cost(now)).sum()
    }

    /// The dollars an hour that all machines together cost now.
    #[must_use]
    pub fn rate(&self) -> MicroUsd {
        self.alive.iter().filter_map(|id| self.machines.get(id)).map(|machine| machine.price).sum()
    }

    /// Virtual processors of all machines that haven't ended.
    #[must_use]
    pub fn vcpus(&self) -> u64 {
        let alive = self.alive.iter().filter_map(|id| self.machines.get(id));
        alive.map(|machine| u64::from(machine.vcpus)).sum()
    }

    fn read(&mut self) -> Result<(), CloudError> {
        let mut chance = self.call();
        match self.fails(&mut chance)? {
            Call::Answered => Ok(()),
            Call::Lost => Err(CloudError::Away("the answer was lost".into())),
        }
    }

    /// Counts a call, whose chance this is.
    fn call(&mut self) -> ChaCha8Rng {
        self.calls += 1;
        seeds::stream("fake-call", &[self.seed, self.calls])
    }

    fn fails(&self, chance: &mut ChaCha8Rng) -> Result<Call, CloudError> {
        let faults = self.config.faults;
        let drawn = seeds::unit_f64(chance);
        if drawn < faults.throttled {
            return Err(CloudError::Throttled);
        }
        if drawn < faults.throttled + faults.away {
            return Err(CloudError::Away("no answer".into()));
        }
        let lost = drawn < faults.throttled + faults.away + faults.lost;
        Ok(if lost { Call::Lost } else { Call::Answered })
    }

    fn buy_one(
        &mut self,
        now: UnixMillis,
        order: &Order,
        name: &MachineName,
        chance: &mut ChaCha8Rng,
    ) -> Result<Bought, CloudError> {
        let mut failure = CloudError::NoCapacity { pools: order.pools.clone() };
        for pool in &order.pools {
            match self.room(now, order, pool) {
                Ok(price) => return Ok(self.launch(now, order, name, pool, price, chance)),
                Err(Some(error)) => failure = error,
                Err(None) => {}
            }
        }
        Err(failure)
    }

    /// The price in a pool where there is room; an error where there is a better one than no capacity.
    fn room(
        &self,
        now: UnixMillis,
        order: &Order,
        pool: &Pool,
    ) -> Result<MicroUsd, Option<CloudError>> {
        let world = &self.world;
        let (price, capacity) = match order.market {
            Market::Spot => (world.price(pool, now), world.capacity(pool, now)),
            Market::OnDemand => (world.on_demand(pool), world.on_demand_capacity(pool)),
        };
        let price = price.ok_or_else(|| CloudError::Refused(format!("there is no pool {pool}")))?;
        let running = self.running(|of| of.market == order.market && of.pool == *pool).count();
        if price > order.price_limit || running >= to_usize(capacity) {
            return Err(None);
        }
        let quota = self.config.quotas.get(&(pool.region.clone(), order.market));
        let of_region =
            |of: &&FakeMachine| of.market == order.market && of.pool.region == pool.region;
        let used: u32 = self.running(|of| of_region(&of)).map(|machine| machine.vcpus).sum();
        match quota {
            Some(quota) if used.saturating_add(self.vcpus_of(pool)) > *quota => {
                let message = format!("{used} of {quota} virtual processors run");
                let (region, market) = (pool.region.clone(), order.market);
                Err(Some(CloudError::Quota { region, market, message }))
            }
            _ => Ok(price),
        }
    }

    fn running(&self, which: impl Fn(&FakeMachine) -> bool) -> impl Iterator<Item = &FakeMachine> {
        let alive = self.alive.iter().filter_map(|id| self.machines.get(id));
        alive.filter(move |machine| which(machine))
    }

    fn vcpus_of(&self, pool: &Pool) -> u32 {
        self.world.instance_type(&pool.instance_type).map_or(0, |of| of.vcpus)
    }

    fn launch(
        &mut self,
        now: UnixMillis,
        order: &Order,
        name: &MachineName,
        pool: &Pool,
        price: MicroUsd,
        chance: &mut ChaCha8Rng,
    ) -> Bought {
        let number = to_u64(self.machines.len());
        let instance =
            format!("i-{number:06x}{:011x}", seeds::derive("id", &[self.seed, number]) >> 20);
        let (place, fate) = match order.market {
            Market::OnDemand => (None, Fate { taken_at: None, noticed_at: None }),
            Market::Spot => {
                let place = self.take_place(pool);
                (Some(place), self.world.fate(pool, place, now))
            }
        };
        let (least, most) = self.config.boot;
        let between = float((most.0).saturating_sub(least.0)) * seeds::unit_f64(chance);
        let listed = float(self.config.listed_after.0) * seeds::unit_f64(chance);
        let machine = FakeMachine {
            name: name.clone(),
            pool: pool.clone(),
            market: order.market,
            vcpus: self.vcpus_of(pool),
            price,
            on_demand_price: self.world.on_demand(pool).unwrap_or(price),
            launched_at: now,
            starts_at: now + Millis(least.0.saturating_add(whole(between))),
            listed_at: now + Millis(whole(listed)),
            place,
            fate,
            next: Stage::Boot,
            ended: None,
        };
        if let Some((at, _)) = machine.next() {
            self.due.insert((at, instance.clone()));
        }
        self.machines.insert(instance.clone(), machine);
        self.alive.insert(instance.clone());
        let token =
            Token { market: order.market, pools: order.pools.clone(), instance: instance.clone() };
        self.names.insert(name.clone(), token);
        Bought { name: name.clone(), instance, pool: pool.clone() }
    }

    /// The first place of a pool that is free.
    fn take_place(&mut self, pool: &Pool) -> u32 {
        let taken = self.places.entry(pool.clone()).or_default();
        let free = (0..u32::MAX).find(|place| !taken.contains(place)).unwrap_or(u32::MAX);
        taken.insert(free);
        free
    }

    /// Lets happen what happens by itself up to now.
    fn advance(&mut self, now: UnixMillis) {
        while let Some((at, _)) = self.due.first().filter(|(at, _)| *at <= now) {
            let at = *at;
            let Some((_, instance)) = self.due.pop_first() else { return };
            let Some(machine) = self.machines.get_mut(&instance) else { continue };
            let Some((_, happens)) = machine.next() else { continue };
            match happens {
                Happens::Starts => machine.next = Stage::Work,
                Happens::Noticed(_) => machine.next = Stage::Last,
                Happens::Ends(end) => {
                    self.end_one(at, &instance, end);
                    continue;
                }
            }
            if let Some((next, _)) = machine.next() {
                self.due.insert((next, instance.clone()));
            }
            self.tell(at, &instance, happens);
        }
    }

    fn end_one(&mut self, at: UnixMillis, instance: &str, end: MachineEnd) {
        if !self.alive.remove(instance) {
            return;
        }
        let Some(machine) = self.machines.get_mut(instance) else { return };
        if let Some((next, _)) = machine.next() {
            self.due.remove(&(next, instance.to_owned()));
        }
        machine.ended = Some((at, end));
        if let Some((place, of)) = machine.place.zip(self.places.get_mut(&machine.pool)) {
            of.remove(&place);
        }
        self.ended.insert((at, instance.to_owned()));
        self.tell(at, instance, Happens::Ends(end));
    }

    fn tell(&mut self, at: UnixMillis, instance: &str, happens: Happens) {
        let Some(machine) = self.machines.get(instance) else { return };
        let (machine, pool) = (machine.name.clone(), machine.pool.clone());
        self.events.push(FakeEvent { at, machine, instance: instance.to_owned(), pool, happens });
    }
}
