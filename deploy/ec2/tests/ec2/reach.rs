//! The networks and groups that reach the server, against `moto`: those of the file, and no others.

use crate::{
    moto::Moto,
    site::{Owner, SERVER, fleet, night, owner, site, up},
    wire::Wire,
};
use aws_sdk_ec2::types::{IpPermission, IpRange, Ipv6Range, SecurityGroup, UserIdGroupPair};
use sojourn_ec2::{Part, State};
use std::collections::BTreeSet;

impl Owner {
    /// The group of the server.
    async fn server_group(&self) -> SecurityGroup {
        let groups = self.ec2.describe_security_groups().send().await.unwrap();
        let mut groups = groups.security_groups().iter();
        groups.find(|group| group.group_name() == Some("sojourn-night-server")).unwrap().clone()
    }

    /// The networks that its rules name.
    async fn networks(&self) -> BTreeSet<String> {
        let group = self.server_group().await;
        let ranges = group.ip_permissions().iter().flat_map(|rule| rule.ip_ranges());
        ranges.filter_map(|range| range.cidr_ip().map(str::to_owned)).collect()
    }
}

fn set(networks: [&str; 2]) -> BTreeSet<String> {
    networks.map(str::to_owned).into()
}

#[tokio::test]
async fn who_may_reach_the_server_follows_the_file() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    up(&night(&moto, &Wire::open())).await.unwrap();
    let other = SERVER.replace("198.51.100.7/32", "203.0.113.0/24");
    let wire = Wire::open();
    let (_, states) = up(&site(&wire, fleet("night", &moto.url, &other, ""))).await.unwrap();
    let changed: Vec<_> = states.iter().filter(|one| one.state != State::There).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!((&changed[0].part, changed[0].state), (&Part::ServerGroup, State::Unfinished));
    assert_eq!(wire.changes(), ["AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"]);
    assert_eq!(owner.networks().await, set(["192.0.2.0/24", "203.0.113.0/24"]));
}

#[tokio::test]
async fn a_network_that_is_written_with_the_bits_of_a_host_stays_open() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    // EC2 writes both as `198.51.100.0/24`, and refuses a request that has a rule which is there.
    let file = SERVER.replace("198.51.100.7/32", "198.51.100.7/24\", \"198.51.100.9/24");
    let wire = Wire::open();
    for _ in 0..2 {
        up(&site(&wire, fleet("night", &moto.url, &file, ""))).await.unwrap();
        assert_eq!(owner.networks().await, set(["192.0.2.0/24", "198.51.100.0/24"]));
    }
    let opened = wire.of("AuthorizeSecurityGroupIngress");
    assert_eq!(opened.len(), 3, "each rule by itself: {opened:?}");
    assert_eq!(wire.of("RevokeSecurityGroupIngress").len(), 0);
}

#[tokio::test]
async fn rules_that_the_file_does_not_say_are_revoked() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    up(&night(&moto, &Wire::open())).await.unwrap();
    let group = owner.server_group().await;
    let rule = |protocol: &str, port: Option<i32>| {
        let rule = IpPermission::builder().ip_protocol(protocol);
        rule.set_from_port(port).set_to_port(port)
    };
    let everyone = || IpRange::builder().cidr_ip("0.0.0.0/0").description("for a moment").build();
    let six = Ipv6Range::builder().cidr_ipv6("::/0").build();
    let itself = UserIdGroupPair::builder().set_group_id(group.group_id.clone()).build();
    for added in [
        rule("tcp", Some(22)).ip_ranges(everyone()).build(),
        rule("-1", None).ip_ranges(everyone()).build(),
        rule("tcp", Some(8642)).ipv6_ranges(six).user_id_group_pairs(itself).build(),
    ] {
        let request = owner.ec2.authorize_security_group_ingress();
        let request = request.set_group_id(group.group_id.clone());
        request.ip_permissions(added).send().await.unwrap();
    }
    let wire = Wire::open();
    let night = night(&moto, &wire);
    let looked = night.look().await.unwrap();
    let of_server = looked.iter().find(|one| one.part == Part::ServerGroup).unwrap();
    assert_eq!((of_server.state, wire.changes()), (State::Unfinished, vec![]));
    up(&night).await.unwrap();
    assert_eq!(owner.server_group().await.ip_permissions(), group.ip_permissions());
    let again = Wire::open();
    up(&crate::site::night(&moto, &again)).await.unwrap();
    assert_eq!(again.changes(), Vec::<String>::new());
}
