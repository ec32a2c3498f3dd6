//! The queue over HTTP: servers that are away, busy or not the active one, and offers that are repeated.

use sojourn_assimilator::{Fault, HttpQueue, Offer, Queue as _};
use sojourn_http::{HttpClient, HttpConfig, Servers};
use sojourn_protocol::{
    PROTOCOL_HEADER,
    assimilation::{Offer as Answer, OfferAnswer, TakeAnswer},
    error::{ApiError, ErrorKind},
    ids::{ClaimId, LeaseId},
};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::mpsc,
    thread,
};
use tokio::{runtime::Runtime, sync::watch};

/// A server that gives these answers, a connection each, and says what it was asked.
fn server(answers: Vec<(u16, String)>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/below", listener.local_addr().unwrap());
    let (said, asked) = mpsc::channel();
    thread::spawn(move || {
        for (status, body) in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(bytes) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = bytes.trim().parse().unwrap();
                }
                head += &line;
            }
            let mut sent = vec![0; length];
            reader.read_exact(&mut sent).unwrap();
            let _ = said.send(head + &String::from_utf8(sent).unwrap());
            let bytes = body.len();
            let answer = format!(
                "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 content-length: {bytes}\r\n\r\n{body}"
            );
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    (address, asked)
}

fn refusal(kind: ErrorKind) -> (u16, String) {
    (kind.status(), serde_json::to_string(&ApiError::new(kind, "why")).unwrap())
}

fn offered(offer: Answer) -> (u16, String) {
    (200, serde_json::to_string(&OfferAnswer { offer }).unwrap())
}

fn away() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn queue(runtime: &Runtime, servers: &[String]) -> (HttpQueue, watch::Sender<bool>) {
    let servers = Servers::parse(&servers.join(","), false).unwrap();
    let http = HttpClient::new(servers, &HttpConfig::default()).unwrap();
    let http = http.with_token("secret".to_owned());
    let (stop, stopping) = watch::channel(false);
    (HttpQueue::new(http, "one".to_owned(), runtime.handle().clone(), stopping), stop)
}

#[test]
fn a_unit_is_taken_from_the_server_that_answers() {
    let runtime = Runtime::new().unwrap();
    let none = serde_json::to_string(&TakeAnswer { unit: None, range: None, trace: None }).unwrap();
    let (busy, asked_busy) = server(vec![refusal(ErrorKind::Unavailable)]);
    let (active, asked) = server(vec![(200, none.clone()), (200, none)]);
    let (queue, _stop) = queue(&runtime, &[away(), busy, active]);
    assert_eq!(queue.take(false), Ok(None));
    assert_eq!(asked_busy.recv().unwrap().lines().next(), asked.recv().unwrap().lines().next());
    assert_eq!(queue.take(true), Ok(None), "the others aren't asked again");
    let asked = asked.recv().unwrap().to_lowercase();
    assert!(asked.starts_with("post /below/v1/assimilations http"), "{asked}");
    assert!(asked.contains("authorization: bearer secret") && asked.contains(PROTOCOL_HEADER));
    assert!(asked.ends_with("{\"name\":\"one\",\"wait\":20000,\"losses\":true}"), "{asked}");
}

#[test]
fn an_offer_is_repeated_until_a_server_answers() {
    let runtime = Runtime::new().unwrap();
    let busy = || refusal(ErrorKind::Unavailable);
    let (address, asked) =
        server(vec![busy(), (502, "<html>".to_owned()), busy(), offered(Answer::Stale)]);
    let (queue, _stop) = queue(&runtime, &[address]);
    assert_eq!(queue.rejected(LeaseId(7), Fault::Host, "x"), Ok(Offer::Stale));
    let asked: Vec<String> = asked.try_iter().collect();
    assert_eq!(asked.len(), 4);
    assert!(asked[0].starts_with("POST /below/v1/assimilations/7/rejected HTTP"), "{asked:?}");
    assert!(asked.iter().all(|one| *one == asked[0]));
}

#[test]
fn a_final_refusal_is_not_retried() {
    let runtime = Runtime::new().unwrap();
    let (address, _asked) = server(vec![refusal(ErrorKind::Invalid)]);
    let (queue, _stop) = queue(&runtime, &[address]);
    let error = queue.rejected(LeaseId(7), Fault::Host, "x").unwrap_err();
    assert!(error.to_string().contains("says: why"), "{error}");
}

#[test]
fn a_stopping_process_waits_for_nothing() {
    let runtime = Runtime::new().unwrap();
    // It takes the connection and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (queue, stop) = queue(&runtime, &[address]);
    thread::scope(|scope| {
        let take = scope.spawn(|| queue.take(false));
        let _held = listener.accept().unwrap();
        stop.send(true).unwrap();
        assert_eq!(take.join().unwrap(), Ok(None));
    });
    drop(listener);
    assert!(queue.renew(LeaseId(7), ClaimId(1)).is_err());
}
