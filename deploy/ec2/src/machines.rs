//! The fleet's machines as EC2 knows them, and their end.

use crate::{
    errors::{Failure, Meaning},
    region::{Region, filter},
    settings::{FLEET_TAG, MACHINE_TAG},
    tags,
};
use aws_sdk_ec2::types::{Instance, InstanceLifecycleType, InstanceStateName};
use sojourn_fleet::cloud::{CloudError, CloudMachine, MachineState};
use sojourn_protocol::{
    machines::{MachineEnd, Market},
    time::UnixMillis,
};

/// Machines that are ended in a request. EC2 takes 1000, and advises fewer.
const BATCH: usize = 100;
/// Reservations in an answer, each of which is a machine. EC2 gives up to 1000, and answers faster with fewer.
const PAGE: i32 = 200;

/// The machines of a region with the fleet's tag, but for the server's: that isn't bought, and nobody here may end it.
pub(crate) async fn machines(region: &Region) -> Result<Vec<CloudMachine>, CloudError> {
    let request = region.client.describe_instances().max_results(PAGE);
    let request = request.filters(filter(&format!("tag:{FLEET_TAG}"), [&region.shared.fleet]));
    let mut pages = request.into_paginator().items().send();
    let mut machines = vec![];
    while let Some(reservation) = pages.next().await {
        let reservation =
            reservation.map_err(|error| Failure::of("DescribeInstances", &error).cloud())?;
        for instance in reservation.instances() {
            if tags::is_servers(instance.tags()) {
                continue;
            }
            machines.push(machine(region, instance)?);
        }
    }
    Ok(machines)
}

/// Ends machines. One that isn't known any more has ended.
pub(crate) async fn end(region: &Region, instances: &[String]) -> Result<(), CloudError> {
    let mut batches: Vec<&[String]> = instances.chunks(BATCH).collect();
    let mut failed = None;
    while let Some(batch) = batches.pop() {
        let request = region.client.terminate_instances().set_instance_ids(Some(batch.to_vec()));
        let Err(error) = request.send().await else { continue };
        let failure = Failure::of("TerminateInstances", &error);
        // EC2 ends none where one of them isn't known; which one, only its text says.
        if failure.meaning != Meaning::NoInstance {
            failed.get_or_insert(failure.cloud());
        } else if batch.len() > 1 {
            let (first, second) = batch.split_at(batch.len() / 2);
            batches.extend([first, second]);
        }
    }
    failed.map_or(Ok(()), Err)
}

fn machine(region: &Region, instance: &Instance) -> Result<CloudMachine, CloudError> {
    let id = instance.instance_id().unwrap_or_default().to_owned();
    let lacks = |what: &str| CloudError::Away(format!("DescribeInstances: {id} has no {what}"));
    let state = instance.state().and_then(|state| state.name());
    let state = match state.ok_or_else(|| lacks("state"))? {
        InstanceStateName::Pending => MachineState::Pending,
        // Somebody stopped it by hand. It won't end by itself, and its volume costs: it is to be ended as one that runs.
        InstanceStateName::Running | InstanceStateName::Stopped => MachineState::Running,
        InstanceStateName::ShuttingDown | InstanceStateName::Stopping => MachineState::Ending,
        InstanceStateName::Terminated => MachineState::Ended,
        other => return Err(lacks(&format!("state that is known: {}", other.as_str()))),
    };
    let zone = instance.placement().and_then(|placement| placement.availability_zone());
    let instance_type = instance.instance_type().ok_or_else(|| lacks("type"))?.as_str();
    let launched = instance.launch_time().and_then(|time| time.to_millis().ok());
    let launched = launched.and_then(|millis| u64::try_from(millis).ok());
    let ends = matches!(state, MachineState::Ending | MachineState::Ended);
    let reason = instance.state_reason().and_then(|reason| reason.code());
    let ended_at = instance.state_transition_reason().and_then(time_in);
    let market = match instance.instance_lifecycle() {
        Some(InstanceLifecycleType::Spot) => Market::Spot,
        _ => Market::OnDemand,
    };
    Ok(CloudMachine {
        name: tags::value(instance.tags(), MACHINE_TAG).and_then(|name| name.parse().ok()),
        pool: region.pool(zone.ok_or_else(|| lacks("zone"))?, instance_type),
        market,
        state,
        launched_at: UnixMillis(launched.ok_or_else(|| lacks("launch time"))?),
        ended_at: ended_at.filter(|_| state == MachineState::Ended),
        end: reason.filter(|_| ends).and_then(end_of),
        instance: id,
    })
}

/// Why a machine ended, by the code of its state's reason ("StateReason" in the API reference).
fn end_of(code: &str) -> Option<MachineEnd> {
    match code {
        "Server.SpotInstanceTermination"
        | "Server.SpotInstanceShutdown"
        | "Server.ScheduledStop" => Some(MachineEnd::Interrupted),
        "Client.UserInitiatedShutdown" | "Client.UserInitiatedHibernate" => {
            Some(MachineEnd::Released)
        }
        "Client.InstanceInitiatedShutdown" => Some(MachineEnd::Itself),
        _ if code.starts_with("Server.") || code.starts_with("Client.") => Some(MachineEnd::Failed),
        _ => None,
    }
}

/// The time in a text as `User initiated (2026-07-20 10:11:12 GMT)`.
fn time_in(text: &str) -> Option<UnixMillis> {
    let (_, rest) = text.rsplit_once('(')?;
    let (time, _) = rest.split_once(')')?;
    let time = time.trim().strip_suffix("GMT").or_else(|| time.trim().strip_suffix("UTC"))?;
    let (day, clock) = time.trim().split_once(' ')?;
    let text = format!("{day}T{}Z", clock.trim());
    let format = aws_sdk_ec2::primitives::DateTimeFormat::DateTime;
    let time = aws_sdk_ec2::primitives::DateTime::from_str(&text, format).ok()?;
    time.to_millis().ok().and_then(|millis| u64::try_from(millis).ok()).map(UnixMillis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_end_is_read() {
        for (text, expected) in [
            ("User initiated (2026-07-20 10:11:12 GMT)", Some(1_784_542_272_000)),
            ("Service initiated (2026-07-20 10:11:12 GMT)", Some(1_784_542_272_000)),
            ("User initiated (2026-07-20 10:11:12 UTC)", Some(1_784_542_272_000)),
            ("User initiated", None),
            ("User initiated (yesterday GMT)", None),
            ("", None),
        ] {
            assert_eq!(time_in(text), expected.map(UnixMillis), "{text}");
        }
    }

    #[test]
    fn codes_say_why_a_machine_ended() {
        for (code, expected) in [
            ("Server.SpotInstanceTermination", Some(MachineEnd::Interrupted)),
            ("Client.UserInitiatedShutdown", Some(MachineEnd::Released)),
            ("Client.InstanceInitiatedShutdown", Some(MachineEnd::Itself)),
            ("Server.InternalError", Some(MachineEnd::Failed)),
            ("Client.VolumeLimitExceeded", Some(MachineEnd::Failed)),
            ("pending", None),
        ] {
            assert_eq!(end_of(code), expected, "{code}");
        }
    }
}
