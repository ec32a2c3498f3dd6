//! The network: VPC, internet gateway, routes and subnets.
//!
//! The network's subnets are public, since what machines fetch and send shouldn't be paid for at a NAT gateway besides.

use super::{
    account::{Account, Known, Visit, lacks, or_there, settled},
    plan::{self, NETWORK_BLOCK},
};
use crate::{errors::Failure, region::filter};
use aws_sdk_ec2::types::{AttributeBooleanValue, ResourceType, VpcAttributeName};
use std::collections::BTreeSet;

/// All addresses.
const ANYWHERE: &str = "0.0.0.0/0";

/// The network itself.
pub(super) async fn network(
    account: &Account,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), Failure> {
    let answer = account.ec2.describe_vpcs().filters(account.ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeVpcs", &error))?;
    known.network = answer.vpcs().iter().filter_map(|vpc| vpc.vpc_id()).min().map(str::to_owned);
    if known.network.is_none() && visit.missing() {
        let request = account.ec2.create_vpc().cidr_block(NETWORK_BLOCK);
        let made = request.tag_specifications(account.tags(ResourceType::Vpc)).send().await;
        let made = made.map_err(|error| Failure::of("CreateVpc", &error))?;
        let id = made.vpc().and_then(|vpc| vpc.vpc_id());
        known.network = Some(id.ok_or_else(|| lacks("CreateVpc", "id"))?.to_owned());
    }
    let Some(id) = &known.network else { return Ok(()) };
    let answer = settled(async || {
        let request = account.ec2.describe_vpc_attribute().vpc_id(id);
        let sent = request.attribute(VpcAttributeName::EnableDnsHostnames).send().await;
        sent.map_err(|error| Failure::of("DescribeVpcAttribute", &error))
    });
    let names = answer.await?.enable_dns_hostnames().and_then(|names| names.value());
    if names != Some(true) && visit.unfinished() {
        let yes = AttributeBooleanValue::builder().value(true).build();
        let sent = account.ec2.modify_vpc_attribute().vpc_id(id).enable_dns_hostnames(yes).send();
        sent.await.map_err(|error| Failure::of("ModifyVpcAttribute", &error))?;
    }
    Ok(())
}

/// The network's way to the internet.
pub(super) async fn gateway(
    account: &Account,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), Failure> {
    let answer = account.ec2.describe_internet_gateways().filters(account.ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeInternetGateways", &error))?;
    let found = answer.internet_gateways().iter().min_by_key(|found| found.internet_gateway_id());
    let attached = found.map(|found| found.attachments()).unwrap_or_default();
    let attached =
        attached.iter().any(|to| to.vpc_id().is_some() && to.vpc_id() == known.network.as_deref());
    known.gateway = found.and_then(|found| found.internet_gateway_id()).map(str::to_owned);
    if known.gateway.is_none() && visit.missing() {
        let tags = account.tags(ResourceType::InternetGateway);
        let made = account.ec2.create_internet_gateway().tag_specifications(tags).send().await;
        let made = made.map_err(|error| Failure::of("CreateInternetGateway", &error))?;
        let id = made.internet_gateway().and_then(|made| made.internet_gateway_id());
        known.gateway = Some(id.ok_or_else(|| lacks("CreateInternetGateway", "id"))?.to_owned());
    }
    if known.gateway.is_none() || attached || !visit.unfinished() {
        return Ok(());
    }
    let attached = settled(async || {
        let request = account.ec2.attach_internet_gateway();
        let request = request.set_internet_gateway_id(known.gateway.clone());
        let sent = request.set_vpc_id(known.network.clone()).send().await;
        sent.map_err(|error| Failure::of("AttachInternetGateway", &error))
    });
    or_there(attached.await)
}

/// The routes of its subnets.
pub(super) async fn routes(
    account: &Account,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), Failure> {
    let mut leads = false;
    if let Some(network) = &known.network {
        let request = account.ec2.describe_route_tables().filters(account.ours());
        let answer = request.filters(filter("vpc-id", [network])).send().await;
        let answer = answer.map_err(|error| Failure::of("DescribeRouteTables", &error))?;
        let found = answer.route_tables().iter().min_by_key(|table| table.route_table_id());
        known.routes = found.and_then(|table| table.route_table_id()).map(str::to_owned);
        leads = found.is_some_and(|table| {
            let mut all = table.routes().iter();
            all.any(|route| {
                let anywhere = route.destination_cidr_block() == Some(ANYWHERE);
                anywhere
                    && route.gateway_id().is_some()
                    && route.gateway_id() == known.gateway.as_deref()
            })
        });
    }
    if known.routes.is_none() && visit.missing() {
        let made = settled(async || {
            let request = account.ec2.create_route_table().set_vpc_id(known.network.clone());
            let sent = request.tag_specifications(account.tags(ResourceType::RouteTable)).send();
            sent.await.map_err(|error| Failure::of("CreateRouteTable", &error))
        });
        let made = made.await?;
        let id = made.route_table().and_then(|made| made.route_table_id());
        known.routes = Some(id.ok_or_else(|| lacks("CreateRouteTable", "id"))?.to_owned());
    }
    if known.routes.is_none() || leads || !visit.unfinished() {
        return Ok(());
    }
    let route = settled(async || {
        let request = account.ec2.create_route().set_route_table_id(known.routes.clone());
        let request = request.set_gateway_id(known.gateway.clone());
        let sent = request.destination_cidr_block(ANYWHERE).send().await;
        sent.map_err(|error| Failure::of("CreateRoute", &error))
    });
    or_there(route.await)
}

/// The network's subnet in a zone.
pub(super) async fn subnet(
    account: &Account,
    zone: &str,
    known: &mut Known,
    visit: &mut Visit,
) -> Result<(), Failure> {
    let mut blocks = BTreeSet::new();
    let (mut id, mut public) = (None, false);
    if let Some(network) = &known.network {
        let request = account.ec2.describe_subnets().filters(filter("vpc-id", [network]));
        let answer =
            request.send().await.map_err(|error| Failure::of("DescribeSubnets", &error))?;
        blocks.extend(
            answer.subnets().iter().filter_map(|subnet| subnet.cidr_block().map(str::to_owned)),
        );
        let ours = answer.subnets().iter().filter(|subnet| {
            let tag = crate::tags::value(subnet.tags(), crate::settings::FLEET_TAG);
            subnet.availability_zone() == Some(zone) && tag == Some(&account.settings.fleet)
        });
        let found = ours.min_by_key(|subnet| subnet.subnet_id());
        public = found.is_some_and(|subnet| subnet.map_public_ip_on_launch() == Some(true));
        id = found.and_then(|subnet| subnet.subnet_id()).map(str::to_owned);
    }
    if id.is_none() && visit.missing() {
        let block = plan::free_block(&blocks).ok_or_else(|| lacks("CreateSubnet", "room"))?;
        let made = settled(async || {
            let request = account.ec2.create_subnet().set_vpc_id(known.network.clone());
            let request = request.cidr_block(&block).availability_zone(zone);
            let sent = request.tag_specifications(account.tags(ResourceType::Subnet)).send().await;
            sent.map_err(|error| Failure::of("CreateSubnet", &error))
        });
        let made = made.await?;
        let made = made.subnet().and_then(|subnet| subnet.subnet_id());
        id = Some(made.ok_or_else(|| lacks("CreateSubnet", "id"))?.to_owned());
    }
    let Some(id) = id else { return Ok(()) };
    known.subnets.insert(zone.to_owned(), id.clone());
    if !public && visit.unfinished() {
        let modified = settled(async || {
            let yes = AttributeBooleanValue::builder().value(true).build();
            let request = account.ec2.modify_subnet_attribute().subnet_id(&id);
            let sent = request.map_public_ip_on_launch(yes).send().await;
            sent.map_err(|error| Failure::of("ModifySubnetAttribute", &error))
        });
        modified.await?;
    }
    associate(account, &id, known, visit).await
}

/// The subnet goes by the routes of the network.
async fn associate(
    account: &Account,
    subnet: &str,
    known: &Known,
    visit: &mut Visit,
) -> Result<(), Failure> {
    let request = account.ec2.describe_route_tables();
    let answer = request.filters(filter("association.subnet-id", [subnet])).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeRouteTables", &error))?;
    let mut tables = answer.route_tables().iter();
    if tables.any(|table| {
        table.route_table_id().is_some() && table.route_table_id() == known.routes.as_deref()
    }) {
        return Ok(());
    }
    if !visit.unfinished() {
        return Ok(());
    }
    let associated = settled(async || {
        let request = account.ec2.associate_route_table().subnet_id(subnet);
        let sent = request.set_route_table_id(known.routes.clone()).send().await;
        sent.map_err(|error| Failure::of("AssociateRouteTable", &error))
    });
    or_there(associated.await)
}
