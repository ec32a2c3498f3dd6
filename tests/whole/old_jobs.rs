//! Jobs that have ended: the disk that they take, their deletion, and what a server keeps of them.

use crate::site::Site;

/// Runs a command; its exit code and all that it said.
fn run(site: &Site, args: &[&str]) -> (Option<i32>, String) {
    let output = site.run(args);
    let said =
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
    (output.status.code(), said)
}

#[test]
fn a_deletion_says_what_goes_and_a_list_of_jobs_what_each_takes() {
    let site = Site::start();
    let _client = site.client("one");
    let job = site.submit(4, 1);
    let run = |args: &[&str]| run(&site, args);
    // So long that it can't end before it is paused.
    let paused = site.submit(5, 1000);
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
fn a_server_thins_the_jobs_that_it_does_not_keep_and_their_best_models_stay() {
    let keep = ["--keep-jobs", "1,300d"].map(str::to_owned).to_vec();
    let mut site = Site::start_in(tempfile::tempdir().unwrap(), keep);
    let _client = site.client("one");
    let ended = |seed| {
        let job = site.submit(seed, 1);
        site.wait(&job, |view| view["state"] != "running");
        job
    };
    // The one that ends first is the older one. While it is the only one, it is kept.
    let first = ended(4);
    let before = (site.job(&first), site.trials(&first));
    let second = ended(5);
    // A start looks at once; else it would be up to a minute.
    site.restart();
    let view = site.wait(&first, |view| view["thinned"] == true);
    assert!(view["disk_bytes"].as_u64() < before.0["disk_bytes"].as_u64());
    assert_eq!((&view["best"], &view["state"]), (&before.0["best"], &before.0["state"]));
    let (_, table) = run(&site, &["jobs"]);
    assert!(table.contains("finished, thinned"), "{table}");
    assert_ne!(site.job(&second)["thinned"], true);
    // The figures stay, and the best model can be used.
    let curves = |trials: &serde_json::Value| -> Vec<_> {
        trials.as_array().unwrap().iter().map(|trial| trial["curve"].clone()).collect()
    };
    assert_eq!(curves(&site.trials(&first)), curves(&before.1));
    let (code, said) = run(&site, &["export", &first, "-o", "best.safetensors"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&site, &["predict", "best.safetensors", "digits.csv", "-o", "p.csv"]);
    assert_eq!(code, Some(0), "{said}");
    let best = view["best"]["trial"].as_u64().unwrap();
    let other = ((best + 1) % 4).to_string();
    for args in [
        vec!["export", &first, "--trial", &other, "-o", "other.safetensors"],
        vec!["extend", &first, "--epochs", "2"],
        vec!["replay", &first, "--trial", &other],
    ] {
        let (code, said) = run(&site, &args);
        assert_ne!(code, Some(0), "{args:?}");
        assert!(said.contains("job 1 is thinned"), "{args:?}: {said}");
    }
    let (code, said) = run(&site, &["delete", &first, "--yes"]);
    assert_eq!(code, Some(0), "{said}");
}
