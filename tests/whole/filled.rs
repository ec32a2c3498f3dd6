//! Disks that fill up during a job and get room again: the server's and a client's. The disk is a small filesystem in memory,
//! in a mount namespace of the test's own.

use crate::{
    ctl::status,
    http::poll,
    networks::again_in_namespace,
    site::{Process, Site, program},
};
use serde_json::Value;
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::Command,
};

const MIB: u64 = 1 << 20;
/// The size of the disk that fills.
const DISK: u64 = 64 * MIB;
/// The room that is to stay free on it.
const RESERVE: u64 = 16 * MIB;
const EPOCHS: u32 = 6;
const HOPS: u32 = 4 * EPOCHS * 3;

/// A small filesystem, and what fills it.
struct Disk {
    folder: PathBuf,
    ballast: PathBuf,
}

impl Disk {
    /// Mounts one at a folder.
    fn at(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let size = format!("size={DISK}");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder));
        let ballast = folder.join("ballast");
        Self { folder, ballast }
    }

    fn free(&self) -> u64 {
        sojourn_files::DiskSpace::of(&self.folder).unwrap().free
    }

    /// Fills it until so many bytes are free.
    fn fill(&self, free: u64) {
        let mut ballast = File::options().create(true).append(true).open(&self.ballast).unwrap();
        while self.free() > free {
            let bytes = (self.free() - free).min(MIB);
            match io::copy(&mut io::repeat(0xA5).take(bytes), &mut ballast) {
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return,
                copied => assert!(copied.unwrap() > 0),
            }
        }
    }

    fn empty(&self) {
        fs::remove_file(&self.ballast).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Processes may still have files open there. With the namespace it goes anyway.
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
}

/// Waits until a server's health is so.
fn health(site: &Site, status: &str) {
    let is_so = || Some(site.get("health")).filter(|health| health["status"] == status);
    assert!(
        poll(is_so).is_some(),
        "never `{status}`: {}\n{}",
        site.get("health"),
        site.log("server")
    );
}

/// The job ends, with each result once, and its trials can be replayed.
fn ends_well(site: &Site, job: &str) {
    let view = site.wait(job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["hops"]), (&"finished".into(), &HOPS.into()), "{view}");
    for trial in site.json(&["trials", job]).as_array().unwrap() {
        let replay = site.json(&["replay", job, "--trial", &trial["trial"].to_string()]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
}

fn all_end(processes: &mut [&mut Process]) {
    for process in processes {
        assert_eq!(process.end(), Some(0), "all end well when they are told to");
    }
}

fn reserve_of_server() -> Vec<String> {
    vec!["--disk-reserve".to_owned(), format!("{RESERVE}B")]
}

#[test]
fn a_server_whose_disk_fills_finishes_what_runs_and_goes_on_with_room() {
    again_in_namespace(
        "filled::a_server_whose_disk_fills_finishes_what_runs_and_goes_on_with_room",
        "--mount",
        server_fills,
    );
}

fn server_fills() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::at(folder.path().join("server"));
    let mut site = Site::start_in(folder, reserve_of_server());
    // Unmounted before the folder around it is removed.
    let disk = disk;
    let job = site.submit(61, EPOCHS);
    let mut clients = [0, 1].map(|n| site.client(&format!("client-{n}")));
    site.wait(&job, |view| view["hops"].as_u64().unwrap() > 3);

    // However fast the machines are, there is something left to do when the disk has too little room.
    assert_eq!(site.json(&["pause", &job])["state"], "paused");
    disk.fill(RESERVE / 2);
    health(&site, "storage-low");
    assert_eq!(site.json(&["resume", &job])["state"], "running");
    let waits = site.wait(&job, |view| view["leases_live"] == 0 && !view["waiting"].is_null());
    let why = waits["waiting"].as_str().unwrap();
    assert!(why.contains("the server's disk has"), "{why}");
    let done = waits["hops"].as_u64().unwrap();
    assert!(done < u64::from(HOPS), "{waits}");

    // Full to the last byte: the journal still takes what is asked of it, and keeps it.
    disk.fill(0);
    health(&site, "storage-full");
    assert_eq!(site.json(&["pause", &job])["state"], "paused");
    site.restart();
    health(&site, "storage-full");
    assert_eq!(site.job(&job)["state"], "paused", "it was acknowledged");
    assert_eq!(site.json(&["resume", &job])["state"], "running");
    assert_eq!(site.job(&job)["leases_live"], 0, "nothing is given out meanwhile");

    disk.empty();
    health(&site, "ready");
    ends_well(&site, &job);
    let log = site.log("server");
    let said = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert!(said("less room than is to be kept") <= 2, "once a change:\n{log}");
    let [one, two] = &mut clients;
    all_end(&mut [one, two, &mut site.server]);
}

#[test]
fn a_client_whose_disk_fills_finishes_what_runs_and_goes_on_with_room() {
    again_in_namespace(
        "filled::a_client_whose_disk_fills_finishes_what_runs_and_goes_on_with_room",
        "--mount",
        client_fills,
    );
}

fn client_fills() {
    let mut site = Site::start();
    let disk = Disk::at(site.path().join("client"));
    let limits = format!("[limits]\ndisk_reserve = \"{RESERVE}B\"\n");
    fs::write(site.path().join("client/client.toml"), limits).unwrap();
    let job = site.submit(62, EPOCHS);
    let mut client = site.client("client");
    site.wait(&job, |view| view["hops"].as_u64().unwrap() > 3);
    // However fast the machine is, there is something left to do when the disk is full.
    assert_eq!(site.json(&["pause", &job])["state"], "paused");

    disk.fill(RESERVE / 2);
    assert!(poll(|| (site.get("hosts")[0]["disk_is_low"] == true).then_some(())).is_some());
    assert_eq!(site.json(&["resume", &job])["state"], "running");
    let waits = site.wait(&job, |view| view["leases_live"] == 0 && !view["waiting"].is_null());
    let why = waits["waiting"].as_str().unwrap();
    assert!(why.contains("the disk of every host in contact"), "{why}");
    assert_eq!(site.get("hosts")[0]["disk_is_low"], true);
    let hosts = site.run(&["hosts"]);
    assert!(String::from_utf8_lossy(&hosts.stdout).contains("disk low"), "{hosts:?}");
    assert_eq!(said_by(&site.path().join("client"))["disk"]["is_low"], true);
    site.logged("client", "less room left than is kept free");

    disk.fill(0);
    assert_eq!(site.job(&job)["leases_live"], 0, "it takes nothing");
    disk.empty();
    ends_well(&site, &job);
    all_end(&mut [&mut client, &mut site.server]);
}

/// A client's status, as it tells its owner.
fn said_by(data: &Path) -> Value {
    let told = status(data);
    let data = data.to_str().unwrap();
    let output = Command::new(program()).args(["client", "ctl", "--data", data, "status"]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(text.contains("no unit is begun"), "{text}");
    told
}
