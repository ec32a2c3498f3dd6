//! Tests that buffers stay what they were made as, and that files don't depend on them.

use super::*;
use crate::{
    bounds::unbounded,
    plan::{Cut, Part},
};
use sojourn_codec::decode;
use sojourn_protocol::spec::{
    Channels, DataSpec, Dialect, Missing, OnBad, Scale, ScaleLabel, Split,
};

const SHARDS: u32 = 8;
const ROWS: u64 = 40;

/// Eight shards of four rows for training, and two with the other eight.
fn plan() -> Plan {
    let data = DataSpec {
        train: "t".into(),
        features: None,
        label: Some("y".into()),
        labels: None,
        separator: None,
        columns: None,
        categories: Vec::new(),
        missing: Missing::Refuse,
        on_bad_row: OnBad::Refuse,
        on_bad_image: OnBad::Refuse,
        dialect: Dialect::default(),
        window: None,
        tokenizer: None,
        length: BTreeMap::new(),
        shape: None,
        channels: Channels::First,
        scale: Scale::None,
        scale_label: ScaleLabel::None,
        valid: Split::Ratio(0.2),
        test: None,
        shards: None,
        shard_sizes: None,
        stratified: false,
        groups: None,
        group_folds: None,
        seed: None,
    };
    Plan::new(7, &data, &[(Part::Train, ROWS)], &Cut::Equal(SHARDS), None).unwrap()
}

/// A number of a row, where all are bytes.
fn byte(row: u64, at: usize) -> u8 {
    (row + to_u64(at)).to_le_bytes()[0]
}

/// Cuts rows of `width` numbers with buffers of `budget` bytes in all, and reads the shards again: the
/// most that the buffers ever had, and the bytes of each file.
fn cut(width: usize, element: Element, labels: &Labels, budget: usize) -> (usize, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan();
    let layout = RowLayout { features: width, element_of: &|_| element, labels };
    let mut shards =
        ShardSet::buffered(folder.path(), &plan, layout, (budget, &unbounded())).unwrap();
    let mut route = plan.route(Part::Train, None);
    let mut most = 0;
    for index in 0..ROWS {
        let number = |at: usize| match element {
            Element::Byte => f32::from(byte(index, at)),
            Element::Single => (index * 1000) as f32 + at as f32,
        };
        let row: Vec<f32> = (0..width).map(number).collect();
        let target = match labels {
            Labels::Classes(_) => Target::Class(index.cast_signed()),
            Labels::Number | Labels::None => Target::Number(index as f32),
        };
        shards.push(route.next(None).unwrap().shard, &row, target).unwrap();
        most = most.max(shards.writers.iter().map(ShardWriter::held).sum());
    }
    let (made, files) = shards.publish(folder.path()).unwrap();
    let bytes = made.iter().map(|shard| fs::read(&files[&shard.blob.sha256]).unwrap());
    (most, bytes.collect())
}

#[test]
fn buffers_have_no_more_than_their_share_however_wide_rows_are() {
    let classes = Labels::Classes(vec!["a".into(), "b".into()]);
    for width in [1, 7, 250, 256, 257, 5000] {
        for (element, labels) in [
            (Element::Single, &classes),
            (Element::Single, &Labels::Number),
            (Element::Byte, &classes),
        ] {
            let (_, whole) = cut(width, element, labels, BUFFER_BYTES);
            for budget in [0, 2000, 20_480, 100_000] {
                let (most, files) = cut(width, element, labels, budget);
                // A number or a label has to be somewhere.
                let least = files.len() * 16;
                assert!(most <= budget.max(least), "{most} bytes for {width} numbers, {budget}");
                assert_eq!(files, whole, "{width} numbers, {budget} bytes");
            }
        }
    }
}

#[test]
fn rows_as_wide_as_a_buffer_are_whole_in_their_files() {
    let (_, files) = cut(5000, Element::Single, &Labels::Number, 2000);
    assert_eq!(files.len(), 10);
    let mut rows = Vec::new();
    for file in &files {
        let tensors = decode(file).unwrap();
        let numbers: Vec<f32> = tensors[0].f32s().unwrap().collect();
        let labels: Vec<f32> = tensors[1].f32s().unwrap().collect();
        assert_eq!((numbers.len(), labels.len()), (20_000, 4));
        for (row, label) in numbers.chunks(5000).zip(labels) {
            assert!(row.iter().zip(0u16..).all(|(x, at)| *x == label * 1000.0 + f32::from(at)));
            rows.push(label);
        }
    }
    rows.sort_by(f32::total_cmp);
    assert_eq!(rows, (0..40u8).map(f32::from).collect::<Vec<_>>());
}

#[test]
fn bytes_are_a_byte_each_in_their_files() {
    for (width, budget) in [(5000, 2000), (7, BUFFER_BYTES)] {
        let (_, files) = cut(width, Element::Byte, &Labels::Number, budget);
        for file in &files {
            let tensors = decode(file).unwrap();
            let numbers = tensors[0].u8s().unwrap();
            let labels: Vec<f32> = tensors[1].f32s().unwrap().collect();
            assert_eq!(numbers.len(), width * labels.len());
            for (row, label) in numbers.chunks(width).zip(labels) {
                let index = (0..ROWS).find(|index| *index as f32 == label).unwrap();
                assert!(row.iter().enumerate().all(|(at, x)| *x == byte(index, at)));
            }
        }
    }
}
