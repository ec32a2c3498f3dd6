//! Certificates: trusted ones, and what is said of others.

use crate::number::Number;
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use sojourn_http::{
    Authorities, CallError, HttpClient, HttpConfig, RetryPolicy, Servers, TlsFault,
};
use sojourn_protocol::{PROTOCOL_HEADER, PROTOCOL_VERSION};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    sync::Arc,
    thread,
};

/// A server with a certificate of its own making, which lies in the file.
fn serve_tls(file: &Path) -> u16 {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut head = [0; 4096];
            // A client that trusts nobody says nothing.
            if stream.read(&mut head).is_ok() {
                let answer = format!(
                    "HTTP/1.1 200 x\r\nconnection: close\r\n{PROTOCOL_HEADER}: {PROTOCOL_VERSION}\r\n\
                     content-length: 1\r\n\r\n7"
                );
                let _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    port
}

async fn call(url: &str, authorities: &Authorities) -> Result<u32, CallError> {
    let servers = Servers::parse(url, true).unwrap();
    let config = HttpConfig { authorities: Some(authorities), ..HttpConfig::default() };
    let client = HttpClient::new(servers, &config).unwrap();
    client.call(Number, RetryPolicy::Never).await
}

#[tokio::test]
async fn only_a_named_certificate_for_the_right_name_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (own, others) = (folder.path().join("own.pem"), folder.path().join("others.pem"));
    let port = serve_tls(&own);
    serve_tls(&others);
    let (own, others) = (Authorities::read(&own).unwrap(), Authorities::read(&others).unwrap());
    let url = format!("https://localhost:{port}");
    assert_eq!(call(&url, &own).await.unwrap(), 7);

    let error = call(&url, &others).await.unwrap_err();
    let CallError::Untrusted { server, fault } = &error else { panic!("{error:?}") };
    assert_eq!((server, fault), (&url, &TlsFault::UnknownAuthority));
    assert!(error.to_string().contains("`--ca` or SOJOURN_CA"), "{error}");

    let error = call(&format!("https://127.0.0.1:{port}"), &own).await.unwrap_err();
    let wrong_name =
        matches!(&error, CallError::Untrusted { fault: TlsFault::WrongName { .. }, .. });
    assert!(wrong_name, "{error:?}");
}
