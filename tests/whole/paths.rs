//! Paths that aren't UTF-8: of folders of servers and clients, of models, data and backups.

use crate::site::Site;
use serde_json::Value;
use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Output,
};

/// A name with a byte that is no UTF-8 (a Latin-1 `ü`).
fn odd(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Runs a command with these words and paths, and gives its JSON.
fn json(site: &Site, words: &[&str], paths: &[&OsStr]) -> Value {
    let output = site.command(words).args(paths).arg("--json").output().unwrap();
    succeeded(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn files_may_have_names_that_are_not_utf_8() {
    let site = Site::start();
    let job = site.submit(5, 1);
    let client = site.client("attic");
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{}\n{}", site.log("server"), site.log("attic"));
    drop(client);

    let at = |name: &[u8]| -> PathBuf { site.path().join(odd(name)) };
    let model = at(b"M\xfcll.safetensors");
    json(&site, &["export", &job, "--best", "-o"], &[model.as_os_str()]);
    assert!(model.is_file());
    let data = at(b"M\xfcll.csv");
    fs::copy(site.path().join("digits.csv"), &data).unwrap();
    let predictions = at(b"S\xfcd.csv");
    let paths: [&Path; 2] = [&model, &data];
    let paths = paths.map(Path::as_os_str);
    let more = [OsStr::new("-o"), predictions.as_os_str()];
    let said = json(&site, &["predict"], &[&paths[..], &more].concat());
    assert!(said["rows"].as_u64() > Some(1000) && said["accuracy"].as_f64() > Some(0.3), "{said}");
    assert!(predictions.is_file());

    fs::rename(site.path().join("job.toml"), at(b"J\xfcrgen.toml")).unwrap();
    let file = at(b"J\xfcrgen.toml");
    assert_eq!(json(&site, &["validate"], &[file.as_os_str()])["valid"], true);
    let report = at(b"B\xfcro.html");
    json(&site, &["report", &job, "-o"], &[report.as_os_str()]);
    let tables = at(b"T\xfcr");
    json(&site, &["export", &job, "--csv"], &[tables.as_os_str()]);

    let backup = at(b"\xfcber");
    let data = site.data();
    let of_data = [backup.as_os_str(), OsStr::new("--data"), data.as_os_str()];
    json(&site, &["backup"], &of_data);
    let checked = json(&site, &["backup", "--check"], &[backup.as_os_str()]);
    assert_eq!(checked["jobs"], 1);

    let missing = site.command(&["predict"]).args([&model, &at(b"n\xfcrnberg.csv")]).output();
    let said = String::from_utf8(missing.unwrap().stderr).unwrap();
    assert!(said.contains("rnberg.csv`: No such file"), "{said}");
}

#[test]
fn a_server_runs_in_any_folder_and_a_client_says_that_it_does_not() {
    let folder = tempfile::Builder::new().prefix(odd(b"B\xfccher-")).tempdir().unwrap();
    assert!(folder.path().to_str().is_none());
    let site = Site::start_in(folder, vec![]);
    site.submit(5, 1);
    assert_eq!(site.json(&["jobs"])[0]["state"], "running");

    let output = site.client_command("attic", &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("isn't UTF-8") && said.contains("`--data`"), "{said}");
}
