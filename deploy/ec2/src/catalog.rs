//! The types that a region sells, and in which zones.
//!
//! Both change a few times a year, so they are asked for again after [`KEPT`] only.

use crate::{
    errors::Failure,
    patterns,
    region::{Region, filter},
    settings::Ec2Settings,
    sold::{Catalog, Dated, Sold},
};
use aws_sdk_ec2::types::{InstanceTypeHypervisor, InstanceTypeInfo, LocationType, UsageClassType};
use sojourn_fleet::cloud::{CloudError, InstanceType};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// For how long the types are taken as they were.
const KEPT: Duration = Duration::from_secs(6 * 3600);
/// Types in an answer: EC2 gives no more.
const PAGE: i32 = 100;
/// Offerings in an answer: EC2 gives no more.
const OFFERINGS_PAGE: i32 = 1000;
const MIB: u64 = 1 << 20;

/// The region's catalog.
pub(crate) async fn catalog(region: &Region) -> Result<Arc<Catalog>, CloudError> {
    let mut known = region.catalog.lock().await;
    if let Some(dated) = known.as_ref().filter(|dated| dated.at.elapsed() < KEPT) {
        return Ok(dated.catalog.clone());
    }
    let types = types(region).await?;
    let zones = zones(region, &types).await?;
    let catalog = Arc::new(Catalog { types, zones });
    *known = Some(Dated { at: Instant::now(), catalog: catalog.clone() });
    Ok(catalog)
}

async fn types(region: &Region) -> Result<BTreeMap<String, Sold>, CloudError> {
    let architecture = &region.place().await?.architecture;
    let request = region.client.describe_instance_types().max_results(PAGE);
    let request = request
        .filters(filter("instance-type", &region.shared.types))
        .filters(filter("processor-info.supported-architecture", [architecture]));
    let mut pages = request.into_paginator().items().send();
    let mut types = BTreeMap::new();
    while let Some(info) = pages.next().await {
        let info = info.map_err(|error| Failure::of("DescribeInstanceTypes", &error).cloud())?;
        if let Some(sold) = sold(&info, &region.shared) {
            types.insert(sold.instance_type.name.clone(), sold);
        }
    }
    Ok(types)
}

/// The type, where the settings name it.
fn sold(info: &InstanceTypeInfo, settings: &Ec2Settings) -> Option<Sold> {
    let name = info.instance_type()?.as_str();
    let named = settings.types.iter().any(|pattern| pattern == name);
    let covered = settings.types.iter().any(|pattern| patterns::matches(pattern, name));
    // A burstable type slows down once its credits are spent: no measured speed of it lasts.
    let ordinary = info.hypervisor() == Some(&InstanceTypeHypervisor::Nitro)
        && info.burstable_performance_supported() != Some(true)
        && info.bare_metal() != Some(true);
    let except = settings.except.iter().any(|pattern| patterns::matches(pattern, name));
    if except || !(named || covered && ordinary) {
        return None;
    }
    // The client trains on GPUs of one maker only.
    let gpus = info.gpu_info().map(|gpus| gpus.gpus()).unwrap_or_default().iter();
    let gpus: Vec<_> = gpus.filter(|gpu| gpu.manufacturer() == Some("NVIDIA")).collect();
    let gpu_memory = gpus.iter().filter_map(|gpu| gpu.memory_info()?.size_in_mib()).min();
    // Some are sold in blocks of days only.
    if !info.supported_usage_classes().contains(&UsageClassType::OnDemand) {
        return None;
    }
    Some(Sold {
        instance_type: InstanceType {
            name: name.to_owned(),
            vcpus: u32::try_from(info.v_cpu_info()?.default_v_cpus()?).ok()?,
            memory: u64::try_from(info.memory_info()?.size_in_mib()?).ok()?.checked_mul(MIB)?,
            gpus: u32::try_from(gpus.iter().filter_map(|gpu| gpu.count()).sum::<i32>()).ok()?,
            gpu_memory: u64::try_from(gpu_memory.unwrap_or(0)).ok()?.checked_mul(MIB)?,
        },
        spot: info.supported_usage_classes().contains(&UsageClassType::Spot),
    })
}

async fn zones(
    region: &Region,
    types: &BTreeMap<String, Sold>,
) -> Result<BTreeMap<String, BTreeSet<String>>, CloudError> {
    let subnets = &region.place().await?.subnets;
    let request = region.client.describe_instance_type_offerings().max_results(OFFERINGS_PAGE);
    let request = request
        .location_type(LocationType::AvailabilityZone)
        .filters(filter("location", subnets.keys()));
    let mut pages = request.into_paginator().items().send();
    let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    while let Some(offering) = pages.next().await {
        let offering = offering
            .map_err(|error| Failure::of("DescribeInstanceTypeOfferings", &error).cloud())?;
        let (Some(name), Some(zone)) = (offering.instance_type(), offering.location()) else {
            continue;
        };
        if types.contains_key(name.as_str()) && subnets.contains_key(zone) {
            zones.entry(name.as_str().to_owned()).or_default().insert(zone.to_owned());
        }
    }
    Ok(zones)
}
