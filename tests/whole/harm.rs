//! Commands that could do harm by accident say so first; and what a search over seeds shows.

use crate::site::Site;
use std::fs;

#[test]
fn a_rollback_says_what_it_would_lose_and_a_job_that_has_ended_stays_ended() {
    let site = Site::start();
    let _client = site.client("one");
    let job = site.submit(3, 2);
    site.wait(&job, |view| view["state"] != "running");
    let run = |more: &[&str]| {
        let output = site.run(&[&["rollback", &job, "--trial", "0"], more].concat());
        let said =
            String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = run(&["--epochs", "0", "--yes"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("has ended, and taking a trial back has it go on: say so with `--reopen`"),
        "{said}"
    );
    let (code, said) = run(&["--epochs", "1", "--reopen"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no epoch's end of it is kept; with 0 it begins anew"), "{said}");
    let lost = "trial 0 of job 1 would begin anew: 2 epochs of training would be lost";
    let (code, said) = run(&["--epochs", "0", "--reopen"]);
    assert_eq!((code, said.contains(&format!("{lost}; `--yes`"))), (Some(2), true), "{said}");
    assert_eq!(run(&["--epochs", "0", "--reopen", "--preview"]), (Some(0), format!("{lost}\n")));
    assert_eq!(site.job(&job)["state"], "finished", "nothing was changed");
    let (code, said) = run(&["--epochs", "0", "--reopen", "--yes"]);
    assert_eq!((code, said.as_str()), (Some(0), "trial 0 begins anew\n"));
    site.wait(&job, |view| view["state"] != "running");
    assert_eq!(site.job(&job)["trials_finished"], 4);
}

#[test]
fn what_is_trained_by_the_end_of_the_wall_time_is_evaluated_and_its_job_can_be_extended() {
    let site = Site::start();
    let _client = site.client("one");
    // Far more epochs than can be trained in the time.
    let job = site.submit_with(6, 1_000, "[1e-3]", "[search]\nwall_time = \"5s\"");
    let view = site.wait(&job, |view| view["state"] != "running");
    let trials = site.trials(&job);
    let trials = trials.as_array().unwrap();
    for trial in trials {
        // However slow the machine is: each epoch that was trained has been evaluated.
        let trained = trial["epoch"].as_u64().unwrap();
        assert_eq!(u64::try_from(trial["curve"].as_array().unwrap().len()).unwrap(), trained);
        let failed = trial["state"]["failed"]["error"].as_str();
        assert_eq!(failed.is_some(), trained == 0, "{trial}");
        assert!(failed.is_none_or(|error| error.contains("before an epoch was evaluated")));
    }
    assert_eq!(
        view["evaluations"],
        trials.iter().map(|of| of["epoch"].as_u64().unwrap()).sum::<u64>()
    );
    let said = String::from_utf8(site.run(&["events", &job]).stdout).unwrap();
    let place = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    let over = place("nothing more is trained, what is trained is evaluated for up to 10min");
    assert!(over < place("the search of job 1 ends with what is evaluated"));
    // The same epochs, for the same time once more.
    let extended = site.json(&["extend", &job, "--epochs", "1000"]);
    assert_eq!(extended["state"], "running");
    let view = site.wait(&job, |view| view["state"] != "running");
    assert!(view["ended_at"].as_u64() > extended["submitted_at"].as_u64());
}

#[test]
fn a_search_over_seeds_shows_mean_and_deviation_and_replays_from_its_file() {
    let site = Site::start();
    let _client = site.client("one");
    site.submit_with(1, 1, "[1e-3]", "visits = \"fixed\"");
    let file = site.path().join("job.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("seed = 1\n", "seed = { choice = [1, 2, 3] }\n")).unwrap();
    let job = site.json(&["submit", "job.toml"])["job"].to_string();
    site.wait(&job, |view| view["state"] != "running");
    let trials = site.json(&["trials", &job]);
    let seeds: Vec<_> =
        trials.as_array().unwrap().iter().map(|of| of["choices"]["seed"].clone()).collect();
    assert_eq!(seeds, ["1", "2", "3", "1", "2", "3"], "two models, three seeds");
    let output = site.run(&["trials", &job]);
    let said = String::from_utf8(output.stdout).unwrap();
    let board: Vec<&str> = said.split("over seeds\n").nth(1).expect(&said).lines().collect();
    assert!(board[0].contains("MEAN VALID/ACCURACY") && board[0].contains("DEVIATION"), "{said}");
    assert_eq!(board.len(), 3, "{said}");
    let replayed = site.train_alone(4, &trials[4]["numeric_class"]);
    assert_eq!(replayed["sha256"], trials[4]["checkpoint"]["sha256"]);
}
