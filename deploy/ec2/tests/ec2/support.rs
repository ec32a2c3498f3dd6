//! Settings, orders and answers of the tests.

use crate::wire::{Answer, Form, Wire};
use sojourn_ec2::{Ec2, Ec2Settings, UserData, offline};
use sojourn_fleet::cloud::{NewMachine, Order, Pool};
use sojourn_protocol::{machines::Market, money::MicroUsd};
use std::collections::BTreeMap;

/// A region of `moto` and of the scripts.
pub(crate) const REGION: &str = "eu-west-1";
/// A token that must be seen nowhere but in user data.
pub(crate) const SECRET: &str = "enrol-0123456789-secret";

const USER_DATA: &str = "#cloud-config\n# {{machine}} of {{server}}: {{enrolment_token}}\n";

pub(crate) fn settings(text: &str) -> Ec2Settings {
    let settings: Ec2Settings = toml::from_str(text).unwrap();
    settings.validate().unwrap();
    settings
}

/// One region, one image, two types with list prices.
pub(crate) fn small() -> Ec2Settings {
    settings(
        r#"
        fleet = "tests"
        user_data = "user-data.yaml"
        types = ["c5.*", "m5.xlarge"]
        tags = { team = "vision" }
        [regions.eu-west-1]
        image = "ami-1"
        on_demand = { "c5.xlarge" = "0.192 usd", "m5.xlarge" = "0.214 usd" }
        "#,
    )
}

pub(crate) fn user_data() -> UserData {
    let values = BTreeMap::from([("server".to_owned(), "https://sojourn.test".to_owned())]);
    UserData::new(USER_DATA, &values).unwrap()
}

/// EC2 behind a wire.
pub(crate) fn ec2(wire: &Wire, settings: Ec2Settings) -> Ec2 {
    let config = offline(wire.client(), settings.endpoint.clone().as_deref());
    Ec2::new(&config, settings, user_data()).unwrap()
}

pub(crate) fn pool(zone: &str, instance_type: &str) -> Pool {
    Pool {
        region: REGION.to_owned(),
        zone: zone.to_owned(),
        instance_type: instance_type.to_owned(),
    }
}

/// Two types in two zones.
pub(crate) fn pools() -> Vec<Pool> {
    vec![
        pool("eu-west-1a", "c5.xlarge"),
        pool("eu-west-1b", "c5.xlarge"),
        pool("eu-west-1a", "m5.xlarge"),
    ]
}

/// An order of machines `m-0`, `m-1` and so on.
pub(crate) fn order(count: usize, market: Market, pools: Vec<Pool>) -> Order {
    let machine = |at| NewMachine {
        name: format!("m-{at}").parse().unwrap(),
        enrolment_token: SECRET.to_owned(),
    };
    Order {
        machines: (0..count).map(machine).collect(),
        market,
        pools,
        price_limit: MicroUsd(123_000),
    }
}

/// The answers that come before any order: subnets, image, template.
pub(crate) fn region_answer(form: &Form) -> Answer {
    Answer::Done(match form["Action"].as_str() {
        "DescribeSubnets" => items(
            "subnetSet",
            &[
                "<subnetId>subnet-a</subnetId><availabilityZone>eu-west-1a</availabilityZone>",
                "<subnetId>subnet-b</subnetId><availabilityZone>eu-west-1b</availabilityZone>",
            ],
        ),
        "DescribeImages" => items(
            "imagesSet",
            &[
                "<imageId>ami-1</imageId><architecture>x86_64</architecture><rootDeviceName>/dev/sda1</rootDeviceName>",
            ],
        ),
        "DescribeLaunchTemplates" => items("launchTemplates", &[]),
        "CreateLaunchTemplate" | "DeleteLaunchTemplate" => String::new(),
        other => panic!("{other} isn't in the script"),
    })
}

/// A list of the API.
pub(crate) fn items(name: &str, items: &[&str]) -> String {
    let items: String = items.iter().map(|item| format!("<item>{item}</item>")).collect();
    format!("<{name}>{items}</{name}>")
}

/// An answer to `CreateFleet` with a machine.
pub(crate) fn launched(instance: &str, subnet: &str, instance_type: &str) -> String {
    let overrides = format!(
        "<launchTemplateAndOverrides><overrides><subnetId>{subnet}</subnetId><instanceType>{instance_type}</instanceType></overrides></launchTemplateAndOverrides>"
    );
    let ids = items("instanceIds", &[]).replace("></", &format!("><item>{instance}</item></"));
    items(
        "fleetInstanceSet",
        &[&format!("{overrides}{ids}<instanceType>{instance_type}</instanceType>")],
    )
}

/// An error of a pool in an answer to `CreateFleet`.
pub(crate) fn pool_error(code: &str, subnet: &str, instance_type: &str) -> String {
    format!(
        "<launchTemplateAndOverrides><overrides><subnetId>{subnet}</subnetId><instanceType>{instance_type}</instanceType></overrides></launchTemplateAndOverrides><errorCode>{code}</errorCode><errorMessage>so it is</errorMessage>"
    )
}

/// The machine that a `CreateFleet` is for.
pub(crate) fn machine_of(form: &Form) -> String {
    tag_of(form, "sojourn:machine").expect("every order has a machine's name")
}

/// The value of a tag somewhere in a request.
pub(crate) fn tag_of(form: &Form, key: &str) -> Option<String> {
    let at = form.iter().find(|(_, value)| *value == key)?.0.strip_suffix("Key")?;
    form.get(&format!("{at}Value")).cloned()
}
