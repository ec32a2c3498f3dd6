//! Prices: those of spot machines from EC2, list prices from the settings. EC2's API has no list prices.

use crate::{
    catalog,
    errors::Failure,
    money,
    region::{Region, filter},
};
use aws_sdk_ec2::{
    primitives::DateTime,
    types::{InstanceType as TypeName, SpotPrice},
};
use sojourn_fleet::cloud::{CloudError, Offers, Pool, Quote};
use sojourn_protocol::{money::MicroUsd, time::UnixMillis};
use std::collections::BTreeMap;

/// The software for which a machine is priced; so begin the prices of machines inside a VPC and outside.
const PRODUCT: &str = "Linux/UNIX";
/// Types that are named in a request.
const MAX_NAMED: usize = 100;
/// Prices in an answer: EC2 gives no more.
const PAGE: i32 = 1000;

/// The types and prices that a region sells now.
pub(crate) async fn offers(region: &Region, now: UnixMillis) -> Result<Offers, CloudError> {
    let catalog = catalog::catalog(region).await?;
    let spot = spot_prices(region, catalog.types.keys(), now).await?;
    let mut offers = Offers::default();
    for (name, zones) in &catalog.zones {
        // Without its list price nobody could tell what a type saves, or what it costs where spot machines run out.
        let listed = region.settings.on_demand.get(name);
        let (Some(sold), Some(listed)) = (catalog.types.get(name), listed) else { continue };
        for zone in zones {
            let pool = region.pool(zone, name);
            let spot = spot.get(&pool).copied().filter(|_| sold.spot);
            offers.quotes.insert(pool, Quote { spot, on_demand: listed.0 });
            offers.types.entry(name.clone()).or_insert_with(|| sold.instance_type.clone());
        }
    }
    Ok(offers)
}

/// The spot prices of all pools at a time.
async fn spot_prices(
    region: &Region,
    types: impl ExactSizeIterator<Item = &String>,
    at: UnixMillis,
) -> Result<BTreeMap<Pool, MicroUsd>, CloudError> {
    let subnets = &region.place().await?.subnets;
    if types.len() == 0 {
        return Ok(BTreeMap::new());
    }
    // A request for all types gives a few thousand prices; a long list of types is refused.
    let named = (types.len() <= MAX_NAMED).then(|| types.map(|name| TypeName::from(name.as_str())));
    let request = region.client.describe_spot_price_history().max_results(PAGE);
    let request = request
        .set_instance_types(named.map(Iterator::collect))
        .filters(filter("availability-zone", subnets.keys()));
    history(region, request, at).await
}

/// The spot price of a pool at a time.
pub(crate) async fn spot_price_at(
    region: &Region,
    pool: &Pool,
    at: UnixMillis,
) -> Result<Option<MicroUsd>, CloudError> {
    let request = region.client.describe_spot_price_history().max_results(PAGE);
    let request = request
        .instance_types(TypeName::from(pool.instance_type.as_str()))
        .filters(filter("availability-zone", [&pool.zone]));
    Ok(history(region, request, at).await?.remove(pool))
}

/// The prices at a time. EC2 gives those that were set from the start to the end that are asked for, and of each pool the
/// last one before the start.
async fn history(
    region: &Region,
    request: aws_sdk_ec2::operation::describe_spot_price_history::builders::DescribeSpotPriceHistoryFluentBuilder,
    at: UnixMillis,
) -> Result<BTreeMap<Pool, MicroUsd>, CloudError> {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    let time = DateTime::from_millis(millis);
    let request = request.product_descriptions(PRODUCT).start_time(time).end_time(time);
    let mut pages = request.into_paginator().items().send();
    let mut prices: BTreeMap<Pool, (DateTime, MicroUsd)> = BTreeMap::new();
    while let Some(entry) = pages.next().await {
        let entry =
            entry.map_err(|error| Failure::of("DescribeSpotPriceHistory", &error).cloud())?;
        let Some((pool, set_at, price)) = read(region, &entry) else { continue };
        if set_at > time {
            continue;
        }
        let newest = prices.entry(pool).or_insert((set_at, price));
        if newest.0 < set_at {
            *newest = (set_at, price);
        }
    }
    Ok(prices.into_iter().map(|(pool, (_, price))| (pool, price)).collect())
}

/// A price with its pool, and when it was set; none for other software.
fn read(region: &Region, entry: &SpotPrice) -> Option<(Pool, DateTime, MicroUsd)> {
    let product = entry.product_description()?.as_str();
    if !product.starts_with(PRODUCT) {
        return None;
    }
    let pool = region.pool(entry.availability_zone()?, entry.instance_type()?.as_str());
    let text = entry.spot_price()?;
    let Some(price) = money::parse(text) else {
        tracing::warn!(%pool, price = text, "EC2 gave a spot price that can't be read");
        return None;
    };
    Some((pool, *entry.timestamp()?, price))
}
