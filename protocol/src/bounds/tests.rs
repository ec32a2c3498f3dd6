//! Values at their bounds and past them.

use super::*;
use crate::{
    api::{MissingRequest, PlacementRequest, WorkRequest},
    digest::{BlobRef, Digest},
    engine::Engine,
    inventory::{Demand, Device, Inventory},
    manifest::Labels,
    metrics::{ByClass, Confusion},
    quotas::TokenQuotas,
    report::{Failure, FailureKind},
    spec::{Dimension, ExportedGraph},
    sum_array::SumArray,
    text::{MAX_NAME_CHARS, is_plain_line},
    time::Millis,
};
use proptest::prelude::*;

const TRICKS: &str = "a\u{1b}[31mb\u{7}c\rd\ne\tf\u{202e}g\u{9b}h\u{2028}i";

fn request(inventory: Inventory) -> WorkRequest {
    WorkRequest {
        demand: vec![Demand { device: "cpu".into(), slots: 1, idle: 1, wanted: 1 }],
        holding: vec![],
        reported: vec![],
        wait: Millis(0),
        inventory: Some(inventory),
    }
}

fn device(name: &str) -> Device {
    Device::new(name, Digest::of(b"class"), 1e9)
}

fn refused<T: Serialize + std::fmt::Debug>(value: T) -> String {
    Bounded::new(value).unwrap_err().to_string()
}

#[test]
fn the_table_is_sorted_and_names_each_field_once() {
    let names = BOUNDS.iter().map(|(owner, field, _)| (*owner, *field));
    assert!(names.clone().zip(names.skip(1)).all(|(one, next)| one < next));
}

#[test]
fn a_field_past_its_bound_is_refused_with_its_path_wherever_it_lies() {
    let devices = |names: &[&str]| Inventory {
        devices: names.iter().map(|name| device(name)).collect(),
        ..Inventory::default()
    };
    assert!(Bounded::new(request(devices(&["cpu", "gpu"]))).is_ok());
    let long = "x".repeat(MAX_NAME_CHARS + 1);
    assert_eq!(
        refused(request(devices(&["cpu", &long]))),
        format!(
            "`inventory.devices[1].name`, which begins with `{}`, isn't one line of at most 200 characters",
            "x".repeat(40)
        )
    );
    assert_eq!(
        refused(request(devices(&["cpu"; MAX_DEVICES + 1]))),
        "`inventory.devices` has 65 entries; at most 64 are taken"
    );
    let mut fast = device("cpu");
    fast.flops = 1e19;
    assert_eq!(
        refused(fast.clone()),
        "`flops` is 10000000000000000000; 0 to 1000000000000000000 is taken"
    );
    fast.flops = -1.0;
    assert!(refused(fast).contains("`flops` is -1;"));
    let engine = |name: &str, models: usize| Engine {
        name: name.into(),
        framework: "none".into(),
        models: vec!["mlp".into(); models],
    };
    let with = |engines| Device { engines, ..device("cpu") };
    assert!(Bounded::new(with(vec![engine("numpy", MAX_ENGINE_MODELS); MAX_ENGINES])).is_ok());
    assert_eq!(
        refused(with(vec![engine("numpy", 1); MAX_ENGINES + 1])),
        "`engines` has 17 entries; at most 16 are taken"
    );
    assert_eq!(
        refused(with(vec![engine("numpy", MAX_ENGINE_MODELS + 1)])),
        "`engines[0].models` has 65 entries; at most 64 are taken"
    );
    assert!(refused(with(vec![engine("a\nb", 1)])).starts_with("`engines[0].name`, which begins"));
    let mut busy = request(Inventory::default());
    busy.demand[0].slots = u32::MAX;
    assert_eq!(refused(busy), "`demand[0].slots` is 4294967295; at most 65536 is taken");
    let whole = BlobRef { sha256: Digest::of(b""), bytes: MAX_BLOB_BYTES };
    let past = BlobRef { bytes: MAX_BLOB_BYTES + 1, ..whole };
    assert!(Bounded::new(MissingRequest { blobs: vec![whole] }).is_ok());
    assert!(
        refused(MissingRequest { blobs: vec![whole, past] }).starts_with("`blobs[1].bytes` is")
    );
}

#[test]
fn the_costs_of_a_graph_are_those_that_a_machine_can_have() {
    let file = BlobRef { sha256: Digest::of(b""), bytes: 1 };
    let costs = |flops_per_row: u64, widest: u64| ExportedGraph {
        flops_per_row,
        widest,
        ..ExportedGraph::of_file(file)
    };
    assert!(Bounded::new(costs(MAX_GRAPH_FLOPS, MAX_GRAPH_WIDTH)).is_ok());
    assert_eq!(
        refused(costs(u64::MAX, 1)),
        "`flops_per_row` is 18446744073709551615; at most 1125899906842624 is taken"
    );
    assert_eq!(
        refused(costs(1, MAX_GRAPH_WIDTH + 1)),
        "`widest` is 1099511627777; at most 1099511627776 is taken"
    );
}

#[test]
fn a_number_with_a_least_value_is_refused_below_it() {
    let quotas =
        |slot_share: u32| TokenQuotas { slot_share: Some(slot_share), ..TokenQuotas::default() };
    assert!(Bounded::new(quotas(1)).is_ok() && Bounded::new(quotas(1_000)).is_ok());
    assert_eq!(refused(quotas(0)), "`share` is 0; 1 to 1000 is taken");
    assert_eq!(refused(quotas(1_001)), "`share` is 1001; 1 to 1000 is taken");
    let placed = |priority: i32| PlacementRequest {
        priority: Some(priority),
        ..PlacementRequest::default()
    };
    assert!(Bounded::new(placed(-100)).is_ok() && Bounded::new(placed(100)).is_ok());
    assert_eq!(refused(placed(-101)), "`priority` is -101; -100 to 100 is taken");
}

#[test]
fn each_list_of_a_list_has_a_bound_of_its_own() {
    let matrix = |lines: usize, counts: usize| {
        ByClass::Confusion(Confusion(vec![vec![0_u64; counts]; lines]))
    };
    assert!(Bounded::new(matrix(256, 256)).is_ok());
    assert!(refused(matrix(257, 1)).starts_with("`confusion` has 257 entries"));
    assert!(refused(matrix(2, 257)).starts_with("`confusion[0]` has 257 entries"));
    let array = |numbers: usize| SumArray { shape: vec![1], numbers: vec![0.5; numbers] };
    assert!(Bounded::new(array(65_536)).is_ok());
    assert!(refused(array(65_537)).starts_with("`numbers` has 65537 entries"));
    let layers =
        |choices: usize, layers: usize| Dimension::Choice(vec![vec![8_u32; layers]; choices]);
    assert!(Bounded::new(layers(2_000, 2)).is_ok());
    assert!(refused(layers(1, MAX_LAYERS + 1)).starts_with("`choice[0]` has 1025 entries"));
    assert!(refused(layers(MAX_CHOICES + 1, 1)).starts_with("`choice` has 4097 entries"));
    let labels = Labels::Classes(vec!["a".into(), "x".repeat(MAX_GIVEN_NAME_CHARS + 1)]);
    assert!(refused(labels).starts_with("`classes[1]` has 1025 characters"));
}

#[test]
fn a_text_is_counted_in_characters_and_a_field_without_a_line_in_the_table_is_bounded_as_well() {
    let failure = |message: String| Failure { kind: FailureKind::Trainer, message };
    assert!(Bounded::new(failure("\u{4e2d}".repeat(MAX_MESSAGE_CHARS))).is_ok());
    assert!(
        refused(failure("\u{4e2d}".repeat(MAX_MESSAGE_CHARS + 1))).starts_with("`message` has")
    );

    #[derive(Debug, Serialize)]
    struct Unknown {
        texts: Vec<String>,
    }
    assert!(Bounded::new(Unknown { texts: vec!["x".repeat(MAX_NAME_CHARS)] }).is_ok());
    assert!(
        refused(Unknown { texts: vec!["x".repeat(MAX_NAME_CHARS + 1)] }).starts_with("`texts[0]`")
    );
    let many = vec![String::new(); MAX_OTHER_ENTRIES + 1];
    assert_eq!(
        refused(Unknown { texts: many }),
        "`texts` has 1025 entries; at most 1024 are taken"
    );
}

#[test]
fn an_inventory_with_a_name_that_a_terminal_obeys_is_refused_and_the_message_can_be_shown() {
    let class = "0".repeat(64);
    let read = |device: &str, client: &str| {
        let (device, client) = (serde_json::json!(device), serde_json::json!(client));
        serde_json::from_str::<Bounded<Inventory>>(&format!(
            r#"{{"cached":[],"devices":[{{"name":{device},"numeric_class":"{class}","flops":1.0}}],"client":{client}}}"#
        ))
    };
    assert!(read("cpu", "0.1.0").is_ok());
    let long = "x".repeat(MAX_NAME_CHARS + 1);
    for (device, client) in [(TRICKS, "0.1.0"), ("cpu", TRICKS), (long.as_str(), "0.1.0")] {
        let message = read(device, client).unwrap_err().to_string();
        assert!(message.contains("isn't one line of at most 200 characters"), "{message}");
        assert!(is_plain_line(&message, 300), "{message:?}");
    }
}

proptest! {
    /// Nothing is changed, and nothing within the bounds is refused.
    #[test]
    fn what_is_taken_is_what_was_sent(names in prop::collection::vec("[ -~]{0,200}", 0..64), cached in 0_usize..200) {
        let inventory = Inventory {
            devices: names.iter().map(|name| device(name)).collect(),
            cached: (0..cached).map(|n| Digest::of(&n.to_le_bytes())).collect(),
            ..Inventory::default()
        };
        let sent = request(inventory);
        let json = serde_json::to_string(&sent).unwrap();
        let taken: Bounded<WorkRequest> = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(taken.into_inner(), sent);
    }
}
