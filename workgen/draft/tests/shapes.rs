//! Tables of the shapes that people have, made up: each becomes a job file that is accepted without editing.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test ends at what it did not expect, and has files of its own"
)]

use sojourn_draft::{Draft, LabelKind, Taken, Wishes, draft};
use sojourn_ingest::{Profile, ProfileOf, Unbounded};
use sojourn_protocol::{jobfile, manifest::Labels};
use std::{fs, path::Path, sync::Arc};

const ROWS: u32 = 400;

/// Numbers that look like chance, and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(end)).unwrap()
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(u32::try_from(words.len()).unwrap()) as usize]
    }

    fn decimal(&mut self, whole: u32) -> String {
        format!("{}.{:02}", self.below(whole), self.below(100))
    }

    /// The field, or in one row of so many a word for a missing one.
    fn or(&mut self, one_of: u32, missing: &str, field: String) -> String {
        if self.below(one_of) == 0 { missing.to_owned() } else { field }
    }
}

/// A table with these rows.
fn table(header: &str, mut row: impl FnMut(&mut Chance, u32) -> String) -> String {
    let mut chance = Chance(7);
    let mut text = if header.is_empty() { String::new() } else { format!("{header}\n") };
    for number in 0..ROWS {
        text.push_str(&row(&mut chance, number));
        text.push('\n');
    }
    text
}

/// A draft of a file, and the classes that its job has: 0 where labels are numbers.
fn drafted(file: &str, text: &[u8], label: Option<&str>) -> (Draft, usize) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(file), text).unwrap();
    let of = ProfileOf {
        data: file,
        base_dir: folder.path(),
        spool: folder.path(),
        separator: None,
        label,
    };
    let profile = sojourn_ingest::profile(of, Arc::new(Unbounded), &mut |_| {}).unwrap();
    let wishes = Wishes { name: "t", train: file, label, labels: None };
    let draft = draft(&profile, wishes).unwrap_or_else(|problems| panic!("{file}: {problems:?}"));
    let classes = accepted(&draft, folder.path());
    (draft, classes)
}

fn accepted(draft: &Draft, folder: &Path) -> usize {
    let spec = jobfile::parse(&draft.job).unwrap_or_else(|error| panic!("{error}\n{}", draft.job));
    let summary = sojourn_ingest::check(&spec, folder, folder, &mut |_| {})
        .unwrap_or_else(|error| panic!("{error}\n{}", draft.job));
    match summary.labels {
        Labels::Classes(classes) => classes.len(),
        Labels::Number | Labels::None => 0,
    }
}

fn taken(draft: &Draft, taken: Taken) -> Vec<&str> {
    let columns = draft.columns.iter().filter(|column| column.taken == taken);
    columns.map(|column| column.column.as_str()).collect()
}

fn label(draft: &Draft) -> &str {
    draft.label.as_ref().map_or("", |guess| guess.column.as_str())
}

#[test]
fn passengers_of_a_ship_with_names_and_missing_ages() {
    let text =
        table("PassengerId,Survived,Pclass,Name,Sex,Age,Fare,Cabin,Embarked", |chance, row| {
            format!(
                "{},{},{},\"Doe, {} {row}\",{},{},{},{},{}",
                row + 1,
                chance.below(2),
                1 + chance.below(3),
                chance.of(&["Mr.", "Mrs.", "Miss"]),
                chance.of(&["male", "female"]),
                {
                    let age = chance.decimal(80);
                    chance.or(5, "", age)
                },
                chance.decimal(500),
                {
                    let cabin = format!("C{}", chance.below(300));
                    if chance.below(4) > 0 { String::new() } else { cabin }
                },
                chance.of(&["C", "Q", "S"]),
            )
        });
    let (draft, classes) = drafted("titanic.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("Survived", 2));
    assert_eq!(taken(&draft, Taken::LeftOut), ["PassengerId", "Name", "Cabin"]);
    assert_eq!(taken(&draft, Taken::OneHot), ["Sex", "Embarked"]);
    assert!(draft.job.contains("missing = \"mean\""), "{}", draft.job);
}

#[test]
fn penguins_with_na_and_the_numbers_of_rows_that_r_writes() {
    let text =
        table("\"\",\"species\",\"island\",\"bill_length_mm\",\"sex\",\"year\"", |chance, row| {
            format!(
                "\"{}\",\"{}\",\"{}\",{},{},{}",
                row + 1,
                chance.of(&["Adelie", "Chinstrap", "Gentoo"]),
                chance.of(&["Biscoe", "Dream"]),
                {
                    let length = chance.decimal(60);
                    chance.or(30, "NA", length)
                },
                chance.of(&["\"male\"", "\"female\"", "NA"]),
                2007 + chance.below(3),
            )
        });
    let (draft, classes) = drafted("penguins.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("species", 3));
    assert_eq!(taken(&draft, Taken::Unnamed), ["1"]);
    assert_eq!(taken(&draft, Taken::OneHot), ["island", "sex"]);
}

#[test]
fn the_air_of_a_city_whose_labels_are_missing_at_times() {
    let text = table("No,year,month,hour,pm2.5,DEWP,TEMP,cbwd", |chance, row| {
        format!(
            "{},{},{},{},{},-{},{},{}",
            row + 1,
            2010 + chance.below(5),
            1 + chance.below(12),
            chance.below(24),
            {
                let dust = chance.below(500).to_string();
                chance.or(20, "NA", dust)
            },
            chance.below(20),
            chance.decimal(40),
            chance.of(&["NW", "cv", "NE", "SE"]),
        )
    });
    let (draft, classes) = drafted("air.csv", text.as_bytes(), Some("pm2.5"));
    assert_eq!(classes, 0, "numbers");
    assert_eq!(taken(&draft, Taken::LeftOut), ["No"]);
    assert!(
        draft.remarks.iter().any(|remark| remark.contains("without a label")),
        "{:?}",
        draft.remarks
    );
}

#[test]
fn a_census_without_a_header_with_blanks_behind_commas() {
    let text = table("", |chance, _| {
        format!(
            "{}, {}, {}, {}, {}, {}",
            17 + chance.below(60),
            {
                let work = chance.of(&["Private", "State-gov", "Self-emp"]).to_owned();
                chance.or(10, "?", work)
            },
            10_000 + chance.below(900_000),
            chance.of(&["Bachelors", "HS-grad", "11th"]),
            chance.below(99),
            chance.of(&["<=50K", ">50K"]),
        )
    });
    let (draft, classes) = drafted("adult.data.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("6", 2));
    assert_eq!(taken(&draft, Taken::OneHot), ["2", "4"]);
    assert!(draft.job.contains("header = false"), "{}", draft.job);
}

#[test]
fn shells_without_a_header_whose_age_is_a_number() {
    let text = table("", |chance, _| {
        format!(
            "{},0.{:03},0.{:03},0.{:03},{}",
            chance.of(&["M", "F", "I"]),
            chance.below(900),
            chance.below(900),
            chance.below(900),
            1 + chance.below(28),
        )
    });
    let (draft, classes) = drafted("abalone.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("5", 0));
    assert_eq!(taken(&draft, Taken::OneHot), ["1"]);
}

#[test]
fn counts_are_numbers_and_many_numbered_classes_are_classes() {
    // Of 20 different numbers the small ones are rare.
    let counts = table("x,rings", |chance, row| format!("{},{}", chance.decimal(20), row.isqrt()));
    assert_eq!(drafted("rings.csv", counts.as_bytes(), None).1, 0);
    let even = table("x,kind", |chance, row| format!("{},{}", chance.decimal(20), row % 16));
    assert_eq!(drafted("kinds.csv", even.as_bytes(), None).1, 16);
}

#[test]
fn wines_without_a_header_whose_class_comes_first() {
    let text = table("", |chance, _| {
        let numbers: Vec<String> = (0..13).map(|_| chance.decimal(20)).collect();
        format!("{},{}", 1 + chance.below(3), numbers.join(","))
    });
    let (draft, classes) = drafted("wine.csv", text.as_bytes(), Some("1"));
    assert_eq!(classes, 3);
    assert_eq!(taken(&draft, Taken::Number).len(), 13);
}

#[test]
fn echoes_without_a_header_whose_last_column_has_two_letters() {
    let text = table("", |chance, _| {
        let numbers: Vec<String> =
            (0..60).map(|_| format!("0.{:04}", chance.below(9999))).collect();
        format!("{},{}", numbers.join(","), chance.of(&["R", "M"]))
    });
    let (draft, classes) = drafted("sonar.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("61", 2));
}

#[test]
fn forests_with_fifty_columns_of_zeros_and_ones() {
    let text = table("", |chance, row| {
        let soil = chance.below(40);
        // The last kind of soil is nowhere.
        let soils: Vec<&str> = (0..41).map(|kind| if kind == soil { "1" } else { "0" }).collect();
        format!(
            "{},{},{},{}",
            2000 + chance.below(1000),
            row * 7 % 360,
            soils.join(","),
            1 + chance.below(7)
        )
    });
    let (draft, classes) = drafted("covtype.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("44", 7));
    assert_eq!(taken(&draft, Taken::LeftOut), ["43"], "it is always 0");
}

#[test]
fn taxis_with_times_and_truth_values() {
    let text = table("id,pickup_datetime,distance,is_card,zone,fare", |chance, row| {
        format!(
            "t{row},2019-03-{:02} {:02}:15:00,{},{},{},{}",
            1 + chance.below(31),
            chance.below(24),
            chance.decimal(30),
            chance.of(&["True", "False"]),
            chance
                .of(&["Midtown", "Harlem, East", "JFK"])
                .replace("Harlem, East", "\"Harlem, East\""),
            chance.decimal(90),
        )
    });
    let (draft, classes) = drafted("taxis.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("fare", 0));
    assert!(taken(&draft, Taken::LeftOut).contains(&"id"));
    assert!(taken(&draft, Taken::Number).contains(&"is_card"));
    assert_eq!(taken(&draft, Taken::OneHot), ["zone"]);
    assert_eq!(taken(&draft, Taken::Dates), ["pickup_datetime"]);
    assert!(draft.job.contains("dates = { pickup_datetime = \"parts\" }"), "{}", draft.job);
}

#[test]
fn dates_in_another_form_than_iso_8601_are_left_out() {
    let text = table("am,a,y", |chance, row| {
        format!("{}.3.2024,{},{}", 1 + row % 31, chance.decimal(9), chance.decimal(90))
    });
    let (draft, _) = drafted("t.csv", text.as_bytes(), Some("y"));
    assert_eq!(taken(&draft, Taken::LeftOut), ["am"]);
    assert!(draft.job.contains("dates that aren't all written as ISO 8601"), "{}", draft.job);
}

#[test]
fn text_of_windows_and_of_spreadsheets_has_its_encoding_in_the_job() {
    let text = table("größe,farbe,y", |chance, _| {
        format!("{},{},{}", chance.decimal(9), chance.of(&["weiß", "grün"]), chance.below(2))
    });
    let windows: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let units = format!("\u{feff}{text}");
    let units: Vec<u8> = units.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, key) in [
        (text.clone().into_bytes(), ""),
        (windows, "encoding = \"windows-1252\"\n"),
        (units, "encoding = \"utf-16\"\n"),
    ] {
        let (draft, _) = drafted("t.csv", &bytes, Some("y"));
        assert_eq!(draft.job.contains("encoding"), !key.is_empty());
        assert!(draft.job.contains(key), "{}", draft.job);
        assert_eq!(taken(&draft, Taken::Number), ["größe"]);
        assert_eq!(taken(&draft, Taken::OneHot), ["farbe"]);
        let said = draft.remarks.iter().any(|remark| remark.starts_with("the text is"));
        assert_eq!(said, !key.is_empty());
    }
}

#[test]
fn diamonds_whose_price_is_amid_the_columns() {
    let text = table("carat,cut,color,depth,price,x,y", |chance, _| {
        format!(
            "0.{},{},{},{},{},{},{}",
            chance.below(99),
            chance.of(&["Ideal", "Good", "Very Good"]),
            chance.of(&["D", "E", "J"]),
            chance.decimal(70),
            300 + chance.below(18_000),
            chance.decimal(9),
            chance.decimal(9),
        )
    });
    let (draft, classes) = drafted("diamonds.csv", text.as_bytes(), Some("price"));
    assert_eq!(classes, 0);
    assert_eq!(taken(&draft, Taken::OneHot), ["cut", "color"]);
}

#[test]
fn houses_of_a_coast_with_the_label_before_the_last_column() {
    let text = table(
        "longitude,total_bedrooms,median_income,median_house_value,ocean_proximity",
        |chance, _| {
            format!(
                "-{},{},{},{}.0,{}",
                chance.decimal(120),
                {
                    let rooms = format!("{}.0", chance.below(900));
                    chance.or(30, "", rooms)
                },
                chance.decimal(12),
                15_000 + chance.below(485_000),
                chance.of(&["NEAR BAY", "INLAND", "<1H OCEAN"]),
            )
        },
    );
    let (draft, classes) = drafted("housing.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("median_house_value", 0));
}

#[test]
fn a_bank_of_germany_with_semicolons_and_decimal_commas() {
    let text = table("Buchungstag;Betrag;Saldo;Art;Kategorie", |chance, _| {
        format!(
            "{:02}.{:02}.2024;-{},{:02};{}.{:03},{:02};{};{}",
            1 + chance.below(28),
            1 + chance.below(12),
            chance.below(900),
            chance.below(100),
            1 + chance.below(90),
            chance.below(1000),
            chance.below(100),
            chance.of(&["Lastschrift", "Dauerauftrag"]),
            chance.of(&["Miete", "Essen", "Reise"]),
        )
    });
    let (draft, classes) = drafted("umsatz.csv", text.as_bytes(), Some("Kategorie"));
    assert_eq!(classes, 3);
    assert!(
        draft.job.contains("decimal = \",\"") && draft.job.contains("thousands = \".\""),
        "{}",
        draft.job
    );
    assert_eq!(taken(&draft, Taken::Number), ["Betrag", "Saldo"]);
}

#[test]
fn a_spreadsheet_with_thousands_in_quotes() {
    let text = table("Region,Units,Revenue", |chance, _| {
        format!(
            "{},{},\"{},{:03}.{:02}\"",
            chance.of(&["North", "South"]),
            chance.below(90),
            1 + chance.below(90),
            chance.below(1000),
            chance.below(100),
        )
    });
    let (draft, classes) = drafted("sales.csv", text.as_bytes(), Some("Revenue"));
    assert_eq!(classes, 0);
    assert!(draft.job.contains("thousands = \",\""), "{}", draft.job);
    assert!(!draft.job.contains("decimal ="), "{}", draft.job);
}

#[test]
fn numbers_with_odd_words_among_them_are_numbers() {
    let text = table("a;b;y", |chance, _| {
        let number = chance.decimal(9);
        format!("{};{};{}", chance.or(40, "-", number), chance.below(9), chance.of(&["p", "q"]))
    });
    let (draft, classes) = drafted("export.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("y", 2));
    assert!(draft.job.contains("missing_values = "), "{}", draft.job);
    assert_eq!(taken(&draft, Taken::Number), ["a", "b"]);
}

#[test]
fn a_word_among_numbers_that_is_a_label_as_well_takes_no_rows_away() {
    let text = table("age,size,status", |chance, _| {
        let age = chance.below(90).to_string();
        format!(
            "{},{},{}",
            chance.or(50, "unknown", age),
            chance.below(9),
            chance.of(&["known", "unknown", "lost"])
        )
    });
    let (draft, classes) = drafted("status.csv", text.as_bytes(), Some("status"));
    assert_eq!(classes, 3);
    assert_eq!(taken(&draft, Taken::LeftOut), ["age"]);
}

#[test]
fn names_that_are_numbers_stand_above_numbers() {
    let text = table("0,1,2,target", |chance, _| {
        format!(
            "{},{},{},{}",
            chance.decimal(9),
            chance.decimal(9),
            chance.decimal(9),
            chance.below(2)
        )
    });
    let (draft, classes) = drafted("frame.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("target", 2));
    assert!(!draft.job.contains("header"), "{}", draft.job);
}

#[test]
fn names_of_any_signs_and_columns_without_one_are_taken_as_they_are() {
    let question = "How satisfied are you, on the whole, with the way in which this was \"done\"?";
    let header = format!("it's,\"{}\",,y", question.replace('"', "\"\""));
    let text = table(&header, |chance, _| {
        format!(
            "{},{},{},{}",
            chance.of(&["a", "b"]),
            chance.below(9),
            chance.below(9),
            chance.of(&["p", "q"])
        )
    });
    let (draft, classes) = drafted("survey.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("y", 2));
    assert_eq!(taken(&draft, Taken::OneHot), ["it's"]);
    assert_eq!(taken(&draft, Taken::Number), [question]);
    assert_eq!(taken(&draft, Taken::LeftOut), ["3"], "by its position");
}

#[test]
fn a_label_of_numbers_with_a_word_for_missing_ones_stays_one_of_numbers() {
    let text = table("a,price", |chance, row| {
        let price = format!("{}.{:02}", 10 + row, chance.below(100));
        format!("{},{}", chance.below(9), chance.or(50, "-", price))
    });
    let (draft, classes) = drafted("prices.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("price", 0));
    assert!(
        draft.remarks.iter().any(|remark| remark.contains("without a label")),
        "{:?}",
        draft.remarks
    );
}

#[test]
fn columns_that_are_nearly_empty_or_hold_words_with_digits_among_numbers_are_left_out() {
    let text = table("a,b,c,y", |chance, row| {
        let few = if row % 150 == 0 { "1" } else { "" };
        let dose = chance.decimal(9);
        let dose = if row % 40 == 3 { format!("<0.{row}") } else { dose };
        format!("{},{few},{dose},{}", chance.below(9), chance.of(&["p", "q"]))
    });
    let (draft, _) = drafted("doses.csv", text.as_bytes(), None);
    assert_eq!(taken(&draft, Taken::LeftOut), ["b", "c"]);
    assert_eq!(taken(&draft, Taken::Number), ["a"]);
}

#[test]
fn a_few_lines_with_another_number_of_fields_are_left_out() {
    let text = table("a,b,kind", |chance, row| {
        let end = if row == 7 { ",stray" } else { "" };
        format!("{},{},{}{end}", chance.decimal(9), chance.decimal(9), chance.of(&["x", "y"]))
    });
    let (draft, classes) = drafted("few.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("kind", 2));
    assert!(draft.job.contains("\non_bad_row = \"skip\" "), "{}", draft.job);
    assert!(
        draft.remarks.iter().any(|remark| remark
            .starts_with("1 line that can't be read: line 9 (4 fields, where the first has 3)")),
        "{:?}",
        draft.remarks
    );
}

#[test]
fn a_number_that_is_written_in_another_way_is_no_word() {
    let text = table("a,b,c,kind", |chance, row| {
        let a = if row == 5 { "\"5,5\"".to_owned() } else { chance.decimal(9) };
        let c = if row % 3 == 0 { "#N/A".to_owned() } else { chance.decimal(9) };
        format!("{a},{},{c},{}", chance.decimal(9), chance.of(&["x", "y"]))
    });
    let (draft, classes) = drafted("stray.csv", text.as_bytes(), None);
    assert_eq!((label(&draft), classes), ("kind", 2));
    assert_eq!(taken(&draft, Taken::Number), ["a", "b", "c"]);
    for line in ["on_bad_row = \"skip\"", "missing_values = "] {
        assert!(draft.job.contains(line), "{}", draft.job);
    }
    let remark =
        "1 field of `a` not written as the others: `on_bad_row = \"skip\"` leaves such rows out";
    assert!(draft.remarks.iter().any(|of| of == remark), "{:?}", draft.remarks);
}

#[test]
fn objects_in_lines_with_keys_that_some_leave_out() {
    let text = table("", |chance, row| {
        let color = chance.of(&["red", "green", "blue"]);
        let weight = if row % 9 == 0 {
            String::new()
        } else {
            format!("\"weight\": {}, ", chance.decimal(40))
        };
        format!(
            "{{\"id\": {row}, {weight}\"color\": \"{color}\", \"tags\": [{row}], \"kind\": \"{}\"}}",
            chance.of(&["cat", "dog"])
        )
    });
    let (draft, classes) = drafted("animals.jsonl", text.as_bytes(), Some("kind"));
    assert_eq!(classes, 2);
    assert_eq!(taken(&draft, Taken::LeftOut), ["id", "tags"]);
    assert!(draft.job.contains("missing = "), "{}", draft.job);
}

#[test]
fn sparse_rows_have_indices_as_columns() {
    let text = table("", |chance, _| {
        let class = chance.of(&["+1", "-1"]);
        format!("{class} 1:{} 4:{}", chance.decimal(9), chance.decimal(90))
    });
    for file in ["a9a", "a9a.svm"] {
        let (draft, classes) = drafted(file, text.as_bytes(), None);
        assert_eq!(classes, 2);
        assert_eq!(label(&draft), "label");
        assert_eq!(taken(&draft, Taken::LeftOut), ["2", "3"], "no row has a value of these");
    }
}

#[test]
fn all_problems_are_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.csv"), "a,a,y\n1,2,x\n3,4\n").unwrap();
    let of = ProfileOf {
        data: "bad.csv",
        base_dir: folder.path(),
        spool: folder.path(),
        separator: None,
        label: None,
    };
    let profile = sojourn_ingest::profile(of, Arc::new(Unbounded), &mut |_| {}).unwrap();
    let wishes =
        Wishes { name: "t", train: "bad.csv", label: Some("z"), labels: Some(LabelKind::Classes) };
    let problems = draft(&profile, wishes).unwrap_err().join("\n");
    for part in [
        "too few",
        "line 3 (2 fields, where the first has 3)",
        "two columns are called `a`",
        "there is no column `z`",
    ] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    assert!(matches!(profile, Profile::Table(_)));
}
