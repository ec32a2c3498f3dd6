//! Jobs of one priority beside each other: each gets its share in time, whatever the others are.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::indexing_slicing, reason = "a test ends at what it did not expect")]

use sojourn_sim::fleet::{self, Ask, RunResult, Study};

/// A job file: trials of a small model, with these lines about its search and its placement.
fn job_file(trials: u32, epochs: u32, search: &str, placement: &str) -> String {
    let rates: Vec<String> = (1..=trials).map(|n| format!("{}", f64::from(n) / 1000.0)).collect();
    format!(
        "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [8]\nshards = 4\n[[model]]\narch = \"mlp\"\n\
         hidden = [1000, 1000]\n[training]\nepochs = {epochs}\nbatch_size = 50\n\
         optimizer = {{ name = \"sgd\", lr = {{ choice = [{}] }} }}\n[search]\n{search}\n[placement]\n{placement}\n",
        rates.join(", ")
    )
}

fn run(hosts: &str, jobs: &[(&str, String, f64)]) -> RunResult {
    let mut text = format!("horizon = \"2d\"\n{hosts}\n");
    for (name, _, at) in jobs {
        text += &format!(
            "[[jobs]]\nname = \"{name}\"\nfile = \"{name}\"\nrows = 40_000\nshards = 4\nclasses = 2\nvalid_rows = 1000\nsubmitted = {at}\n"
        );
    }
    let study: Study = fleet::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let scenario = study.rows.into_iter().next().unwrap().scenario;
    let mut files = |name: &str| {
        let found = jobs.iter().find(|(of, ..)| *of == name);
        found.map(|(_, text, _)| text.clone()).ok_or_else(|| format!("no file {name}"))
    };
    let policy = scenario.server.policy.0[0];
    fleet::run(&scenario, policy, scenario.seed, Ask::Check(10), &mut files, &mut ())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Seconds from a job's submission to its end.
fn takes(result: &RunResult, name: &str) -> f64 {
    let job = result.jobs.iter().find(|job| job.name == name).unwrap();
    job.ended - job.submitted
}

/// As many trials that stay on hosts, and trials with shares, as fill all slots and a place behind each. A hop takes six seconds, and
/// the third job has eight, each of which two hosts do: 72 seconds with its third of the slots.
#[test]
fn a_verified_job_gets_its_slot_share_beside_trials_that_stay_and_trials_with_cpu_shares() {
    let hosts = "[[hosts]]\ncount = 2\nslots = 2\ntflops = 0.01";
    let verify = "verify = { quorum = 2, rate = 1.0 }";
    let flowcon = "host_shares = \"flowcon\"\nthreads = 2";
    for (trials, epochs) in [(2, 1), (8, 1)] {
        let result = run(
            hosts,
            &[
                ("specon", job_file(4, 20, "", "residency = \"specon\""), 0.0),
                ("flowcon", job_file(4, 20, "", flowcon), 0.0),
                ("verified", job_file(trials, epochs, "", verify), 30.0),
            ],
        );
        let least = 72.0 * f64::from(trials) / 2.0;
        let took = takes(&result, "verified");
        assert!(took < 3.0 * least, "{trials} trials took {took} s of {least}");
    }
}
