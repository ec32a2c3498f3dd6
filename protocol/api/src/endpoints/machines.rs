//! Machines of a fleet: demand, costs, speeds, and the process that leads.

use sojourn_protocol::{
    demand::{DemandView, SpeedsView},
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachinesAnswer, MachinesRequest,
    },
};

endpoints! {
    MACHINES = "machines";

    /// The work that there is for machines, and the bought machines that are there for it.
    Demand: GET "/v1/demand" for Users(Read) {
        answers DemandView = "The work, by job and workload.";
    }

    /// The cost of bought machines, by machine, job and trial.
    Costs: GET "/v1/costs" for Users(Read) {
        answers CostsView = "All costs up to now.";
    }

    /// How fast bought machines are, by their type, and what the last of each cost.
    Speeds: GET "/v1/speeds" for Users(Read) {
        answers SpeedsView = "The types of machines that were bought.";
    }

    /// Says which machines were bought, and which have ended.
    ReportMachines: POST "/v1/machines" for Users(Administer) {
        takes MachinesRequest within MAX_LARGE_BODY;
        answers MachinesAnswer = "It is written down.";
    }

    /// Gives machines back: their hosts get nothing more, and end.
    DrainMachines: POST "/v1/machines/drain" for Users(Administer) {
        takes DrainRequest;
        answers MachinesAnswer = "Their hosts are told.";
    }

    /// Asks to be the only process of its kind that acts, or to go on as such.
    Lead: POST "/v1/leader" for Users(Administer) {
        takes LeaderRequest;
        answers LeaderAnswer = "Who leads.";
    }
}
