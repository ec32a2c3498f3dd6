//! Hosts that lie about what they have trained, by real training in virtual time: every result is checked by another
//! host, and what they say comes into no version.

use crate::support::{Folder, sojourn};
use serde_json::Value;
use std::{fs, path::PathBuf};

/// Nobody lies; then each way to.
const LIES: &str = "hosts.1.liar = [\"none\", \"nan\", \"sign-flip\", \"scaled\", \"old\", \"foreign\", \"noise\"]\n";

/// The results of each row of a scenario: some honest hosts and a last one, all of one numeric class, at a job whose
/// results are all checked by two.
fn runs(honest: u32, placement: &str, job: &str) -> Vec<Value> {
    let scenario = format!(
        "[server]\npolicy = \"ltrp\"\nlease_term = \"1min\"\nmost_hops = 1\nmost_copied = 0\n\
         [[hosts]]\ncount = {honest}\ntflops = [1e-6, 2e-6]\npick = \"cycle\"\nclass = \"alike\"\n\
         [[hosts]]\ntflops = 1.5e-6\nclass = \"alike\"\n\
         [job]\nfile = \"job/digits.toml\"\ntrain = true\n{job}\
         set.placement = {{ {placement}, reproducible = true, verify = {{ quorum = 2, rate = 1.0 }} }}\n\
         [vary]\n{LIES}"
    );
    let folder = Folder::with(&[("s.toml", &scenario)]);
    let job = "name = \"digits\"\n[data]\ntrain = \"digits.csv\"\nlabel = \"label\"\nscale = \"standard\"\n\
               [[model]]\narch = \"mlp\"\nhidden = [24]\n\
               [training]\nepochs = 1\nbatch_size = 8\n\
               optimizer = { name = \"sgd\", lr = { choice = [0.02, 0.05] }, momentum = 0.9 }\n";
    fs::create_dir(folder.path().join("job")).unwrap();
    fs::write(folder.path().join("job/digits.toml"), job).unwrap();
    let digits: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "examples/digits/digits.csv"].iter().collect();
    fs::copy(digits, folder.path().join("job/digits.csv")).unwrap();
    let output = sojourn(&["simulate", "s.toml", "--json"]).current_dir(folder.path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    cells.iter().map(|cell| cell["runs"][0].clone()).collect()
}

fn told_and_believed(run: &Value) -> (u64, u64) {
    (run["lies"].as_u64().unwrap(), run["believed"].as_u64().unwrap())
}

#[test]
fn in_hop_order_no_corrupted_result_becomes_a_version() {
    let runs = runs(3, "order = \"hop\"", "shards = 4\nepochs = 2\n");
    let (honest, lying) = runs.split_first().unwrap();
    assert_eq!((told_and_believed(honest), lying.len()), ((0, 0), 6));
    for run in lying {
        let (told, believed) = told_and_believed(run);
        assert!(told > 0, "nobody lied: {run}");
        assert_eq!(believed, 0, "{run}");
        assert_eq!(run["assimilated"], run["hops"], "{run}");
    }
}

/// The better one of two trials, after its best epoch, is as good as without the liar but for 3 points.
#[test]
fn merged_versions_are_as_good_with_an_adversary_as_without() {
    let runs = runs(6, "order = \"merge\"", "shards = 16\nepochs = 5\n");
    let (honest, lying) = runs.split_first().unwrap();
    let best = |run: &Value| run["best"].as_f64().unwrap();
    assert!(best(honest) > 0.9, "{honest}");
    for run in lying {
        let (told, believed) = told_and_believed(run);
        assert!(told > 0, "nobody lied: {run}");
        assert_eq!(believed, 0, "{run}");
        assert!(best(run) > best(honest) - 0.03, "{} of {}: {run}", best(run), best(honest));
    }
}
