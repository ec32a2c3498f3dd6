//! A server's machine that has ended, against `moto`: `up` makes another.

use crate::{
    moto::Moto,
    site::{night, owner, up},
    wire::Wire,
};
use std::collections::BTreeSet;

#[tokio::test]
async fn a_server_that_ended_is_replaced_by_an_order_of_its_own() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    let wire = Wire::open();
    let mut made = BTreeSet::new();
    let mut address = None;
    for _ in 0..3 {
        let (server, _) = up(&night(&moto, &wire)).await.unwrap();
        assert_eq!(*address.get_or_insert(server.address.clone()), server.address);
        owner.ec2.terminate_instances().instance_ids(&server.instance).send().await.unwrap();
        made.insert(server.instance);
    }
    assert_eq!(made.len(), 3);
    // EC2 answers a token that it knows with the machine that has ended.
    let tokens: BTreeSet<String> =
        wire.of("RunInstances").iter().map(|form| form["ClientToken"].clone()).collect();
    assert_eq!(tokens.len(), 3);
}
