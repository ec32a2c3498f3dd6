//! Tokens that the server issues, and its own: what each opens, and when it no longer does.

use crate::world::{World, ask};
use serde_json::{Value, json};
use sojourn_protocol::{
    api::EnrolAnswer,
    error::ErrorKind,
    tokens::{NewToken, RevokedToken, RotatedToken, TokenState, TokenView},
    view::{HostState, HostView},
};
use sojourn_server::journal::{Journal, JournalError, OpenJournal};
use std::{sync::Arc, time::Duration};

async fn create(world: &World, request: Value) -> NewToken {
    world.post("/v1/tokens", &world.admin, &request).await.json()
}

async fn user(world: &World, rights: &str) -> NewToken {
    let grant = json!({ "access": { "rights": rights } });
    create(world, json!({ "label": rights, "grant": grant })).await
}

#[tokio::test]
async fn hosts_enrol_with_an_issued_token_until_it_is_used_up_or_revoked() {
    let folder = crate::folder();
    let world = World::start(folder.path()).await;
    let grant = json!({ "enrol": { "owner": "lab-3", "hosts": 2 } });
    let made = create(&world, json!({ "label": "gpu", "grant": grant, "lifetime": 60000 })).await;
    let name = json!({ "name": "one" });
    let one: EnrolAnswer = world.post("/v1/enrol", &made.secret, &name).await.json();
    world.work(&one.token, &ask(0)).await;
    let two: EnrolAnswer = world.post("/v1/enrol", &made.secret, &name).await.json();
    let third = world.post("/v1/enrol", &made.secret, &name).await;
    let refused = third.refused(ErrorKind::Unauthorized);
    assert!(refused.message.contains("2 hosts"), "{refused}");
    let own = world.enrol("own").await;

    let tokens: Vec<TokenView> = world.get("/v1/tokens", &world.admin).await.json();
    assert_eq!((tokens.len(), tokens[0].state, tokens[0].enrolled), (1, TokenState::Used, 2));
    let text = String::from_utf8(world.get("/v1/tokens", &world.admin).await.body).unwrap();
    assert!(!text.contains(&made.secret) && !text.contains("sha256"), "{text}");

    let path = format!("/v1/tokens/{}/revoke", made.token.token);
    let revoked: RevokedToken = world.post(&path, &world.admin, &()).await.json();
    assert_eq!(revoked.hosts, [one.host, two.host]);
    world.post("/v1/work", &one.token, &ask(0)).await.refused(ErrorKind::Unauthorized);
    let hosts: Vec<HostView> = world.get("/v1/hosts", &world.admin).await.json();
    let owners: Vec<(&str, bool)> =
        hosts.iter().map(|host| (host.owner.as_str(), host.state == HostState::Revoked)).collect();
    assert_eq!(owners, [("lab-3", true), ("lab-3", true), ("", false)]);
    world.work(&own.token, &ask(0)).await;
    world.post("/v1/enrol", &made.secret, &name).await.refused(ErrorKind::Unauthorized);
    world.server.stop().await;
}

#[tokio::test]
async fn names_with_letters_that_nobody_sees_are_refused_or_lose_them() {
    let folder = crate::folder();
    let world = World::start(folder.path()).await;
    for hidden in ["lab\u{200b}3", "lab\u{ad}3", "\u{feff}lab3", "lab3\u{e0041}", "lab\u{202e}3"] {
        let grant = json!({ "enrol": { "owner": hidden, "hosts": 2 } });
        let token = json!({ "label": "gpu", "grant": grant });
        world.post("/v1/tokens", &world.admin, &token).await.refused(ErrorKind::Invalid);
        let grant = json!({ "access": { "rights": "read" } });
        let token = json!({ "label": hidden, "grant": grant });
        world.post("/v1/tokens", &world.admin, &token).await.refused(ErrorKind::Invalid);
        world.enrol(hidden).await;
    }
    let tokens: Vec<TokenView> = world.get("/v1/tokens", &world.admin).await.json();
    assert_eq!(tokens.len(), 0);
    let hosts: Vec<HostView> = world.get("/v1/hosts", &world.admin).await.json();
    assert!(hosts.len() == 5 && hosts.iter().all(|host| host.name == "lab3"), "{hosts:?}");
    let nobody = json!({ "name": "\u{200b}\u{200b}" });
    world.post("/v1/enrol", &world.enrol_token(), &nobody).await.refused(ErrorKind::Invalid);
    world.server.stop().await;
}

#[tokio::test]
async fn a_users_token_opens_what_its_rights_say_until_it_is_revoked() {
    let folder = crate::folder();
    let world = World::start(folder.path()).await;
    let [read, submit, administer] = [
        user(&world, "read").await,
        user(&world, "submit").await,
        user(&world, "administer").await,
    ];
    let host = world.enrol("one").await.host;
    let revoke_host = format!("/v1/hosts/{host}/revoke");
    let missing = json!({ "blobs": [] });
    for (token, may_submit, may_administer) in
        [(&read, false, false), (&submit, true, false), (&administer, true, true)]
    {
        let token = &token.secret;
        assert_eq!(world.get("/v1/jobs", token).await.status, 200);
        assert_eq!(world.get("/v1/hosts", token).await.status, 200);
        let status = |may| if may { 200 } else { 403 };
        let answer = world.post("/v1/blobs/missing", token, &missing).await;
        assert_eq!(answer.status, status(may_submit));
        assert_eq!(world.get("/v1/tokens", token).await.status, status(may_administer));
        let answer = world.post(&revoke_host, token, &()).await;
        assert_eq!(answer.status, status(may_administer));
        // It is no host, and no assimilator.
        world.post("/v1/work", token, &ask(0)).await.refused(ErrorKind::Unauthorized);
        let take = json!({ "name": "rack", "wait": 0, "losses": false });
        world.post("/v1/assimilations", token, &take).await.refused(ErrorKind::Unauthorized);
        let name = json!({ "name": "two" });
        world.post("/v1/enrol", token, &name).await.refused(ErrorKind::Unauthorized);
    }
    let of = |token: &NewToken, what: &str| format!("/v1/tokens/{}/{what}", token.token.token);
    let rotated: NewToken = world.post(&of(&read, "rotate"), &world.admin, &()).await.json();
    world.get("/v1/jobs", &read.secret).await.refused(ErrorKind::Unauthorized);
    assert_eq!(world.get("/v1/jobs", &rotated.secret).await.status, 200);
    assert_eq!(world.post(&of(&read, "revoke"), &administer.secret, &()).await.status, 200);
    world.get("/v1/jobs", &rotated.secret).await.refused(ErrorKind::Unauthorized);
    world.server.stop().await;
    // What was revoked stays so, and what was issued goes on, after a restart.
    let world = World::start(folder.path()).await;
    world.get("/v1/jobs", &rotated.secret).await.refused(ErrorKind::Unauthorized);
    assert_eq!(world.get("/v1/jobs", &submit.secret).await.status, 200);
    world.server.stop().await;
}

#[tokio::test]
async fn the_servers_own_tokens_are_replaced_while_it_runs() {
    let folder = crate::folder();
    let world = World::start(folder.path()).await;
    let own = world.enrol("one").await;
    let before = [world.admin.clone(), world.enrol_token(), world.assimilator_token(folder.path())];
    let mut admin = world.admin.clone();
    let mut after = Vec::new();
    for which in ["enrol", "assimilator", "admin"] {
        let path = format!("/v1/tokens/server/{which}/rotate");
        let rotated: RotatedToken = world.post(&path, &admin, &()).await.json();
        let file = std::fs::read_to_string(folder.path().join(format!("{which}-token"))).unwrap();
        assert_eq!(file.trim(), rotated.secret);
        if which == "admin" {
            admin = rotated.secret.clone();
        }
        after.push(rotated.secret);
    }
    for token in &before {
        world.get("/v1/assimilations", token).await.refused(ErrorKind::Unauthorized);
        world
            .post("/v1/enrol", token, &json!({ "name": "x" }))
            .await
            .refused(ErrorKind::Unauthorized);
    }
    world.work(&own.token, &ask(0)).await;
    assert_eq!(world.get("/v1/jobs", &admin).await.status, 200);
    assert_eq!(world.get("/v1/assimilations", &after[1]).await.status, 200);
    world.server.stop().await;
    let world = World::start(folder.path()).await;
    assert_eq!(world.admin, admin);
    assert_eq!(world.enrol_token(), after[0]);
    world.server.stop().await;
}

/// A journal that another server has.
struct Elsewhere;

impl OpenJournal for Elsewhere {
    fn open(&self) -> Result<Box<dyn Journal>, JournalError> {
        Err(JournalError::Standby { active: "http://other".to_owned() })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn held_for(&self) -> Duration {
        Duration::ZERO
    }
}

/// The active server may have replaced a token, of which a standby hears only when it takes over.
#[tokio::test]
async fn a_server_that_stands_by_opens_nothing_to_its_own_tokens() {
    let folder = crate::folder();
    let mut config = World::config(folder.path(), Default::default());
    config.journal = Some(Arc::new(Elsewhere));
    let world = World::with(config).await;
    let sha256 = crate::blob(b"any").sha256;
    for path in
        [format!("/v1/blobs/{sha256}"), format!("/v1/uploads/{sha256}"), "/v1/traffic".into()]
    {
        let refused = world.get(&path, &world.admin).await.refused(ErrorKind::Unavailable);
        assert_eq!(refused.active.as_deref(), Some("http://other"));
    }
    let enrol = json!({ "name": "one" });
    world.post("/v1/enrol", &world.enrol_token(), &enrol).await.refused(ErrorKind::Unavailable);
    world.server.stop().await;
}

/// Every file below a folder, with its bytes.
fn files(folder: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![(path.clone(), std::fs::read(&path).unwrap())],
        })
        .collect()
}

#[tokio::test]
async fn a_server_needs_no_file_with_a_token_and_keeps_hashes_alone() {
    let folder = crate::folder();
    let world = World::start(folder.path()).await;
    let made = user(&world, "read").await;
    let own = world.enrol("one").await;
    let enrol = world.enrol_token();
    let admin = world.admin.clone();
    world.server.stop().await;
    for name in ["admin-token", "enrol-token", "assimilator-token"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    for secret in [&admin, &enrol, &made.secret, &own.token] {
        for (path, bytes) in files(folder.path()) {
            let holds = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!holds, "{}", path.display());
        }
    }
    let config = World::config(folder.path(), Default::default());
    let server = sojourn_server::Server::start(config).await.unwrap();
    let world = World { server, admin: admin.clone() };
    assert_eq!(world.get("/v1/jobs", &admin).await.status, 200);
    assert_eq!(world.post("/v1/enrol", &enrol, &json!({ "name": "two" })).await.status, 200);
    assert!(!folder.path().join("admin-token").exists(), "none is made in its place");
    world.server.stop().await;
}

#[tokio::test]
async fn a_folder_of_an_earlier_version_goes_on_with_its_tokens() {
    let folder = crate::folder();
    // All that it has.
    std::fs::write(folder.path().join("admin-token"), "an-old-token\n").unwrap();
    let world = World::start(folder.path()).await;
    assert_eq!(world.admin, "an-old-token");
    assert_eq!(world.get("/v1/jobs", "an-old-token").await.status, 200);
    world.server.stop().await;
    // Another word in the file doesn't let anybody in: only the hash counts.
    std::fs::write(folder.path().join("admin-token"), "guess\n").unwrap();
    let config = World::config(folder.path(), Default::default());
    let server = sojourn_server::Server::start(config).await.unwrap();
    let world = World { server, admin: String::new() };
    world.get("/v1/jobs", "guess").await.refused(ErrorKind::Unauthorized);
    assert_eq!(world.get("/v1/jobs", "an-old-token").await.status, 200);
    world.server.stop().await;
}
