//! Tags: whatever is made carries the fleet's name from its birth on.

use crate::settings::{Ec2Settings, FLEET_TAG, MACHINE_TAG, ROLE_TAG, SERVER_ROLE};
use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use sojourn_protocol::machines::MachineName;
use std::collections::BTreeMap;

/// The tags of everything that the fleet's machines share.
pub(crate) fn of_fleet(settings: &Ec2Settings, kind: ResourceType) -> TagSpecification {
    TagSpecification::builder().resource_type(kind).set_tags(Some(tags(settings))).build()
}

/// The tags of a machine, and of what comes and goes with it.
pub(crate) fn of_machine(
    settings: &Ec2Settings,
    kind: ResourceType,
    name: &MachineName,
) -> TagSpecification {
    let mut tags = tags(settings);
    tags.push(tag(MACHINE_TAG, name.as_str()));
    TagSpecification::builder().resource_type(kind).set_tags(Some(tags)).build()
}

/// The value of a tag.
pub(crate) fn value<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    tags.iter().find(|tag| tag.key() == Some(key)).and_then(Tag::value)
}

/// Is it the server's machine, or of it? Whoever buys and ends machines leaves it alone.
pub(crate) fn is_servers(tags: &[Tag]) -> bool {
    value(tags, ROLE_TAG) == Some(SERVER_ROLE)
}

/// The tags of a part of the fleet's site: its network, its server and what these need.
pub(crate) fn of_site(settings: &Ec2Settings, kind: ResourceType) -> TagSpecification {
    let tags = site(settings).into_iter().map(|(key, value)| tag(&key, &value)).collect();
    TagSpecification::builder().resource_type(kind).set_tags(Some(tags)).build()
}

/// The tags of the server's machine, and of what comes and goes with it.
pub(crate) fn of_server(settings: &Ec2Settings, kind: ResourceType) -> TagSpecification {
    let tags = site(settings).into_iter().map(|(key, value)| tag(&key, &value));
    let tags = tags.chain([tag(ROLE_TAG, SERVER_ROLE)]).collect();
    TagSpecification::builder().resource_type(kind).set_tags(Some(tags)).build()
}

/// The tags of a part of the site as keys and values: IAM has another type for them.
pub(crate) fn site(settings: &Ec2Settings) -> BTreeMap<String, String> {
    let mut tags = settings.tags.clone();
    tags.entry("Name".to_owned()).or_insert_with(|| format!("sojourn-{}", settings.fleet));
    tags.insert(FLEET_TAG.to_owned(), settings.fleet.clone());
    tags
}

fn tags(settings: &Ec2Settings) -> Vec<Tag> {
    let own = settings.tags.iter().map(|(key, value)| tag(key, value));
    own.chain([tag(FLEET_TAG, &settings.fleet)]).collect()
}

fn tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}
