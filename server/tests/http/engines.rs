//! Engines of devices, and units that they refuse, over HTTP.

use crate::{
    folder,
    world::{World, ask, send},
};
use sojourn_protocol::{
    api::{ENGINES, FEATURES_HEADER, WorkAnswer, WorkRequest},
    engine::Engine,
    inventory::Device,
    report::{Failure, FailureKind, Outcome, Report},
    view::JobView,
};

/// A request for work of a device with these engines.
fn with_engines(engines: &[Engine]) -> WorkRequest {
    let mut request = ask(0);
    for device in &mut request.inventory.as_mut().unwrap().devices {
        *device = Device { engines: engines.to_vec(), ..device.clone() };
    }
    request
}

#[tokio::test]
async fn a_client_that_knows_of_engines_and_names_none_is_asked_for_its_inventory_again() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    let engine = Engine {
        name: "numpy".into(),
        framework: "numpy 2.3.1".into(),
        models: vec!["mlp".into()],
    };
    let asked_again = async |features: &str, request: WorkRequest| {
        let body = serde_json::to_vec(&request).unwrap();
        let headers = [(FEATURES_HEADER, features)];
        let answer = send(world.address(), "POST", "/v1/work", &host.token, &headers, &body).await;
        let announced = answer.header(FEATURES_HEADER).unwrap();
        assert!(announced.split(", ").any(|word| word == ENGINES), "{announced}");
        answer.json::<WorkAnswer>().send_inventory
    };
    assert!(asked_again("engines", with_engines(&[])).await);
    assert!(!asked_again("engines", with_engines(&[engine])).await);
    assert!(!asked_again("engines", WorkRequest { inventory: None, ..ask(0) }).await);
    assert!(!asked_again("one-day", with_engines(&[])).await, "a client of before");
    world.server.stop().await;
}

#[tokio::test]
async fn a_refused_unit_waits_and_its_job_says_why() {
    let folder = folder();
    let world = World::start(folder.path()).await;
    let host = world.enrol("one").await;
    let job = world.submit().await.job;
    let lease = world.lease(&host.token).await;
    let failure = Failure { kind: FailureKind::Unsupported, message: "no `mlp` here".into() };
    let report = Report { lease: lease.id, outcome: Outcome::Failed(failure) };
    assert_eq!(world.report(&host.token, &report).await.status, 200);
    let silent = WorkRequest { inventory: None, ..ask(1) };
    let answer = world.work(&host.token, &silent).await;
    assert_eq!(answer.leases, []);
    let reason = answer.waiting.unwrap();
    assert_eq!(reason, "its trainer can't do any unit: those that wait train `mlp`");
    let jobs: Vec<JobView> = world.get("/v1/jobs", &world.admin).await.json();
    let view = jobs.into_iter().find(|view| view.job == job).unwrap();
    assert_eq!(
        view.waiting.as_deref(),
        Some("no host in contact supports its `mlp` model and settings (1 refused it)")
    );
    world.server.stop().await;
}
