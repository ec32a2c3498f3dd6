//! Backups: a running server's folder is copied while a job trains, and another server goes on from the copy.

use crate::{
    site::{Site, program},
    support::Folder,
};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn backup(data: &Path, folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("backup").arg(folder).arg("--data").arg(data).args(more).output().unwrap()
}

/// The JSON of a backup that must succeed.
fn backed_up(data: &Path, folder: &Path, more: &[&str]) -> Value {
    let output = backup(data, folder, &[more, &["--json"]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The message of a backup that must be refused with this code.
fn refused(data: &Path, folder: &Path, more: &[&str], code: i32) -> String {
    let output = backup(data, folder, more);
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Copies all files of a folder.
fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

#[test]
fn a_job_goes_on_from_the_backup_of_a_running_server_to_the_same_bytes() {
    let mut site = Site::start();
    let job = site.submit(5, 6);
    let client = site.client("attic");
    let folder = site.path().join("backup");
    site.wait(&job, |view| view["hops"].as_u64() > Some(0));
    let first = backed_up(&site.data(), &folder, &[]);
    assert_eq!((&first["jobs"], &first["hosts"]), (&1.into(), &1.into()), "{first}");
    assert!(first["files_copied"].as_u64() > Some(0), "{first}");

    // Again and again under load: less is copied each time than is there.
    let hops = site.job(&job)["hops"].as_u64().unwrap();
    let view = site.wait(&job, |view| view["hops"].as_u64() >= Some(hops + 6));
    assert_eq!(view["state"], "running", "the job has ended too soon: {view}");
    let second = backed_up(&site.data(), &folder, &[]);
    assert!(second["position"].as_u64() > first["position"].as_u64(), "{first} {second}");
    assert!(second["bytes_copied"].as_u64() < second["blob_bytes"].as_u64(), "{second}");
    let view = site.job(&job);
    assert_eq!(view["state"], "running", "the backup was taken of a job that trains: {view}");
    let checked = backed_up(&site.data(), &folder, &["--check"]);
    assert_eq!(checked["position"], second["position"]);

    // The machine has trained more since, of which the restored server knows nothing.
    site.wait(&job, |view| view["hops"].as_u64() > Some(hops + 8) || view["state"] != "running");
    site.server.kill();
    fs::remove_dir_all(site.data()).unwrap();
    copy_folder(&folder, &site.data());
    fs::write(site.data().join("address"), "").unwrap();
    site.restart();
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}\n{}", site.log("server"), site.log("attic"));
    for trial in ["0", "1", "2", "3"] {
        let replay = site.json(&["replay", &job, "--trial", trial]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
    }
    drop(client);

    // The backup itself is as it was.
    backed_up(&site.data(), &folder, &["--check"]);
    let third = backed_up(&site.data(), &folder, &[]);
    assert!(third["position"].as_u64() > second["position"].as_u64(), "{third}");
}

#[test]
fn what_is_no_backup_is_left_alone() {
    let site = Site::start();
    let folder = Folder::with(&[("letter", "dear")]);
    let said = refused(&site.data(), folder.path(), &[], 2);
    assert!(said.contains("isn't empty"), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join("letter")).unwrap(), "dear");

    let said = refused(folder.path(), &site.path().join("b"), &[], 2);
    assert!(said.contains("journal in Redis"), "{said}");
    let said = refused(&site.data(), &site.data().join("b"), &[], 2);
    assert!(said.contains("within each other"), "{said}");
    let said = refused(&site.data(), folder.path(), &["--check"], 2);
    assert!(said.contains("is no backup"), "{said}");

    // A folder in which a server ran.
    let own = site.path().join("own");
    backed_up(&site.data(), &own, &[]);
    let other = Site::start();
    let said = refused(&other.data(), &own, &[], 2);
    assert!(said.contains("of another server"), "{said}");
    fs::create_dir(own.join("write-ahead-log")).unwrap();
    let said = refused(&site.data(), &own, &[], 2);
    assert!(said.contains("a server has run in"), "{said}");
}

#[test]
fn a_blob_that_is_gone_or_altered_is_said() {
    let site = Site::start();
    let job = site.submit(5, 1);
    let folder = site.path().join("backup");
    backed_up(&site.data(), &folder, &[]);
    let blobs = folder.join("blobs/sha256");
    let file =
        fs::read_dir(&blobs).unwrap().flat_map(|of| fs::read_dir(of.unwrap().path()).unwrap());
    let file = file.map(|of| of.unwrap().path()).next().unwrap();
    let bytes = fs::read(&file).unwrap();
    let mut altered = bytes.clone();
    altered[0] ^= 1;
    fs::write(&file, altered).unwrap();
    let said = refused(&site.data(), &folder, &["--check"], 1);
    assert!(
        said.contains("names 1 blobs")
            && said.contains(file.file_name().unwrap().to_str().unwrap())
    );
    fs::remove_file(&file).unwrap();
    refused(&site.data(), &folder, &["--check"], 1);
    // A run puts back what is missing.
    let again = backed_up(&site.data(), &folder, &[]);
    assert_eq!(again["files_copied"], 1, "{again}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
    assert_eq!(site.job(&job)["state"], "running");
}
