//! The tables of sample jobs, and what comes back of the formats.

use super::{
    csv_file, json_file, parquet_file,
    table::{Column, Table, Values},
    tables,
};
use crate::cli::model::export::samples::{Sample, answers};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs::File};

fn sample(name: &str, epochs: u32) -> Sample {
    Sample { name: name.into(), epochs }
}

/// The lines of a table as CSV, by a reader that is not ours.
fn lines(table: &Table) -> Vec<Vec<String>> {
    let mut bytes = Vec::new();
    csv_file::write(table, &mut bytes).unwrap();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes.as_slice());
    let line = |record: csv::StringRecord| record.iter().map(str::to_owned).collect();
    reader.records().map(|record| line(record.unwrap())).collect()
}

/// A column of a table as CSV.
fn column(table: &Table, name: &str) -> Vec<String> {
    let lines = lines(table);
    let at = lines[0].iter().position(|column| column == name).unwrap();
    lines[1..].iter().map(|line| line[at].clone()).collect()
}

fn json_of(tables: &[Table]) -> Value {
    let mut bytes = Vec::new();
    json_file::write(tables, &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn trials_have_a_column_for_each_hyper_parameter() {
    let [trials, ..] = tables(&answers(&[sample("a", 9), sample("b", 0), sample("c", 2)]));
    let all = |name: &str| column(&trials, name);
    assert_eq!(all("trial"), ["0", "1", "2"]);
    assert_eq!(all("state"), ["finished", "running", "running"]);
    assert_eq!(all("model.dropout"), ["0", "0", "0.25"]);
    assert_eq!(all("model.hidden"), ["[4]", "[4]", "[4]"]);
    assert_eq!(all("training.optimizer.lr"), ["0.001", "0.003", "0.001"]);
    assert_eq!(all("training.optimizer.name"), ["adam"; 3]);
    assert_eq!(all("training.batch_size"), ["32"; 3]);
    assert_eq!(all("seed"), ["3"; 3]);
    assert_eq!(all("epochs_done"), ["9", "0", "2"]);
    assert_eq!(all("hops"), ["18", "0", "4"]);
    assert_eq!(all("best_value"), ["0.5", "", "0.5"]);
    assert_eq!(all("best_epoch"), ["1", "", "1"]);
    assert_eq!(all("cost_usd"), ["0.01"; 3]);
    assert_eq!(all("checkpoint_bytes"), ["1000", "", "1000"]);
}

#[test]
fn hops_have_their_times_rows_and_batches() {
    let [_, hops, _] = tables(&answers(&[sample("a", 1), sample("b", 1)]));
    let all = |name: &str| column(&hops, name);
    assert_eq!(all("trial"), ["0", "0", "1", "1"]);
    assert_eq!(all("version"), ["1", "2", "1", "2"]);
    assert_eq!(all("epoch"), ["1"; 4]);
    assert_eq!(all("shard"), ["0", "1", "0", "1"]);
    assert_eq!(all("begun")[0], "2023-11-14T22:13:20.000Z");
    assert_eq!(all("ended")[0], "2023-11-14T22:13:22.000Z");
    assert_eq!(all("rows"), ["70"; 4]);
    assert_eq!(all("batches"), ["3"; 4]);
    assert_eq!(all("train_seconds"), ["1.5"; 4]);
    assert_eq!(all("host_name"), [""; 4], "the server has forgotten it");
}

#[test]
fn metrics_are_in_long_form_with_the_test_data_last() {
    let [.., metrics] = tables(&answers(&[sample("a", 9)]));
    let lines = lines(&metrics);
    assert_eq!(lines[0], ["trial", "epoch", "split", "metric", "value", "time"]);
    let first = ["0", "1", "train", "loss", "0.5", "2023-11-14T22:13:27.000Z"];
    assert_eq!(lines[1], first);
    let split = |name: &str| lines.iter().filter(|line| line[2] == name).count();
    assert_eq!((split("train"), split("valid"), split("test")), (18, 18, 2));
    let last = &lines[lines.len() - 1];
    assert_eq!(last[..5], ["0", "1", "test", "accuracy", "0.1"]);
}

#[test]
fn names_with_commas_quotes_and_lines_are_read_back() {
    let names = ["mlp hidden=[8, 4], lr=0.1", "a \"b\"", "two\nlines", " ", "ü,;\t'"];
    let samples: Vec<Sample> = names.iter().map(|name| sample(name, 0)).collect();
    let [trials, ..] = tables(&answers(&samples));
    assert_eq!(column(&trials, "name"), names);
    let mut bytes = Vec::new();
    csv_file::write(&trials, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("\n0,\"mlp hidden=[8, 4], lr=0.1\",running,"), "{text}");
    assert!(text.contains("\n1,\"a \"\"b\"\"\",running,"), "{text}");
}

#[test]
fn columns_have_one_type() {
    let any = |values: &[Option<Value>]| Column::of_any("x", values).values;
    let whole = any(&[Some(json!(1)), None, Some(json!(-2))]);
    assert_eq!(whole, Values::Whole(vec![Some(1), None, Some(-2)]));
    assert_eq!(any(&[Some(json!(1)), Some(json!(0.5))]), Values::Real(vec![Some(1.0), Some(0.5)]));
    assert_eq!(any(&[Some(json!(true)), None]), Values::Switch(vec![Some(true), None]));
    let texts = any(&[Some(json!("a")), Some(json!([1, 2])), Some(json!(1)), None]);
    let wanted = ["a", "[1,2]", "1"].map(|text| Some(text.to_owned()));
    assert_eq!(texts, Values::Text([wanted.to_vec(), vec![None]].concat()));
}

#[test]
fn json_keeps_the_order_of_columns_and_has_null_for_what_is_missing() {
    let tables = tables(&answers(&[sample("a, b", 0)]));
    let mut bytes = Vec::new();
    json_file::write(&tables, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let begins = r#"{"trials":[{"trial":0,"name":"a, b","state":"running","arch":"mlp","model.batch_norm":false,"#;
    assert!(text.starts_with(begins), "{text}");
    assert!(text.ends_with("],\"hops\":[],\"metrics\":[]}\n"), "{text}");
    assert_eq!(json_of(&tables)["trials"][0]["best_value"], Value::Null);
}

#[test]
fn a_table_without_rows_is_a_file_too() {
    for table in tables(&answers(&[])) {
        assert_eq!(table.rows(), 0);
        assert_eq!(lines(&table).len(), 1);
        let reader = parquet_of(&table);
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    }
}

/// A table as a Parquet file that is open.
fn parquet_of(table: &Table) -> SerializedFileReader<File> {
    let mut file = tempfile::tempfile().unwrap();
    parquet_file::write(table, &mut file).unwrap();
    SerializedFileReader::new(file).unwrap()
}

/// A column of a table as Parquet.
fn parquet_column(table: &Table, name: &str) -> Vec<String> {
    let reader = parquet_of(table);
    let rows = reader.get_row_iter(None).unwrap();
    let text = |row: parquet::record::Row| {
        let found = row.get_column_iter().find(|(column, _)| *column == name).unwrap();
        found.1.to_string()
    };
    rows.map(|row| text(row.unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_trial_hop_and_metric_is_there_once(
        of in prop::collection::vec(("\\PC{0,12}|[,\"\r\n ]{0,5}", 0u32..=9), 0..12)
    ) {
        let samples: Vec<Sample> =
            of.iter().map(|(name, epochs)| sample(name, *epochs)).collect();
        let answers = answers(&samples);
        let tables = tables(&answers);
        let [trials, hops, metrics] = &tables;
        // By number, once each and in their order, with their names.
        let numbers: Vec<String> = (0..samples.len()).map(|number| number.to_string()).collect();
        prop_assert_eq!(column(trials, "trial"), numbers);
        let names: Vec<String> = answers
            .trials
            .iter()
            .map(|trial| {
                let name = crate::cli::render::text::trial_name(trial);
                crate::cli::render::csv_cell::cell(&name).into_owned()
            })
            .collect();
        prop_assert_eq!(column(trials, "name"), names);
        // Every row is another one.
        let epochs: u32 = samples.iter().map(|sample| sample.epochs).sum();
        let keys = |table: &Table, columns: &[&str]| -> BTreeSet<Vec<String>> {
            let columns: Vec<Vec<String>> = columns.iter().map(|name| column(table, name)).collect();
            (0..table.rows()).map(|row| columns.iter().map(|of| of[row].clone()).collect()).collect()
        };
        prop_assert_eq!(hops.rows(), epochs as usize * 2);
        prop_assert_eq!(keys(hops, &["trial", "version"]).len(), hops.rows());
        let tested = answers.trials.iter().filter(|trial| trial.test.is_some()).count();
        prop_assert_eq!(metrics.rows(), epochs as usize * 4 + tested * 2);
        let keyed = keys(metrics, &["trial", "epoch", "split", "metric"]);
        prop_assert_eq!(keyed.len(), metrics.rows());
        // The formats have the same.
        let json = json_of(&tables);
        for table in &tables {
            prop_assert_eq!(json[table.name].as_array().unwrap().len(), table.rows());
            let of_json: Vec<String> = json[table.name]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["trial"].to_string())
                .collect();
            prop_assert_eq!(&of_json, &column(table, "trial"));
            prop_assert_eq!(&of_json, &parquet_column(table, "trial"));
        }
    }
}
