//! The parts of a site that are still in the account, by their tag, and their removal in reverse order of how they were made.
//!
//! Nothing is waited for here: a pass removes what can go, and what something else needs still goes with a later pass.

use super::{SiteError, account::Account, bucket, plan::Part};
use crate::{
    errors::{Failure, Meaning},
    leavings::{Leaving, LeavingKind, volume_goes},
    region::filter,
    settings::{ROLE_TAG, SERVER_ROLE},
};
use aws_sdk_ec2::types::{InstanceStateName, NetworkInterfaceStatus};
use sojourn_clouds::Goes;

/// All that the site has, in the order in which it goes.
pub(super) async fn of(account: &Account) -> Result<Vec<Leaving>, SiteError> {
    let mut found = machine(account).await?;
    found.extend(network(account).await?);
    found.extend(rights(account).await?);
    let archives = bucket::left(account).await?.into_iter();
    found.extend(archives.map(|key| leaving(account, LeavingKind::Archive, key, Goes::Stays)));
    Ok(found)
}

fn leaving(account: &Account, kind: LeavingKind, id: String, goes: Goes) -> Leaving {
    Leaving { region: account.name.clone(), kind, id, goes }
}

/// The server's machine, its disk, its network interface and its address.
async fn machine(account: &Account) -> Result<Vec<Leaving>, Failure> {
    let servers = || filter(&format!("tag:{ROLE_TAG}"), [SERVER_ROLE]);
    let mut found = vec![];
    let request = account.ec2.describe_instances().filters(account.ours());
    let answer = request.filters(servers()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeInstances", &error))?;
    for instance in answer.reservations().iter().flat_map(|reservation| reservation.instances()) {
        let goes = match instance.state().and_then(|state| state.name()) {
            Some(InstanceStateName::Terminated) => continue,
            Some(InstanceStateName::ShuttingDown) => Goes::Itself,
            _ => Goes::Stays,
        };
        let id = instance.instance_id().unwrap_or_default().to_owned();
        found.push(leaving(account, LeavingKind::Server, id, goes));
    }
    let request = account.ec2.describe_volumes().filters(account.ours()).filters(servers());
    let answer = request.send().await.map_err(|error| Failure::of("DescribeVolumes", &error))?;
    for volume in answer.volumes() {
        let Some(goes) = volume_goes(volume.state()) else { continue };
        let id = volume.volume_id().unwrap_or_default().to_owned();
        found.push(leaving(account, LeavingKind::ServerDisk, id, goes));
    }
    let request = account.ec2.describe_network_interfaces().filters(account.ours());
    let answer = request.send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeNetworkInterfaces", &error))?;
    for interface in answer.network_interfaces() {
        let is_free = interface.status() == Some(&NetworkInterfaceStatus::Available);
        let goes = if is_free { Goes::Stays } else { Goes::Itself };
        let id = interface.network_interface_id().unwrap_or_default().to_owned();
        found.push(leaving(account, LeavingKind::NetworkInterface, id, goes));
    }
    let answer = account.ec2.describe_addresses().filters(account.ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeAddresses", &error))?;
    let ids = answer.addresses().iter().filter_map(|address| address.allocation_id());
    found.extend(ids.map(|id| leaving(account, LeavingKind::Address, id.to_owned(), Goes::Stays)));
    Ok(found)
}

async fn network(account: &Account) -> Result<Vec<Leaving>, Failure> {
    let (ec2, ours) = (&account.ec2, || account.ours());
    let stays = |kind| move |id: &str| leaving(account, kind, id.to_owned(), Goes::Stays);
    let mut found = vec![];
    let answer = ec2.describe_security_groups().filters(ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeSecurityGroups", &error))?;
    let mut groups: Vec<_> = answer.security_groups().iter().collect();
    // The server's names the machines'.
    groups.sort_by_key(|group| std::cmp::Reverse(group.group_name().map(str::to_owned)));
    let ids = groups.into_iter().filter_map(|group| group.group_id());
    found.extend(ids.map(stays(LeavingKind::SecurityGroup)));
    let answer = ec2.describe_subnets().filters(ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeSubnets", &error))?;
    let ids = answer.subnets().iter().filter_map(|subnet| subnet.subnet_id());
    found.extend(ids.map(stays(LeavingKind::Subnet)));
    let answer = ec2.describe_route_tables().filters(ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeRouteTables", &error))?;
    let ids = answer.route_tables().iter().filter_map(|table| table.route_table_id());
    found.extend(ids.map(stays(LeavingKind::RouteTable)));
    let answer = ec2.describe_internet_gateways().filters(ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeInternetGateways", &error))?;
    let ids = answer.internet_gateways().iter().filter_map(|one| one.internet_gateway_id());
    found.extend(ids.map(stays(LeavingKind::InternetGateway)));
    let answer = ec2.describe_vpcs().filters(ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeVpcs", &error))?;
    let ids = answer.vpcs().iter().filter_map(|vpc| vpc.vpc_id());
    found.extend(ids.map(stays(LeavingKind::Network)));
    Ok(found)
}

/// Role and profile, where they have the fleet's tag.
async fn rights(account: &Account) -> Result<Vec<Leaving>, Failure> {
    let mut found = vec![];
    let name = account.name_of(&Part::Profile);
    let sent = account.iam.get_instance_profile().instance_profile_name(&name).send().await;
    match sent.map_err(|error| Failure::of("GetInstanceProfile", &error)) {
        Ok(answer) => {
            let profile = answer.instance_profile.filter(|profile| account.has_tag(profile.tags()));
            found.extend(
                profile.map(|_| leaving(account, LeavingKind::InstanceProfile, name, Goes::Stays)),
            );
        }
        Err(failure) if failure.meaning == Meaning::Gone => {}
        Err(failure) => return Err(failure),
    }
    let name = account.name_of(&Part::Role);
    let sent = account.iam.get_role().role_name(&name).send().await;
    match sent.map_err(|error| Failure::of("GetRole", &error)) {
        Ok(answer) => {
            let role = answer.role.filter(|role| account.has_tag(role.tags()));
            found.extend(role.map(|_| leaving(account, LeavingKind::Role, name, Goes::Stays)));
        }
        Err(failure) if failure.meaning == Meaning::Gone => {}
        Err(failure) => return Err(failure),
    }
    Ok(found)
}

/// Removes what of it can go.
pub(super) async fn remove(account: &Account, found: &[Leaving]) -> Result<(), SiteError> {
    // What a machine has goes with the machine.
    let machines = [LeavingKind::Server, LeavingKind::Machine];
    let is_up = found.iter().any(|leaving| machines.contains(&leaving.kind));
    for leaving in found.iter().filter(|leaving| leaving.goes == Goes::Stays) {
        if is_up && !machines.contains(&leaving.kind) {
            continue;
        }
        match remove_one(account, leaving).await {
            Err(failure) if !passes(failure.meaning) => return Err(failure.into()),
            _ => {}
        }
    }
    if !is_up {
        bucket::remove(account).await?;
    }
    Ok(())
}

/// Is it gone, or does it go with a later pass?
const fn passes(meaning: Meaning) -> bool {
    matches!(meaning, Meaning::Gone | Meaning::NoInstance | Meaning::NoVolume | Meaning::InUse)
}

async fn remove_one(account: &Account, leaving: &Leaving) -> Result<(), Failure> {
    let (ec2, id) = (&account.ec2, &leaving.id);
    match leaving.kind {
        LeavingKind::Server => {
            let sent = ec2.terminate_instances().instance_ids(id).send().await;
            sent.map(drop).map_err(|error| Failure::of("TerminateInstances", &error))
        }
        LeavingKind::ServerDisk => {
            let sent = ec2.delete_volume().volume_id(id).send().await;
            sent.map(drop).map_err(|error| Failure::of("DeleteVolume", &error))
        }
        LeavingKind::NetworkInterface => {
            let sent = ec2.delete_network_interface().network_interface_id(id).send().await;
            sent.map(drop).map_err(|error| Failure::of("DeleteNetworkInterface", &error))
        }
        LeavingKind::Address => {
            let sent = ec2.release_address().allocation_id(id).send().await;
            sent.map(drop).map_err(|error| Failure::of("ReleaseAddress", &error))
        }
        LeavingKind::SecurityGroup => {
            let sent = ec2.delete_security_group().group_id(id).send().await;
            sent.map(drop).map_err(|error| Failure::of("DeleteSecurityGroup", &error))
        }
        LeavingKind::Subnet => {
            let sent = ec2.delete_subnet().subnet_id(id).send().await;
            sent.map(drop).map_err(|error| Failure::of("DeleteSubnet", &error))
        }
        LeavingKind::RouteTable => remove_routes(account, id).await,
        LeavingKind::InternetGateway => remove_gateway(account, id).await,
        LeavingKind::Network => {
            let sent = ec2.delete_vpc().vpc_id(id).send().await;
            sent.map(drop).map_err(|error| Failure::of("DeleteVpc", &error))
        }
        LeavingKind::InstanceProfile => remove_profile(account, id).await,
        LeavingKind::Role => remove_role(account, id).await,
        // The fleet's machines and templates go as `leavings` does it, archives with the bucket's folder.
        LeavingKind::Machine
        | LeavingKind::Volume
        | LeavingKind::LaunchTemplate
        | LeavingKind::Archive => Ok(()),
    }
}

async fn remove_routes(account: &Account, id: &str) -> Result<(), Failure> {
    let answer = account.ec2.describe_route_tables().route_table_ids(id).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeRouteTables", &error))?;
    for association in answer.route_tables().iter().flat_map(|table| table.associations()) {
        let Some(association) = association.route_table_association_id() else { continue };
        let sent = account.ec2.disassociate_route_table().association_id(association).send().await;
        match sent.map_err(|error| Failure::of("DisassociateRouteTable", &error)) {
            Err(failure) if failure.meaning != Meaning::Gone => return Err(failure),
            _ => {}
        }
    }
    let sent = account.ec2.delete_route_table().route_table_id(id).send().await;
    sent.map(drop).map_err(|error| Failure::of("DeleteRouteTable", &error))
}

async fn remove_gateway(account: &Account, id: &str) -> Result<(), Failure> {
    let answer = account.ec2.describe_internet_gateways().internet_gateway_ids(id).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeInternetGateways", &error))?;
    for attachment in answer.internet_gateways().iter().flat_map(|gateway| gateway.attachments()) {
        let request = account.ec2.detach_internet_gateway().internet_gateway_id(id);
        let sent = request.set_vpc_id(attachment.vpc_id().map(str::to_owned)).send().await;
        match sent.map_err(|error| Failure::of("DetachInternetGateway", &error)) {
            Err(failure) if failure.meaning != Meaning::Gone => return Err(failure),
            _ => {}
        }
    }
    let sent = account.ec2.delete_internet_gateway().internet_gateway_id(id).send().await;
    sent.map(drop).map_err(|error| Failure::of("DeleteInternetGateway", &error))
}

async fn remove_profile(account: &Account, name: &str) -> Result<(), Failure> {
    let iam = &account.iam;
    let answer = iam.get_instance_profile().instance_profile_name(name).send().await;
    let answer = answer.map_err(|error| Failure::of("GetInstanceProfile", &error))?;
    for role in answer.instance_profile().map(|profile| profile.roles()).unwrap_or_default() {
        let request = iam.remove_role_from_instance_profile().instance_profile_name(name);
        let sent = request.role_name(role.role_name()).send().await;
        sent.map_err(|error| Failure::of("RemoveRoleFromInstanceProfile", &error))?;
    }
    let sent = iam.delete_instance_profile().instance_profile_name(name).send().await;
    sent.map(drop).map_err(|error| Failure::of("DeleteInstanceProfile", &error))
}

async fn remove_role(account: &Account, name: &str) -> Result<(), Failure> {
    let iam = &account.iam;
    let own = iam.list_role_policies().role_name(name).send().await;
    let own = own.map_err(|error| Failure::of("ListRolePolicies", &error))?;
    for policy in own.policy_names() {
        let sent = iam.delete_role_policy().role_name(name).policy_name(policy).send().await;
        sent.map_err(|error| Failure::of("DeleteRolePolicy", &error))?;
    }
    let attached = iam.list_attached_role_policies().role_name(name).send().await;
    let attached = attached.map_err(|error| Failure::of("ListAttachedRolePolicies", &error))?;
    for policy in attached.attached_policies().iter().filter_map(|policy| policy.policy_arn()) {
        let sent = iam.detach_role_policy().role_name(name).policy_arn(policy).send().await;
        sent.map_err(|error| Failure::of("DetachRolePolicy", &error))?;
    }
    let sent = iam.delete_role().role_name(name).send().await;
    sent.map(drop).map_err(|error| Failure::of("DeleteRole", &error))
}
