//! `sojourn-autoscaler up` and `down` as their user calls them, against `moto`.

#![cfg(feature = "ec2")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends at what it did not expect"
)]

#[path = "../../ec2/tests/ec2/moto.rs"]
mod moto;

use moto::Moto;
use serde_json::Value;
use std::{
    fs,
    process::{Output, Stdio},
};
use tempfile::TempDir;
use tokio::process::Command;

const FILE: &str = r#"
fleet = "night"

[limits]
machines = 16
hourly = "2 usd"

[ec2]
endpoint = "ENDPOINT"
types = ["c7i.*"]

[ec2.server]
allowed = ["192.0.2.7/32"]
release = { url = "https://example.org/a.tar.gz", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
programs = { url = "https://example.org/p.tar", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }

[ec2.regions.eu-west-1]
image = "ami-03cf127a"
on_demand = { "c7i.large" = "0.1 usd", "t3.small" = "0.0228 usd" }
"#;

/// A folder with the fleet's file.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("fleet.toml"), text).unwrap();
    folder
}

async fn call(folder: &TempDir, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sojourn-autoscaler"));
    command.args(words).arg("fleet.toml").current_dir(folder.path()).stdin(Stdio::null());
    command.env_remove("SOJOURN_TOKEN_FILE").env_remove("AWS_PROFILE").env("NO_COLOR", "1");
    let own = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];
    command.envs(own).env("HOME", folder.path()).output().await.unwrap()
}

/// The output of a call that must succeed.
async fn said(folder: &TempDir, words: &[&str]) -> String {
    let output = call(folder, words).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

async fn refused(folder: &TempDir, words: &[&str], code: i32, text: &str) {
    let output = call(folder, words).await;
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
    assert!(error.contains(text), "{words:?}: {error}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn a_fleet_comes_up_and_goes_down() {
    let moto = Moto::start().await;
    let folder = folder(&FILE.replace("ENDPOINT", &moto.url));
    assert!(said(&folder, &["check"]).await.starts_with("Fleet `night` works for"));
    let asked = said(&folder, &["check", "--cloud"]).await;
    assert!(asked.contains("eu-west-1: image ami-03cf127a for x86_64, subnets in "), "{asked}");
    assert!(asked.contains("aren't bought: c7i."), "{asked}");
    assert!(!asked.contains("c7i.large"), "{asked}");

    // Nobody is there to ask, and nothing is made.
    refused(&folder, &["up"], 2, "say `--yes`").await;
    let preview = said(&folder, &["up", "--preview"]).await;
    assert!(
        preview.starts_with("fleet `night` in eu-west-1\n  make    network `sojourn-night`\n"),
        "{preview}"
    );
    assert!(
        preview
            .contains("An hour costs about $0.033, a month $24.29: the server's machine $0.0228,"),
        "{preview}"
    );
    assert!(
        preview.contains("16 of them, at most $2.00 an hour, without a limit in all."),
        "{preview}"
    );
    assert!(preview.ends_with("nothing was made\n"), "{preview}");
    let preview = json(&said(&folder, &["up", "--preview", "--json"]).await);
    assert_eq!(preview["costs"]["server_hour"], 22_800);
    let parts = preview["parts"].as_array().unwrap();
    assert!(parts.len() == 12 && parts.iter().all(|part| part["state"] == "missing"), "{preview}");
    assert_eq!(
        said(&folder, &["down"]).await,
        "nothing in eu-west-1 has the tag of the fleet `night`\n"
    );

    let made = json(&said(&folder, &["up", "--yes", "--json"]).await);
    let (url, instance) =
        (made["server"]["url"].as_str().unwrap(), made["server"]["instance"].as_str().unwrap());
    assert!(
        made["parts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|part| part["id"].is_string() && part["state"] == "there"),
        "{made}"
    );
    // Complete: no question, no change, and what comes next.
    let again = said(&folder, &["up"]).await;
    assert!(again.contains("All of it is there: nothing was changed."), "{again}");
    assert!(!again.contains("  make ") && !again.contains("  finish "), "{again}");
    for line in [
        format!("The server is {url}, machine {instance}."),
        format!("  aws ssm start-session --region eu-west-1 --target {instance}"),
        format!(
            "  export SOJOURN_SERVER={url} SOJOURN_CA=server.pem SOJOURN_TOKEN_FILE=admin-token"
        ),
        "All of it is removed by `sojourn cloud down fleet.toml`.".to_owned(),
    ] {
        assert!(again.contains(&line), "{line}: {again}");
    }

    refused(&folder, &["down"], 2, "say `--yes`").await;
    let preview = said(&folder, &["down", "--preview"]).await;
    assert!(preview.contains(&format!("  remove  server {instance} in eu-west-1\n")), "{preview}");
    assert!(
        preview.contains("ALL MODELS") && preview.ends_with("nothing was removed\n"),
        "{preview}"
    );
    let gone = said(&folder, &["down", "--yes"]).await;
    assert!(gone.contains("THE SERVER'S DISK GOES TOO"), "{gone}");
    assert!(
        gone.ends_with("nothing in eu-west-1 has the tag of the fleet `night` any more.\n"),
        "{gone}"
    );
    let nothing = json(&said(&folder, &["down", "--yes", "--json"]).await);
    assert_eq!((&nothing["found"], &nothing["removed"]), (&Value::Array(vec![]), &false.into()));
}

#[tokio::test]
async fn a_file_that_up_cannot_use_is_refused_before_aws_is_asked() {
    // Nobody listens there.
    let file = FILE.replace("ENDPOINT", "http://127.0.0.1:1");
    for (from, to, text) in [
        ("[ec2.server]", "[ec2.other]", "`token_file` is missing"),
        ("[\"192.0.2.7/32\"]", "[]", "nobody outside could reach the server"),
        ("programs = ", "# ", "`ec2.server.programs` is missing"),
        ("types =", "user_data = \"none.yaml\"\ntypes =", "none.yaml`"),
    ] {
        let changed = file.replace(from, to);
        assert_ne!(changed, file, "{from}");
        refused(&folder(&changed), &["up", "--yes"], 2, text).await;
    }
}
