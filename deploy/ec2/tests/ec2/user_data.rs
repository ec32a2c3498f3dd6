//! User data: placeholders, limits, and that no token is shown.

use crate::{
    support::{SECRET, ec2, launched, order, pools, region_answer, small},
    wire::{Answer, Wire},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sojourn_ec2::{MAX_USER_DATA, UserData, UserDataError};
use sojourn_fleet::cloud::Cloud as _;
use sojourn_protocol::machines::Market;
use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{self, Write},
};

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn templates_that_cannot_be_filled_are_refused() {
    let values = values(&[("server", "https://a,https://b"), ("ca", "")]);
    let both = "{{machine}} {{ enrolment_token }}";
    UserData::new(&format!("{both} {{{{server}}}} {{{{ca}}}} {{ not one }}"), &values).unwrap();
    let unknown = UserData::new(&format!("{both} {{{{servr}}}}"), &values).unwrap_err();
    assert!(unknown.to_string().contains("`{{servr}}`, which is none of: ca, server"), "{unknown}");
    for (template, expected) in [
        ("{{machine}}".to_owned(), UserDataError::Missing("enrolment_token")),
        ("{{enrolment_token}}".to_owned(), UserDataError::Missing("machine")),
        (format!("{both}\n\n{{{{server"), UserDataError::Braces { line: 3 }),
        (format!("{both}\n{{{{}}}}"), UserDataError::Braces { line: 2 }),
        (format!("{{{{ds.meta}}}}{both}"), UserDataError::Braces { line: 1 }),
    ] {
        assert_eq!(UserData::new(&template, &values).unwrap_err(), expected, "{template}");
    }
    for value in ["a b", "a\nb", "a\"b", "a'b", "$(x)", "`x`", "\\"] {
        let value = BTreeMap::from([("server".to_owned(), value.to_owned())]);
        let refused = UserData::new(both, &value).unwrap_err();
        assert_eq!(refused, UserDataError::Value("server".into()), "{value:?}");
    }
}

#[test]
fn no_more_than_ec2_takes_is_accepted() {
    // A machine's name and token may have 128 characters each.
    let template =
        |rest: usize| format!("{{{{machine}}}}{{{{enrolment_token}}}}{}", "x".repeat(rest));
    UserData::new(&template(MAX_USER_DATA - 256), &BTreeMap::new()).unwrap();
    let large = UserData::new(&template(MAX_USER_DATA - 255), &BTreeMap::new()).unwrap_err();
    assert_eq!(large, UserDataError::Large { bytes: MAX_USER_DATA + 1 });
}

#[test]
fn a_file_that_is_missing_is_named() {
    let missing = UserData::read("/nowhere/user-data.yaml".as_ref(), &BTreeMap::new()).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/user-data.yaml"), "{missing}");
}

thread_local! {
    /// The bytes that this thread has logged.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Logs to the thread that logs. The subscriber is the whole process's: whether an event is wanted at all is asked once, of
/// the subscriber of the thread that meets it first, and that may be another test's.
struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_in_the_order_and_nowhere_else() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(|| Log)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let mut answers = [
        Answer::Error(403, "UnauthorizedOperation"),
        Answer::Done(launched("i-1", "subnet-a", "c5.xlarge")),
    ]
    .into_iter();
    let wire = Wire::scripted(move |form| match form["Action"].as_str() {
        "CreateFleet" => answers.next().unwrap(),
        _ => region_answer(form),
    });
    let ec2 = ec2(&wire, small());
    let refused = ec2.buy(&order(1, Market::Spot, pools())).await.unwrap();
    let bought = ec2.buy(&order(1, Market::Spot, pools())).await.unwrap();

    let sent = &wire.of("CreateFleet")[1];
    let data = sent.iter().find(|(key, _)| key.ends_with("UserData")).unwrap().1;
    let data = String::from_utf8(STANDARD.decode(data).unwrap()).unwrap();
    assert_eq!(data, format!("#cloud-config\n# m-0 of https://sojourn.test: {SECRET}\n"));
    let elsewhere = sent.iter().filter(|(_, value)| value.contains(SECRET)).count();
    assert_eq!(elsewhere, 0);

    let logged = String::from_utf8(LOGGED.take()).unwrap();
    assert!(logged.contains("CreateFleet"), "something was logged: {logged}");
    let shown = format!("{logged} {refused:?} {bought:?} {ec2:?}");
    assert!(!shown.contains(SECRET) && !shown.contains(&STANDARD.encode(&data)[..40]));
    assert!(!shown.contains("opens-nothing"), "the credentials' secret");
}
