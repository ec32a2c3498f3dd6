//! The actions of a plan are carried out here: machines are ended, drained and bought, and the server hears of those that were
//! bought.

use super::{Driver, Found, World, within};
use crate::server::Server;
use sojourn_fleet::{
    cloud::{Cloud, CloudError, CloudMachine, Filled, MachineState, Offers},
    planner::{Action, EndReason, Plan, Purchase, Victim},
};
use sojourn_protocol::{
    machines::{DrainRequest, MachinesRequest},
    time::{Millis, UnixMillis},
};
use std::collections::BTreeMap;
use tracing::info;

/// How much longer a token is good than a machine has to enrol: an order takes its time.
const TOKEN_MARGIN: Millis = Millis::from_secs(300);

impl<S: Server, C: Cloud, W: World> Driver<S, C, W> {
    pub(super) async fn carry_out(&mut self, plan: &Plan, found: &Found) {
        let mut ends: BTreeMap<&str, Vec<(&Action, &Victim)>> = BTreeMap::new();
        let mut drains: Vec<(&Action, &Victim, Millis)> = Vec::new();
        for action in &plan.actions {
            match action {
                Action::End { machine, reason } => {
                    info!(machine = shown(machine), instance = machine.instance, %reason, "end");
                    ends.entry(&machine.pool.region).or_default().push((action, machine));
                }
                Action::Drain { machine, within, reason } => {
                    info!(machine = shown(machine), instance = machine.instance, %reason, "drain");
                    drains.push((action, machine, *within));
                }
                Action::Buy(_) => {}
            }
        }
        for (region, ends) in ends {
            self.end(region, &ends, false).await;
        }
        self.drain(&drains).await;
        for action in &plan.actions {
            if let Action::Buy(purchase) = action {
                self.buy(purchase, found).await;
            }
        }
    }

    /// Ends the machines for which the money ends, without a word to the server. Whoever leads would do so too.
    pub(super) async fn end_for_money(&mut self, plan: &Plan) {
        let mut ends: BTreeMap<&str, Vec<(&Action, &Victim)>> = BTreeMap::new();
        for action in &plan.actions {
            let (Action::End { machine, reason } | Action::Drain { machine, reason, .. }) = action
            else {
                self.memory.not_done(action);
                continue;
            };
            if !matches!(reason, EndReason::Money { .. } | EndReason::StillThere) {
                self.memory.not_done(action);
                continue;
            }
            info!(machine = shown(machine), instance = machine.instance, %reason, "end");
            ends.entry(&machine.pool.region).or_default().push((action, machine));
        }
        for (region, ends) in ends {
            self.end(region, &ends, true).await;
        }
    }

    async fn end(&mut self, region: &str, ends: &[(&Action, &Victim)], alone: bool) {
        let instances: Vec<String> =
            ends.iter().map(|(_, machine)| machine.instance.clone()).collect();
        let result = if alone || self.lease.may_act(self.world.now()) {
            within(self.cloud.end(region, &instances)).await
        } else {
            Err(CloudError::Away("the lease has ended".to_owned()))
        };
        match result {
            Ok(()) => {
                for (action, _) in ends {
                    self.ledger.note(action);
                    self.metrics.ended();
                }
            }
            Err(error) => {
                self.failed.end = true;
                self.cloud_failed("end machines", &error);
                for (action, _) in ends {
                    self.memory.not_done(action);
                }
            }
        }
    }

    async fn drain(&mut self, drains: &[(&Action, &Victim, Millis)]) {
        let Some((_, _, within)) = drains.first() else { return };
        let machines = drains.iter().filter_map(|(_, machine, _)| machine.name.clone()).collect();
        let request = DrainRequest { machines, within: *within };
        let may_act = self.lease.may_act(self.world.now());
        let result = if may_act { Some(self.server.drain(&request).await) } else { None };
        if let Some(Ok(())) = result {
            for (action, _, _) in drains {
                self.ledger.note(action);
                self.metrics.drained();
            }
            return;
        }
        if let Some(Err(error)) = result {
            self.call_failed("drain machines", &error);
        }
        for (action, _, _) in drains {
            self.memory.not_done(action);
        }
    }

    /// Buys: with a token for each machine, and a report of what came of it at once.
    async fn buy(&mut self, purchase: &Purchase, found: &Found) {
        let count = purchase.machines.len();
        let lifetime = Millis(self.options.settings.times.enrol.0.saturating_add(TOKEN_MARGIN.0));
        let mut tokens = Vec::new();
        for machine in &purchase.machines {
            if !self.lease.may_act(self.world.now()) {
                break;
            }
            match self.server.enrolment_token(machine, lifetime).await {
                Ok(token) => tokens.push(token),
                Err(error) => {
                    self.call_failed("get a token", &error);
                    break;
                }
            }
        }
        let order = purchase.order(tokens);
        let ordered: Vec<_> = order.machines.iter().map(|machine| &machine.name).collect();
        let left_out = purchase.machines.iter().filter(|name| !ordered.contains(name));
        self.memory.not_ordered(left_out);
        if order.machines.is_empty() || !self.lease.may_act(self.world.now()) {
            self.memory.not_ordered(&purchase.machines);
            return;
        }
        let first = purchase.pools.first().map(ToString::to_string).unwrap_or_default();
        info!(
            machines = order.machines.len(), planned = count, market = order.market.name(),
            pools = order.pools.len(), first, price_limit = %order.price_limit,
            reason = %purchase.reason, "buy"
        );
        let answer = within(self.cloud.buy(&order)).await;
        let (now, seed) = (self.world.now(), self.world.seed());
        let settings = &self.options.settings;
        self.memory.answered(purchase, &answer, now, seed, &found.offers, settings);
        self.log_answer(&answer);
        if let Ok(filled) = &answer {
            self.report_bought(purchase, filled, &found.offers, now).await;
        }
    }

    fn log_answer(&self, answer: &Result<Filled, CloudError>) {
        match answer {
            Ok(filled) => {
                self.metrics.bought(filled.bought.len());
                for bought in &filled.bought {
                    info!(machine = %bought.name, instance = bought.instance, pool = %bought.pool, "bought");
                }
                if let Some(failure) = &filled.failure {
                    self.cloud_failed("buy all machines", failure);
                }
            }
            Err(error) => {
                self.metrics.bought(0);
                self.cloud_failed("buy machines", error);
            }
        }
    }

    /// The ledger takes a machine from its purchase on; when it was launched exactly, the cloud's list says later.
    async fn report_bought(
        &mut self,
        purchase: &Purchase,
        filled: &Filled,
        offers: &Offers,
        now: UnixMillis,
    ) {
        let machines = filled.bought.iter().map(|bought| CloudMachine {
            name: Some(bought.name.clone()),
            instance: bought.instance.clone(),
            pool: bought.pool.clone(),
            market: purchase.market,
            state: MachineState::Pending,
            launched_at: now,
            ended_at: None,
            end: None,
        });
        let machines: Vec<CloudMachine> = machines.collect();
        let mut reports = self.ledger.reports(&machines, offers, &self.memory, now);
        reports.retain(|report| report.ended_at.is_none());
        if reports.is_empty() {
            return;
        }
        let request = MachinesRequest { machines: reports };
        match self.server.report(&request).await {
            Ok(()) => self.ledger.reported(request.machines, now),
            // The next round tells it.
            Err(error) => self.call_failed("report machines", &error),
        }
    }
}

fn shown(machine: &Victim) -> &str {
    machine.name.as_ref().map_or("without a name", |name| name.as_str())
}
