//! Types and prices: pages, what is left out, which of several prices holds.

use crate::{
    support::{ec2, items, pool, region_answer, settings, small},
    wire::{Answer, Wire},
};
use sojourn_fleet::cloud::{Cloud as _, CloudError, Quote};
use sojourn_protocol::{money::MicroUsd, time::UnixMillis};

fn instance_type(name: &str, more: &str) -> String {
    format!(
        "<instanceType>{name}</instanceType><hypervisor>nitro</hypervisor><bareMetal>false</bareMetal>\
         <burstablePerformanceSupported>false</burstablePerformanceSupported>\
         <supportedUsageClasses><item>on-demand</item><item>spot</item></supportedUsageClasses>\
         <vCpuInfo><defaultVCpus>4</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>8192</sizeInMiB></memoryInfo>{more}"
    )
}

fn price(zone: &str, name: &str, product: &str, dollars: &str, at: &str) -> String {
    format!(
        "<availabilityZone>{zone}</availabilityZone><instanceType>{name}</instanceType>\
         <productDescription>{product}</productDescription><spotPrice>{dollars}</spotPrice><timestamp>{at}</timestamp>"
    )
}

/// Some types in two pages; one of them isn't sold in the second zone.
fn market() -> Wire {
    Wire::scripted(|form| {
        let token = form.get("NextToken").map_or("", String::as_str);
        let page = |name, found: &[String], next: &str| {
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            Answer::Done(format!("{}<nextToken>{next}</nextToken>", items(name, &found)))
        };
        let gpus = "<gpuInfo><gpus><item><count>4</count><manufacturer>NVIDIA</manufacturer><memoryInfo><sizeInMiB>16384</sizeInMiB></memoryInfo></item></gpus></gpuInfo>";
        let slow = instance_type("c5.slow", "")
            .replace("<burstablePerformanceSupported>false", "<burstablePerformanceSupported>true");
        let old = instance_type("c5.old", "").replace("nitro", "xen");
        let no_spot = instance_type("m5.xlarge", "").replace("<item>spot</item>", "");
        match (form["Action"].as_str(), token) {
            ("DescribeInstanceTypes", "") => page(
                "instanceTypeSet",
                &[instance_type("c5.xlarge", gpus), slow, instance_type("c5.unlisted", "")],
                "2",
            ),
            ("DescribeInstanceTypes", "2") => {
                page("instanceTypeSet", &[no_spot, old, instance_type("r5.xlarge", "")], "")
            }
            ("DescribeInstanceTypeOfferings", _) => {
                let offered = |name: &str, zone: &str| {
                    format!("<instanceType>{name}</instanceType><location>{zone}</location>")
                };
                page(
                    "instanceTypeOfferingSet",
                    &[
                        offered("c5.xlarge", "eu-west-1a"),
                        offered("c5.xlarge", "eu-west-1b"),
                        offered("m5.xlarge", "eu-west-1a"),
                        offered("c5.unlisted", "eu-west-1a"),
                        offered("r5.xlarge", "eu-west-1a"),
                        offered("c5.old", "eu-west-1a"),
                        offered("c5.slow", "eu-west-1a"),
                    ],
                    "",
                )
            }
            ("DescribeSpotPriceHistory", "") => page(
                "spotPriceHistorySet",
                &[
                    price(
                        "eu-west-1a",
                        "c5.xlarge",
                        "Linux/UNIX",
                        "0.060000",
                        "2026-07-20T08:00:00Z",
                    ),
                    price("eu-west-1a", "c5.xlarge", "Windows", "0.200000", "2026-07-20T09:00:00Z"),
                ],
                "2",
            ),
            ("DescribeSpotPriceHistory", "2") => page("spotPriceHistorySet", &[], "3"),
            ("DescribeSpotPriceHistory", "3") => page(
                "spotPriceHistorySet",
                &[
                    price(
                        "eu-west-1a",
                        "c5.xlarge",
                        "Linux/UNIX",
                        "0.071234",
                        "2026-07-20T09:00:00Z",
                    ),
                    price(
                        "eu-west-1a",
                        "c5.xlarge",
                        "Linux/UNIX",
                        "0.050000",
                        "2026-07-20T07:00:00Z",
                    ),
                    price(
                        "eu-west-1a",
                        "c5.xlarge",
                        "Linux/UNIX",
                        "0.900000",
                        "2999-01-01T00:00:00Z",
                    ),
                    price(
                        "eu-west-1b",
                        "c5.xlarge",
                        "Linux/UNIX (Amazon VPC)",
                        "0.08",
                        "2026-07-20T09:00:00Z",
                    ),
                    price(
                        "eu-west-1a",
                        "c5.unlisted",
                        "Linux/UNIX",
                        "0.01",
                        "2026-07-20T09:00:00Z",
                    ),
                ],
                "",
            ),
            _ => region_answer(form),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn offers_have_the_newest_price_of_each_pool() {
    let wire = market();
    let ec2 = ec2(&wire, small());
    let offers = ec2.offers().await.unwrap();
    let quote = |spot: Option<u64>, on_demand| Quote {
        spot: spot.map(MicroUsd),
        on_demand: MicroUsd(on_demand),
    };
    let quotes: Vec<_> = offers.quotes.into_iter().collect();
    assert_eq!(
        quotes,
        [
            (pool("eu-west-1a", "c5.xlarge"), quote(Some(71_234), 192_000)),
            (pool("eu-west-1a", "m5.xlarge"), quote(None, 214_000)),
            (pool("eu-west-1b", "c5.xlarge"), quote(Some(80_000), 192_000)),
        ]
    );
    let names: Vec<&str> = offers.types.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["c5.xlarge", "m5.xlarge"],
        "burstable, unnamed and unlisted types are left out"
    );
    let c5 = &offers.types["c5.xlarge"];
    assert_eq!((c5.vcpus, c5.memory, c5.gpus, c5.gpu_memory), (4, 8 << 30, 4, 16 << 30));

    ec2.offers().await.unwrap();
    assert_eq!(wire.of("DescribeInstanceTypes").len(), 2, "types are asked for once, in two pages");
    assert_eq!(wire.of("DescribeSpotPriceHistory").len(), 6);
    tokio::time::advance(std::time::Duration::from_secs(7 * 3600)).await;
    ec2.offers().await.unwrap();
    assert_eq!(wire.of("DescribeInstanceTypes").len(), 4, "and again after some hours");

    let check = &ec2.check().await.unwrap()[0];
    assert_eq!((check.types, &*check.unlisted), (3, &["c5.unlisted".to_owned()][..]));
    assert_eq!(check.subnets["eu-west-1b"], "subnet-b");
}

#[tokio::test(start_paused = true)]
async fn the_price_at_a_time_is_the_last_before_it() {
    let wire = market();
    let ec2 = ec2(&wire, small());
    let at = |hour: u64| UnixMillis(1_784_505_600_000 + hour * 3_600_000);
    let of = |zone, hour| {
        let pool = pool(zone, "c5.xlarge");
        let ec2 = &ec2;
        async move { ec2.spot_price_at(&pool, at(hour)).await.unwrap() }
    };
    assert_eq!(of("eu-west-1a", 8).await, Some(MicroUsd(60_000)));
    assert_eq!(of("eu-west-1a", 10).await, Some(MicroUsd(71_234)));
    assert_eq!(of("eu-west-1b", 8).await, None);
    let form = &wire.of("DescribeSpotPriceHistory")[0];
    assert_eq!(form["StartTime"], "2026-07-20T08:00:00Z");
    assert_eq!(form["StartTime"], form["EndTime"]);
}

#[tokio::test(start_paused = true)]
async fn subnets_and_zones_of_the_settings_are_kept_to() {
    let of = |region: &str| {
        settings(&format!(
            "fleet = \"tests\"\nuser_data = \"x\"\n[regions.eu-west-1]\nimage = \"ami-1\"\n{region}"
        ))
    };
    for (region, refused) in [
        ("zones = [\"eu-west-1b\"]", None),
        ("zones = [\"eu-west-1c\"]", Some("region eu-west-1 has no subnet in zone eu-west-1c")),
        (
            "subnets = [\"subnet-b\", \"subnet-gone\"]",
            Some("region eu-west-1 has no subnet subnet-gone"),
        ),
    ] {
        let checked = ec2(&market(), of(region)).check().await;
        match refused {
            None => {
                let zones: Vec<_> = checked.unwrap()[0].subnets.keys().cloned().collect();
                assert_eq!(zones, ["eu-west-1b"]);
            }
            Some(text) => assert_eq!(checked, Err(CloudError::Refused(text.into()))),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_given_launch_template_must_end_its_machines() {
    let given = r#"
        fleet = "tests"
        user_data = "x"
        [regions.eu-west-1]
        launch_template = { id = "lt-1", version = "3" }
    "#;
    for (data, fits) in [
        (
            "<imageId>ami-1</imageId><instanceInitiatedShutdownBehavior>terminate</instanceInitiatedShutdownBehavior>",
            true,
        ),
        (
            "<imageId>ami-1</imageId><instanceInitiatedShutdownBehavior>stop</instanceInitiatedShutdownBehavior>",
            false,
        ),
        ("<imageId>ami-1</imageId>", false),
        ("<instanceInitiatedShutdownBehavior>terminate</instanceInitiatedShutdownBehavior>", false),
        (
            "<imageId>ami-1</imageId><instanceInitiatedShutdownBehavior>terminate</instanceInitiatedShutdownBehavior>\
             <instanceMarketOptions><marketType>spot</marketType></instanceMarketOptions>",
            false,
        ),
        (
            "<imageId>ami-1</imageId><instanceInitiatedShutdownBehavior>terminate</instanceInitiatedShutdownBehavior>\
             <disableApiTermination>true</disableApiTermination>",
            false,
        ),
    ] {
        let version = format!("<launchTemplateData>{data}</launchTemplateData>");
        let wire = Wire::scripted(move |form| match form["Action"].as_str() {
            "DescribeLaunchTemplateVersions" => {
                Answer::Done(items("launchTemplateVersionSet", &[&version]))
            }
            "DescribeInstanceTypes" => Answer::Done(items("instanceTypeSet", &[])),
            "DescribeInstanceTypeOfferings" => Answer::Done(items("instanceTypeOfferingSet", &[])),
            _ => region_answer(form),
        });
        let checked = ec2(&wire, settings(given)).check().await;
        assert_eq!(checked.is_ok(), fits, "{data}: {checked:?}");
    }
}
