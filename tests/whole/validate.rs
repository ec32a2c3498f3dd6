//! `sojourn validate`, whole process: what good and bad jobs are told, on which stream, with which code.

use crate::support::{Answer, FakeServer, Folder, sojourn};

const JOB: &str = r#"name = "small"
[data]
train = "t.csv"
label = "y"
shards = 2
[[model]]
arch = "mlp"
hidden = { choice = [[4], [8]] }
[training]
epochs = 2
"#;

fn csv() -> String {
    let rows: String = (0..20).map(|i| format!("{i},{},{}\n", i * 2, i % 2)).collect();
    format!("a,b,y\n{rows}")
}

/// The errors of a refused job on stderr; stdout stays empty and the code is 2.
fn refused(job: &str, data: &str) -> String {
    let folder = Folder::with(&[("job.toml", job), ("t.csv", data)]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(folder.names(), ["job.toml", "t.csv"], "nothing is left behind");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_good_job_is_described() {
    let folder = Folder::with(&[("job.toml", JOB), ("t.csv", &csv())]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "job.toml is good: job `small`\n\
         data    2 features, 2 classes\n\
         train   16 rows in 2 shards\n\
         valid   4 rows in 1 shard\n\
         model   mlp, 42 parameters, 1 trial\n\
         model   mlp, 22 parameters, 1 trial\n\
         verify  strangers' results are done again by another party: all at first, 1 in 20 once trusted, and each evaluation; your own machines are believed\n\
         visits  fixed: no host is known that waits for it; `submit` asks the server for its hosts\n\
         work    2 trials, 2 epochs, 8 hops\n"
    );
}

#[test]
fn combinations_that_constraints_leave_out_are_counted() {
    let job = format!(
        "{JOB}batch_size = {{ choice = [4, 8] }}\noptimizer = {{ name = \"adam\", lr = {{ choice = [0.01, 0.1] }} }}\n\
         [search]\nconstraints = [\"lr * batch_size < 0.5\"]\n"
    );
    let folder = Folder::with(&[("job.toml", &job), ("t.csv", &csv())]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines = "search  2 combinations left out by `constraints`\n\
                 work    6 trials, 2 epochs, 24 hops\n";
    assert!(said.ends_with(lines), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let output =
        sojourn(&["validate", "--json", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["trials"], &report["left_out"]), (&6.into(), &2.into()));
    let none = refused(&job.replace("< 0.5", "< 0"), &csv());
    assert!(none.contains("no combination satisfies the constraints"), "{none}");
}

#[test]
fn one_of_something_is_said_so() {
    let job = JOB.replace("shards = 2", "shards = 1").replace("{ choice = [[4], [8]] }", "[4]");
    let job = format!("{}loss = \"mse\"\n", job.replace("epochs = 2", "epochs = 1"));
    let rows: String = (0..20).map(|row| format!("{row},{}\n", row * 2)).collect();
    let folder = Folder::with(&[("job.toml", &job), ("t.csv", &format!("a,y\n{rows}"))]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("\ndata    1 feature, numbers as labels\n"), "{said}");
    assert!(said.ends_with("\nwork    1 trial, 1 epoch, 1 hop\n"), "{said}");
}

/// The warnings of `validate` about a job that is good.
fn warned(job: &str, data: &str) -> Vec<String> {
    let folder = Folder::with(&[("job.toml", job), ("t.csv", data)]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().filter_map(|line| line.strip_prefix("warning ")).map(str::to_owned).collect()
}

#[test]
fn settings_that_are_hardly_meant_are_warned_of() {
    assert_eq!(warned(JOB, &csv()), [""; 0]);
    let numbers: String = (0..100).map(|i| format!("{i},{},{}\n", i * 2, 100 + i % 50)).collect();
    let numbers = format!("a,b,y\n{numbers}");
    let with = |key: &str| warned(&format!("{JOB}{key}\n"), &csv());
    let lr = "optimizer = { name = \"adam\", lr = { log_uniform = [1e-4, 1e-2] } }";
    let endless = |search: &str| with(&format!("{lr}\n[search]\n{search}"));
    for (warnings, expected) in [
        (
            warned(JOB, &numbers),
            "50 classes of whole numbers, in 80 rows: regression? then `loss = \"mse\"`",
        ),
        (with("batch_size = 64"), "`batch_size = 64`, and a shard has 8 rows"),
        (with("[placement]\nthreads = 1024"), "`threads = 1024`, and this machine has "),
        (
            with("optimizer = { name = \"adam\", lr = { choice = [0.001, 30.0] } }"),
            "2 trials with learning rates up to 30: adam hardly survives these",
        ),
        (
            endless("method = { name = \"tpe\", startup = 6 }\ntrials = 6"),
            "`startup` is 6, and the search has 6 trials: all are random, and `tpe` suggests none",
        ),
        (
            with("[search]\nstopping = { rule = \"median\", min_trials = 2 }"),
            "`min_trials` is 2, and the search has 2 trials: `median` waits for so many others, and stops none",
        ),
        (
            with("[search]\nmethod = \"random\"\ntrials = 9"),
            "2 combinations differ; 9 were asked for: the search has 2 combinations",
        ),
        (
            with("[search]\nmethod = { name = \"tpe\", startup = 2 }\ntrials = 9"),
            "2 combinations differ; 9 were asked for: the search ends when they are tried",
        ),
        (
            warned(
                &format!("{}[search]\nmethod = \"random\"\ntrials = 3\n", JOB.replace(", [8]", "")),
                &csv(),
            ),
            "`method = \"random\"` may try 3 combinations, and the space has one: nothing in it varies",
        ),
    ] {
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(expected), "{warnings:?}");
    }
    for good in [
        with("[search]\nstopping = { rule = \"median\", min_trials = 1 }"),
        with("[search]\nmethod = \"random\"\ntrials = 2"),
        endless("method = { name = \"tpe\", startup = 5 }\ntrials = 6"),
        endless("method = \"random\"\ntrials = 9"),
    ] {
        assert_eq!(good, [""; 0]);
    }
    // A regression is none, whatever its numbers are.
    let regression = format!("{JOB}loss = \"mse\"\n");
    assert_eq!(warned(&regression, &numbers), [""; 0]);
}

#[test]
fn settings_that_differ_from_the_defaults_are_shown() {
    let job = format!(
        "{JOB}[search]\ntarget = 0.95\nwall_time = \"90m\"\ntotal_epochs = 3\ntotal_cost = \"2.5 usd\"\n[placement]\nbudget = \"7.25 usd\"\norder = \"merge\"\n\
         merge = {{ rule = \"vc-asgd\", alpha = \"e/(e+1)\", staleness = \"polynomial\" }}\n\
         local_steps = \"by-speed\"\n"
    );
    let folder = Folder::with(&[("job.toml", &job), ("t.csv", &csv())]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let lines = "order   merging\n\
                 merge   vc-asgd, alpha e/(e+1), staleness polynomial 0.5\n\
                 steps   of a shard, by the speed of the host\n\
                 until   valid/accuracy is 0.95\n\
                 until   90min have passed\n\
                 until   all trials together have trained 3 epochs\n\
                 until   all trials together have cost $2.50\n\
                 budget  $7.25 for bought machines\n\
                 visits  free: results are merged in the order in which they arrive; `submit` asks the server for its hosts\n\
                 note    another run may end with other models: the order of free visits follows the hosts, and \
                 `reproducible` pins the arithmetic alone\n\
                 note    another run may end with other models: how far trials come in `wall_time` follows the hosts\n\
                 work    2 trials, 2 epochs, 8 hops\n";
    assert!(said.ends_with(lines), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let output =
        sojourn(&["validate", "--json", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["target"], &report["wall_time"]), (&0.95.into(), &5_400_000.into()));
    assert_eq!((&report["total_epochs"], &report["total_cost"]), (&3.into(), &2_500_000.into()));
    assert_eq!((&report["budget"], &report["order"]), (&7_250_000.into(), &"merge".into()));
    assert_eq!(report["merge"]["rule"]["rule"], "vc-asgd");
    assert_eq!(report["visits"], "free");
    assert_eq!(report["may_differ"].as_array().unwrap().len(), 2);
}

#[test]
fn the_number_of_shards_is_shown_without_a_server() {
    let job = JOB.replace("shards = 2", "shards = \"auto\"\nvalid = 0.5");
    let rows: String = (0..5000).map(|i| format!("{i},{},{}\n", i * 2, i % 2)).collect();
    let folder = Folder::with(&[("job.toml", &job), ("t.csv", &format!("a,b,y\n{rows}"))]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("train   2,500 rows in 4 shards\n"), "{said}");
    assert!(said.contains("shards  4 shards: by rows and models alone; a hop takes "), "{said}");
    let free = format!("{job}[placement]\nvisits = \"free\"\n");
    let folder = Folder::with(&[("job.toml", &free), ("t.csv", &format!("a,b,y\n{rows}"))]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("shards  4 shards: no host is known yet; a hop takes "), "{said}");
    assert!(said.contains("\nvisits  free\n"), "{said}");
    let job = job.replace("\"auto\"", "4\nshard_sizes = \"speed\"");
    let told = refused(&job, &csv());
    assert!(
        told.starts_with("error: job.toml:6: `data.shard_sizes` is `\"speed\"`, which goes with "),
        "{told}"
    );
}

/// A residual network of depth 164 over images of 3x32x32.
#[test]
fn a_network_with_batch_norm_is_shown_with_its_trained_parameters() {
    let names: Vec<String> = (0..3 * 32 * 32).map(|feature| format!("p{feature}")).collect();
    let row = "1,".repeat(names.len());
    let rows: String = (0..40).map(|n| format!("{row}{}\n", n % 10)).collect();
    let csv = format!("{},y\n{rows}", names.join(","));
    let job = "name = \"deep\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [3, 32, 32]\n\
               shards = 1\n[[model]]\narch = \"resnet\"\ndepth = 164\n[training]\nepochs = 1\n";
    let folder = Folder::with(&[("job.toml", job), ("t.csv", &csv)]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let line = "model   resnet, 4,972,746 parameters (4,941,578 trained), 1 trial\n";
    assert!(said.contains(line), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn json_and_another_folder_give_the_same() {
    let folder = Folder::with(&[("job.toml", JOB), ("t.csv", &csv())]);
    let path = folder.path().join("job.toml");
    let output = sojourn(&["validate", "--json"]).arg(path).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["valid"], true);
    assert_eq!((&report["trials"], &report["hops"]), (&2.into(), &8.into()));
    assert_eq!(report["train"], serde_json::json!([8, 8]));
}

#[test]
fn the_example_is_valid() {
    let output = sojourn(&["validate", "--json", "examples/digits/job.toml"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["trials"], &report["classes"]), (&12.into(), &10.into()));
    assert_eq!(report["train"].as_array().unwrap().len(), 4);
}

#[test]
fn all_problems_of_the_file_are_shown_at_once_with_their_lines() {
    let job = JOB.replace("epochs", "epoch").replace("\"mlp\"", "\"mpl\"");
    assert_eq!(
        refused(&job, &csv()),
        "error: job.toml:7: `model[0].arch` is `\"mpl\"`; did you mean `mlp`? one of `mlp`, `cnn`, `resnet`, `graph` is wanted\n\
         error: job.toml:9: `training.epochs` is missing: how often to pass over the training data\n\
         error: job.toml:10: `training.epoch` is no known key; did you mean `epochs`?\n"
    );
    let folder = Folder::with(&[("job.toml", job.as_str())]);
    let output =
        sojourn(&["validate", "--json", "job.toml"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["valid"], false);
    assert_eq!(report["problems"][1]["line"], 9);
    assert_eq!(report["problems"][1]["key"], "training.epochs");
    assert!(output.stderr.is_empty());
}

#[test]
fn problems_of_the_data_are_shown_with_file_line_and_column() {
    assert_eq!(refused(JOB, ""), "error: t.csv: the file is empty\n");
    assert_eq!(
        refused(JOB, "a,b,Y\n1,2,3\n"),
        "error: t.csv:1: no column `y` (`data.label`); did you mean `Y`?\n"
    );
    assert_eq!(
        refused(JOB, &format!("{}1,NaN,1\n", csv())),
        "error: t.csv:22: column `b`: a value is missing (`NaN`); `data.missing` says what to do about it: \
         `\"drop-row\"` leaves such rows out, `\"zero\"` takes 0, `\"mean\"` the column's mean\n"
    );
    assert_eq!(
        refused(JOB, "a,b,y\n1,2,0\n1,2\n"),
        "error: t.csv:3: 2 values, the header has 3 columns\n"
    );
    assert_eq!(
        refused(&JOB.replace("shards = 2", "shards = 17"), &csv()),
        "error: `data.shards` is 17, but only 16 of 20 rows are left to train on; at least one row a shard is needed\n"
    );
}

#[test]
fn models_that_do_not_fit_are_shown_by_trial() {
    let job = JOB.replace("[[8]]", "").replace("[8]", "[1048576, 1048576, 1048576]");
    let told = refused(&job, &csv());
    assert!(
        told.starts_with("error: trial 1 (mlp hidden=[1048576,1048576,1048576]) can't be built: "),
        "{told}"
    );
    let job = JOB.replace("{ choice = [[4], [8]] }", "[1048576, 1048576, 1048576]");
    let told = refused(&job, &csv());
    assert!(told.starts_with("error: trial 0 (mlp) can't be built: "), "{told}");
}

#[test]
fn missing_files_are_refused() {
    let folder = Folder::with(&[("job.toml", JOB), ("latin.toml", "")]);
    let run = |file: &str| {
        let output = sojourn(&["validate", file]).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(run("job.toml"), "error: `data.train`: there is no file or folder `t.csv`\n");
    assert!(run("none.toml").starts_with("error: can't read the job file `none.toml`: "));
    std::fs::write(folder.path().join("latin.toml"), b"name = \"\xe9\"").unwrap();
    assert_eq!(run("latin.toml"), "error: `latin.toml` isn't UTF-8 text\n");
}

/// An IDX file of bytes.
fn idx(shape: &[u8], bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut file = vec![0, 0, 8, u8::try_from(shape.len()).unwrap()];
    file.extend(shape.iter().flat_map(|side| u32::from(*side).to_be_bytes()));
    file.extend(bytes);
    file
}

#[test]
fn images_are_described_with_their_shape() {
    let job = JOB.replace("t.csv", "t-images-idx3-ubyte").replace("label = \"y\"", "");
    let job = job.replace("\"mlp\"\nhidden = { choice = [[4], [8]] }", "\"cnn\"\nchannels = [2]");
    let folder = Folder::with(&[("job.toml", &job)]);
    let images = idx(&[20, 4, 6], (0..480u32).map(|pixel| u8::try_from(pixel % 200).unwrap()));
    std::fs::write(folder.path().join("t-images-idx3-ubyte"), images).unwrap();
    let labels = idx(&[20], (0..20).map(|label| label % 3));
    std::fs::write(folder.path().join("t-labels-idx1-ubyte"), labels).unwrap();
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("data    24 features, [1, 4, 6], 3 classes\n"), "{text}");
}

#[test]
fn data_behind_a_url_is_copied_and_the_copy_is_shown() {
    let server = FakeServer::start(|request| match request.line.as_str() {
        "GET /data/t.csv" => Answer { status: 200, headers: String::new(), body: csv().into() },
        _ => Answer { status: 404, headers: String::new(), body: Vec::new() },
    });
    let validate = |path: &str, variables: &[(&str, &str)]| {
        let folder = Folder::with(&[("job.toml", &JOB.replace("t.csv", path))]);
        let cache = folder.path().join("cache");
        let output = sojourn(&["validate", "job.toml"])
            .current_dir(folder.path())
            .env("XDG_CACHE_HOME", &cache)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let left = std::fs::read_dir(cache.join("sojourn").join("submit")).unwrap().count();
        assert_eq!(left, 0, "nothing is left behind");
        let told = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), told.replace(&cache.display().to_string(), "CACHE"))
    };
    let url = format!("{}/data/t.csv", server.url);
    let size = csv().len();
    assert_eq!(
        validate(&url, &[]),
        (
            Some(0),
            format!("{url}: {size} B copied to a temporary file in `CACHE/sojourn/submit`\n")
        )
    );
    let gone = format!("{}/none.csv", server.url);
    assert_eq!(
        validate(&gone, &[]),
        (Some(2), format!("error: can't fetch `{gone}`: the server answers 404 Not Found\n"))
    );
    let variables = [
        ("AWS_ENDPOINT_URL", server.url.as_str()),
        ("AWS_ACCESS_KEY_ID", "me"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    assert_eq!(
        validate("s3://data/none.csv", &variables),
        (
            Some(2),
            "error: can't fetch `s3://data/none.csv`: there is no such object, or no such bucket\n"
                .to_owned()
        )
    );
}

#[test]
fn a_path_of_the_job_file_may_begin_at_the_home_folder() {
    let job = JOB.replace("t.csv", "~/data/t.csv");
    let home = Folder::with(&[("t.csv", csv().as_str())]);
    let folder = Folder::with(&[("job.toml", job.as_str())]);
    std::fs::create_dir(home.path().join("data")).unwrap();
    std::fs::rename(home.path().join("t.csv"), home.path().join("data/t.csv")).unwrap();
    let output = sojourn(&["validate", "job.toml"])
        .current_dir(folder.path())
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_rule_of_early_stopping_is_described() {
    let search = "[search]\nmetric = \"valid/loss\"\nstopping = \"asha\"\n";
    let job = format!("{}{search}", JOB.replace("epochs = 2", "epochs = 10"));
    let folder = Folder::with(&[("job.toml", &job), ("t.csv", &csv())]);
    let output = sojourn(&["validate", "job.toml"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "\nstop    asha: one of 3 goes on after 1, 3, 9 of 10 epochs\n",
        "another run may stop other trials",
        ", at most 10 epochs, at most ",
    ] {
        assert!(said.contains(expected), "{said}{}", String::from_utf8_lossy(&output.stderr));
    }
}
