//! The client as a service: what systemd says of its units, and that nothing stays behind.

use crate::support::{script, sojourn};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// All files and folders below, relative.
fn below(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.strip_prefix(root).unwrap().to_owned());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// A home, and a `systemctl` that writes down what it is told.
fn home() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let programs = folder.path().join("programs");
    fs::create_dir_all(&programs).unwrap();
    fs::create_dir(folder.path().join("home")).unwrap();
    let told = folder.path().join("told");
    script(&programs.join("systemctl"), &format!("echo \"$@\" >> '{}'\n", told.display()));
    (folder, told)
}

fn service(folder: &TempDir, args: &[&str]) -> assert_cmd::assert::Assert {
    let path = format!("{}:/usr/bin:/bin", folder.path().join("programs").display());
    sojourn(&[&["service"], args].concat())
        .env("PATH", path)
        .env("HOME", folder.path().join("home"))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .assert()
}

#[test]
fn uninstalling_removes_all_that_was_installed() {
    let (folder, told) = home();
    let home = folder.path().join("home");
    fs::create_dir_all(home.join(".config/systemd/user")).unwrap();
    fs::create_dir_all(home.join(".local/share")).unwrap();
    let before = below(&home);
    let install = ["install", "--server", "https://sojourn.example.org", "--token", "enrol-me"];
    service(&folder, &install).success();
    // Again, over what is there.
    service(&folder, &install).success();
    let settings = home.join(".config/sojourn/client.env");
    assert_eq!(
        fs::read_to_string(&settings).unwrap(),
        "SOJOURN_SERVER=https://sojourn.example.org\nSOJOURN_ENROL_TOKEN=enrol-me\n"
    );
    assert_eq!(fs::metadata(&settings).unwrap().permissions().mode() & 0o777, 0o600);
    // Files that a client would have written.
    let data = home.join(".local/share/sojourn/client");
    for folder in ["cache", "log"] {
        fs::create_dir_all(data.join(folder)).unwrap();
    }
    fs::write(data.join("log/000000.2026-11-21.jsonl"), "{}\n").unwrap();
    drop(UnixListener::bind(data.join("control.sock")).unwrap());
    service(&folder, &["uninstall"]).success();
    assert_eq!(below(&home), before);
    let start = "--user daemon-reload\n--user enable --now sojourn-client.service\n";
    let end = "--user disable --now sojourn-client.service\n--user daemon-reload\n";
    assert_eq!(fs::read_to_string(told).unwrap(), format!("{start}{start}{end}"));
    // Where there is nothing, nothing is done.
    service(&folder, &["uninstall"]).success();
}

#[test]
fn data_may_be_kept_and_unusable_settings_are_refused() {
    let (folder, told) = home();
    let home = folder.path().join("home");
    service(&folder, &["install", "--no-start", "--server", "http://s", "--token", "t"]).success();
    assert!(!told.exists());
    let data = home.join(".local/share/sojourn/client");
    fs::create_dir_all(&data).unwrap();
    service(&folder, &["uninstall", "--keep-data"]).success();
    assert!(data.is_dir() && !home.join(".config/sojourn").exists());
    for token in ["", "two words", "a\nSOJOURN_SERVER=http://evil"] {
        service(&folder, &["install", "--server", "http://s", "--token", token]).code(2);
    }
}

/// CI's machine has `systemd-analyze`, as every machine that these units are for.
#[test]
fn systemd_accepts_the_units() {
    for scope in ["--user", "--system"] {
        let (folder, _) = home();
        let args: &[&str] = if scope == "--user" { &["show"] } else { &["show", "--system"] };
        let shown = service(&folder, args).success();
        let unit = folder.path().join("sojourn-client.service");
        fs::write(&unit, &shown.get_output().stdout).unwrap();
        let mut verify = Command::new("systemd-analyze");
        // A person's manager has one, though nobody is logged in here.
        verify.args([scope, "verify"]).arg(&unit).env("XDG_RUNTIME_DIR", folder.path());
        let verify = verify.output().expect("systemd-analyze, of the package systemd");
        let said = String::from_utf8_lossy(&verify.stderr);
        let about_us: Vec<&str> = said.lines().filter(|line| line.contains("sojourn")).collect();
        assert!(verify.status.success() && about_us.is_empty(), "{scope}: {said}");
    }
}
