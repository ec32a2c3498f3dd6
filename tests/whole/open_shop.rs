//! `sojourn simulate --open-shop`, whole process: plans, their bounds, and files that are none.

use crate::support::{Folder, sojourn};
use serde_json::Value;
use std::{fs, process::Output};

const SHOP: &str = "# three jobs\n3 3\n30 20 10\n10 30 20\n20 10 30\n";

fn simulate(shop: &str, more: &[&str]) -> Output {
    let folder = Folder::with(&[("shop.txt", shop)]);
    let call = [&["simulate", "--open-shop", "shop.txt"], more].concat();
    sojourn(&call).current_dir(folder.path()).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_shop_is_planned_and_the_same_count_prints_the_same_bytes() {
    let call = ["--policy", "rollout", "--iterations", "50", "--seed", "7"];
    let output = simulate(SHOP, &call);
    assert_eq!(text(output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let printed = text(output.stdout);
    for line in ["makespan     60", "lower bound  60", "ratio        1.0000"] {
        assert!(printed.lines().any(|printed| printed == line), "{printed}");
    }
    assert!(!printed.contains("time"), "{printed}");
    assert_eq!(text(simulate(SHOP, &call).stdout), printed);
}

#[test]
fn every_policy_prints_a_whole_schedule() {
    for policy in ["randomized", "ltrp", "rollout", "vector-rearrangement"] {
        let budget: &[&str] = if policy == "rollout" { &["--budget", "5ms"] } else { &[] };
        let output = simulate(SHOP, &[&["--policy", policy, "--json"], budget].concat());
        assert_eq!(text(output.stderr), "");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["policy"], policy);
        assert_eq!(report["lower_bound"], 60);
        assert!(report["ratio"].as_f64().unwrap() >= 1.0);
        assert!(report["seconds"].is_number());
        assert_eq!(report["schedule"]["steps"].as_array().unwrap().len(), 9);
        assert_eq!(report["schedule"]["makespan"], report["makespan"]);
    }
}

#[test]
fn the_schedule_and_its_charts_are_written() {
    let folder = Folder::with(&[("shop.txt", SHOP)]);
    let call = ["simulate", "--open-shop", "shop.txt", "--iterations", "50", "--out", "out"];
    let written = || {
        let output = sojourn(&call).current_dir(folder.path()).output().unwrap();
        assert_eq!((text(output.stderr), output.status.code()), (String::new(), Some(0)));
        ["schedule.json", "gantt.svg", "gantt.html"]
            .map(|file| fs::read_to_string(folder.path().join("out").join(file)).unwrap())
    };
    let [schedule, svg, html] = written();
    let read: Value = serde_json::from_str(&schedule).unwrap();
    assert_eq!((read["steps"].as_array().unwrap().len(), &read["makespan"]), (9, &60.into()));
    let keys: Vec<&String> = read["steps"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["end", "job", "machine", "start"]);
    assert_eq!(svg.matches("<title>job ").count(), 9, "{svg}");
    assert!(svg.contains("machine 2") && html.contains(&svg), "{html}");
    assert_eq!(written(), [schedule, svg, html], "the same bytes again");
}

#[test]
fn a_policy_without_a_result_says_what_it_can_plan() {
    let output = simulate("3 3\n9 1 5\n2 8 6\n7 3 4\n", &["--policy", "cyclic"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(output.stderr).contains("`cyclic` has no plan for this shop"));
}

#[test]
fn wrong_calls_are_refused() {
    for (shop, more, message) in [
        ("2 2\n1 2\n3\n", &[][..], "shop.txt: line 3: job 2 has 1 durations"),
        (
            SHOP,
            &["--policy", "best"],
            "there is no `best` for open shops; randomized, ltrp, rollout",
        ),
        (SHOP, &["--policy", "lptr"], "vector-rearrangement and milp; did you mean `ltrp`?"),
        (
            SHOP,
            &["--policy", "ltrp", "--budget", "1d"],
            "--budget: `ltrp` makes one plan and has done",
        ),
        (
            SHOP,
            &["--policy", "randomized", "--iterations", "9"],
            "--iterations: `randomized` makes",
        ),
        (SHOP, &["--seed", "-1"], "'-1' for '--seed <N>': a whole number from 0"),
        (SHOP, &["--iterations", "-1"], "'-1' for '--iterations <N>': a whole number from 0"),
        (SHOP, &["--budget", "-1s"], "'-1s' for '--budget <TIME>': \"-1s\" is no length of time"),
        ("1 1\n99999999999999999999\n", &[], "line 2: `99999999999999999999` is too large"),
        (SHOP, &["--policy", "ltrp,rollout"], "one policy at a time"),
        (SHOP, &["--budget", "5"], "`5` is no time; write it such as 500ms"),
        (SHOP, &["--budget", "1s", "--iterations", "5"], "cannot be used with"),
        (SHOP, &["--seeds", "5"], "cannot be used with"),
    ] {
        let output = simulate(shop, more);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(output.stdout.is_empty());
        let told = text(output.stderr);
        assert!(told.contains(message), "{told}");
    }
    let output = sojourn(&["simulate", "--budget", "1s", "x.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a budget is for open shops");
    let output = sojourn(&["simulate", "--open-shop", "gone.txt"]).output().unwrap();
    assert!(text(output.stderr).contains("can't read `gone.txt`"));
}
