//! A fleet of one size: so many spot machines of one type, each replaced when it is lost, until the end of the job.

use super::{
    ground::Ground,
    mailbox::{secret_of, token_command},
    market::dollars_per_exaflop,
    setting::Setting,
};
use sojourn_fleet::cloud::{NewMachine, Order, Pool};
use sojourn_protocol::{
    machines::{MachineName, Market},
    money::MicroUsd,
    quantity::to_usize,
    time::{Millis, UnixMillis},
};
use sojourn_sim::fleet::{Machines, Site};

/// Between two looks at the fleet.
const LOOK: Millis = Millis::from_secs(60);
/// Machines of one order.
const MOST: usize = 200;

/// The fleet.
#[derive(Debug)]
pub(super) struct FixedFleet {
    pub(super) ground: Ground,
    machines: usize,
    /// The type's pools.
    pools: Vec<Pool>,
    bought: u64,
    look_at: UnixMillis,
    is_over: bool,
}

/// The type that computes most for its money at the beginning, at the mean price of its zones.
pub(super) fn cheapest_type(setting: &Setting) -> Option<String> {
    let world = &setting.world;
    let offers = world.offers(world.from());
    let mean = |name: &str| {
        let own = offers.quotes.iter().filter(|(pool, _)| pool.instance_type == name);
        let prices: Vec<u64> = own.filter_map(|(_, quote)| Some(quote.spot?.0)).collect();
        let count = sojourn_protocol::quantity::to_u64(prices.len());
        prices.iter().sum::<u64>().checked_div(count).map(MicroUsd)
    };
    let types = setting.file.types.iter().filter_map(|of| Some((of, mean(&of.name)?)));
    let costs = types.map(|(of, price)| (dollars_per_exaflop(price, of), &of.name));
    costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name.clone())
}

impl FixedFleet {
    /// A fleet of about so many slots.
    pub(super) fn new(ground: Ground, setting: &Setting, slots: u32) -> Result<Self, String> {
        let name = cheapest_type(setting).ok_or("no type is sold as spot machines")?;
        let of = setting.type_of(&name).ok_or("there is no such type")?;
        let pools = setting.world.pools().filter(|pool| pool.instance_type == name);
        Ok(Self {
            ground,
            machines: to_usize(slots.div_ceil(of.gpus.max(1)).max(1)),
            pools: pools.cloned().collect(),
            bought: 0,
            look_at: UnixMillis(0),
            is_over: false,
        })
    }

    fn look(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String> {
        self.look_at = now + LOOK;
        if site.all_ended() {
            let machines = self.ground.lock().machines(now).unwrap_or_default();
            let all: Vec<String> = machines.into_iter().map(|machine| machine.instance).collect();
            self.is_over = self.ground.lock().end(now, &all).is_ok();
            return Ok(());
        }
        let missing = self.machines.saturating_sub(self.ground.lock().alive()).min(MOST);
        if missing == 0 {
            return Ok(());
        }
        let world = std::sync::Arc::clone(self.ground.lock().world());
        self.pools.sort_by_key(|pool| (world.price(pool, now), pool.clone()));
        let mut machines = Vec::new();
        for _ in 0..missing {
            self.bought += 1;
            let name = format!("f-{}", self.bought);
            let name: MachineName = name.parse().map_err(str::to_owned)?;
            let token = site.ask(token_command(&name, Millis::from_secs(3600)))?;
            let enrolment_token = secret_of(&name);
            machines.extend(token.is_ok().then_some(NewMachine { name, enrolment_token }));
        }
        let (market, pools) = (Market::Spot, self.pools.clone());
        let order = Order { machines, market, pools, price_limit: MicroUsd(u64::MAX) };
        // What is missing is bought at the next look.
        let _bought = self.ground.lock().buy(now, &order);
        Ok(())
    }
}

impl Machines for FixedFleet {
    fn next_at(&self) -> Option<UnixMillis> {
        self.ground.next_at().into_iter().chain([self.look_at]).min()
    }

    fn act(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String> {
        self.ground.pump(now, site)?;
        // The whole fleet ends with the job.
        if now >= self.look_at || site.all_ended() && !self.is_over {
            self.look(now, site)?;
            self.ground.pump(now, site)?;
        }
        Ok(())
    }

    fn exited(&mut self, now: UnixMillis, machine: &MachineName) {
        self.ground.exited(now, machine);
    }

    fn is_done(&self) -> bool {
        self.is_over
    }
}
