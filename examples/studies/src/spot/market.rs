//! The world that a file makes: its pools, and how they move.

use super::{
    file::{SimFile, TypeEntry},
    number::float,
};
use sojourn_fake_cloud::{
    CapacityConfig, InterruptionConfig, PoolConfig, Prices, Walk, WorldConfig,
};
use sojourn_fleet::cloud::{InstanceType, Pool};
use sojourn_protocol::{
    money::MicroUsd,
    seeds,
    time::{Millis, UnixMillis},
};
use sojourn_sim::fleet::Span;
use std::collections::BTreeMap;

/// Prices that were seen, by type and zone.
pub(super) type Traces = BTreeMap<(String, String), Vec<(Millis, MicroUsd)>>;

pub(super) const fn millis(span: Span) -> Millis {
    Millis(span.0 / 1000)
}

/// The configuration of a world, at one rate of interruptions and with one seed.
pub(super) fn world(file: &SimFile, traces: &Traces, rate: f64, seed: u64) -> WorldConfig {
    let types = file.types.iter().map(|of| (of.name.clone(), instance_type(of)));
    let pools = file.types.iter().flat_map(|of| {
        file.market.zones.iter().map(move |zone| pool(file, of, zone, traces, rate, seed))
    });
    WorldConfig {
        types: types.collect(),
        pools: pools.collect(),
        from: UnixMillis(0),
        length: millis(file.market.length),
        step: millis(file.market.step),
    }
}

fn instance_type(of: &TypeEntry) -> InstanceType {
    InstanceType {
        name: of.name.clone(),
        vcpus: of.vcpus,
        memory: of.memory.0,
        gpus: of.gpus,
        gpu_memory: of.gpu_memory.0,
    }
}

fn pool(
    file: &SimFile,
    of: &TypeEntry,
    zone: &str,
    traces: &Traces,
    rate: f64,
    seed: u64,
) -> PoolConfig {
    let market = &file.market;
    let key = (of.name.clone(), zone.to_owned());
    let prices = traces.get(&key).map(|trace| Prices::Trace(trace.clone()));
    let price = market.price;
    let walk = || {
        let parts = [seed, seeds::derive(&format!("{} in {zone}", of.name), &[])];
        let mut chance = seeds::stream("sim-market", &parts);
        // A triangular variate with the variance 1.
        let two = seeds::unit_f64(&mut chance) + seeds::unit_f64(&mut chance);
        let away = (two - 1.0) * 6.0_f64.sqrt();
        Prices::Walk(Walk {
            mean: price.mean * libm::exp(price.spread * away),
            reversion: price.reversion,
            deviation: price.deviation,
            jumps: price.jumps,
            jump: price.jump,
            least: price.least,
            most: price.most,
        })
    };
    PoolConfig {
        pool: Pool {
            region: market.region.clone(),
            zone: zone.to_owned(),
            instance_type: of.name.clone(),
        },
        on_demand: of.on_demand,
        prices: prices.unwrap_or_else(walk),
        capacity: CapacityConfig {
            machines: market.capacity.machines,
            shortages: market.capacity.shortages,
            shortage: millis(market.capacity.shortage),
            on_demand: market.capacity.on_demand,
        },
        interruptions: InterruptionConfig {
            per_hour: rate,
            in_shortage: market.interruptions.in_shortage,
            noticed: market.interruptions.noticed,
            notice: millis(market.interruptions.notice),
        },
    }
}

/// Reads a trace: a CSV file with a line of names, of which `type`, `zone`, `seconds` (since the beginning) and `price` (in
/// dollars an hour) are wanted.
///
/// # Errors
/// Which line is wrong.
pub(super) fn traces(text: &str) -> Result<Traces, String> {
    #[derive(serde::Deserialize)]
    struct Row {
        r#type: String,
        zone: String,
        seconds: f64,
        price: f64,
    }
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let mut all = Traces::new();
    for row in reader.deserialize::<Row>() {
        let row = row.map_err(|error| format!("the trace: {error}"))?;
        if row.seconds < 0.0 || row.price <= 0.0 {
            let Row { r#type, zone, .. } = row;
            return Err(format!("the trace has no time or no price for {} in {zone}", r#type));
        }
        let at = Millis(super::number::whole(row.seconds * 1000.0));
        let price = MicroUsd(super::number::whole(row.price * 1e6));
        all.entry((row.r#type, row.zone)).or_default().push((at, price));
    }
    all.values_mut().for_each(|trace| trace.sort());
    Ok(all)
}

/// The price of a slot's hour over what it computes in it, in dollars for 1e18 operations.
pub(super) fn dollars_per_exaflop(price: MicroUsd, of: &TypeEntry) -> f64 {
    let exaflops = of.tflops * f64::from(of.gpus) * 3600.0 / 1e6;
    float(price.0) / 1e6 / exaflops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_read_in_the_order_of_time() {
        let text = "zone, type, price, seconds\na, t, 0.5, 60\na, t, 0.25, 0\nb, t, 1, 0\n";
        let traces = traces(text).unwrap();
        let a = &traces[&("t".to_owned(), "a".to_owned())];
        assert_eq!(*a, [(Millis(0), MicroUsd(250_000)), (Millis(60_000), MicroUsd(500_000))]);
        assert_eq!(traces.len(), 2);
        assert!(super::traces("type,zone,seconds,price\nt,a,0,0\n").is_err());
    }
}
