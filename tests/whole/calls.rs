//! Calls that are wrong, servers that are away or say no, output that nobody reads: codes and messages.

use crate::support::{Answer, FakeServer, Folder, script, sojourn};
use serde_json::{Value, json};
use sojourn_protocol::{
    PROTOCOL_VERSION,
    digest::Digest,
    engine::Engine,
    trainer::{Hello, TRAINER_PROTOCOL, TrainerLine},
};
use std::{
    fs,
    net::TcpListener,
    process::{Command, Stdio},
};

/// Every command that asks a server, with arguments that are good.
const ASKING: &[&[&str]] = &[
    &["jobs"],
    &["jobs", "--json"],
    &["status", "1"],
    &["status", "1", "--watch"],
    &["trials", "1"],
    &["hosts"],
    &["events", "1"],
    &["cancel", "1"],
    &["pause", "1"],
    &["resume", "1"],
    &["extend", "1", "--epochs", "2"],
    &["set", "1", "--priority", "2"],
    &["revoke", "1"],
    &["gc"],
    &["export", "1", "-o", "m.safetensors"],
];

fn ended(output: &std::process::Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stderr.clone()).unwrap())
}

/// An address where nothing listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn an_unreachable_server_is_code_3_and_the_error_says_how_to_start_one() {
    let server = nowhere();
    let folder = Folder::with(&[]);
    for args in ASKING {
        let output =
            sojourn(args).args(["--server", &server]).current_dir(folder.path()).output().unwrap();
        let (code, told) = ended(&output);
        assert_eq!(code, Some(3), "{args:?}: {told}");
        assert!(told.starts_with(&format!("error: no server at {server} (")), "{told}");
        assert!(told.ends_with("; start one with `sojourn serve`\n"), "{told}");
        assert!(output.stdout.is_empty());
    }
    assert!(folder.names().is_empty(), "no half-made file");
}

#[test]
fn submit_looks_for_the_server_before_it_reads_data_but_after_it_reads_the_job() {
    let job = "name = \"n\"\n[data]\ntrain = \"none.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = []\n[training]\nepochs = 1\n";
    let folder = Folder::with(&[("job.toml", job), ("bad.toml", "nam = 1")]);
    let server = nowhere();
    let run = |file: &str| {
        let mut command = sojourn(&["submit", file, "--server", &server]);
        ended(&command.current_dir(folder.path()).output().unwrap())
    };
    assert_eq!(run("job.toml").0, Some(3));
    let (code, told) = run("bad.toml");
    assert_eq!(code, Some(2));
    assert!(
        told.contains("error: bad.toml:1: `nam` is no known key or table; did you mean `name`?\n"),
        "{told}"
    );
}

#[test]
fn a_wrong_token_is_code_2_and_the_error_says_where_the_right_one_is() {
    let server = FakeServer::start(|_| {
        Answer::json(401, r#"{"kind":"unauthorized","message":"unknown token"}"#)
    });
    for args in ASKING {
        let mut command = sojourn(args);
        command.args(["--server", &server.url]).env("SOJOURN_TOKEN", "wrong");
        let output = command.output().unwrap();
        let (code, told) = ended(&output);
        assert_eq!(code, Some(2), "{args:?}");
        assert_eq!(
            told,
            format!(
                "error: {} refuses (unknown token); give a token that it takes by --token-file or SOJOURN_TOKEN; the server's own is in its file `admin-token`\n",
                server.url
            )
        );
    }
    let requests = server.requests.lock().unwrap();
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer wrong")));
    assert!(
        requests.iter().all(
            |request| request.header("sojourn-protocol") == Some(&PROTOCOL_VERSION.to_string())
        )
    );
}

#[test]
fn the_token_of_a_server_on_this_machine_is_found() {
    let server = FakeServer::start(|_| Answer::json(200, "[]"));
    let address = format!("{}\n", server.url.trim_start_matches("http://"));
    let folder =
        Folder::with(&[("admin-token", "secret-1\n"), ("address", &address), ("lock", "")]);
    // As the server does while it runs.
    let lock = fs::File::open(folder.path().join("lock")).unwrap();
    lock.lock().unwrap();
    sojourn(&["jobs", "--server", &server.url])
        .env("SOJOURN_DATA", folder.path())
        .assert()
        .success()
        .stdout("no jobs yet: `sojourn submit job.toml` makes one\n");
    let sent = |server: &FakeServer, number: usize| {
        let requests = server.requests.lock().unwrap();
        requests[number].header("authorization").map(str::to_owned)
    };
    assert_eq!(sent(&server, 0).as_deref(), Some("Bearer secret-1"));

    // Another program on this machine isn't told.
    let stranger = FakeServer::start(|_| Answer::json(200, "[]"));
    let mut jobs = sojourn(&["jobs", "--server", &stranger.url]);
    jobs.env("SOJOURN_DATA", folder.path()).assert().success();
    assert_eq!(sent(&stranger, 0), None);

    // Nor one that has the port of a server that was killed and left its address.
    lock.unlock().unwrap();
    sojourn(&["jobs", "--server", &server.url])
        .env("SOJOURN_DATA", folder.path())
        .assert()
        .success();
    assert_eq!(sent(&server, 1), None);
}

#[test]
fn unknown_ids_are_code_2_with_the_servers_message() {
    let server = FakeServer::start(|_| {
        Answer::json(404, r#"{"kind":"not-found","message":"there is no job 9"}"#)
    });
    let output = sojourn(&["status", "9", "--server", &server.url]).output().unwrap();
    assert_eq!(ended(&output), (Some(2), "error: there is no job 9\n".into()));
}

#[test]
fn an_answer_of_another_program_is_refused() {
    let page = FakeServer::start(|_| Answer {
        status: 404,
        headers: String::new(),
        body: b"<html>\n  not   here</html>".to_vec(),
    });
    let output = sojourn(&["jobs", "--server", &page.url]).output().unwrap();
    assert_eq!(
        ended(&output),
        (
            Some(3),
            format!(
                "error: {} doesn't answer like a sojourn server (status 404): <html> not here</html>\n",
                page.url
            )
        )
    );
    let silent =
        FakeServer::start(|_| Answer { status: 200, headers: String::new(), body: b"[]".to_vec() });
    let output = sojourn(&["jobs", "--server", &silent.url]).output().unwrap();
    assert_eq!(ended(&output).0, Some(3));
    let newer = FakeServer::start(|_| Answer {
        status: 200,
        headers: "sojourn-protocol: 99\r\n".into(),
        body: b"[]".to_vec(),
    });
    let output = sojourn(&["jobs", "--server", &newer.url]).output().unwrap();
    assert_eq!(
        ended(&output),
        (Some(2), "error: the server speaks protocol version 99, this program 3; use the same version of sojourn on both sides\n".into())
    );
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let asked = std::sync::atomic::AtomicU32::new(0);
    let server =
        FakeServer::start(move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Answer::json(503, r#"{"kind":"unavailable","message":"starting"}"#),
            _ => Answer::json(200, "[]"),
        });
    sojourn(&["hosts", "--json", "--server", &server.url]).assert().success().stdout("[]\n");
    assert_eq!(server.lines(), ["GET /v1/hosts", "GET /v1/hosts"]);
}

#[test]
fn a_server_below_a_path_is_asked_there() {
    let server = FakeServer::start(|_| Answer::json(200, "[]"));
    let url = format!("{}/sojourn", server.url);
    sojourn(&["jobs", "--json", "--server", &url]).assert().success();
    assert_eq!(server.lines(), ["GET /sojourn/v1/jobs"]);
}

#[test]
fn wrong_calls_are_code_2() {
    for args in [
        &["zzz"][..],
        &["status"],
        &["token", "revoke", "one"],
        &["export", "1"],
        &["export", "1", "--trial", "2", "--best", "-o", "x"],
        &["validate", "a.toml", "--jsn"],
    ] {
        let output = sojourn(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty());
    }
    let told = |server: &str| {
        let output = sojourn(&["jobs", "--server", server]).output().unwrap();
        let (code, told) = ended(&output);
        assert_eq!(code, Some(2));
        told
    };
    assert!(told("localhost:1").contains(
        "`localhost:1` is no server address: it must start with `http://` or `https://`"
    ));
    assert!(told("nonsense").contains("`nonsense` is no server address: "));
    assert!(sojourn(&["status", "--help"]).output().unwrap().status.success());
}

#[test]
fn a_closed_pipe_is_no_error() {
    let script = format!(
        "'{}' completions bash | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_sojourn")
    );
    let output =
        Command::new("bash").args(["-c", &script]).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
}

#[test]
fn the_openapi_document_needs_no_server() {
    let output = sojourn(&["openapi"]).output().unwrap();
    assert!(output.status.success());
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["paths"]["/v1/work"]["post"]["operationId"], "work");
}

#[test]
fn completions_are_made_for_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let output = sojourn(&["completions", shell]).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("submit"), "{shell}");
    }
}

const HOST: &str = r#"{"host":1,"name":"m","state":"STATE","seen_at":null,"slots":2,"devices":[{"name":"cpu","slots":2,"numeric_class":"cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc","flops":1e9,"memory":null,"measured":[]}],"cached":0,"leases":[],"used":3,"expired":0,"failures":0,"last_error":null,"train_micros":1500000}"#;

#[test]
fn gc_prints_what_it_found() {
    let found = |objects: u64, bytes: u64| json!({ "objects": objects, "bytes": bytes });
    let answer = json!({
        "dry_run": true, "unknown": found(1, 2000), "uploads": found(0, 0), "kept": found(12, 1),
    });
    let body = answer.to_string();
    let server = FakeServer::start(move |_| Answer::json(200, body.clone()));
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let gc = |more: &[&str]| {
        let call = [&["gc", "--dry-run", "--grace", "2"], more].concat();
        String::from_utf8(sojourn(&call).args(["--server", &server.url]).output().unwrap().stdout)
            .unwrap()
    };
    assert_eq!(
        gc(&[]),
        "would go: 1 unknown blob (2.0 kB) and 0 unwanted uploads (0 B); 12 blobs (1 B) stay\n"
    );
    assert_eq!(parsed(&gc(&["--json"])), answer);
    let asked =
        parsed(&String::from_utf8(server.requests.lock().unwrap()[0].body.clone()).unwrap());
    assert_eq!(asked, json!({ "dry_run": true, "grace": 7_200_000 }));
}

#[test]
fn a_machine_is_revoked_by_its_number() {
    let host = HOST.replace("STATE", "revoked");
    let answer = host.clone();
    let server = FakeServer::start(move |_| Answer::json(200, answer.clone()));
    let revoke = |json: &[&str]| {
        let mut command = sojourn(&["revoke", "1", "--server", &server.url]);
        String::from_utf8(command.args(json).output().unwrap().stdout).unwrap()
    };
    assert_eq!(revoke(&[]), "host 1 `m` is revoked\n");
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(parsed(&revoke(&["--json"])), parsed(&host));
    assert_eq!(server.lines(), ["POST /v1/hosts/1/revoke", "POST /v1/hosts/1/revoke"]);
}

#[test]
fn nothing_is_coloured_in_a_pipe() {
    let server =
        FakeServer::start(|_| Answer::json(200, format!("[{}]", HOST.replace("STATE", "live"))));
    let output = sojourn(&["hosts", "--server", &server.url]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\u{1b}'), "{text}");
    let mut lines = text.lines();
    assert!(lines.next().unwrap().trim_start().starts_with("HOST"), "{text}");
    let fields: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(
        fields,
        ["1", "m", "-", "live", "-", "0/2", "cpu", "0", "3", "0", "-", "-", "1.5", "s", "-"]
    );
}

#[test]
fn a_client_that_cannot_start_says_why() {
    let folder = Folder::with(&[("no-trainer", "#!/bin/sh\nexit 7\n")]);
    let client = |args: &[&str]| {
        let output = sojourn(&["client", "--token", "t", "--data", "data"])
            .args(args)
            .env_remove("SOJOURN_TRAINER")
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.stdout.is_empty());
        ended(&output)
    };
    let (code, told) = client(&["--server", "nonsense"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("error: `nonsense` is no server address: "), "{told}");
    let (code, told) = client(&["--cache", "many"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("a size is wanted, e.g. `20GiB` or `500MB`"), "{told}");
    let (code, told) = client(&["--cache", "5"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("a size with its unit is wanted, e.g. `20GiB` or `500MB`"), "{told}");
    for address in ["/foo", "169.254.169.254"] {
        let (code, told) = client(&["--metadata", address]);
        assert_eq!(code, Some(2), "{told}");
        let refused = format!(
            "`{address}` is no address of a metadata service: it must start with `http://`"
        );
        assert!(told.contains(&refused) && told.contains("`--metadata none`"), "{told}");
    }
    assert_eq!(client(&["--slots", "0"]).0, Some(2));
    let (code, told) = client(&["--trainer", "none"]);
    assert_eq!(code, Some(1));
    assert!(
        told.contains("error: the trainer can't be started: there is no trainer at `none`"),
        "{told}"
    );
    let (code, told) = client(&["--trainer", "no-trainer"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("error: the trainer can't be started: "), "{told}");
}

#[test]
fn a_client_enrols_with_the_enrolment_token_whatever_the_admin_token_is() {
    let hello = TrainerLine::Hello(Hello {
        protocol: TRAINER_PROTOCOL,
        engine: Engine {
            name: "none".into(),
            framework: "none".into(),
            models: vec!["mlp".into()],
        },
        threads: 1,
        numeric_class: Digest::of(b"class"),
        flops: 1e9,
        device: "cpu".into(),
    });
    let hello = serde_json::to_string(&hello).unwrap();
    let folder = Folder::with(&[]);
    let trainer = folder.path().join("trainer");
    script(&trainer, &format!("echo '{hello}'\nread never\n"));
    let server = FakeServer::start(|_| {
        Answer::json(401, r#"{"kind":"unauthorized","message":"no such enrolment token"}"#)
    });
    let output = sojourn(&["client", "--server", &server.url, "--data", "data"])
        .env("SOJOURN_TRAINER", &trainer)
        .env("SOJOURN_TOKEN", "admin")
        .env("SOJOURN_ENROL_TOKEN", "enrol")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let (code, told) = ended(&output);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("no such enrolment token"), "{told}");
    let requests = server.requests.lock().unwrap();
    assert_eq!(requests[0].line, "POST /v1/enrol");
    assert_eq!(requests[0].header("authorization"), Some("Bearer enrol"));
}
