//! No host makes a search longer: hosts on bad lines, very slow ones, and hosts that are lost again and again.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_sim::fleet::{self, Ask, Policy};

/// Seeds of each scenario, from its own on.
const SEEDS: u64 = 3;

/// The mean makespan over the seeds, in seconds; invariants are checked on the way.
fn mean_makespan(text: &str, policy: Policy) -> f64 {
    let study = fleet::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let scenario = &study.rows.first().unwrap().scenario;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scheduling");
    let mut files = |name: &str| {
        std::fs::read_to_string(format!("{folder}/{name}")).map_err(|error| error.to_string())
    };
    let makespans = (0..SEEDS).map(|more| {
        let (seed, ask) = (scenario.seed + more, Ask::Check(500));
        fleet::run(scenario, policy, seed, ask, &mut files, &mut ()).unwrap().makespan
    });
    let (count, sum) = makespans.fold((0.0, 0.0), |(count, sum), one| (count + 1.0, sum + one));
    sum / count
}

/// A search on eight good hosts, with so many very slow ones and so many on far lines.
fn search(estimates: &str, trials: u32, slow: u32, far: u32) -> f64 {
    let text = format!(
        "seed = 20\nestimates = \"{estimates}\"\n\
         [[hosts]]\ncount = 8\ntflops = 4\ndownload = 200\nupload = 50\nnoise = 0.1\n\
         [[hosts]]\ncount = {slow}\ntflops = 0.04\ndownload = 200\nupload = 50\n\
         [[hosts]]\ncount = {far}\ntflops = 4\ndownload = 2\nupload = 0.5\nlatency = 0.5\n\
         [job]\ncosts = [300, 800, 1500, 2500, 4100]\ntrials = {trials}\nrows = 20_000\nepochs = 4\n\
         data_bytes = \"300MB\"\ncheckpoint_bytes = \"40MB\"\n"
    );
    mean_makespan(&text, Policy::default())
}

/// Very slow hosts and hosts on far lines lengthen a search by less than such a factor.
fn are_harmless(estimates: &str, trials: u32, factor: f64) {
    let good = search(estimates, trials, 0, 0);
    for (slow, far) in [(2, 0), (0, 2), (2, 2)] {
        let more = search(estimates, trials, slow, far);
        assert!(more < factor * good, "{slow} slow, {far} far: {more} s, without them {good} s");
    }
}

#[test]
fn no_host_on_a_bad_line_and_no_very_slow_one_makes_a_search_longer() {
    are_harmless("prior", 40, 1.05);
}

#[test]
fn nor_does_one_where_nothing_is_known_of_speeds() {
    are_harmless("nothing", 16, 1.1);
}

/// As there are more slots than trials then, any host could train any trial at once.
#[test]
fn at_the_end_of_a_search_the_longest_trials_keep_the_fastest_hosts() {
    let text = "[[hosts]]\ncount = 12\ntflops = [12.1, 5.6, 11.3, 18.7]\nefficiency = 0.3\n\
                [job]\ncosts = \"convnet_costs.csv\"\nrows = 50_000\nepochs = 3\ntrials = 18\n";
    let planned = mean_makespan(text, Policy::default());
    let greedy = mean_makespan(text, Policy::Ltrp);
    assert!(planned < 0.98 * greedy, "{planned} s, without plans {greedy} s");
}

#[test]
fn plans_of_replicas_are_given_up_where_losses_overtake_each() {
    let host = "download = 100\nnoise = 0.1\npreempted = { share = 0.15, back = \"5min\" }\n";
    let text = format!(
        "seed = 60\n[[hosts]]\ncount = 1\ntflops = 20\nupload = 100\n{host}\
         [[hosts]]\ncount = 7\ntflops = 2\nupload = 20\n{host}\
         [job]\ncosts = \"convnet_costs.csv\"\ntrials = 20\nrows = 40_000\nepochs = 3\n\
         shards = 8\ndata_bytes = \"800MB\"\ncheckpoint_bytes = \"10MB\"\n\
         placement = \"pinned\"\nreplicas = 3\n"
    );
    let planned = mean_makespan(&text, Policy::default());
    let greedy = mean_makespan(&text, Policy::Ltrp);
    assert!(planned < 1.15 * greedy, "{planned} s, without plans {greedy} s");
}
