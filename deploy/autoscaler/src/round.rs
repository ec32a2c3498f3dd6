//! The reports to the server on machines: the cloud's list against what the server knows. Pure.
//!
//! The server knows a machine from its first report on. If a process buys a machine and stops before reporting it, the next
//! process finds the machine by its tags and reports it.

use sojourn_fleet::{
    cloud::{CloudMachine, MachineState, Offers, Pool},
    planner::{Action, Memory},
    settings::Settings,
};
use sojourn_protocol::{
    machines::{CostsView, MachineEnd, MachineName, MachineReport, Market},
    money::MicroUsd,
    time::{Millis, UnixMillis},
};
use std::collections::{BTreeMap, BTreeSet};

/// Prices that are asked for in one round.
const MAX_QUESTIONS: usize = 20;
/// Machines that ended longer ago are forgotten: no cloud lists them so long.
const FORGET: Millis = Millis::from_secs(24 * 3600);

/// The ledger of machines as they were reported to the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MachineLedger {
    settings: Settings,
    reported: BTreeMap<MachineName, MachineReport>,
    /// Prices at launch, as the cloud says them.
    prices: BTreeMap<MachineName, MicroUsd>,
    /// Machines whose price the cloud doesn't say.
    unknown: BTreeSet<MachineName>,
    /// Why we have ended machines.
    causes: BTreeMap<MachineName, MachineEnd>,
    loaded: bool,
}

/// A machine whose price at launch is to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) name: MachineName,
    pub(crate) pool: Pool,
    pub(crate) at: UnixMillis,
}

impl MachineLedger {
    /// The ledger of a fleet, which has nothing yet.
    pub(crate) const fn new(settings: Settings) -> Self {
        Self {
            settings,
            reported: BTreeMap::new(),
            prices: BTreeMap::new(),
            unknown: BTreeSet::new(),
            causes: BTreeMap::new(),
            loaded: false,
        }
    }

    /// Does it know what the server knows?
    pub(crate) const fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// Loads the server's records of this fleet's machines. Other fleets' machines are left out: this fleet's cloud doesn't list
    /// them, so they would seem to have ended.
    pub(crate) fn load(&mut self, costs: &CostsView) {
        let machines = costs.machines.iter().map(|view| &view.machine);
        let own = machines.filter(|machine| {
            self.settings.names(&machine.name)
                || self.unnamed(&machine.instance).as_ref() == Some(&machine.name)
        });
        self.reported = own.map(|machine| (machine.name.clone(), machine.clone())).collect();
        self.loaded = true;
    }

    /// The spot prices at launch that are still to be asked for; on-demand prices are in the offers. Live machines come first.
    /// Ended machines are included because they may have been reported at too high a price.
    pub(crate) fn questions(&self, machines: &[CloudMachine]) -> Vec<Question> {
        let named = self.by_ledger_name(machines);
        let open = named.into_iter().filter(|(name, machine)| {
            machine.market == Market::Spot
                && !self.prices.contains_key(name)
                && !self.unknown.contains(name)
        });
        let (alive, ended): (Vec<_>, Vec<_>) = open.partition(|(_, machine)| is_alive(machine));
        let questions = alive.into_iter().chain(ended).map(|(name, machine)| Question {
            name,
            pool: machine.pool.clone(),
            at: machine.launched_at,
        });
        questions.take(MAX_QUESTIONS).collect()
    }

    /// Records the cloud's answer. If the cloud has no price, the current one in the offers is used.
    pub(crate) fn answer(&mut self, question: &Question, price: Option<MicroUsd>) {
        match price {
            Some(price) => {
                self.prices.insert(question.name.clone(), price);
            }
            None => {
                self.unknown.insert(question.name.clone());
            }
        }
    }

    /// The prices of machines that the planner is to know.
    pub(crate) fn set_prices(
        &self,
        machines: &[CloudMachine],
        offers: &Offers,
        memory: &mut Memory,
    ) {
        for (name, machine) in self.by_ledger_name(machines) {
            if !is_alive(machine) {
                continue;
            }
            // Without an exact price, the price in the memory stays; if there is none, the last reported one is set, or the
            // current one if the cloud has none.
            let price = self.exact(&name, machine, offers).or_else(|| {
                let known = memory.price(&name).is_some();
                let guess = || self.reported.get(&name).map(|told| told.price);
                let guess = || guess().or_else(|| self.guess(&name, machine, offers));
                if known { None } else { guess() }
            });
            if let Some(price) = price {
                memory.set_price(&name, price);
            }
        }
    }

    /// The price at launch, where it is known for sure.
    fn exact(
        &self,
        name: &MachineName,
        machine: &CloudMachine,
        offers: &Offers,
    ) -> Option<MicroUsd> {
        match machine.market {
            Market::Spot => self.prices.get(name).copied(),
            Market::OnDemand => offers.quotes.get(&machine.pool).map(|quote| quote.on_demand),
        }
    }

    /// The price of now, of a machine of which the cloud says no other.
    fn guess(
        &self,
        name: &MachineName,
        machine: &CloudMachine,
        offers: &Offers,
    ) -> Option<MicroUsd> {
        let quote = offers.quotes.get(&machine.pool)?;
        self.unknown.contains(name).then(|| quote.spot.unwrap_or(quote.on_demand))
    }

    /// Why machines end that these actions end.
    pub(crate) fn note(&mut self, action: &Action) {
        let (machine, cause) = match action {
            Action::Buy(_) => return,
            Action::Drain { machine, .. } => (machine, MachineEnd::Released),
            Action::End { machine, reason } => {
                let failed = reason.is_failure();
                (machine, if failed { MachineEnd::Failed } else { MachineEnd::Released })
            }
        };
        let name = machine.name.clone().or_else(|| self.unnamed(&machine.instance));
        if let Some(name) = name {
            self.causes.insert(name, cause);
        }
    }

    /// The reports that the server is to get: of machines that it doesn't know, that have ended, or whose price is known better
    /// now.
    pub(crate) fn reports(
        &self,
        machines: &[CloudMachine],
        offers: &Offers,
        memory: &Memory,
        now: UnixMillis,
    ) -> Vec<MachineReport> {
        let visible = self.settings.times.visible;
        let named = self.by_ledger_name(machines);
        let mut reports = Vec::new();
        for (name, machine) in &named {
            let told = self.reported.get(name);
            if let Some(report) = self.report(name, machine, told, offers, memory, now)
                && told != Some(&report)
            {
                reports.push(report);
            }
        }
        // What the cloud doesn't list any more has ended, unless it is so new that it isn't listed yet.
        for (name, told) in &self.reported {
            if told.ended_at.is_none()
                && !named.contains_key(name)
                && now >= told.launched_at + visible
            {
                let by_us = self.causes.get(name).copied();
                let taken = if told.market == Market::Spot {
                    MachineEnd::Interrupted
                } else {
                    MachineEnd::Itself
                };
                let end = Some(by_us.unwrap_or(taken));
                reports.push(MachineReport { ended_at: Some(now), end, ..told.clone() });
            }
        }
        reports
    }

    fn report(
        &self,
        name: &MachineName,
        machine: &CloudMachine,
        told: Option<&MachineReport>,
        offers: &Offers,
        memory: &Memory,
        now: UnixMillis,
    ) -> Option<MachineReport> {
        let quote = offers.quotes.get(&machine.pool);
        let on_demand =
            told.map(|told| told.on_demand_price).or(quote.map(|quote| quote.on_demand));
        let price = match machine.market {
            Market::Spot => self.prices.get(name).copied(),
            Market::OnDemand => on_demand,
        };
        let price = price
            .or(told.map(|told| told.price))
            .or_else(|| memory.price(name))
            .or_else(|| self.guess(name, machine, offers))
            .or(on_demand)?;
        let (ended_at, end) = if is_alive(machine) {
            (None, None)
        } else {
            let known = told.and_then(|told| told.ended_at);
            let cause = self.causes.get(name).copied();
            let end = machine.end.filter(|end| *end != MachineEnd::Itself);
            let end = end.or(cause).or(told.and_then(|told| told.end)).or(machine.end);
            let end = end.unwrap_or(MachineEnd::Itself);
            (Some(machine.ended_at.or(known).unwrap_or(now).max(machine.launched_at)), Some(end))
        };
        Some(MachineReport {
            name: name.clone(),
            instance: machine.instance.clone(),
            instance_type: machine.pool.instance_type.clone(),
            zone: machine.pool.zone.clone(),
            market: machine.market,
            price,
            on_demand_price: on_demand.unwrap_or(price),
            launched_at: machine.launched_at,
            ended_at,
            end,
        })
    }

    /// The server has taken these.
    pub(crate) fn reported(&mut self, reports: Vec<MachineReport>, now: UnixMillis) {
        for report in reports {
            self.reported.insert(report.name.clone(), report);
        }
        let is_old = |report: &MachineReport| report.ended_at.is_some_and(|at| now - at > FORGET);
        self.reported.retain(|_, report| !is_old(report));
        let reported = &self.reported;
        let ended = |name: &MachineName| reported.get(name).is_some_and(|r| r.ended_at.is_some());
        self.causes.retain(|name, _| !ended(name));
        self.unknown.retain(|name| reported.contains_key(name));
        self.prices.retain(|name, _| reported.contains_key(name));
    }

    /// The name under which a machine without a name of its own is in the ledger: it costs too.
    fn unnamed(&self, instance: &str) -> Option<MachineName> {
        format!("unnamed-{}-{instance}", self.settings.prefix).parse().ok()
    }

    /// Machines by their names in the ledger. The first of several with one name has it.
    fn by_ledger_name<'a>(
        &self,
        machines: &'a [CloudMachine],
    ) -> BTreeMap<MachineName, &'a CloudMachine> {
        let mut sorted: Vec<&CloudMachine> = machines.iter().collect();
        sorted.sort_by_key(|machine| (machine.launched_at, &machine.instance));
        let mut named = BTreeMap::new();
        for machine in sorted {
            let own = machine.name.clone().filter(|name| !named.contains_key(name));
            if let Some(name) = own.or_else(|| self.unnamed(&machine.instance)) {
                named.entry(name).or_insert(machine);
            }
        }
        named
    }
}

fn is_alive(machine: &CloudMachine) -> bool {
    matches!(machine.state, MachineState::Pending | MachineState::Running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_fleet::{
        cloud::{InstanceType, Quote},
        limits::Limits,
    };
    use sojourn_protocol::machines::MachineView;

    fn offers() -> Offers {
        let mut offers = Offers::default();
        let kind = InstanceType { name: "c".into(), vcpus: 2, memory: 1, gpus: 0, gpu_memory: 0 };
        offers.types.insert("c".into(), kind);
        let quote = Quote { spot: Some(MicroUsd(30)), on_demand: MicroUsd(100) };
        offers.quotes.insert(pool(), quote);
        offers
    }

    fn pool() -> Pool {
        Pool { region: "r".into(), zone: "ra".into(), instance_type: "c".into() }
    }

    fn machine(name: &str) -> CloudMachine {
        CloudMachine {
            name: name.parse().ok(),
            instance: format!("i-{name}"),
            pool: pool(),
            market: Market::Spot,
            state: MachineState::Running,
            launched_at: UnixMillis(1000),
            ended_at: None,
            end: None,
        }
    }

    /// The ledger of the fleet `m`, whose machines are listed after a tenth of a second at most.
    fn ledger() -> MachineLedger {
        let limits = Limits { machines: 4, vcpus: None, hourly: None, total: None, job: None };
        let mut settings = Settings::new(limits);
        settings.times.visible = Millis(100);
        MachineLedger::new(settings)
    }

    fn reports(ledger: &MachineLedger, machines: &[CloudMachine], now: u64) -> Vec<MachineReport> {
        ledger.reports(machines, &offers(), &Memory::default(), UnixMillis(now))
    }

    #[test]
    fn a_machine_is_reported_once_and_again_when_something_changes() {
        let mut ledger = ledger();
        let mut all = [machine("m-1")];
        let questions = ledger.questions(&all);
        assert_eq!(questions.len(), 1);
        ledger.answer(&questions[0], Some(MicroUsd(28)));
        assert!(ledger.questions(&all).is_empty());
        let first = reports(&ledger, &all, 2000);
        assert_eq!((first[0].price, first[0].on_demand_price), (MicroUsd(28), MicroUsd(100)));
        ledger.reported(first, UnixMillis(2000));
        assert!(reports(&ledger, &all, 3000).is_empty());
        all[0].state = MachineState::Ended;
        all[0].ended_at = Some(UnixMillis(3500));
        all[0].end = Some(MachineEnd::Interrupted);
        let end = reports(&ledger, &all, 4000);
        assert_eq!(
            (end[0].ended_at, end[0].end),
            (Some(UnixMillis(3500)), Some(MachineEnd::Interrupted))
        );
        ledger.reported(end, UnixMillis(4000));
        assert!(reports(&ledger, &all, 5000).is_empty() && reports(&ledger, &[], 5000).is_empty());
    }

    #[test]
    fn what_isnt_listed_any_more_has_ended_but_not_what_isnt_listed_yet() {
        let mut ledger = ledger();
        let told = reports(&ledger, &[machine("m-1")], 1000);
        ledger.reported(told, UnixMillis(1000));
        assert!(reports(&ledger, &[], 1099).is_empty());
        let end = reports(&ledger, &[], 1100);
        assert_eq!(
            (end[0].ended_at, end[0].end),
            (Some(UnixMillis(1100)), Some(MachineEnd::Interrupted))
        );
    }

    #[test]
    fn a_machine_without_a_name_of_its_own_costs_too() {
        let mut second = machine("m-1");
        second.instance = "i-second".into();
        second.launched_at = UnixMillis(2000);
        let mut nameless = machine("m-2");
        nameless.name = None;
        let told = reports(&ledger(), &[second, nameless, machine("m-1")], 3000);
        let names: Vec<_> =
            told.iter().map(|report| (report.name.as_str(), report.instance.as_str())).collect();
        assert_eq!(
            names,
            [("m-1", "i-m-1"), ("unnamed-m-i-m-2", "i-m-2"), ("unnamed-m-i-second", "i-second")]
        );
    }

    #[test]
    fn machines_of_other_fleets_are_left_alone() {
        let (own, unnamed) = ("m-0123456789abcdef", "unnamed-m-i-1");
        let others = ["gpus-0123456789abcdef", "m-b-0123456789abcdef", "unnamed-m-b-i-1", "m-1"];
        let costs = |name: &str| {
            let mut machine = machine(name);
            if name.starts_with("unnamed") {
                machine.instance = "i-1".to_owned();
            }
            let report = reports(&ledger(), &[machine], 1000).remove(0);
            MachineView {
                machine: report,
                host: None,
                run_time: Millis(0),
                cost: MicroUsd(0),
                draining: false,
            }
        };
        let machines = others.into_iter().chain([own, unnamed]).map(costs);
        let mut ledger = ledger();
        ledger.load(&CostsView {
            at: UnixMillis(1000),
            cost: MicroUsd(0),
            on_demand_cost: MicroUsd(0),
            unused: MicroUsd(0),
            deleted: MicroUsd(0),
            jobs: Vec::new(),
            machines: machines.collect(),
        });
        let ended = reports(&ledger, &[], 5000);
        let ended: Vec<_> = ended.iter().map(|report| report.name.as_str()).collect();
        assert_eq!(ended, [own, unnamed]);
    }

    #[test]
    fn a_machine_that_ended_before_its_price_was_known_is_told_of_again() {
        let mut ledger = ledger();
        let mut ended = machine("m-1");
        (ended.state, ended.ended_at) = (MachineState::Ended, Some(UnixMillis(1500)));
        let all = [ended, machine("m-2")];
        let first = reports(&ledger, &all[..1], 2000);
        assert_eq!((first[0].price, first[0].ended_at), (MicroUsd(100), Some(UnixMillis(1500))));
        ledger.reported(first, UnixMillis(2000));
        let questions = ledger.questions(&all);
        let asked: Vec<&str> = questions.iter().map(|question| question.name.as_str()).collect();
        assert_eq!(asked, ["m-2", "m-1"], "those that run come first");
        ledger.answer(&questions[1], Some(MicroUsd(28)));
        let second = reports(&ledger, &all[..1], 3000);
        assert_eq!(second[0].price, MicroUsd(28));
        ledger.reported(second, UnixMillis(3000));
        assert!(reports(&ledger, &all[..1], 4000).is_empty());
    }

    #[test]
    fn prices_that_nobody_says_are_those_of_now() {
        let mut ledger = ledger();
        let mut memory = Memory::default();
        let all = [machine("m-1")];
        ledger.set_prices(&all, &offers(), &mut memory);
        assert_eq!(memory, Memory::default(), "it is still to be asked for");
        let question = ledger.questions(&all).remove(0);
        ledger.answer(&question, None);
        assert!(ledger.questions(&all).is_empty(), "once");
        assert_eq!(reports(&ledger, &all, 2000)[0].price, MicroUsd(30));
        ledger.set_prices(&all, &offers(), &mut memory);
        assert_ne!(memory, Memory::default());
    }
}
