//! Buying: each machine of an order is an instant fleet of one, so that each has its token, its user data and its tags.

use crate::{
    errors::{self, Failure, Meaning},
    money,
    region::{Place, Region},
    settings::MACHINE_TAG,
    tags, template,
    tokens::client_token,
    user_data::UserData,
};
use aws_sdk_ec2::{
    operation::create_fleet::CreateFleetOutput,
    types::{
        CreateFleetError, CreateFleetInstance, DefaultTargetCapacityType,
        FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverrides,
        FleetLaunchTemplateOverridesRequest, FleetOnDemandAllocationStrategy, FleetType,
        InstanceType as TypeName, LaunchTemplateAndOverridesResponse, OnDemandOptionsRequest,
        ResourceType, SpotAllocationStrategy, SpotInstanceInterruptionBehavior, SpotOptionsRequest,
        TargetCapacitySpecificationRequest,
    },
};
use futures::future::join_all;
use sojourn_fleet::cloud::{Bought, CloudError, Filled, NewMachine, Order, Pool};
use sojourn_protocol::machines::Market;

/// Pools that a fleet takes: EC2's quota of overrides.
pub const MAX_POOLS: usize = 300;
/// Machines that are asked for at once. Where one is refused, no more are asked for.
const AT_ONCE: usize = 4;

/// Buys the machines of an order, all of whose pools are of this region.
pub(crate) async fn buy(
    region: &Region,
    user_data: &UserData,
    order: &Order,
) -> Result<Filled, CloudError> {
    let nothing = |failure| Ok(Filled { bought: vec![], failure: Some(failure) });
    let place = match region.place().await {
        Ok(place) => place,
        Err(failure) => return nothing(failure),
    };
    let overrides = match overrides(place, order) {
        Ok(overrides) => overrides,
        Err(failure) => return nothing(failure),
    };
    let request = Request { region, place, user_data, order, overrides };
    let mut filled = Filled::default();
    for machines in order.machines.chunks(AT_ONCE) {
        for answer in join_all(machines.iter().map(|machine| request.buy(machine))).await {
            match answer {
                Ok(bought) => filled.bought.push(bought),
                Err(failure) => filled.failure = Some(worse(filled.failure, failure)),
            }
        }
        if filled.failure.is_some() {
            break;
        }
    }
    match filled.failure {
        // Nothing is known of any machine: not even that it wasn't bought.
        Some(CloudError::Away(message)) if filled.bought.is_empty() => {
            Err(CloudError::Away(message))
        }
        _ => Ok(filled),
    }
}

/// The failure that says more: what isn't known comes first, then what won't change by itself. Pools without capacity add up.
fn worse(known: Option<CloudError>, other: CloudError) -> CloudError {
    let rank = |error: &CloudError| match error {
        CloudError::NoCapacity { .. } => 0,
        CloudError::Throttled => 1,
        CloudError::Quota { .. } => 2,
        CloudError::Refused(_) => 3,
        CloudError::TokenReused => 4,
        CloudError::Away(_) => 5,
    };
    match (known, other) {
        (Some(CloudError::NoCapacity { mut pools }), CloudError::NoCapacity { pools: more }) => {
            pools.extend(more);
            pools.sort_unstable();
            pools.dedup();
            CloudError::NoCapacity { pools }
        }
        (Some(known), other) if rank(&known) >= rank(&other) => known,
        (_, other) => other,
    }
}

/// The pools as EC2 takes them.
fn overrides(
    place: &Place,
    order: &Order,
) -> Result<Vec<FleetLaunchTemplateOverridesRequest>, CloudError> {
    let pools = order.pools.iter().take(MAX_POOLS);
    let overrides = pools.enumerate().map(|(rank, pool)| {
        let subnet = place.subnets.get(&pool.zone);
        let subnet = subnet.ok_or_else(|| {
            CloudError::Refused(format!("region {} has no subnet in {}", pool.region, pool.zone))
        })?;
        let request = FleetLaunchTemplateOverridesRequest::builder()
            .instance_type(TypeName::from(pool.instance_type.as_str()))
            .subnet_id(subnet);
        Ok(match order.market {
            Market::Spot => request.max_price(money::write(order.price_limit)),
            Market::OnDemand => {
                request.priority(f64::from(u32::try_from(rank).unwrap_or(u32::MAX)))
            }
        }
        .build())
    });
    overrides.collect()
}

struct Request<'a> {
    region: &'a Region,
    place: &'a Place,
    user_data: &'a UserData,
    order: &'a Order,
    overrides: Vec<FleetLaunchTemplateOverridesRequest>,
}

impl Request<'_> {
    /// Buys a machine.
    async fn buy(&self, machine: &NewMachine) -> Result<Bought, CloudError> {
        let mut sent = self.send(machine).await?;
        if matches!(&sent, Err(failure) if failure.meaning == Meaning::NoTemplate) {
            // Somebody deleted the template that this program made.
            template::forget(self.region).await;
            sent = self.send(machine).await?;
        }
        match sent {
            Ok(answer) => self.read(machine, &answer),
            Err(failure) => Err(self.failure(failure)),
        }
    }

    async fn send(
        &self,
        machine: &NewMachine,
    ) -> Result<Result<CreateFleetOutput, Failure>, CloudError> {
        let user_data = self.user_data.of(machine);
        let user_data = user_data.map_err(|error| CloudError::Refused(error.to_string()))?;
        let specification = template::specification(self.region, user_data).await?;
        let config = FleetLaunchTemplateConfigRequest::builder()
            .launch_template_specification(specification)
            .set_overrides(Some(self.overrides.clone()))
            .build();
        let settings = &self.region.shared;
        let born = [ResourceType::Instance, ResourceType::Volume, ResourceType::NetworkInterface];
        let born = born.map(|kind| tags::of_machine(settings, kind, &machine.name));
        let tagged =
            [tags::of_fleet(settings, ResourceType::Fleet)].into_iter().chain(born).collect();
        let request = self.region.client.create_fleet().r#type(FleetType::Instant);
        let request = request
            .client_token(client_token(&settings.fleet, &machine.name, self.order))
            .launch_template_configs(config)
            .set_tag_specifications(Some(tagged));
        let capacity = TargetCapacitySpecificationRequest::builder().total_target_capacity(1);
        let request = match self.order.market {
            Market::Spot => request
                .target_capacity_specification(
                    capacity.default_target_capacity_type(DefaultTargetCapacityType::Spot).build(),
                )
                .spot_options(
                    SpotOptionsRequest::builder()
                        .allocation_strategy(SpotAllocationStrategy::PriceCapacityOptimized)
                        .instance_interruption_behavior(SpotInstanceInterruptionBehavior::Terminate)
                        .build(),
                ),
            Market::OnDemand => request
                .target_capacity_specification(
                    capacity
                        .default_target_capacity_type(DefaultTargetCapacityType::OnDemand)
                        .build(),
                )
                .on_demand_options(
                    OnDemandOptionsRequest::builder()
                        .allocation_strategy(FleetOnDemandAllocationStrategy::Prioritized)
                        .max_total_price(money::write(self.order.price_limit))
                        .build(),
                ),
        };
        Ok(request.send().await.map_err(|error| Failure::of("CreateFleet", &error)))
    }

    /// The machine of an answer, or why there is none.
    fn read(&self, machine: &NewMachine, answer: &CreateFleetOutput) -> Result<Bought, CloudError> {
        let instances = answer.instances().iter();
        let mut ids =
            instances.flat_map(|found| found.instance_ids().iter().map(move |id| (found, id)));
        let Some((found, instance)) = ids.next() else {
            return Err(self.errors(answer.errors()));
        };
        for (_, id) in ids {
            tracing::error!(instance = %id, machine = %machine.name, tag = MACHINE_TAG, "EC2 launched a second machine of this name");
        }
        let pool = self.pool_of(found);
        Ok(Bought { name: machine.name.clone(), instance: instance.clone(), pool })
    }

    /// Where a machine is.
    fn pool_of(&self, found: &CreateFleetInstance) -> Pool {
        let overrides = found
            .launch_template_and_overrides()
            .and_then(LaunchTemplateAndOverridesResponse::overrides);
        let name = found.instance_type().or_else(|| overrides?.instance_type());
        let name = name.map(TypeName::as_str);
        let zone = found.availability_zone().or_else(|| self.zone(overrides?));
        let pools = &self.order.pools;
        if let (Some(name), Some(zone)) = (name, zone) {
            return self.region.pool(zone, name);
        }
        // EC2 says it always; the machine is there whatever it says.
        tracing::warn!("EC2 doesn't say in which zone it launched a machine");
        let alike = pools.iter().find(|pool| name == Some(pool.instance_type.as_str()));
        let pool = alike.or(pools.first()).cloned();
        pool.unwrap_or_else(|| self.region.pool(zone.unwrap_or_default(), name.unwrap_or_default()))
    }

    fn zone<'b>(&'b self, overrides: &'b FleetLaunchTemplateOverrides) -> Option<&'b str> {
        let of_subnet = |id: &str| {
            let found = self.place.subnets.iter().find(|(_, subnet)| *subnet == id);
            found.map(|(zone, _)| zone.as_str())
        };
        overrides.availability_zone().or_else(|| of_subnet(overrides.subnet_id()?))
    }

    /// Why no machine was launched. EC2 says it for each pool that it tried.
    fn errors(&self, errors: &[CreateFleetError]) -> CloudError {
        let mut pools = vec![];
        let mut worst: Option<(Meaning, String)> = None;
        for error in errors {
            let code = error.error_code().unwrap_or_default();
            let meaning = errors::meaning(code);
            tracing::debug!(code, text = error.error_message(), "EC2 launched no machine");
            let overrides = error.launch_template_and_overrides().and_then(|told| told.overrides());
            let pool = overrides.and_then(|told| {
                Some(self.region.pool(self.zone(told)?, told.instance_type()?.as_str()))
            });
            pools.extend(pool);
            if meaning == Meaning::Capacity
                || worst.as_ref().is_some_and(|(m, _)| *m == Meaning::Quota)
            {
                continue;
            }
            let text = error.error_message().unwrap_or("no text");
            worst = Some((meaning, format!("CreateFleet: {code}: {text}")));
        }
        let short = errors.iter().any(|error| {
            errors::meaning(error.error_code().unwrap_or_default()) == Meaning::Capacity
        });
        match worst {
            Some((meaning, message)) if !short || meaning != Meaning::Refused => {
                self.failure(Failure { meaning, message })
            }
            // Other pools may still be as they should; these have nothing.
            _ => {
                pools.sort_unstable();
                pools.dedup();
                let all = || self.order.pools.iter().take(MAX_POOLS).cloned().collect();
                CloudError::NoCapacity { pools: if pools.is_empty() { all() } else { pools } }
            }
        }
    }

    fn failure(&self, failure: Failure) -> CloudError {
        match failure.meaning {
            Meaning::Capacity => CloudError::NoCapacity {
                pools: self.order.pools.iter().take(MAX_POOLS).cloned().collect(),
            },
            Meaning::Quota => CloudError::Quota {
                region: self.region.name.clone(),
                market: self.order.market,
                message: failure.message,
            },
            _ => failure.cloud(),
        }
    }
}
