//! JSON that isn't in lines, and numbers in columns that are left out.

use super::{folder, job, made, refused, told};
use sojourn_ingest::check;

const DATA: &str = "train = \"t.jsonl\"\nlabel = \"y\"\nshards = 1\nvalid = 0.25";

fn rows() -> String {
    (0..8).map(|n| format!("{{\"a\": {n}, \"b\": {}, \"y\": {}}}\n", n * n, n % 2)).collect()
}

#[test]
fn a_document_is_refused_with_the_command_that_makes_lines_of_it() {
    let list = rows().trim_end().replace('\n', ",\n");
    let said = |text: &str| refused(DATA, &[("t.jsonl", text.into())]);
    let wanted = "JSON lines are wanted, an object in each line";
    let one = format!("t.jsonl: the file is one JSON object; {wanted}");
    for (text, jq) in [
        (format!("{{\"data\": [{}]}}", list.replace('\n', " ")), ": `jq -c '.data[]'"),
        (format!("{{\n\"n\": 3,\n\"my rows\": [\n{list}\n]\n}}\n"), ": `jq -c '.[\"my rows\"][]'"),
    ] {
        assert_eq!(said(&text), format!("{one}{jq} FILE > NEW_FILE.jsonl`"));
    }
    // As pandas writes columns.
    assert_eq!(said("{\"a\": {\"0\": 1}, \"y\": {\"0\": 1}}"), one);
    let marked = format!("\u{feff}[\n{list}\n]\n");
    let all = format!(
        "t.jsonl: the file is one JSON list; {wanted}: `jq -c '.[]' FILE > NEW_FILE.jsonl`"
    );
    assert_eq!(said(&marked), all);
    let pretty = rows().replace(", ", ",\n  ");
    assert_eq!(
        said(&pretty),
        format!(
            "t.jsonl: its objects go on over several lines; {wanted}: `jq -c . FILE > NEW_FILE.jsonl`"
        )
    );
}

#[test]
fn a_row_with_a_list_of_objects_is_a_row_among_others() {
    let row = |n: i32| format!("{{\"tags\": [{{\"t\": 1}}], \"a\": {n}, \"y\": {}}}\n", n % 2);
    let rows: String = (0..8).map(row).collect();
    let dir = folder(&[("t.jsonl", rows.into())]);
    let dropped = format!("{DATA}\ncolumns = {{ drop = [\"tags\"] }}");
    assert!(check(&job(&dropped), dir.path(), dir.path(), &mut |_| {}).is_ok());
}

#[test]
fn json_in_utf_16_is_told_with_the_command_that_makes_utf_8_of_it() {
    let units =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    for (text, name) in [(format!("\u{feff}{}", rows()), "UTF-16"), (rows(), "UTF-16LE")] {
        let said = refused(DATA, &[("t.jsonl", units(&text))]);
        let told = "t.jsonl: the JSON is text in UTF-16, and UTF-8 is wanted";
        assert_eq!(said, format!("{told}: `iconv -f {name} -t UTF-8 FILE > NEW_FILE`"));
    }
}

#[test]
fn a_column_that_is_left_out_may_have_numbers_that_are_too_large() {
    let large = |n: i32| if n == 3 { format!("1{}", "0".repeat(400)) } else { n.to_string() };
    let row = |n: i32| {
        format!("{{\"a\": {n}, \"id\": {}, \"l\": [1e999], \"y\": {}}}\n", large(n), n % 2)
    };
    let rows: String = (0..8).map(row).collect();
    let dir = folder(&[("t.jsonl", rows.clone().into())]);
    let data = format!("{DATA}\ncolumns = {{ drop = [\"id\", \"l\"] }}");
    let made = made(&data, dir.path()).map_err(|error| told(&error)).unwrap();
    let kept = made.manifest.train.iter().chain(&made.manifest.valid).map(|shard| shard.rows);
    assert_eq!(kept.sum::<u32>(), 8);
    let said = refused(&data.replace("\"id\", ", ""), &[("t.jsonl", rows.into())]);
    assert!(said.starts_with("t.jsonl:4: no JSON object: number out of range"), "{said}");
}
