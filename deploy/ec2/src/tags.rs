//! Tags: whatever is made carries the fleet's name from its birth on.

use crate::settings::{Ec2Settings, FLEET_TAG, MACHINE_TAG};
use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification};
use sojourn_protocol::machines::MachineName;

/// Those of what the fleet's machines share.
pub(crate) fn of_fleet(settings: &Ec2Settings, kind: ResourceType) -> TagSpecification {
    TagSpecification::builder().resource_type(kind).set_tags(Some(tags(settings))).build()
}

/// Those of a machine, and of what comes and goes with it.
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

fn tags(settings: &Ec2Settings) -> Vec<Tag> {
    let own = settings.tags.iter().map(|(key, value)| tag(key, value));
    own.chain([tag(FLEET_TAG, &settings.fleet)]).collect()
}

fn tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}
