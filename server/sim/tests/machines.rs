//! Machines that come and go as somebody decides while a fleet works.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a test ends at what it did not expect")]

use sojourn_protocol::{
    demand::DemandView,
    machines::MachineName,
    time::{Millis, UnixMillis},
};
use sojourn_sim::fleet::{self, FleetView, MachineChange, Machines, Policy, RunResult};
use std::collections::VecDeque;

/// One kind of machine. Two trials of two hops of 100 s each.
const SCENARIO: &str = "[server]\nlease_term = \"60s\"\n\
    [[hosts]]\nname = \"small\"\ntflops = 1\nnotice = \"none\"\n\
    [[hosts]]\nname = \"large\"\ntflops = 2\nslots = 2\n\
    [job]\nequal = 1000\ntrials = 2\nrows = 200_000\nshards = 2\nbatch_size = 100\n";

/// Does what a list says, at its times.
#[derive(Default)]
struct Script {
    changes: VecDeque<(u64, MachineChange)>,
    /// The server can't be reached between these seconds.
    away: (u64, u64),
    exited: Vec<(UnixMillis, String)>,
    seen: Vec<DemandView>,
    is_over: bool,
}

impl Machines for Script {
    fn next_at(&self) -> Option<UnixMillis> {
        self.changes.front().map(|(at, _)| UnixMillis(at * 1000))
    }

    fn act(
        &mut self,
        now: UnixMillis,
        fleet: &FleetView<'_>,
    ) -> Result<Vec<MachineChange>, String> {
        self.seen.push(fleet.demand());
        let mut due = Vec::new();
        while self.next_at().is_some_and(|at| at <= now) {
            due.extend(self.changes.pop_front().map(|(_, change)| change));
        }
        self.is_over = self.changes.is_empty();
        Ok(due)
    }

    fn exited(&mut self, now: UnixMillis, machine: &MachineName) {
        self.exited.push((now, machine.to_string()));
    }

    fn is_done(&self) -> bool {
        self.is_over
    }

    fn server_is_away(&self, now: UnixMillis) -> bool {
        (self.away.0 * 1000..self.away.1 * 1000).contains(&now.0)
    }
}

fn name(name: &str) -> MachineName {
    name.parse().unwrap()
}

fn comes(machine: &str, group: usize) -> MachineChange {
    MachineChange::Comes { machine: name(machine), group }
}

fn ending(machine: &str, seconds: u64) -> MachineChange {
    MachineChange::Ending { machine: name(machine), left: Millis::from_secs(seconds) }
}

fn goes(machine: &str) -> MachineChange {
    MachineChange::Goes { machine: name(machine) }
}

fn run(script: &mut Script) -> Result<RunResult, String> {
    let study = fleet::read(SCENARIO).unwrap();
    let scenario = &study.rows[0].scenario;
    fleet::run_buying(scenario, Policy::default(), 0, Some(20), script, &mut ())
        .map_err(|error| error.to_string())
}

#[test]
fn machines_work_from_when_they_come_until_they_go() {
    let changes = [(10, comes("a", 1)), (500, goes("a"))].into();
    let mut script = Script { changes, ..Script::default() };
    let run = run(&mut script).unwrap();
    // Two slots of two TFLOP/s: both trials side by side, two hops of 50 s each.
    assert!((110.0..112.0).contains(&run.makespan), "{run:?}");
    assert_eq!((run.departures, run.lost), (1, 0));
    let first = &script.seen[0];
    assert!(first.machines.is_empty() && first.jobs.is_empty(), "{first:?}");
    let last = script.seen.last().unwrap();
    assert!(last.jobs.is_empty() && last.machines[0].machine == name("a"), "{last:?}");
    assert!(last.machines[0].idle_since.is_some_and(|at| at.0 / 1000 < 112), "{last:?}");
}

#[test]
fn the_demand_is_the_work_that_is_left() {
    let changes = [(10, comes("a", 0)), (60, ending("b", 1)), (500, goes("a"))].into();
    let mut script = Script { changes, ..Script::default() };
    run(&mut script).unwrap();
    let workload = &script.seen[2].jobs[0].workloads[0];
    assert_eq!((workload.trials, workload.parallel, workload.running), (2, 2, 1), "{workload:?}");
    assert_eq!((workload.rows, workload.longest), (400_000, 200_000), "of results that were taken");
    assert!(workload.nanos_per_row.abs_diff(1_000_000_000) < 20_000_000, "{workload:?}");
    let load = &script.seen[2].machines[0];
    assert_eq!((load.slots, load.idle_since), (1, None), "{load:?}");
}

#[test]
fn what_is_told_to_end_gives_back_what_it_has_trained() {
    let changes = [
        (0, comes("a", 0)),
        (50, ending("a", 120)),
        (170, goes("a")),
        (170, comes("b", 0)),
        (900, goes("b")),
    ];
    let mut script = Script { changes: changes.clone().into(), ..Script::default() };
    let noticed = run(&mut script).unwrap();
    let exited = script.exited.first().unwrap();
    assert!(exited.1 == "a" && exited.0 <= UnixMillis(170_000), "{exited:?}");
    let without = changes.into_iter().filter(|(_, change)| *change != ending("a", 120));
    let mut script = Script { changes: without.collect(), ..Script::default() };
    let unnoticed = run(&mut script).unwrap();
    assert!(noticed.lost_share < unnoticed.lost_share, "{noticed:?}\n{unnoticed:?}");
    assert_eq!(script.exited, []);
}

#[test]
fn work_goes_on_when_the_server_is_back() {
    let changes = [(0, comes("a", 1)), (900, goes("a"))].into();
    let mut script = Script { changes, away: (20, 80), ..Script::default() };
    let run = run(&mut script).unwrap();
    assert!(run.makespan < 300.0, "{run:?}");
}

#[test]
fn a_run_without_machines_does_not_end() {
    let error = run(&mut Script::default()).unwrap_err();
    assert!(
        error.contains("no host is left") || error.contains("nothing more can happen"),
        "{error}"
    );
}
