//! A fleet's whole life against `moto`: what is sold, launch template, orders, tags, pages, ends, and nothing left.

use crate::{
    moto::Moto,
    policy,
    support::{REGION, SECRET, ec2, order, pool, settings, user_data},
    wire::Wire,
};
use aws_sdk_ec2::{
    Client,
    config::{Builder, Region},
    types::{RequestLaunchTemplateData, ResourceType, ShutdownBehavior, Tag, TagSpecification},
};
use sojourn_ec2::{Ec2, Ec2Settings, Goes, LeavingKind, offline};
use sojourn_fleet::cloud::{Cloud as _, MachineState, Pool};
use sojourn_protocol::{
    machines::{MachineEnd, Market},
    money::MicroUsd,
    time::UnixMillis,
};
use std::collections::BTreeSet;

/// An image that `moto` has in all regions.
const IMAGE: &str = "ami-03cf127a";

fn of_moto(fleet: &str, endpoint: &str, region: &str) -> Ec2Settings {
    settings(&format!(
        r#"
        fleet = "{fleet}"
        user_data = "x"
        types = ["c7i.*", "g5.xlarge", "t3.large"]
        except = ["*.48xlarge"]
        tags = {{ team = "vision" }}
        endpoint = "{endpoint}"
        [regions.eu-west-1]
        {region}
        on_demand = {{ "c7i.xlarge" = "0.2 usd", "c7i.2xlarge" = "0.4 usd", "g5.xlarge" = "1.1 usd", "t3.large" = "0.1 usd" }}
        [regions.us-east-1]
        image = "{IMAGE}"
        zones = ["us-east-1a"]
        on_demand = {{ "c7i.xlarge" = "0.18 usd" }}
        "#
    ))
}

fn image() -> String {
    format!("image = \"{IMAGE}\"")
}

/// A client beside the fleet's, whose calls don't count.
fn owner(moto: &Moto) -> Client {
    let config = offline(Wire::open().client(), Some(&moto.url));
    Client::from_conf(Builder::from(&config).region(Region::new(REGION)).build())
}

fn tagged(kind: ResourceType, fleet: &str) -> TagSpecification {
    let tag = Tag::builder().key("sojourn:fleet").value(fleet).build();
    TagSpecification::builder().resource_type(kind).tags(tag).build()
}

/// The ids of what hasn't ended.
async fn alive(ec2: &Ec2) -> Vec<String> {
    let machines = ec2.machines().await.unwrap().into_iter();
    machines.filter(|m| m.state != MachineState::Ended).map(|m| m.instance).collect()
}

#[tokio::test]
async fn a_fleet_comes_and_goes_and_calls_what_its_policy_allows() {
    let moto = Moto::start().await;
    let wire = Wire::open();
    let fleet = ec2(&wire, of_moto("one", &moto.url, &image()));

    // What is sold.
    let checks = fleet.check().await.unwrap();
    let zones: Vec<&String> = checks[0].subnets.keys().collect();
    assert_eq!(zones, ["eu-west-1a", "eu-west-1b", "eu-west-1c"], "all of the default VPC");
    assert_eq!(checks[1].subnets.len(), 1);
    assert!(checks[0].unlisted.contains(&"c7i.4xlarge".to_owned()), "{checks:?}");
    assert!(!checks[0].unlisted.contains(&"c7i.48xlarge".to_owned()), "{checks:?}");
    let offers = fleet.offers().await.unwrap();
    let names: Vec<&str> = offers.types.keys().map(String::as_str).collect();
    assert_eq!(names, ["c7i.2xlarge", "c7i.xlarge", "g5.xlarge", "t3.large"]);
    let gpu = &offers.types["g5.xlarge"];
    assert_eq!((gpu.vcpus, gpu.memory, gpu.gpus), (4, 16 << 30, 1));
    assert!(gpu.gpu_memory > 20 << 30, "{gpu:?}");
    let place = pool("eu-west-1b", "c7i.xlarge");
    assert_eq!(offers.quotes[&place].spot, Some(MicroUsd(10)));
    assert_eq!(offers.quotes[&place].on_demand, MicroUsd(200_000));
    let american = offers.quotes.keys().filter(|pool| pool.region == "us-east-1");
    let american: Vec<&str> = american.map(|pool| pool.zone.as_str()).collect();
    assert_eq!(american, ["us-east-1a"], "one zone, one type with a list price");
    let then = UnixMillis(1_784_505_600_000);
    assert_eq!(fleet.spot_price_at(&place, then).await.unwrap(), Some(MicroUsd(10)));

    // Orders.
    let here = vec![place.clone(), pool("eu-west-1c", "g5.xlarge")];
    let filled = fleet.buy(&order(3, Market::Spot, here.clone())).await.unwrap();
    assert_eq!((filled.bought.len(), filled.failure), (3, None));
    let mut second = order(4, Market::OnDemand, vec![place.clone()]);
    second.machines.remove(0);
    let second = fleet.buy(&second).await.unwrap();
    assert_eq!((second.bought.len(), second.failure), (3, None));
    let there = Pool { region: "us-east-1".into(), zone: "us-east-1a".into(), ..place.clone() };
    let american = fleet.buy(&order(1, Market::Spot, vec![there.clone()])).await.unwrap();
    assert_eq!(american.bought[0].pool, there);

    // As EC2 knows them, beside another fleet's.
    let other = ec2(&Wire::open(), of_moto("two", &moto.url, &image()));
    other.buy(&order(1, Market::Spot, here)).await.unwrap();
    let machines = fleet.machines().await.unwrap();
    assert_eq!(machines.len(), 7);
    let spot = machines.iter().filter(|m| m.market == Market::Spot).count();
    assert_eq!(spot, 4);
    for machine in &machines {
        assert_eq!(machine.state, MachineState::Running);
        assert_eq!((machine.end, machine.ended_at), (None, None));
        assert!(machine.name.is_some(), "{machine:?}");
    }
    let bought: BTreeSet<_> =
        filled.bought.iter().map(|b| (&b.name, &b.instance, &b.pool)).collect();
    let known = machines.iter().filter(|m| m.market == Market::Spot && m.pool.region == REGION);
    let known: BTreeSet<_> =
        known.map(|m| (m.name.as_ref().unwrap(), &m.instance, &m.pool)).collect();
    assert_eq!(bought, known);

    // What a machine has from its birth on.
    let owner = owner(&moto);
    let id = &filled.bought[0].instance;
    let answer = owner.describe_instances().instance_ids(id).send().await.unwrap();
    let instance = &answer.reservations()[0].instances()[0];
    assert_eq!(instance.image_id(), Some(IMAGE));
    let tags: BTreeSet<_> =
        instance.tags().iter().filter_map(|t| Some((t.key()?, t.value()?))).collect();
    for tag in [("sojourn:fleet", "one"), ("sojourn:machine", "m-0"), ("team", "vision")] {
        assert!(tags.contains(&tag), "{tag:?} in {tags:?}");
    }
    let templates = owner.describe_launch_templates().send().await.unwrap();
    assert_eq!(templates.launch_templates().len(), 2, "one for each fleet");

    // Ends, one of a machine that isn't known.
    let ended = [filled.bought[0].instance.clone(), "i-0123456789abcdef0".into()];
    fleet.end(REGION, &ended).await.unwrap();
    let machines = fleet.machines().await.unwrap();
    let gone = machines.iter().find(|m| m.instance == ended[0]).unwrap();
    assert_eq!((gone.state, gone.end), (MachineState::Ended, Some(MachineEnd::Released)));
    assert!(gone.ended_at.unwrap() >= UnixMillis(gone.launched_at.0 / 1000 * 1000), "{gone:?}");
    fleet.end(REGION, &ended).await.unwrap();

    // Other settings make another template, and delete the one before.
    let mut larger = of_moto("one", &moto.url, &image());
    larger.root_volume_gib = Some(77);
    let larger = ec2(&wire, larger);
    larger.buy(&order(1, Market::Spot, vec![place.clone()])).await.unwrap();
    let templates = owner.describe_launch_templates().send().await.unwrap();
    assert_eq!(templates.launch_templates().len(), 2);

    // The owner's own template.
    let data = RequestLaunchTemplateData::builder()
        .image_id(IMAGE)
        .instance_initiated_shutdown_behavior(ShutdownBehavior::Terminate)
        .build();
    let own = owner.create_launch_template().launch_template_name("own").launch_template_data(data);
    let own = own.tag_specifications(tagged(ResourceType::LaunchTemplate, "one"));
    let own = own.send().await.unwrap();
    let own = own.launch_template().unwrap().launch_template_id().unwrap();
    let region = format!("launch_template = {{ id = \"{own}\", version = \"1\" }}");
    let given = ec2(&wire, of_moto("one", &moto.url, &region));
    let filled = given.buy(&order(1, Market::OnDemand, vec![place])).await.unwrap();
    assert_eq!((filled.bought.len(), filled.failure), (1, None));

    // Nothing is left but the owner's, and the other fleet.
    let volume = owner.create_volume().availability_zone("eu-west-1a").size(1);
    let volume = volume.tag_specifications(tagged(ResourceType::Volume, "one"));
    let volume = volume.send().await.unwrap().volume_id().unwrap().to_owned();
    let removed = given.remove_all().await.unwrap();
    let count = |kind| {
        removed.iter().filter(|found| found.kind == kind && found.goes == Goes::Stays).count()
    };
    assert_eq!(count(LeavingKind::Machine), 8);
    assert_eq!(count(LeavingKind::LaunchTemplate), 2, "one in each region");
    assert!(removed.iter().any(|found| found.id == volume), "{removed:?}");
    assert_eq!(given.leavings().await.unwrap(), []);
    assert_eq!(alive(&given).await, Vec::<String>::new());
    assert_eq!(alive(&other).await.len(), 1);
    let templates = owner.describe_launch_templates().send().await.unwrap();
    let names: Vec<_> =
        templates.launch_templates().iter().filter_map(|t| t.launch_template_name()).collect();
    assert!(names.len() == 2 && names.contains(&"own"), "{names:?}");
    assert_eq!(given.remove_all().await.unwrap(), [], "again is no error");

    policy::assert_allows(&wire.actions());
}

#[tokio::test]
async fn machines_come_in_pages() {
    let moto = Moto::start().await;
    let wire = Wire::open();
    let fleet = ec2(&wire, of_moto("many", &moto.url, &image()));
    let here = vec![pool("eu-west-1a", "c7i.xlarge")];
    let bought = fleet.buy(&order(203, Market::Spot, here)).await.unwrap().bought;
    assert_eq!(bought.len(), 203);
    let known: BTreeSet<_> =
        fleet.machines().await.unwrap().into_iter().map(|m| m.instance).collect();
    assert_eq!(known, bought.into_iter().map(|b| b.instance).collect());
    assert_eq!(wire.of("DescribeInstances").len(), 3, "two pages, and a region with none");
}

#[tokio::test]
async fn what_moto_refuses_is_an_error() {
    let moto = Moto::start().await;
    let gone = image().replace(IMAGE, "ami-00000000");
    let fleet = ec2(&Wire::open(), of_moto("wrong", &moto.url, &gone));
    let text = fleet.check().await.unwrap_err().to_string();
    assert!(text.contains("InvalidAMIID.NotFound"), "{text}");
    let filled = fleet.buy(&order(1, Market::Spot, vec![pool("eu-west-1a", "c7i.xlarge")])).await;
    let failure = filled.unwrap().failure.unwrap().to_string();
    assert!(failure.contains("InvalidAMIID.NotFound") && !failure.contains(SECRET), "{failure}");

    let subnets = image() + "\nsubnets = [\"subnet-0badc0de\"]";
    let fleet = ec2(&Wire::open(), of_moto("wrong", &moto.url, &subnets));
    let text = fleet.check().await.unwrap_err().to_string();
    assert!(text.contains("subnet-0badc0de"), "{text}");
    assert!(!format!("{fleet:?} {:?}", user_data()).contains("cloud-config"));
}
