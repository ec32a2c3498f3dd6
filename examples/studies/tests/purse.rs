//! Money that doesn't suffice: a simulation of a spot fleet ends in a report, and its file's contradictions are named.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use sojourn_protocol::time::Millis;
use sojourn_studies::spot::{self, Buyer, Setting, Trouble};
use std::collections::BTreeMap;

const FILE: &str = r#"rates = [0.1]
[market]
region = "r"
zones = ["a"]
length = "2d"
step = "5min"
[market.price]
mean = 0.33
reversion = 0.1
deviation = 0.1
least = 0.1
most = 1
[market.capacity]
machines = 8
on_demand = 8
[market.interruptions]
noticed = 1
notice = "2min"
[machines]
boot = ["60s", "90s"]
download = 1000
upload = 1000
[[types]]
name = "t"
vcpus = 4
memory = "16GiB"
gpus = 1
gpu_memory = "16GiB"
tflops = 4
on_demand = "0.6 usd"
[[jobs]]
name = "first"
priority = 1
trials = 2
equal = 1000
rows = 500_000
shards = 2
epochs = 1
deadline = "2min"
[[jobs]]
name = "second"
trials = 2
equal = 3000
rows = 1_000_000
shards = 4
epochs = 4
budget = "0.3 usd"
[autoscaler]
machines = 4
interval = "1min"
exit_when_idle = "10min"
"#;

fn told(from: &str, to: &str) -> String {
    assert!(FILE.contains(from));
    spot::read(&FILE.replace(from, to)).unwrap_err()
}

#[test]
fn a_search_whose_money_is_used_up_ends_with_the_hops_that_it_paid_for() {
    let file = spot::read(FILE).unwrap();
    let setting = Setting::new(&file, &BTreeMap::new(), 0.1, 1);
    let ground = spot::ground(&setting, true, Millis::from_secs(600));
    let mut buyer = Buyer::new(ground, setting.settings(), Trouble::default(), 1).unwrap();
    let result = spot::play(&setting, &mut buyer).unwrap();
    let (done, all) = buyer.out_of_money.unwrap();
    assert_eq!(all, 4 + 32);
    assert!((4..all).contains(&done), "the first job is done, the second in part: {done}");
    let ended: Vec<f64> = result.jobs.iter().map(|job| job.ended).collect();
    assert!(ended[0] > 120.0, "it was late: {ended:?}");
    assert!(ended[1] > ended[0] && ended[1] < 86_400.0, "nobody waits for the horizon: {ended:?}");
}

#[test]
fn one_job_with_money_enough_is_trained_to_its_end() {
    let one = FILE.split_once("[[jobs]]\nname = \"second\"").unwrap();
    let rest = one.1.split_once("[autoscaler]").unwrap().1;
    let text = format!("{}[autoscaler]{rest}", one.0).replace("[[jobs]]", "[job]");
    let file = spot::read(&text).unwrap();
    let setting = Setting::new(&file, &BTreeMap::new(), 0.1, 1);
    assert_eq!(setting.trials().len(), 2);
    let ground = spot::ground(&setting, true, Millis::from_secs(600));
    let mut buyer = Buyer::new(ground, setting.settings(), Trouble::default(), 1).unwrap();
    spot::play(&setting, &mut buyer).unwrap();
    assert_eq!(buyer.out_of_money, None);
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_line() {
    assert_eq!(
        told("gpus = 1", "gpus = 0"),
        "line 27: `types.0.gpus` is 0: each machine has one at least"
    );
    assert_eq!(
        told("mean = 0.33", "mean = \"a third\""),
        "line 8: invalid type: string \"a third\", a number is wanted"
    );
    assert_eq!(
        told("mean = 0.33", "maen = 0.33"),
        "line 8: `maen` is no known key; did you mean `mean`?"
    );
    assert_eq!(
        told("machines = 4\n", "machines = 4\ntotal = \"0.2 usd\"\n"),
        "line 47: `jobs.1.budget` is $0.30, more than `autoscaler.total`, $0.20: the job can't cost so much"
    );
    assert_eq!(
        told("[[jobs]]\nname = \"first\"", "[job]\nname = \"first\""),
        "line 40: `jobs` stands beside `job`: one of both is wanted"
    );
}
