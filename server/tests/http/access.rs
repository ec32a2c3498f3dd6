//! The callers of each address, however the address is written.

use crate::{
    folder,
    world::{Answer, World, ask, blob, connect_from, send, send_on},
};
use serde_json::{Value, json};
use sojourn_protocol::{error::ErrorKind, tokens::NewToken};

async fn user(world: &World, rights: &str) -> String {
    let grant = json!({ "access": { "rights": rights } });
    // More requests are refused here than a user's may be in a minute.
    let quotas = json!({ "failures": 1_000_000 });
    let request = json!({ "label": rights, "grant": grant, "quotas": quotas });
    let made: NewToken = world.post("/v1/tokens", &world.admin, &request).await.json();
    made.secret
}

/// The path with its `at`th letter written as its code.
fn encoded(path: &str, at: usize) -> String {
    let letters = path.char_indices().filter(|(_, letter)| letter.is_ascii_lowercase());
    let (place, letter) = letters.clone().nth(at % letters.count()).unwrap();
    let (before, after) = path.split_at(place);
    format!("{before}%{:02x}{}", u32::from(letter), &after[1..])
}

/// Every address of the document with its methods, with parameters that name nothing.
async fn operations(world: &World) -> Vec<(String, String)> {
    let document: Value = world.get("/v1/openapi.json", "").await.json();
    let mut operations = Vec::new();
    for (pattern, methods) in document["paths"].as_object().unwrap() {
        let sha256 = blob(b"nothing").sha256.to_string();
        let path = pattern.replace("{sha256}", &sha256).replace("{which}", "nothing");
        let path: Vec<&str> =
            path.split('/').map(|part| if part.starts_with('{') { "77" } else { part }).collect();
        let path = path.join("/");
        for method in methods.as_object().unwrap().keys() {
            operations.push((method.to_uppercase(), path.clone()));
        }
    }
    operations
}

/// The router decodes a path before it chooses a handler. Rights must be those of the handler that it chooses.
#[tokio::test]
async fn an_encoded_letter_in_a_path_opens_nothing_to_any_caller() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await.token;
    world.work(&host, &ask(0)).await;
    let callers = [
        ("a machine that enrols", world.enrol_token()),
        ("a host", host),
        ("an assimilator", world.assimilator_token(folder.path())),
        ("a user who reads", user(&world, "read").await),
        ("a user who submits", user(&world, "submit").await),
        ("an administrator", user(&world, "administer").await),
    ];
    let operations = operations(&world).await;
    let refused = |answer: &Answer| [401, 403].contains(&answer.status);
    let mut refusals = 0;
    for (number, (name, token)) in (1..).zip(&callers) {
        for (at, (method, path)) in operations.iter().enumerate() {
            // Each pair comes from an address of its own, as failed authentications are counted by address.
            let from = [127, 1, number, u8::try_from(at).unwrap()];
            let call = async |path: &str| {
                let stream = connect_from(from, world.address()).await;
                send_on(stream, method, path, token, &[], b"").await
            };
            let plain = call(path).await;
            let is_open = ["/v1/health", "/v1/openapi.json"].contains(&path.as_str());
            assert!(!is_open || !refused(&plain), "{name}: {method} {path}");
            refusals += u32::from(refused(&plain));
            for letter in [at, at + 1, at + 5] {
                let path = encoded(path, letter);
                let answer = call(&path).await;
                assert_eq!(answer.status, plain.status, "{name}: {method} {path}");
            }
        }
    }
    assert!(refusals > 150, "{refusals}");
    world.server.stop().await;
}

#[tokio::test]
async fn a_token_that_may_read_makes_no_token_at_an_encoded_address() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let reader = user(&world, "read").await;
    let grant = json!({ "access": { "rights": "administer" } });
    let request = json!({ "label": "mine", "grant": grant });
    for path in ["/v1/%74okens", "/v1/tokens", "/v1%2Ftokens", "/%76%31/%74%6f%6b%65%6e%73"] {
        let answer = world.post(path, &reader, &request).await;
        let is_refused = [403, 404].contains(&answer.status);
        assert!(is_refused, "{path}: {}", answer.status);
    }
    let tokens: Vec<Value> = world.get("/v1/tokens", &world.admin).await.json();
    assert_eq!(tokens.len(), 1);
    world.server.stop().await;
}

#[tokio::test]
async fn a_method_that_an_address_does_not_have_in_the_document_reaches_no_handler() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let operations = operations(&world).await;
    for (_, path) in &operations {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"] {
            let is_listed = operations.iter().any(|(m, p)| (m.as_str(), p) == (method, path));
            if !is_listed {
                let answer = send(world.address(), method, path, &world.admin, &[], b"").await;
                assert_eq!(answer.status, 405, "{method} {path}");
            }
        }
    }
    let nowhere = world.get("/v1/nothing", &world.admin).await;
    nowhere.refused(ErrorKind::NotFound);
    world.server.stop().await;
}
