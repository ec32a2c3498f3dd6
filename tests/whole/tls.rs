//! A server over TLS, and those who trust its certificate or don't.

use crate::{
    http::poll,
    site::{Process, Secured, Site, program, spawn},
    support::{Folder, script, sojourn},
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use sojourn_protocol::{
    digest::Digest,
    engine::Engine,
    trainer::{Hello, TRAINER_PROTOCOL, TrainerLine},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "an authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a certificate for `name`, its key, and the authority's certificate.
fn certify(folder: &Path, name: &str, last_year: i32) -> Secured {
    let authority = authority();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_after = date_time_ymd(last_year, 1, 1);
    let certificate = params.signed_by(&key, &authority).unwrap();
    let write = |file: &str, text: String| {
        let path = folder.join(file);
        fs::write(&path, text).unwrap();
        path
    };
    Secured {
        certificate: write("server.pem", certificate.pem()),
        key: write("server.key", key.serialize_pem()),
        ca: write("ca.pem", authority.pem()),
    }
}

fn secured(name: &str, last_year: i32) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let secured = certify(folder.path(), name, last_year);
    Site::start_secured(folder, secured)
}

#[test]
fn a_job_is_submitted_trained_and_exported_over_tls() {
    let mut site = secured("localhost", 4000);
    site.logged("server", "serving at https://127.0.0.1:");
    site.logged("server", &format!("sojourn client --server {} ", site.url));
    let _client = site.client("client-1");
    let job = site.submit_with(3, 1, "[1e-3]", "");
    // Those who wait outlive a server that is away.
    site.restart();
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["hops"]), (&"finished".into(), &6.into()), "{view}");
    let exported = site.json(&["export", &job, "--best", "-o", "best.safetensors"]);
    let file = fs::read(site.path().join("best.safetensors")).unwrap();
    assert_eq!(exported["bytes"].as_u64(), u64::try_from(file.len()).ok());
    sojourn_model::portable::ModelFile::read(&file).unwrap();
}

/// A command that asks the server, the exit code and what it says.
fn asked(server: &str, ca: Option<&Path>) -> (Option<i32>, String) {
    let mut command = sojourn(&["jobs", "--server", server]);
    command.env("SOJOURN_TOKEN", "t");
    if let Some(ca) = ca {
        command.arg("--ca").arg(ca);
    }
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A trainer that can say hello and nothing else.
fn trainer(folder: &Path) -> PathBuf {
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
    let path = folder.join("trainer");
    script(&path, &format!("echo '{hello}'\nread never\n"));
    path
}

/// A client whose log is `FOLDER/client.log`.
fn client(folder: &Path, server: &str, ca: Option<&Path>) -> Process {
    let mut command = Command::new(program());
    command
        .args(["client", "--token", "t", "--server", server, "--data"])
        .arg(folder.join("client"))
        .arg("--trainer")
        .arg(trainer(folder))
        .env_remove("SOJOURN_CA");
    if let Some(ca) = ca {
        command.arg("--ca").arg(ca);
    }
    spawn(command, &folder.join("client.log"))
}

#[test]
fn untrusted_servers_are_distinguished_and_end_a_client_at_once() {
    let site = secured("localhost", 4000);
    let plain = Site::start();
    let other = tempfile::tempdir().unwrap();
    let other_ca = certify(other.path(), "localhost", 4000).ca;
    let ca = site.path().join("ca.pem");
    let by_address = site.url.replace("localhost", "127.0.0.1");
    let in_the_clear = site.url.replace("https", "http");
    let secure_at_plain = plain.url.replace("http", "https");
    for (server, ca, expected) in [
        (&site.url, None, "isn't signed by anybody who is trusted here"),
        (&site.url, Some(&other_ca), "isn't signed by anybody who is trusted here"),
        (&by_address, Some(&ca), "is not for `127.0.0.1` but for `localhost`"),
        (&in_the_clear, None, "if it speaks TLS, its address begins with `https://`"),
        (&secure_at_plain, Some(&ca), "it doesn't speak TLS there"),
    ] {
        let ca = ca.map(PathBuf::as_path);
        let (code, told) = asked(server, ca);
        assert!(told.contains(&format!("the server at {server} can't be trusted: ")), "{told}");
        assert!(told.contains(expected), "{told}");
        assert_eq!(code, Some(2), "{told}");
        let folder = Folder::with(&[]);
        assert_eq!(client(folder.path(), server, ca).wait(), Some(2));
        let log = fs::read_to_string(folder.path().join("client.log")).unwrap();
        assert!(log.contains("can't be trusted: ") && log.contains(expected), "{log}");
    }
    let (code, _) = asked(&site.url, Some(&ca));
    assert_eq!(code, Some(2), "the token is wrong, nothing else");
}

#[test]
fn a_client_reports_an_expired_certificate_and_tries_again() {
    let site = secured("localhost", 2001);
    site.logged("server", "the certificate has expired");
    let ca = site.path().join("ca.pem");
    let (code, told) = asked(&site.url, Some(&ca));
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("its certificate expired ") && told.contains(" days ago"), "{told}");
    let folder = Folder::with(&[]);
    let mut client = client(folder.path(), &site.url, Some(&ca));
    let log = || fs::read_to_string(folder.path().join("client.log")).unwrap_or_default();
    let said = poll(|| {
        assert!(client.is_running(), "{}", log());
        log().contains("renew it on the server").then_some(())
    });
    assert!(said.is_some(), "{}", log());
    assert!(log().contains("trying again"), "{}", log());
    assert_eq!(client.end(), Some(0));
}

#[test]
fn unusable_authority_files_are_refused() {
    let folder = Folder::with(&[("empty.pem", "")]);
    let empty = folder.path().join("empty.pem");
    let (code, told) = asked("https://localhost:1", Some(&empty));
    assert_eq!(code, Some(2));
    assert!(told.contains("empty.pem` holds no certificate: "), "{told}");
    let (code, told) = asked("https://localhost:1", Some(&folder.path().join("none.pem")));
    assert_eq!(code, Some(2));
    assert!(told.contains("can't read the certificates of authorities in `"), "{told}");
    let (code, told) = asked("http://localhost:1", Some(&empty));
    assert_eq!(code, Some(2));
    assert!(told.contains("it must start with `https://` where"), "{told}");
    assert_eq!(client(folder.path(), "http://localhost:1", Some(&empty)).wait(), Some(2));
    assert_eq!(client(folder.path(), "https://localhost:1", Some(&empty)).wait(), Some(2));

    let serve = |args: &[&str]| {
        let mut command = sojourn(&["serve", "--listen", "127.0.0.1:0", "--data", "data"]);
        let output = command.args(args).current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for half in [["--tls-cert", "empty.pem"], ["--tls-key", "empty.pem"]] {
        assert_eq!(serve(&half).0, Some(2), "{half:?}");
    }
    let (code, told) = serve(&["--tls-cert", "empty.pem", "--tls-key", "empty.pem"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("`empty.pem` holds no certificate: "), "{told}");
}

#[test]
fn a_self_signed_certificate_of_openssl_is_trusted_by_its_own_file() {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = folder.path().join("server.pem");
    fs::write(&certificate, params.self_signed(&key).unwrap().pem()).unwrap();
    let key_file = folder.path().join("server.key");
    fs::write(&key_file, key.serialize_pem()).unwrap();
    let ca = certificate.clone();
    let site = Site::start_secured(folder, Secured { certificate, key: key_file, ca });
    assert_eq!(site.json(&["jobs"]), serde_json::json!([]));
    let (code, told) = asked(&site.url, None);
    assert_eq!(code, Some(2));
    assert!(told.contains("isn't signed by anybody who is trusted here"), "{told}");
}
