//! A region of the fleet: its client, and what doesn't change while the program runs: subnets, image, root device.

use crate::{
    errors::Failure,
    settings::{Ec2Settings, GivenTemplate, RegionSettings},
    sold::Dated,
};
use aws_sdk_ec2::{
    Client,
    types::{ArchitectureValues, Filter, ShutdownBehavior, Subnet},
};
use sojourn_fleet::cloud::{CloudError, Pool};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::{Mutex, OnceCell};

/// A region.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) settings: RegionSettings,
    /// The settings of all regions.
    pub(crate) shared: Arc<Ec2Settings>,
    place: OnceCell<Place>,
    /// The launch template that was made or found, by its name.
    pub(crate) template: Mutex<Option<String>>,
    /// The types, and when they were asked for.
    pub(crate) catalog: Mutex<Option<Dated>>,
}

/// The subnets and the image that EC2 finds for a region's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The subnet of each zone.
    pub(crate) subnets: BTreeMap<String, String>,
    /// The image.
    pub(crate) image: String,
    /// As `x86_64`.
    pub(crate) architecture: String,
    /// As `/dev/sda1`; none where the image has no root volume.
    pub(crate) root_device: Option<String>,
}

impl Region {
    pub(crate) fn new(
        name: &str,
        client: Client,
        settings: RegionSettings,
        shared: Arc<Ec2Settings>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            client,
            settings,
            shared,
            place: OnceCell::new(),
            template: Mutex::new(None),
            catalog: Mutex::new(None),
        }
    }

    /// The subnets and the image that EC2 finds for the settings; asked once.
    pub(crate) async fn place(&self) -> Result<&Place, CloudError> {
        self.place.get_or_try_init(|| self.find_place()).await
    }

    /// A pool of this region.
    pub(crate) fn pool(&self, zone: &str, instance_type: &str) -> Pool {
        Pool {
            region: self.name.clone(),
            zone: zone.to_owned(),
            instance_type: instance_type.to_owned(),
        }
    }

    async fn find_place(&self) -> Result<Place, CloudError> {
        let subnets = self.find_subnets().await?;
        let image = match (&self.settings.image, &self.settings.launch_template) {
            (Some(image), _) => image.clone(),
            (None, Some(template)) => self.image_of(template).await?,
            (None, None) => return Err(refused(&self.name, "has no image".to_owned())),
        };
        let answer = self.client.describe_images().image_ids(&image).send().await;
        let answer = answer.map_err(|error| Failure::of("DescribeImages", &error).cloud())?;
        let found = answer.images().iter().find(|found| found.image_id() == Some(&*image));
        let found = found.ok_or_else(|| refused(&self.name, format!("has no image {image}")))?;
        let architecture = found.architecture().map(ArchitectureValues::as_str);
        Ok(Place {
            subnets,
            architecture: architecture.unwrap_or("x86_64").to_owned(),
            root_device: found.root_device_name().map(str::to_owned),
            image,
        })
    }

    /// The first subnet of each zone, in the order of the settings, else by id.
    async fn find_subnets(&self) -> Result<BTreeMap<String, String>, CloudError> {
        let mut request = self.client.describe_subnets();
        if self.settings.subnets.is_empty() {
            request = request.filters(filter("default-for-az", ["true"]));
        } else {
            request = request.filters(filter("subnet-id", &self.settings.subnets));
        }
        let mut pages = request.into_paginator().items().send();
        let mut found: Vec<Subnet> = vec![];
        while let Some(subnet) = pages.next().await {
            found.push(subnet.map_err(|error| Failure::of("DescribeSubnets", &error).cloud())?);
        }
        let given = |id: &str| self.settings.subnets.iter().position(|given| given == id);
        let known = |subnet: Subnet| Some((subnet.availability_zone?, subnet.subnet_id?));
        let mut found: Vec<_> = found.into_iter().filter_map(known).collect();
        found.sort_by_key(|(_, id)| (given(id), id.clone()));
        let ids: BTreeSet<&str> = found.iter().map(|(_, id)| id.as_str()).collect();
        let missing = self.settings.subnets.iter().find(|id| !ids.contains(id.as_str()));
        if let Some(missing) = missing {
            return Err(refused(&self.name, format!("has no subnet {missing}")));
        }
        let mut subnets = BTreeMap::new();
        for (zone, id) in found {
            if self.settings.zones.is_empty() || self.settings.zones.contains(&zone) {
                subnets.entry(zone).or_insert(id);
            }
        }
        if let Some(zone) = self.settings.zones.iter().find(|zone| !subnets.contains_key(*zone)) {
            return Err(refused(&self.name, format!("has no subnet in zone {zone}")));
        }
        if subnets.is_empty() {
            let text = "has no default VPC: `subnets` must say where machines are bought";
            return Err(refused(&self.name, text.to_owned()));
        }
        Ok(subnets)
    }

    /// The image of the owner's launch template, which is checked.
    async fn image_of(&self, template: &GivenTemplate) -> Result<String, CloudError> {
        let request = self.client.describe_launch_template_versions();
        let request = request.launch_template_id(&template.id).versions(&template.version);
        let answer = request
            .send()
            .await
            .map_err(|error| Failure::of("DescribeLaunchTemplateVersions", &error).cloud())?;
        let (id, version) = (&template.id, &template.version);
        let data = answer.launch_template_versions().first();
        let data = data.and_then(|version| version.launch_template_data()).ok_or_else(|| {
            refused(&self.name, format!("has no version {version} of launch template {id}"))
        })?;
        // A machine that stops instead goes on costing, and isn't there.
        if data.instance_initiated_shutdown_behavior() != Some(&ShutdownBehavior::Terminate) {
            let text = format!(
                "has launch template {id}, whose instance-initiated shutdown behavior isn't `terminate`"
            );
            return Err(refused(&self.name, text));
        }
        // Nobody but its owner could end such a machine.
        if data.disable_api_termination() == Some(true) {
            let text = format!(
                "has launch template {id}, which protects machines from being ended (`DisableApiTermination`)"
            );
            return Err(refused(&self.name, text));
        }
        // CreateFleet says whether machines are spot.
        if data.instance_market_options().is_some() {
            let text = format!("has launch template {id}, which has market options");
            return Err(refused(&self.name, text));
        }
        let image = data.image_id().filter(|image| image.starts_with("ami-"));
        image.map(str::to_owned).ok_or_else(|| {
            refused(&self.name, format!("has launch template {id} without an image's id"))
        })
    }
}

/// A filter by values.
pub(crate) fn filter<V: Into<String>>(name: &str, values: impl IntoIterator<Item = V>) -> Filter {
    let values = values.into_iter().map(Into::into).collect();
    Filter::builder().name(name).set_values(Some(values)).build()
}

fn refused(region: &str, what: String) -> CloudError {
    CloudError::Refused(format!("region {region} {what}"))
}
