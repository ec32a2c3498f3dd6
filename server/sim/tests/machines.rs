//! Machines that come and go as somebody decides while a fleet works.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a test ends at what it did not expect")]

use sojourn_core::{Answer, Command, Query, ReplyTo};
use sojourn_protocol::{
    demand::DemandView,
    digest::Digest,
    machines::{CostsView, DrainRequest, MachineName, MachineReport, Market},
    money::MicroUsd,
    names::{OwnerName, TokenLabel},
    quotas::TokenQuotas,
    time::{Millis, UnixMillis},
    tokens::{TokenGrant, TokenRequest},
};
use sojourn_sim::fleet::{self, Machines, Policy, RunResult, Site};
use std::collections::VecDeque;

/// One kind of machine. Two trials of two hops of 100 s each.
const SCENARIO: &str = "[server]\nlease_term = \"60s\"\n\
    [[hosts]]\nname = \"small\"\ntflops = 1\nnotice = \"none\"\n\
    [[hosts]]\nname = \"large\"\ntflops = 2\nslots = 2\n\
    [job]\nequal = 1000\ntrials = 2\nrows = 200_000\nshards = 2\nbatch_size = 100\n";

#[derive(Debug, Clone)]
enum Step {
    Comes(&'static str, usize),
    Noticed(&'static str, u64),
    Drained(&'static str, u64),
    Goes(&'static str),
}

/// Does what a list says, at its seconds.
#[derive(Default)]
struct Script {
    steps: VecDeque<(u64, Step)>,
    /// The server can't be reached between these seconds.
    away: (u64, u64),
    exited: Vec<(UnixMillis, String)>,
    seen: Vec<DemandView>,
    costs: Option<CostsView>,
    refused: u32,
}

const NOBODY: ReplyTo = ReplyTo(0);

fn name(name: &str) -> MachineName {
    name.parse().unwrap()
}

fn report(machine: &str, launched: u64, ended: Option<u64>) -> MachineReport {
    MachineReport {
        name: name(machine),
        instance: format!("i-{machine}"),
        instance_type: "small".into(),
        zone: "a".into(),
        market: Market::Spot,
        price: MicroUsd(360_000),
        on_demand_price: MicroUsd(720_000),
        launched_at: UnixMillis(launched),
        ended_at: ended.map(UnixMillis),
        end: None,
    }
}

impl Script {
    fn step(&mut self, now: UnixMillis, step: &Step, site: &mut dyn Site) -> Result<(), String> {
        match step {
            Step::Comes(machine, group) => {
                let machines = vec![report(machine, now.0, None)];
                let _ = site.ask(Command::ReportMachines { to: NOBODY, machines })?;
                let owner = OwnerName::default();
                let grant = TokenGrant::Enrol {
                    owner,
                    hosts: 1,
                    machine: Some(name(machine)),
                    trusted: false,
                };
                let lifetime = Some(Millis::from_secs(600));
                let request = TokenRequest {
                    label: TokenLabel::default(),
                    grant,
                    lifetime,
                    quotas: TokenQuotas::default(),
                };
                let sha256 = Digest::of(machine.as_bytes());
                let _ = site.ask(Command::CreateToken { to: NOBODY, request, sha256, by: None })?;
                self.refused += u32::from(site.comes(&name(machine), *group, machine)?.is_err());
            }
            Step::Noticed(machine, left) => {
                site.noticed(&name(machine), Millis::from_secs(*left));
            }
            Step::Drained(machine, left) => {
                let within = Millis::from_secs(*left);
                let request = DrainRequest { machines: vec![name(machine)], within };
                let _ = site.ask(Command::DrainMachines { to: NOBODY, request })?;
            }
            Step::Goes(machine) => {
                site.goes(&name(machine));
                let known = self.costs.iter().flat_map(|costs| &costs.machines);
                let known = known.map(|of| &of.machine).find(|of| of.name == name(machine));
                let launched = known.map_or(0, |of| of.launched_at.0);
                let machines = vec![report(machine, launched, Some(now.0))];
                let _ = site.ask(Command::ReportMachines { to: NOBODY, machines })?;
            }
        }
        Ok(())
    }
}

impl Machines for Script {
    fn next_at(&self) -> Option<UnixMillis> {
        self.steps.front().map(|(at, _)| UnixMillis(at * 1000))
    }

    fn act(&mut self, now: UnixMillis, site: &mut dyn Site) -> Result<(), String> {
        while self.next_at().is_some_and(|at| at <= now) {
            let (_, step) = self.steps.pop_front().unwrap();
            self.step(now, &step, site)?;
            let demand = Command::Query { to: NOBODY, query: Query::Demand };
            if let Ok(Answer::Demand(demand)) = site.ask(demand)? {
                self.seen.push(*demand);
            }
            if let Ok(Answer::Costs(costs)) =
                site.ask(Command::Query { to: NOBODY, query: Query::Costs })?
            {
                self.costs = Some(*costs);
            }
        }
        Ok(())
    }

    fn exited(&mut self, now: UnixMillis, machine: &MachineName) {
        self.exited.push((now, machine.to_string()));
    }

    fn is_done(&self) -> bool {
        self.steps.is_empty()
    }

    fn server_is_away(&self, now: UnixMillis) -> bool {
        (self.away.0 * 1000..self.away.1 * 1000).contains(&now.0)
    }
}

fn script(steps: impl IntoIterator<Item = (u64, Step)>) -> Script {
    Script { steps: steps.into_iter().collect(), ..Script::default() }
}

fn run(script: &mut Script) -> Result<RunResult, String> {
    let study = fleet::read(SCENARIO).unwrap();
    let scenario = &study.rows[0].scenario;
    fleet::run_buying(scenario, Policy::default(), 0, Some(20), script, &mut ())
        .map_err(|error| error.to_string())
}

#[test]
fn machines_work_from_when_they_come_until_they_go() {
    let mut script = script([(10, Step::Comes("a", 1)), (500, Step::Goes("a"))]);
    let run = run(&mut script).unwrap();
    // Two slots of two TFLOP/s: both trials side by side, two hops of 50 s each.
    assert!((110.0..112.0).contains(&run.makespan), "{run:?}");
    assert_eq!((run.departures, run.lost, script.refused), (1, 0, 0));
    // 490 s at 36 cents an hour.
    let costs = script.costs.unwrap();
    assert_eq!((costs.cost, costs.unused), (MicroUsd(49_000), MicroUsd(0)));
    assert_eq!(costs.jobs[0].cost, costs.cost);
}

#[test]
fn the_demand_is_the_work_that_is_left() {
    let steps = [(10, Step::Comes("a", 0)), (60, Step::Noticed("b", 1)), (500, Step::Goes("a"))];
    let mut script = script(steps);
    run(&mut script).unwrap();
    let workload = &script.seen[1].jobs[0].workloads[0];
    assert_eq!((workload.trials, workload.parallel), (2, 2), "{workload:?}");
    assert_eq!((workload.rows, workload.longest), (400_000, 200_000), "of results that were taken");
    let load = &script.seen[1].machines[0];
    assert_eq!((load.slots, load.idle_since), (1, None), "{load:?}");
}

#[test]
fn what_is_told_to_end_gives_back_what_it_has_trained() {
    let steps = |told: Option<Step>| {
        let all = [
            Some((0, Step::Comes("a", 0))),
            told.map(|told| (50, told)),
            Some((170, Step::Goes("a"))),
            Some((170, Step::Comes("b", 0))),
            Some((900, Step::Goes("b"))),
        ];
        script(all.into_iter().flatten())
    };
    let mut untold = steps(None);
    let lost = run(&mut untold).unwrap().lost_ratio;
    assert_eq!(untold.exited, []);
    for told in [Step::Noticed("a", 120), Step::Drained("a", 120)] {
        let mut script = steps(Some(told.clone()));
        let run = run(&mut script).unwrap();
        assert!(run.lost_ratio < lost, "{told:?}: {run:?}");
        let exited = script.exited.first().unwrap();
        assert!(exited.1 == "a" && exited.0 <= UnixMillis(170_000), "{told:?}: {exited:?}");
    }
}

#[test]
fn work_goes_on_when_the_server_is_back() {
    let mut script = script([(0, Step::Comes("a", 1)), (900, Step::Goes("a"))]);
    script.away = (20, 80);
    let run = run(&mut script).unwrap();
    assert!(run.makespan < 300.0, "{run:?}");
}

#[test]
fn a_machine_that_comes_while_the_server_is_away_is_refused() {
    let steps = [(10, Step::Comes("a", 1)), (30, Step::Comes("b", 1)), (500, Step::Goes("b"))];
    let mut script = script(steps);
    script.away = (5, 20);
    run(&mut script).unwrap();
    assert_eq!(script.refused, 1);
}

#[test]
fn a_run_without_machines_does_not_end() {
    let error = run(&mut Script::default()).unwrap_err();
    assert!(error.contains("no host is left") || error.contains("more can happen"), "{error}");
}
