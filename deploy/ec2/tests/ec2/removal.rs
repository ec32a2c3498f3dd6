//! Removing: what buys goes first, and what is in use goes with a later pass.

use crate::{
    moto::Moto,
    site::{SERVER, fleet, site, up},
    support::{ec2, items, order, pool, small},
    wire::{Answer, Wire},
};
use sojourn_ec2::LeavingKind;
use sojourn_fleet::cloud::Cloud as _;
use sojourn_protocol::machines::Market;

#[tokio::test]
async fn the_server_ends_before_what_its_autoscaler_would_make_again() {
    let moto = Moto::start().await;
    let settings = fleet("night", &moto.url, SERVER, "");
    let wire = Wire::open();
    let night = site(&wire, settings.clone());
    let (server, _) = up(&night).await.unwrap();
    let fleet = ec2(&Wire::open(), settings);
    let here = vec![pool("eu-west-1a", "t3.small")];
    let filled = fleet.buy(&order(1, Market::Spot, here)).await.unwrap();
    assert_eq!(filled.failure, None);

    let found = night.remove_all().await.unwrap();
    let of = |kind| found.iter().filter(move |one| one.kind == kind).count();
    assert_eq!((of(LeavingKind::Machine), of(LeavingKind::LaunchTemplate)), (1, 1), "{found:?}");
    let ended = wire.of("TerminateInstances");
    let ended: Vec<&str> = ended.iter().map(|form| form["InstanceId.1"].as_str()).collect();
    assert_eq!(ended, [&*server.instance, &*filled.bought[0].instance]);
    assert!(wire.of("DeleteLaunchTemplate").is_empty(), "the autoscaler may run still");
    let second = night.remove_all().await.unwrap();
    assert!(second.iter().any(|one| one.kind == LeavingKind::LaunchTemplate), "{second:?}");
    assert_eq!(wire.of("DeleteLaunchTemplate").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_volume_in_use_does_not_keep_others_from_going() {
    for code in ["VolumeInUse", "IncorrectState"] {
        let volume = |id: &str| format!("<volumeId>{id}</volumeId><status>available</status>");
        let wire = Wire::scripted(move |form| match form["Action"].as_str() {
            "DescribeInstances" => Answer::Done(items("reservationSet", &[])),
            "DescribeVolumes" => {
                Answer::Done(items("volumeSet", &[&volume("vol-1"), &volume("vol-2")]))
            }
            "DescribeLaunchTemplates" => Answer::Done(items("launchTemplates", &[])),
            "DeleteVolume" if form["VolumeId"] == "vol-1" => Answer::Error(400, code),
            "DeleteVolume" => Answer::Done(String::new()),
            other => panic!("{other} isn't in the script"),
        });
        let found = ec2(&wire, small()).remove_all().await.unwrap();
        assert_eq!((found.len(), wire.of("DeleteVolume").len()), (2, 2), "{code}");
    }
}
