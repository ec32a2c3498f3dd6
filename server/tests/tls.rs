//! Serving over TLS: files that are good, renewed and bad.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reqwest::{Certificate, Client, tls};
use sojourn_server::{ServeConfig, ServeError, Server, TlsFiles, Transport};
use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;

/// Somebody who signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Certificate and key of a server called `name`, as PEM.
    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// A client that believes this authority alone, and makes a connection for every request.
    fn client(&self) -> reqwest::ClientBuilder {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let root = Certificate::from_pem(self.0.pem().as_bytes()).unwrap();
        Client::builder().tls_certs_only([root]).no_proxy().pool_max_idle_per_host(0)
    }
}

fn files(folder: &Path) -> TlsFiles {
    let files = TlsFiles::new(folder.join("server.pem"), folder.join("server.key"));
    // Looked at before every connection.
    TlsFiles { look_every: Duration::ZERO, ..files }
}

fn write(folder: &Path, (certificate, key): &(String, String)) {
    fs::write(folder.join("server.pem"), certificate).unwrap();
    fs::write(folder.join("server.key"), key).unwrap();
}

async fn start(folder: &TempDir) -> Result<Server, ServeError> {
    let mut config = ServeConfig::new(folder.path().join("data"), "127.0.0.1:0".parse().unwrap());
    config.tls = Some(files(folder.path()));
    Server::start(config).await
}

async fn health(client: &Client, server: &Server) -> Result<u16, reqwest::Error> {
    let port = server.ready().address.port();
    let answer = client.get(format!("https://localhost:{port}/v1/health")).send().await?;
    Ok(answer.status().as_u16())
}

#[tokio::test]
async fn connections_are_encrypted_and_renewed_certificates_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (Authority::new(), Authority::new());
    write(folder.path(), &before.sign("localhost"));
    let server = start(&folder).await.unwrap();
    let transport = Transport::Https { name: Some("localhost".into()), own_authority: None };
    assert_eq!(server.ready().transport, transport);
    let url = format!("https://localhost:{}", server.ready().address.port());
    assert!(server.ready().client_line().contains(&url));
    for version in [tls::Version::TLS_1_2, tls::Version::TLS_1_3] {
        let client = before.client().tls_version_max(version).build().unwrap();
        assert_eq!(health(&client, &server).await.unwrap(), 200);
    }

    // Another authority's certificate: those who believe it get in from the next connection on.
    let (old, new) = (before.client().build().unwrap(), after.client().build().unwrap());
    health(&new, &server).await.unwrap_err();
    let renewed = after.sign("localhost");
    fs::write(folder.path().join("server.pem"), &renewed.0).unwrap();
    assert_eq!(health(&old, &server).await.unwrap(), 200, "half of a renewal changes nothing");
    write(folder.path(), &renewed);
    assert_eq!(health(&new, &server).await.unwrap(), 200);
    // One that can't take up an old session.
    health(&before.client().build().unwrap(), &server).await.unwrap_err();
    fs::remove_file(folder.path().join("server.key")).unwrap();
    assert_eq!(health(&new, &server).await.unwrap(), 200, "what was read is kept");
    server.stop().await;
}

#[tokio::test]
async fn the_client_line_names_a_self_signed_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    write(folder.path(), &(made.cert.pem(), made.signing_key.serialize_pem()));
    let server = start(&folder).await.unwrap();
    let ready = server.ready();
    let (address, token) = (ready.address, ready.enrol_token_file.display());
    let ca = folder.path().join("server.pem");
    let line = format!(
        "sojourn client --server https://{address} --token-file {token} --ca {}",
        ca.display()
    );
    assert_eq!(ready.client_line(), line);
    server.stop().await;
}

#[tokio::test]
async fn files_that_cannot_be_served_are_refused_by_name_and_line() {
    let authority = Authority::new();
    let (one, other) = (authority.sign("localhost"), authority.sign("localhost"));
    let section = |label: &str, inside: &str| {
        format!("-----BEGIN {label}-----\n{inside}\n-----END {label}-----\n")
    };
    let garbage = section("CERTIFICATE", "AAAA");
    let lines = one.0.lines().count();
    let cases = [
        (
            other.0.clone(),
            one.1.clone(),
            "server.key` doesn't belong to the first certificate".to_owned(),
        ),
        (String::new(), one.1.clone(), "server.pem` holds no certificate: ".to_owned()),
        (one.1.clone(), one.1.clone(), "server.pem` holds no certificate: ".to_owned()),
        (one.0.clone(), one.0.clone(), "server.key` holds no private key: ".to_owned()),
        (
            format!("{}{garbage}", one.0),
            one.1.clone(),
            format!("server.pem`, line {}: the certificate can't be understood", lines + 1),
        ),
        (
            format!("{}{}", one.0, section("CERTIFICATE", "?")),
            one.1.clone(),
            format!("server.pem`, line {}: the certificate can't be understood", lines + 1),
        ),
        (
            one.0.clone(),
            format!("# mine\n{}", section("PRIVATE KEY", "AAAA")),
            "server.key`, line 2: the private key can't be understood".to_owned(),
        ),
        (
            one.0.clone(),
            section("ENCRYPTED PRIVATE KEY", "AAAA"),
            "server.key`, line 1: the key is encrypted; ".to_owned(),
        ),
        (
            one.0.clone(),
            section("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\n\nAAAA"),
            "server.key`, line 2: the key is encrypted; ".to_owned(),
        ),
    ];
    for (certificate, key, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &(certificate, key));
        let refused = start(&folder).await.unwrap_err().to_string();
        assert!(refused.contains(&expected), "{refused}");
    }
    let folder = tempfile::tempdir().unwrap();
    let refused = start(&folder).await.unwrap_err().to_string();
    assert!(refused.contains("can't read `") && refused.contains("server.pem`"), "{refused}");
}
