//! The launch template of a region: the owner's, or one that is made.
//!
//! A made template's name has a digest of its content, so that other settings make another one and a crash in between
//! leaves nothing half done. It has no user data: that has a token, and goes with each order.

use crate::{
    errors::{Failure, Meaning},
    region::{Place, Region, filter},
    settings::FLEET_TAG,
    tags,
};
use aws_sdk_ec2::types::{
    FleetLaunchTemplateSpecificationRequest, LaunchTemplateBlockDeviceMappingRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateHttpTokensState,
    LaunchTemplateIamInstanceProfileSpecificationRequest,
    LaunchTemplateInstanceMetadataOptionsRequest, RequestLaunchTemplateData, ResourceType,
    ShutdownBehavior, VolumeType,
};
use sojourn_fleet::cloud::CloudError;
use sojourn_protocol::digest::Hasher;

/// Characters of the digest in a template's name.
const DIGEST_CHARS: usize = 16;
/// The recipe of made templates: another one makes them anew.
const RECIPE: &str = "2";

/// The template with which machines are bought, and their user data.
pub(crate) async fn specification(
    region: &Region,
    user_data: String,
) -> Result<FleetLaunchTemplateSpecificationRequest, CloudError> {
    let request = FleetLaunchTemplateSpecificationRequest::builder()
        .launch_template_specification_user_data(user_data);
    if let Some(given) = &region.settings.launch_template {
        return Ok(request.launch_template_id(&given.id).version(&given.version).build());
    }
    let name = made(region).await?;
    Ok(request.launch_template_name(name).version("$Default").build())
}

/// Forgets the launch template's name: the next order looks for the template anew.
pub(crate) async fn forget(region: &Region) {
    *region.template.lock().await = None;
}

/// The names of all templates that were made for the fleet. One of the owner's may have its tag too.
pub(crate) async fn all(region: &Region) -> Result<Vec<String>, CloudError> {
    let request = region.client.describe_launch_templates();
    let request = request.filters(filter(&format!("tag:{FLEET_TAG}"), [&region.shared.fleet]));
    let mut pages = request.into_paginator().items().send();
    let mut names = vec![];
    while let Some(template) = pages.next().await {
        let template =
            template.map_err(|error| Failure::of("DescribeLaunchTemplates", &error).cloud())?;
        let name =
            template.launch_template_name().filter(|name| is_made(&region.shared.fleet, name));
        names.extend(name.map(str::to_owned));
    }
    Ok(names)
}

/// Deletes a template. One that is gone is no error.
pub(crate) async fn delete(region: &Region, name: &str) -> Result<(), CloudError> {
    let sent = region.client.delete_launch_template().launch_template_name(name).send().await;
    match sent.map_err(|error| Failure::of("DeleteLaunchTemplate", &error)) {
        Err(failure) if failure.meaning != Meaning::NoTemplate => Err(failure.cloud()),
        _ => Ok(()),
    }
}

/// The name of the made template, which is there. Those of other settings are deleted.
async fn made(region: &Region) -> Result<String, CloudError> {
    let mut known = region.template.lock().await;
    if let Some(name) = &*known {
        return Ok(name.clone());
    }
    let place = region.place().await?;
    let name = format!("{}{}", prefix(&region.shared.fleet), digest(region, place));
    let others = all(region).await?;
    if !others.contains(&name) {
        make(region, place, &name).await?;
    }
    for other in others.iter().filter(|other| **other != name) {
        // It costs nothing, and the next program that starts deletes it.
        if let Err(error) = delete(region, other).await {
            tracing::warn!(template = %other, %error, "an old launch template stays");
        }
    }
    *known = Some(name.clone());
    Ok(name)
}

fn prefix(fleet: &str) -> String {
    format!("sojourn-{fleet}-")
}

fn is_made(fleet: &str, name: &str) -> bool {
    let digest = name.strip_prefix(&prefix(fleet)).unwrap_or_default();
    digest.len() == DIGEST_CHARS && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Makes a template of this name, which no two have. It has no token of its own: EC2 makes nothing where it knows a token, also of
/// a template that was deleted since.
async fn make(region: &Region, place: &Place, name: &str) -> Result<(), CloudError> {
    let tags = tags::of_fleet(&region.shared, ResourceType::LaunchTemplate);
    let request = region.client.create_launch_template().launch_template_name(name);
    let request = request
        .launch_template_data(data(region, place))
        .tag_specifications(tags)
        .version_description("made by sojourn-autoscaler");
    match request.send().await.map_err(|error| Failure::of("CreateLaunchTemplate", &error)) {
        Err(failure) if failure.meaning != Meaning::TemplateExists => Err(failure.cloud()),
        _ => Ok(()),
    }
}

fn data(region: &Region, place: &Place) -> RequestLaunchTemplateData {
    let groups = &region.settings.security_groups;
    // Nothing that a container on the machine forwards reaches the machine's role.
    let metadata = LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .http_tokens(LaunchTemplateHttpTokensState::Required)
        .http_put_response_hop_limit(1)
        .build();
    let profile = region.shared.instance_profile.as_ref().map(|name| {
        LaunchTemplateIamInstanceProfileSpecificationRequest::builder().name(name).build()
    });
    let root = place.root_device.as_ref().map(|device| {
        let size = region.shared.root_volume_gib.and_then(|gib| i32::try_from(gib).ok());
        let volume = LaunchTemplateEbsBlockDeviceRequest::builder()
            .set_volume_size(size)
            .volume_type(VolumeType::Gp3)
            .encrypted(true)
            .delete_on_termination(true)
            .build();
        LaunchTemplateBlockDeviceMappingRequest::builder().device_name(device).ebs(volume).build()
    });
    RequestLaunchTemplateData::builder()
        .image_id(&place.image)
        .instance_initiated_shutdown_behavior(ShutdownBehavior::Terminate)
        .metadata_options(metadata)
        .set_security_group_ids((!groups.is_empty()).then(|| groups.clone()))
        .set_key_name(region.settings.key_name.clone())
        .set_iam_instance_profile(profile)
        .set_block_device_mappings(root.map(|root| vec![root]))
        .build()
}

/// Of all that the template says, its tags included.
fn digest(region: &Region, place: &Place) -> String {
    let mut digest = Hasher::default();
    let mut add = |text: &str| {
        digest.update(text.as_bytes());
        digest.update(&[0]);
    };
    add(RECIPE);
    add(&place.image);
    add(place.root_device.as_deref().unwrap_or_default());
    add(&region.shared.root_volume_gib.unwrap_or(0).to_string());
    add(region.shared.instance_profile.as_deref().unwrap_or_default());
    add(region.settings.key_name.as_deref().unwrap_or_default());
    region.settings.security_groups.iter().for_each(|group| add(group));
    for (key, value) in &region.shared.tags {
        add(key);
        add(value);
    }
    digest.finish().to_string().chars().take(DIGEST_CHARS).collect()
}
