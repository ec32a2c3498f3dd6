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
fn a_deletion_says_what_goes_and_a_list_of_jobs_what_each_takes() {
    let site = Site::start();
    let _client = site.client("one");
    let job = site.submit(4, 1);
    let run = |args: &[&str]| {
        let output = site.run(args);
        let said =
            String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let paused = site.submit(5, 1);
    run(&["pause", &paused]);
    let (code, said) = run(&["delete", &paused, "--yes"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("job 2 hasn't ended: cancel it first"), "{said}");
    let view = site.wait(&job, |view| view["state"] != "running");
    let bytes = view["disk_bytes"].as_u64().unwrap();
    let checkpoint = site.trials(&job)[0]["checkpoint"]["bytes"].as_u64().unwrap();
    assert!(bytes > 4 * checkpoint, "four trials and their data: {bytes}");
    let (_, table) = run(&["jobs"]);
    assert!(table.contains("DISK"), "{table}");

    let (code, said) = run(&["delete", &job]);
    assert_eq!(code, Some(2), "{said}");
    for part in ["4 trials", "best model of trial", "sojourn export 1", "frees", "`--yes`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let preview = site.json(&["delete", &job, "--preview"]);
    assert_eq!(preview["jobs"][0]["disk_bytes"], bytes);
    assert_eq!(site.job(&job)["state"], "finished", "nothing was changed");
    let old = run(&["delete", "--older-than", "30d", "--yes"]);
    assert_eq!(old, (Some(0), "no job ended longer ago than 30d\n".to_owned()));
    let deleted = site.json(&["delete", &job, "--yes"]);
    assert_eq!(deleted["bytes_freed"], preview["bytes_freed"]);
    let (code, said) = run(&["status", &job]);
    assert_ne!(code, Some(0));
    assert!(said.contains("job 1 was deleted"), "{said}");
    let left = site.json(&["jobs"]);
    assert_eq!((left.as_array().unwrap().len(), &left[0]["job"]), (1, &2.into()));
    // The same job again is a new one, with a number of its own.
    let again = site.submit(4, 1);
    assert_eq!(again, "3");
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
    assert_eq!(seeds, [1, 2, 3, 1, 2, 3], "two models, three seeds");
    let output = site.run(&["trials", &job]);
    let said = String::from_utf8(output.stdout).unwrap();
    let board: Vec<&str> = said.split("over seeds\n").nth(1).expect(&said).lines().collect();
    assert!(board[0].contains("MEAN VALID/ACCURACY") && board[0].contains("DEVIATION"), "{said}");
    assert_eq!(board.len(), 3, "{said}");
    let replayed = site.json(&["replay", "job.toml", "--trial", "4"]);
    assert_eq!(replayed["sha256"], trials[4]["checkpoint"]["sha256"]);
}
