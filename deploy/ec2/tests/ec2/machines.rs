//! Machines as EC2 tells of them, and their end: pages, reasons, unknown ids, a region that doesn't answer.

use crate::{
    support::{ec2, items, pool, settings, small},
    wire::{Answer, Form, Wire},
};
use sojourn_fleet::cloud::{Cloud as _, CloudError, MachineState};
use sojourn_protocol::{
    machines::{MachineEnd, Market},
    time::UnixMillis,
};

/// A reservation with a machine.
fn reservation(id: &str, state: &str, more: &str) -> String {
    let tags = format!("<item><key>sojourn:machine</key><value>m-{id}</value></item>");
    let instance = format!(
        "<instanceId>{id}</instanceId><instanceType>c5.xlarge</instanceType><launchTime>2026-07-20T09:00:00.000Z</launchTime>\
         <placement><availabilityZone>eu-west-1a</availabilityZone></placement>\
         <instanceState><name>{state}</name></instanceState><tagSet>{tags}</tagSet>{more}"
    );
    items("instancesSet", &[&instance])
}

fn ended(code: &str, by: &str) -> String {
    format!(
        "<reason>{by} initiated (2026-07-20 10:11:12 GMT)</reason><stateReason><code>{code}</code></stateReason>"
    )
}

fn next(form: &Form) -> &str {
    form.get("NextToken").map_or("", String::as_str)
}

#[tokio::test(start_paused = true)]
async fn machines_of_all_pages_are_read_with_their_state_and_end() {
    let spot = "<instanceLifecycle>spot</instanceLifecycle>";
    let wire = Wire::scripted(move |form| {
        assert_eq!(form["Filter.1.Name"], "tag:sojourn:fleet");
        assert_eq!(form["Filter.1.Value.1"], "tests");
        let (found, token) = match next(form) {
            "" => (
                vec![
                    reservation("i-1", "running", spot),
                    reservation(
                        "i-2",
                        "terminated",
                        &format!("{spot}{}", ended("Server.SpotInstanceTermination", "Service")),
                    ),
                ],
                "second",
            ),
            // EC2 may give a page with nothing in it.
            "second" => (vec![], "third"),
            "third" => (
                vec![
                    reservation(
                        "i-3",
                        "shutting-down",
                        &ended("Client.UserInitiatedShutdown", "User"),
                    ),
                    reservation(
                        "i-4",
                        "terminated",
                        &ended("Client.InstanceInitiatedShutdown", "User"),
                    ),
                    reservation("i-5", "stopped", "").replace("m-i-5", "No Name"),
                    reservation(
                        "i-6",
                        "terminated",
                        "<stateReason><code>Server.InternalError</code></stateReason>",
                    ),
                ],
                "",
            ),
            other => panic!("no page {other}"),
        };
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        Answer::Done(format!("{}<nextToken>{token}</nextToken>", items("reservationSet", &found)))
    });
    let machines = ec2(&wire, small()).machines().await.unwrap();
    let read: Vec<_> = machines
        .iter()
        .map(|m| (m.instance.as_str(), m.market, m.state, m.end, m.ended_at.map(|at| at.0)))
        .collect();
    let at = Some(1_784_542_272_000);
    assert_eq!(
        read,
        [
            ("i-1", Market::Spot, MachineState::Running, None, None),
            ("i-2", Market::Spot, MachineState::Ended, Some(MachineEnd::Interrupted), at),
            ("i-3", Market::OnDemand, MachineState::Ending, Some(MachineEnd::Released), None),
            ("i-4", Market::OnDemand, MachineState::Ended, Some(MachineEnd::Itself), at),
            ("i-5", Market::OnDemand, MachineState::Running, None, None),
            ("i-6", Market::OnDemand, MachineState::Ended, Some(MachineEnd::Failed), None),
        ]
    );
    assert_eq!(machines[0].name.as_ref().unwrap().as_str(), "m-i-1");
    assert_eq!(machines[4].name, None);
    assert_eq!(machines[0].pool, pool("eu-west-1a", "c5.xlarge"));
    assert_eq!(machines[0].launched_at, UnixMillis(1_784_538_000_000));
}

#[tokio::test(start_paused = true)]
async fn where_one_region_does_not_answer_none_is_left_out_in_silence() {
    let two = settings(
        r#"
        fleet = "tests"
        user_data = "x"
        [regions.eu-west-1]
        image = "ami-1"
        [regions.us-east-1]
        image = "ami-2"
        "#,
    );
    let mut asked = 0;
    let wire = Wire::scripted(move |_| {
        asked += 1;
        if asked == 1 {
            Answer::Done(items("reservationSet", &[]))
        } else {
            Answer::Error(503, "Unavailable")
        }
    });
    let answer = ec2(&wire, two).machines().await;
    assert!(matches!(answer, Err(CloudError::Away(_))), "{answer:?}");
}

/// The ids of a request.
fn ids(form: &Form) -> Vec<String> {
    let ids = form.iter().filter(|(key, _)| key.starts_with("InstanceId."));
    ids.map(|(_, id)| id.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_unknown_machine_does_not_keep_others_from_being_ended() {
    let wire =
        Wire::scripted(|form| match ids(form).iter().any(|id| id == "i-7" || id == "i-90") {
            true => Answer::Error(400, "InvalidInstanceID.NotFound"),
            false => Answer::Done(String::new()),
        });
    let all: Vec<String> = (0..250).map(|at| format!("i-{at}")).collect();
    ec2(&wire, small()).end("eu-west-1", &all).await.unwrap();
    let sent = wire.of("TerminateInstances");
    assert!(sent.iter().all(|form| ids(form).len() <= 100), "in batches");
    let known = |form: &&Form| !ids(form).iter().any(|id| id == "i-7" || id == "i-90");
    let mut ended: Vec<String> = sent.iter().filter(known).flat_map(ids).collect();
    ended.sort();
    let mut expected: Vec<String> =
        all.into_iter().filter(|id| id != "i-7" && id != "i-90").collect();
    expected.sort();
    assert_eq!(ended, expected, "each once");
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_does_not_keep_the_others_from_being_ended() {
    let wire = Wire::scripted(|form| match ids(form).contains(&"i-0".to_owned()) {
        true => Answer::Error(403, "UnauthorizedOperation"),
        false => Answer::Done(String::new()),
    });
    let all: Vec<String> = (0..150).map(|at| format!("i-{at}")).collect();
    let answer = ec2(&wire, small()).end("eu-west-1", &all).await;
    assert!(matches!(answer, Err(CloudError::Refused(_))), "{answer:?}");
    assert_eq!(wire.of("TerminateInstances").len(), 2);

    let elsewhere = ec2(&wire, small()).end("us-east-1", &all).await;
    assert!(matches!(elsewhere, Err(CloudError::Refused(_))), "{elsewhere:?}");
}
