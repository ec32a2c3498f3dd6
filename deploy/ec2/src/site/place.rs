//! Where a site is made: the zones, the network that is given, the image.

use super::{
    SiteError,
    account::{Account, Known},
    plan,
};
use crate::{errors::Failure, region::filter, settings::ServerSettingsError};
use aws_sdk_ec2::types::{AvailabilityZoneState, LocationType};
use std::collections::BTreeSet;

/// Where a site is made.
#[derive(Debug)]
pub(super) struct Place {
    /// The zones of a network that is made; none where one is given.
    pub(super) zones: Vec<String>,
    /// The zone of the server's machine.
    pub(super) server_zone: String,
    /// The image of the server's machine.
    pub(super) image: String,
    /// As `/dev/xvda`.
    pub(super) root_device: String,
}

/// Asks where the site is to be made; what is given is known from now on.
pub(super) async fn find(account: &Account, known: &mut Known) -> Result<Place, SiteError> {
    let sold = sold(account).await?;
    let given = !account.region.subnets.is_empty();
    let (zones, order) = if given {
        let order = given_network(account, known).await?;
        (vec![], order)
    } else {
        let mut all = zones(account).await?;
        // The server's zone comes first: a region may have zones that don't sell the type.
        all.sort_by_key(|zone| !sold.contains(zone));
        let zones = plan::zones(&own_zones(account).await?, &all, account.server.zones);
        (zones.clone(), zones)
    };
    known.machine_groups.clone_from(&account.region.security_groups);
    let server_zone = order.into_iter().find(|zone| sold.contains(zone));
    let not_sold = || SiteError::NotSold {
        instance_type: account.server.instance_type.clone(),
        region: account.name.clone(),
    };
    let image = account.server.image.as_ref().or(account.region.image.as_ref());
    let no_image = || ServerSettingsError {
        key: "image",
        what: "is missing, and the region has none either".to_owned(),
    };
    let image = image.ok_or_else(no_image)?;
    Ok(Place {
        zones,
        server_zone: server_zone.ok_or_else(not_sold)?,
        root_device: root_device(account, image).await?,
        image: image.clone(),
    })
}

/// The zones in which the network may be: the file's, or all but local ones, which have few types at other prices.
async fn zones(account: &Account) -> Result<Vec<String>, Failure> {
    if !account.region.zones.is_empty() {
        return Ok(account.region.zones.clone());
    }
    let answer = account.ec2.describe_availability_zones().send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeAvailabilityZones", &error))?;
    let usual = answer.availability_zones().iter().filter(|zone| {
        zone.state() == Some(&AvailabilityZoneState::Available)
            && zone.zone_type().is_none_or(|kind| kind == "availability-zone")
    });
    let mut zones: Vec<String> =
        usual.filter_map(|zone| zone.zone_name().map(str::to_owned)).collect();
    zones.sort();
    Ok(zones)
}

/// The zones in which the site has subnets already.
async fn own_zones(account: &Account) -> Result<BTreeSet<String>, Failure> {
    let answer = account.ec2.describe_subnets().filters(account.ours()).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeSubnets", &error))?;
    let zones = answer.subnets().iter().filter_map(|subnet| subnet.availability_zone());
    Ok(zones.map(str::to_owned).collect())
}

/// The network of the file's subnets, and their zones in their order.
async fn given_network(account: &Account, known: &mut Known) -> Result<Vec<String>, SiteError> {
    let wanted = &account.region.subnets;
    let answer = account.ec2.describe_subnets().filters(filter("subnet-id", wanted)).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeSubnets", &error))?;
    let mut zones = vec![];
    for id in wanted {
        let found = answer.subnets().iter().find(|subnet| subnet.subnet_id() == Some(id));
        let found = found.ok_or_else(|| SiteError::NoSubnet { id: id.clone() })?;
        if known.network.is_some() && known.network.as_deref() != found.vpc_id() {
            return Err(SiteError::TwoNetworks);
        }
        known.network = found.vpc_id().map(str::to_owned);
        let zone = found.availability_zone().unwrap_or_default();
        known.subnets.entry(zone.to_owned()).or_insert_with(|| id.clone());
        zones.push(zone.to_owned());
    }
    Ok(zones)
}

/// The zones that sell the type of the server's machine.
async fn sold(account: &Account) -> Result<BTreeSet<String>, Failure> {
    let request = account.ec2.describe_instance_type_offerings();
    let request = request.location_type(LocationType::AvailabilityZone);
    let request = request.filters(filter("instance-type", [&account.server.instance_type]));
    let answer = request.send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeInstanceTypeOfferings", &error))?;
    let zones = answer.instance_type_offerings().iter().filter_map(|offer| offer.location());
    Ok(zones.map(str::to_owned).collect())
}

async fn root_device(account: &Account, image: &str) -> Result<String, SiteError> {
    let answer = account.ec2.describe_images().image_ids(image).send().await;
    let answer = answer.map_err(|error| Failure::of("DescribeImages", &error))?;
    let found = answer.images().iter().find(|found| found.image_id() == Some(image));
    let device = found.and_then(|found| found.root_device_name());
    Ok(device.ok_or_else(|| SiteError::NoDisk { image: image.to_owned() })?.to_owned())
}
