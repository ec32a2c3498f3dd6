//! The server's machine with its disk and its public address.

use super::{
    SiteError,
    account::{Account, Known, Visit, lacks, or_there, repeated, settled},
    boot::{self, ServerFiles},
    bucket,
    place::Place,
};
use crate::{
    errors::{Failure, Meaning},
    region::filter,
    settings::{ROLE_TAG, SERVER_ROLE},
    tags,
};
use aws_sdk_ec2::types::{
    Address, BlockDeviceMapping, DomainType, EbsBlockDevice, HttpTokensState,
    IamInstanceProfileSpecification, Instance, InstanceMetadataOptionsRequest, InstanceStateName,
    InstanceType, ResourceType, VolumeType,
};
use sojourn_protocol::digest::Hasher;
use std::time::{Duration, Instant};

/// How long a machine may take until it runs.
const START: Duration = Duration::from_secs(300);
/// Tokens that are tried for a machine.
const TOKENS: u32 = 3;
/// Between two looks at it.
const PAUSE: Duration = Duration::from_secs(2);

/// The public address.
pub(super) async fn address(
    account: &Account,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), Failure> {
    known.address =
        find_address(account).await?.and_then(|found| found.allocation_id.zip(found.public_ip));
    if known.address.is_none() && visit.missing() {
        let request = account.ec2.allocate_address().domain(DomainType::Vpc);
        let made = request.tag_specifications(account.tags(ResourceType::ElasticIp)).send().await;
        let made = made.map_err(|error| Failure::of("AllocateAddress", &error))?;
        let made = made.allocation_id.zip(made.public_ip);
        known.address = Some(made.ok_or_else(|| lacks("AllocateAddress", "address"))?);
    }
    Ok(())
}

/// The server's machine, which has the address once it runs. `files` are asked for where it is made.
pub(super) async fn server(
    account: &Account,
    place: &Place,
    known: &mut Known,
    visit: &mut Visit,
    files: impl FnOnce(&Known) -> ServerFiles,
) -> Result<(), SiteError> {
    let mut found = find(account).await?;
    if found.is_none() && visit.missing() {
        found = Some(launch(account, place, known, &files(known)).await?);
    }
    let Some(found) = found else { return Ok(()) };
    let id = found.instance_id.ok_or_else(|| lacks("DescribeInstances", "id"))?;
    known.server = Some(id.clone());
    let state = found.state.and_then(|state| state.name);
    let stopped = matches!(state, Some(InstanceStateName::Stopped | InstanceStateName::Stopping));
    if stopped && visit.unfinished() {
        let sent = account.ec2.start_instances().instance_ids(&id).send().await;
        sent.map_err(|error| Failure::of("StartInstances", &error))?;
    }
    let holder = find_address(account).await?.and_then(|address| address.instance_id);
    if holder.as_ref() != Some(&id) && visit.unfinished() {
        runs(account, &id).await?;
        let allocation = known.address.as_ref().map(|(allocation, _)| allocation.clone());
        let associated = settled(async || {
            let request = account.ec2.associate_address().instance_id(&id);
            let sent = request.set_allocation_id(allocation.clone()).send().await;
            sent.map_err(|error| Failure::of("AssociateAddress", &error))
        });
        or_there(associated.await)?;
    }
    Ok(())
}

async fn find_address(account: &Account) -> Result<Option<Address>, Failure> {
    let answer = account.ec2.describe_addresses().filters(account.ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeAddresses", &error))?;
    Ok(answer.addresses().iter().min_by_key(|address| address.allocation_id()).cloned())
}

/// The server's machine that hasn't ended, by its tags.
async fn find(account: &Account) -> Result<Option<Instance>, Failure> {
    let found = instances(account, &["pending", "running", "stopping", "stopped"]).await?;
    Ok(found.into_iter().next())
}

/// The server's machines in these states, by their ids.
async fn instances(account: &Account, states: &[&str]) -> Result<Vec<Instance>, Failure> {
    let request = account.ec2.describe_instances().filters(account.ours());
    let request = request.filters(filter(&format!("tag:{ROLE_TAG}"), [SERVER_ROLE]));
    let answer =
        request.filters(filter("instance-state-name", states.iter().copied())).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeInstances", &error))?;
    let found = answer.reservations().iter().flat_map(|reservation| reservation.instances());
    let mut found: Vec<Instance> = found.cloned().collect();
    found.sort_by(|one, other| one.instance_id().cmp(&other.instance_id()));
    Ok(found)
}

async fn launch(
    account: &Account,
    place: &Place,
    known: &Known,
    files: &ServerFiles,
) -> Result<Instance, SiteError> {
    let packages = bucket::packages(account).await?;
    let (allocation, address) =
        known.address.as_ref().ok_or_else(|| lacks("AllocateAddress", "address"))?;
    let data = boot::user_data(address, &packages, files)?;
    let size = i32::try_from(account.server.disk_gib).ok();
    let disk = EbsBlockDevice::builder()
        .volume_type(VolumeType::Gp3)
        .set_volume_size(size)
        .encrypted(true)
        .delete_on_termination(true)
        .build();
    let disk = BlockDeviceMapping::builder().device_name(&place.root_device).ebs(disk).build();
    let metadata =
        InstanceMetadataOptionsRequest::builder().http_tokens(HttpTokensState::Required).build();
    let profile =
        IamInstanceProfileSpecification::builder().set_name(known.profile.clone()).build();
    let born = [ResourceType::Instance, ResourceType::Volume, ResourceType::NetworkInterface];
    let born: Vec<_> = born.map(|kind| tags::of_server(&account.settings, kind)).into();
    let request = account
        .ec2
        .run_instances()
        .min_count(1)
        .max_count(1)
        .image_id(&place.image)
        .instance_type(InstanceType::from(account.server.instance_type.as_str()))
        .set_subnet_id(known.subnets.get(&place.server_zone).cloned())
        .set_security_group_ids(known.server_group.clone().map(|group| vec![group]))
        .iam_instance_profile(profile)
        .user_data(data)
        .metadata_options(metadata)
        .block_device_mappings(disk)
        .set_tag_specifications(Some(born));
    // EC2 takes a while until it knows an instance profile that was just made, and calls it an invalid parameter until then.
    let passes = |failure: &Failure| matches!(failure.meaning, Meaning::Gone | Meaning::Parameter);
    let ended = instances(account, &["shutting-down", "terminated"]).await?;
    for number in 1..=TOKENS {
        let token = token(&account.settings.fleet, allocation, &ended, number);
        let launched = repeated(passes, async || {
            let sent = request.clone().client_token(&token).send().await;
            sent.map_err(|error| Failure::of("RunInstances", &error))
        });
        match launched.await {
            // A machine was bought with this token before, with other archives: it is there, will soon be, or ended so long
            // ago that nobody knows it but the token.
            Err(failure) if failure.meaning == Meaning::Token => {
                let again = repeated(
                    |failure| failure.meaning == Meaning::Away,
                    async || {
                        find(account).await?.ok_or_else(|| lacks("DescribeInstances", "server"))
                    },
                );
                match again.await {
                    // Another is bought only where EC2 says once more that there is none.
                    Err(failure) if failure.meaning == Meaning::Away && number < TOKENS => {
                        if let Some(found) = find(account).await? {
                            return Ok(found);
                        }
                    }
                    again => return Ok(again?),
                }
            }
            launched => {
                let first = launched?.instances.unwrap_or_default().into_iter().next();
                let first = first.ok_or_else(|| lacks("RunInstances", "machine"))?;
                if !has_ended(&first) || number == TOKENS {
                    return Ok(first);
                }
            }
        }
    }
    Err(lacks("RunInstances", "machine").into())
}

fn has_ended(instance: &Instance) -> bool {
    let state = instance.state().and_then(|state| state.name());
    matches!(state, Some(InstanceStateName::ShuttingDown | InstanceStateName::Terminated))
}

/// Two `up` at a time buy one machine. The address is another one each time that the site is made, and a machine that follows
/// one which has ended has a token of its own: EC2 answers the other with the machine that has ended.
fn token(fleet: &str, allocation: &str, ended: &[Instance], number: u32) -> String {
    let mut digest = Hasher::default();
    let mut add = |text: &str| {
        digest.update(text.as_bytes());
        digest.update(&[0]);
    };
    add(fleet);
    add(allocation);
    ended.iter().filter_map(Instance::instance_id).for_each(&mut add);
    add(&number.to_string());
    digest.finish().to_string()
}

/// Waits until the machine runs: before that it takes no address.
async fn runs(account: &Account, id: &str) -> Result<(), SiteError> {
    let since = Instant::now();
    loop {
        let state = settled(async || {
            let sent = account.ec2.describe_instances().instance_ids(id).send().await;
            sent.map_err(|error| Failure::of("DescribeInstances", &error))
        });
        let answer = state.await?;
        let mut all = answer.reservations().iter().flat_map(|reservation| reservation.instances());
        let state = all.next().and_then(|instance| instance.state()).and_then(|state| state.name());
        match state {
            Some(InstanceStateName::Running) => return Ok(()),
            Some(InstanceStateName::Terminated | InstanceStateName::ShuttingDown) => {
                return Err(SiteError::Ended { id: id.to_owned() });
            }
            _ if since.elapsed() > START => return Err(SiteError::Slow { id: id.to_owned() }),
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}
