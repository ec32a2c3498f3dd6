//! Data that is easily taken for something else: what is told about it, and that the advice works.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test ends at what it did not expect, and has files of its own"
)]

use sojourn_draft::{Draft, Taken, Wishes, draft};
use sojourn_ingest::{ProfileOf, Unbounded};
use sojourn_protocol::jobfile;
use std::{fmt::Write as _, fs, path::Path, process::Command, sync::Arc};

fn drafted(folder: &Path, data: &str, label: Option<&str>) -> Result<Draft, String> {
    let of = ProfileOf { data, base_dir: folder, spool: folder, separator: None, label };
    let profile = sojourn_ingest::profile(of, Arc::new(Unbounded), &mut |_| {}).unwrap();
    let draft = draft(&profile, Wishes { name: "t", train: data, label, labels: None });
    draft.map_err(|problems| problems.join("\n"))
}

/// Does a job read its data?
fn accepted(draft: &Draft, folder: &Path) {
    let spec = jobfile::parse(&draft.job).unwrap_or_else(|error| panic!("{error}\n{}", draft.job));
    let checked = sojourn_ingest::check(&spec, folder, folder, &mut |_| {});
    checked.unwrap_or_else(|error| panic!("{error}\n{}", draft.job));
}

fn taken(draft: &Draft, taken: Taken) -> Vec<&str> {
    let columns = draft.columns.iter().filter(|column| column.taken == taken);
    columns.map(|column| column.column.as_str()).collect()
}

/// The command that a text has in backticks, run in a folder: it makes `new.csv` of `old.csv`.
fn follow(text: &str, folder: &Path) {
    let command = text.split('`').find(|part| part.contains("NEW_FILE")).unwrap();
    let command = command.replace("NEW_FILE", "new.csv").replace("FILE", "old.csv");
    let done = Command::new("sh").args(["-c", &command]).current_dir(folder).status().unwrap();
    assert!(done.success(), "{command}");
}

fn rows() -> String {
    let mut rows = String::new();
    for row in 0..40 {
        let kind = if row % 3 == 0 { "p" } else { "q" };
        writeln!(rows, "{},{},{}.5,{kind}", row * 7 % 11, row * 5 % 13, row % 9).unwrap();
    }
    rows
}

#[test]
fn a_title_above_a_table_is_told_with_the_line_of_the_names() {
    let folder = tempfile::tempdir().unwrap();
    for (title, line) in [
        ("Sales report\n", 2),
        ("Report,Q3\n", 2),
        ("Report of 2024,,,\nNorth,Q3,,\n,,,\n", 4),
        ("\"Sales, of\nall shops\"\n\n", 4),
    ] {
        fs::write(folder.path().join("old.csv"), format!("{title}a,b,c,kind\n{}", rows())).unwrap();
        for label in [None, Some("kind")] {
            let told = drafted(folder.path(), "old.csv", label).unwrap_err();
            let beginning = format!("line {line} seems to have the names of the columns");
            assert!(told.starts_with(&beginning) && !told.contains('\n'), "{title}: {told}");
            follow(&told, folder.path());
            let draft = drafted(folder.path(), "new.csv", label).unwrap();
            assert_eq!(taken(&draft, Taken::Number), ["a", "b", "c"]);
            accepted(&draft, folder.path());
        }
    }
}

#[test]
fn a_table_without_a_title_has_none() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        format!("a,b,c,kind\n{}", rows()),
        // Columns without a name, and a sparse first row of a table without a header.
        format!(",,c,kind\n{}", rows()),
        format!("1,,,\n{}", rows()),
    ] {
        fs::write(folder.path().join("old.csv"), text).unwrap();
        let draft = drafted(folder.path(), "old.csv", None).unwrap();
        accepted(&draft, folder.path());
    }
}

#[test]
fn percentages_and_amounts_of_money_are_told_with_the_command_that_makes_numbers_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let row = |row: u32| {
        let (amount, share) = (1200 + row * 37, row * 7 % 100);
        let kind = if row.is_multiple_of(3) { "p" } else { "q" };
        (format!("\"${},{:03}.50\"", amount / 1000, amount % 1000), format!("{share}.5%"), kind)
    };
    let mut text = "price,share,x,kind\n".to_owned();
    for number in 0..60 {
        let (price, share, kind) = row(number);
        writeln!(text, "{price},{share},{},{kind}", number % 11).unwrap();
    }
    let mut data = "old.csv";
    fs::write(folder.path().join(data), &text).unwrap();
    for (left_out, sign) in [(&["price", "share"][..], "price"), (&["share"][..], "share")] {
        let draft = drafted(folder.path(), data, Some("kind")).unwrap();
        assert_eq!(taken(&draft, Taken::LeftOut), left_out);
        accepted(&draft, folder.path());
        let told = draft.columns.iter().find(|column| column.column == sign).unwrap();
        assert!(told.because.starts_with("its numbers have the sign"), "{}", told.because);
        follow(&told.because, folder.path());
        data = "next.csv";
        fs::rename(folder.path().join("new.csv"), folder.path().join("old.csv")).unwrap();
        fs::copy(folder.path().join("old.csv"), folder.path().join(data)).unwrap();
    }
    let draft = drafted(folder.path(), data, Some("kind")).unwrap();
    assert_eq!(taken(&draft, Taken::Number), ["price", "share", "x"]);
    assert!(draft.job.contains("thousands = \",\""), "{}", draft.job);
    accepted(&draft, folder.path());
}

#[test]
fn a_label_of_money_and_a_table_of_it_alone_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..60).map(|row| format!("{row}0%,\"€ {row},5{row}\"\n")).collect();
    fs::write(folder.path().join("old.csv"), format!("share,price\n{rows}")).unwrap();
    let told = drafted(folder.path(), "old.csv", Some("price")).unwrap_err();
    assert!(told.starts_with("`price`: its numbers have the sign `€` beside them"), "{told}");
    follow(&told, folder.path());
    fs::rename(folder.path().join("new.csv"), folder.path().join("old.csv")).unwrap();
    let told = drafted(folder.path(), "old.csv", Some("price")).unwrap_err();
    assert!(told.contains("no column is left") && told.contains("`share`: its numbers"), "{told}");
    follow(&told, folder.path());
    let draft = drafted(folder.path(), "new.csv", Some("price")).unwrap();
    assert!(
        draft.job.contains("decimal = \",\"") && draft.job.contains("loss = \"mse\""),
        "{}",
        draft.job
    );
    accepted(&draft, folder.path());
}

/// A picture of one gray pixel.
const PIXEL: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\x0aIDATx\x9cch\x00\x00\x00\x82\x00\x81w\xcdr\xb6\x00\x00\x00\x00IEND\xaeB`\x82";

#[test]
fn a_table_beside_folders_of_images_is_left_out_unless_its_label_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["cat", "dog"] {
        let of_class = folder.path().join("pets").join(class);
        fs::create_dir_all(&of_class).unwrap();
        (0..8).for_each(|number| fs::write(of_class.join(format!("{number}.png")), PIXEL).unwrap());
    }
    fs::write(folder.path().join("pets/t.csv"), format!("a,b,c,kind\n{}", rows())).unwrap();
    let images = drafted(folder.path(), "pets", None).unwrap();
    assert!(images.job.contains("arch = \"cnn\""), "{}", images.job);
    let told = "1 table beside the folders of images left out";
    assert!(images.remarks.iter().any(|remark| remark.starts_with(told)), "{:?}", images.remarks);
    accepted(&images, folder.path());
    let table = drafted(folder.path(), "pets", Some("kind")).unwrap();
    assert_eq!(taken(&table, Taken::Number), ["a", "b", "c"]);
    accepted(&table, folder.path());
    // Pictures of what a table shows are no classes.
    fs::remove_dir_all(folder.path().join("pets/dog")).unwrap();
    fs::write(folder.path().join("pets/plot.png"), PIXEL).unwrap();
    let table = drafted(folder.path(), "pets", None).unwrap();
    assert_eq!(taken(&table, Taken::Number), ["a", "b", "c"]);
    accepted(&table, folder.path());
}
