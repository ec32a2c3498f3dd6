//! Removing: what is in use goes with a later pass.

use crate::{
    support::{ec2, items, small},
    wire::{Answer, Wire},
};

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
