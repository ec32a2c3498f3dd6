//! The script that writes list prices.

use sojourn_ec2::Ec2Settings;
use sojourn_protocol::money::MicroUsd;
use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

/// An entry of the price list, as AWS writes it: JSON in a string.
fn product(name: &str, dollars: &str, unit: &str) -> String {
    let product = serde_json::json!({
        "product": { "attributes": { "instanceType": name } },
        "terms": { "OnDemand": { "A.B": { "priceDimensions": { "A.B.C": {
            "unit": unit, "pricePerUnit": { "USD": dollars }
        } } } } },
    });
    product.to_string()
}

fn run(products: &[String]) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/list-prices");
    let mut child = Command::new("python3")
        .args([script, "eu-west-1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = serde_json::json!({ "PriceList": products }).to_string();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn the_price_list_becomes_a_table_of_the_settings() {
    let output = run(&[
        product("c7i.xlarge", "0.2142000000", "Hrs"),
        product("c7i.metal-24xl", "10.0000000", "Hrs"),
        product("t3.nano", "0.0000000000", "Hrs"),
        product("c7i.large", "0.10710001", "Hrs"),
        product("m7i.large", "5", "Quantity"),
    ]);
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    let file = format!(
        "[ec2]\nfleet = \"x\"\nuser_data = \"x\"\n[ec2.regions.eu-west-1]\nimage = \"ami-1\"\n{table}"
    );
    #[derive(serde::Deserialize)]
    struct File {
        ec2: Ec2Settings,
    }
    let file: File = toml::from_str(&file).unwrap_or_else(|error| panic!("{table}: {error}"));
    let prices: Vec<_> = file.ec2.regions["eu-west-1"]
        .on_demand
        .iter()
        .map(|(name, price)| (name.as_str(), price.0))
        .collect();
    let expected =
        [("c7i.large", 107_101), ("c7i.metal-24xl", 10_000_000), ("c7i.xlarge", 214_200)];
    assert_eq!(prices, expected.map(|(name, price)| (name, MicroUsd(price))));
}

#[test]
fn several_prices_of_a_type_are_no_price() {
    let output = run(&[product("c7i.large", "0.1", "Hrs"), product("c7i.large", "0.2", "Hrs")]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("c7i.large has several prices: 0.1, 0.2"), "{text}");
}
