//! Calls: what is sent, what an answer is taken for, and when a call is made again.

use crate::{
    number::Number,
    server::{Answer, away, client, serve},
};
use sojourn_api::endpoints;
use sojourn_http::{CallError, Recovery, RetryPolicy};
use sojourn_protocol::{PROTOCOL_HEADER, api::MissingRequest, error::ErrorKind};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

#[tokio::test]
async fn a_call_carries_token_and_version_and_is_answered() {
    let answers = [r#"{"missing":[]}"#, "[]"].map(|body| Answer::new(200, body));
    let (address, requests) = serve(answers.into());
    let client = client(&[&address]).with_token("secret".to_owned());
    let body = MissingRequest { blobs: Vec::new() };
    let post = endpoints::MissingBlobs::request(&body);
    assert_eq!(client.call(post, RetryPolicy::Never).await.unwrap().missing, []);
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "POST /v1/blobs/missing HTTP/1.1");
    assert!(request.head.contains("authorization: bearer secret"), "{request:?}");
    assert!(request.head.contains(PROTOCOL_HEADER), "{request:?}");
    assert_eq!(request.body, br#"{"blobs":[]}"#);
    assert!(!format!("{client:?}").contains("secret"));
    let get = endpoints::Jobs::request().owner("a b&c".to_owned()).mine(true);
    assert_eq!(client.call(get, RetryPolicy::Never).await.unwrap(), []);
    let request = requests.recv().unwrap();
    assert_eq!(request.line, "GET /v1/jobs?owner=a%20b%26c&mine=true HTTP/1.1");
}

#[tokio::test]
async fn a_call_goes_on_to_the_server_that_is_active() {
    let (standby, _) = serve(vec![Answer::refusal(ErrorKind::Unavailable)]);
    let (active, requests) = serve(vec![Answer::new(200, "1"), Answer::new(200, "2")]);
    let client = client(&[&away(), &standby, &active]);
    for expected in 1..=2 {
        let get = Number;
        assert_eq!(client.call(get, RetryPolicy::Never).await.unwrap(), expected);
    }
    assert_eq!(requests.try_iter().count(), 2);
    assert_eq!(client.servers().path("v1/x"), format!("{active}/v1/x"));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_no_sooner_than_it_says() {
    let busy = || Answer::refusal(ErrorKind::Unavailable);
    let (address, requests) = serve(vec![
        busy().with("retry-after", "1"),
        Answer::foreign(502, "<html>"),
        Answer::new(200, "7"),
    ]);
    let begun = std::time::Instant::now();
    let get = Number;
    assert_eq!(client(&[&address]).call(get, RetryPolicy::WhileBusy).await.unwrap(), 7);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(requests.try_iter().count(), 3);
}

#[tokio::test]
async fn a_pause_that_no_person_would_wait_for_is_not_waited_for() {
    let busy = Answer::refusal(ErrorKind::Unavailable).with("retry-after", "3600");
    let (address, requests) = serve(vec![busy]);
    let get = Number;
    let error = client(&[&address]).call(get, RetryPolicy::WhileAway).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(error.recovery(), Recovery::Retry);
    assert_eq!(requests.try_iter().count(), 1);
}

#[tokio::test]
async fn a_refusal_is_final() {
    let (address, requests) = serve(vec![Answer::refusal(ErrorKind::NotFound)]);
    let get = Number;
    let error = client(&[&address]).call(get, RetryPolicy::WhileAway).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (Some(ErrorKind::NotFound), "why"));
    assert_eq!(requests.try_iter().count(), 1);
}

#[tokio::test]
async fn an_answer_that_is_not_ours_is_an_invalid_response() {
    let login = Answer::foreign(200, "<html> log\n in </html>");
    let (address, _) = serve(vec![login.clone(), login, Answer::new(200, "no number")]);
    let strict = client(&[&address]).with_required_protocol_header();
    for (client, expected) in [
        (strict, "it doesn't say that it is a sojourn server"),
        (client(&[&address]), "expected value"),
        (client(&[&address]), "expected ident"),
    ] {
        let error = client.call(Number, RetryPolicy::Never).await.unwrap_err();
        assert!(matches!(error, CallError::InvalidResponse { status: 200, .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn another_protocol_version_ends_the_caller() {
    let mut answer = Answer::foreign(200, "1").with(PROTOCOL_HEADER, "99");
    answer.status = 200;
    let (address, _) = serve(vec![answer]);
    let get = Number;
    let error = client(&[&address]).call(get, RetryPolicy::WhileBusy).await.unwrap_err();
    assert!(matches!(&error, CallError::Protocol { version } if version == "99"), "{error:?}");
    assert_eq!(error.recovery(), Recovery::End);
}

#[tokio::test]
async fn a_body_is_read_no_further_than_its_limit() {
    let spaces = vec![b' '; (64 << 20) + 1];
    let (address, _) = serve(vec![Answer::new(200, spaces)]);
    let get = Number;
    let error = client(&[&address]).call(get, RetryPolicy::Never).await.unwrap_err();
    assert!(error.to_string().contains("more than 67108864 bytes"), "{error}");
}

#[tokio::test]
async fn the_observer_sees_each_answer() {
    let (address, _) =
        serve(vec![Answer::refusal(ErrorKind::Internal), Answer::new(200, "1").with("x-a", "b")]);
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let client = client(&[&address]).with_observer(move |headers| {
        count.fetch_add(1 + u32::from(headers.contains_key("x-a")), Ordering::Relaxed);
    });
    client.call(Number, RetryPolicy::Never).await.unwrap_err();
    client.call(Number, RetryPolicy::Never).await.unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_redirect_away_from_the_server_is_not_followed() {
    let (other, requests) = serve(vec![Answer::new(200, "1")]);
    let redirect = Answer::foreign(302, "").with("location", &format!("{other}/v1/x"));
    let (address, _) = serve(vec![redirect]);
    let client = client(&[&address]).with_token("secret".to_owned());
    let error = client.call(Number, RetryPolicy::Never).await.unwrap_err();
    assert!(matches!(error, CallError::InvalidResponse { status: 302, .. }), "{error:?}");
    assert!(requests.try_recv().is_err(), "the token went elsewhere");
}
