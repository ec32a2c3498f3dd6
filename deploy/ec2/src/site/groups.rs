//! The security groups, which say who reaches whom: one port of one machine is open.

use super::{
    account::{Account, Known, Visit, lacks, or_there, settled},
    plan::{PORT, Part},
};
use crate::{
    errors::{Failure, Meaning},
    region::filter,
};
use aws_sdk_ec2::types::{IpPermission, IpRange, ResourceType, SecurityGroup, UserIdGroupPair};
use std::collections::BTreeSet;

/// The group of the fleet's machines.
pub(super) async fn machines(
    account: &Account,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), Failure> {
    let about = "Machines of the fleet: nothing reaches them";
    let found = find(account, &Part::MachineGroup, known).await?;
    let id = match found.and_then(|group| group.group_id) {
        Some(id) => Some(id),
        None if visit.missing() => Some(make(account, &Part::MachineGroup, about, known).await?),
        None => None,
    };
    known.machine_groups.extend(id);
    Ok(())
}

/// The group of the server.
pub(super) async fn server(
    account: &Account,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), Failure> {
    let found = find(account, &Part::ServerGroup, known).await?;
    let (groups, networks) = found.as_ref().map(sources).unwrap_or_default();
    known.server_group = found.as_ref().and_then(|group| group.group_id.clone());
    if known.server_group.is_none() && visit.missing() {
        let about = "The server: its port alone";
        known.server_group = Some(make(account, &Part::ServerGroup, about, known).await?);
    }
    let Some(id) = known.server_group.clone() else { return Ok(()) };
    let wanted = account.server.networks();
    let new = wanted.difference(&networks).map(|network| rule(Some(network), None));
    let machines = known.machine_groups.iter().filter(|group| !groups.contains(*group));
    // Each by itself: EC2 refuses all rules of a request of which one is there.
    for rule in new.chain(machines.map(|group| rule(None, Some(group)))) {
        if visit.unfinished() {
            let opened = settled(async || {
                let request = account.ec2.authorize_security_group_ingress().group_id(&id);
                let sent = request.ip_permissions(rule.clone()).send().await;
                sent.map_err(|error| Failure::of("AuthorizeSecurityGroupIngress", &error))
            });
            or_there(opened.await)?;
        }
    }
    // Who isn't in the file any more doesn't reach the server any more; the group is the fleet's, whoever added the rule.
    for rule in found.iter().flat_map(|group| others(group, &wanted, &known.machine_groups)) {
        if visit.unfinished() {
            let request = account.ec2.revoke_security_group_ingress().group_id(&id);
            let sent = request.ip_permissions(rule).send().await;
            match sent.map_err(|error| Failure::of("RevokeSecurityGroupIngress", &error)) {
                Err(failure) if failure.meaning != Meaning::Gone => return Err(failure),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The group of a part, by its tag and name.
async fn find(
    account: &Account,
    part: &Part,
    known: &Known,
) -> Result<Option<SecurityGroup>, Failure> {
    let Some(network) = &known.network else { return Ok(None) };
    let request = account.ec2.describe_security_groups().filters(account.ours());
    let request = request.filters(filter("group-name", [account.name_of(part)]));
    let answer = request.filters(filter("vpc-id", [network])).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeSecurityGroups", &error))?;
    Ok(answer.security_groups().first().cloned())
}

async fn make(
    account: &Account,
    part: &Part,
    about: &str,
    known: &Known,
) -> Result<String, Failure> {
    let made = settled(async || {
        let request = account.ec2.create_security_group().group_name(account.name_of(part));
        let request = request.description(about).set_vpc_id(known.network.clone());
        let sent = request.tag_specifications(account.tags(ResourceType::SecurityGroup)).send();
        sent.await.map_err(|error| Failure::of("CreateSecurityGroup", &error))
    });
    let made = made.await?;
    Ok(made.group_id().ok_or_else(|| lacks("CreateSecurityGroup", "id"))?.to_owned())
}

fn is_port(rule: &IpPermission) -> bool {
    let port = Some(i32::from(PORT));
    rule.ip_protocol() == Some("tcp") && rule.from_port() == port && rule.to_port() == port
}

/// The groups and networks to which the port is open.
fn sources(group: &SecurityGroup) -> (BTreeSet<String>, BTreeSet<String>) {
    let rules = || group.ip_permissions().iter().filter(|rule| is_port(rule));
    let groups = rules().flat_map(IpPermission::user_id_group_pairs);
    let networks = rules().flat_map(IpPermission::ip_ranges);
    (
        groups.filter_map(|pair| pair.group_id().map(str::to_owned)).collect(),
        networks.filter_map(|range| range.cidr_ip().map(str::to_owned)).collect(),
    )
}

/// The rules by which a group lets in anything beside these networks and groups at the server's port.
fn others(
    group: &SecurityGroup,
    networks: &BTreeSet<String>,
    groups: &[String],
) -> Vec<IpPermission> {
    let rest = |rule: &IpPermission| {
        let port = is_port(rule);
        let stays = |network: Option<&str>| port && network.is_some_and(|n| networks.contains(n));
        let ranges = rule.ip_ranges().iter().filter(|range| !stays(range.cidr_ip()));
        let ranges: Vec<_> = ranges.cloned().collect();
        let stays = |id: Option<&str>| port && groups.iter().any(|group| id == Some(group));
        let pairs = rule.user_id_group_pairs().iter().filter(|pair| !stays(pair.group_id()));
        let pairs: Vec<_> = pairs.cloned().collect();
        let (six, lists) = (rule.ipv6_ranges().to_vec(), rule.prefix_list_ids().to_vec());
        if ranges.is_empty() && pairs.is_empty() && six.is_empty() && lists.is_empty() {
            return None;
        }
        let rest = IpPermission::builder()
            .set_ip_protocol(rule.ip_protocol.clone())
            .set_from_port(rule.from_port)
            .set_to_port(rule.to_port)
            .set_ip_ranges((!ranges.is_empty()).then_some(ranges))
            .set_user_id_group_pairs((!pairs.is_empty()).then_some(pairs))
            .set_ipv6_ranges((!six.is_empty()).then_some(six))
            .set_prefix_list_ids((!lists.is_empty()).then_some(lists));
        Some(rest.build())
    };
    group.ip_permissions().iter().filter_map(rest).collect()
}

/// Opens the port to a network or a group.
fn rule(network: Option<&String>, group: Option<&String>) -> IpPermission {
    let range = network.map(|network| {
        IpRange::builder().cidr_ip(network).description("people and machines outside").build()
    });
    let pair = group.map(|group| UserIdGroupPair::builder().group_id(group).build());
    IpPermission::builder()
        .ip_protocol("tcp")
        .from_port(PORT.into())
        .to_port(PORT.into())
        .set_ip_ranges(range.map(|range| vec![range]))
        .set_user_id_group_pairs(pair.map(|pair| vec![pair]))
        .build()
}
